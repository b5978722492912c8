//! The persisted undo of statements.
//!
//! The changeset is in the store's contents; the body names it, and what it is about. Version 1.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use backout_changeset::{Op, each};
use backout_model::{
    Digest, DriverName, Effect, Key, OperationId, Reach, Recipe, Target, TargetPath,
};
use serde::{Deserialize, Serialize};

use super::error::SqliteFault;
use super::name::row_name;
use super::request::Tally;
use super::schema::{Image, Object, Turn};

/// The name that its recipes bear.
pub const SQLITE: DriverName = DriverName::literal("sqlite");

/// The newest version of a recipe's body.
const VERSION: u16 = 1;

/// Above this many rows of one table the table is the target.
pub(super) const ROWS_NAMED_MAX: usize = 200;

/// The body.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct SqliteRecipe {
    /// The file.
    pub(super) path: TargetPath,
    /// The mark that the commit leaves.
    pub(super) mark: OperationId,
    /// The changeset, if rows changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rows: Option<Digest>,
    /// What it is about, by table.
    pub(super) tables: BTreeMap<String, TableRows>,
    /// Indexes, views and triggers that changed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) objects: BTreeMap<String, Turn<Object>>,
    /// Tables that changed as a whole.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) images: BTreeMap<String, Turn<Image>>,
    /// How many more references led nowhere after it than before: taking it back, or doing it again, may bring as many.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) dangling: i64,
    /// Whether the file was empty before: then it is so again when nothing is left in the database.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) was_empty: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// The rows of a table that changed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct TableRows {
    /// How many came, changed and went.
    #[serde(flatten)]
    pub(super) tally: Tally,
    /// What they are called; none if there are too many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) names: Option<Vec<String>>,
}

/// Finds out what a changeset is about. Tables that `is_whole` names are targets as a whole.
pub(super) fn tables_of(
    changes: &mut dyn Read,
    is_whole: &dyn Fn(&str) -> bool,
) -> Result<BTreeMap<String, TableRows>, backout_changeset::ChangesetError> {
    let mut tables: BTreeMap<String, TableRows> = BTreeMap::new();
    each(changes, false, |change| {
        if !tables.contains_key(&change.table) {
            let names = (!is_whole(&change.table)).then(Vec::new);
            let rows = TableRows {
                names,
                ..TableRows::default()
            };
            tables.insert(change.table.clone(), rows);
        }
        if let Some(rows) = tables.get_mut(&change.table) {
            match change.op {
                Op::Insert => rows.tally.inserted += 1,
                Op::Update => rows.tally.updated += 1,
                Op::Delete => rows.tally.deleted += 1,
            }
            if let Some(names) = &mut rows.names {
                names.push(row_name(&change.key_values()));
            }
            if rows
                .names
                .as_ref()
                .is_some_and(|it| it.len() > ROWS_NAMED_MAX)
            {
                rows.names = None;
            }
        }
        Ok(())
    })?;
    Ok(tables)
}

impl SqliteRecipe {
    /// Says nothing yet.
    pub(super) const fn empty(path: TargetPath, mark: OperationId) -> Self {
        Self {
            path,
            mark,
            rows: None,
            tables: BTreeMap::new(),
            objects: BTreeMap::new(),
            images: BTreeMap::new(),
            dangling: 0,
            was_empty: false,
        }
    }

    /// Reads the recipe of an effect.
    pub(super) fn of(effect: &Effect) -> Result<Self, SqliteFault> {
        Self::read(&effect.recipe)
    }

    /// Reads the body of a recipe of this driver.
    pub(super) fn read(recipe: &Recipe) -> Result<Self, SqliteFault> {
        Ok(recipe.read(VERSION)?)
    }

    /// Writes it down.
    pub(super) fn written(&self) -> Result<Recipe, SqliteFault> {
        let images = self.images.values();
        let images = images.flat_map(|turn| turn.before.iter().chain(&turn.after));
        let images = images.filter(|image| image.is_kept).map(|image| image.rows);
        let contents: BTreeSet<Digest> = self.rows.into_iter().chain(images).collect();
        Ok(Recipe {
            contents: contents.into_iter().collect(),
            ..Recipe::of(SQLITE, VERSION, self)?
        })
    }

    /// Gives the digest of what it does, whoever does it.
    pub(super) fn fingerprint(&self) -> Result<Digest, SqliteFault> {
        let anybody = Self {
            mark: OperationId::from_bits(0),
            ..self.clone()
        };
        let text = serde_json::to_vec(&anybody).map_err(backout_model::ports::BadRecipe::from)?;
        Ok(Digest::of(&text))
    }

    /// Tells whether a table is a target as a whole.
    pub(super) fn is_whole(&self, table: &str) -> bool {
        let rows = self.tables.get(table);
        rows.is_some_and(|rows| rows.names.is_none())
    }

    /// Gives the target that a row belongs to.
    pub(super) fn target(&self, table: &str, name: &str) -> Result<Target, SqliteFault> {
        let key = self.table(table)?;
        let key = if self.is_whole(table) {
            key
        } else {
            key.part(name)?
        };
        Ok(Target::new(key, Reach::Node))
    }

    /// Lists the targets.
    pub(super) fn targets(&self) -> Result<Vec<Target>, SqliteFault> {
        let mut targets = Vec::new();
        for (table, rows) in &self.tables {
            match &rows.names {
                None => targets.push(self.part(table)?),
                Some(names) => {
                    for name in names {
                        targets.push(self.target(table, name)?);
                    }
                }
            }
        }
        for name in self.objects.keys().chain(self.images.keys()) {
            targets.push(self.part(name)?);
        }
        targets.sort();
        targets.dedup();
        Ok(targets)
    }

    /// Gives something of the schema as a target.
    pub(super) fn part(&self, name: &str) -> Result<Target, SqliteFault> {
        Ok(Target::new(self.table(name)?, Reach::Node))
    }

    fn table(&self, table: &str) -> Result<Key, SqliteFault> {
        Ok(Key::from(self.path.clone()).part(table)?)
    }
}
