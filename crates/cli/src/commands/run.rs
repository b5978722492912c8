//! `backout run`

use std::ffi::OsString;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::PathBuf;
use std::time::Duration;

use backout_capture::live::{
    Alone, Back, EndWish, Ending, Front, Pinned, Side, Waited, end_like, lift_limits, split,
};
use backout_drivers::command::{Ask, OverLimit};
use backout_engine::{
    Call, Capture, Context, Engine, EngineError, GateError, OperationRef, Ran, Reply, Report,
    RunReport, RunRequest, UndoOptions, UndoWhat, Watch,
};
use backout_model::{
    CallKey, CaptureLevel, CommandEnd, PlanError, Source, Status, Trigger, TriggerKind,
};
use clap::{Args, ValueEnum};

use super::gc::parse_size;
use crate::env_vars;
use crate::failure::Failure;
use crate::paths::absolute;
use crate::question::{Answer, ask};
use crate::session::Session;
use crate::show;
use crate::state_dir::state_dir;

/// The exit codes that shells give for a program that is not there, or is none.
const NOT_FOUND: i32 = 127;
const NOT_EXECUTABLE: i32 = 126;

/// The exit code of what Ctrl-C ended.
const STOPPED: i32 = 130;

/// Run a command so that everything it does to files can be undone.
///
/// The command runs as if Backout were not there: same terminal, signals and exit code. It only stops for a moment
/// before it changes a file, while Backout keeps what is there. Everything that it and its children do is one
/// operation. Processes that it leaves running are watched in the background, as another operation.
///
/// What a `backout.toml` protects it cannot write, and what somebody would have to approve it cannot write either: the call
/// fails, and a note says why. With `--capture scan` nobody is asked before a call, so no rule holds.
///
/// With `--json` the reply is the last line on standard error: standard output stays the command's own.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// What to do with the changes if the command fails.
    #[arg(long, value_name = "WHAT", default_value = "keep")]
    on_failure: OnFailure,

    /// End the command after this long, like 30s, 5m or 1h30m.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    timeout: Option<Duration>,

    /// What the capture survives while the command runs: the death of any process, or loss of power.
    #[arg(long, value_name = "LEVEL", default_value = "process")]
    durability: Level,

    /// The largest file that is copied before it is written in place.
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "4GiB")]
    limit: u64,

    /// What to do with a larger one: refuse the write, ask, or let it pass and mark it as not undoable.
    #[arg(long, value_name = "WHAT", default_value = "refuse")]
    over_limit: Over,

    /// Also record which files the command reads: an undo that changes one of them undoes the command too.
    #[arg(long)]
    reads: bool,

    /// How the command is watched: asked before each call, or by comparing directories before and after.
    #[arg(long, value_name = "HOW", default_value = "auto")]
    capture: How,

    /// Also compare this directory before and after, for writes that no watch sees, such as a daemon's. May be
    /// repeated; a scan without any takes the current directory.
    #[arg(long, value_name = "DIR")]
    roots: Vec<PathBuf>,

    /// What people are shown instead of the words. For the seam of an agent's shell.
    #[arg(long, hide = true, value_name = "TEXT", allow_hyphen_values = true)]
    shown: Option<String>,

    /// A file of the agent's own that is not part of it. For the seam of an agent's shell.
    #[arg(long, hide = true, value_name = "FILE")]
    left_out: Vec<PathBuf>,

    /// The conversation of the agent that it belongs to. For the seam of an agent's shell.
    #[arg(long, hide = true, value_name = "NAME")]
    session: Option<String>,

    /// The agent's name for the call that it is. For the seam of an agent's shell.
    #[arg(long, hide = true, value_name = "KEY")]
    call: Option<CallKey>,

    /// The program and its arguments.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    words: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OnFailure {
    /// They stay, and can be undone.
    Keep,
    /// They are undone; also if the process that watches the command dies.
    Rollback,
    /// You are asked.
    Ask,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Level {
    /// The death of any process.
    Process,
    /// Loss of power: each first write of a file waits for the disk.
    Power,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum How {
    /// The best way that works here.
    Auto,
    /// Asked before each call.
    Live,
    /// Directories are compared before and after.
    Scan,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Over {
    /// The write fails.
    Refuse,
    /// You are asked.
    Ask,
    /// The write passes, and the record says that it cannot be undone.
    Mark,
}

impl RunArgs {
    /// Says what of it cannot be asked from inside of another command, whose own watch is not to be weakened.
    pub(crate) fn not_from_inside(&self) -> Option<&'static str> {
        let is_scan = self.capture == How::Scan;
        let is_mark = self.over_limit == Over::Mark;
        is_scan
            .then_some("`--capture scan` would let the command go unwatched")
            .or_else(|| {
                is_mark.then_some("`--over-limit mark` would let it lose what was not kept")
            })
    }
}

/// Runs a command.
pub(crate) fn cmd_run(session: &mut Session, args: RunArgs) -> Result<(), Failure> {
    // They are the command's.
    lift_limits();
    match split().map_err(|source| could_not("become two processes", source))? {
        Side::Front(front) => in_front(session, front, args.timeout),
        Side::Back(back) => behind(session, args, back),
    }
}

/// The process that the caller waits for: ends as the command ended.
fn in_front(session: &mut Session, front: Front, timeout: Option<Duration>) -> Result<(), Failure> {
    let watcher = front.watcher();
    let pinned = Pinned {
        variables: environment(session)?,
        command: env_vars::RUN.into(),
    };
    let waited = front
        .wait(&pinned, timeout, &mut |text| session.ui.note(text))
        .map_err(|source| could_not("wait for the command", source))?;
    match waited {
        Waited::Command(Ending::Signalled(signal)) => end_like(signal),
        Waited::Command(Ending::Exited(0)) => Ok(()),
        Waited::Command(Ending::Exited(code)) => {
            Err(Failure::Shown(u8::try_from(code).unwrap_or(1)))
        }
        // It has said why itself, before the command began.
        Waited::Back(Alone {
            ending: Ending::Exited(code),
            ended,
            ..
        }) if ended.is_empty() => Err(Failure::Shown(u8::try_from(code).unwrap_or(1))),
        Waited::Back(alone) => Err(no_longer_watched(session, watcher, &alone)?),
    }
}

/// Says what became of a command whose watcher died, and records what it had done.
fn no_longer_watched(
    session: &mut Session,
    watcher: u32,
    alone: &Alone,
) -> Result<Failure, Failure> {
    let how = match alone.ending {
        _ if alone.was_silent => "did not answer any more, and was ended".to_owned(),
        Ending::Signalled(signal) => format!("was ended by signal {signal}"),
        Ending::Exited(code) => format!("gave up with code {code}"),
    };
    let mut report = Report::refused("the command is no longer watched")
        .because(format!("the process that watched it {how}"));
    if !alone.left.is_empty() {
        let left = alone.left.join(", ");
        report = report.because(format!(
            "it could not be ended: {left}; it can open no file to write any more, but write what it has open"
        ));
    } else if alone.ended.is_empty() {
        report = report.because("nothing of it was running any more");
    } else {
        let ended = alone.ended.join(", ");
        report = report.because(format!("what was left of it was ended: {ended}"));
    }
    let engine = session.engine()?;
    Ok(match engine.recover_watched_by(watcher) {
        Ok(recovered) => {
            show::recover::on_the_way(session, &recovered.operations, &[]);
            report.into()
        }
        Err(error) => report
            .because(error)
            .next_call(
                "record what it did with {}, then keep it or take it back",
                [Call::of("recover")],
            )
            .into(),
    })
}

/// The process that watches.
fn behind(session: &mut Session, args: RunArgs, back: Back) -> Result<(), Failure> {
    let on_failure = args.on_failure;
    let engine = session.engine()?;
    let engine = for_prompt(engine, args.session.as_deref())?;
    let mut request = request(args, back);
    if session.asked.is_some() {
        // Whoever asks is watched itself, and so is what it has run.
        request.capture = Capture::Live;
    }
    request.environment = environment(session)?;
    request.named = session.database_variables();
    request.base = session
        .asked
        .as_ref()
        .map(|asked| asked.environment.clone());
    let ran = engine.run(request);
    session.tell_recovered(&engine);
    let Ran {
        mut report,
        left,
        back,
    } = match ran {
        Ok(ran) => ran,
        Err(EngineError::NotStarted { program, source }) => {
            let is_missing = source.kind() == std::io::ErrorKind::NotFound;
            let code = if is_missing {
                NOT_FOUND
            } else {
                NOT_EXECUTABLE
            };
            session.ui.report(
                &Report::from(EngineError::NotStarted { program, source }),
                &session.here,
            );
            return Err(Failure::Shown(u8::try_from(code).unwrap_or(1)));
        }
        Err(error) => return Err(error.into()),
    };
    session.clear_bar();
    session.sync_databases();
    if !session.ui.is_json() {
        show::run::finished(session, &report);
    }
    let denied = GateError::of_run(&report);
    let is_denied = denied.is_some();
    let mut stays = denied.map(|error| Report::from(EngineError::from(error)));
    let is_open = !is_denied && has_failed(&report);
    let answer = is_open.then(|| is_to_go(on_failure, back.as_ref()));
    match answer {
        Some(Answer::Yes) => stays = take_back(session, &engine, &mut report),
        Some(Answer::Stopped) => tell_kept(session, &report),
        Some(Answer::No) | None => {}
    }
    let ending = ending_of(&report, is_denied, answer == Some(Answer::Stopped));
    if session.ui.is_json() {
        session.ui.aside_json(&Reply::Ran(Box::new(report.into())));
    }
    if let Some(stays) = stays {
        session.ui.report(&stays, &session.here);
    }
    session.ui.flush();
    if let Some(back) = back {
        // If the front is gone, nobody waits.
        let _gone = back.report(ending);
    }
    match left {
        Some(left) => in_the_background(&engine, left),
        None => Ok(()),
    }
}

/// Gives an engine that works for the prompt which an agent answers at this moment, if somebody told of one.
fn for_prompt(engine: Engine, session: Option<&str>) -> Result<Engine, Failure> {
    let context = engine.context().clone();
    let Some(agent) = context.agent.clone() else {
        return Ok(engine);
    };
    let prompt = match session {
        None => return Ok(engine),
        Some("") => engine.last_prompt_of(&agent)?,
        Some(session) => engine.prompt_of(&agent, session, None)?,
    };
    Ok(engine.for_caller(Context { prompt, ..context }))
}

/// Watches on what the command left running. Nobody looks at what this process says any more.
fn in_the_background(engine: &Engine, watch: Watch) -> Result<(), Failure> {
    leave_terminal();
    engine.watch_on(watch)?;
    Ok(())
}

/// Lets go of the streams that the caller waits on.
fn leave_terminal() {
    if let Ok(nothing) = std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/null")
    {
        let _in = rustix::stdio::dup2_stdin(&nothing);
        let _out = rustix::stdio::dup2_stdout(&nothing);
        let _err = rustix::stdio::dup2_stderr(&nothing);
    }
}

fn request(args: RunArgs, back: Back) -> RunRequest {
    let verdict = backout_shell::classify_words(&args.words);
    let mut request = RunRequest::new(args.words);
    request.is_read_only = verdict.class == backout_shell::Class::ReadOnly;
    request.reads = args.reads;
    request.level = match args.durability {
        Level::Process => CaptureLevel::Process,
        Level::Power => CaptureLevel::Power,
    };
    request.copy_bytes_max = args.limit;
    request.over_limit = match args.over_limit {
        Over::Refuse | Over::Ask => OverLimit::Refuse,
        Over::Mark => OverLimit::Mark,
    };
    request.ask = (args.over_limit == Over::Ask).then(ask_about_size);
    request.timeout = args.timeout;
    // Nobody is there to be asked when the watcher dies: then what was done stays.
    request.on_failure = match args.on_failure {
        OnFailure::Keep | OnFailure::Ask => backout_model::OnFailure::Keep,
        OnFailure::Rollback => backout_model::OnFailure::Rollback,
    };
    request.capture = match args.capture {
        How::Auto => Capture::Auto,
        How::Live => Capture::Live,
        How::Scan => Capture::Scan,
    };
    request.roots = args.roots;
    request.shown = args.shown;
    request.left_out = args.left_out;
    request.call = args.call;
    request.back = Some(back);
    request
}

/// What `backout` inside of the command must know to act for the same agent and task on the same store.
fn environment(session: &Session) -> Result<Vec<(OsString, OsString)>, Failure> {
    let mut variables = Vec::new();
    let mut set = |name: &str, value: OsString| variables.push((OsString::from(name), value));
    if let Some(agent) = &session.agent {
        set(env_vars::AGENT, agent.as_str().into());
    }
    if let Some(task) = &session.task {
        set(env_vars::TASK, task.as_str().into());
    }
    if let Ok(within) = std::env::join_paths(&session.confined_to)
        && !within.is_empty()
    {
        set(env_vars::WITHIN, within);
    }
    let directory = state_dir(session.global.state_dir.as_deref())?;
    set(env_vars::STATE_DIR, absolute(&directory)?.into());
    Ok(variables)
}

fn ask_about_size() -> Ask {
    Box::new(|path, size| {
        let question = format!(
            "`{path}` is {size} bytes, too large to be kept first. Let it be written, not undoable?"
        );
        ask(&question, &[]) == Answer::Yes
    })
}

fn has_failed(report: &RunReport) -> bool {
    report.end.exit_code != Some(0)
}

/// Tells whether what a failed command did is to be taken back.
fn is_to_go(on_failure: OnFailure, back: Option<&Back>) -> Answer {
    match on_failure {
        OnFailure::Keep => Answer::No,
        OnFailure::Rollback => Answer::Yes,
        OnFailure::Ask => {
            // What came until now was meant for the command.
            if let Ok(wish) = EndWish::listen() {
                wish.forget();
            }
            let _before = back.map(Back::is_asked_to_end);
            let ends: Vec<BorrowedFd<'_>> = back.map(Back::as_fd).into_iter().collect();
            ask("The command failed. Undo what it did?", &ends)
        }
    }
}

/// Says that what a command did stays, since somebody wanted the end and not the question.
fn tell_kept(session: &mut Session, report: &RunReport) {
    let undo = show::typed(&format!("undo {}", report.id.short()));
    session.ui.note(&format!(
        "it was interrupted, and what the command did is kept; undo with {undo}"
    ));
}

/// Says how the front is to end.
fn ending_of(report: &RunReport, is_denied: bool, is_ended: bool) -> Ending {
    match (report.end.exit_code, report.end.signal) {
        _ if is_ended => Ending::Exited(STOPPED),
        (_, Some(signal)) => Ending::Signalled(signal),
        (_, None) if report.is_stopped => Ending::Exited(STOPPED),
        // Whoever asked for it must not go on as if it had been done.
        (Some(0), None) if is_denied => Ending::Exited(1),
        (code, None) => Ending::Exited(code.unwrap_or(1)),
    }
}

/// Takes back what a failed command did: all of it, or as much as nobody else has changed; says what stays.
fn take_back(session: &mut Session, engine: &Engine, report: &mut RunReport) -> Option<Report> {
    let what = UndoWhat::Operations(vec![OperationRef::Prefix(report.id.to_string())]);
    let options = UndoOptions {
        partial: true,
        trigger: Some(set_off_by(&report.end)),
        ..UndoOptions::default()
    };
    let undone = engine.undo(&what, &options);
    session.clear_bar();
    match undone {
        Ok(undone) => {
            show::run::taken_back(session, report, undone.act);
            // What was done within it may be all there was.
            if undone.steps.iter().any(|step| step.id == report.id) {
                report.status = Status::Undone;
            }
            report.undone = Some(undone);
            None
        }
        Err(EngineError::Plan(PlanError::ChangedNothing { .. })) => None,
        Err(error) => {
            if let EngineError::Partial(undone) = &error {
                report.undone = Some(*undone.clone());
            }
            let cause = how_it_failed(&report.end);
            Some(Report::from(error).because(format!(
                "it was to be taken back because the command failed: {cause}"
            )))
        }
    }
}

/// Says what sets it off that a command is taken back: it failed, or somebody stopped it.
fn set_off_by(end: &CommandEnd) -> Trigger {
    const HANGUP: i32 = 1;
    const INTERRUPT: i32 = 2;
    const TERMINATE: i32 = 15;
    let is_stopped = !end.timed_out
        && (matches!(end.signal, Some(HANGUP | INTERRUPT | TERMINATE))
            || end.exit_code == Some(128 + INTERRUPT));
    if is_stopped {
        return Trigger::new(TriggerKind::ManualAbort, Source::Person);
    }
    Trigger::new(TriggerKind::PlanFailure, Source::Command).because(how_it_failed(end))
}

fn how_it_failed(end: &CommandEnd) -> String {
    match end.exit_code {
        _ if end.timed_out => "its time was up".to_owned(),
        Some(code) => format!("it ended with code {code}"),
        None => format!("it was ended by signal {}", end.signal.unwrap_or_default()),
    }
}

fn could_not(action: &'static str, source: std::io::Error) -> Failure {
    EngineError::Io { action, source }.into()
}

/// Reads a length of time.
pub(super) fn parse_time(text: &str) -> Result<Duration, String> {
    let wrong = || "a time is a number with s, m or h, like 30s or 1h30m".to_owned();
    if let Ok(seconds) = text.parse::<u64>() {
        return Ok(Duration::from_secs(seconds));
    }
    let span: jiff::Span = text.parse().map_err(|_| wrong())?;
    let duration = span.to_duration(jiff::SpanRelativeTo::days_are_24_hours());
    let duration = duration.map_err(|_| wrong())?;
    Duration::try_from(duration).map_err(|_| wrong())
}
