//! What a command under `run` did to a database, row by row.
//!
//! - The file, its `-wal`, `-shm` and `-journal` are one thing. When the command is over, what they were is compared with what they are,
//!   both as copies: nobody's connection notices.
//! - The recipe has both ways back: the files, as the driver of files keeps them, and the rows, as a changeset. Where the files are
//!   as the command left them and nobody has them open, they come back bit for bit. Else the rows do, in a transaction in the
//!   database as it is.
//!
//! Changes of the schema, tables whose rows have no names, and databases above a size stay files.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use backout_changeset::{Session, invert};
use backout_files::Files as _;
use backout_model::ports::{
    Applied, Driver, DriverError, Examined, How, LookedAt, Outline, Prepared, PreparedUndo,
    Request, Scope, State, ValueChange,
};
use backout_model::{
    Armed, Completion, Digest, DriverName, Effect, JsonText, Key, OperationId, OutcomeKind, Recipe,
    Strategy, TargetOutcome, TargetPath,
};
use serde::{Deserialize, Serialize};

use super::carry::Kept;
use super::database::Database;
use super::driver::SqliteDriver;
use super::error::SqliteFault;
use super::recipe::SqliteRecipe;
use super::run::{has_null_keys, virtual_tables};
use super::schema::{Schema, image_of};
use super::vague::is_vague;
use crate::command::Settled;
use crate::file::Shown;

/// The name that its recipes bear.
pub const SQLITE_FILES: DriverName = DriverName::literal("sqlite-files");

/// The newest version of a recipe's body.
const VERSION: u16 = 1;

/// Databases above this stay files: both sides are copied and read whole.
const BYTES_MAX: u64 = 256 * 1024 * 1024;

/// How a database begins.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// What lies beside a database and belongs to it.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Takes back what commands did to databases.
#[derive(Debug)]
pub struct SqliteFilesDriver {
    rows: SqliteDriver,
}

/// The body: both ways back.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct FilesRecipe {
    rows: SqliteRecipe,
    file: Recipe,
}

/// Opens without waiting for anybody.
const NO_WAIT: i32 = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();

/// Tells whether a name is one of those that lie beside a database.
pub fn is_beside(path: &Path) -> bool {
    let text = path.to_string_lossy();
    BESIDE.iter().any(|end| text.ends_with(end))
}

/// Gives the database that a name belongs to, if there is one: itself, or the one that it lies beside.
pub fn database_of(path: &Path) -> Option<PathBuf> {
    let text = path.to_str()?;
    let main = BESIDE.iter().find_map(|end| text.strip_suffix(end));
    let main = Path::new(main.unwrap_or(text));
    // A pipe is not waited for.
    if !fs::symlink_metadata(main).ok()?.is_file() {
        return None;
    }
    let mut head = [0; MAGIC.len()];
    let mut options = fs::File::options();
    let options = options.read(true).custom_flags(NO_WAIT);
    let mut file = options.open(main).ok()?;
    io::Read::read_exact(&mut file, &mut head).ok()?;
    (head == MAGIC).then(|| main.to_owned())
}

/// Names a database and all that lies beside it.
pub fn with_beside(main: &Path) -> Vec<PathBuf> {
    let beside = BESIDE.iter().map(|end| beside(main, end));
    std::iter::once(main.to_owned()).chain(beside).collect()
}

fn beside(main: &Path, end: &str) -> PathBuf {
    let mut name = main.as_os_str().to_owned();
    name.push(end);
    name.into()
}

impl FilesRecipe {
    fn of(effect: &Effect) -> Result<Self, SqliteFault> {
        Ok(effect.recipe.read(VERSION)?)
    }

    fn written(&self) -> Result<Recipe, SqliteFault> {
        let rows = self.rows.written()?;
        let mut contents = [self.file.contents.clone(), rows.contents].concat();
        contents.sort_unstable();
        contents.dedup();
        Ok(Recipe {
            contents,
            slots: self.file.slots.clone(),
            ..Recipe::of(SQLITE_FILES, VERSION, self)?
        })
    }

    fn as_rows(&self) -> Result<Effect, SqliteFault> {
        Ok(Effect {
            recipe: self.rows.written()?,
            // That the command is over is known: nobody looks for a mark.
            completion: Some(Completion::default()),
        })
    }

    fn as_file(&self, effect: &Effect) -> Effect {
        Effect {
            recipe: self.file.clone(),
            completion: effect.completion.clone(),
        }
    }
}

impl SqliteFilesDriver {
    /// Takes the driver of rows, and by it that of files.
    pub const fn new(rows: SqliteDriver) -> Self {
        Self { rows }
    }

    /// Tells what a command did to a database in rows, if it can be told so; none if it stays files.
    pub fn in_rows(
        &self,
        id: OperationId,
        main: &Path,
        settled: &Settled,
    ) -> Result<Option<Settled>, DriverError> {
        let staging = self.rows.context().depots.staging(id);
        let Ok(staging) = staging else {
            return Ok(None);
        };
        let sides = Sides {
            driver: self,
            main,
            settled,
            directory: staging.as_path().join(format!("rows-{}", id.short())),
        };
        let found = sides.compared(id);
        let _removed = fs::remove_dir_all(&sides.directory);
        let Some(kept) = found? else {
            return Ok(None);
        };
        let mut contents = settled.contents.clone();
        contents.extend(kept.contents);
        let body = FilesRecipe {
            rows: kept.recipe,
            file: settled.recipe.clone(),
        };
        Ok(Some(Settled {
            targets: body.rows.targets()?,
            recipe: body.written()?,
            contents,
            completion: settled.completion.clone(),
            counts: settled.counts,
            reads: settled.reads.clone(),
            lasting: settled.lasting.clone(),
            is_nothing: settled.is_nothing,
            doubts: settled.doubts.clone(),
        }))
    }

    /// Prepares the way back by files, if they are as they were left, nobody has them open, and all is meant.
    fn by_files(
        &self,
        id: OperationId,
        effect: &Effect,
        recipe: &FilesRecipe,
        how: How<'_>,
    ) -> Result<Option<PreparedUndo>, DriverError> {
        let targets = recipe.rows.targets()?;
        if !targets.iter().all(|target| how.means(target)) {
            return Ok(None);
        }
        let files = self.rows.files();
        let file = recipe.as_file(effect);
        let examined = Driver::examine(files, &file, false)?;
        let is_after = |it: &Examined| it.state == State::After && it.shared.is_none();
        let main = recipe.rows.path.as_path();
        if !examined.iter().all(is_after) || is_open_elsewhere(&with_beside(main)) {
            return Ok(None);
        }
        let whole = How { only: None, ..how };
        let undo = Driver::prepare_undo(files, id, &file, whole)?;
        let is_done = |outcome: &TargetOutcome| outcome.kind == OutcomeKind::Restored;
        if !undo.outcomes.iter().all(is_done) {
            return Ok(None);
        }
        let mut kept = Kept::of(SqliteRecipe {
            mark: id,
            tables: recipe.rows.tables.clone(),
            ..SqliteRecipe::empty(recipe.rows.path.clone(), id)
        });
        if let Some(rows) = &recipe.rows.rows {
            let bytes = self.rows.context().contents.read(rows);
            let bytes = bytes.map_err(SqliteFault::from)?;
            let back = invert(&bytes).map_err(|error| SqliteFault::of(main, error))?;
            kept.recipe.rows = Some(self.rows.store(id, back, &mut kept)?);
        }
        let mut prepared = undo.prepared;
        prepared.contents.extend(kept.contents);
        prepared.copied_bytes += kept.copied_bytes;
        let body = FilesRecipe {
            rows: kept.recipe,
            file: prepared.recipe,
        };
        prepared.recipe = body.written()?;
        prepared.targets.clone_from(&targets);
        let outcome = |target| TargetOutcome::new(target, OutcomeKind::Restored);
        let outcomes = targets.into_iter().map(outcome).collect();
        Ok(Some(PreparedUndo { prepared, outcomes }))
    }
}

/// Both sides of what a command did to a database.
struct Sides<'s> {
    driver: &'s SqliteFilesDriver,
    main: &'s Path,
    settled: &'s Settled,
    directory: PathBuf,
}

impl Sides<'_> {
    /// Gives the bytes that a file had before the command; none if they cannot be had, or nothing was there.
    fn before(&self, path: &Path) -> Result<Option<Vec<u8>>, DriverError> {
        let effect = Effect {
            recipe: self.settled.recipe.clone(),
            completion: Some(self.settled.completion.clone()),
        };
        let files = self.driver.rows.files();
        let sides = files.sides(&effect)?;
        let Some(side) = sides.into_iter().find(|side| side.path.as_path() == path) else {
            // The command did not touch it.
            return Ok(fs::read(path).ok());
        };
        let Some(was) = side.before else {
            return Ok(None);
        };
        let riding = |digest: &Digest| {
            let mut riding = self.settled.contents.iter();
            riding.find(|it| it.digest == *digest && it.over.is_none())
        };
        if let Some(content) = was.digest().as_ref().and_then(riding) {
            return Ok(Some(content.bytes.clone()));
        }
        Ok(match files.read(&was, BYTES_MAX)? {
            Shown::Bytes(bytes) => Some(bytes),
            Shown::TooMany | Shown::Lost(_) => None,
        })
    }

    /// Puts copies of both sides into the directory, and gives their databases. None if there are not two to compare.
    fn copied(&self) -> Result<Option<(PathBuf, PathBuf)>, DriverError> {
        let wal = beside(self.main, "-wal");
        let journal = beside(self.main, "-journal");
        let size = |path: &Path| fs::metadata(path).map_or(0, |found| found.len());
        if size(self.main) + size(&wal) > BYTES_MAX || size(&journal) > 0 {
            return Ok(None);
        }
        let (Some(before), before_wal) = (self.before(self.main)?, self.before(&wal)?) else {
            return Ok(None);
        };
        if !before.starts_with(MAGIC) || self.before(&journal)?.is_some_and(|it| !it.is_empty()) {
            return Ok(None);
        }
        let stamp = |path: &Path| {
            let found = fs::metadata(path).ok()?;
            Some((found.len(), found.mtime(), found.mtime_nsec()))
        };
        let then = (stamp(self.main), stamp(&wal));
        let (old, new) = (self.directory.join("old"), self.directory.join("new"));
        let copy = || -> io::Result<()> {
            fs::create_dir_all(&self.directory)?;
            fs::write(&old, &before)?;
            if let Some(bytes) = &before_wal {
                fs::write(beside(&old, "-wal"), bytes)?;
            }
            fs::copy(self.main, &new)?;
            if wal.exists() {
                fs::copy(&wal, beside(&new, "-wal"))?;
            }
            Ok(())
        };
        // Without room for copies, and where somebody writes at this moment, it stays files.
        let is_copied = copy().is_ok() && then == (stamp(self.main), stamp(&wal));
        Ok(is_copied.then_some((old, new)))
    }

    /// Finds out which rows differ. None if that is not told in rows, or no row does.
    fn compared(&self, id: OperationId) -> Result<Option<Kept>, DriverError> {
        let Some((old, new)) = self.copied()? else {
            return Ok(None);
        };
        let (Ok(before), Ok(after)) = (Database::open(&old), Database::open(&new)) else {
            return Ok(None);
        };
        let schema = |database: &Database| Schema::of(&database.connection).ok();
        let (Some(one), Some(other)) = (schema(&before), schema(&after)) else {
            return Ok(None);
        };
        let nowhere = std::collections::BTreeSet::new();
        if !one.tables_unlike(&other).is_empty() || !one.turns(&other, &nowhere).is_empty() {
            return Ok(None);
        }
        let special = virtual_tables(&after)?;
        let mut plain = Vec::new();
        for table in other.tables.keys() {
            let is_special = special.contains(&table.to_lowercase());
            if !is_special && !is_vague(&after, table)? && !is_odd(&before, &after, table)? {
                plain.push(table);
                continue;
            }
            let image = |database: &Database| {
                let image = image_of(&database.connection, table).ok().flatten();
                image.map(|(image, _)| image)
            };
            match (image(&before), image(&after)) {
                (Some(one), Some(other)) if one.is(&other) => {}
                _ => return Ok(None),
            }
        }
        drop(before);
        let Some(path) = TargetPath::new(self.main).ok() else {
            return Ok(None);
        };
        let attached = after
            .connection
            .execute("ATTACH ?1 AS before", [old.to_string_lossy()]);
        attached.map_err(|error| after.wrong(error))?;
        let session = Session::new(&after.connection, |_| true);
        let session = session.map_err(|error| after.wrong(error))?;
        for table in plain {
            let compared = session.diff("before", table);
            compared.map_err(|error| after.wrong(error))?;
        }
        let mut kept = Kept::of(SqliteRecipe::empty(path, id));
        self.driver
            .rows
            .keep(&after, &session, &mut kept, &|_| false)?;
        Ok(kept.recipe.rows.is_some().then_some(kept))
    }
}

fn is_odd(before: &Database, after: &Database, table: &str) -> Result<bool, SqliteFault> {
    Ok(has_null_keys(before, table)? || has_null_keys(after, table)?)
}

/// Tells whether another process has one of these files open, as far as this one may look.
fn is_open_elsewhere(paths: &[PathBuf]) -> bool {
    let file = |path: &PathBuf| {
        let found = fs::metadata(path).ok()?;
        Some((found.dev(), found.ino()))
    };
    let wanted: Vec<(u64, u64)> = paths.iter().filter_map(file).collect();
    let me = std::process::id().to_string();
    let Ok(processes) = fs::read_dir("/proc") else {
        // Who cannot be asked may have it open.
        return true;
    };
    let processes = processes.filter_map(Result::ok).filter(|it| {
        let name = it.file_name();
        let name = name.to_string_lossy();
        name.bytes().all(|byte| byte.is_ascii_digit()) && name != me
    });
    for process in processes {
        let Ok(open) = fs::read_dir(process.path().join("fd")) else {
            continue;
        };
        let is_one = |entry: fs::DirEntry| {
            fs::metadata(entry.path()).is_ok_and(|it| wanted.contains(&(it.dev(), it.ino())))
        };
        if open.filter_map(Result::ok).any(is_one) {
            return true;
        }
    }
    false
}

fn nobody_asks<T>() -> Result<T, DriverError> {
    Err(SqliteFault::refused(
        "only a command changes a database so",
        "what it did is told in rows when it is over",
        "run the command with `backout run`",
    )
    .into())
}

impl Driver for SqliteFilesDriver {
    fn name(&self) -> DriverName {
        SQLITE_FILES
    }

    fn scope(&self, _request: &dyn Request) -> Result<Scope, DriverError> {
        nobody_asks()
    }

    fn read_request(&self, _text: &JsonText) -> Result<Box<dyn Request>, DriverError> {
        nobody_asks()
    }

    fn prepare(
        &self,
        _id: OperationId,
        _request: &dyn Request,
        _strategy: Strategy,
    ) -> Result<Prepared, DriverError> {
        nobody_asks()
    }

    fn apply(&self, armed: Armed) -> Result<Applied, DriverError> {
        let (id, _, staged) = armed.into_parts();
        Ok(self.rows.files().carry_out(id, &staged.take()?)?)
    }

    fn prepare_undo(
        &self,
        id: OperationId,
        effect: &Effect,
        how: How<'_>,
    ) -> Result<PreparedUndo, DriverError> {
        let recipe = FilesRecipe::of(effect)?;
        if how.is_unfinished {
            // A step by files that died is put back by files.
            return Driver::prepare_undo(self.rows.files(), id, &recipe.as_file(effect), how);
        }
        match self.by_files(id, effect, &recipe, how)? {
            Some(undo) => Ok(undo),
            None => Driver::prepare_undo(&self.rows, id, &recipe.as_rows()?, how),
        }
    }

    fn outline(&self, effect: &Effect) -> Result<Outline, DriverError> {
        Ok(Outline::of(FilesRecipe::of(effect)?.rows.targets()?))
    }

    fn examine(&self, effect: &Effect, to_the_end: bool) -> Result<Vec<Examined>, DriverError> {
        let recipe = FilesRecipe::of(effect)?;
        // Where the files tell, nobody opens the database.
        let files = Driver::examine(self.rows.files(), &recipe.as_file(effect), to_the_end)?;
        for state in [State::After, State::Before] {
            if files.iter().all(|it| it.state == state) {
                let targets = recipe.rows.targets()?.into_iter().enumerate();
                let each = targets.map(|(at, target)| Examined::new(at, target, state.clone()));
                return Ok(each.collect());
            }
        }
        Driver::examine(&self.rows, &recipe.as_rows()?, to_the_end)
    }

    fn foresees_by_trying(&self) -> bool {
        true
    }

    fn check_kept(
        &self,
        effect: &Effect,
        is_needed: &dyn Fn(&Key) -> bool,
    ) -> Result<Vec<LookedAt>, DriverError> {
        let recipe = FilesRecipe::of(effect)?;
        let targets = recipe.rows.targets()?;
        let is_any = targets.iter().any(|target| is_needed(target.key()));
        let file = recipe.as_file(effect);
        Driver::check_kept(self.rows.files(), &file, &|_| is_any)
    }

    fn values(&self, effect: &Effect) -> Result<Option<Vec<ValueChange>>, DriverError> {
        self.rows.values(&FilesRecipe::of(effect)?.as_rows()?)
    }
}
