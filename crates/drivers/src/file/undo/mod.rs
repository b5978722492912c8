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
use super::recipe::{Change, Meta};

pub(crate) use check::check_kept;
pub(crate) use homes::without_directory;
pub use merge::merged;
pub(crate) use obtain::{doubted, first_of_both, not_the_first};
pub(crate) use prepare::prepare_undo;
pub use restore::names_shown;
pub(crate) use rights::lacking;
pub(crate) use select::with_moved;

/// Gives every target of a change the same outcome.
fn outcomes_of(change: &Change, kind: &OutcomeKind) -> Vec<TargetOutcome> {
    let with = |target: Target| TargetOutcome::new(target, kind.clone());
    targets_of(change).into_iter().map(with).collect()
}

/// Takes the fields that a change changed back to what they were, and leaves the others as they are.
pub(crate) fn put_back_changed(now: &Meta, before: &Meta, after: &Meta) -> Meta {
    let mut wanted = now.clone();
    if before.mode != after.mode {
        wanted.mode = before.mode;
    }
    if (before.uid, before.gid) != (after.uid, after.gid) {
        (wanted.uid, wanted.gid) = (before.uid, before.gid);
    }
    if before.xattrs != after.xattrs {
        wanted.xattrs.clone_from(&before.xattrs);
    }
    if before.flags != after.flags {
        wanted.flags = before.flags;
    }
    if before.changes_times_to(after) {
        wanted.times = before.times;
    }
    wanted
}
