//! The command that was meant, in what an agent wraps around it.
//!
//! | agent | wraps |
//! | --- | --- |
//! | Claude Code | `source SNAPSHOT … && eval 'COMMAND' … && pwd -P >\| /tmp/claude-…-cwd` |
//! | Codex | two hundred lines, then `exec '/bin/bash' -c 'COMMAND'` |
//! | Gemini, Qwen | a subshell, with a file for the numbers of background processes |
//!
//! What is not understood is shown as it is: nothing depends on it but what people read.

use std::path::{Path, PathBuf};

use crate::Agent;

/// A command as its user means it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unwrapped {
    /// Without what the agent put around it.
    pub command: String,
    /// The agent's own temporary files, which the wrapping writes.
    pub left_out: Vec<PathBuf>,
    /// Whether the wrapping of a tool was found around it.
    pub is_wrapped: bool,
}

/// Finds the command that was meant.
pub fn unwrapped(agent: Agent, text: &str) -> Unwrapped {
    let found = match agent {
        Agent::ClaudeCode => claude(text),
        Agent::Codex => codex(text),
        Agent::Gemini | Agent::Qwen => gemini(text),
        Agent::OpenCode | Agent::Copilot | Agent::Cline | Agent::Cursor => None,
    };
    found.unwrap_or_else(|| Unwrapped {
        command: text.trim().to_owned(),
        left_out: Vec::new(),
        is_wrapped: false,
    })
}

/// Tells whether a line for a shell is one of our own hooks: `/somewhere/backout hook ...`.
pub fn is_own_line(text: &str, program: &Path) -> bool {
    let (first, rest) = word(text.trim_start());
    Path::new(&first) == program && word(rest.trim_start()).0 == "hook"
}

fn claude(text: &str) -> Option<Unwrapped> {
    let at = text.find("&& eval ")?;
    let (command, rest) = word(&text[at + "&& eval ".len()..]);
    let cwd = rest.rsplit_once(">| ").map(|(_, path)| word(path).0);
    Some(Unwrapped {
        command,
        left_out: cwd.map(PathBuf::from).into_iter().collect(),
        is_wrapped: true,
    })
}

fn codex(text: &str) -> Option<Unwrapped> {
    let at = text.rfind("\nexec '")?;
    let (_, rest) = word(&text[at + "\nexec ".len()..]);
    let (flag, rest) = word(rest.trim_start());
    let (command, _) = word(rest.trim_start());
    flag.starts_with('-').then_some(Unwrapped {
        command,
        left_out: Vec::new(),
        is_wrapped: true,
    })
}

fn gemini(text: &str) -> Option<Unwrapped> {
    let (head, rest) = text.split_once("\n(\n")?;
    let (_, file) = head.rsplit_once("_bgpids_file=")?;
    let (_, rest) = rest.split_once("EXIT\n")?;
    let (command, _) = rest.rsplit_once("\n)\n__code=$?")?;
    Some(Unwrapped {
        command: command.to_owned(),
        left_out: vec![PathBuf::from(word(file).0)],
        is_wrapped: true,
    })
}

/// Reads one word as a shell does, and gives what follows it.
fn word(text: &str) -> (String, &str) {
    let mut read = String::new();
    let mut letters = text.char_indices();
    let mut quote = None;
    while let Some((at, letter)) = letters.next() {
        match (quote, letter) {
            (None, ' ' | '\t' | '\n') => return (read, &text[at..]),
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), letter) if letter == open => quote = None,
            (None, '\\') => read.extend(letters.next().map(|(_, escaped)| escaped)),
            (Some('"'), '\\') => match letters.next() {
                Some((_, escaped @ ('"' | '\\' | '$' | '`'))) => read.push(escaped),
                Some((_, other)) => read.extend(['\\', other]),
                None => read.push('\\'),
            },
            (_, letter) => read.push(letter),
        }
    }
    (read, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_claude_code_runs_is_found_in_what_it_wraps_around_it() {
        let text = r"source /h/.claude/shell-snapshots/s.sh 2>/dev/null || true && { \builtin shopt -u extglob; } >/dev/null 2>&1 || true && eval 'echo '\''a b'\'' > x && cd sub' < /dev/null && pwd -P >| /tmp/claude-5673-cwd";
        let found = unwrapped(Agent::ClaudeCode, text);
        assert_eq!(found.command, "echo 'a b' > x && cd sub");
        assert_eq!(found.left_out, [PathBuf::from("/tmp/claude-5673-cwd")]);
        assert!(found.is_wrapped);
    }

    #[test]
    fn what_codex_and_gemini_run_is_found_too() {
        let text = "if x; then\n  y\nfi\n\nexec '/bin/bash' -c 'mkdir -p sub; echo hi > sub/b.txt'";
        let found = unwrapped(Agent::Codex, text);
        assert_eq!(found.command, "mkdir -p sub; echo hi > sub/b.txt");
        let text = "shopt -u nullglob; _bgpids_file=/tmp/gemini-shell-d/bgpids.tmp\n(\n  trap 'jobs -p > \"$_bgpids_file\"' EXIT\necho hi > b.txt\n)\n__code=$?\nexit $__code";
        let found = unwrapped(Agent::Gemini, text);
        assert_eq!(found.command, "echo hi > b.txt");
        let file = PathBuf::from("/tmp/gemini-shell-d/bgpids.tmp");
        assert_eq!(found.left_out, [file]);
    }

    #[test]
    fn what_is_not_wrapped_is_shown_as_it_is() {
        for agent in Agent::ALL {
            let found = unwrapped(agent, "echo one\n");
            assert_eq!(found.command, "echo one", "{agent}");
            assert!(!found.is_wrapped && found.left_out.is_empty());
        }
    }

    #[test]
    fn a_line_of_our_own_is_known() {
        let program = Path::new("/opt/a b/backout");
        assert!(is_own_line("'/opt/a b/backout' hook gemini", program));
        assert!(!is_own_line("'/opt/a b/backout' undo", program));
        assert!(!is_own_line("rm x # /opt/a b/backout hook", program));
    }
}
