//! The command line as a whole: the global options and the list of commands.
//!
//! Doc comments here and in `commands/` are the help; the test `help` pins all of it.

use std::ffi::OsString;
use std::path::PathBuf;

use backout_model::{AgentId, TaskId};
use clap::builder::Styles;
use clap::builder::styling::AnsiColor;
use clap::parser::ValueSource;
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, ValueEnum, ValueHint};

use crate::commands::Subcommand;
use crate::commands::gc::parse_size;
use crate::env_vars;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default())
    .placeholder(AnsiColor::Cyan.on_default().dimmed());

const HEADING: &str = "Global options";

const AFTER_HELP: &str = "\
An operation (REF) is named by the beginning of its id, as `backout log` shows it; `@` is the newest, `@-1` the one
before it.

Exit codes: 0 done, 1 refused or failed, 2 asked wrongly, 3 the store is broken.";

/// Every write of an AI agent, reversible.
///
/// Backout records how to take a write back, durably, before the write happens. Afterwards anyone can see what was
/// done, preview an undo, undo one bad step and keep the independent work that came later.
#[derive(Debug, Parser)]
#[command(name = "backout", version, styles = STYLES, after_help = AFTER_HELP, max_term_width = 100)]
#[command(disable_help_subcommand = true, infer_subcommands = false)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Subcommand,
}

/// What every command takes.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct GlobalArgs {
    /// Where the state is kept; by default `$XDG_STATE_HOME/backout`, or `~/.local/state/backout`.
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    #[arg(env = env_vars::STATE_DIR, hide_env_values = true)]
    pub(crate) state_dir: Option<PathBuf>,

    /// The agent that asks.
    #[arg(long, global = true, value_name = "NAME", env = env_vars::AGENT, hide_env_values = true)]
    pub(crate) agent: Option<AgentId>,

    /// The task that the work belongs to.
    #[arg(long, global = true, value_name = "NAME", env = env_vars::TASK, hide_env_values = true)]
    pub(crate) task: Option<TaskId>,

    /// What a write builds on, beside what can be seen; may be repeated.
    #[arg(long, global = true, value_name = "REF")]
    pub(crate) depends_on: Vec<String>,

    /// How much the store may hold, like 500MB or 2GiB.
    #[arg(long, global = true, value_name = "SIZE", value_parser = parse_size)]
    #[arg(env = env_vars::CAP_BYTES, hide_env_values = true)]
    pub(crate) cap: Option<u64>,

    /// Print one JSON object: the reply on stdout, or the error on stderr.
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Say nothing but what was asked for and errors.
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,

    /// When to use colour.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Color,
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

/// Which global options were typed, and not taken from the environment: there they say who asks, but for a
/// list they say what to list.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Typed {
    /// `--agent`.
    pub(crate) agent: bool,
    /// `--task`.
    pub(crate) task: bool,
}

/// Reads a command line.
pub(crate) fn parse(
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<(Cli, Typed), clap::Error> {
    let matches = Cli::command().try_get_matches_from(arguments)?;
    let is_typed = |name: &str| {
        let source = |matches: &clap::ArgMatches| matches.value_source(name);
        let below = matches.subcommand().and_then(|(_, below)| source(below));
        [source(&matches), below].contains(&Some(ValueSource::CommandLine))
    };
    let typed = Typed {
        agent: is_typed("agent"),
        task: is_typed("task"),
    };
    let cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut Cli::command()))?;
    Ok((cli, typed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> (Cli, Typed) {
        let all = ["backout"].iter().chain(arguments).map(OsString::from);
        parse(all).unwrap()
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn global_options_may_stand_before_and_after_the_command() {
        for arguments in [["--agent", "a", "log"], ["log", "--agent", "a"]] {
            let (cli, typed) = parsed(&arguments);
            assert_eq!(cli.global.agent.unwrap().as_str(), "a");
            assert!(typed.agent && !typed.task);
        }
    }
}
