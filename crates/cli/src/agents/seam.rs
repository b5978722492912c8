//! The seam: an agent's shell command becomes `backout run -- SHELL -c COMMAND`, with the words that the agent put around it.
//!
//! It is called as `backout seam AGENT SHELL COMMAND [NAME ARGUMENTS...]` by a script of ours. An empty shell means the user's.
//! What is no command of a tool (a hook of somebody else's, the start of an MCP server) is run as it is.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::str::FromStr as _;

use backout_agents::{Agent, Unwrapped, call_key, is_own_line, unwrapped};

use crate::env_vars;

/// The exit code of a shell that cannot run something.
const NOT_RUN: u8 = 126;

/// Runs a command, and ends as it ended.
pub(super) fn main(state_dir: Option<PathBuf>, words: Vec<OsString>) -> ExitCode {
    let mut words = words.into_iter();
    let named = words.next().unwrap_or_default();
    let agent = match Agent::from_str(&named.to_string_lossy()) {
        Ok(agent) => agent,
        Err(error) => return not_run(&error.to_string()),
    };
    let shell = shell_of(words.next().unwrap_or_default());
    let Some(command) = words.next() else {
        return not_run("no command was given");
    };
    let rest: Vec<OsString> = words.collect();
    let text = command.to_string_lossy();
    let meant = unwrapped(agent, &text);
    if !is_of_a_tool(agent, &text, &meant) {
        let error = Command::new(&shell)
            .arg("-c")
            .arg(&command)
            .args(&rest)
            .exec();
        return not_run(&format!("{}: {error}", shell.display()));
    }
    let mut line: Vec<OsString> = vec!["backout".into()];
    if let Some(directory) = state_dir {
        line.extend(["--state-dir".into(), directory.into_os_string()]);
    }
    line.extend(["--quiet", "--agent", agent.as_str(), "run", "--shown"].map(OsString::from));
    line.push(meant.command.into());
    for file in meant.left_out {
        line.extend(["--left-out".into(), file.into_os_string()]);
    }
    let session = session_of(agent);
    line.extend([
        "--session".into(),
        session.clone().unwrap_or_default().into(),
    ]);
    let call = call_of(agent);
    let key = session.zip(call);
    let key = key.and_then(|(session, call)| call_key(agent, &session, None, &call));
    if let Some(key) = key {
        line.extend(["--call".into(), key.as_str().into()]);
    }
    line.extend(["--".into(), shell.into_os_string(), "-c".into(), command]);
    line.extend(rest);
    crate::main(line)
}

fn not_run(why: &str) -> ExitCode {
    use std::io::Write as _;
    let _said = writeln!(std::io::stderr(), "backout: the command was not run: {why}");
    ExitCode::from(NOT_RUN)
}

/// Tells whether a tool of the agent runs this, and not the agent itself.
fn is_of_a_tool(agent: Agent, text: &str, meant: &Unwrapped) -> bool {
    let own = std::env::current_exe().unwrap_or_default();
    if is_own_line(text, &own) {
        return false;
    }
    // Claude Code runs hooks and MCP servers the same way; only what its tools run has the snapshot of the shell before it.
    agent != Agent::ClaudeCode || meant.is_wrapped
}

/// Gives the shell: the one that was given, or the user's if it is one that agents use.
fn shell_of(given: OsString) -> PathBuf {
    if !given.is_empty() {
        return PathBuf::from(given);
    }
    let own = std::env::var_os(env_vars::SHELL).map(PathBuf::from);
    let is_usual = |shell: &PathBuf| {
        let name = shell.file_name().and_then(OsStr::to_str);
        matches!(name, Some("bash" | "zsh")) && shell.is_file()
    };
    let usual = own.filter(is_usual);
    usual.unwrap_or_else(|| Path::new("/bin/bash").to_path_buf())
}

/// The agent's name for the conversation, if its shells know it.
fn session_of(agent: Agent) -> Option<String> {
    let name = match agent {
        Agent::ClaudeCode => "CLAUDE_CODE_SESSION_ID",
        Agent::Codex => "CODEX_SESSION_ID",
        Agent::Gemini => "GEMINI_SESSION_ID",
        Agent::Qwen => "QWEN_CODE_SESSION_ID",
        Agent::Copilot => "COPILOT_AGENT_SESSION_ID",
        Agent::OpenCode | Agent::Cline | Agent::Cursor => env_vars::SESSION,
    };
    variable(name)
}

/// The agent's name for the call, if its shells know it.
fn call_of(agent: Agent) -> Option<String> {
    let name = match agent {
        Agent::Codex => "CODEX_TOOL_CALL_ID",
        Agent::ClaudeCode
        | Agent::Gemini
        | Agent::Qwen
        | Agent::Copilot
        | Agent::OpenCode
        | Agent::Cline
        | Agent::Cursor => env_vars::CALL,
    };
    variable(name)
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
