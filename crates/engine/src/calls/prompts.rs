//! What people asked agents: each prompt is one record, and operations name the one that they answer.
//!
//! - The same prompt told twice is one: its name follows from the agent, the session and the agent's own name for it.
//! - What the agent sends itself in the shape of a prompt (a notice that a background command ended) goes on with the prompt
//!   before it: whatever answers it is taken back with that one.

use backout_model::ports::{Durability, Entry};
use backout_model::{AgentId, Digest, Event, Lsn, Prompt, PromptId, Timestamp};

use crate::task::name;
use crate::{Engine, EngineError};

/// How much of a prompt is kept.
const TEXT_BYTES_MAX: usize = 4096;

/// How much of its digest names a prompt.
const ID_DIGITS: usize = 12;

/// How notices begin that agents send themselves in the shape of a prompt.
const NOTICES: [&str; 4] = [
    "<task-notification>",
    "<system_notification>",
    "<system-reminder>",
    "<background-task",
];

/// A prompt as an agent tells it.
#[derive(Debug, Clone)]
pub struct NewPrompt<'p> {
    /// Whom somebody asked.
    pub agent: &'p AgentId,
    /// Its name for the conversation.
    pub session: &'p str,
    /// Its name for the prompt, if it has one.
    pub own: Option<&'p str>,
    /// What was asked.
    pub text: &'p str,
}

/// Gives the text of a prompt if a person wrote it: none for a notice, or for nothing at all.
pub fn notice_free(text: &str) -> Option<&str> {
    let text = text.trim();
    let is_notice = NOTICES.iter().any(|notice| text.starts_with(notice));
    (!text.is_empty() && !is_notice).then_some(text)
}

impl Engine {
    /// Records what a person asked an agent, and gives the prompt that the work from now on belongs to. A notice, or nothing,
    /// goes on with the one before it.
    pub fn note_prompt(&self, new: &NewPrompt<'_>) -> Result<Option<PromptId>, EngineError> {
        let before = self.store.newest_prompt(new.agent, new.session)?;
        let asked = notice_free(new.text);
        if asked.is_none() && new.own.is_none() {
            return Ok(before.map(|before| before.unit().clone()));
        }
        let random = self.next_id().to_string();
        let id = prompt_id(new.agent, new.session, new.own.unwrap_or(&random));
        if let Some(known) = self.store.prompt(&id)? {
            return Ok(Some(known.unit().clone()));
        }
        let before = before.map(|before| before.unit().clone());
        let prompt = Prompt {
            id,
            lsn: Lsn(0),
            at: Timestamp(0),
            agent: new.agent.clone(),
            session: new.session.to_owned(),
            text: cut_off(asked.unwrap_or_default()),
            continues: before.filter(|_| asked.is_none()),
        };
        let unit = prompt.unit().clone();
        let event = Event::Prompt(Box::new(prompt));
        self.store
            .append(&Entry::of(vec![event]), Durability::Process)?;
        Ok(Some(unit))
    }

    /// Finds the prompt that work of a session belongs to. One that nobody told of before is noted, as going on with the one
    /// before it.
    pub fn prompt_of(
        &self,
        agent: &AgentId,
        session: &str,
        own: Option<&str>,
    ) -> Result<Option<PromptId>, EngineError> {
        self.note_prompt(&NewPrompt {
            agent,
            session,
            own,
            text: "",
        })
    }

    /// Finds what an agent was last asked, in whatever session: for shells that do not say whose they are.
    pub fn last_prompt_of(&self, agent: &AgentId) -> Result<Option<PromptId>, EngineError> {
        let mut prompts = self.store.prompts()?.into_iter();
        let last = prompts.find(|prompt| prompt.agent == *agent);
        Ok(last.map(|prompt| prompt.unit().clone()))
    }
}

fn prompt_id(agent: &AgentId, session: &str, own: &str) -> PromptId {
    let digest = Digest::of(format!("{agent}\0{session}\0{own}").as_bytes());
    name(&digest.to_string()[..ID_DIGITS])
}

fn cut_off(text: &str) -> String {
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_is_no_prompt() {
        assert_eq!(notice_free(" fix it\n"), Some("fix it"));
        assert_eq!(notice_free(""), None);
        let notice = "<task-notification>\n<task-id>1</task-id>";
        assert_eq!(notice_free(notice), None);
        assert_eq!(notice_free("<system_notification>done"), None);
    }

    #[test]
    fn a_long_prompt_is_cut_between_letters() {
        let text = "ä".repeat(TEXT_BYTES_MAX);
        assert_eq!(cut_off(&text).len(), TEXT_BYTES_MAX);
        assert_eq!(cut_off(&format!("x{text}")).len(), TEXT_BYTES_MAX - 1);
    }
}
