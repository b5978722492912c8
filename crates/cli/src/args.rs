//! The command line as a whole: the global options and the list of commands.
//!
//! Doc comments here and in `commands/` are the help; the test `help` pins all of it.

use std::ffi::OsString;
use std::path::PathBuf;

use backout_model::{AgentId, CallKey, Strategy, TaskId};
use clap::builder::Styles;
use clap::builder::styling::AnsiColor;
use clap::{Args, FromArgMatches as _, Parser, ValueEnum, ValueHint};

use crate::commands::Subcommand;
use crate::commands::gc::parse_size;

pub(crate) const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default())
    .placeholder(AnsiColor::Cyan.on_default().dimmed());

const HEADING: &str = "Global options";

const AFTER_HELP: &str = "\
An operation (REF) is named by the beginning of its id, as `backout log` shows it. `@` is the newest, `@-1` the one before it; undos, redos and commands that changed nothing are not counted.

Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 the store is broken, 130 interrupted.";

/// Every write of an AI agent, reversible.
///
/// Backout records how to take a write back, durably, before the write happens. Afterwards anyone can see what was
/// done, preview an undo, undo one bad step and keep the independent work that came later.
#[derive(Debug, Parser)]
#[command(name = "backout", version, styles = STYLES, after_help = AFTER_HELP, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Subcommand,
}

/// What every command takes.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option")]
#[command(next_help_heading = HEADING)]
pub(crate) struct GlobalArgs {
    // The environment is not read by the parser: what it sets would show up in every usage line, and for a list it
    // matters whether `--agent` was typed.
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    #[arg(
        help = "Where the state is kept [env: BACKOUT_STATE_DIR] [default: ~/.local/state/backout]"
    )]
    pub(crate) state_dir: Option<PathBuf>,

    #[arg(long, global = true, value_name = "NAME")]
    #[arg(help = "The agent that asks [env: BACKOUT_AGENT]")]
    pub(crate) agent: Option<AgentId>,

    #[arg(long, global = true, value_name = "NAME")]
    #[arg(help = "The task that the work belongs to [env: BACKOUT_TASK]")]
    pub(crate) task: Option<TaskId>,

    /// An operation that this write builds on, beside those that Backout can see; may be repeated
    #[arg(long, global = true, value_name = "REF")]
    pub(crate) depends_on: Vec<String>,

    /// Write at most once: the same call with the same key gets the first answer again and writes nothing. If the first call did not come to pass, the key counts for the next one. Taken by the commands that write files
    #[arg(long, global = true, value_name = "KEY")]
    pub(crate) once: Option<CallKey>,

    /// How writes are taken back: snapshot keeps what is there whole, transaction logs what changes. By default that is decided by
    /// what it costs; what you ask for is done so or not at all
    #[arg(
        long,
        global = true,
        value_name = "STRATEGY",
        hide_possible_values = true
    )]
    pub(crate) strategy: Option<Asked>,

    #[arg(long, global = true, value_name = "SIZE", value_parser = parse_size)]
    #[arg(
        help = "How much the store may hold, like 500MB or 2GiB; a write that would keep more is refused, and what was in a removed tree counts afterwards [env: BACKOUT_CAP_BYTES]"
    )]
    pub(crate) cap: Option<u64>,

    /// Print one JSON object: the reply on stdout, or the error on stderr
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Show long lists in full
    #[arg(long, short, global = true)]
    pub(crate) verbose: bool,

    /// Print only what you asked for, and errors
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,

    /// Do not show long replies in a pager
    #[arg(long, global = true)]
    pub(crate) no_pager: bool,

    /// When to use colour: auto, always or never
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    #[arg(hide_possible_values = true)]
    pub(crate) color: Color,
}

impl GlobalArgs {
    /// What a hook takes: nothing is typed but perhaps where the state is.
    pub(crate) const fn of_hook(state_dir: Option<PathBuf>) -> Self {
        Self {
            state_dir,
            agent: None,
            task: None,
            depends_on: Vec::new(),
            once: None,
            strategy: None,
            cap: None,
            json: false,
            verbose: false,
            quiet: true,
            no_pager: true,
            color: Color::Never,
        }
    }
}

/// How writes are to be taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Asked {
    /// What is there is kept whole.
    Snapshot,
    /// What changes is logged.
    Transaction,
}

impl From<Asked> for Strategy {
    fn from(asked: Asked) -> Self {
        match asked {
            Asked::Snapshot => Self::Snapshot,
            Asked::Transaction => Self::Transaction,
        }
    }
}

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Reads a command line.
pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let matches = crate::command().try_get_matches_from(arguments)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut crate::command()))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn global_options_may_stand_before_and_after_the_command() {
        for arguments in [
            ["backout", "--agent", "a", "log"],
            ["backout", "log", "--agent", "a"],
        ] {
            let cli = parse(arguments.map(OsString::from)).unwrap();
            assert_eq!(cli.global.agent.unwrap().as_str(), "a");
        }
    }
}
