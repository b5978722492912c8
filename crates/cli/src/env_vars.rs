//! Every environment variable that the command reads, in one place.
//!
//! Beside these, `NO_COLOR`, `CLICOLOR`, `CLICOLOR_FORCE` and `TERM` decide about colour as everywhere, and
//! `TMPDIR` says where standard input is put when it is too large for memory.

/// The state directory; `--state-dir` wins over it.
pub(crate) const STATE_DIR: &str = backout_engine::STATE_VARIABLE;

/// The agent that asks; `--agent` wins over it.
pub(crate) const AGENT: &str = "BACKOUT_AGENT";

/// The task that writes belong to; `--task` wins over it.
pub(crate) const TASK: &str = "BACKOUT_TASK";

/// The only directories that may be written in, with colons between them; what serves an agent sets it for the programs that it starts.
pub(crate) const WITHIN: &str = "BACKOUT_WITHIN";

/// The running command that a program is part of; `backout run` sets it.
pub(crate) const RUN: &str = backout_engine::RUN_VARIABLE;

/// What an effect is called, for the programs of `act`, which are told it.
pub(crate) const KEY: &str = "BACKOUT_KEY";

/// What an effect gave, for the programs of `act`, which are told it.
pub(crate) const ANSWER: &str = "BACKOUT_ANSWER";

/// The conversation of an agent that a shell belongs to; its plugin sets it.
pub(crate) const SESSION: &str = "BACKOUT_SESSION";

/// The agent's name for the call that a shell is; its plugin sets it.
pub(crate) const CALL: &str = "BACKOUT_CALL";

/// What Claude Code runs each shell command by.
pub(crate) const CLAUDE_PREFIX: &str = "CLAUDE_CODE_SHELL_PREFIX";

/// What bash reads before a command that it is given as an argument.
pub(crate) const BASH_ENV: &str = "BASH_ENV";

/// The user's shell.
pub(crate) const SHELL: &str = "SHELL";

/// The process of Claude Code, in its hooks.
pub(crate) const CLAUDE_PID: &str = "CLAUDE_PID";

/// How much the store may hold; `--cap` wins over it.
pub(crate) const CAP_BYTES: &str = "BACKOUT_CAP_BYTES";

/// Where programs keep their state; the default state directory is `backout` in it.
pub(crate) const XDG_STATE_HOME: &str = "XDG_STATE_HOME";

/// Where programs find their settings; the rules for gates are `backout/backout.toml` in it.
pub(crate) const XDG_CONFIG_HOME: &str = "XDG_CONFIG_HOME";

/// The home directory; without `XDG_STATE_HOME`, state is in `.local/state` in it.
pub(crate) const HOME: &str = "HOME";

/// Where temporary files go.
pub(crate) const TMPDIR: &str = "TMPDIR";

/// The pager for long replies; empty for none.
pub(crate) const PAGER: &str = "BACKOUT_PAGER";
