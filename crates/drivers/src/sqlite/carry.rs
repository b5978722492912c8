//! Making it happen: the statements whose transaction is open, or an undo that was looked at before.

use std::collections::BTreeMap;

use backout_changeset::{Answer, Apply, Session, apply};
use backout_model::ports::{Applied, Durability, NewContent, Prepared, Staged};
use backout_model::{Completion, OperationId, RIDING_BYTES_MAX, Strategy};
use serde_json::json;

use super::database::Database;
use super::driver::SqliteDriver;
use super::error::SqliteFault;
use super::recipe::{SqliteRecipe, TableRows, tables_of};
use super::request::{SqlRequest, Tally};
use super::run::{Watch, run};

/// What waits to be armed.
#[derive(Debug)]
pub(super) enum SqliteStaged {
    /// Statements ran, and their transaction is open. Dropping it takes them back.
    Open(Box<Database>),
    /// The recipe says what is to change.
    Planned,
}

impl Staged for SqliteStaged {}

/// Rows that changed, in the store or on the way there.
pub(super) struct Kept {
    pub(super) recipe: SqliteRecipe,
    pub(super) content: Option<NewContent>,
    pub(super) copied_bytes: u64,
}

impl Kept {
    /// Gives it as a write that waits.
    pub(super) fn prepared(
        self,
        staged: SqliteStaged,
    ) -> Result<Prepared<SqliteStaged>, SqliteFault> {
        let targets = self.recipe.targets()?;
        Ok(Prepared {
            recipe: self.recipe.written()?,
            strategy: Strategy::Transaction,
            is_noop: targets.is_empty(),
            targets,
            contents: self.content.into_iter().collect(),
            copied_bytes: self.copied_bytes,
            staged,
            notes: Vec::new(),
        })
    }
}

/// Says what became of the rows of a table: `2 rows of orders updated, 1 inserted`.
fn said((table, rows): (&String, &TableRows)) -> String {
    let Tally {
        inserted,
        updated,
        deleted,
    } = rows.tally;
    let mut said = String::new();
    for (count, verb) in [
        (updated, "updated"),
        (inserted, "inserted"),
        (deleted, "deleted"),
    ] {
        if count > 0 && said.is_empty() {
            let noun = if count == 1 { "row" } else { "rows" };
            said = format!("{count} {noun} of {table} {verb}");
        } else if count > 0 {
            said = format!("{said}, {count} {verb}");
        }
    }
    said
}

impl SqliteDriver {
    /// Runs statements in a transaction that stays open.
    pub(super) fn stage(
        &self,
        id: OperationId,
        request: &SqlRequest,
    ) -> Result<Prepared<SqliteStaged>, SqliteFault> {
        let path = self.resolved(&request.path)?;
        let mut database = Database::open(path.as_path())?;
        let watch = Watch::begin(&mut database)?;
        database.begin()?;
        let ran;
        let kept = {
            let session = Session::new(&database.connection, |_| true);
            let session = session.map_err(|error| database.wrong(error))?;
            ran = run(&database, &watch, &request.statements, false)?;
            let empty = SqliteRecipe {
                path,
                mark: id,
                rows: None,
                tables: BTreeMap::new(),
            };
            self.keep(&database, &session, empty, &|_| false)?
        };
        request.told.tell(ran.results);
        let notes: Vec<String> = kept.recipe.tables.iter().map(said).collect();
        let prepared = kept.prepared(SqliteStaged::Open(Box::new(database)))?;
        Ok(Prepared { notes, ..prepared })
    }

    /// Puts what a session recorded where it is kept, and says in the recipe what it is.
    pub(super) fn keep(
        &self,
        database: &Database,
        session: &Session<'_>,
        recipe: SqliteRecipe,
        is_whole: &dyn Fn(&str) -> bool,
    ) -> Result<Kept, SqliteFault> {
        let wrong = |error| database.wrong(error);
        let bytes = session.changeset().map_err(wrong)?;
        let tables = tables_of(&mut &*bytes, is_whole).map_err(wrong)?;
        let mut kept = Kept {
            recipe: SqliteRecipe { tables, ..recipe },
            content: None,
            copied_bytes: 0,
        };
        if bytes.is_empty() {
            return Ok(kept);
        }
        if bytes.len() as u64 <= RIDING_BYTES_MAX {
            let content = NewContent::of(bytes);
            kept.recipe.rows = Some(content.digest);
            kept.content = Some(content);
        } else {
            let stash = &self.context().stash;
            let (digest, size) = stash.stash(kept.recipe.mark, &mut &*bytes)?;
            kept.recipe.rows = Some(digest);
            kept.copied_bytes = size;
        }
        Ok(kept)
    }

    /// Makes the write count.
    pub(super) fn carry_out(
        &self,
        recipe: &SqliteRecipe,
        staged: SqliteStaged,
    ) -> Result<Applied, SqliteFault> {
        let context = self.context();
        context.reach("sqlite.armed")?;
        let database = match staged {
            SqliteStaged::Open(database) => *database,
            SqliteStaged::Planned => self.redone(recipe)?,
        };
        context.reach("sqlite.applied")?;
        database.mark(recipe.mark)?;
        context.reach("sqlite.marked")?;
        database.commit()?;
        backout_crashpoint::crash_point("sqlite.committed");
        Ok(Applied {
            completion: Completion(json!({ "committed": true })),
            durability: Durability::Process,
            unlike: Vec::new(),
        })
    }

    /// Does what a recipe says, in a transaction that stays open. What does not fit exactly is an error.
    fn redone(&self, recipe: &SqliteRecipe) -> Result<Database, SqliteFault> {
        let database = Database::open(recipe.path.as_path())?;
        database.silence()?;
        database.begin()?;
        if let Some(mut changes) = self.changes(recipe)? {
            let how = Apply {
                inverted: false,
                wants: None,
                conflict: &mut |_, _| Answer::Stop,
            };
            let done = apply(&database.connection, &mut changes, how);
            done.map_err(|error| database.wrong(error))?;
        }
        Ok(database)
    }
}
