//! Rows of a real `MariaDB`: changed through the program and by other clients, and taken back.

use std::os::unix::process::ExitStatusExt as _;

use crate::mysql_server::Server;
use crate::world::{Ran, World};

/// SIGABRT.
const ABORTED: i32 = 6;

pub(crate) const SCHEMA: &str = "
    CREATE TABLE a (id INT PRIMARY KEY, v DECIMAL(10,2), u VARCHAR(20) UNIQUE);
    CREATE TABLE loose (v TEXT);
    CREATE TABLE child (id INT PRIMARY KEY, a INT, FOREIGN KEY (a) REFERENCES a (id) ON DELETE CASCADE ON UPDATE CASCADE);
    CREATE TABLE grandchild (id INT PRIMARY KEY, child INT, FOREIGN KEY (child) REFERENCES child (id) ON DELETE CASCADE);
    CREATE TABLE friend (id INT PRIMARY KEY, a INT, FOREIGN KEY (a) REFERENCES a (id) ON DELETE SET NULL ON UPDATE SET NULL);
    INSERT INTO a VALUES (1, 1.10, 'one'), (2, 2.00, 'two');
    INSERT INTO loose VALUES ('q'), ('q'), (NULL);
    INSERT INTO child VALUES (10, 1), (20, 2);
    INSERT INTO grandchild VALUES (100, 10), (200, 20);
    INSERT INTO friend VALUES (7, 1), (8, 2)";

/// A database that is enrolled as `shop`, and a world of ours.
pub(crate) struct Shop {
    pub(crate) world: World,
    pub(crate) server: Server,
}

impl Shop {
    pub(crate) fn new(schema: &str) -> Self {
        let (world, server) = (World::new(), Server::start());
        server.sql("mysql", "CREATE DATABASE shop CHARACTER SET utf8mb4");
        server.sql("shop", schema);
        let shop = Self { world, server };
        let enrolled = shop.cli(&["db", "enroll", &shop.server.url("shop")]);
        assert_eq!(enrolled.code, 0, "{enrolled}");
        shop
    }

    pub(crate) fn cli(&self, words: &[&str]) -> Ran {
        self.world.run(&mut self.world.command(words))
    }

    #[track_caller]
    pub(crate) fn ok(&self, words: &[&str]) -> String {
        let ran = self.cli(words);
        assert_eq!(ran.code, 0, "{words:?}: {ran}");
        ran.out
    }

    #[track_caller]
    pub(crate) fn sql(&self, text: &str) -> String {
        self.ok(&["sql", "--db", "shop", text])
    }

    /// Everything that anybody can see, and not in which order it lies.
    pub(crate) fn all(&self) -> String {
        let dump = self.server.dump("shop");
        let mut lines: Vec<String> = dump
            .lines()
            .map(|line| line.trim_end_matches([',', ';']).to_owned())
            .collect();
        lines.sort();
        lines.join("\n")
    }

    /// Names the newest operation.
    pub(crate) fn newest(&self) -> String {
        let log = self.ok(&["--json", "log", "-n", "1"]);
        let log: serde_json::Value = serde_json::from_str(&log).unwrap();
        let newest = log.pointer("/operations/0/id").unwrap();
        newest.as_str().unwrap().to_owned()
    }
}

const WORK: &str = "UPDATE a SET v = 7 WHERE id = 1; DELETE FROM a WHERE id = 2; INSERT INTO a VALUES (3, 3, 'three');
    DELETE FROM loose WHERE v = 'q'; INSERT INTO loose VALUES ('z'), ('z');
    INSERT INTO a VALUES (1, 0, 'x') ON DUPLICATE KEY UPDATE v = 8;
    REPLACE INTO a VALUES (3, 33, 'three'), (4, 4, 'four');
    INSERT INTO child SELECT id + 30, id FROM a WHERE id > 2; UPDATE IGNORE a SET u = 'one' WHERE id = 4";

#[test]
fn a_new_row_that_was_undone_is_called_gone() {
    let shop = Shop::new(SCHEMA);
    shop.sql("INSERT INTO a VALUES (9, 9, 'nine'); UPDATE a SET v = 7 WHERE id = 1; DELETE FROM child WHERE id = 10");
    let id = shop.newest();
    let told = shop.ok(&["undo", &id]);
    let place = "mysql:shop/shop";
    for said in [
        "a:9       gone, as before",
        "a:1       restored",
        "child:10  restored",
    ] {
        assert!(told.contains(&format!("{place}/{said}")), "{said}: {told}");
    }
    let told = shop.ok(&["redo", &id]);
    for said in [
        "a:9       changed again",
        "a:1       changed again",
        "child:10  gone again",
    ] {
        assert!(told.contains(&format!("{place}/{said}")), "{said}: {told}");
    }
}

#[test]
fn rows_go_back_and_come_again() {
    let shop = Shop::new(SCHEMA);
    let before = shop.all();
    shop.sql(WORK);
    let after = shop.all();
    assert_ne!(before, after);
    let id = shop.newest();
    let foreseen = shop.ok(&["undo", "-n", &id]);
    for target in ["a:2", "child:20", "grandchild:200", "friend:8"] {
        let target = format!("mysql:shop/shop/{target}");
        assert!(foreseen.contains(&target), "{target}: {foreseen}");
    }
    assert_eq!(shop.all(), after, "a dry run changes nothing");
    shop.ok(&["undo", &id]);
    assert_eq!(shop.all(), before);
    shop.ok(&["redo", &id]);
    assert_eq!(shop.all(), after);
    shop.ok(&["undo", &id]);
    assert_eq!(shop.all(), before);
    let newest = shop.newest();
    let asked = shop.sql("SELECT id, u FROM a ORDER BY id");
    assert_eq!(asked, "id  u\n1   one\n2   two\n");
    assert_eq!(shop.newest(), newest, "a question is no operation");
}

#[test]
fn what_a_reference_does_to_other_rows_comes_back_whoever_did_it() {
    let shop = Shop::new(SCHEMA);
    let before = shop.all();
    shop.server.sql(
        "shop",
        "START TRANSACTION; DELETE FROM a WHERE id = 1; UPDATE a SET id = 22 WHERE id = 2; COMMIT",
    );
    let after = shop.all();
    assert!(
        after.contains("(20,22)") && after.contains("(8,NULL)"),
        "{after}"
    );
    let log = shop.ok(&["log"]);
    assert_eq!(log.lines().count(), 1, "{log}");
    assert!(log.contains("root/") && log.contains("wrote"), "{log}");
    let id = shop.newest();
    shop.ok(&["undo", &id, "--others"]);
    assert_eq!(shop.all(), before);
    shop.ok(&["redo", &id, "--others"]);
    assert_eq!(shop.all(), after);
}

#[test]
fn two_rows_that_swapped_what_is_unique_swap_it_back() {
    let shop = Shop::new(SCHEMA);
    let before = shop.all();
    shop.sql("UPDATE a SET u = 'x' WHERE id = 1; UPDATE a SET u = 'one' WHERE id = 2; UPDATE a SET u = 'two' WHERE id = 1");
    shop.ok(&["undo", &shop.newest()]);
    assert_eq!(shop.all(), before);
}

#[test]
fn a_row_that_somebody_changed_since_is_a_conflict_of_its_own() {
    let shop = Shop::new(SCHEMA);
    shop.sql("UPDATE a SET v = 5");
    let id = shop.newest();
    // Not through the log: as if it had been away.
    let log = "backout_shop.log";
    shop.server.sql("shop", &format!("RENAME TABLE {log} TO {log}2; UPDATE a SET v = 6 WHERE id = 1; RENAME TABLE {log}2 TO {log}"));
    let refused = shop.cli(&["undo", &id]);
    assert_eq!(refused.code, 1, "{refused}");
    assert!(
        refused.to_string().contains("mysql:shop/shop/a:1"),
        "{refused}"
    );
    assert!(shop.all().contains("2,5.00,'two'"), "nothing went back");
    shop.cli(&["undo", &id, "--partial"]);
    let now = shop.all();
    assert!(
        now.contains("1,6.00,'one'") && now.contains("2,2.00,'two'"),
        "{now}"
    );
    shop.ok(&["undo", &id, "--force"]);
    assert!(shop.all().contains("1,1.10,'one'"));
    shop.ok(&["redo", &shop.newest()]);
    assert!(
        shop.all().contains("1,6.00,'one'"),
        "what force replaced is kept"
    );
}

#[test]
fn a_unique_value_or_a_reference_that_somebody_took_meanwhile_is_a_conflict() {
    let shop = Shop::new(SCHEMA);
    shop.sql("DELETE FROM a WHERE id = 2; INSERT INTO a VALUES (7, 7, 'seven')");
    let id = shop.newest();
    shop.server.sql(
        "shop",
        "INSERT INTO a VALUES (8, 8, 'two'); INSERT INTO child VALUES (70, 7)",
    );
    let then = shop.all();
    // The plan tried it: what no force can help is told before anything is touched.
    let refused = shop.cli(&["undo", &id, "--committed"]).to_string();
    assert!(
        refused.contains("only one may have") && !refused.contains("--force"),
        "{refused}"
    );
    let refused = shop.cli(&["undo", &id, "--committed", "--partial"]);
    let said = refused.to_string();
    assert!(
        said.contains("only one may have") && said.contains("a row of `shop`.`child` refers to it"),
        "{said}"
    );
    assert!(
        shop.all().contains("70,7") && shop.all().contains("8,8.00,'two'"),
        "{then}"
    );
}

#[test]
fn a_death_at_any_point_leaves_all_or_nothing_and_a_way_back() {
    let work = ["sql", "--db", "shop", WORK];
    let shop = Shop::new(SCHEMA);
    let (before, points) = (shop.all(), shop.world.place("points"));
    let counted = shop
        .world
        .command(&work)
        .env("BACKOUT_CRASH_LOG", &points)
        .output()
        .unwrap();
    assert!(counted.status.success(), "{counted:?}");
    let names = std::fs::read_to_string(&points).unwrap();
    for name in ["rows.ran", "rows.marked", "rows.committed"] {
        assert!(names.contains(name), "{names}");
    }
    let after = shop.all();
    let id = shop.newest();
    std::fs::remove_file(&points).unwrap();
    let undo = ["undo", id.as_str()];
    let counted = shop
        .world
        .command(&undo)
        .env("BACKOUT_CRASH_LOG", &points)
        .output()
        .unwrap();
    assert!(counted.status.success(), "{counted:?}");
    let count = std::fs::read_to_string(&points).unwrap().lines().count();
    assert_eq!(shop.all(), before);
    for point in 1..=names.lines().count() {
        abort_at(&shop, &work, point);
        shop.ok(&["recover"]);
        // The last point is past the end: nothing is left to take back.
        if shop.all() == after {
            shop.ok(&["undo", &shop.newest()]);
        }
        assert_eq!(shop.all(), before, "point {point} of {names}");
    }
    // The same for the way back.
    shop.ok(&["redo", &id]);
    for point in 1..=count {
        abort_at(&shop, &undo, point);
        shop.ok(&["recover"]);
        if shop.all() == before {
            shop.ok(&["redo", &id]);
        }
        assert_eq!(shop.all(), after, "point {point} of the undo");
    }
}

#[track_caller]
fn abort_at(shop: &Shop, words: &[&str], point: usize) {
    let mut command = shop.world.command(words);
    let died = command
        .env("BACKOUT_CRASH_AT", point.to_string())
        .output()
        .unwrap();
    assert_eq!(
        died.status.signal(),
        Some(ABORTED),
        "point {point}: {died:?}"
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of what is told")]
fn what_cannot_be_taken_back_is_refused_and_did_not_happen() {
    let shop = Shop::new(&format!(
        "{SCHEMA}; CREATE TABLE old (id INT PRIMARY KEY) ENGINE = MyISAM; INSERT INTO old VALUES (1);
         CREATE TABLE place (id INT PRIMARY KEY, p POINT);
         CREATE TABLE tree (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES tree (id) ON DELETE CASCADE);
         CREATE VIEW of_old AS SELECT * FROM old; CREATE FUNCTION f() RETURNS INT MODIFIES SQL DATA RETURN (SELECT 1);
         CREATE PROCEDURE p() COMMIT; CREATE PROCEDURE q() INSERT INTO old VALUES (9);
         CREATE PROCEDURE r() EXECUTE IMMEDIATE 'INSERT INTO old VALUES (9)'"
    ));
    shop.server.sql(
        "mysql",
        "CREATE DATABASE other; CREATE TABLE other.t (id INT PRIMARY KEY)",
    );
    let status = shop.cli(&["db", "status", "shop"]).to_string();
    for said in [
        "`old` is not covered: its engine, MyISAM, has no transactions",
        "`place` is not covered: its column `p` is a point",
        "`tree` is not covered: what refers to it goes with it, and that leads back to it",
        "tables that are made later are not covered by themselves: enroll it once more then",
    ] {
        assert!(status.contains(said), "{said}: {status}");
    }
    let before = shop.server.dump("shop");
    let commits = "the server commits what is open when it runs it, or works outside of the transaction: it could not be taken back";
    let unknown = "has no triggers of Backout, so what was written there is not known";
    for (text, why) in [
        ("CREATE TABLE t (id INT)", commits),
        ("TRUNCATE a", commits),
        ("ALTER TABLE a ADD w INT", commits),
        (
            "UPDATE a SET v = 1; COMMIT",
            "one transaction, which Backout begins and ends",
        ),
        ("INSERT INTO old VALUES (2)", unknown),
        ("INSERT INTO other.t VALUES (2)", unknown),
        ("INSERT INTO of_old VALUES (2)", unknown),
        ("DELETE FROM tree", unknown),
        ("CALL q()", unknown),
        ("CALL r()", unknown),
        ("DELETE FROM backout_shop.log", unknown),
        (
            "SET autocommit = 1",
            "it changes more than a variable of this session",
        ),
        (
            "PREPARE s FROM 'TRUNCATE a'",
            "what it does stands in a text that is not known yet",
        ),
        (
            "LOAD DATA LOCAL INFILE '/etc/hosts' INTO TABLE loose",
            "there is no stream to read from here; use the server's own client, whose rows are kept, too",
        ),
        (
            "SELECT 1 INTO OUTFILE '/tmp/never-made'",
            "it would write a file",
        ),
        (
            "/*!50000 TRUNCATE a */",
            "it has a comment that the server carries out",
        ),
        (
            "UPDATE a SET v = 1; SELECT nothing FROM nowhere",
            "doesn't exist",
        ),
        (
            "SET SESSION max_statement_time = 0.01; SELECT SLEEP(5)",
            "max_statement_time",
        ),
        ("UPDATE a SET v = 1; KILL CONNECTION_ID()", commits),
    ] {
        let refused = shop.cli(&["sql", "--db", "shop", text]);
        assert_eq!(refused.code, 1, "{text}: {refused}");
        assert!(refused.err.contains(why), "{text}: {refused}");
        assert_eq!(shop.server.dump("shop"), before, "{text}");
    }
    assert_eq!(shop.ok(&["log"]), "no operations\n");
    // Whoever only reads may look at all of it.
    assert_eq!(shop.sql("SELECT * FROM of_old"), "id\n1\n");
    assert_eq!(shop.sql("SELECT f()"), "f()\n1\n");
    // What a procedure committed is there, and is taken up.
    let refused = shop.cli(&[
        "sql",
        "--db",
        "shop",
        "UPDATE a SET v = 9 WHERE id = 1; CALL p(); UPDATE a SET v = 9",
    ]);
    assert!(
        refused.err.contains("a statement ended the transaction"),
        "{refused}"
    );
    shop.ok(&["undo", &shop.newest(), "--others"]);
    assert_eq!(shop.server.dump("shop"), before);
}

#[test]
fn unenrolling_leaves_nothing_behind() {
    let (world, server) = (World::new(), Server::start());
    server.sql("mysql", "CREATE DATABASE shop CHARACTER SET utf8mb4");
    server.sql("shop", &format!("{SCHEMA}; CREATE TRIGGER theirs BEFORE INSERT ON loose FOR EACH ROW SET NEW.v = LOWER(NEW.v)"));
    let everything = |server: &Server| {
        let databases = server.sql("mysql", "SHOW DATABASES");
        databases + &server.dump_with("shop", &["--triggers"])
    };
    let before = everything(&server);
    let shop = Shop { world, server };
    shop.ok(&["db", "enroll", &shop.server.url("shop"), "--name", "mine"]);
    let refused = shop.cli(&["db", "enroll", &shop.server.url("shop"), "--name", "other"]);
    assert!(
        refused
            .err
            .contains("the database is enrolled as `mine` already"),
        "{refused}"
    );
    shop.ok(&["sql", "--db", "mine", "DELETE FROM a"]);
    shop.ok(&["undo", &shop.newest()]);
    let refused = shop.cli(&["db", "unenroll", "mine"]);
    assert!(refused.err.contains("`mine` stays enrolled"), "{refused}");
    shop.ok(&["db", "unenroll", "mine", "--discard"]);
    assert_eq!(everything(&shop.server), before);
    let refused = shop.cli(&["sql", "--db", &shop.server.url("shop"), "SELECT 1"]);
    assert!(
        refused
            .err
            .contains("is not enrolled: enroll it with `backout db enroll"),
        "{refused}"
    );
}

#[test]
fn what_the_journal_let_go_is_pruned_and_nothing_before() {
    let shop = Shop::new(SCHEMA);
    shop.sql("UPDATE a SET v = 5");
    let count = "SELECT COUNT(*) FROM backout_shop.log FOR SYSTEM_TIME ALL";
    shop.ok(&["db", "sync"]);
    assert_eq!(shop.server.sql("shop", count), "2\n");
    shop.world.minutes(60 * 24 * 40);
    let gone = shop.cli(&["gc"]);
    assert_eq!((gone.code, gone.err.as_str()), (0, ""), "{gone}");
    assert_eq!(shop.server.sql("shop", count), "0\n");
    let done = shop.server.client("shop", "DELETE FROM backout_shop.log; INSERT INTO a VALUES (5, 5, 'five'); DELETE FROM backout_shop.log").output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(
        said.contains("the log of Backout is not changed by hand"),
        "{said}"
    );
}
