//! The persisted way back of an effect: the handler's name is the driver's, the rest is JSON.

use backout_model::ports::{DriverError, Prepared, Staged};
use backout_model::{DriverName, OperationId, Recipe, Strategy, Target};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The newest version of a recipe's body.
pub(super) const VERSION: u16 = 1;

/// The body of a recipe, and all there is to stage.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct HandledRecipe {
    /// The operation whose effect is meant.
    pub(super) id: OperationId,
    pub(super) target: Target,
    pub(super) arguments: Value,
    /// Whether it answers the effect; otherwise it makes it.
    pub(super) is_answer: bool,
    /// What the effect gave, if it is known.
    pub(super) answer: Option<Value>,
    /// Whether there is nothing to do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_idle: bool,
}

impl Staged for HandledRecipe {}

impl HandledRecipe {
    /// Names the effect to its handler.
    pub(super) fn key(&self) -> String {
        self.id.to_string()
    }

    /// Makes it ready to be carried out.
    pub(super) fn prepared(self, driver: DriverName) -> Result<Prepared, DriverError> {
        let recipe = Recipe::of(driver, VERSION, &self)?;
        let mut prepared = Prepared::plain(recipe, vec![self.target.clone()], self);
        prepared.strategy = Strategy::Compensation;
        Ok(prepared.boxed())
    }
}
