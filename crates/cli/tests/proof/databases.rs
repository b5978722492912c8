//! What commands under `run` do to databases: told in rows, taken back by row, also while others have the database open or wrote
//! other rows since.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::ExitStatusExt as _;

use rusqlite::Connection;

use crate::world::{World, said};

/// SIGABRT.
const ABORTED: i32 = 6;

const CHANGE: &str = "update orders set item = 'mug' where id = 2; \
                      insert into orders values (9, 'jar'); delete from orders where id = 7";

struct Shop {
    world: World,
}

impl Shop {
    fn new(mode: &str) -> Self {
        let shop = Self {
            world: World::new(),
        };
        let connection = shop.open();
        connection
            .execute_batch(&format!(
                "PRAGMA journal_mode = {mode}; CREATE TABLE orders(id INTEGER PRIMARY KEY, item TEXT); \
                 INSERT INTO orders VALUES (1, 'tea'), (2, 'cup'), (7, 'pot')"
            ))
            .unwrap();
        shop
    }

    fn open(&self) -> Connection {
        let connection = Connection::open(self.world.path("shop.db")).unwrap();
        connection
            .busy_timeout(std::time::Duration::from_secs(10))
            .unwrap();
        connection
    }

    fn sql(&self, statements: &str) {
        self.open().execute_batch(statements).unwrap();
    }

    fn rows(&self) -> Vec<String> {
        rows(&self.open())
    }

    /// Has another program change the database under `run`.
    fn runs(&self, statements: &str) -> String {
        let python = format!(
            "import sqlite3; c = sqlite3.connect('shop.db', timeout=10); c.executescript(\"\"\"{statements}\"\"\"); c.commit(); c.close()"
        );
        self.world.ok(&["run", "--", "python3", "-c", &python]);
        let log = self.world.json(&["log", "-n", "10"]);
        let operations = log["operations"].as_array().unwrap();
        let is_run = |it: &&serde_json::Value| {
            let summary = it["summary"].as_str().unwrap();
            it["verb"] == "run" && !summary.starts_with("rows of")
        };
        let run = operations.iter().find(is_run).unwrap();
        run["id"].as_str().unwrap().to_owned()
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(self.world.path("shop.db")).unwrap()
    }
}

fn rows(connection: &Connection) -> Vec<String> {
    let sql = "SELECT id || ' ' || item FROM orders ORDER BY id";
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

const BEFORE: [&str; 3] = ["1 tea", "2 cup", "7 pot"];
const AFTER: [&str; 3] = ["1 tea", "2 mug", "9 jar"];

#[test]
fn what_a_command_did_is_told_in_rows_and_one_row_comes_back() {
    for mode in ["delete", "wal"] {
        let shop = Shop::new(mode);
        shop.runs(CHANGE);
        assert_eq!(shop.rows(), AFTER);
        let log = shop.world.ok(&["log"]);
        assert!(
            log.contains("rows of shop.db, part of run python3"),
            "{log}"
        );
        let diff = shop.world.ok(&["diff", "@"]);
        for word in ["orders.2", "orders.7", "orders.9", "cup", "mug"] {
            assert!(diff.contains(word), "{mode}: {diff}");
        }
        shop.sql("UPDATE orders SET item = 'coffee' WHERE id = 1");
        shop.world.ok(&["undo", "shop.db:orders.2"]);
        assert_eq!(shop.rows(), ["1 coffee", "2 cup", "9 jar"], "{mode}");
        shop.world.ok(&["undo", "shop.db:orders.7"]);
        assert_eq!(
            shop.rows(),
            ["1 coffee", "2 cup", "7 pot", "9 jar"],
            "{mode}"
        );
        shop.world.check_store();
    }
}

#[test]
fn rows_that_others_wrote_since_stay_when_the_command_goes() {
    for mode in ["delete", "wal"] {
        let shop = Shop::new(mode);
        let run = shop.runs(CHANGE);
        shop.sql("INSERT INTO orders VALUES (8, 'theirs')");
        shop.world.ok(&["undo", &run]);
        assert_eq!(
            shop.rows(),
            ["1 tea", "2 cup", "7 pot", "8 theirs"],
            "{mode}"
        );
        shop.world.ok(&["redo", &run]);
        assert_eq!(
            shop.rows(),
            ["1 tea", "2 mug", "8 theirs", "9 jar"],
            "{mode}"
        );
        shop.world.check_store();
    }
}

#[test]
fn who_has_the_database_open_goes_on_with_it() {
    for mode in ["delete", "wal"] {
        let shop = Shop::new(mode);
        let theirs = shop.open();
        assert_eq!(rows(&theirs), BEFORE);
        let run = shop.runs(CHANGE);
        assert_eq!(rows(&theirs), AFTER, "{mode}");
        let inode = || fs::metadata(shop.world.path("shop.db")).unwrap().ino();
        let was = inode();
        shop.world.ok(&["undo", &run]);
        assert_eq!(
            inode(),
            was,
            "{mode}: the file was replaced under an open connection"
        );
        assert_eq!(rows(&theirs), BEFORE, "{mode}");
        theirs
            .execute("INSERT INTO orders VALUES (3, 'theirs')", [])
            .unwrap();
        assert_eq!(
            shop.rows(),
            ["1 tea", "2 cup", "3 theirs", "7 pot"],
            "{mode}"
        );
        shop.world.check_store();
    }
}

#[test]
fn where_nobody_else_is_all_of_it_comes_back_bit_for_bit() {
    let shop = Shop::new("delete");
    let before = shop.bytes();
    let run = shop.runs(CHANGE);
    let after = shop.bytes();
    for _ in 0..2 {
        shop.world.ok(&["undo", &run]);
        assert!(shop.bytes() == before, "it is not what it was");
        shop.world.ok(&["redo", &run]);
        assert!(shop.bytes() == after, "it is not what it became");
    }
    shop.world.check_store();
}

#[test]
fn a_row_that_somebody_changed_since_is_a_conflict_of_that_row() {
    let shop = Shop::new("wal");
    let run = shop.runs(CHANGE);
    shop.sql("UPDATE orders SET item = 'theirs' WHERE id = 2");
    let plan = shop.world.run(&["undo", &run, "-n"]);
    assert_eq!(plan.status.code(), Some(1), "{}", said(&plan));
    assert!(said(&plan).contains("orders.2"), "{}", said(&plan));
    shop.world.fails(1, &["undo", &run]);
    assert_eq!(shop.rows(), ["1 tea", "2 theirs", "9 jar"]);
    shop.world.ok(&["undo", &run, "--force"]);
    assert_eq!(shop.rows(), BEFORE);
    shop.world.ok(&["redo", &run]);
    assert_eq!(shop.rows(), ["1 tea", "2 theirs", "9 jar"]);
}

#[test]
fn a_pipe_that_a_command_makes_or_has_is_not_waited_for() {
    let shop = Shop::new("delete");
    let made = std::process::Command::new("mkfifo")
        .arg(shop.world.path("was-there"))
        .status();
    assert!(made.unwrap().success());
    let line = "mkfifo pipe pipe-wal; rm was-there; mkfifo was-there; chmod 600 was-there";
    shop.world.ok(&["run", "--", "sh", "-c", line]);
    shop.world.ok(&["undo"]);
    assert!(!shop.world.path("pipe").exists());
}

#[test]
fn what_is_not_told_in_rows_is_taken_back_as_a_file() {
    let shop = Shop::new("delete");
    let before = shop.bytes();
    let run = shop.runs("create table more(a); insert into orders values (9, 'jar')");
    shop.world.ok(&["undo", &run]);
    assert!(shop.bytes() == before, "it is not what it was");
    shop.world.check_store();
}

#[test]
fn a_death_between_the_rows_and_the_end_loses_nothing() {
    for point in ["run.ended", "run.rows", "run.settled", "run.committed"] {
        let shop = Shop::new("delete");
        let python = format!(
            "import sqlite3; c = sqlite3.connect('shop.db'); c.executescript(\"\"\"{CHANGE}\"\"\"); c.commit(); c.close(); open('beside', 'w').write('x')"
        );
        let output = shop
            .world
            .command(&["run", "--", "python3", "-c", &python])
            .env("BACKOUT_CRASH_AT", point)
            .output()
            .unwrap();
        let is_dead = output.status.signal() == Some(ABORTED) || !output.status.success();
        assert!(is_dead, "{point}: {}", said(&output));
        shop.world.run(&["recover"]);
        assert_eq!(shop.rows(), AFTER, "{point}");
        let log = shop.world.json(&["log", "-n", "10"]);
        for operation in log["operations"].as_array().unwrap() {
            shop.world.run(&["undo", operation["id"].as_str().unwrap()]);
        }
        assert_eq!(shop.rows(), BEFORE, "{point}: {log}");
        assert!(!shop.world.path("beside").exists(), "{point}");
        shop.world.check_store();
    }
}
