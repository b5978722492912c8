//! Changes of the schema in a recipe: where each stands, and how they are carried out, either way.

use std::collections::BTreeSet;

use backout_changeset::rusqlite;
use backout_model::ports::State;
use backout_model::{OperationId, Target};

use super::carry::Kept;
use super::database::Database;
use super::driver::SqliteDriver;
use super::error::SqliteFault;
use super::recipe::SqliteRecipe;
use super::schema::{Image, Object, Schema, Turn, drop_object, image_of, put_image};

/// Something of the schema and where it stands.
#[derive(Debug)]
pub(super) struct Placed {
    pub(super) target: Target,
    pub(super) state: State,
    /// Whether nothing was there before.
    pub(super) goes: bool,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
    pub(super) now: Option<String>,
}

/// Looks at all that a recipe says of the schema.
pub(super) fn placed(
    database: &Database,
    recipe: &SqliteRecipe,
) -> Result<Vec<Placed>, SqliteFault> {
    let wrong = |error: rusqlite::Error| database.wrong(error);
    let mut placed = Vec::new();
    if recipe.objects.is_empty() && recipe.images.is_empty() {
        return Ok(placed);
    }
    let now = Schema::of(&database.connection).map_err(wrong)?;
    for (name, turn) in &recipe.objects {
        let sql = |it: Option<&Object>| it.map(|it| it.sql.clone());
        let (before, after) = (sql(turn.before.as_ref()), sql(turn.after.as_ref()));
        let now = sql(now.objects.get(name));
        placed.push(Placed {
            target: recipe.part(name)?,
            state: State::of(&now, &before, &after),
            goes: before.is_none(),
            before,
            after,
            now,
        });
    }
    for (table, turn) in &recipe.images {
        let now = image_of(&database.connection, table).map_err(wrong)?;
        let now = now.map(|(image, _)| image);
        let is = |then: &Option<Image>| match (then, &now) {
            (None, None) => true,
            (Some(then), Some(now)) => then.is(now),
            _ => false,
        };
        let state = if is(&turn.after) {
            State::After
        } else if is(&turn.before) {
            State::Before
        } else {
            State::Other {
                why: "somebody else changed the table".to_owned(),
            }
        };
        placed.push(Placed {
            target: recipe.part(table)?,
            state,
            goes: turn.before.is_none(),
            before: turn.before.as_ref().map(said),
            after: turn.after.as_ref().map(said),
            now: now.as_ref().map(said),
        });
    }
    Ok(placed)
}

/// Says what a table is in one line.
fn said(image: &Image) -> String {
    let rest = image.rest.iter().map(|object| format!("; {}", object.sql));
    let rows = image.rows.to_string();
    let rows = rows.get(..16).unwrap_or(&rows);
    let noun = if image.count == 1 { "row" } else { "rows" };
    format!(
        "{}{}; {} {noun} ({rows})",
        image.sql,
        rest.collect::<String>(),
        image.count
    )
}

/// Counts the references that lead nowhere.
pub(super) fn count_dangling(database: &Database) -> Result<i64, SqliteFault> {
    let wrong = |error: rusqlite::Error| database.wrong(error);
    let check = database.connection.prepare("PRAGMA main.foreign_key_check");
    let mut check = check.map_err(wrong)?;
    let mut rows = check.query([]).map_err(wrong)?;
    let mut count = 0;
    while rows.next().map_err(wrong)?.is_some() {
        count += 1;
    }
    Ok(count)
}

impl SqliteDriver {
    /// Makes the schema what one side of each turn says. References do not act meanwhile.
    pub(super) fn reshape(
        &self,
        database: &Database,
        recipe: &SqliteRecipe,
        is_after: bool,
    ) -> Result<(), SqliteFault> {
        let wrong = |error: rusqlite::Error| database.wrong(error);
        let connection = &database.connection;
        let now = Schema::of(connection).map_err(wrong)?;
        for name in recipe.objects.keys() {
            if let Some(object) = now.objects.get(name) {
                drop_object(connection, object).map_err(wrong)?;
            }
        }
        // All of them first: two tables cannot have an index of the same name.
        for table in recipe.images.keys() {
            put_image(connection, table, None).map_err(wrong)?;
        }
        for (table, turn) in &recipe.images {
            let to = if is_after { &turn.after } else { &turn.before };
            let rows = match to.as_ref().filter(|to| to.is_kept) {
                Some(to) => self.context().contents.read(&to.rows)?,
                None => Vec::new(),
            };
            let to = to.as_ref().map(|to| (to, rows.as_slice()));
            put_image(connection, table, to).map_err(wrong)?;
        }
        let to = |turn: &Turn<Object>| {
            let side = if is_after { &turn.after } else { &turn.before };
            side.clone()
        };
        let mut to: Vec<Object> = recipe.objects.values().filter_map(to).collect();
        // An index before a view, a view before a trigger on it.
        to.sort_by(|one, other| one.kind.cmp(&other.kind));
        for object in to {
            connection.execute_batch(&object.sql).map_err(wrong)?;
        }
        Ok(())
    }

    /// Turns what a recipe says of the schema round, for the targets that are meant, from what is there now.
    pub(super) fn turned(
        &self,
        database: &Database,
        recipe: &SqliteRecipe,
        is_meant: &dyn Fn(&Target) -> bool,
        kept: &mut Kept,
        by: OperationId,
    ) -> Result<(), SqliteFault> {
        let wrong = |error: rusqlite::Error| database.wrong(error);
        if recipe.objects.is_empty() && recipe.images.is_empty() {
            return Ok(());
        }
        let now = Schema::of(&database.connection).map_err(wrong)?;
        for (name, turn) in &recipe.objects {
            if is_meant(&recipe.part(name)?) {
                let turn = Turn {
                    before: now.objects.get(name).cloned(),
                    after: turn.before.clone(),
                };
                kept.recipe.objects.insert(name.clone(), turn);
            }
        }
        for (table, turn) in &recipe.images {
            if is_meant(&recipe.part(table)?) {
                let turn = Turn {
                    before: self.image(database, table, Some(kept), by)?,
                    after: turn.before.clone(),
                };
                kept.recipe.images.insert(table.clone(), turn);
            }
        }
        Ok(())
    }

    /// Reads a table whole, and keeps its rows if that is asked for.
    pub(super) fn image(
        &self,
        database: &Database,
        table: &str,
        kept: Option<&mut Kept>,
        by: OperationId,
    ) -> Result<Option<Image>, SqliteFault> {
        let found = image_of(&database.connection, table);
        let Some((mut image, rows)) = found.map_err(|error| too_much(database, error))? else {
            return Ok(None);
        };
        if let Some(kept) = kept.filter(|_| !rows.is_empty()) {
            image.is_kept = true;
            self.store(by, rows, kept)?;
        }
        Ok(Some(image))
    }
}

fn too_much(database: &Database, error: rusqlite::Error) -> SqliteFault {
    match error {
        rusqlite::Error::ToSqlConversionFailure(_) => SqliteFault::TooMuch {
            limit_mib: super::schema::IMAGE_MIB_MAX,
        },
        error => database.wrong(error),
    }
}

/// Names the tables whose rows a session must not record: they are kept whole.
pub(super) fn whole_tables(recipe: &SqliteRecipe) -> BTreeSet<String> {
    recipe.images.keys().cloned().collect()
}
