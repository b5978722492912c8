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

#[test]
fn changes_of_the_schema_conform() {
    let schema = format!(
        "{ORDERS}; CREATE INDEX by_item ON orders(item); CREATE TABLE log(what); INSERT INTO log VALUES('a')"
    );
    for (sql, drift) in [
        (
            "CREATE TABLE fresh(a); INSERT INTO fresh VALUES(1)",
            "INSERT INTO fresh VALUES('drift')",
        ),
        (
            "DROP TABLE log; UPDATE orders SET item = 'x' WHERE id = 1",
            "CREATE TABLE log(other)",
        ),
        (
            "ALTER TABLE orders ADD COLUMN note",
            "UPDATE orders SET note = 'drift'",
        ),
        (
            "DROP INDEX by_item; CREATE VIEW v AS SELECT 1",
            "DROP VIEW v; CREATE VIEW v AS SELECT 2",
        ),
    ] {
        conforms(sql, || World::new(&schema, sql, drift));
    }
}

/// A little generator: the same seed tells the same story.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

const STORIES: [&str; 3] = [
    "CREATE TABLE t(id INTEGER PRIMARY KEY, a, u UNIQUE); CREATE TABLE seen(n INTEGER PRIMARY KEY, what); \
     CREATE TRIGGER r AFTER UPDATE OF a ON t BEGIN INSERT INTO seen(what) VALUES(new.a); END",
    "CREATE TABLE t(id INTEGER, a, u, PRIMARY KEY(id, u)) WITHOUT ROWID",
    "CREATE TABLE p(id INTEGER PRIMARY KEY); INSERT INTO p VALUES(0), (1), (2); \
     CREATE TABLE t(id INT, a, u REFERENCES p ON DELETE SET NULL, g AS (a || 'g') STORED)",
];

fn statement(dice: &mut Dice, story: usize) -> String {
    let (id, value) = (dice.roll(8), dice.roll(1000));
    let unique = if story == 2 { dice.roll(3) } else { value };
    let value = match dice.roll(5) {
        0 => "NULL".to_owned(),
        1 => format!("x'00{value:04}'"),
        2 => format!("{value}.5"),
        3 => format!("CAST(x'ff{value:04}' AS TEXT)"),
        _ => format!("'text {value}'"),
    };
    match dice.roll(8) {
        0..=2 => format!("INSERT OR REPLACE INTO t(id, a, u) VALUES({id}, {value}, {unique})"),
        3 => format!("DELETE FROM t WHERE id = {id}"),
        4 => format!("UPDATE t SET a = {value}"),
        5 if story == 2 => {
            format!("DELETE FROM p WHERE id = {unique}; INSERT INTO p VALUES({unique})")
        }
        6 => "ALTER TABLE t ADD COLUMN more DEFAULT 7; ALTER TABLE t DROP COLUMN more".to_owned(),
        7 => format!("CREATE TABLE x{id}(a); INSERT INTO x{id} VALUES({value}); DROP TABLE x{id}"),
        _ => format!("UPDATE OR IGNORE t SET id = id + 20, a = {value} WHERE id < {id}"),
    }
}

/// Random statements, taken back newest first: after each undo the tables are what a copy of them says.
#[test]
fn random_statements_are_taken_back_exactly() {
    for (number, schema) in STORIES.iter().enumerate() {
        for seed in 0..3 {
            let mut dice = Dice(seed * 77 + number as u64 + 1);
            let mut world = World::new(&format!("PRAGMA journal_mode=WAL; {schema}"), "", "");
            let mut done = Vec::new();
            for step in 0..12_u64 {
                let count = 1 + dice.roll(3);
                let all: Vec<String> = (0..count).map(|_| statement(&mut dice, number)).collect();
                world.sql = all.join("; ");
                let before = world.snapshot(true);
                let id = OperationId::from_bits(0x1000 + step);
                let strategy = world.strategy();
                let prepared = world.driver.prepare(id, &*world.request(), strategy);
                let prepared = prepared.unwrap_or_else(|error| panic!("{}: {error}", world.sql));
                if prepared.is_noop {
                    continue;
                }
                let recipe = prepared.recipe.clone();
                let applied = world.driver.apply(world.arm(id, prepared)).unwrap();
                let completion = Some(applied.completion);
                done.push((
                    world.sql.clone(),
                    before,
                    backout_model::Effect { recipe, completion },
                ));
            }
            assert!(!done.is_empty());
            for (step, (sql, before, effect)) in done.into_iter().enumerate().rev() {
                let after = world.snapshot(true);
                let id = OperationId::from_bits(0x2000 + step as u64);
                let (undo, _) = backout_testkit::driver::taken_back(&world, id, &effect);
                assert_eq!(
                    world.snapshot(true),
                    before,
                    "story {number}, seed {seed}: {sql}"
                );
                // There and back again.
                let id = OperationId::from_bits(0x3000 + step as u64);
                let (redo, _) = backout_testkit::driver::taken_back(&world, id, &undo);
                assert_eq!(
                    world.snapshot(true),
                    after,
                    "redo, story {number}, seed {seed}: {sql}"
                );
                let id = OperationId::from_bits(0x4000 + step as u64);
                backout_testkit::driver::taken_back(&world, id, &redo);
                assert_eq!(
                    world.snapshot(true),
                    before,
                    "story {number}, seed {seed}: {sql}"
                );
            }
        }
    }
}

/// Independent writes go back in any order, and what somebody else wrote in between stays.
#[test]
fn independent_writes_go_back_in_any_order_and_others_stay() {
    let rows: Vec<String> = (0..40).map(|id| format!("({id}, 'first')")).collect();
    let schema = format!(
        "PRAGMA journal_mode=WAL; CREATE TABLE t(id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES {}",
        rows.join(", ")
    );
    for seed in 1..4 {
        let mut dice = Dice(seed);
        let mut world = World::new(&schema, "", "");
        let mut done = Vec::new();
        for step in 0..10_u64 {
            world.sql = match dice.roll(2) {
                0 => format!(
                    "UPDATE t SET a = 'ours' WHERE id IN ({step}, {})",
                    step + 10
                ),
                _ => format!(
                    "DELETE FROM t WHERE id = {step}; INSERT INTO t VALUES({}, 'ours')",
                    step + 100
                ),
            };
            let id = OperationId::from_bits(0x1000 + step);
            let prepared = world
                .driver
                .prepare(id, &*world.request(), world.strategy())
                .unwrap();
            let recipe = prepared.recipe.clone();
            let applied = world.driver.apply(world.arm(id, prepared)).unwrap();
            let completion = Some(applied.completion);
            done.push(backout_model::Effect { recipe, completion });
            let theirs = format!(
                "UPDATE t SET a = 'theirs {step}' WHERE id = {}",
                20 + dice.roll(20)
            );
            world.connection().execute_batch(&theirs).unwrap();
        }
        let theirs = |world: &World| -> Vec<String> {
            let all = world.snapshot(true);
            all.into_iter()
                .filter(|row| row.contains("theirs"))
                .collect()
        };
        let kept = theirs(&world);
        while !done.is_empty() {
            let at = usize::try_from(dice.roll(done.len() as u64)).unwrap();
            let effect = done.remove(at);
            let id = OperationId::from_bits(0x2000 + done.len() as u64);
            backout_testkit::driver::taken_back(&world, id, &effect);
        }
        assert_eq!(theirs(&world), kept, "seed {seed}");
        let ours = world
            .snapshot(true)
            .into_iter()
            .filter(|row| row.contains("ours"));
        assert_eq!(ours.count(), 0, "seed {seed}");
    }
}
