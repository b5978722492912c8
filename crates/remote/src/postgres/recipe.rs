//! The recipe: which transaction of which database it was, and which rows that changed. The rows themselves are in the log of
//! that database, which was written in the same transaction.

use backout_model::ports::DriverError;
use backout_model::{OperationId, Recipe, Target};
use serde::{Deserialize, Serialize};

use super::POSTGRES;
use crate::rows::{Place, TableChange};

/// The newest version of a recipe's body.
pub(super) const VERSION: u16 = 1;

/// The body of a recipe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Body {
    /// The database.
    pub(super) place: Place,
    /// The operation, which the marker names.
    pub(super) operation: OperationId,
    /// The transaction whose changes it is about.
    pub(super) xact: String,
    /// Whether another client committed it, so that this operation only takes it up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_adopted: bool,
    /// What changed.
    pub(super) tables: Vec<Changed>,
}

/// A table that was changed, by the number that it keeps whatever its name is later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Changed {
    /// The number.
    pub(super) relation: u32,
    /// What changed in it.
    #[serde(flatten)]
    pub(super) change: TableChange,
}

impl Body {
    pub(super) fn recipe(&self) -> Result<Recipe, DriverError> {
        Ok(Recipe::of(POSTGRES, VERSION, self)?)
    }

    pub(super) fn of(recipe: &Recipe) -> Result<Self, DriverError> {
        Ok(recipe.read(VERSION)?)
    }

    pub(super) fn targets(&self) -> Result<Vec<Target>, DriverError> {
        let space = super::space(&self.place);
        let each = self.tables.iter().map(|table| table.change.targets(&space));
        let each: Vec<Vec<Target>> = each.collect::<Result<_, _>>()?;
        Ok(each.concat())
    }
}
