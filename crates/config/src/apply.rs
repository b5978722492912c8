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
use crate::key::Segment;
use crate::lines;
use crate::remarks::remarks;
use crate::slip::Slip;
use crate::tree::{Kind, Way};
use crate::value::Value;

/// What may differ if other members came between those that a member stood between.
const PLACE: &str =
    "keys or lines came or went around it, so its place among them may not be the one it had";
/// What may differ if the bytes around a member are not known again.
const LAYOUT: &str =
    "the text around it is not what it was, so blanks and line ends around it may differ";
/// What differs if there is no place for the comment of a member.
const REMARK: &str = "there is no place for its comment, which is not back";
/// What differs if the others that a table had went meanwhile.
const EMPTY: &str = "what held it had other keys then and is left empty now";

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

/// Refuses to take a member away on which somebody wrote a comment.
fn unremarked(
    document: &Document<'_>,
    change: &KeyChange,
    way: &Way<'_>,
) -> Result<(), ConfigError> {
    let (Some(slip), Some(member)) = (&change.slip, way.members.last()) else {
        return Ok(());
    };
    let head = |body: &str| body.lines().next().unwrap_or_default().trim().to_owned();
    let body = member.whole.map_or("", |whole| whole.of(document.text()));
    let is_single = matches!(member.node.kind, Kind::Scalar(_) | Kind::Alias);
    let is_same = is_single || body.is_empty() || head(body) == head(&slip.body);
    let behind = document.dialect().behind(document, way);
    if is_same && behind.trim() == slip.behind.trim() {
        return Ok(());
    }
    Err(ConfigError::Remarked {
        key: change.key.clone(),
    })
}

/// Gives a key that is there another value, or a list one item more or less.
fn exchanged(
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
        return Ok(match is_exact {
            true => Applied::Done(text),
            false => Applied::Nearly { text, why: LAYOUT },
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
        return Ok(match is_close {
            true => as_large(document, change, text),
            false => Applied::Nearly { text, why: PLACE },
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
    let edits = tails.into_iter().flatten().map(|tail| match is_new {
        // Somebody wrote a comment behind the value since.
        true => dialect.exchange(document, span, tail),
        false => Edit::new(span.range(), tail),
    });
    first_good(document, change, edits, want)
}

/// Puts the exact bytes back where they were.
fn by_patch(
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

/// Whether others stood beside the member that came or went.
fn had_others(change: &KeyChange) -> bool {
    let slip = change.slip.as_ref();
    slip.is_some_and(|slip| !slip.above.is_empty() || !slip.below.is_empty())
}

/// Takes a key out, and the parents that were made for it and hold nothing else.
fn take_out(
    document: &Document<'_>,
    change: &KeyChange,
    way: &Way<'_>,
) -> Result<Applied, ConfigError> {
    let key = &change.key;
    let length = key.segments().len();
    for up in (0..=change.made.min(length.saturating_sub(1))).rev() {
        let mut short = way.clone();
        short.members.truncate(length - up);
        let below = key.segments().get(length - up..).unwrap_or_default();
        let alone = is_chain(short.node(), below) && (up == 0 || is_ours(document, change, &short));
        let Some(mut edit) = edit::removal(document, key, &short).ok().filter(|_| alone) else {
            continue;
        };
        if let Some(rest) = edit.new.strip_prefix(" {}")
            && change.hollow
            && up == change.made
        {
            edit.new = rest.to_owned();
        }
        let parent = short.parent();
        let edit = std::iter::once(edit);
        let Ok(text) = first_good(document, change, edit, Want::Absent) else {
            continue;
        };
        let is_left = parent.members().len() == 1 && !text.trim().is_empty();
        return Ok(if is_left && had_others(change) {
            Applied::Nearly { text, why: EMPTY }
        } else {
            as_large(document, change, text)
        });
    }
    Err(ConfigError::Disturbs { key: key.clone() })
}

/// Says that blanks or line ends may differ if not as many bytes came or went as the first time.
fn as_large(document: &Document<'_>, change: &KeyChange, text: String) -> Applied {
    let is_as_large = change.patch.as_ref().is_some_and(|patch| {
        text.len() + patch.before.len() == document.text().len() + patch.after.len()
    });
    match is_as_large {
        true => Applied::Done(text),
        false => Applied::Nearly { text, why: LAYOUT },
    }
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

/// Puts a key in: to its place with its exact bytes, or as it stood among those that are there, or at the end of what holds it.
fn put_in(
    document: &Document<'_>,
    change: &KeyChange,
    upper: &Way<'_>,
    piece: &Piece,
) -> Result<Applied, ConfigError> {
    let want = Want::Means(&piece.value);
    let depth = upper.members.len();
    let missing = change.key.segments().get(depth..).unwrap_or_default();
    let slip = change.slip.as_ref().filter(|_| missing.len() == 1);
    let spot = slip.map(|slip| slip.spot(upper.node()));
    let is_sure = spot.is_none_or(|spot| spot.is_sure);
    let placed = |text| match is_sure {
        true => Applied::Done(text),
        false => Applied::Nearly { text, why: PLACE },
    };
    let from_right = slip.is_some_and(|slip| slip.above.is_empty());
    if let Some(text) = by_patch(document, change, want, from_right) {
        return Ok(placed(text));
    }
    let dialect = document.dialect();
    if let (Some(slip), Some(spot)) = (slip, spot) {
        let edit = dialect.weave(document, upper, spot.left, slip);
        let is_sure = spot.is_sure && lies_close(document, change, upper, spot.left);
        if let Ok(text) = first_good(document, change, edit.into_iter(), want) {
            return Ok(match is_sure {
                true => as_large(document, change, text),
                false => Applied::Nearly { text, why: PLACE },
            });
        }
        // As deep as the one that is there: what stands deeper may be a part of that.
        let near = upper.node().members().get(spot.left.unwrap_or(0));
        let beside = near.and_then(|near| near.whole).map(|near| Slip {
            indent: Some(lines::indent(document.text(), near.start()).to_owned()),
            ..slip.clone()
        });
        let edit = beside.and_then(|slip| dialect.weave(document, upper, spot.left, &slip));
        if let Ok(text) = first_good(document, change, edit.into_iter(), want) {
            return Ok(Applied::Nearly { text, why: LAYOUT });
        }
    }
    if let Value::Map(_) = piece.value {
        let behind = change.slip.as_ref().map_or("", |slip| &slip.behind);
        let section = format!("{}{behind}", piece.tail);
        let edit = dialect.insert_section(document.text(), &section);
        if let Ok(text) = first_good(document, change, edit.into_iter(), want) {
            return Ok(Applied::Nearly { text, why: PLACE });
        }
    }
    let values = [
        Fresh::Raw(piece.tail.clone()),
        Fresh::Raw(piece.raw.clone()),
        Fresh::Value(piece.value.clone()),
    ];
    let edits = values
        .iter()
        .filter_map(|value| dialect.insert(document, upper, missing, value).ok());
    let text = first_good(document, change, edits, want)?;
    let why = match change.slip.as_ref() {
        Some(slip) if !has_remarks(&text, slip) => REMARK,
        Some(_) | None => LAYOUT,
    };
    Ok(Applied::Nearly { text, why })
}

/// Whether a text has what may be a comment in or behind a member.
fn has_remarks(text: &str, slip: &Slip) -> bool {
    let held = format!("{}{}", slip.body, slip.behind);
    held.lines().all(|line| {
        let starts = [" #", " ;", "//", "/*"].map(|sign| line.find(sign));
        let start = starts.into_iter().flatten().min();
        start.is_none_or(|start| text.contains(lines::rest(line, start).trim()))
    })
}

/// Whether no line stood or stands between a member and its neighbours, not even a blank one: its place among such lines is not known.
fn lies_close(
    document: &Document<'_>,
    change: &KeyChange,
    upper: &Way<'_>,
    left: Option<usize>,
) -> bool {
    let is_close = |gap: &str| gap.matches('\n').count() <= 1;
    let then = change.patch.as_ref();
    let then = then.is_some_and(|it| is_close(&it.left.gap) && is_close(&it.right.gap));
    let span = |index: usize| upper.node().members().get(index)?.whole;
    let parent = upper.node().span;
    let from = left.map_or(Some(parent.start()), |left| Some(span(left)?.end()));
    let to = span(left.map_or(0, |left| left + 1));
    let to = to.map_or_else(|| parent.end().max(from.unwrap_or(0)), |to| to.start());
    then && from.is_some_and(|from| is_close(lines::cut(document.text(), from..to)))
}

/// The text of the first edit that comes out right and costs nobody a comment.
fn first_good(
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

/// Whether every comment is what it was and stands in a line with the same name, but for those that came or went with the key.
fn keeps_remarks(
    one: &Document<'_>,
    two: &Document<'_>,
    change: &KeyChange,
    is_moved: bool,
) -> bool {
    let is_known = |remark: &str| {
        let pieces = [&change.before, &change.after].into_iter().flatten();
        let mut texts = pieces.flat_map(|piece| [&piece.raw, &piece.tail]);
        let patch = change.patch.as_ref();
        texts.any(|text| text.contains(remark))
            || patch.is_some_and(|it| it.before.contains(remark) || it.after.contains(remark))
            || change
                .slip
                .as_ref()
                .is_some_and(|slip| slip.behind.contains(remark) || slip.body.contains(remark))
    };
    let of = |document| {
        let mut remarks = remarks(document);
        remarks.retain(|remark| !is_known(remark.text));
        remarks.sort_by_key(|remark| remark.text);
        remarks
    };
    let is_own = |name: &str| {
        let mut own = change.key.segments().iter();
        own.any(|segment| matches!(segment, Segment::Name(own) if own == name))
    };
    let (one, two) = (of(one), of(two));
    one.len() == two.len()
        && one.iter().zip(&two).all(|(one, two)| {
            let mut names = one.names.iter().filter(|name| !is_own(name)).peekable();
            let stays =
                !is_moved || names.peek().is_none() || names.any(|name| two.names.contains(name));
            one.text == two.text && stays
        })
}
