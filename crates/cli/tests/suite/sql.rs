//! `sql` in `SQLite` files: what people read, and what is in the tables afterwards.

use std::path::Path;

use rusqlite::Connection;
use rusqlite::types::Value;

use crate::world::{Ran, World};

pub(crate) const SCHEMA: &str = "CREATE TABLE orders(id INTEGER PRIMARY KEY, item TEXT, price REAL); \
                      INSERT INTO orders VALUES(1, 'tea', 2.5), (2, 'cup', 4.0), (7, 'pot', 9.0);";

/// SIGABRT.
pub(crate) const ABORTED: i32 = 6;

pub(crate) fn world(schema: &str) -> World {
    let world = World::new();
    open(&world).execute_batch(schema).unwrap();
    world
}

pub(crate) fn open(world: &World) -> Connection {
    Connection::open(world.path("shop.db")).unwrap()
}

fn sql(world: &World, statements: &str) -> Ran {
    world.cli(["sql", "--db", "shop.db", statements])
}

/// Runs statements that have to work.
pub(crate) fn ran(world: &World, statements: &str) -> Ran {
    let ran = sql(world, statements);
    assert_eq!(ran.code, 0, "{statements}: {ran:?}");
    ran
}

pub(crate) fn ok<const N: usize>(world: &World, arguments: [&str; N]) -> Ran {
    let ran = world.cli(arguments);
    assert_eq!(ran.code, 0, "{arguments:?}: {ran:?}");
    ran
}

/// All of a database but our marks: schema and rows.
fn dump(file: &Path) -> Vec<String> {
    let connection = Connection::open(file).unwrap();
    let rows = |sql: &str| -> Vec<String> {
        let mut statement = connection.prepare(sql).unwrap();
        let width = statement.column_count();
        let rows = statement.query_map([], |row| {
            let values = (0..width).map(|at| format!("{:?}", row.get::<_, Value>(at).unwrap()));
            Ok(values.collect::<Vec<_>>().join("|"))
        });
        rows.unwrap().map(Result::unwrap).collect()
    };
    assert_eq!(rows("PRAGMA integrity_check"), [r#"Text("ok")"#]);
    let mut told = rows(
        "SELECT type, name, sql FROM sqlite_schema WHERE tbl_name <> 'backout_marker' ORDER BY 1, 2",
    );
    let names = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT IN ('backout_marker', 'sqlite_sequence') ORDER BY 1";
    let mut names = connection.prepare(names).unwrap();
    let names = names.query_map([], |row| row.get::<_, String>(0)).unwrap();
    for name in names.map(Result::unwrap) {
        let wr = format!("SELECT wr FROM pragma_table_list WHERE name = '{name}'");
        let has_rowid = rows(&wr) == ["Integer(0)"];
        let rowid = if has_rowid { "rowid, " } else { "" };
        let mut found = rows(&format!("SELECT {rowid}* FROM \"{name}\""));
        found.sort();
        told.extend(found.into_iter().map(|row| format!("{name}: {row}")));
    }
    told
}

pub(crate) fn tables(world: &World) -> Vec<String> {
    dump(&world.path("shop.db"))
}

/// Says that a text stands in what was printed.
#[track_caller]
pub(crate) fn says(ran: &Ran, text: &str) {
    let said = format!("{}{}", ran.out, ran.err);
    assert!(said.contains(text), "{text:?} in {said}");
}

#[test]
fn rows_change_and_come_back_and_go_again() {
    let world = world(SCHEMA);
    let before = tables(&world);
    let told = ran(
        &world,
        "UPDATE orders SET price = 1 WHERE id < 3; INSERT INTO orders VALUES(9, 'jar', 3)",
    );
    says(&told, "ran SQL in shop.db");
    says(&told, "2 rows of orders updated, 1 inserted");
    let after = tables(&world);
    let diff = ok(&world, ["diff", "@"]);
    says(&diff, "shop.db:orders.2");
    says(&diff, r#"{"id":2,"price":4.0}  {"id":2,"price":1.0}"#);
    says(&ok(&world, ["undo", "-n"]), "shop.db:orders.9");
    let refused = world.cli(["restore", "shop.db", "--from", "@"]);
    assert_eq!(refused.code, 1, "{refused}");
    for said in [
        "wrote no whole file, so there is none to restore",
        "take back what it wrote with `backout undo",
    ] {
        assert!(refused.err.contains(said), "{refused}");
    }
    assert_eq!(tables(&world), after, "a look changes nothing");
    says(&ok(&world, ["undo"]), "shop.db:orders.9  gone, as before");
    assert_eq!(tables(&world), before);
    ok(&world, ["redo"]);
    assert_eq!(tables(&world), after);
    says(&ok(&world, ["log"]), "update in shop.db");
    ok(&world, ["verify"]);
}

#[test]
fn what_only_reads_is_shown_and_not_recorded() {
    let world = world(SCHEMA);
    let shown = ran(
        &world,
        "SELECT id, item, NULL AS n FROM orders WHERE id > 1",
    );
    assert_eq!(shown.out, "id  item  n\n2   cup   NULL\n7   pot   NULL\n");
    let json = ok(
        &world,
        [
            "--json",
            "sql",
            "--db",
            "shop.db",
            "SELECT id, x'00ff' AS b FROM orders WHERE id = 1",
        ],
    );
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["reply"], "rows");
    assert_eq!(
        json["results"][0]["columns"],
        serde_json::json!(["id", "b"])
    );
    assert_eq!(
        json["results"][0]["rows"],
        serde_json::json!([[1, "x'00ff'"]])
    );
    let many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200) SELECT i, printf('%.*c', 99, 'x') FROM n";
    let many = ran(&world, many);
    says(&many, "(at least 900 more rows; `--json` has up to 1000)");
    assert_eq!(many.out.lines().count(), 102);
    assert!(!world.has("../state"), "nothing was recorded");
    let both = ran(
        &world,
        "UPDATE orders SET item = 'x' WHERE id = 1 RETURNING id, item",
    );
    says(&both, "1   x");
    says(&both, "1 row of orders updated");
}

#[test]
fn a_row_that_somebody_changed_is_a_conflict_of_that_row() {
    let world = world(SCHEMA);
    ran(&world, "UPDATE orders SET price = price * 2");
    open(&world).execute_batch("UPDATE orders SET price = 100 WHERE id = 2; UPDATE orders SET item = 'mug' WHERE id = 7").unwrap();
    let drifted = tables(&world);
    let refused = world.cli(["undo"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    says(&refused, "somebody else changed the row");
    assert_eq!(tables(&world), drifted);
    let part = world.cli(["undo", "--partial"]);
    says(&part, "shop.db:orders.1  restored");
    let rows = tables(&world).join("\n");
    assert!(rows.contains("Text(\"tea\")|Real(2.5)"), "{rows}");
    assert!(rows.contains("Text(\"cup\")|Real(100.0)"), "{rows}");
    assert!(
        rows.contains("Text(\"mug\")|Real(9.0)"),
        "another column is somebody's own: {rows}"
    );
    says(
        &ok(&world, ["undo", "9e3779b9", "--force"]),
        "shop.db:orders.2  restored over a later change",
    );
    let rows = tables(&world).join("\n");
    assert!(rows.contains("Text(\"cup\")|Real(4.0)"), "{rows}");
    ok(&world, ["redo"]);
    let rows = tables(&world).join("\n");
    assert!(
        rows.contains("Text(\"cup\")|Real(100.0)"),
        "what force replaced is kept: {rows}"
    );
}

#[test]
fn rows_that_went_or_came_meanwhile_are_told() {
    let world = world(SCHEMA);
    ran(
        &world,
        "UPDATE orders SET price = 5 WHERE id = 1; DELETE FROM orders WHERE id = 2",
    );
    open(&world)
        .execute_batch("DELETE FROM orders WHERE id = 1; INSERT INTO orders VALUES(2, 'new', 0)")
        .unwrap();
    let refused = world.cli(["undo"]);
    says(&refused, "somebody else deleted the row");
    says(&refused, "somebody else made the row anew");
    let forced = world.cli(["undo", "--force", "--partial"]);
    says(&forced, "the row is gone, and only a part of it is known");
    assert!(
        tables(&world)
            .join("\n")
            .contains("Text(\"cup\")|Real(4.0)")
    );
    open(&world).execute_batch("DROP TABLE orders").unwrap();
    ran(&world, "CREATE TABLE other(a)");
    says(
        &world.cli(["undo", "@-1", "-n"]),
        "the table `orders` is gone",
    );
    open(&world)
        .execute_batch("CREATE TABLE orders(item, id PRIMARY KEY)")
        .unwrap();
    says(
        &world.cli(["undo", "@-1", "-n"]),
        "the table `orders` has other columns now",
    );
}

#[test]
fn a_chain_of_writes_to_one_row_goes_back_as_one() {
    let world = world(SCHEMA);
    let before = tables(&world);
    for price in ["1", "2", "3"] {
        ran(
            &world,
            &format!("UPDATE orders SET price = {price} WHERE id = 7"),
        );
    }
    let after = tables(&world);
    let plan = ok(&world, ["undo", "@-2", "-n", "--committed"]);
    says(&plan, "would undo 3 operations");
    ok(&world, ["undo", "@-2", "--committed"]);
    assert_eq!(tables(&world), before);
    ok(&world, ["redo"]);
    assert_eq!(tables(&world), after);
}

/// Runs statements, takes them back and does them again.
#[track_caller]
fn there_and_back(schema: &str, statements: &str) {
    let world = world(schema);
    let before = tables(&world);
    let told = ran(&world, statements);
    let after = tables(&world);
    assert_ne!(after, before, "{statements}: {told:?}");
    says(&told, "table t changed");
    ok(&world, ["undo"]);
    assert_eq!(tables(&world), before, "{schema} {statements}");
    ok(&world, ["redo"]);
    assert_eq!(tables(&world), after, "{schema} {statements}");
    ok(&world, ["verify"]);
}

#[test]
fn a_column_that_hides_the_rowid_is_no_rowid() {
    let schema = "CREATE TABLE t(a, _RowId_); INSERT INTO t(rowid, a, _RowId_) VALUES(5, 'x', 1), (9, 'y', 1), (11, 'z', 7);";
    for statements in [
        "UPDATE t SET a = 'new' WHERE a = 'y'",
        "INSERT INTO t VALUES('new', 7)",
        "DELETE FROM t WHERE a = 'x'",
        "UPDATE t SET _rowid_ = 9 WHERE a = 'z'",
    ] {
        there_and_back(schema, statements);
    }
    let all = "CREATE TABLE t(oid, rowid, _rowid_ COLLATE NOCASE); INSERT INTO t VALUES(1, 1, 'a'), (1, 1, 'A'), (1.0, 1, 'a');";
    there_and_back(all, "UPDATE t SET oid = 2 WHERE typeof(oid) = 'real'");
    there_and_back(all, "DELETE FROM t WHERE _rowid_ = 'A'");
}

#[test]
fn keys_that_are_equal_and_spelt_otherwise_come_back_as_they_were() {
    for (columns, rest, one, other) in [
        ("k TEXT COLLATE NOCASE PRIMARY KEY, v", "", "'a'", "'A'"),
        (
            "k TEXT COLLATE NOCASE PRIMARY KEY, v",
            "WITHOUT ROWID",
            "'a'",
            "'A'",
        ),
        (
            "k TEXT COLLATE RTRIM, v, PRIMARY KEY(k)",
            "",
            "'a'",
            "'a  '",
        ),
        ("k TEXT, v, PRIMARY KEY(k COLLATE NOCASE)", "", "'a'", "'A'"),
        ("k PRIMARY KEY, v", "", "1", "1.0"),
        ("k BLOB, v, PRIMARY KEY(v, k)", "", "1.0", "1"),
        ("k ANY PRIMARY KEY, v ANY", "STRICT", "1", "1.0"),
    ] {
        let schema = format!(
            "CREATE TABLE t({columns}){rest}; INSERT INTO t(k, v) VALUES({one}, 'v'), ('other', 'w')"
        );
        there_and_back(
            &schema,
            &format!("REPLACE INTO t(k, v) VALUES({other}, 'v')"),
        );
        there_and_back(&schema, &format!("UPDATE t SET k = {other} WHERE v = 'v'"));
    }
    // Keys that have one spelling only are taken back row by row.
    for columns in [
        "k TEXT PRIMARY KEY, v COLLATE NOCASE",
        "k NUMERIC PRIMARY KEY, v",
    ] {
        let world = world(&format!(
            "CREATE TABLE t({columns}); INSERT INTO t VALUES('a', 1)"
        ));
        says(&ran(&world, "UPDATE t SET v = 2"), "1 row of t updated");
    }
    let world =
        world("CREATE TABLE t(k BLOB PRIMARY KEY, v INT) STRICT; INSERT INTO t VALUES(x'61', 1)");
    says(&ran(&world, "UPDATE t SET v = 2"), "1 row of t updated");
}

#[test]
fn a_table_of_the_name_of_ours_is_left_alone() {
    let own = "`backout_marker` in this database is not Backout's own table";
    for theirs in [
        "CREATE TABLE backout_marker(a, b)",
        "CREATE TABLE Backout_Marker(number INTEGER PRIMARY KEY, operation INT)",
        "CREATE VIEW backout_marker AS SELECT 1 AS operation",
    ] {
        let world = world(&format!("{SCHEMA} {theirs};"));
        let before = tables(&world);
        let refused = sql(&world, "INSERT INTO orders VALUES(9, 'jar', 3)");
        assert_eq!(refused.code, 1, "{refused:?}");
        says(&refused, own);
        says(
            &refused,
            "Backout notes in a table of that name which operations were committed, and this one has other columns",
        );
        says(
            &refused,
            "give it another name, without Backout, then run this again",
        );
        assert_eq!(tables(&world), before);
        says(&ran(&world, "SELECT item FROM orders WHERE id = 7"), "pot");
        ok(&world, ["verify"]);
    }
    let world = world(SCHEMA);
    let before = tables(&world);
    says(&sql(&world, "CREATE TABLE backout_marker(a)"), own);
    assert_eq!(tables(&world), before);
    ran(&world, "DELETE FROM orders");
    let after = tables(&world);
    open(&world)
        .execute_batch("DROP TABLE backout_marker; CREATE TABLE backout_marker(a)")
        .unwrap();
    let refused = world.cli(["undo"]);
    assert_ne!(refused.code, 0, "{refused:?}");
    says(&refused, own);
    assert_eq!(tables(&world), after);
    open(&world)
        .execute_batch("DROP TABLE backout_marker")
        .unwrap();
    ok(&world, ["undo"]);
    assert_eq!(tables(&world), before);
}

#[test]
fn one_row_of_several_is_taken_back_by_its_name() {
    let world = world(SCHEMA);
    ran(&world, "UPDATE orders SET item = 'x'");
    ok(&world, ["undo", "@", "--only", "shop.db:orders.7"]);
    let rows = tables(&world).join("\n");
    assert!(rows.contains("Text(\"pot\")"), "{rows}");
    assert!(!rows.contains("Text(\"tea\")"), "{rows}");
    says(
        &ok(&world, ["log", "shop.db:orders.7"]),
        "update in shop.db",
    );
}

#[test]
fn a_write_of_the_whole_file_and_a_write_of_a_row_see_each_other() {
    let world = world(SCHEMA);
    let before = tables(&world);
    ran(&world, "UPDATE orders SET item = 'x' WHERE id = 1");
    ok(&world, ["cp", "shop.db", "copy.db"]);
    ok(&world, ["rm", "shop.db"]);
    says(&world.cli(["undo", "@-2", "-n"]), "would undo 3 operations");
    ok(&world, ["undo", "@-2", "--committed"]);
    assert_eq!(tables(&world), before);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of what is refused")]
fn what_reaches_out_of_the_transaction_is_refused() {
    let world = world(&format!(
        "{SCHEMA} CREATE VIRTUAL TABLE words USING fts5(word); CREATE TABLE auto(id INTEGER PRIMARY KEY AUTOINCREMENT);"
    ));
    ran(&world, "INSERT INTO auto DEFAULT VALUES");
    let before = tables(&world);
    for (statements, what) in [
        ("ATTACH 'other.db' AS other", "ATTACH cannot be used here"),
        ("DETACH main", "DETACH cannot be used here"),
        (
            "UPDATE orders SET price = 0; COMMIT",
            "BEGIN, COMMIT and ROLLBACK cannot be used here",
        ),
        ("ANALYZE", "ANALYZE cannot be used here"),
        (
            "CREATE VIRTUAL TABLE v USING fts5(a)",
            "a virtual table cannot be used here",
        ),
        (
            "SELECT load_extension('x')",
            "load_extension cannot be used here",
        ),
        (
            "PRAGMA journal_mode=WAL",
            "PRAGMA journal_mode cannot be run",
        ),
        (
            "PRAGMA wal_checkpoint",
            "PRAGMA wal_checkpoint cannot be run",
        ),
        (
            "INSERT INTO words VALUES('x')",
            "the virtual table `words` cannot be written row by row",
        ),
        (
            "DELETE FROM sqlite_sequence",
            "SQLite's own table `sqlite_sequence` cannot be written",
        ),
        (
            "DELETE FROM backout_marker",
            "the table `backout_marker` cannot be written",
        ),
        (
            "DROP TABLE backout_marker",
            "the table `backout_marker` cannot be changed",
        ),
        (
            "UPDATE orders SET price = 0; UPDATE nowhere SET a = 1",
            "a statement failed: no such table: nowhere",
        ),
    ] {
        let refused = sql(&world, statements);
        assert_eq!(refused.code, 1, "{statements}: {refused:?}");
        says(&refused, what);
        assert_eq!(tables(&world), before, "{statements}");
    }
    let vacuum = sql(&world, "VACUUM");
    assert_eq!(vacuum.code, 1, "{vacuum:?}");
    let refused = sql(&world, "ATTACH 'other.db' AS other");
    says(
        &refused,
        "it reaches out of the one transaction that is taken back",
    );
    says(&refused, "run it with `backout run -- sqlite3");
    says(&refused, "then the file comes back as a whole");
    says(
        &sql(&world, "PRAGMA wal_checkpoint"),
        "it changes what no transaction takes back",
    );
    says(
        &sql(&world, "INSERT INTO words VALUES('x')"),
        "only its module knows what its rows are",
    );
    says(
        &sql(&world, "DELETE FROM sqlite_sequence"),
        "what is in it is not recorded",
    );
    says(
        &sql(&world, "DELETE FROM backout_marker"),
        "its rows tell which operations were committed",
    );
    says(
        &sql(&world, "UPDATE nowhere SET a = 1"),
        "all statements are one transaction, so none of them counts",
    );
    says(&ran(&world, "PRAGMA user_version"), "user_version");
}

#[test]
fn files_that_are_no_database_are_told_and_left_alone() {
    let world = World::new().file(
        "notes.db",
        "these are notes, not a database, and long enough to tell",
    );
    let missing = world.cli(["sql", "--db", "none.db", "SELECT 1"]);
    says(&missing, "there is no database at");
    says(
        &missing,
        "check the name; `backout sql --create` makes a new database",
    );
    assert!(!world.has("none.db"));
    let notes = world.cli(["sql", "--db", "notes.db", "CREATE TABLE t(a)"]);
    says(&notes, "is not an SQLite database, or it is encrypted");
    says(&notes, "check the name of the file");
    ok(
        &world,
        ["sql", "--db", "none.db", "--create", "CREATE TABLE t(a)"],
    );
    assert_eq!(dump(&world.path("none.db")).len(), 1);
    ok(&world, ["undo"]);
    assert_eq!(dump(&world.path("none.db")).len(), 0);
    // The file was an operation of its own. It is as empty as it was then.
    ok(&world, ["undo", "9e3779b9"]);
    assert!(!world.has("none.db"));
    let once = world.cli([
        "--once",
        "k",
        "sql",
        "--db",
        "none.db",
        "--create",
        "CREATE TABLE t(a)",
    ]);
    says(&once, "`--once` does not go with `--create` here");
    says(
        &once,
        "the key stands for one write, and these would be two",
    );
    says(&once, "make the database first, without the key");
}

#[test]
fn a_locked_database_is_waited_for_and_told() {
    let world = world(SCHEMA);
    let other = open(&world);
    other
        .execute_batch("BEGIN IMMEDIATE; UPDATE orders SET item = 'theirs'")
        .unwrap();
    let busy = sql(&world, "UPDATE orders SET item = 'ours'");
    assert_eq!(busy.code, 1, "{busy:?}");
    says(&busy, "somebody else has locked the database");
    says(&busy, "it was waited for, and is still locked");
    says(&busy, "try again when the other program is done");
    other.execute_batch("COMMIT").unwrap();
    ran(&world, "UPDATE orders SET item = 'ours'");
}

#[test]
fn statements_come_from_a_file_and_a_pipe() {
    let world = world(SCHEMA);
    world.put("change.sql", "UPDATE orders SET item = 'x' WHERE id = 1;");
    ok(&world, ["sql", "--db", "shop.db", "--file", "change.sql"]);
    let piped = world.piped(
        b"SELECT item FROM orders WHERE id = 1",
        ["sql", "--db", "shop.db"],
    );
    assert_eq!(piped.out, "item\nx\n");
    says(
        &world.terminal(80, ["sql", "--db", "shop.db"]),
        "give the statements, or `--file FILE`",
    );
    let broken = world.piped(b"SELECT '\xff'", ["sql", "--db", "shop.db"]);
    says(&broken, "the statements are not UTF-8");
    says(
        &broken,
        "give them in UTF-8; write other bytes as hexadecimal literals",
    );
    says(
        &world.cli([
            "--strategy",
            "snapshot",
            "sql",
            "--db",
            "shop.db",
            "DELETE FROM orders",
        ]),
        "rows cannot be taken back by snapshot",
    );
}
