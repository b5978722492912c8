//! `backout sandbox exec`: one command, or those of a file.

use std::ffi::OsString;
use std::io::{self, BufRead as _, IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use backout_engine::{
    Command, Engine, EngineError, OnFailure, Reply, Report, SandboxBatch, SandboxCommand,
    SandboxRan, SandboxTask, SandboxVerdict,
};
use clap::{Args, ValueEnum};
use serde::Deserialize;

use crate::commands::run::parse_time;
use crate::commands::try_::not_started_or;
use crate::failure::Failure;
use crate::input::read_file;
use crate::session::Session;

/// So many commands a file may have.
const ORDERS_MAX: usize = 10_000;

/// So much of each command's words a reply of many has.
const WORDS_BYTES_MAX: usize = 4 * 1024;

/// Run a command in the sandbox; the exit code is the command's
///
/// A shell line (`-c`) carries its directory and exported variables on to the next command. Processes that
/// outlive the command are ended. The names of what it changed are told, and whether that was reverted.
///
/// With `--batch` the commands of a file run one after the other: shell lines, one each, or JSON lines like
/// `{"line": "make", "timeout": "5m", "on_failure": "keep"}` or `{"command": ["make", "test"]}`.
#[derive(Debug, Args)]
pub(super) struct ExecArgs {
    /// The sandbox; by default the only one.
    #[arg(value_name = "NAME")]
    name: Option<String>,

    /// A line for a shell.
    #[arg(
        short = 'c',
        long = "line",
        value_name = "LINE",
        conflicts_with = "command"
    )]
    line: Option<OsString>,

    /// End it after this time, like 90s or 5m.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    timeout: Option<Duration>,

    /// What becomes of what it did if it fails: rollback, keep or ask.
    #[arg(
        long,
        value_name = "WHAT",
        default_value = "rollback",
        hide_possible_values = true
    )]
    on_failure: OnFailureArg,

    /// Run the commands of this file, or of stdin if it is `-`.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["line", "command"])]
    batch: Option<PathBuf>,

    /// With `--batch`: when a command fails, stop or continue.
    #[arg(
        long,
        value_name = "WHAT",
        default_value = "stop",
        requires = "batch",
        hide_possible_values = true
    )]
    on_error: OnErrorArg,

    /// The command and its arguments.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// What a batch does when a command fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OnErrorArg {
    /// What comes after it does not run.
    Stop,
    /// The next one runs, from the state before the failing one.
    Continue,
}

/// What becomes of what a failing command did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum OnFailureArg {
    /// It is dropped.
    Rollback,
    /// It stays, as a checkpoint.
    Keep,
    /// You are asked; where nobody can be asked it stays.
    Ask,
}

/// Runs a command, or those of a file.
pub(super) fn exec(session: &mut Session, args: ExecArgs) -> Result<(), Failure> {
    if let Some(file) = &args.batch {
        let orders = orders(file)?;
        return batch(session, &args, orders);
    }
    let is_line = args.line.is_some();
    let command: Vec<OsString> = args.line.into_iter().chain(args.command).collect();
    if command.is_empty() {
        return Err(Report::usage("there is nothing to run")
            .next("put two dashes before the command, or a shell line after `-c`")
            .into());
    }
    let task = SandboxTask {
        command,
        is_line,
        time_max: args.timeout,
        on_failure: args.on_failure.as_policy(),
        keeps_output: session.ui.is_json(),
    };
    let engine = session.engine()?;
    let name = args.name;
    let command = Command::Sandbox(SandboxCommand::Exec { name, task });
    let ran = match session.execute(&engine, command) {
        Ok(Reply::SandboxRan(ran)) => ran,
        Ok(_) => return Err(Report::refused("the engine gave no trial").into()),
        Err(Failure::Engine(error @ EngineError::Trial(_))) => {
            return Err(not_started_or(session, error));
        }
        Err(failure) => return Err(failure),
    };
    session.show(&engine, &Reply::SandboxRan(ran.clone()))?;
    if args.on_failure == OnFailureArg::Ask && ran.verdict != SandboxVerdict::Succeeded {
        ask(session, &engine, &ran)?;
    }
    match (ran.verdict, ran.exit_code) {
        (SandboxVerdict::Succeeded, _) => Ok(()),
        (_, 0) => Err(Failure::Shown(1)),
        (_, code) => Err(Failure::Shown(code)),
    }
}

/// Asks whether what a failing command did shall stay. No answer keeps it.
fn ask(session: &mut Session, engine: &Engine, ran: &SandboxRan) -> Result<(), Failure> {
    let is_watched = io::stdin().is_terminal() && io::stderr().is_terminal();
    if !is_watched || session.ui.is_json() {
        return Ok(());
    }
    session.ui.tell("Take back what it did? [y/N] ");
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    if read.is_err() || !matches!(answer.trim(), "y" | "yes") {
        return Ok(());
    }
    let command = Command::Sandbox(SandboxCommand::Rollback {
        name: Some(ran.sandbox.clone()),
        checkpoint: ran.before.to_string(),
    });
    let reply = session.execute(engine, command)?;
    session.show(engine, &reply)
}

impl OnFailureArg {
    const fn as_policy(self) -> OnFailure {
        match self {
            Self::Rollback => OnFailure::Rollback,
            Self::Keep | Self::Ask => OnFailure::Keep,
        }
    }
}

/// One command of a file.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Order {
    #[serde(default)]
    line: Option<String>,
    #[serde(default)]
    command: Vec<String>,
    #[serde(default)]
    timeout: Option<String>,
    #[serde(default)]
    on_failure: Option<OnFailureArg>,
}

/// Reads the commands of a file.
fn orders(path: &Path) -> Result<Vec<Order>, Report> {
    let bytes = if path == Path::new("-") {
        let mut bytes = Vec::new();
        let read = io::stdin().lock().read_to_end(&mut bytes);
        read.map_err(|error| Report::refused("the commands cannot be read").because(error))?;
        bytes
    } else {
        read_file(path)?
    };
    let text = String::from_utf8(bytes)
        .map_err(|error| Report::refused("the commands cannot be read").because(error))?;
    let orders = read_orders(&text)?;
    if orders.len() > ORDERS_MAX {
        return Err(Report::usage("there are too many commands")
            .because(format!("a file may have {ORDERS_MAX}")));
    }
    Ok(orders)
}

/// Shell lines, or JSON lines if the first begins with a brace and can be read as one.
fn read_orders(text: &str) -> Result<Vec<Order>, Report> {
    let lines = text
        .lines()
        .enumerate()
        .map(|(number, line)| (number + 1, line.trim()));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let lines: Vec<(usize, &str)> = lines.collect();
    let is_json = lines
        .first()
        .is_some_and(|(_, line)| line.starts_with("{\""));
    let order = |(number, line): &(usize, &str)| {
        if !is_json {
            let line = Some((*line).to_owned());
            return Ok(Order {
                line,
                command: Vec::new(),
                timeout: None,
                on_failure: None,
            });
        }
        let order: Order = serde_json::from_str(line).map_err(|error| {
            Report::usage(format!("line {number} is no command")).because(error)
        })?;
        if order.line.is_some() != order.command.is_empty() {
            return Err(Report::usage(format!("line {number} is no command"))
                .because("it needs either `line` or `command`"));
        }
        Ok(order)
    };
    lines.iter().map(order).collect()
}

/// Runs one after the other.
fn batch(session: &mut Session, args: &ExecArgs, orders: Vec<Order>) -> Result<(), Failure> {
    let engine = session.engine()?;
    let total = orders.len() as u64;
    let mut done = SandboxBatch::default();
    let mut tasks = Vec::new();
    for order in orders {
        let timeout = order.timeout.as_deref().map(parse_time).transpose();
        let timeout =
            timeout.map_err(|why| Report::usage("a timeout cannot be read").because(why))?;
        tasks.push(SandboxTask {
            is_line: order.line.is_some(),
            command: order
                .line
                .into_iter()
                .chain(order.command)
                .map(OsString::from)
                .collect(),
            time_max: timeout.or(args.timeout),
            on_failure: order.on_failure.unwrap_or(args.on_failure).as_policy(),
            keeps_output: session.ui.is_json(),
        });
    }
    for task in tasks {
        let name = args.name.clone();
        let command = Command::Sandbox(SandboxCommand::Exec { name, task });
        let mut ran = match session.execute(&engine, command) {
            Ok(Reply::SandboxRan(ran)) => ran,
            Ok(_) => return Err(Report::refused("the engine gave no command").into()),
            Err(failure) if done.ran.is_empty() => return Err(failure),
            Err(Failure::Engine(error)) => {
                done.error = Some(Report::from(error).what);
                break;
            }
            Err(failure) => return Err(failure),
        };
        if !session.ui.is_json() {
            session.show(&engine, &Reply::SandboxRan(ran.clone()))?;
        }
        shorten(&mut ran);
        let is_good = ran.verdict == SandboxVerdict::Succeeded;
        done.succeeded += u64::from(is_good);
        done.ran.push(*ran);
        if !is_good && args.on_error == OnErrorArg::Stop {
            break;
        }
    }
    done.not_run = total.saturating_sub(done.ran.len() as u64);
    let is_whole = done.succeeded == total;
    session.show(&engine, &Reply::SandboxBatch(Box::new(done)))?;
    if is_whole {
        Ok(())
    } else {
        Err(Failure::Shown(1))
    }
}

/// Keeps the end of what a command said.
fn shorten(ran: &mut SandboxRan) {
    let Some(output) = &mut ran.output else {
        return;
    };
    let mut over = output.len().saturating_sub(WORDS_BYTES_MAX);
    while over < output.len() && !output.is_char_boundary(over) {
        over += 1;
    }
    if over > 0 {
        output.drain(..over);
        *ran.output_left_out.get_or_insert(0) += over as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_shell_lines_or_json_lines() {
        let lines = read_orders("# first\nmake\n\n  { cd src && ls; }\n").unwrap();
        let lines: Vec<_> = lines.into_iter().filter_map(|order| order.line).collect();
        assert_eq!(lines, ["make", "{ cd src && ls; }"]);
        let orders = read_orders(
            "{\"line\": \"make\", \"timeout\": \"5m\"}\n{\"command\": [\"ls\", \"-l\"], \"on_failure\": \"keep\"}",
        );
        let orders = orders.unwrap();
        assert_eq!(orders[0].timeout.as_deref(), Some("5m"));
        assert_eq!(orders[1].command, ["ls", "-l"]);
        assert_eq!(orders[1].on_failure, Some(OnFailureArg::Keep));
        for wrong in [
            "{\"line\": 1}",
            "{\"line\": \"a\", \"command\": [\"b\"]}",
            "{\"lin\": \"a\"}",
        ] {
            assert!(read_orders(wrong).is_err(), "{wrong}");
        }
    }
}
