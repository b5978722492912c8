//! A recipe for targets that are small values: what each was and becomes, by the one rule of before, after and now.
//!
//! - A driver whose states fit into a recipe needs no body of its own. It says what each target is now, and puts values.
//! - The values stand in the recipe, so in every export: large and secret ones belong into the store.
//!
//! Not here: putting the values, and looking at them. That is the driver's.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ports::{
    BadRecipe, DriverError, Examined, Guarantee, How, Prepared, PreparedUndo, Staged, State,
    ValueChange,
};
use crate::{DriverName, Key, OutcomeKind, Reach, Recipe, Target, TargetOutcome};

/// The newest version of the body.
const VERSION: u16 = 1;

/// What one target was and becomes; none if it is not there.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewValue {
    /// The target.
    pub key: Key,
    /// In words for people.
    pub before: Option<String>,
    /// What it becomes.
    pub after: Option<String>,
}

impl NewValue {
    /// Says what a target was and becomes.
    pub const fn new(key: Key, before: Option<String>, after: Option<String>) -> Self {
        Self { key, before, after }
    }

    fn target(&self) -> Target {
        Target::new(self.key.clone(), Reach::Node)
    }

    fn state(&self, now: Option<&String>) -> State {
        State::of(&now, &self.before.as_ref(), &self.after.as_ref())
    }
}

impl fmt::Debug for NewValue {
    // Values may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NewValue({})", self.key)
    }
}

/// The body of a recipe, and what is staged with it: the values of some targets, in the order in which they are put.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewValues(Vec<NewValue>);

impl Staged for NewValues {}

impl FromIterator<NewValue> for NewValues {
    /// Leaves out what does not change.
    fn from_iter<I: IntoIterator<Item = NewValue>>(values: I) -> Self {
        let changes = |it: &NewValue| it.before != it.after;
        Self(values.into_iter().filter(changes).collect())
    }
}

impl NewValues {
    /// Reads what [`NewValues::prepared`] wrote.
    pub fn read(recipe: &Recipe) -> Result<Self, BadRecipe> {
        recipe.read(VERSION)
    }

    /// Lists the values, in the order in which they are put.
    pub fn values(&self) -> &[NewValue] {
        &self.0
    }

    /// Lists the targets.
    pub fn targets(&self) -> Vec<Target> {
        self.0.iter().map(NewValue::target).collect()
    }

    /// Makes the write that puts them, by a driver.
    pub fn prepared(self, driver: DriverName) -> Result<Prepared, DriverError> {
        let recipe = Recipe::of(driver, VERSION, &self)?;
        Ok(Prepared::plain(recipe, self.targets(), self).boxed())
    }

    /// Tells where each target stands; `now` says what it is.
    pub fn examined(&self, now: impl Fn(&Key) -> Option<String>) -> Vec<Examined> {
        let examine = |(number, value): (usize, &NewValue)| {
            let state = value.state(now(&value.key).as_ref());
            Examined {
                goes: value.before.is_none(),
                ..Examined::new(number, value.target(), state)
            }
        };
        self.0.iter().enumerate().map(examine).collect()
    }

    /// Says what each target was, became and is.
    pub fn told(self, now: impl Fn(&Key) -> Option<String>) -> Vec<ValueChange> {
        let tell = |NewValue { key, before, after }| ValueChange {
            now: Ok(now(&key)),
            key,
            before,
            after,
        };
        self.0.into_iter().map(tell).collect()
    }

    /// Makes the write that takes them back, the last one first, as far as they are still what was put or force was asked
    /// for. What it replaces is its own `before`, so that an undo of it brings that back.
    pub fn taken_back(
        self,
        driver: DriverName,
        how: &How<'_>,
        guarantee: Guarantee,
        now: impl Fn(&Key) -> Option<String>,
    ) -> Result<PreparedUndo, DriverError> {
        let (mut back, mut outcomes) = (Vec::new(), Vec::new());
        for value in self.0.into_iter().filter(|it| how.means(&it.target())) {
            let now = now(&value.key);
            let kind = match (
                value.state(now.as_ref()).taken_back(how.on_conflict),
                guarantee,
            ) {
                (OutcomeKind::Restored, Guarantee::Compensating) => OutcomeKind::Compensated,
                (kind, Guarantee::Exact | Guarantee::Compensating) => kind,
            };
            let is_taken_back = kind.is_taken_back();
            outcomes.push(TargetOutcome::new(value.target(), kind));
            if is_taken_back {
                back.push(NewValue::new(value.key, now, value.before));
            }
        }
        if !how.goes_on(&mut outcomes) {
            back.clear();
        }
        let back: Self = back.into_iter().rev().collect();
        let prepared = back.prepared(driver)?;
        Ok(PreparedUndo { prepared, outcomes })
    }
}

#[cfg(test)]
#[path = "values_tests.rs"]
mod tests;
