//! Setting and removing one key.
//!
//! A key that is there gets another tail. A key that is not there gets a new member, with the parents it lacks. What a list gains or loses is a
//! change of the list as a whole, for an index says nothing about which item it was.

use crate::change::{KeyChange, Patch, witnesses};
use crate::check::{Want, checked};
use crate::dialect::{Edit, Fresh};
use crate::document::{Document, Edited};
use crate::error::ConfigError;
use crate::format::Format;
use crate::key::{KeyPath, Segment};
use crate::slip::Slip;
use crate::tree::{Form, Kind, Way};
use crate::value::{self, NewValue, Value};

pub(crate) fn set(
    document: &Document<'_>,
    key: &KeyPath,
    new: &NewValue,
) -> Result<Edited, ConfigError> {
    let way = followed(document, key)?;
    document.dialect().guard(document, key, &way)?;
    if way.members.len() == key.segments().len() {
        replace(document, key, &way, new)
    } else {
        add(document, key, &way, new)
    }
}

/// Follows a key. Where the format has no deeper keys, that is what is wrong with one.
fn followed<'d>(document: &'d Document<'_>, key: &KeyPath) -> Result<Way<'d>, ConfigError> {
    document
        .follow(key)
        .map_err(|error| match (&error, document.format()) {
            (ConfigError::WrongKind { .. }, Format::Env) => crate::env::single_names(key),
            (ConfigError::WrongKind { .. }, Format::Ini) => crate::ini::no_deeper(key),
            _ => error,
        })
}

fn replace(
    document: &Document<'_>,
    key: &KeyPath,
    way: &Way<'_>,
    new: &NewValue,
) -> Result<Edited, ConfigError> {
    let node = way.node();
    let before = document.piece(way);
    let fresh = fresh(document, new)?;
    let unchanged = match &fresh {
        Fresh::Value(value) => value.means(&before.value),
        Fresh::Raw(raw) => *raw == before.raw,
    };
    if unchanged {
        return Ok(Edited {
            text: document.text().to_owned(),
            changes: Vec::new(),
        });
    }
    keeps_type(document, key, way, new, &fresh)?;
    let unsupported = |why| ConfigError::Unsupported {
        key: key.clone(),
        at: document.place(node.span.start()),
        why,
    };
    if node.marked && matches!(fresh, Fresh::Value(_)) {
        return Err(unsupported(
            "its value has a tag or an anchor, which would be lost; --raw replaces it",
        ));
    }
    let member = way
        .members
        .last()
        .ok_or_else(|| unsupported("it is the whole text"))?;
    let tail = member
        .tail
        .ok_or_else(|| unsupported("its value is not written in one place"))?;
    let edit = Edit::new(
        tail.range(),
        document.dialect().tail(document, way, &fresh)?,
    );
    let (text, (after, patch)) = checked(document, key, &edit, want(&fresh), |now| {
        let after = now.piece(&now.follow(key)?);
        // A comment that the old value held may stand beside the new one: then the tails do not tell all.
        let patch = (after.tail != edit.new).then(|| Patch::of(document, now, key, &edit));
        Ok((after, patch))
    })
    .map_err(|error| blame_value(error, &fresh))?;
    let change = KeyChange {
        key: key.clone(),
        before: Some(before),
        after: Some(after),
        patch,
        slip: Slip::of(document, way).map(Slip::remark_only),
        made: 0,
        hollow: false,
        witnesses: witnesses(document, key),
    };
    Ok(Edited {
        text,
        changes: vec![change],
    })
}

fn add(
    document: &Document<'_>,
    key: &KeyPath,
    way: &Way<'_>,
    new: &NewValue,
) -> Result<Edited, ConfigError> {
    let depth = way.members.len();
    let missing = key.segments().get(depth..).unwrap_or_default();
    let items = way.node().members().len();
    if let Some(index) = missing.iter().position(|s| matches!(s, Segment::Index(_))) {
        return Err(ConfigError::NoIndex {
            key: key.prefix(depth + index + 1),
            length: (index == 0 && !way.node().is_absent()).then_some(items),
        });
    }
    let fresh = fresh(document, new)?;
    let edit = document.dialect().insert(document, way, missing, &fresh);
    let edit = edit.map_err(|error| error.about(key))?;
    // The place that `[+]` stands for: behind the items of the list that is there, or first in a new one.
    let resolved = key
        .segments()
        .iter()
        .enumerate()
        .map(|(i, segment)| match segment {
            Segment::Append => Segment::Index(if i == depth { items } else { 0 }),
            Segment::Name(_) | Segment::Index(_) => segment.clone(),
        });
    let resolved = KeyPath::new(resolved.collect());
    let in_list = matches!(missing.first(), Some(Segment::Append));
    let told = if in_list {
        key.prefix(depth)
    } else {
        up_to_list(key)
    };
    let (text, (after, patch, slip)) = checked(document, &resolved, &edit, want(&fresh), |now| {
        let way = now.follow(&told)?;
        let came = if in_list {
            now.follow(&resolved.prefix(depth + 1))?
        } else {
            way.clone()
        };
        let patch = Patch::of(document, now, &told, &edit);
        Ok((now.piece(&way), patch, Slip::of(now, &came)))
    })
    .map_err(|error| blame_value(error, &fresh))?;
    let change = KeyChange {
        before: in_list.then(|| document.piece(way)),
        after: Some(after),
        patch: Some(patch),
        slip,
        made: told.segments().len().saturating_sub(depth + 1),
        hollow: way.node().is_absent(),
        witnesses: witnesses(document, &told),
        key: told,
    };
    Ok(Edited {
        text,
        changes: vec![change],
    })
}

/// The key, or the list that is made for it.
fn up_to_list(key: &KeyPath) -> KeyPath {
    let append = key.segments().iter().position(|s| *s == Segment::Append);
    key.prefix(append.unwrap_or(key.segments().len()))
}

pub(crate) fn unset(document: &Document<'_>, key: &KeyPath) -> Result<Edited, ConfigError> {
    let way = followed(document, key)?;
    document.dialect().guard(document, key, &way)?;
    if way.members.len() < key.segments().len() || way.members.is_empty() {
        return Err(ConfigError::Missing { key: key.clone() });
    }
    let edit = removal(document, key, &way)?;
    let in_list = matches!(way.parent().kind, Kind::List(_));
    let length = key.segments().len();
    let told = key.prefix(if in_list { length - 1 } else { length });
    let (text, (after, patch)) = checked(document, key, &edit, Want::Absent, |now| {
        let after = if in_list {
            Some(now.piece(&now.follow(&told)?))
        } else {
            None
        };
        Ok((after, Patch::of(document, now, key, &edit)))
    })?;
    let change = KeyChange {
        before: Some(document.piece(&document.follow(&told)?)),
        after,
        patch: Some(patch),
        slip: Slip::of(document, &way),
        made: 0,
        hollow: false,
        witnesses: witnesses(document, &told),
        key: told,
    };
    Ok(Edited {
        text,
        changes: vec![change],
    })
}

/// The edit that takes out the end of a way.
pub(crate) fn removal(
    document: &Document<'_>,
    key: &KeyPath,
    way: &Way<'_>,
) -> Result<Edit, ConfigError> {
    let unsupported = |why| ConfigError::Unsupported {
        key: key.clone(),
        at: document.place(way.node().span.start()),
        why,
    };
    let parent = way.parent();
    if matches!(parent.kind, Kind::List(_)) && parent.form == Form::Section {
        return Err(unsupported("tables of a list are not removed one by one"));
    }
    if way
        .members
        .last()
        .is_some_and(|member| member.whole.is_none())
    {
        return Err(unsupported("it is written in several places"));
    }
    document.dialect().remove(document, way)
}

/// What is to be written, if the format can hold it.
fn fresh(document: &Document<'_>, new: &NewValue) -> Result<Fresh, ConfigError> {
    let fresh = match new {
        NewValue::Plain(word) => Fresh::Value(value::plain(document.format(), word)?),
        NewValue::Text(text) => Fresh::Value(Value::Text(text.clone())),
        NewValue::Typed(value) => Fresh::Value(value.clone()),
        NewValue::Raw(raw) => Fresh::Raw(raw.clone()),
    };
    // Where all values are texts, a number is its digits.
    Ok(match (document.format(), fresh) {
        (Format::Ini | Format::Env, Fresh::Value(Value::Number(number))) => {
            Fresh::Value(Value::Text(number))
        }
        (Format::Ini | Format::Env, Fresh::Value(Value::Bool(yes))) => {
            Fresh::Value(Value::Text(yes.to_string()))
        }
        (_, fresh) => fresh,
    })
}

fn want(fresh: &Fresh) -> Want<'_> {
    match fresh {
        Fresh::Value(value) => Want::Means(value),
        Fresh::Raw(_) => Want::Present,
    }
}

/// A raw text that breaks the document is to blame itself.
fn blame_value(error: ConfigError, fresh: &Fresh) -> ConfigError {
    match (&error, fresh) {
        (ConfigError::Disturbs { .. }, Fresh::Raw(raw)) => ConfigError::BadValue {
            what: format!("`{raw}` is not one value of this format"),
        },
        _ => error,
    }
}

/// Refuses a plain word that would change the type of what is there.
fn keeps_type(
    document: &Document<'_>,
    key: &KeyPath,
    way: &Way<'_>,
    new: &NewValue,
    fresh: &Fresh,
) -> Result<(), ConfigError> {
    let (NewValue::Plain(word), Fresh::Value(value)) = (new, fresh) else {
        return Ok(());
    };
    let node = way.node();
    let found = document.meaning(node);
    let open = match &found {
        Value::Null => true,
        Value::Text(_) => value::is_unclear(node.span.of(document.text())),
        Value::Bool(_) | Value::Number(_) | Value::Raw(_) | Value::List(_) | Value::Map(_) => false,
    };
    if open || *value == Value::Null || found.kind() == value.kind() {
        return Ok(());
    }
    Err(ConfigError::TypeChange {
        key: key.clone(),
        at: document.place(node.span.start()),
        found: found.kind(),
        wanted: value.kind(),
        text: word.clone(),
    })
}
