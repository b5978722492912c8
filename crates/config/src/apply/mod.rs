//! Carrying out a change, or taking it back, in a text that others may have edited meanwhile.
//!
//! Three states are compared: what the change left, what was before, what is there. The exact bytes are tried first (`fit`), then the member as
//! it stood, then the plain edit; each is checked before it counts, and none costs anybody a comment.

mod exchange;
mod fit;
mod put;
mod take;

use crate::change::{KeyChange, Piece, witnesses};
use crate::check::Want;
use crate::document::Document;
use crate::error::ConfigError;
use crate::format::Format;
use crate::value::Value;

use exchange::exchanged;
use fit::by_patch;
use put::put_in;
use take::{had_others, take_out, unremarked};

/// What carrying out a change came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Applied {
    /// The new text.
    Done(String),
    /// The new text: the key is as it should be, but the text around it may not be.
    Nearly {
        /// The new text.
        text: String,
        /// What may differ.
        why: &'static str,
    },
    /// The key is so already.
    Already,
}

/// Carries out a change.
pub fn apply(format: Format, text: &str, change: &KeyChange) -> Result<Applied, ConfigError> {
    let document = Document::parse(format, text)?;
    same_lists(&document, change)?;
    let key = &change.key;
    let way = match document.follow(key) {
        // What would hold the key is something else now, so the key is not there.
        Err(ConfigError::WrongKind { .. }) => None,
        way => Some(way?).filter(|way| way.members.len() == key.segments().len()),
    };
    let found = way.as_ref().map(|way| document.piece(way));
    if same(found.as_ref(), change.after.as_ref()) {
        return Ok(Applied::Already);
    }
    if !same(found.as_ref(), change.before.as_ref()) {
        return Err(ConfigError::Conflict {
            key: key.clone(),
            expected: change.before.as_ref().map(|piece| piece.raw.clone()),
            found: found.map(|piece| piece.raw),
        });
    }
    let upper = document.follow(key)?;
    match document.dialect().guard(&document, key, &upper) {
        // The key was here before: what it is called is no question any more.
        Ok(()) | Err(ConfigError::Ambiguous { .. }) => {}
        Err(error) => return Err(error),
    }
    let done = match (&way, &change.after) {
        (Some(way), Some(piece)) => exchanged(&document, change, way, piece)?,
        (Some(way), None) => {
            unremarked(&document, change, way)?;
            // What held others then and would hold nothing now is left as an empty table, not as nothing.
            let is_last = had_others(change) && way.parent().members().len() == 1;
            match by_patch(&document, change, Want::Absent, false) {
                Some(text) if !is_last => Applied::Done(text),
                Some(_) | None => take_out(&document, change, way)?,
            }
        }
        (None, Some(piece)) => put_in(&document, change, &upper, piece)?,
        (None, None) => Applied::Done(text.to_owned()),
    };
    Ok(done)
}

/// Takes a change back.
pub fn revert(format: Format, text: &str, change: &KeyChange) -> Result<Applied, ConfigError> {
    apply(format, text, &change.inverse())
}

/// Takes back all changes of one edit, the last one first. The first refusal ends it.
pub fn revert_all(
    format: Format,
    text: &str,
    changes: &[KeyChange],
) -> Result<String, ConfigError> {
    let mut text = text.to_owned();
    for change in changes.iter().rev() {
        match revert(format, &text, change)? {
            Applied::Done(reverted) | Applied::Nearly { text: reverted, .. } => text = reverted,
            Applied::Already => {}
        }
    }
    Ok(text)
}

/// Refuses if a list on the way is not the one it was: its indices may mean other items.
fn same_lists(document: &Document<'_>, change: &KeyChange) -> Result<(), ConfigError> {
    let now = witnesses(document, &change.key);
    for (was, is) in change.witnesses.iter().zip(&now) {
        if was != is {
            return Err(ConfigError::Moved {
                key: change.key.clone(),
                list: was.list.clone(),
            });
        }
    }
    Ok(())
}

/// Whether two states of a key are the same: scalars by what they mean, lists and tables by their text without indents.
fn same(one: Option<&Piece>, two: Option<&Piece>) -> bool {
    match (one, two) {
        (None, None) => true,
        (Some(one), Some(two)) => match one.value {
            Value::List(_) | Value::Map(_) => bare(&one.raw) == bare(&two.raw),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) | Value::Raw(_) => {
                one.value.means(&two.value)
            }
        },
        (Some(_), None) | (None, Some(_)) => false,
    }
}

fn bare(raw: &str) -> Vec<&str> {
    raw.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect()
}
