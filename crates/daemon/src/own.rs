//! What an agent sees and takes back: its own. Commands are narrowed before they are carried out, replies after.

use backout_engine::{
    Command, Context, Engine, EngineError, Filter, OperationRef, ProposalCommand, RedoWhat, Reply,
    ResumeWhat, StageCommand, StageEnd, StatusReport, TaskCommand, UndoOptions, UndoWhat,
};
use backout_model::{AgentId, Operation, OperationId};

use crate::answer::Failed;
use crate::caller::{Caller, forbidden};

/// Makes a command one about the caller's own work, or refuses it. Whoever may see everything asks as he likes.
#[expect(clippy::too_many_lines, reason = "one arm for each command")]
pub(crate) fn narrow(
    engine: &Engine,
    caller: &Caller,
    context: &mut Context,
    command: Command,
) -> Result<Command, Failed> {
    let Some(agent) = caller.only_of() else {
        return Ok(command);
    };
    match &command {
        Command::Show(operation) | Command::Diff { operation, .. } => {
            own(engine, agent, operation)?;
        }
        Command::Restore { from, .. } => {
            own(engine, agent, from)?;
        }
        Command::Proposal(ProposalCommand::Show(proposal)) => {
            let id = engine
                .store()
                .resolve(proposal)
                .map_err(EngineError::from)?;
            let found = engine.store().proposal(id).map_err(EngineError::from)?;
            if found.is_some_and(|found| found.agent.as_ref() != Some(agent)) {
                return Err(not_own(id));
            }
        }
        Command::Task(TaskCommand::Commit { id: Some(task) }) => {
            let found = engine.store().task(task).map_err(EngineError::from)?;
            if found.is_some_and(|found| found.agent.as_ref() != Some(agent)) {
                return Err(forbidden("the task is another agent's").into());
            }
        }
        Command::Task(TaskCommand::Commit { id: None }) if context.task.is_none() => {
            return Err(forbidden("it is not clear which task is meant")
                .next("name the task")
                .into());
        }
        Command::Resume(what) => {
            let meant = what.task.as_ref().or(context.task.as_ref());
            if let Some(task) = meant {
                let found = engine.store().task(task).map_err(EngineError::from)?;
                if found.is_some_and(|found| found.agent.as_ref() != Some(agent)) {
                    return Err(forbidden("the task is another agent's").into());
                }
            }
            return Ok(Command::Resume(ResumeWhat {
                own_only: true,
                others: false,
                ..what.clone()
            }));
        }
        Command::Stage(StageCommand::End {
            name,
            failed: Some(end),
        }) => {
            let end = StageEnd {
                own_only: true,
                others: false,
                ..end.clone()
            };
            return Ok(Command::Stage(StageCommand::End {
                name: name.clone(),
                failed: Some(end),
            }));
        }
        Command::Undo { what, options, .. } => {
            return narrow_undo(engine, agent, context, what, options)
                .map(|options| with_options(command, options));
        }
        Command::Redo { what, options, .. } => {
            return narrow_redo(engine, agent, context, what, options)
                .map(|options| with_options(command, options));
        }
        Command::Log(filter) => {
            if filter.agent.is_some() && filter.agent.as_ref() != Some(agent) {
                return Err(forbidden("the token is for another agent").into());
            }
            let agent = Some(agent.clone());
            return Ok(Command::Log(Filter {
                agent,
                ..filter.clone()
            }));
        }
        // What an agent may ask of these is its own, or is taken out of the answer (`strip`).
        Command::Write { .. }
        | Command::Proposal(
            ProposalCommand::List
            | ProposalCommand::Approve { .. }
            | ProposalCommand::Reject { .. },
        )
        | Command::Task(
            TaskCommand::List | TaskCommand::Begin { .. } | TaskCommand::Commit { id: None },
        )
        | Command::Checkpoint(_)
        | Command::Prompts(_)
        | Command::Status
        | Command::Stage(_)
        // What the project is, and what drifted, is everybody's to know.
        | Command::Graph(_)
        | Command::Drift(_)
        // Its role does not let it ask these (`roles`).
        | Command::Run(_)
        | Command::Try(_)
        | Command::Sandbox(_)
        | Command::Rollout(_)
        | Command::Failed(_)
        | Command::Recover(_)
        | Command::Verify
        | Command::VerifyEvidence { .. }
        | Command::Gc { .. }
        | Command::Doctor { .. }
        | Command::Export { .. } => {}
    }
    Ok(command)
}

fn with_options(command: Command, narrowed: UndoOptions) -> Command {
    match command {
        Command::Undo {
            what, is_dry_run, ..
        } => Command::Undo {
            what,
            options: narrowed,
            is_dry_run,
        },
        Command::Redo {
            what, is_dry_run, ..
        } => Command::Redo {
            what,
            options: narrowed,
            is_dry_run,
        },
        other => other,
    }
}

/// Looks at the plan first: all of it must be the agent's, and nothing may come to it until it is carried out.
fn narrow_undo(
    engine: &Engine,
    agent: &AgentId,
    context: &mut Context,
    what: &UndoWhat,
    options: &UndoOptions,
) -> Result<UndoOptions, Failed> {
    if let UndoWhat::Operations(named) = what {
        for reference in named {
            own(engine, agent, reference)?;
        }
    }
    let command = Command::Undo {
        what: what.clone(),
        options: without_diff(options),
        is_dry_run: true,
    };
    own_plan(engine, agent, context, command, options)
}

fn narrow_redo(
    engine: &Engine,
    agent: &AgentId,
    context: &mut Context,
    what: &RedoWhat,
    options: &UndoOptions,
) -> Result<UndoOptions, Failed> {
    let command = Command::Redo {
        what: what.clone(),
        options: without_diff(options),
        is_dry_run: true,
    };
    own_plan(engine, agent, context, command, options)
}

fn without_diff(options: &UndoOptions) -> UndoOptions {
    UndoOptions {
        diff: false,
        ..options.clone()
    }
}

fn own_plan(
    engine: &Engine,
    agent: &AgentId,
    context: &mut Context,
    preview: Command,
    options: &UndoOptions,
) -> Result<UndoOptions, Failed> {
    let looker = engine.for_caller(Context {
        is_inside: false,
        ..context.clone()
    });
    let Reply::Plan(plan) = looker.execute(preview)? else {
        return Err(forbidden("nobody can tell what it would take back").into());
    };
    let mut only = Vec::with_capacity(plan.steps.len());
    for step in &plan.steps {
        let operation = found(engine, step.id)?;
        if operation.agent.as_ref() != Some(agent) {
            return Err(not_own(step.id));
        }
        // An agent's work is taken back a task at a time; whoever names none means that of what he named.
        if context.task.is_none() {
            context.task = operation.task;
        }
        only.push(step.id);
    }
    Ok(UndoOptions {
        only: Some(only),
        ..options.clone()
    })
}

/// Finds an operation and makes sure that it is the agent's.
pub(crate) fn own(
    engine: &Engine,
    agent: &AgentId,
    reference: &OperationRef,
) -> Result<(), Failed> {
    let id = engine
        .store()
        .resolve(reference)
        .map_err(EngineError::from)?;
    let operation = engine.store().operation(id).map_err(EngineError::from)?;
    match operation {
        Some(operation) if operation.agent.as_ref() != Some(agent) => Err(not_own(id)),
        // What is not there is said by whoever looks for it.
        Some(_) | None => Ok(()),
    }
}

fn found(engine: &Engine, id: OperationId) -> Result<Operation, Failed> {
    let operation = engine.store().operation(id).map_err(EngineError::from)?;
    operation.ok_or_else(|| not_own(id))
}

fn not_own(id: OperationId) -> Failed {
    forbidden(&format!("operation {} is not this agent's", id.short()))
        .operation(id)
        .next("ask somebody whose role is operator")
        .into()
}

/// Takes out of a reply what is not the caller's own.
pub(crate) fn strip(caller: &Caller, mut reply: Reply) -> Reply {
    let Some(agent) = caller.only_of() else {
        return reply;
    };
    let is_own = |its: &Option<AgentId>| its.as_ref() == Some(agent);
    match &mut reply {
        Reply::Pending {
            proposals,
            trials,
            untold,
            ..
        } => {
            proposals.retain(|it| is_own(&it.agent));
            untold.retain(|id, _| proposals.iter().any(|it| it.id == *id));
            trials.clear();
        }
        Reply::Tasks { tasks } => tasks.retain(|it| is_own(&it.agent)),
        Reply::Checkpoints { checkpoints } => checkpoints.retain(|it| is_own(&it.agent)),
        Reply::Stages { stages } => stages.retain(|it| is_own(&it.agent)),
        Reply::Prompts { prompts } => prompts.retain(|it| it.prompt.agent == *agent),
        Reply::Log { operations } => operations.retain(|it| is_own(&it.agent)),
        Reply::Status(status) => strip_status(status, agent),
        // About one thing, which was asked for by name and found to be the agent's.
        Reply::Finished(_)
        | Reply::Proposal(_)
        | Reply::Rejected { .. }
        | Reply::Plan(_)
        | Reply::Undone(_)
        | Reply::Task(_)
        | Reply::Committed { .. }
        | Reply::Checkpoint(_)
        | Reply::CheckpointNotDue(_)
        | Reply::Resumed(_)
        | Reply::Stage(_)
        | Reply::WorkspaceKept(_)
        | Reply::WorkspacePlan(_)
        | Reply::WorkspaceDropped { .. }
        | Reply::Shown(_)
        | Reply::Diff(_)
        | Reply::Graph(_)
        | Reply::GraphDocument(_)
        | Reply::GraphUpdated(_)
        | Reply::GraphChecked(_)
        | Reply::Drift(_)
        // Its role does not let an agent ask for these (`roles`).
        | Reply::Trial(_)
        | Reply::Trials { .. }
        | Reply::Discarded { .. }
        | Reply::Sandbox(_)
        | Reply::Sandboxes { .. }
        | Reply::SandboxRan(_)
        | Reply::SandboxBatch(_)
        | Reply::SandboxPruned(_)
        | Reply::SandboxExported(_)
        | Reply::SandboxEnded { .. }
        | Reply::DriftDecided(_)
        | Reply::Evidence(_)
        | Reply::Rollout(_)
        | Reply::Rollouts { .. }
        | Reply::Failed { .. }
        | Reply::Accepted { .. }
        | Reply::Recovered(_)
        | Reply::Verified(_)
        | Reply::Collected(_)
        | Reply::Doctor(_)
        | Reply::Ran(_)
        | Reply::Exported { .. } => {}
    }
    reply
}

fn strip_status(status: &mut StatusReport, agent: &AgentId) {
    let is_own = |its: &Option<AgentId>| its.as_ref() == Some(agent);
    status.open_tasks.retain(|it| is_own(&it.agent));
    status.unfinished.retain(|it| is_own(&it.agent));
    status.proposals.retain(|it| is_own(&it.agent));
    status.stuck.retain(|it| is_own(&it.agent));
    status.newest.retain(|it| is_own(&it.agent));
    let unfinished = &status.unfinished;
    status
        .at_work
        .retain(|id| unfinished.iter().any(|it| it.id == *id));
    status.rollouts.retain(|it| is_own(&it.agent));
    status.trials.clear();
    status.sandboxes.clear();
    status.failed.clear();
    status.acts_left.clear();
}
