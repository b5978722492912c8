//! Another value for a key that is there, or one item more or less for a list.

use super::Applied;
use super::fit::{LAYOUT, PLACE, as_large, by_patch, first_good};
use super::put::lies_close;
use super::take::unremarked;
use crate::change::{KeyChange, Piece};
use crate::check::Want;
use crate::dialect::{Edit, Fresh};
use crate::document::Document;
use crate::edit;
use crate::error::ConfigError;
use crate::key::Segment;
use crate::tree::Way;
use crate::value::Value;

/// Gives a key that is there another value, or a list one item more or less.
pub(super) fn exchanged(
    document: &Document<'_>,
    change: &KeyChange,
    way: &Way<'_>,
    piece: &Piece,
) -> Result<Applied, ConfigError> {
    let want = Want::Means(&piece.value);
    let item = change
        .slip
        .as_ref()
        .and_then(|slip| Some((slip, slip.item?)));
    let Some((slip, index)) = item else {
        if let Some(text) = by_patch(document, change, want, false) {
            return Ok(Applied::Done(text));
        }
        let text = exchange(document, change, way, piece)?;
        let is_exact = text.contains(&piece.tail);
        return Ok(if is_exact {
            Applied::Done(text)
        } else {
            Applied::Nearly { text, why: LAYOUT }
        });
    };
    let has_it = change.before.as_ref().map(|it| items(&it.value)) > Some(items(&piece.value));
    let key = change.key.child(Segment::Index(index));
    let own = document.follow(&key)?;
    if has_it && own.members.len() == key.segments().len() {
        unremarked(document, change, &own)?;
    }
    if let Some(text) = by_patch(document, change, want, false) {
        return Ok(Applied::Done(text));
    }
    let edit = if has_it {
        edit::removal(document, &key, &own).ok()
    } else {
        let left = slip.spot(way.node()).left;
        document.dialect().weave(document, way, left, slip)
    };
    let left = slip.spot(way.node()).left;
    let is_close = has_it || lies_close(document, change, way, left);
    if let Ok(text) = first_good(document, change, edit.into_iter(), want) {
        return Ok(if is_close {
            as_large(document, change, text)
        } else {
            Applied::Nearly { text, why: PLACE }
        });
    }
    let text = exchange(document, change, way, piece)?;
    Ok(Applied::Nearly { text, why: LAYOUT })
}

fn items(value: &Value) -> usize {
    match value {
        Value::List(items) => items.len(),
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::Text(_)
        | Value::Raw(_)
        | Value::Map(_) => 0,
    }
}

/// Replaces the value of a key that is there.
fn exchange(
    document: &Document<'_>,
    change: &KeyChange,
    way: &Way<'_>,
    piece: &Piece,
) -> Result<String, ConfigError> {
    let want = Want::Means(&piece.value);
    let span = match way.members.last() {
        Some(member) => member.tail,
        None => Some(way.node().span),
    };
    let Some(span) = span else {
        return Err(ConfigError::Disturbs {
            key: change.key.clone(),
        });
    };
    let tail = |value| document.dialect().tail(document, way, &value);
    let tails = [
        Ok(piece.tail.clone()),
        tail(Fresh::Raw(piece.raw.clone())),
        tail(Fresh::Value(piece.value.clone())),
    ];
    let dialect = document.dialect();
    let slip = change.slip.as_ref().filter(|slip| slip.item.is_none());
    let is_new = slip.is_some_and(|slip| dialect.behind(document, way) != slip.behind);
    let edits = tails.into_iter().flatten().map(|tail| {
        if is_new {
            // Somebody wrote a comment behind the value since.
            dialect.exchange(document, span, tail)
        } else {
            Edit::new(span.range(), tail)
        }
    });
    first_good(document, change, edits, want)
}
