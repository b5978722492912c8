//! What keys and rows of a step will be when its turn comes: newer steps of the plan are taken back first, and bring back what
//! they found. Somebody else may have written between the two.

use std::collections::HashMap;

use backout_model::ports::ValueChange;
use backout_model::{Key, Reach, Target};
use serde_json::Value;

use super::after_newer::{InTheWay, Past};
use super::between::{CHANGED, MADE, REMOVED};
use super::preview::touches;
use super::work::Work;
use crate::{Engine, EngineError, PlannedStep};

impl Engine {
    /// Finds the values that will not be what an operation left when its turn comes.
    pub(super) fn between_values(
        &self,
        work: &Work<'_>,
        left: Vec<ValueChange>,
        (newer, steps): (&[Work<'_>], &[PlannedStep]),
        is_partial: bool,
    ) -> Result<HashMap<Key, InTheWay>, EngineError> {
        let mut between = HashMap::new();
        if !self.driver_of(&work.effect)?.tells_all_values() {
            return Ok(between);
        }
        let meant: Vec<&Key> = work.step.targets.iter().map(Target::key).collect();
        let left = left.into_iter().filter(|it| meant.contains(&&it.key));
        let mut open: HashMap<Key, ValueChange> = left.map(|it| (it.key.clone(), it)).collect();
        // The nearest step is the last to write before this one's turn.
        for newer in newer.iter().rev() {
            let driver = self.driver_of(&newer.effect)?;
            let told = if driver.tells_all_values() {
                driver.values(&newer.effect)?
            } else {
                None
            };
            for it in told.unwrap_or_default() {
                let mut targets = newer.step.targets.iter();
                if !targets.any(|target| *target.key() == it.key) {
                    continue;
                }
                let Some(left) = open.remove(&it.key) else {
                    continue;
                };
                // Where only a part is done, what is stuck stays as it is now.
                let found = if is_partial && is_stuck(steps, newer, &it.key) {
                    it.now.ok().flatten()
                } else {
                    it.before
                };
                if let Some(what) = unlike(&left, found.as_deref()) {
                    let why = format!("{what} before {}", newer.operation.id.short());
                    between.insert(it.key, InTheWay::new(why, Past::Force));
                }
            }
            // Of the rest of what this step touches it is not told what it found there.
            open.retain(|_, left| !touches_key(newer, &left.key));
        }
        Ok(between)
    }
}

/// Tells whether something stands in the way of a newer step at a key.
fn is_stuck(steps: &[PlannedStep], newer: &Work<'_>, key: &Key) -> bool {
    let mut step = steps.iter().filter(|step| step.with == newer.step.with);
    step.any(|step| {
        let mut targets = step.targets.iter();
        targets.any(|it| it.target.key() == key && it.state.hindrance().is_some())
    })
}

fn touches_key(newer: &Work<'_>, key: &Key) -> bool {
    let target = Target::new(key.clone(), Reach::Node);
    touches(&newer.step, &target)
}

/// Says what somebody did to a value that was left so, and will be found so. Of a row only the columns count that the operation
/// changed.
fn unlike(left: &ValueChange, found: Option<&str>) -> Option<&'static str> {
    match (left.after.as_deref(), found) {
        (None, None) => None,
        (Some(_), None) => Some(REMOVED),
        (None, Some(_)) => Some(MADE),
        (Some(after), Some(found)) if after == found => None,
        (Some(after), Some(found)) => {
            let row = |text: &str| serde_json::from_str::<Value>(text).ok();
            let rows = (row(after), row(found));
            let (Some(Value::Object(after)), Some(Value::Object(found))) = rows else {
                return Some(CHANGED);
            };
            let before = left.before.as_deref().and_then(row).unwrap_or_default();
            let is_changed = |(column, value): (&String, &Value)| {
                let was = before.get(column);
                was != Some(value) && found.get(column).is_some_and(|found| found != value)
            };
            after.iter().any(is_changed).then_some(CHANGED)
        }
    }
}
