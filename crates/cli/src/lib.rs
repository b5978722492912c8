//! The command line: builds a command of the engine, has it carried out, and shows the reply.
//!
//! - One file per command in `commands/`; its `…Args` is the help, its `cmd_…` the work.
//! - All output goes through `ui::Ui`: replies to stdout, talk and errors to stderr, `--json` everywhere.
//! - What a reply looks like to people is in `show/`: one renderer per reply, all pure.
//!
//! Not here: anything that writes a target or decides what to undo (`engine`).

mod accounts;
mod advice;
mod agents;
mod args;
mod batch;
mod browse;
mod commands;
mod databases;
mod drivers;
mod env_vars;
mod failure;
mod graph;
mod help;
mod input;
mod inside;
mod lineage;
mod named_targets;
mod paths;
mod programs;
mod question;
mod session;
mod show;
mod state_dir;
mod ui;
mod when;
mod words;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::CommandFactory as _;

use crate::args::Cli;
use crate::failure::Failure;
use crate::session::Session;

/// Runs one command line, the program's name first, and gives the exit code: 0 done, 1 refused or failed,
/// 2 asked wrongly, 3 the store is broken.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    // Inside of `backout run` nothing may write our state; outside somebody does it for us.
    let words = arguments.get(1..).unwrap_or_default();
    if let Some(asked) = agents::asked(words) {
        return agents::answer(asked);
    }
    let is_json = arguments.iter().any(|argument| argument == "--json");
    let outside = match inside::ask(words) {
        inside::Way::Here(asked) => asked,
        inside::Way::Outside(code) => return ExitCode::from(code),
        inside::Way::Refused(report) => return ui::show_report(&report, is_json),
    };
    let cli = match args::parse(arguments) {
        Ok(parsed) => parsed,
        Err(error) => return ui::show_usage(&error, is_json),
    };
    let mut session = Session::new(cli.global, outside);
    let result = session.read_environment().map_err(Failure::from);
    let result = result.and_then(|()| inside::permit(&session, &cli.command));
    let result = result.and_then(|()| commands::run(&mut session, cli.command));
    ExitCode::from(session.end(result))
}

/// Describes the whole command line, for help, completions and manual pages.
pub fn command() -> clap::Command {
    help::grouped(Cli::command())
}
