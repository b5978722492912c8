//! What SQL does to the schema of an `SQLite` file and to rows that refer to each other, and what a death leaves.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;

use crate::sql::{ABORTED, SCHEMA, ok, open, ran, says, tables, world};
use crate::world::World;

#[test]
fn a_table_that_others_refer_to_by_now_is_not_dropped() {
    let world = world("CREATE TABLE other(a)");
    ran(
        &world,
        "CREATE TABLE p(id INTEGER PRIMARY KEY); INSERT INTO p VALUES(1)",
    );
    open(&world)
        .execute_batch("CREATE TABLE c(p REFERENCES p); INSERT INTO c VALUES(1)")
        .unwrap();
    says(&world.cli(["undo"]), "a reference would lead nowhere");
    assert!(tables(&world).join("\n").contains("p: Integer(1)"));
}

#[test]
fn the_same_call_is_made_once() {
    let world = world(SCHEMA);
    for _ in 0..2 {
        ok(
            &world,
            [
                "--once",
                "k1",
                "sql",
                "--db",
                "shop.db",
                "UPDATE orders SET price = price + 1 WHERE id = 1",
            ],
        );
    }
    assert!(tables(&world).join("\n").contains("Real(3.5)"));
}

#[test]
fn references_that_would_lead_nowhere_are_a_conflict_of_the_row() {
    let world = world(
        "CREATE TABLE p(id INTEGER PRIMARY KEY); CREATE TABLE c(id INTEGER PRIMARY KEY, p REFERENCES p ON DELETE CASCADE);",
    );
    ran(&world, "INSERT INTO p VALUES(1), (2)");
    open(&world)
        .execute_batch("INSERT INTO c VALUES(5, 1)")
        .unwrap();
    let refused = world.cli(["undo"]);
    says(&refused, "a row of `c` refers to it");
    assert_eq!(
        tables(&world)
            .iter()
            .filter(|it| it.starts_with("c:"))
            .count(),
        1
    );
    says(
        &world.cli(["undo", "--partial"]),
        "shop.db:p.2  gone, as before",
    );
    open(&world)
        .execute_batch(
            "PRAGMA foreign_keys = ON; INSERT INTO p VALUES(3); INSERT INTO c VALUES(6, 3)",
        )
        .unwrap();
    ran(&world, "DELETE FROM c WHERE id = 6");
    open(&world)
        .execute_batch("DELETE FROM p WHERE id = 3")
        .unwrap();
    says(
        &world.cli(["undo"]),
        "it refers to a row of `p` that is not there",
    );
}

#[test]
fn a_unique_value_that_was_taken_is_a_conflict_of_the_row() {
    let world = world(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, u UNIQUE); INSERT INTO t VALUES(1, 'a'), (2, 'b');",
    );
    ran(&world, "UPDATE t SET u = u || '!'");
    open(&world)
        .execute_batch("INSERT INTO t VALUES(3, 'a')")
        .unwrap();
    says(
        &world.cli(["undo"]),
        "a constraint of the table forbids what it was",
    );
    world.cli(["undo", "--partial"]);
    let rows = tables(&world).join("\n");
    assert!(
        rows.contains("Integer(2)|Text(\"b\")") && rows.contains("Text(\"a!\")"),
        "{rows}"
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of changes")]
fn the_schema_and_what_it_takes_along_comes_back() {
    let schema = format!(
        "{SCHEMA} CREATE TABLE log(what TEXT, n); INSERT INTO log(rowid, what, n) VALUES(5, 'a', x'00'), (9, NULL, 0.5); \
         CREATE INDEX by_item ON orders(item); CREATE VIEW dear AS SELECT * FROM orders WHERE price > 3; \
         CREATE TABLE seq(id INTEGER PRIMARY KEY AUTOINCREMENT, a); INSERT INTO seq VALUES(41, 'x'); \
         CREATE TRIGGER noted AFTER INSERT ON log BEGIN UPDATE orders SET price = 0; END; \
         CREATE TABLE n(a PRIMARY KEY, b); INSERT INTO n VALUES(NULL, 1), (NULL, 2), (3, 3);"
    );
    let world = world(&schema);
    let before = tables(&world);
    for (statements, note) in [
        (
            "CREATE TABLE fresh(a); INSERT INTO fresh VALUES(1)",
            "table fresh made",
        ),
        ("DROP TABLE log", "table log dropped"),
        ("DROP TABLE seq", "table seq dropped"),
        (
            "DROP TABLE log; CREATE TABLE log(what TEXT, n)",
            "table log changed",
        ),
        (
            "ALTER TABLE orders ADD COLUMN note TEXT DEFAULT 'none'",
            "table orders changed",
        ),
        (
            "UPDATE orders SET price = 1; ALTER TABLE log DROP COLUMN n",
            "table log changed",
        ),
        ("ALTER TABLE orders RENAME TO sales", "table sales made"),
        ("ALTER TABLE log RENAME COLUMN n TO m", "table log changed"),
        (
            "DROP INDEX by_item; CREATE INDEX by_item ON orders(price)",
            "index by_item changed",
        ),
        ("DROP VIEW dear; DROP TRIGGER noted", "view dear dropped"),
        (
            "CREATE VIEW cheap AS SELECT 1; CREATE TRIGGER t AFTER DELETE ON log BEGIN SELECT 1; END",
            "trigger t made",
        ),
        (
            "DELETE FROM n WHERE b = 2; UPDATE n SET b = 9 WHERE a IS NULL",
            "table n changed",
        ),
    ] {
        let told = ran(&world, statements);
        says(&told, note);
        let after = tables(&world);
        assert_ne!(after, before, "{statements}");
        ok(&world, ["undo"]);
        assert_eq!(tables(&world), before, "{statements}");
        ok(&world, ["redo"]);
        assert_eq!(tables(&world), after, "{statements}");
        ok(&world, ["undo", "@"]);
        assert_eq!(tables(&world), before, "{statements}");
    }
    let sequence = "SELECT seq FROM sqlite_sequence WHERE name = 'seq'";
    let sequence: i64 = open(&world)
        .query_row(sequence, [], |row| row.get(0))
        .unwrap();
    assert_eq!(sequence, 41);
    ran(&world, "CREATE TABLE fresh(a)");
    open(&world)
        .execute_batch("INSERT INTO fresh VALUES('theirs')")
        .unwrap();
    says(&world.cli(["undo"]), "somebody else changed the table");
    assert!(tables(&world).join("\n").contains("theirs"));
    ok(&world, ["undo", "--force"]);
    ok(&world, ["redo"]);
    assert!(
        tables(&world).join("\n").contains("theirs"),
        "what force removed is kept"
    );
}

/// Aborts a real child at each point that a command passes, and looks what is left.
fn at_every_point(schema: &str, before: &[&str], command: &[&str]) {
    let prepared = || {
        let world = world(schema);
        for statements in before {
            ran(&world, statements);
        }
        world
    };
    let whole = prepared();
    let log = whole.path("points");
    let done = whole
        .command(command)
        .env("BACKOUT_CRASH_LOG", &log)
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    let points = std::fs::read_to_string(&log).unwrap();
    for name in [
        "sqlite.armed",
        "sqlite.applied",
        "sqlite.marked",
        "sqlite.committed",
    ] {
        assert!(points.contains(name), "{name} in {points}");
    }
    let after = tables(&whole);
    for (number, name) in points.lines().enumerate() {
        let place = format!("{command:?} at {name}, number {}", number + 1);
        let world = prepared();
        let before = tables(&world);
        let mut child = world.command(command);
        let cut = child
            .env("BACKOUT_CRASH_AT", (number + 1).to_string())
            .output()
            .unwrap();
        assert_eq!(cut.status.signal(), Some(ABORTED), "{place}: {cut:?}");
        world.cli(["recover"]);
        let now = tables(&world);
        let is_back = now == before;
        assert!(is_back || now == after, "{place}: {now:?}");
        let status = world.cli(["status"]);
        assert_eq!(status.code, 0, "{place}: {status:?}");
        assert_eq!(world.cli(["verify"]).code, 0, "{place}");
        // Whatever was recorded can be done again.
        if is_back {
            ok_at(&world, command, &place);
            assert_eq!(tables(&world), after, "{place}");
        }
    }
}

fn ok_at(world: &World, command: &[&str], place: &str) {
    let done = world.run(&mut world.command(command));
    assert_eq!(done.code, 0, "{place}: {done:?}");
}

#[test]
fn a_death_at_any_point_of_a_write_leaves_all_or_nothing() {
    let change = "UPDATE orders SET price = 0; DELETE FROM orders WHERE id = 2";
    at_every_point(SCHEMA, &[], &["sql", "--db", "shop.db", change]);
}

#[test]
fn a_death_at_any_point_of_an_undo_leaves_all_or_nothing() {
    let change = "UPDATE orders SET price = 0; ALTER TABLE orders ADD COLUMN note";
    at_every_point(SCHEMA, &[change], &["undo"]);
}

#[test]
fn a_command_that_writes_a_database_is_undone_with_its_log() {
    let sqlite3 = Path::new("/usr/bin/sqlite3");
    for mode in ["DELETE", "WAL"] {
        let world = world(&format!("PRAGMA journal_mode={mode}; {SCHEMA}"));
        let before = tables(&world);
        let script = if sqlite3.exists() {
            "sqlite3 shop.db \"UPDATE orders SET item = 'run'\""
        } else {
            "python3 -c \"import sqlite3; c = sqlite3.connect('shop.db'); c.execute(\\\"UPDATE orders SET item = 'run'\\\"); c.commit(); c.close()\""
        };
        let mut command = world.command(&["run", "--", "/bin/sh", "-c", script]);
        let run = world.run(command.env("PATH", "/usr/local/bin:/usr/bin:/bin"));
        assert_eq!(run.code, 0, "{mode}: {run:?}");
        assert_ne!(tables(&world), before, "{mode}");
        ok(&world, ["undo"]);
        assert_eq!(tables(&world), before, "{mode}");
    }
}

#[test]
fn a_dropped_table_that_others_refer_to_is_redone_and_undone() {
    let world = world(
        "CREATE TABLE parent(id INTEGER PRIMARY KEY); \
         CREATE TABLE child(id INTEGER PRIMARY KEY, p REFERENCES parent(id) ON DELETE CASCADE); \
         INSERT INTO parent VALUES(1), (2); INSERT INTO child VALUES(10, 1), (20, NULL)",
    );
    let before = tables(&world);
    ran(&world, "DROP TABLE parent");
    let after = tables(&world);
    for _ in 0..2 {
        ok(&world, ["undo"]);
        assert_eq!(tables(&world), before);
        ok(&world, ["redo"]);
        assert_eq!(tables(&world), after);
    }
}

#[test]
fn a_database_that_was_made_here_is_gone_after_its_undo() {
    let world = World::new();
    ok(&world, ["sql", "--db", "shop.db", "--create", SCHEMA]);
    ran(&world, "UPDATE orders SET price = 1");
    ok(&world, ["undo"]);
    ok(&world, ["undo"]);
    ok(&world, ["undo"]);
    assert!(!world.path("shop.db").exists());
    ok(&world, ["redo"]);
    ok(&world, ["redo"]);
}

#[test]
fn a_plan_says_what_the_undo_meets_where_others_put_a_row_below() {
    let world = world(
        "CREATE TABLE parent(id INTEGER PRIMARY KEY); \
         CREATE TABLE child(id INTEGER PRIMARY KEY, p REFERENCES parent(id))",
    );
    ran(&world, "INSERT INTO parent VALUES(5)");
    open(&world)
        .execute_batch("INSERT INTO child VALUES(1, 5)")
        .unwrap();
    let plan = world.cli(["undo", "-n"]);
    assert_eq!(plan.code, 1, "{plan:?}");
    says(&plan, "a row of `child` refers to it");
    let undone = world.cli(["undo"]);
    assert_eq!(undone.code, 1, "{undone:?}");
    says(&undone, "a row of `child` refers to it");
}

#[test]
fn what_needs_a_function_of_an_application_is_not_written() {
    let world = world(SCHEMA);
    let made = std::process::Command::new("python3")
        .args(["-c", "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.create_function('app', 1, lambda x: x, deterministic=True); c.execute('create index i on orders(app(item))')"])
        .arg(world.path("shop.db"))
        .status();
    assert!(made.unwrap().success());
    let ran = world.cli(["sql", "--db", "shop.db", "UPDATE orders SET price = 1"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    says(
        &ran,
        "an index or a check of the table needs a function that only its application has",
    );
    says(&ran, "write it by that application, under `backout run`");
    says(
        &ran,
        "rows of \"orders\" cannot be brought back here: unknown function: app",
    );
}
