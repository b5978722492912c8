//! Making it happen: the statements whose transaction is open, or an undo that was looked at before.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek as _, Write as _};

use backout_changeset::{Answer, Apply, Session, apply};
use backout_model::ports::{Applied, Durability, NewContent, Prepared, Staged, State};
use backout_model::{Completion, Digest, OperationId, RIDING_BYTES_MAX, Strategy, TargetPath};
use serde_json::json;

use super::database::Database;
use super::driver::SqliteDriver;
use super::error::SqliteFault;
use super::recipe::{SqliteRecipe, TableRows, tables_of};
use super::request::{SqlRequest, Tally};
use super::run::{Watch, run};
use super::schema::{Image, Schema, Turn};
use super::shape::{count_dangling, placed};

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
    pub(super) contents: Vec<NewContent>,
    pub(super) copied_bytes: u64,
}

impl Kept {
    pub(super) const fn of(recipe: SqliteRecipe) -> Self {
        Self {
            recipe,
            contents: Vec::new(),
            copied_bytes: 0,
        }
    }

    /// Gives it as a write that waits.
    pub(super) fn prepared(
        self,
        staged: SqliteStaged,
    ) -> Result<Prepared<SqliteStaged>, SqliteFault> {
        let (targets, recipe) = (self.recipe.targets()?, self.recipe.written()?);
        let mut contents = self.contents;
        contents.retain(|content| recipe.contents.contains(&content.digest));
        Ok(Prepared {
            recipe,
            strategy: Strategy::Transaction,
            is_noop: targets.is_empty(),
            targets,
            contents,
            copied_bytes: self.copied_bytes,
            staged,
            notes: Vec::new(),
        })
    }
}

/// Above this a changeset goes to the store by a file.
const IN_MEMORY_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// How often statements are begun again.
const ATTEMPTS_MAX: usize = 4;

/// What came of running statements.
enum Attempt {
    Done(Box<Prepared<SqliteStaged>>),
    /// These tables have to be kept whole before.
    Again(BTreeSet<String>),
}

/// Says what a recipe does, a line for each table and each thing of the schema.
fn notes(recipe: &SqliteRecipe) -> Vec<String> {
    let verb = |was: bool, is: bool| match (was, is) {
        (false, _) => "made",
        (true, false) => "dropped",
        (true, true) => "changed",
    };
    let rows = recipe.tables.iter().map(said);
    let images = recipe.images.iter().map(|(table, turn)| {
        let verb = verb(turn.before.is_some(), turn.after.is_some());
        format!("table {table} {verb}")
    });
    let objects = recipe.objects.iter().map(|(name, turn)| {
        let kind = turn.after.as_ref().or(turn.before.as_ref());
        let kind = kind.map_or("", |object| object.kind.as_str());
        let verb = verb(turn.before.is_some(), turn.after.is_some());
        format!("{kind} {name} {verb}")
    });
    rows.chain(images).chain(objects).collect()
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
    /// Runs statements in a transaction that stays open. Where it shows that a table has to be kept whole, all begins again.
    pub(super) fn stage(
        &self,
        id: OperationId,
        request: &SqlRequest,
    ) -> Result<Prepared<SqliteStaged>, SqliteFault> {
        let path = self.resolved(&request.path)?;
        let mut whole = BTreeSet::new();
        for _ in 0..ATTEMPTS_MAX {
            match self.attempt(id, request, &path, &whole)? {
                Attempt::Done(prepared) => return Ok(*prepared),
                Attempt::Again(more) => whole.extend(more),
            }
        }
        Err(SqliteFault::refused(
            "the statements change other tables each time they run",
            "what they change has to be known before it happens",
            "run the changes of the schema one by one",
        ))
    }

    fn attempt(
        &self,
        id: OperationId,
        request: &SqlRequest,
        path: &TargetPath,
        whole: &BTreeSet<String>,
    ) -> Result<Attempt, SqliteFault> {
        let mut database = Database::open(path.as_path())?;
        let watch = Watch::begin(&mut database)?;
        database.begin()?;
        let schema = |database: &Database| {
            Schema::of(&database.connection).map_err(|error| database.wrong(error))
        };
        let before = schema(&database)?;
        let mut kept = Kept::of(SqliteRecipe::empty(path.clone(), id));
        kept.recipe.was_empty = database.is_empty_file();
        // Only what changes a table as a whole can bring references that lead nowhere: others are refused, or were there.
        let dangling = if whole.is_empty() {
            0
        } else {
            count_dangling(&database)?
        };
        for table in whole {
            let turn = Turn {
                before: self.image(&database, table, Some(&mut kept), id)?,
                after: None,
            };
            kept.recipe.images.insert(table.clone(), turn);
        }
        let (ran, after) = {
            let apart = whole.clone();
            let session = Session::new(&database.connection, move |it| !apart.contains(it));
            let session = session.map_err(|error| database.wrong(error))?;
            let ran = run(&database, &watch, &request.statements, false)?;
            database.check_marks()?;
            let after = schema(&database)?;
            let mut changed = before.tables_unlike(&after);
            changed.extend(ran.whole.iter().cloned());
            // What a session recorded of a table that has another schema by now cannot be had.
            if !changed.is_subset(whole) {
                return Ok(Attempt::Again(changed));
            }
            self.keep(&database, &session, &mut kept, &|_| false)?;
            (ran, after)
        };
        for (table, turn) in &mut kept.recipe.images {
            turn.after = self.image(&database, table, None, id)?;
        }
        if !whole.is_empty() {
            kept.recipe.dangling = count_dangling(&database)? - dangling;
        }
        for table in kept.recipe.tables.keys() {
            database.check_writable(table)?;
        }
        let is_same = |turn: &Turn<Image>| match (&turn.before, &turn.after) {
            (Some(before), Some(after)) => before.is(after),
            (before, after) => before.is_none() && after.is_none(),
        };
        kept.recipe.images.retain(|_, turn| !is_same(turn));
        kept.recipe.objects = before.turns(&after, whole);
        request.told.tell(ran.results);
        let notes = notes(&kept.recipe);
        let prepared = kept.prepared(SqliteStaged::Open(Box::new(database)))?;
        Ok(Attempt::Done(Box::new(Prepared { notes, ..prepared })))
    }

    /// Puts what a session recorded where it is kept, and says in the recipe what it is.
    pub(super) fn keep(
        &self,
        database: &Database,
        session: &Session<'_>,
        kept: &mut Kept,
        is_whole: &dyn Fn(&str) -> bool,
    ) -> Result<(), SqliteFault> {
        let wrong = |error| database.wrong(error);
        if session.memory_bytes() > IN_MEMORY_BYTES_MAX {
            return self.keep_streamed(database, session, kept, is_whole);
        }
        let bytes = session.changeset().map_err(wrong)?;
        kept.recipe.tables = tables_of(&mut &*bytes, is_whole).map_err(wrong)?;
        if !bytes.is_empty() {
            let by = kept.recipe.mark;
            kept.recipe.rows = Some(self.store(by, bytes, kept)?);
        }
        Ok(())
    }

    /// The same for many rows, by a file without a name: they are in memory once, in the session, and not a second time.
    fn keep_streamed(
        &self,
        database: &Database,
        session: &Session<'_>,
        kept: &mut Kept,
        is_whole: &dyn Fn(&str) -> bool,
    ) -> Result<(), SqliteFault> {
        let by = kept.recipe.mark;
        let wrong =
            |error: io::Error| database.wrong(backout_changeset::ChangesetError::from(error));
        let directory = self.context().depots.staging(by).map_err(wrong)?;
        let path = directory.as_path().join(format!("changes-{}", by.short()));
        let mut options = File::options();
        let file = options.read(true).write(true).create_new(true).open(&path);
        let mut file = file.map_err(wrong)?;
        std::fs::remove_file(&path).map_err(wrong)?;
        let mut to = BufWriter::new(&mut file);
        let written = session.write_to(&mut to);
        written.map_err(|error| database.wrong(error))?;
        to.flush().map_err(wrong)?;
        drop(to);
        file.rewind().map_err(wrong)?;
        let tables = tables_of(&mut BufReader::new(&mut file), is_whole);
        kept.recipe.tables = tables.map_err(|error| database.wrong(error))?;
        file.rewind().map_err(wrong)?;
        let (digest, size) = self.context().stash.stash(by, &mut file)?;
        kept.recipe.rows = Some(digest);
        kept.copied_bytes += size;
        Ok(())
    }

    /// Puts bytes into the store, at once or with the record.
    pub(super) fn store(
        &self,
        by: OperationId,
        bytes: Vec<u8>,
        kept: &mut Kept,
    ) -> Result<Digest, SqliteFault> {
        if bytes.len() as u64 <= RIDING_BYTES_MAX {
            let content = NewContent::of(bytes);
            let digest = content.digest;
            kept.contents.push(content);
            return Ok(digest);
        }
        let (digest, size) = self.context().stash.stash(by, &mut &*bytes)?;
        kept.copied_bytes += size;
        Ok(digest)
    }

    /// Makes the write count.
    pub(super) fn carry_out(
        &self,
        recipe: &SqliteRecipe,
        staged: SqliteStaged,
    ) -> Result<Applied, SqliteFault> {
        let context = self.context();
        context.reach("sqlite.armed")?;
        let is_undo = matches!(staged, SqliteStaged::Planned);
        let database = match staged {
            SqliteStaged::Open(database) => *database,
            SqliteStaged::Planned => self.redone(recipe)?,
        };
        context.reach("sqlite.applied")?;
        database.mark(recipe.mark)?;
        context.reach("sqlite.marked")?;
        database.commit()?;
        if recipe.was_empty && is_undo {
            database.empty_if_nothing_is_left();
        }
        backout_crashpoint::crash_point("sqlite.committed");
        Ok(Applied {
            completion: Completion(json!({ "committed": true })),
            durability: Durability::Process,
            unlike: Vec::new(),
            is_idle: false,
        })
    }

    /// Does what a recipe says, in a transaction that stays open. What does not fit exactly is an error.
    fn redone(&self, recipe: &SqliteRecipe) -> Result<Database, SqliteFault> {
        let database = Database::open(recipe.path.as_path())?;
        database.silence()?;
        let reshapes = !recipe.objects.is_empty() || !recipe.images.is_empty();
        if reshapes {
            database.execute("PRAGMA foreign_keys=OFF")?;
        }
        database.begin()?;
        let changed = |path: &TargetPath| SqliteFault::Changed {
            path: path.to_string(),
        };
        let dangling = if reshapes {
            count_dangling(&database)?
        } else {
            0
        };
        if reshapes {
            let placed = placed(&database, recipe)?;
            if placed.iter().any(|it| it.state != State::Before) {
                return Err(changed(&recipe.path));
            }
            self.reshape(&database, recipe, true)?;
        }
        if let Some(mut changes) = self.changes(recipe)? {
            let how = Apply {
                inverted: false,
                wants: None,
                conflict: &mut |_, _| Answer::Stop,
            };
            let done = apply(&database.connection, &mut changes, how);
            done.map_err(|error| database.wrong(error))?;
        }
        if reshapes && count_dangling(&database)? > dangling + recipe.dangling.max(0) {
            return Err(changed(&recipe.path));
        }
        Ok(database)
    }
}
