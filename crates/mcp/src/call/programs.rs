//! Tools that are a process of this program: somebody else's command runs, or a server is waited for.

use std::ffi::OsString;

use backout_engine::{Command, Report, TryCommand};

use super::look::selection;
use super::{Work, asked, connected};
use crate::Caller;
use crate::arguments::{Connection, Http, Run, Sql, Try, TryEnd, Verdict};
use crate::child::{Ending, Start};
use crate::reach::Last;

pub(super) fn run(arguments: Run, caller: &Caller) -> Result<Work, Report> {
    let mut words = words(&["run"]);
    if let Some(seconds) = arguments.timeout_seconds {
        words.extend(["--timeout".into(), format!("{seconds}s").into()]);
    }
    if arguments.undo_on_failure {
        words.extend(["--on-failure".into(), "rollback".into()]);
    }
    words.push(format!("--shown={}", one_line(&arguments.command)).into());
    words.extend(shell(arguments.command));
    Ok(Work::Process(Box::new(Start {
        words,
        directory: caller.directory(arguments.directory.as_deref())?,
        input: None,
        connection: Connection {
            task: arguments.task,
            once: None,
        },
        ending: Ending::Command,
        is_trial: false,
    })))
}

pub(super) fn trial(arguments: Try, caller: &Caller) -> Result<Work, Report> {
    let mut words = words(&["try"]);
    if arguments.no_network {
        words.push("--no-network".into());
    }
    words.extend(shell(arguments.command));
    Ok(Work::Process(Box::new(Start {
        words,
        directory: caller.directory(arguments.directory.as_deref())?,
        input: None,
        connection: Connection::default(),
        ending: Ending::Reply,
        is_trial: true,
    })))
}

pub(super) fn trial_end(arguments: TryEnd, caller: &Caller) -> Result<Work, Report> {
    if !arguments.only.is_empty() && arguments.verdict == Verdict::Discard {
        return Err(Report::usage("`only` goes with `apply`"));
    }
    let selection = selection(caller, &arguments.only);
    let connection = Connection {
        task: arguments.task,
        once: None,
    };
    Ok(asked(move |engine, caller| {
        let engine = connected(engine, caller, &connection)?;
        let trial = Some(arguments.trial);
        Ok(engine.execute(Command::Try(match arguments.verdict {
            Verdict::Apply => TryCommand::Apply { trial, selection },
            Verdict::Discard => TryCommand::Discard { trial },
        }))?)
    }))
}

pub(super) fn sql(arguments: Sql, caller: &Caller) -> Result<Work, Report> {
    let given = &arguments.database;
    if given.contains("://") {
        return Err(
            Report::refused("a database is not reached by its address here")
                .because("it could be any server, and an address may hold a password")
                .next("ask a person to enroll it with `backout db enroll`, and give its name"),
        );
    }
    let directory = caller.directory(None)?;
    let is_file = given.contains(['/', '.']) || directory.join(given).exists();
    let mut words = words(&["sql"]);
    if is_file {
        let mut word = OsString::from("--db=");
        word.push(caller.path(given, Last::Followed)?);
        words.push(word);
    } else {
        words.push(format!("--db={given}").into());
    }
    if arguments.create {
        words.push("--create".into());
    }
    words.push("--file=-".into());
    Ok(Work::Process(Box::new(Start {
        words,
        directory,
        input: Some(arguments.statements.into_bytes()),
        connection: arguments.connection,
        ending: Ending::Reply,
        is_trial: false,
    })))
}

pub(super) fn http(arguments: Http, caller: &Caller) -> Result<Work, Report> {
    let mut words = words(&["http"]);
    for header in arguments.headers {
        words.push(format!("--header={header}").into());
    }
    if arguments.json {
        words.push("--json-body".into());
    }
    if arguments.irreversible {
        words.push("--irreversible".into());
    }
    let input = arguments.body.map(String::into_bytes);
    if input.is_some() {
        words.push("--data=@-".into());
    }
    words.extend(["--".into(), arguments.method.into(), arguments.url.into()]);
    Ok(Work::Process(Box::new(Start {
        words,
        directory: caller.directory(None)?,
        input,
        connection: arguments.connection,
        ending: Ending::Reply,
        is_trial: false,
    })))
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

fn shell(command: String) -> [OsString; 4] {
    ["--".into(), "sh".into(), "-c".into(), command.into()]
}

/// Says a command in one line, for the log.
fn one_line(command: &str) -> String {
    let lines: Vec<&str> = command.lines().map(str::trim).collect();
    lines.join("; ")
}
