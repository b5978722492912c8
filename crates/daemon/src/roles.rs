//! Which role may ask which command: one table, without a wildcard, so that a new command does not compile until somebody says who may
//! ask it.

use backout_engine::{
    CheckpointCommand, Command, FailedCommand, GraphCommand, ProposalCommand, Report,
    RolloutCommand, SandboxCommand, StageCommand, TaskCommand, TryCommand,
};

use crate::caller::{Caller, Role, forbidden};

/// What somebody must be allowed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Look, at his own at least.
    Look,
    /// Look at what has no owner.
    LookAtAll,
    /// Ask for a write.
    Request,
    /// Take back, his own at least.
    TakeBack,
    /// Decide, and look after the store.
    Operate,
    /// Nobody may, over HTTP.
    Nobody(&'static str),
}

const RUNS: &str = "a command needs a process of its own: `POST /v1/runs` starts one";

/// Says what a command needs.
#[expect(clippy::too_many_lines, reason = "one arm for each command")]
pub(crate) fn need(command: &Command) -> Need {
    match command {
        Command::Write { request } if request.driver().as_str().starts_with("handler:") => {
            Need::Nobody("what its programs do is not watched: `backout act` does it where it is")
        }
        Command::Write { .. } | Command::Restore { .. } => Need::Request,
        Command::Run(_) => Need::Nobody(RUNS),
        Command::Try(command) => of_trial(command),
        Command::Sandbox(command) => of_sandbox(command),
        Command::Proposal(command) => match command {
            ProposalCommand::List | ProposalCommand::Show(_) => Need::Look,
            ProposalCommand::Approve { .. } | ProposalCommand::Reject { .. } => Need::Operate,
        },
        Command::Rollout(command) => match command {
            RolloutCommand::Status { .. } | RolloutCommand::List => Need::LookAtAll,
            RolloutCommand::Start(_)
            | RolloutCommand::Resume { .. }
            | RolloutCommand::Abort { .. } => Need::Operate,
        },
        Command::Graph(command) => match command {
            GraphCommand::Show { .. }
            | GraphCommand::Export { .. }
            | GraphCommand::Check { .. } => Need::Look,
            GraphCommand::Import { .. } => Need::Request,
            GraphCommand::Remove { .. } | GraphCommand::Restore { .. } => Need::Operate,
        },
        Command::Undo { is_dry_run, .. } | Command::Redo { is_dry_run, .. } => {
            if *is_dry_run {
                Need::Look
            } else {
                Need::TakeBack
            }
        }
        Command::Drift(command) if command.only_looks() => Need::Look,
        Command::Failed(command) => match command {
            FailedCommand::List => Need::LookAtAll,
            FailedCommand::Retry { .. } | FailedCommand::Accept { .. } => Need::Operate,
        },
        Command::Task(command) => match command {
            TaskCommand::List => Need::Look,
            TaskCommand::Begin { .. } | TaskCommand::Commit { .. } => Need::Request,
        },
        Command::Checkpoint(command) => match command {
            CheckpointCommand::List => Need::Look,
            CheckpointCommand::Mark { .. } | CheckpointCommand::Keep { .. } => Need::Request,
            CheckpointCommand::Return(_) | CheckpointCommand::Drop { .. } => Need::Operate,
        },
        Command::Resume(what) => {
            if what.is_dry_run {
                Need::Look
            } else {
                Need::TakeBack
            }
        }
        Command::Stage(command) => match command {
            StageCommand::List => Need::Look,
            StageCommand::Begin { .. } | StageCommand::End { failed: None, .. } => Need::Request,
            StageCommand::End {
                failed: Some(_), ..
            } => Need::TakeBack,
        },
        Command::Log(_)
        | Command::Prompts(_)
        | Command::Show(_)
        | Command::Diff { .. }
        | Command::Status => Need::Look,
        Command::Verify
        | Command::Gc {
            is_dry_run: true, ..
        } => Need::LookAtAll,
        Command::Drift(_)
        | Command::Recover(_)
        | Command::Gc {
            is_dry_run: false, ..
        }
        | Command::Doctor { repair: false, .. } => Need::Operate,
        Command::Doctor { repair: true, .. } => Need::Nobody(
            "a repair needs the store to itself: stop the server, then `backout doctor --repair`",
        ),
        Command::VerifyEvidence { .. } => {
            Need::Nobody("evidence is looked at where it is: `backout verify --evidence`")
        }
        Command::Export { .. } => Need::Nobody("an export goes to a file: `backout export`"),
    }
}

const fn of_trial(command: &TryCommand) -> Need {
    match command {
        TryCommand::Run(_) => Need::Nobody(RUNS),
        TryCommand::Apply { .. } | TryCommand::Discard { .. } => Need::Operate,
        TryCommand::Show { .. } | TryCommand::Diff { .. } | TryCommand::List => Need::LookAtAll,
    }
}

const fn of_sandbox(command: &SandboxCommand) -> Need {
    match command {
        SandboxCommand::Exec { .. } => Need::Nobody(RUNS),
        SandboxCommand::Show { .. } | SandboxCommand::Diff { .. } | SandboxCommand::List => {
            Need::LookAtAll
        }
        SandboxCommand::Start(_)
        | SandboxCommand::Rollback { .. }
        | SandboxCommand::Fork { .. }
        | SandboxCommand::Apply { .. }
        | SandboxCommand::Prune { .. }
        | SandboxCommand::Export { .. }
        | SandboxCommand::End { .. } => Need::Operate,
    }
}

/// Makes sure that a caller may ask for something.
pub(crate) fn permit(caller: &Caller, need: Need) -> Result<(), Report> {
    let is_fine = match (need, caller.role) {
        (Need::Nobody(why), _) => return Err(forbidden(why)),
        (_, Role::Operator) | (Need::Look, Role::Viewer | Role::Agent) => true,
        (Need::LookAtAll, role) => role == Role::Viewer,
        (Need::Request | Need::TakeBack, role) => role == Role::Agent,
        (Need::Operate, Role::Viewer | Role::Agent) => false,
    };
    if is_fine {
        return Ok(());
    }
    let what = match need {
        Need::Operate => "decides, or looks after the store",
        Need::LookAtAll => "shows the work of everybody",
        Need::Look | Need::Request | Need::TakeBack | Need::Nobody(_) => "writes",
    };
    Err(
        forbidden(&format!("this {what}, and the role is {}", caller.role))
            .next("have it done by somebody whose role is operator"),
    )
}
