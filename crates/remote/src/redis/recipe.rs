//! The way back: what each key was. What it became is in the completion, and in the mark on the server.

use backout_model::ports::DriverError;
use backout_model::{Digest, Effect, Recipe, Target};
use serde::{Deserialize, Serialize};

use super::driver::REDIS;
use super::error::RedisFault;
use super::server::Server;
use super::state::State;
use super::words::{Naming, bytes_of};

/// The newest version of a recipe's body.
pub(super) const VERSION: u16 = 1;

/// The body of a recipe.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Keys {
    pub(super) server: Server,
    /// The key that tells whether it happened.
    pub(super) mark: String,
    /// How its targets are named.
    #[serde(default)]
    pub(super) naming: Naming,
    pub(super) changes: Vec<Change>,
}

/// A key and what it was.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Change {
    /// The key, as the name of a target.
    pub(super) key: String,
    /// How it stood before the transaction.
    pub(super) before: State,
    /// Its `DUMP`, in the contents; none if it was not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) dump: Option<Digest>,
}

/// What only the effect could tell.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct After {
    /// What each key became, in the order of the recipe.
    pub(super) after: Vec<State>,
}

impl Change {
    pub(super) fn bytes(&self) -> Result<Vec<u8>, RedisFault> {
        bytes_of(&self.key).ok_or(RedisFault::Strange {
            expected: "the name of a key",
        })
    }
}

impl Keys {
    pub(super) fn read(recipe: &Recipe) -> Result<Self, DriverError> {
        Ok(recipe.read(VERSION)?)
    }

    pub(super) fn recipe(&self) -> Result<Recipe, DriverError> {
        let mut recipe = Recipe::of(REDIS, VERSION, self)?;
        recipe.contents = self.changes.iter().filter_map(|it| it.dump).collect();
        recipe.contents.sort_unstable();
        recipe.contents.dedup();
        Ok(recipe)
    }

    /// Gives the keys in bytes.
    pub(super) fn keys(&self) -> Result<Vec<Vec<u8>>, RedisFault> {
        self.changes.iter().map(Change::bytes).collect()
    }

    pub(super) fn targets(&self) -> Result<Vec<Target>, DriverError> {
        let keys = self.keys()?;
        let target = |key: &Vec<u8>| self.server.target(key, self.naming);
        keys.iter().map(target).collect()
    }
}

/// Gives what the effect told, if it lived to do so.
pub(super) fn told_by(effect: &Effect, keys: &Keys) -> Option<Vec<State>> {
    let told: After = serde_json::from_value(effect.completion.as_ref()?.0.clone()).ok()?;
    (told.after.len() == keys.changes.len()).then_some(told.after)
}
