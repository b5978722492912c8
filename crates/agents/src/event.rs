//! What an agent tells us, in our words.

use std::path::{Path, PathBuf};

use backout_model::{CallKey, Digest, Verb};

use crate::Agent;

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// Who tells it: by what the event looks like, not by whose settings it came from.
    pub agent: Agent,
    /// The event's own name, for the answer.
    pub name: String,
    /// The agent's name for the conversation.
    pub session: String,
    /// The sub-agent, if it is one's.
    pub agent_id: Option<String>,
    /// The agent's name for the prompt, if it gives one.
    pub prompt: Option<String>,
    /// Where the agent works.
    pub directory: PathBuf,
    /// What happened, with what is only known of such an event.
    pub what: What,
}

/// What is told.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// A person asked for something, or the agent sent itself a notice.
    Prompt(String),
    /// A tool is about to be used.
    Before(Use),
    /// A tool was used.
    After(Use),
    /// All calls of a turn of one caller are over.
    TurnOver,
    /// All that was asked is done.
    Stopped,
    /// The conversation ends.
    Ended,
    /// Somebody wants to know whether the hook works.
    Check,
    /// Anything else.
    Other,
}

/// The use of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Use {
    /// The agent's name for the call, if it gives one.
    pub call: Option<String>,
    /// The tool, as the agent calls it.
    pub tool: String,
    /// The digest of what it was given.
    pub input: Digest,
    /// As far as its name and its input tell.
    pub does: Does,
}

/// What a tool does, as far as its name and its input tell.
#[derive(Debug, Clone, PartialEq)]
pub enum Does {
    /// It writes files.
    Writes {
        /// What it does to them.
        verb: Verb,
        /// Which, as they were given.
        paths: Vec<PathBuf>,
    },
    /// It runs commands in a shell.
    Shell {
        /// In the order in which they run.
        commands: Vec<String>,
    },
    /// It writes files, and its input does not tell which.
    Unclear,
    /// It is none that writes, as far as we know.
    Nothing,
}

impl Told {
    /// Gives the name by which the same call is known again, if the agent names calls.
    pub fn key(&self, call: &str) -> Option<CallKey> {
        call_key(self.agent, &self.session, self.agent_id.as_deref(), call)
    }

    /// Gives a path from the root.
    pub fn absolute(&self, path: &Path) -> PathBuf {
        self.directory.join(path)
    }
}

/// Names a call by its agent, session, sub-agent and the agent's own name for it.
pub fn call_key(
    agent: Agent,
    session: &str,
    agent_id: Option<&str>,
    call: &str,
) -> Option<CallKey> {
    const DIGITS: usize = 32;
    let text = format!("{session}\0{}\0{call}", agent_id.unwrap_or_default());
    let digest = Digest::of(text.as_bytes()).to_string();
    let digest = digest.get(..DIGITS)?;
    format!("{agent}/{digest}").parse().ok()
}
