//! `backout rollout`

use std::path::{Path, PathBuf};

use backout_drivers::file::{Expect, FileRequest, Source};
use backout_engine::{
    Command, Reply, Report, RolloutCommand, RolloutStart, StartStep, WriteRequest,
};
use backout_model::{OnWaveFailure, RolloutState, TargetPath, TaskId, WaveCheck};
use clap::{Args, Subcommand, ValueEnum, ValueHint};

use super::gc::parse_duration;
use crate::batch::{Changed, parse_plan};
use crate::failure::Failure;
use crate::input::read_file_or_stdin;
use crate::paths::absolute;
use crate::session::Session;

/// Write one change to several targets, wave by wave.
///
/// The first target is written and checked, then waves of the others, each checked before the next begins. A wave that fails is
/// undone, and the rest is never touched. Each write is an operation of its own, in a task that has the rollout's name.
#[derive(Debug, Args)]
pub(crate) struct RolloutArgs {
    #[command(subcommand)]
    command: RolloutSubcommand,
}

#[derive(Debug, Subcommand)]
enum RolloutSubcommand {
    /// Begin a rollout and carry it out.
    ///
    /// Everything is looked at before anything is written, and a target that somebody changes after that holds the rollout up. If
    /// the process dies or is interrupted, `rollout resume` goes on.
    Start(StartArgs),
    /// Show where a rollout stands.
    Status {
        /// The rollout, by its name or id; by default the one that is open, or else the newest.
        #[arg(value_name = "NAME")]
        name: Option<String>,
    },
    /// Go on with a rollout that waited, was held up or interrupted, or whose process died.
    ///
    /// What was written is not written again.
    Resume {
        /// The rollout; by default the one that is open.
        #[arg(value_name = "NAME")]
        name: Option<String>,

        /// Also write targets that somebody changed since the rollout began; and if a wave failed, also undo what others built on it
        /// or changed. All of it can be brought back.
        #[arg(long)]
        force: bool,
    },
    /// Take back all that an open rollout wrote, newest first.
    ///
    /// What others built on a write of the rollout is not undone: that write stays, and you are told.
    Abort {
        /// The rollout; by default the one that is open.
        #[arg(value_name = "NAME")]
        name: Option<String>,

        /// Also undo what others built on it or changed. It is listed, and can be brought back.
        #[arg(long)]
        force: bool,
    },
    /// List rollouts, newest first.
    List,
}

#[derive(Debug, Args)]
struct StartArgs {
    /// The files to write, in this order.
    #[arg(value_name = "TARGET", value_hint = ValueHint::FilePath, required_unless_present = "plan")]
    targets: Vec<PathBuf>,

    /// What to write into each; `-` is standard input.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, required_unless_present = "plan")]
    content: Option<PathBuf>,

    /// Take targets and what becomes of each from this file, in the shape of `backout batch`; each change is one target. Keys of
    /// config files are changed by `set`, `unset` and `merge`.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["targets", "content"])]
    plan: Option<PathBuf>,

    /// The rollout's name; by default a new one.
    #[arg(long, value_name = "NAME")]
    name: Option<TaskId>,

    /// How many targets the first wave has.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    first: u32,

    /// How many targets each later wave has; by default all that are left.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    wave: Option<u32>,

    /// How long each wave has to settle before it is checked, like 10s or 500ms.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = parse_duration)]
    pause: i64,

    /// A line for the shell that checks a wave: exit code 0 is a pass. `{target}` stands for a target, and then the line runs for
    /// each of the wave, otherwise once; `{wave}` stands for its number.
    #[arg(long, value_name = "COMMAND")]
    check: Option<String>,

    /// An address that has to answer with status 200 after each wave.
    #[arg(long, value_name = "URL")]
    check_http: Option<String>,

    /// How often a check may fail in a row before the wave has failed.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    tries: u32,

    /// How long one check may take.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    timeout: i64,

    /// What is undone when a wave fails.
    #[arg(long, value_name = "WHAT", default_value = "wave")]
    on_failure: OnFailureArg,
}

/// What is undone when a wave fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OnFailureArg {
    /// That wave; those before it stay.
    Wave,
    /// All that the rollout wrote.
    All,
}

impl RolloutArgs {
    /// Tells whether it changes nothing.
    pub(crate) const fn only_looks(&self) -> bool {
        matches!(
            self.command,
            RolloutSubcommand::Status { .. } | RolloutSubcommand::List
        )
    }
}

/// Begins, shows, goes on with or takes back a rollout.
pub(crate) fn cmd_rollout(session: &mut Session, args: RolloutArgs) -> Result<(), Failure> {
    let only_looks = args.only_looks();
    let is_start = matches!(args.command, RolloutSubcommand::Start(_));
    let command = match args.command {
        RolloutSubcommand::Start(args) => RolloutCommand::Start(Box::new(start(session, args)?)),
        RolloutSubcommand::Status { name: which } => RolloutCommand::Status { which },
        RolloutSubcommand::Resume { name: which, force } => RolloutCommand::Resume { which, force },
        RolloutSubcommand::Abort { name: which, force } => RolloutCommand::Abort { which, force },
        RolloutSubcommand::List => RolloutCommand::List,
    };
    let engine = session.engine()?;
    let reply = session.execute(&engine, Command::Rollout(command))?;
    session.show(&engine, &reply)?;
    match reply {
        // Whoever began it did not end its task: not all of it is done.
        Reply::Rollout(view) if is_start && view.state == RolloutState::ByHand => {
            Err(Failure::Shown(1))
        }
        Reply::Rollout(view) if !only_looks => ended(&view.state),
        _ => Ok(()),
    }
}

/// Gives the exit code of what a rollout has come to.
const fn ended(state: &RolloutState) -> Result<(), Failure> {
    match state {
        RolloutState::Done
        | RolloutState::RolledBack
        | RolloutState::Aborted
        | RolloutState::ByHand => Ok(()),
        RolloutState::Interrupted { .. } => Err(Failure::Shown(130)),
        RolloutState::Running { .. }
        | RolloutState::Died { .. }
        | RolloutState::Waits { .. }
        | RolloutState::Held { .. }
        | RolloutState::Left { .. }
        | RolloutState::Stopped { .. } => Err(Failure::Shown(1)),
    }
}

fn start(session: &Session, args: StartArgs) -> Result<RolloutStart, Failure> {
    if session.global.task.is_some() {
        let report = Report::usage("`--task` does not go with `rollout`");
        let report = report.because("a rollout is a task of its own");
        return Err(report.next("give it a name with `--name`").into());
    }
    let steps = match (&args.plan, &args.content) {
        (Some(plan), _) => planned(session, plan)?,
        (None, Some(content)) => same(session, content, &args.targets)?,
        (None, None) => Vec::new(),
    };
    let millis = |duration: i64| u64::try_from(duration).unwrap_or(0);
    let check = match (args.check, args.check_http) {
        (None, None) => None,
        (command, http) => Some(WaveCheck {
            command,
            http,
            directory: absolute(Path::new("."))?,
            tries: args.tries,
            timeout_ms: millis(args.timeout),
        }),
    };
    Ok(RolloutStart {
        name: args.name,
        steps,
        first: args.first,
        wave: args.wave,
        pause_ms: millis(args.pause),
        check,
        on_failure: match args.on_failure {
            OnFailureArg::Wave => OnWaveFailure::Wave,
            OnFailureArg::All => OnWaveFailure::All,
        },
    })
}

/// Writes the same into each target.
fn same(session: &Session, content: &Path, targets: &[PathBuf]) -> Result<Vec<StartStep>, Failure> {
    let source = if content == Path::new("-") {
        let bytes = read_file_or_stdin(content, session.bar(), "give `--content FILE`")?;
        Source::Bytes(bytes)
    } else {
        Source::Path(absolute(content)?)
    };
    let step = |path: &PathBuf| {
        let path = absolute(path)?;
        let source = match &source {
            Source::Bytes(bytes) => Source::Bytes(bytes.clone()),
            Source::Path(_) | Source::Stored(_) | Source::Opened(_) => {
                Source::Path(absolute(content)?)
            }
        };
        step(FileRequest::Write {
            path,
            source,
            expect: Expect::Anything,
            parents: false,
            mode: None,
        })
    };
    targets.iter().map(step).collect()
}

/// Makes each change of a batch a target.
fn planned(session: &Session, plan: &Path) -> Result<Vec<StartStep>, Failure> {
    let json = read_file_or_stdin(plan, session.bar(), "name a file with the changes")?;
    let base = absolute(Path::new("."))?;
    let changes = parse_plan(&json, &base)?.into_iter();
    let each = changes.map(|change| match change {
        Changed::Files(request) => step(request),
        Changed::Keys(request) => at(&request.path.clone(), request.into()),
    });
    each.collect()
}

fn step(request: FileRequest) -> Result<StartStep, Failure> {
    let path = match &request {
        FileRequest::Write { path, .. }
        | FileRequest::Append { path, .. }
        | FileRequest::Edit { path, .. }
        | FileRequest::Remove { path, .. } => path.clone(),
        FileRequest::Patch { .. }
        | FileRequest::Move { .. }
        | FileRequest::Copy { .. }
        | FileRequest::Mkdir { .. }
        | FileRequest::Symlink { .. }
        | FileRequest::HardLink { .. }
        | FileRequest::Chmod { .. }
        | FileRequest::Chown { .. }
        | FileRequest::Layer { .. }
        | FileRequest::Restore { .. }
        | FileRequest::Batch(_)
        | FileRequest::Within { .. } => {
            let report = Report::usage("no rollout was begun");
            let report = report.because("a change of the plan is not one of one file");
            return Err(report
                .next("a plan takes write, append, edit, remove, set, unset and merge")
                .into());
        }
    };
    at(&path, request.into())
}

fn at(path: &Path, request: WriteRequest) -> Result<StartStep, Failure> {
    let target = TargetPath::new(path)
        .map_err(|error| Report::usage("no rollout was begun").because(error))?;
    Ok(StartStep { target, request })
}
