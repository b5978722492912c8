//! `backout try`

use std::ffi::OsString;
use std::io::{self, BufRead as _, IsTerminal as _};
use std::path::PathBuf;

use backout_engine::{
    Call, Command, Engine, EngineError, Glob, Reply, Report, Selection, TrialError, TrialStanding,
    TrialTask, TrialView, TryCommand,
};
use clap::{Args, ValueEnum};

use crate::commands::diff::StyleArgs;
use crate::failure::Failure;
use crate::paths::absolute;
use crate::session::Session;
use crate::show;
use crate::show::diff::Style;

/// What shells answer when a command is not there, or is none.
const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;

/// Try a command in a layer, look, then apply or discard
///
/// The command sees the machine as it is. What it writes lands in a layer; the real files stay
/// untouched until the changes are applied, as one operation that `backout undo` takes back.
/// Without `--apply` or `--discard` you are asked on a terminal; elsewhere the trial is kept for later:
///
///   backout try -- make install
///   backout try --diff 3f2a           what it would change, line by line
///   backout try --apply 3f2a --only 'src/**'
///   backout try --discard 3f2a
///
/// A trial lives until the machine restarts. It is not a sandbox: what other programs do on behalf
/// of the command (daemons, other machines) happens for real. The exit code is the command's.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option")]
pub(crate) struct TryArgs {
    /// The trial that is meant, by the beginning of its id; by default the only one.
    #[arg(value_name = "ID", conflicts_with_all = ["command", "list"])]
    trial: Option<String>,

    /// Apply the changes; after a command, if it succeeds.
    #[arg(long, group = "verdict")]
    apply: bool,

    /// Discard the changes.
    #[arg(long, group = "verdict")]
    discard: bool,

    /// Show what a trial changed.
    #[arg(long, group = "verdict", conflicts_with = "command")]
    show: bool,

    /// List the trials that wait for a decision.
    #[arg(long, group = "verdict", conflicts_with = "command")]
    list: bool,

    /// Show the changes line by line.
    #[arg(long)]
    diff: bool,

    #[command(flatten)]
    style: StyleArgs,

    /// Only what matches, like `src/**` or `/etc/*.conf`; may be repeated.
    #[arg(long, value_name = "GLOB")]
    only: Vec<OsString>,

    /// Not what matches; may be repeated.
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<OsString>,

    /// Give the command no network but its own loopback.
    #[arg(long, requires = "command")]
    no_network: bool,

    /// What becomes of processes that outlive the command: end or wait.
    #[arg(
        long,
        value_name = "WHAT",
        default_value = "end",
        hide_possible_values = true
    )]
    survivors: SurvivorsArg,

    /// The command and its arguments.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// What becomes of processes that outlive the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SurvivorsArg {
    /// They are ended.
    End,
    /// They are waited for.
    Wait,
}

impl TryArgs {
    /// Tells whether it only looks at trials.
    pub(crate) const fn only_looks(&self) -> bool {
        self.command.is_empty() && !self.apply && !self.discard
    }
}

/// Tries a command, or decides about one that was tried.
pub(crate) fn cmd_try(session: &mut Session, args: TryArgs) -> Result<(), Failure> {
    let here = absolute(&PathBuf::from("."))?;
    let globs = |patterns: &[OsString]| {
        let glob = |pattern: &OsString| Glob::new(pattern, &here);
        patterns.iter().map(glob).collect()
    };
    let selection = Selection {
        only: globs(&args.only),
        exclude: globs(&args.exclude),
    };
    if args.command.is_empty() {
        return decide(session, args, selection);
    }
    let engine = session.engine()?;
    let task = TrialTask {
        command: args.command.clone(),
        directory: here,
        has_no_network: args.no_network,
        waits: args.survivors == SurvivorsArg::Wait,
        keeps_stdout: !session.ui.is_json(),
    };
    let mut view = match run(session, &engine, task) {
        Ok(view) => view,
        Err(Failure::Engine(error @ EngineError::Trial(TrialError::NotStarted { .. }))) => {
            return Err(not_started(session, error));
        }
        Err(failure) => return Err(failure),
    };
    let code = view.ended.map_or(0, |ended| ended.code);
    if !session.ui.is_json() {
        show::trial::summary(session, &view, args.diff);
    }
    if args.diff && view.standing == TrialStanding::Pending {
        show_diff(session, &engine, &view, &selection)?;
    }
    decide_now(session, &engine, &mut view, &args, selection)?;
    if session.ui.is_json() {
        session.ui.print_json(&Reply::Trial(view));
    }
    match code {
        0 => Ok(()),
        code => Err(Failure::Shown(code)),
    }
}

fn run(session: &mut Session, engine: &Engine, task: TrialTask) -> Result<TrialView, Failure> {
    match session.execute(engine, Command::Try(TryCommand::Run(task)))? {
        Reply::Trial(view) => Ok(view),
        _ => Err(Report::refused("the engine gave no trial").into()),
    }
}

/// Says why nothing was run: a program that cannot be started has an exit code of its own.
pub(super) fn not_started_or(session: &mut Session, error: EngineError) -> Failure {
    match error {
        EngineError::Trial(TrialError::NotStarted { .. }) => not_started(session, error),
        other => other.into(),
    }
}

fn not_started(session: &mut Session, error: EngineError) -> Failure {
    let code = match &error {
        EngineError::Trial(TrialError::NotStarted { source, .. })
            if source.kind() == io::ErrorKind::NotFound =>
        {
            NOT_FOUND
        }
        _ => NOT_EXECUTABLE,
    };
    session.ui.report(&Report::from(error), &session.here);
    Failure::Shown(code)
}

/// Does what was asked with a trial that has run before.
fn decide(session: &mut Session, args: TryArgs, selection: Selection) -> Result<(), Failure> {
    session.heed_signals();
    let trial = args.trial;
    let command = if args.list {
        TryCommand::List
    } else if args.apply {
        TryCommand::Apply { trial, selection }
    } else if args.discard {
        TryCommand::Discard { trial }
    } else if args.diff || args.style.is_given() {
        return diff(session, trial, selection, args.style);
    } else if args.show {
        TryCommand::Show { trial, selection }
    } else {
        return Err(Report::usage("there is nothing to try")
            .because("no command was given, and no verdict about a trial")
            .next_call(
                "put two dashes before the command: {}",
                [Call::of("try").blank("-- COMMAND")],
            )
            .next_call(
                "see the trials that wait with {}",
                [Call::of("try").option("list")],
            )
            .into());
    };
    session.run(Command::Try(command))
}

/// Decides about a trial that has just run: as asked, or by asking, or not now.
fn decide_now(
    session: &mut Session,
    engine: &Engine,
    view: &mut TrialView,
    args: &TryArgs,
    selection: Selection,
) -> Result<(), Failure> {
    if view.standing != TrialStanding::Pending {
        return Ok(());
    }
    let is_good = view.ended.is_none_or(|ended| ended.code == 0);
    if args.discard {
        return discard(session, engine, view);
    }
    if args.apply && is_good {
        return apply(session, engine, view, selection);
    }
    if args.apply {
        session
            .ui
            .note("nothing was applied, since the command failed");
    }
    let is_watched = io::stdin().is_terminal() && io::stderr().is_terminal();
    if is_watched && !args.apply && !session.ui.is_json() && !session.ui.is_quiet() {
        return ask(session, engine, view, selection);
    }
    show::trial::how_to_go_on(session, view);
    Ok(())
}

fn apply(
    session: &mut Session,
    engine: &Engine,
    view: &mut TrialView,
    selection: Selection,
) -> Result<(), Failure> {
    // The command is over: from here on a signal is for us.
    session.heed_signals();
    let trial = Some(view.id.to_string());
    let command = TryCommand::Apply { trial, selection };
    match session.execute(engine, Command::Try(command)) {
        Ok(Reply::Finished(finished)) => {
            if !session.ui.is_json() {
                show::trial::applied(session, &finished);
            }
            if finished.left.is_none() {
                view.standing = TrialStanding::Applied;
            }
            view.applied = Some(finished);
            Ok(())
        }
        Ok(_) => Ok(()),
        Err(failure) => {
            show::trial::how_to_go_on(session, view);
            Err(failure)
        }
    }
}

fn discard(session: &mut Session, engine: &Engine, view: &mut TrialView) -> Result<(), Failure> {
    let trial = Some(view.id.to_string());
    session.execute(engine, Command::Try(TryCommand::Discard { trial }))?;
    view.standing = TrialStanding::Discarded;
    session.ui.tell("discarded; nothing was changed\n");
    Ok(())
}

fn show_diff(
    session: &mut Session,
    engine: &Engine,
    view: &TrialView,
    selection: &Selection,
) -> Result<(), Failure> {
    if session.ui.is_json() {
        return Ok(());
    }
    let command = TryCommand::Diff {
        trial: Some(view.id.to_string()),
        selection: selection.clone(),
        is_brief: false,
    };
    let reply = session.execute(engine, Command::Try(command))?;
    session.show(engine, &reply)
}

/// Shows what a trial that has run before would change.
fn diff(
    session: &mut Session,
    trial: Option<String>,
    selection: Selection,
    style: StyleArgs,
) -> Result<(), Failure> {
    let style = style.style();
    let command = TryCommand::Diff {
        trial,
        selection,
        is_brief: style == Style::Names,
    };
    let engine = session.engine()?;
    match session.execute(&engine, Command::Try(command))? {
        Reply::Diff(diff) if !session.ui.is_json() => {
            session.ui.page();
            show::diff::files(session, &diff.files, style);
            Ok(())
        }
        reply => session.show(&engine, &reply),
    }
}

/// Asks what shall become of a trial, until there is an answer. No answer keeps it.
fn ask(
    session: &mut Session,
    engine: &Engine,
    view: &mut TrialView,
    mut selection: Selection,
) -> Result<(), Failure> {
    loop {
        session
            .ui
            .tell("Apply these changes? [y]es, [n]o, [d]iff, [s]elect, [q]uit, [?] ");
        let answer = read_line()?;
        match answer.as_deref().map(str::trim) {
            Some("y" | "yes") => return apply(session, engine, view, selection),
            Some("n" | "no") if is_sure(session, view)? => return discard(session, engine, view),
            Some("d" | "diff") => show_diff(session, engine, view, &selection)?,
            Some("s" | "select") => selection.only = select(session, engine, view, &selection)?,
            Some("q" | "quit") | None => {
                show::trial::how_to_go_on(session, view);
                return Ok(());
            }
            Some("n" | "no") => {}
            Some(_) => session.ui.tell(ANSWERS),
        }
    }
}

/// What can be answered.
const ANSWERS: &str = "\
y - yes, apply them
n - no, throw them away
d - show them line by line
s - select a part by globs
q - quit, and keep them for later
";

/// Asks once more before work is thrown away.
fn is_sure(session: &mut Session, view: &TrialView) -> Result<bool, Failure> {
    let number = show::trial::counts(&view.changes);
    session.ui.tell(&format!(
        "Throw them away ({number})? Nothing brings them back. [y/N] "
    ));
    let answer = read_line()?;
    Ok(matches!(
        answer.as_deref().map(str::trim),
        Some("y" | "yes")
    ))
}

/// Asks for globs, and shows what they select.
fn select(
    session: &mut Session,
    engine: &Engine,
    view: &TrialView,
    selection: &Selection,
) -> Result<Vec<Glob>, Failure> {
    session
        .ui
        .tell("only what matches (globs, separated by blanks): ");
    let patterns = read_line()?.unwrap_or_default();
    let here = absolute(&PathBuf::from("."))?;
    let globs = patterns.split_whitespace();
    let only: Vec<Glob> = globs.map(|glob| Glob::new(glob, &here)).collect();
    let command = TryCommand::Show {
        trial: Some(view.id.to_string()),
        selection: Selection {
            only: only.clone(),
            ..selection.clone()
        },
    };
    if let Reply::Trial(part) = session.execute(engine, Command::Try(command))? {
        show::trial::summary(session, &part, true);
    }
    Ok(only)
}

/// Reads an answer; none if there will be none.
fn read_line() -> Result<Option<String>, Report> {
    let mut line = String::new();
    match io::stdin().lock().read_line(&mut line) {
        Ok(0) => Ok(None),
        Ok(_) => Ok(Some(line)),
        Err(error) => Err(Report::refused("the answer could not be read").because(error)),
    }
}
