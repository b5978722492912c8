//! Changes of a schema, for servers whose transactions hold them: what came or went, and how it goes or comes again. A table
//! never goes for good: it is set aside, with all that is in it.

use backout_model::ports::DriverError;
use backout_model::ports::{How, State};
use backout_model::{Key, OutcomeKind, Reach, Target, TargetOutcome};
use serde::{Deserialize, Serialize};

use super::error::RowsError;
use super::server::Server;

/// Something that came into a schema or went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchemaChange {
    /// A table, an index, a column or the like.
    pub kind: SchemaKind,
    /// Whether it came; else it went.
    pub came: bool,
    /// As the server calls it.
    pub schema: String,
    /// Its name; of a column that of its table.
    pub name: String,
    /// The number of the table.
    #[serde(default)]
    pub relation: u32,
    /// What makes it, or what a table looked like.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Names that belong to it: of columns that came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// What is taken off a table that is set aside, and put on again: references to others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<(String, String)>,
}

/// The kinds of things that a schema holds and an undo can bring back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SchemaKind {
    /// A table, which is set aside whole.
    Table,
    /// An index, which its text makes.
    Index,
    /// A view, which its text makes.
    View,
    /// Columns of a table, which a statement makes.
    Column,
    /// The definition of a table, before and after; its text holds both.
    Altered,
}

impl SchemaChange {
    /// Names what was written.
    pub(super) fn target(&self, space: &str) -> Result<Target, DriverError> {
        let key = Key::in_space(space, &[&self.schema, &self.name])?;
        Ok(Target::new(key, Reach::Tree))
    }
}

/// What was asked for, what it is now, and whether it goes back.
pub(super) type SeenChange<'c> = (&'c SchemaChange, Target, State);

/// Looks at what came and went.
pub(super) fn look<'c, S: Server>(
    server: &mut S,
    changes: &'c [SchemaChange],
    space: &str,
) -> Result<Vec<SeenChange<'c>>, RowsError> {
    let each = changes.iter().map(|change| {
        let target = change.target(space);
        let target = target.map_err(|error| RowsError::NotUndoable(error.to_string()))?;
        Ok((change, target, server.schema_state(change)?))
    });
    each.collect()
}

/// Says what becomes of each. What is not as it was left is never replaced: a name that is taken stays taken.
pub(super) fn outcomes(seen: &[SeenChange<'_>], how: How<'_>) -> Vec<TargetOutcome> {
    let meant = seen.iter().filter(|(_, target, _)| how.means(target));
    let each = meant.map(|(_, target, state)| {
        let kind = match state {
            State::After => OutcomeKind::Restored,
            State::Before => OutcomeKind::AlreadyGone,
            State::Other { why } => OutcomeKind::Conflict { why: why.clone() },
        };
        TargetOutcome::new(target.clone(), kind)
    });
    each.collect()
}

/// Brings again what went, or takes away what came, and says what that changed.
pub(super) fn set_back<S: Server>(
    server: &mut S,
    seen: &[SeenChange<'_>],
    how: How<'_>,
    came: bool,
) -> Result<Vec<SchemaChange>, RowsError> {
    let meant = seen.iter().rev().filter(|(change, target, state)| {
        change.came == came && *state == State::After && how.means(target)
    });
    let mut done = Vec::new();
    for (change, ..) in meant {
        done.push(server.schema_back(change)?);
    }
    Ok(done)
}
