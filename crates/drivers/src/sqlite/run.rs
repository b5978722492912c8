//! Running statements that somebody else wrote, one by one, each looked at before it does anything.
//!
//! `SQLite` itself says what a statement would do, while it is prepared. Nothing is guessed from the text.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use backout_changeset::rusqlite::fallible_iterator::FallibleIterator as _;
use backout_changeset::rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use backout_changeset::rusqlite::{self, Batch, ErrorCode, Statement};
use backout_changeset::{Value, memory_bytes};

use super::database::{Database, MARKS};
use super::error::SqliteFault;
use super::name::quoted;
use super::request::ResultSet;
use super::vague::is_vague;

/// How many rows of a statement that reads are given.
pub(super) const ROWS_MAX: usize = 1000;

/// How much memory the rows that change may take until they are in the store.
const KEPT_MIB_MAX: u64 = 512;

/// After so many steps of `SQLite`'s machine the memory is looked at.
const STEPS_BETWEEN_LOOKS: i32 = 10_000;

/// What a statement would do.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    Writes(String),
    /// A table as a whole changes, or goes.
    Whole(String),
    Pragma(String, Option<String>),
    Refused(&'static str),
}

/// What `SQLite` says of the statement that is being prepared.
#[derive(Debug, Default, Clone)]
pub(super) struct Watch(Arc<Mutex<Vec<Seen>>>);

impl Watch {
    /// Begins to listen, and to stop what takes too much memory.
    pub(super) fn begin(database: &mut Database) -> Result<Self, SqliteFault> {
        let watch = Self::default();
        let (listening, path) = (watch.clone(), database.path.clone());
        let wrong = |error| SqliteFault::of(&path, error);
        let listen = move |context: AuthContext<'_>| {
            listening.hear(&context);
            Authorization::Allow
        };
        database
            .connection
            .authorizer(Some(listen))
            .map_err(wrong)?;
        let limit = memory_bytes() + KEPT_MIB_MAX * 1024 * 1024;
        let is_too_much = move || memory_bytes() > limit;
        let connection = &mut database.connection;
        connection
            .progress_handler(STEPS_BETWEEN_LOOKS, Some(is_too_much))
            .map_err(wrong)?;
        Ok(watch)
    }

    fn hear(&self, context: &AuthContext<'_>) {
        let is_temporary = context.database_name == Some("temp");
        let seen = match context.action {
            AuthAction::Insert { table_name }
            | AuthAction::Delete { table_name }
            | AuthAction::Update { table_name, .. }
                if !is_temporary =>
            {
                Some(Seen::Writes(table_name.to_owned()))
            }
            AuthAction::DropTable { table_name }
            | AuthAction::AlterTable {
                table_name,
                database_name: "main",
            } => Some(Seen::Whole(table_name.to_owned())),
            AuthAction::Pragma {
                pragma_name,
                pragma_value,
            } => Some(Seen::Pragma(
                pragma_name.to_ascii_lowercase(),
                pragma_value.map(str::to_owned),
            )),
            AuthAction::Attach { .. } => Some(Seen::Refused("ATTACH")),
            AuthAction::Detach { .. } => Some(Seen::Refused("DETACH")),
            AuthAction::Transaction { .. } => Some(Seen::Refused("BEGIN, COMMIT and ROLLBACK")),
            AuthAction::Analyze { .. } => Some(Seen::Refused("ANALYZE")),
            AuthAction::CreateVtable { .. } | AuthAction::DropVtable { .. } => {
                Some(Seen::Refused("a virtual table"))
            }
            AuthAction::Function {
                function_name: "load_extension",
            } => Some(Seen::Refused("load_extension")),
            _ => None,
        };
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        heard.extend(seen);
    }

    fn take(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What statements did.
#[derive(Debug, Default)]
pub(super) struct Ran {
    pub(super) results: Vec<ResultSet>,
    /// Whether all of them only read. Then a statement that writes was not run.
    pub(super) only_read: bool,
    /// Tables that have to be kept whole: they change as a whole, or nothing tells one of their rows from another.
    pub(super) whole: BTreeSet<String>,
}

/// Runs statements. If they shall only read, the first that writes ends it.
pub(super) fn run(
    database: &Database,
    watch: &Watch,
    statements: &str,
    must_read: bool,
) -> Result<Ran, SqliteFault> {
    let wrong = |cause: rusqlite::Error| said(database, cause);
    let mut ran = Ran {
        only_read: true,
        ..Ran::default()
    };
    let mut written = BTreeSet::new();
    let special = virtual_tables(database)?;
    let mut batch = Batch::new(&database.connection, statements);
    watch.take();
    while let Some(mut statement) = batch.next().map_err(wrong)? {
        let seen = watch.take();
        let is_reading = statement.readonly();
        allowed(database, &seen, &special)?;
        if !is_reading && must_read {
            ran.only_read = false;
            return Ok(ran);
        }
        ran.only_read &= is_reading;
        for seen in seen {
            match seen {
                Seen::Writes(table) if !table.starts_with("sqlite_") => {
                    if written.insert(table.clone())
                        && (has_null_keys(database, &table)? || is_vague(database, &table)?)
                    {
                        ran.whole.insert(table);
                    }
                }
                Seen::Whole(table) => {
                    ran.whole.insert(table);
                }
                Seen::Writes(_) | Seen::Pragma(..) | Seen::Refused(_) => {}
            }
        }
        let found = results(&mut statement).map_err(wrong)?;
        ran.results.extend(found);
        watch.take();
    }
    for table in written {
        if has_null_keys(database, &table)? {
            ran.whole.insert(table);
        }
    }
    Ok(ran)
}

/// Runs statements that only read, and gives what they found; none if one of them writes.
pub fn read_only(path: &Path, statements: &str) -> Result<Option<Vec<ResultSet>>, SqliteFault> {
    match read_only_once(path, statements) {
        // Somebody died in the middle of a transaction, and only who may write can take it back. Every reader would.
        Err(SqliteFault::ReadOnly { .. }) => {
            Database::open(path)?.execute("SELECT count(*) FROM sqlite_schema")?;
            read_only_once(path, statements)
        }
        read => read,
    }
}

fn read_only_once(path: &Path, statements: &str) -> Result<Option<Vec<ResultSet>>, SqliteFault> {
    let mut database = Database::open_to_look(path)?;
    let watch = Watch::begin(&mut database)?;
    database.execute("BEGIN")?;
    let ran = run(&database, &watch, statements, true)?;
    Ok(ran.only_read.then_some(ran.results))
}

/// Steps through a statement. Its rows, if it has columns.
fn results(statement: &mut Statement<'_>) -> rusqlite::Result<Option<ResultSet>> {
    let names = statement.column_names();
    let columns: Vec<String> = names.into_iter().map(str::to_owned).collect();
    let mut found = ResultSet {
        columns,
        ..ResultSet::default()
    };
    let width = found.columns.len();
    let mut rows = statement.raw_query();
    // To its end, also past what is shown: a statement that returns rows may write, too.
    while let Some(row) = rows.next()? {
        if found.rows.len() == ROWS_MAX {
            found.has_more = true;
            continue;
        }
        let values = (0..width).map(|at| Ok(Value::from(row.get_ref(at)?)));
        found.rows.push(values.collect::<rusqlite::Result<_>>()?);
    }
    Ok((width > 0).then_some(found))
}

fn said(database: &Database, cause: rusqlite::Error) -> SqliteFault {
    match cause.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => SqliteFault::TooMuch {
            limit_mib: KEPT_MIB_MAX,
        },
        Some(
            ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::NotADatabase
            | ErrorCode::DatabaseCorrupt
            | ErrorCode::ReadOnly,
        ) => database.wrong(cause),
        _ => SqliteFault::Statement { cause },
    }
}

/// What may be asked of a database, with and without a value. All else sets something that no transaction takes back.
const PRAGMAS: [&str; 24] = [
    "application_id",
    "auto_vacuum",
    "collation_list",
    "compile_options",
    "data_version",
    "database_list",
    "encoding",
    "foreign_keys",
    "foreign_key_check",
    "foreign_key_list",
    "freelist_count",
    "function_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "integrity_check",
    "journal_mode",
    "page_count",
    "page_size",
    "quick_check",
    "table_info",
    "table_list",
    "table_xinfo",
    "user_version",
];

/// Which of them set something if they have a value.
const SETTINGS: [&str; 8] = [
    "application_id",
    "auto_vacuum",
    "encoding",
    "foreign_keys",
    "journal_mode",
    "page_count",
    "page_size",
    "user_version",
];

/// Refuses what could not be taken back.
fn allowed(
    database: &Database,
    seen: &[Seen],
    special: &BTreeSet<String>,
) -> Result<(), SqliteFault> {
    let drops = seen.iter().any(|it| matches!(it, Seen::Whole(_)));
    let way = || {
        let path = database.path.display();
        format!("run it with `backout run -- sqlite3 {path}`: then the file comes back as a whole")
    };
    let refused = |what: String, why: &str| Err(SqliteFault::refused(what, why, way()));
    for it in seen {
        match it {
            Seen::Writes(table) if table == MARKS => {
                return refused(
                    format!("the table `{MARKS}` cannot be written"),
                    "its rows tell which operations were committed",
                );
            }
            Seen::Writes(table) if special.contains(&table.to_ascii_lowercase()) => {
                return refused(
                    format!("the virtual table `{table}` cannot be written row by row"),
                    "only its module knows what its rows are",
                );
            }
            Seen::Writes(table) if is_own(table) && !drops => {
                return refused(
                    format!("SQLite's own table `{table}` cannot be written"),
                    "what is in it is not recorded",
                );
            }
            Seen::Whole(table) if table == MARKS => {
                return refused(
                    format!("the table `{MARKS}` cannot be changed"),
                    "its rows tell which operations were committed",
                );
            }
            Seen::Pragma(name, value) => {
                let sets = value.is_some() && SETTINGS.contains(&name.as_str());
                if sets || !PRAGMAS.contains(&name.as_str()) {
                    return refused(
                        format!("PRAGMA {name} cannot be run"),
                        "it changes what no transaction takes back",
                    );
                }
            }
            Seen::Refused(what) => {
                return refused(
                    format!("{what} cannot be used here"),
                    "it reaches out of the one transaction that is taken back",
                );
            }
            Seen::Writes(_) | Seen::Whole(_) => {}
        }
    }
    Ok(())
}

/// Tells whether a table is one of `SQLite`'s own, other than the schema.
fn is_own(table: &str) -> bool {
    let table = table.to_ascii_lowercase();
    let schema = [
        "sqlite_schema",
        "sqlite_master",
        "sqlite_temp_schema",
        "sqlite_temp_master",
    ];
    table.starts_with("sqlite_") && !schema.contains(&table.as_str())
}

/// Lists the virtual tables, in lower case, and those that their modules keep.
pub(super) fn virtual_tables(database: &Database) -> Result<BTreeSet<String>, SqliteFault> {
    let sql = "SELECT lower(name) FROM pragma_table_list WHERE type IN ('virtual', 'shadow')";
    let wrong = |error| database.wrong(error);
    let mut statement = database.connection.prepare(sql).map_err(wrong)?;
    let names = statement.query_map([], |row| row.get(0)).map_err(wrong)?;
    names.collect::<Result<_, _>>().map_err(wrong)
}

/// Tells whether a table has rows with NULL in their key: nothing tells one of them from another.
pub(super) fn has_null_keys(database: &Database, table: &str) -> Result<bool, SqliteFault> {
    let wrong = |error| database.wrong(error);
    let sql = "SELECT name FROM pragma_table_xinfo(?1, 'main') WHERE pk > 0 AND \"notnull\" = 0 \
               AND NOT (upper(type) = 'INTEGER' AND 1 = (SELECT count(*) FROM pragma_table_xinfo(?1, 'main') WHERE pk > 0))";
    let mut statement = database.connection.prepare(sql).map_err(wrong)?;
    let columns = statement.query_map([table], |row| row.get::<_, String>(0));
    let columns: Result<Vec<_>, _> = columns.map_err(wrong)?.collect();
    for column in columns.map_err(wrong)? {
        let sql = format!(
            "SELECT EXISTS (SELECT 1 FROM main.{} WHERE {} IS NULL)",
            quoted(table),
            quoted(&column)
        );
        let found = database.connection.query_row(&sql, [], |row| row.get(0));
        if found.map_err(wrong)? {
            return Ok(true);
        }
    }
    Ok(false)
}
