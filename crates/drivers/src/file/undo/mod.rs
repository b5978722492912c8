//! Taking an effect back, finished or not, as a new operation with its own recipe.
//!
//! One rule decides for every name: is it as *after* → put it back; as *before* → nothing to do; anything
//! else → a conflict, which is refused, left, merged or forced as the caller says. An undo with a conflict that is refused
//! does nothing at all, so no operation is half taken back unless somebody asks for that.

mod carry;
mod check;
mod dress;
mod homes;
mod merge;
mod names;
mod obtain;
mod prepare;
mod restore;
mod rewrite;
mod rights;
mod select;
mod stamps;
mod times;
mod torn;

use backout_model::{OutcomeKind, Target, TargetOutcome};

use super::plan::targets_of;
use super::recipe::Change;

pub(crate) use check::check_kept;
pub(crate) use homes::without_directory;
pub(crate) use obtain::{doubted, first_of_both, not_the_first};
pub(crate) use prepare::prepare_undo;
pub(crate) use rights::lacking;
pub(crate) use select::with_moved;

/// Gives every target of a change the same outcome.
fn outcomes_of(change: &Change, kind: &OutcomeKind) -> Vec<TargetOutcome> {
    let with = |target: Target| TargetOutcome::new(target, kind.clone());
    targets_of(change).into_iter().map(with).collect()
}
