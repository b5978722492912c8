//! Carrying out a change, or taking it back, in a text that others may have edited meanwhile.
//!
//! Three states are compared: what the change left, what was before, what is there. The exact bytes are tried first, then the plain edit; each is
//! checked before it counts.

use crate::change::{KeyChange, Piece, witnesses};
use crate::check::{Want, checked, is_chain};
use crate::dialect::{Edit, Fresh};
use crate::document::Document;
use crate::edit;
use crate::error::ConfigError;
use crate::format::Format;
use crate::key::KeyPath;
use crate::tree::Way;
use crate::value::Value;

/// What carrying out a change came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Applied {
    /// The new text.
    Done(String),
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
    let text = match (&way, &change.after) {
        (Some(way), Some(piece)) => by_patch(&document, change, Want::Means(&piece.value))
            .map_or_else(|| exchange(&document, key, way, piece), Ok),
        (Some(way), None) => by_patch(&document, change, Want::Absent)
            .map_or_else(|| take_out(&document, change, way), Ok),
        (None, Some(piece)) => by_patch(&document, change, Want::Means(&piece.value))
            .map_or_else(|| put_in(&document, key, &upper, piece), Ok),
        (None, None) => Ok(text.to_owned()),
    };
    Ok(Applied::Done(text?))
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
        if let Applied::Done(reverted) = revert(format, &text, change)? {
            text = reverted;
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

/// Replaces the value of a key that is there.
fn exchange(
    document: &Document<'_>,
    key: &KeyPath,
    way: &Way<'_>,
    piece: &Piece,
) -> Result<String, ConfigError> {
    let want = Want::Means(&piece.value);
    let span = match way.members.last() {
        Some(member) => member.tail,
        None => Some(way.node().span),
    };
    let Some(span) = span else {
        return Err(ConfigError::Disturbs { key: key.clone() });
    };
    let tails = [
        Ok(piece.tail.clone()),
        document
            .dialect()
            .tail(document, way, &Fresh::Raw(piece.raw.clone())),
        document
            .dialect()
            .tail(document, way, &Fresh::Value(piece.value.clone())),
    ];
    let edits = tails
        .into_iter()
        .flatten()
        .map(|tail| Edit::new(span.range(), tail));
    first_good(document, key, edits, want)
}

/// Puts the exact bytes back where they were.
fn by_patch(document: &Document<'_>, change: &KeyChange, want: Want<'_>) -> Option<String> {
    let patch = change.patch.as_ref()?;
    let places = patch.places(document, &patch.before).into_iter();
    let edits = places.map(|at| Edit::new(at..at + patch.before.len(), patch.after.clone()));
    first_good(document, &change.key, edits, want).ok()
}

/// Takes a key out, and the parents that were made for it and hold nothing else.
fn take_out(
    document: &Document<'_>,
    change: &KeyChange,
    way: &Way<'_>,
) -> Result<String, ConfigError> {
    let key = &change.key;
    let length = key.segments().len();
    let edits = (0..=change.made.min(length.saturating_sub(1)))
        .rev()
        .filter_map(|up| {
            let mut short = way.clone();
            short.members.truncate(length - up);
            let below = key.segments().get(length - up..)?;
            let alone =
                is_chain(short.node(), below) && (up == 0 || is_ours(document, change, &short));
            let mut edit = edit::removal(document, key, &short)
                .ok()
                .filter(|_| alone)?;
            if let Some(rest) = edit
                .new
                .strip_prefix(" {}")
                .filter(|_| change.hollow && up == change.made)
            {
                edit.new = rest.to_owned();
            }
            Some(edit)
        });
    first_good(document, key, edits, Want::Absent)
}

/// Whether a parent that was made for a key holds no line, and so no remark, that did not come with it.
fn is_ours(document: &Document<'_>, change: &KeyChange, parent: &Way<'_>) -> bool {
    let whole = parent.members.last().and_then(|member| member.whole);
    let lines = whole.map(|whole| bare(whole.of(document.text())));
    match (lines, &change.patch) {
        (Some(lines), Some(patch)) => lines.iter().all(|line| patch.before.contains(line)),
        (Some(_) | None, _) => false,
    }
}

/// Puts a key in at the end of what holds it.
fn put_in(
    document: &Document<'_>,
    key: &KeyPath,
    upper: &Way<'_>,
    piece: &Piece,
) -> Result<String, ConfigError> {
    let missing = key
        .segments()
        .get(upper.members.len()..)
        .unwrap_or_default();
    let values = [
        Fresh::Raw(piece.tail.clone()),
        Fresh::Raw(piece.raw.clone()),
        Fresh::Value(piece.value.clone()),
    ];
    let edits = values.iter().map(|value| {
        let insert = document.dialect().insert(document, upper, missing, value);
        insert.ok()
    });
    let lines = match piece.value {
        Value::Map(_) => document
            .dialect()
            .insert_section(document.text(), &piece.tail),
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::Text(_)
        | Value::Raw(_)
        | Value::List(_) => None,
    };
    let edits = std::iter::once(lines).chain(edits);
    first_good(document, key, edits.flatten(), Want::Means(&piece.value))
}

/// The text of the first edit that comes out right.
fn first_good(
    document: &Document<'_>,
    key: &KeyPath,
    edits: impl Iterator<Item = Edit>,
    want: Want<'_>,
) -> Result<String, ConfigError> {
    for edit in edits {
        if let Ok((text, ())) = checked(document, key, &edit, want, |_| Ok(())) {
            return Ok(text);
        }
    }
    Err(ConfigError::Disturbs { key: key.clone() })
}
