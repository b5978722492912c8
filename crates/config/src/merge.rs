//! Merging a patch: every leaf of it is one `set` or `unset`, with a change of its own.

use crate::document::{Document, Edited};
use crate::error::ConfigError;
use crate::key::{KeyPath, Segment};
use crate::value::{NewValue, Value};

/// The most bytes that one merge reads: the text is read twice for each key.
pub const MERGE_READ_MAX: usize = 4 << 30;

pub(crate) fn merge(document: &Document<'_>, patch: &Value) -> Result<Edited, ConfigError> {
    let Value::Map(members) = patch else {
        return Err(ConfigError::NotATable {
            found: patch.kind(),
        });
    };
    let mut leaves = Vec::new();
    gather(members, &KeyPath::default(), &mut leaves);
    if leaves.len().saturating_mul(document.text().len()) > MERGE_READ_MAX / 2 {
        return Err(ConfigError::OverLimit {
            what: "the number of bytes that this merge has to read",
            limit: MERGE_READ_MAX,
        });
    }
    let mut merged = Edited {
        text: document.text().to_owned(),
        changes: Vec::new(),
    };
    for (key, value) in leaves {
        let now = Document::parse(document.format(), &merged.text)?;
        let edited = match value {
            Value::Null if now.get(&key)?.is_none() => continue,
            Value::Null => now.unset(&key)?,
            // An empty table changes nothing where a table is.
            Value::Map(_) if matches!(now.get(&key)?, Some(found) if matches!(found.value, Value::Map(_))) =>
            {
                continue;
            }
            value @ (Value::Bool(_)
            | Value::Number(_)
            | Value::Text(_)
            | Value::Raw(_)
            | Value::List(_)
            | Value::Map(_)) => now.set(&key, &NewValue::Typed(value.clone()))?,
        };
        merged.text = edited.text;
        merged.changes.extend(edited.changes);
    }
    Ok(merged)
}

fn gather<'v>(
    members: &'v [(String, Value)],
    key: &KeyPath,
    leaves: &mut Vec<(KeyPath, &'v Value)>,
) {
    for (name, value) in members {
        let key = key.child(Segment::Name(name.clone()));
        match value {
            Value::Map(members) if !members.is_empty() => gather(members, &key, leaves),
            value @ (Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Text(_)
            | Value::Raw(_)
            | Value::List(_)
            | Value::Map(_)) => leaves.push((key, value)),
        }
    }
}
