//! Prompts: what people asked agents, and which was the last of a session.

use backout_model::{AgentId, Prompt, PromptId};
use rusqlite::{OptionalExtension as _, Params};

use super::rows::from_json;
use crate::{StorageError, Store};

impl Store {
    /// Lists prompts, newest first.
    pub fn prompts(&self) -> Result<Vec<Prompt>, StorageError> {
        self.read(|transaction| {
            let named = |error| self.named(error);
            let mut statement = transaction
                .prepare_cached("SELECT body FROM prompt ORDER BY lsn DESC")
                .map_err(named)?;
            let rows = statement
                .query_map([], |row| row.get::<_, String>(0))
                .map_err(named)?;
            rows.map(|row| from_json("a prompt", &row.map_err(named)?))
                .collect()
        })
    }

    /// Finds a prompt.
    pub fn prompt(&self, id: &PromptId) -> Result<Option<Prompt>, StorageError> {
        self.one_prompt("SELECT body FROM prompt WHERE id = ?1", [id.as_str()])
    }

    /// Finds what an agent was last asked in a session.
    pub fn newest_prompt(
        &self,
        agent: &AgentId,
        session: &str,
    ) -> Result<Option<Prompt>, StorageError> {
        self.one_prompt(
            "SELECT body FROM prompt WHERE agent = ?1 AND session = ?2 ORDER BY lsn DESC LIMIT 1",
            [agent.as_str(), session],
        )
    }

    fn one_prompt(&self, sql: &str, values: impl Params) -> Result<Option<Prompt>, StorageError> {
        self.read(|transaction| {
            let found = transaction
                .prepare_cached(sql)
                .and_then(|mut statement| {
                    statement
                        .query_row(values, |row| row.get::<_, String>(0))
                        .optional()
                })
                .map_err(|error| self.named(error))?;
            found.map(|body| from_json("a prompt", &body)).transpose()
        })
    }
}
