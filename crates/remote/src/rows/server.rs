//! What a database server does for the driver: all that differs between kinds of servers. How rows are compared, taken back and
//! told is the same for all of them (`driver.rs`, `undo.rs`).

use std::time::Duration;

use backout_model::ports::State;
use backout_model::{DriverName, OperationId};
use serde::Serialize;

use super::body::{Body, Changed};
use super::error::RowsError;
use super::request::Answers;
use super::schema::SchemaChange;
use super::{Kind, Place};

/// How long a server may take to answer at all.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// What names the rows of an answer: each value as text, none is NULL.
pub type TextRow = Vec<Option<String>>;

/// What enrolling found and made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Enrolled {
    /// The database.
    #[serde(flatten)]
    pub place: Place,
    /// How many tables are covered.
    pub covered: usize,
    /// Tables whose changes go unseen, and why.
    pub uncovered: Vec<Uncovered>,
    /// Whether tables that come later are covered as they are made.
    pub covers_new: bool,
    /// Whether an undo can keep other triggers from running a second time.
    pub stills_triggers: bool,
}

/// A table that is not covered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Uncovered {
    /// With its schema.
    pub table: String,
    /// In words for people.
    pub why: String,
}

/// A transaction of another client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Foreign {
    /// The transaction.
    pub xact: String,
    /// The operation that it said it belongs to: the command that `backout run` ran.
    pub operation: Option<String>,
    /// Who made it: what it said itself, or the name of the program, or the role.
    pub actor: String,
    /// What it changed in the schema, which nothing takes back.
    pub ddl: Option<String>,
    /// What it did, in one line.
    pub summary: String,
}

impl Foreign {
    /// Tells of a transaction by who made it and what it changed; none if that is nothing in the end.
    pub(crate) fn of(
        xact: String,
        actor: String,
        changes: &[Changed],
        operation: Option<String>,
        ddl: Option<String>,
    ) -> Option<Self> {
        let said: Vec<String> = changes.iter().take(3).map(|it| it.change.said()).collect();
        let more = if changes.len() > 3 { ", …" } else { "" };
        // What it did and undid itself is nothing that could be taken back.
        (!changes.is_empty()).then(|| Self {
            summary: format!("{actor} wrote {}{more}", said.join(", ")),
            xact,
            operation,
            actor,
            ddl,
        })
    }
}

/// A connection to a database, as those see it who enroll databases and take up what other clients did.
pub trait Database {
    /// Tells which database it is.
    fn identity(&mut self) -> Result<Place, RowsError>;

    /// Enrolls it under a name, or adds what is new since.
    fn enroll(&mut self, name: Option<&str>) -> Result<Enrolled, RowsError>;

    /// Says what is covered and what is not.
    fn status(&mut self) -> Result<Enrolled, RowsError>;

    /// Takes everything of ours away. The log goes with it: what it held can no longer be undone.
    fn unenroll(&mut self) -> Result<Place, RowsError>;

    /// Lists the transactions that no operation stands for, the oldest first.
    fn foreign(&mut self) -> Result<Vec<Foreign>, RowsError>;

    /// Lists the operations that the log holds something for.
    fn marked(&mut self) -> Result<Vec<String>, RowsError>;

    /// Lets go of what the log holds for operations that cannot be undone any more.
    fn prune(&mut self, operations: &[String]) -> Result<u64, RowsError>;
}

/// Connects to the database behind a URL, whatever kind of server it has. The password comes from the URL or from where the
/// server's own clients look.
pub fn connect(url: &str, within: Duration) -> Result<Box<dyn Database>, RowsError> {
    match Kind::of(url) {
        #[cfg(feature = "mysql")]
        Some(Kind::Mysql) => Ok(Box::new(crate::mysql::Connection::open(url, within)?)),
        #[cfg(feature = "postgres")]
        Some(Kind::Postgres) => Ok(Box::new(crate::postgres::Connection::open(url, within)?)),
        #[expect(unreachable_patterns, reason = "a kind may be left out of the build")]
        None | Some(_) => Err(RowsError::Unreachable {
            url: crate::secret::without_password(url),
            why: "this program has no driver for it".to_owned(),
        }),
    }
}

/// A table as the server knows it now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Its number.
    pub relation: u32,
    /// Its schema and name.
    pub names: (String, String),
    /// Its name as SQL, quoted.
    pub sql: String,
    /// The columns of its primary key, quoted; empty if it has none.
    pub key: Vec<String>,
    /// The columns that can be written, quoted: not those that the server makes itself.
    pub columns: Vec<String>,
    /// Those of them that an UPDATE may set.
    pub settable: Vec<String>,
    /// Why its rows cannot be compared, if they cannot.
    pub changed: Option<String>,
    /// How the values of the columns are read and written, for a server whose rows have no text of their own.
    pub values: Vec<ValueSql>,
}

impl Table {
    /// Stands for a table that nobody finds any more.
    pub(crate) fn gone(relation: u32) -> Self {
        let name = format!("dropped-{relation}");
        Self {
            relation,
            names: ("?".to_owned(), name.clone()),
            sql: name,
            key: Vec::new(),
            columns: Vec::new(),
            settable: Vec::new(),
            changed: Some("the table is gone".to_owned()),
            values: Vec::new(),
        }
    }
}

/// How the value of a column becomes text, and text the value, in SQL. `{}` stands for what is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueSql {
    /// The text of a value.
    pub read: String,
    /// The value of a text.
    pub write: String,
}

/// A reference from rows of one table to rows of another.
#[derive(Debug, Clone)]
pub struct Reference {
    /// Whether the table that was asked about makes it; else it leads there.
    pub is_from: bool,
    /// The table that makes it, as SQL.
    pub from: String,
    /// The table that it leads to, as SQL.
    pub to: String,
    /// The columns on both sides, quoted.
    pub pairs: Vec<(String, String)>,
}

/// What the server can be kept from doing while rows are set back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stills {
    /// It checks no references, and lets none act.
    pub references: bool,
    /// It runs no triggers but ours.
    pub triggers: bool,
}

/// How rows of a table are set back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// What changed is updated where it is.
    Update,
    /// What changed goes and comes again: two rows may have swapped something that must be unique.
    Replace,
}

/// Makes a server stop what a connection is at. If it cannot be told, it goes on.
pub type Interrupt = Box<dyn Fn() + Send>;

/// What the temporary table holds: the transaction, and its tables as they were when it was filled.
pub type Net = Option<(String, Vec<Table>)>;

/// A connection to a database, as the driver needs it.
///
/// While rows are looked at, a temporary table `backout_net` holds one line for each: `relation`, `k` (the key), `went` (the row
/// before), `came` (after), `n` (how many equal ones), `present` (now), `state` (`a`fter, `b`efore, `o`ther, `t`aken), `take`
/// (whether it goes back) and `why`. What it holds of a transaction that was committed stays true, so a second look on the same
/// connection need not find it out again ([`Server::net`]).
pub trait Server: Database + Sized + Send + 'static {
    /// The name that recipes bear.
    const DRIVER: DriverName;
    /// What to do if triggers of others would change something else.
    const UNSTILLED: &'static str;
    /// Keeps a subquery from being taken apart.
    const FENCE: &'static str;
    /// Locks rows that others must not take away.
    const SHARE: &'static str;

    /// Connects to a database that is known, and makes sure that it is the same one.
    fn to(place: &Place, secret_url: Option<&str>) -> Result<Self, RowsError>;

    /// Carries out statements that need no answer.
    fn run(&mut self, sql: &str) -> Result<(), RowsError>;

    /// Asks one question.
    fn ask(&mut self, sql: &str) -> Result<Vec<TextRow>, RowsError>;

    /// Gives what makes the server stop what this connection is at, from another thread.
    fn interrupter(&mut self) -> Result<Interrupt, RowsError>;

    /// Lets values be read and written as the log has them.
    fn set_exact(&mut self) -> Result<(), RowsError>;

    /// Begins the transaction of an operation, and gives its number.
    fn begin(&mut self, id: OperationId, agent: Option<&str>) -> Result<String, RowsError>;

    /// Runs statements in the transaction that was begun, and makes sure that all they did is in the log.
    fn statements(&mut self, text: &str, xact: &str, answers: &Answers) -> Result<(), RowsError>;

    /// Says what the statements changed in the schema; nothing, where the server commits that by itself.
    fn schema(&mut self) -> Vec<SchemaChange> {
        Vec::new()
    }

    /// Tells how something that came into the schema or went stands now.
    fn schema_state(&mut self, _change: &SchemaChange) -> Result<State, RowsError> {
        Ok(State::After)
    }

    /// Takes away what came, or brings again what went, and says what that changed.
    fn schema_back(&mut self, change: &SchemaChange) -> Result<SchemaChange, RowsError> {
        Ok(change.clone())
    }

    /// Tells whether the server is still busy with an operation's transaction.
    fn is_busy(&mut self, body: &Body) -> Result<bool, RowsError>;

    /// Tells whether an operation's transaction is in the world now: its marker says so.
    fn is_marked(&mut self, body: &Body) -> Result<bool, RowsError>;

    /// Names the operation of a transaction.
    fn mark(&mut self, body: &Body) -> Result<(), RowsError>;

    /// Takes the mark of an operation away that took up a transaction and did not get to the end of it.
    fn let_go(&mut self, operation: &str) -> Result<(), RowsError>;

    /// Says what is worth knowing of another client's transaction; none if it is not in the log.
    fn noted(&mut self, xact: &str) -> Result<Option<Vec<String>>, RowsError>;

    /// Lists the tables that a transaction changed, the first one first.
    fn tables(&mut self, xact: &str) -> Result<Vec<Table>, RowsError>;

    /// Says what a transaction changed, table by table.
    fn changes(&mut self, xact: &str) -> Result<Vec<Changed>, RowsError>;

    /// Remembers which transaction and tables the temporary table holds.
    fn net(&mut self) -> &mut Net;

    /// Makes the temporary table.
    fn make_net(&mut self) -> Result<(), RowsError>;

    /// Fills it with what a transaction did to a table.
    fn fill_net(&mut self, table: &Table, xact: &str) -> Result<(), RowsError>;

    /// Finds out what the rows of a table are now. With `locks`, nobody can change them until this transaction ends.
    fn look_at(&mut self, table: &Table, locks: bool) -> Result<(), RowsError>;

    /// Counts the rows of a table with a key that are as after, as before, otherwise, and writes nothing.
    fn count_states(&mut self, table: &Table) -> Result<Vec<TextRow>, RowsError>;

    /// Keeps the server from doing more than it is told, as far as it can be.
    fn still(&mut self) -> Result<Stills, RowsError>;

    /// Lets the server check what it had put off.
    fn settle(&mut self) -> Result<(), RowsError>;

    /// Takes rows away.
    fn go(&mut self, table: &Table, way: Way) -> Result<(), RowsError>;

    /// Sets changed rows back, and brings rows again that are not there.
    fn come(&mut self, table: &Table, way: Way) -> Result<(), RowsError>;

    /// Lists the references that a table makes, and those that lead to it.
    fn references(&mut self, table: &Table) -> Result<Vec<Reference>, RowsError>;

    /// Says what was changed beside the rows that were to be set back: by a cascade, or by somebody's trigger.
    fn beside(&mut self) -> Result<Option<String>, RowsError>;

    /// Says what an undo could not keep from happening.
    fn undo_notes(&mut self) -> Result<Vec<String>, RowsError>;

    /// Writes the text of a row of a table.
    fn image(table: &Table, row: &str) -> String;

    /// Writes what names a row of a table without a key.
    fn digest(table: &Table, row: &str) -> String;

    /// Writes what a text of a row is read as before its columns can be named.
    fn parsed(table: &Table, text: &str) -> String;

    /// Writes a column of a row that was read from its text.
    fn field(table: &Table, row: &str, column: &str) -> String;

    /// Writes the rows of a table and of no other.
    fn only(table: &Table) -> String;
}

/// Writes a text as SQL.
pub(crate) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Writes that two rows have the same key; the other one was read from its text.
pub(crate) fn on_key<S: Server>(table: &Table, one: &str, other: &str) -> String {
    let each = table
        .key
        .iter()
        .map(|column| format!("{one}.{column} = {}", S::field(table, other, column)));
    each.collect::<Vec<_>>().join(" AND ")
}
