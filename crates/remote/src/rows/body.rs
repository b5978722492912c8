//! The recipe: which transaction of which database it was, and which rows that changed. The rows themselves are in the log of
//! that database, which was written in the same transaction.

use backout_model::ports::DriverError;
use backout_model::{DriverName, OperationId, Recipe, Target};
use serde::{Deserialize, Serialize};

use super::schema::SchemaChange;
use super::{Place, TableChange};

/// The newest version of a recipe's body: with changes of the schema.
const VERSION: u16 = 2;

/// The version of a body without them, which older programs can read, too.
const OF_ROWS: u16 = 1;

/// The body of a recipe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Body {
    /// The database.
    pub place: Place,
    /// The operation, which the marker names.
    pub operation: OperationId,
    /// The transaction whose changes it is about.
    pub xact: String,
    /// Whether another client committed it, so that this operation only takes it up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_adopted: bool,
    /// Those of which rows changed.
    pub tables: Vec<Changed>,
    /// What came into the schema or went, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schema: Vec<SchemaChange>,
}

/// A table that was changed, by the number that it keeps whatever its name is later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// The number.
    pub relation: u32,
    /// What changed in it.
    #[serde(flatten)]
    pub change: TableChange,
}

impl Body {
    pub(super) fn recipe(&self, driver: DriverName) -> Result<Recipe, DriverError> {
        let version = if self.schema.is_empty() {
            OF_ROWS
        } else {
            VERSION
        };
        Ok(Recipe::of(driver, version, self)?)
    }

    pub(super) fn of(recipe: &Recipe) -> Result<Self, DriverError> {
        Ok(recipe.read(VERSION)?)
    }

    pub(super) fn targets(&self) -> Result<Vec<Target>, DriverError> {
        let space = self.place.space();
        let each = self.tables.iter().map(|table| table.change.targets(&space));
        let each: Vec<Vec<Target>> = each.collect::<Result<_, _>>()?;
        let mut all = each.concat();
        for change in &self.schema {
            let target = change.target(&space)?;
            if !all.contains(&target) {
                all.push(target);
            }
        }
        Ok(all)
    }
}
