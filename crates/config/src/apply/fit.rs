//! The exact bytes in their place, and what every edit is held to.

use super::Applied;
use crate::change::KeyChange;
use crate::check::{Want, checked};
use crate::dialect::Edit;
use crate::document::Document;
use crate::error::ConfigError;
use crate::remarks::keeps_remarks;

/// What may differ if other members came between those that a member stood between.
pub(super) const PLACE: &str =
    "keys or lines came or went around it, so its place among them may not be the one it had";
/// What may differ if the bytes around a member are not known again.
pub(super) const LAYOUT: &str =
    "the text around it is not what it was, so blanks and line ends around it may differ";
/// What differs if there is no place for the comment of a member.
pub(super) const REMARK: &str = "there is no place for its comment, which is not back";
/// What differs if the others that a table had went meanwhile.
pub(super) const EMPTY: &str = "what held it had other keys then and is left empty now";

/// Puts the exact bytes back where they were.
pub(super) fn by_patch(
    document: &Document<'_>,
    change: &KeyChange,
    want: Want<'_>,
    from_right: bool,
) -> Option<String> {
    let patch = change.patch.as_ref()?;
    let (places, is_both) = patch.places(document, &patch.before, from_right);
    let edits = places.into_iter();
    let mut edits = edits.map(|at| Edit::new(at..at + patch.before.len(), patch.after.clone()));
    if is_both {
        // The text up to both neighbours is as the change left it, so all of it is as it was.
        let checked = checked(document, &change.key, &edits.next()?, want, |_| Ok(()));
        return checked.ok().map(|(text, ())| text);
    }
    first_good(document, change, edits, want).ok()
}

/// Says that blanks or line ends may differ if not as many bytes came or went as the first time.
pub(super) fn as_large(document: &Document<'_>, change: &KeyChange, text: String) -> Applied {
    let is_as_large = change.patch.as_ref().is_some_and(|patch| {
        text.len() + patch.before.len() == document.text().len() + patch.after.len()
    });
    if is_as_large {
        Applied::Done(text)
    } else {
        Applied::Nearly { text, why: LAYOUT }
    }
}

/// The text of the first edit that comes out right and costs nobody a comment.
pub(super) fn first_good(
    document: &Document<'_>,
    change: &KeyChange,
    mut edits: impl Iterator<Item = Edit>,
    want: Want<'_>,
) -> Result<String, ConfigError> {
    // Where a value stands for another one, nothing beside it moves.
    let is_moved = change.before.is_none() || change.after.is_none();
    let good = edits.find_map(|edit| {
        let checked = checked(document, &change.key, &edit, want, |now| {
            Ok(keeps_remarks(document, now, change, is_moved))
        });
        checked
            .ok()
            .filter(|(_, keeps)| *keeps)
            .map(|(text, _)| text)
    });
    good.ok_or_else(|| ConfigError::Disturbs {
        key: change.key.clone(),
    })
}
