//! The agents that are known, and what they are called.

use std::fmt;
use std::str::FromStr;

/// A coding agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Agent {
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// Qwen Code.
    Qwen,
    /// `OpenCode`.
    OpenCode,
    /// Copilot CLI.
    Copilot,
    /// Cline.
    Cline,
    /// Cursor.
    Cursor,
}

/// Says that no agent has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is no agent that is known here: {}", Agent::names())]
pub struct UnknownAgent {
    /// As it was written.
    pub name: String,
}

impl Agent {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::ClaudeCode,
        Self::Codex,
        Self::Gemini,
        Self::Qwen,
        Self::OpenCode,
        Self::Copilot,
        Self::Cline,
        Self::Cursor,
    ];

    /// Names it as commands and the journal do.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Qwen => "qwen",
            Self::OpenCode => "opencode",
            Self::Copilot => "copilot",
            Self::Cline => "cline",
            Self::Cursor => "cursor",
        }
    }

    /// Names it as its makers do.
    pub const fn title(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Qwen => "Qwen Code",
            Self::OpenCode => "OpenCode",
            Self::Copilot => "Copilot CLI",
            Self::Cline => "Cline",
            Self::Cursor => "Cursor",
        }
    }

    /// Lists the names.
    pub fn names() -> String {
        Self::ALL.map(Self::as_str).join(", ")
    }
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Agent {
    type Err = UnknownAgent;

    fn from_str(text: &str) -> Result<Self, UnknownAgent> {
        let mut all = Self::ALL.into_iter();
        let found = all.find(|agent| agent.as_str() == text);
        found.ok_or_else(|| UnknownAgent {
            name: text.to_owned(),
        })
    }
}
