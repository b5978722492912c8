//! A prompt: what a person asked an agent. The operations that answered it are taken back together.

use serde::{Deserialize, Serialize};

use crate::{AgentId, Lsn, PromptId, Timestamp};

/// What a person asked an agent in one of its sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    /// Its name. The same prompt of the same session has the same one, however often it is told.
    pub id: PromptId,
    /// Its place in the journal. Its record has its own, so an event leaves it out.
    #[serde(default, skip_serializing_if = "is_default")]
    pub lsn: Lsn,
    /// When it was asked; as with the place.
    #[serde(default, skip_serializing_if = "is_default")]
    pub at: Timestamp,
    /// The agent that was asked.
    pub agent: AgentId,
    /// The agent's own name for the conversation.
    pub session: String,
    /// What was asked, cut off if it is long; empty if nobody told.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The prompt that this one goes on with: the agent itself, and not a person, sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<PromptId>,
}

impl Prompt {
    /// Names the prompt that operations belong to: this one, or the one that it goes on with.
    pub fn unit(&self) -> &PromptId {
        self.continues.as_ref().unwrap_or(&self.id)
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
