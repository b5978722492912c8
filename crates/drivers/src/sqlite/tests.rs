//! The conformance suite over rows of several kinds of tables, and what is the driver's own.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use backout_changeset::Value;
use backout_changeset::rusqlite::Connection;
use backout_model::ports::{Driver, Prepared, Request};
use backout_model::{Armed, OperationId, Recipe, TargetPath, Verb};
use backout_testkit::driver::{Harness, conforms};
use backout_testkit::fakes::{DirDepots, MemoryContents, MemoryJournal};

use super::{SqlRequest, SqliteDriver};
use crate::file::FileDriver;

/// A directory with one database, and the driver.
struct World {
    _directory: tempfile::TempDir,
    file: TargetPath,
    files: Arc<FileDriver>,
    driver: SqliteDriver,
    contents: Arc<MemoryContents>,
    journal: MemoryJournal,
    sql: String,
    drift: &'static str,
}

impl World {
    fn new(schema: &str, sql: &str, drift: &'static str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let file = TargetPath::new(root.join("world").join("shop.db")).unwrap();
        fs::create_dir(root.join("world")).unwrap();
        let connection = Connection::open(file.as_path()).unwrap();
        connection.execute_batch(schema).unwrap();
        let contents = Arc::new(MemoryContents::default());
        let depots = Arc::new(DirDepots::new(&root.join("home"), true).unwrap());
        let files = Arc::new(FileDriver::new(contents.clone(), contents.clone(), depots));
        Self {
            _directory: directory,
            file,
            driver: SqliteDriver::new(Arc::clone(&files)),
            files,
            journal: MemoryJournal::new(Arc::clone(&contents)),
            contents,
            sql: sql.to_owned(),
            drift,
        }
    }

    fn connection(&self) -> Connection {
        Connection::open(self.file.as_path()).unwrap()
    }
}

/// Gives the schema and all rows, our marks aside.
fn dump(connection: &Connection) -> Vec<String> {
    let all = |sql: &str| {
        let mut statement = connection.prepare(sql).unwrap();
        let width = statement.column_count();
        let rows = statement.query_map([], |row| {
            let value = |at| Value::from(row.get_ref(at).unwrap());
            let values: Vec<_> = (0..width).map(|at| format!("{:?}", value(at))).collect();
            Ok(values.join("|"))
        });
        rows.unwrap().map(Result::unwrap).collect::<Vec<_>>()
    };
    let mut told = all(
        "SELECT type, name, sql FROM sqlite_schema WHERE tbl_name <> 'backout_marker' ORDER BY 1, 2",
    );
    let mut names = connection
        .prepare("SELECT name FROM sqlite_schema WHERE type='table' AND name NOT IN ('backout_marker', 'sqlite_sequence') ORDER BY 1")
        .unwrap();
    let names = names.query_map([], |row| row.get::<_, String>(0)).unwrap();
    for name in names.map(Result::unwrap) {
        let mut rows = all(&format!("SELECT * FROM \"{name}\""));
        rows.sort();
        told.extend(rows.into_iter().map(|row| format!("{name}: {row}")));
    }
    told
}

impl Harness for World {
    type Snapshot = Vec<String>;

    fn driver(&self) -> &dyn Driver {
        &self.driver
    }

    fn request(&self) -> Box<dyn Request> {
        let path = self.file.as_path().to_owned();
        Box::new(SqlRequest::new(path, self.sql.clone()))
    }

    fn snapshot(&self, _exactly: bool) -> Self::Snapshot {
        dump(&self.connection())
    }

    fn contents(&self, snapshot: &Self::Snapshot) -> BTreeSet<String> {
        snapshot.iter().cloned().collect()
    }

    fn arm(&self, id: OperationId, prepared: Prepared) -> Armed {
        self.journal.arm(id, Verb::Edit, prepared)
    }

    fn release(&self, recipe: &Recipe) {
        self.contents.release(recipe);
    }

    fn drift(&self) -> bool {
        self.connection().execute_batch(self.drift).unwrap();
        true
    }

    fn fail_at_step(&self, at: Option<usize>, abandons: bool) {
        self.files.context().fault.set(at, abandons);
    }

    fn steps_passed(&self) -> usize {
        self.files.context().fault.passed()
    }
}

const ORDERS: &str = "CREATE TABLE orders(id INTEGER PRIMARY KEY, item TEXT, price REAL); \
                      INSERT INTO orders VALUES(1, 'tea', 2.5), (2, 'cup', 4), (7, 'pot', NULL)";

#[test]
fn rows_of_a_plain_table_conform() {
    let drift = "UPDATE orders SET price = price + 100, item = 'drift'";
    for sql in [
        "UPDATE orders SET price = 1 WHERE id = 2",
        "INSERT INTO orders VALUES(9, 'jar', x'00ff')",
        "INSERT INTO orders VALUES(9, 'jar', 1); DELETE FROM orders WHERE id = 1; UPDATE orders SET item = 'x' WHERE id = 2",
        "UPDATE orders SET id = id + 10",
    ] {
        conforms(sql, || World::new(ORDERS, sql, drift));
    }
}

#[test]
fn rows_of_odd_tables_conform() {
    for (schema, sql, drift) in [
        (
            "CREATE TABLE t(a, b); INSERT INTO t VALUES(1, 2), (1, 2), (NULL, NULL)",
            "DELETE FROM t WHERE rowid = 2; UPDATE t SET b = 5 WHERE rowid = 1; INSERT INTO t VALUES(8, 9)",
            "UPDATE t SET b = 77",
        ),
        (
            "CREATE TABLE t(a TEXT, b INT, c, PRIMARY KEY(a, b)) WITHOUT ROWID; INSERT INTO t VALUES('x', 1, 2), ('y', 2, 3)",
            "UPDATE t SET c = 9 WHERE a = 'x'; INSERT INTO t VALUES('it''s, 1', 3, 4)",
            "UPDATE t SET c = 77",
        ),
        (
            "CREATE TABLE t(id INTEGER PRIMARY KEY AUTOINCREMENT, a, g AS (a * 2) STORED, v AS (a + 1)); INSERT INTO t(a) VALUES(1), (2)",
            "UPDATE t SET a = 7 WHERE id = 1; INSERT INTO t(a) VALUES(3)",
            "UPDATE t SET a = 99",
        ),
        (
            "CREATE TABLE t(id INTEGER PRIMARY KEY, a); CREATE TABLE seen(n INTEGER PRIMARY KEY, a); INSERT INTO t VALUES(1, 1); \
             CREATE TRIGGER r AFTER UPDATE ON t BEGIN INSERT INTO seen(a) VALUES(new.a); END",
            "UPDATE t SET a = 2",
            "UPDATE t SET a = 5",
        ),
        (
            "CREATE TABLE p(id INTEGER PRIMARY KEY, a); CREATE TABLE c(id INTEGER PRIMARY KEY, p REFERENCES p ON DELETE CASCADE); \
             INSERT INTO p VALUES(1, 1); INSERT INTO c VALUES(5, 1), (6, 1)",
            "DELETE FROM p",
            "INSERT INTO p VALUES(1, 'drift')",
        ),
    ] {
        conforms(sql, || World::new(schema, sql, drift));
    }
}

#[test]
fn many_rows_conform_as_one_table() {
    let schema = "CREATE TABLE t(id INTEGER PRIMARY KEY, a); \
                  WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000) INSERT INTO t SELECT i, 'row ' || i FROM n";
    conforms("many", || {
        World::new(
            schema,
            "UPDATE t SET a = a || '!' WHERE id > 5",
            "UPDATE t SET a = 'drift' WHERE id = 9",
        )
    });
}

#[test]
fn a_database_with_a_write_ahead_log_conforms() {
    let schema = format!("PRAGMA journal_mode=WAL; {ORDERS}");
    conforms("wal", || {
        World::new(
            &schema,
            "UPDATE orders SET item = 'x'",
            "UPDATE orders SET item = 'drift'",
        )
    });
}
