//! Odd kinds of tables, values and clients of a `MariaDB`.

use crate::mysql::{SCHEMA, Shop};

const KINDS: &str = "
    CREATE TABLE kinds (
        id BIGINT UNSIGNED NOT NULL, k VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_swedish_ci NOT NULL,
        t TINYINT, y YEAR, d DECIMAL(30,10), f FLOAT, g DOUBLE, b BIT(40), da DATE, ti TIME(3), dt DATETIME(6),
        ts TIMESTAMP(2) NULL, tz TIMESTAMP NOT NULL DEFAULT '2001-01-01 00:00:00', c CHAR(5), s VARCHAR(100) COLLATE utf8mb4_bin,
        j JSON, e ENUM('x', 'y'), se SET('p', 'q'), bi BINARY(4), vb VARBINARY(20), bl LONGBLOB, jp VARCHAR(20) CHARACTER SET cp932,
        u UUID, made INT AS (t + 1) PERSISTENT, seen INT AS (t + 2) VIRTUAL, hid INT INVISIBLE DEFAULT 4,
        PRIMARY KEY (id, k)) CHARACTER SET utf8mb4;
    CREATE TABLE counted (id INT AUTO_INCREMENT PRIMARY KEY, v INT);
    CREATE TABLE parted (id INT PRIMARY KEY, v INT) PARTITION BY HASH (id) PARTITIONS 3;
    CREATE TABLE loose (v BLOB, w DOUBLE);
    SET sql_mode = 'ALLOW_INVALID_DATES';
    INSERT INTO kinds (id, k, t, y, d, f, g, b, da, ti, dt, ts, tz, c, s, j, e, se, bi, vb, bl, jp, u, hid) VALUES
      (18446744073709551615, 'É', -128, 1901, -1234567890.0987654321, 16777216.5, 0.1e0 + 0.2e0, b'1010101', '0000-00-00', '-838:59:59.001',
       '9999-12-31 23:59:59.999999', '2024-10-27 01:30:00.25', '1999-05-05 05:05:05', 'ab ', 'a\\\\\"\\n\\0é😀 ', '{\"a\":  1.0}', 'y', 'p,q', x'0001', x'00FF27', REPEAT(x'DEADBEEF', 30000), '日本',
       '123e4567-e89b-12d3-a456-426655440000', 1),
      (1, 'a', NULL, NULL, NULL, 1e38, -1e300, NULL, '2024-02-31', NULL, NULL, NULL, '2030-01-01', '', '', NULL, NULL, '', NULL, '', '', NULL, NULL, NULL);
    INSERT INTO counted (v) VALUES (1), (2); INSERT INTO parted VALUES (1, 1), (2, 2), (3, 3);
    INSERT INTO loose VALUES (x'00', 1e0 / 3), (x'00', 1e0 / 3), (NULL, NULL)";

#[test]
fn every_kind_of_value_goes_back_to_the_bit() {
    let shop = Shop::new(KINDS);
    let before = shop.all();
    for text in [
        "DELETE FROM kinds",
        "UPDATE kinds SET k = 'A' WHERE id = 1",
        "UPDATE kinds SET id = id - 1, t = 5, f = 0.1, s = 'x', bl = 'y', ts = NOW(), jp = 'x', b = 1, hid = 9, d = 1, g = 2, dt = NOW(6)",
        "INSERT INTO counted VALUES (0, 5); UPDATE counted SET id = 0 WHERE v = 1; DELETE FROM parted; INSERT INTO parted VALUES (1, 7), (9, 9)",
        "DELETE FROM loose; INSERT INTO loose VALUES (x'FF', 1e0 / 7), (x'FF', 1e0 / 7), (x'FF', 1e0 / 7)",
        "SET time_zone = '-11:00'; UPDATE kinds SET tz = '2024-03-31 02:30:00', ti = NULL; REPLACE INTO counted VALUES (1, 99)",
    ] {
        shop.sql(text);
        let after = shop.all();
        assert_ne!(before, after, "{text}");
        let id = shop.newest();
        shop.ok(&["undo", &id]);
        assert_eq!(shop.all(), before, "{text}");
        shop.ok(&["redo", &id]);
        assert_eq!(shop.all(), after, "{text}");
        shop.ok(&["undo", &id]);
        assert_eq!(shop.all(), before, "{text}");
    }
    // Another client, with settings of its own.
    shop.server.sql("shop", "SET time_zone = '+05:30', sql_mode = '', NAMES latin1; UPDATE kinds SET t = 1, tz = NOW(), s = CONCAT(s, 'x')");
    shop.ok(&["undo", &shop.newest(), "--others"]);
    assert_eq!(shop.all(), before);
}

#[test]
fn many_rows_are_one_target_and_go_back_whole() {
    let shop = Shop::new(SCHEMA);
    let before = shop.all();
    shop.sql("INSERT INTO loose SELECT seq FROM seq_1_to_3000; INSERT INTO a SELECT seq, seq, seq FROM seq_100_to_1000");
    let id = shop.newest();
    let shown = shop.ok(&["show", &id]);
    assert!(
        shown.contains("mysql:shop/shop/a") && !shown.contains("a:100"),
        "{shown}"
    );
    shop.ok(&["undo", &id]);
    assert_eq!(shop.all(), before);
}

#[test]
fn triggers_of_others_run_once_more_and_must_not_change_more() {
    let shop = Shop::new(&format!(
        "{SCHEMA}; CREATE TABLE notes (id INT AUTO_INCREMENT PRIMARY KEY, what TEXT);
         CREATE TRIGGER theirs AFTER UPDATE ON a FOR EACH ROW INSERT INTO notes (what) VALUES (NEW.u)"
    ));
    let before = shop.all();
    shop.sql("UPDATE a SET v = 9 WHERE id = 1");
    let id = shop.newest();
    let refused = shop.cli(&["undo", &id]);
    assert!(
        refused
            .err
            .contains("a trigger or a cascade would change more than what is taken back")
            && refused.err.contains("let it happen with `--force`"),
        "{refused}"
    );
    shop.ok(&["undo", &id, "--force"]);
    assert_ne!(shop.all(), before, "their trigger wrote a note");
    let shown = shop.ok(&["show", &shop.newest()]);
    assert!(
        shown.contains("the server cannot keep other triggers from running: they ran once more"),
        "{shown}"
    );
    let status = shop.cli(&["db", "status", "shop"]).to_string();
    assert!(
        status.contains(
            "the server cannot keep other triggers from running during an undo: they run once more"
        ),
        "{status}"
    );
}

#[test]
fn a_table_that_is_new_or_changed_since_is_left_alone_until_it_is_enrolled_again() {
    let shop = Shop::new(SCHEMA);
    shop.sql("UPDATE a SET v = 5 WHERE id = 1; UPDATE child SET a = 2 WHERE id = 10");
    let id = shop.newest();
    shop.server.sql("shop", "ALTER TABLE a DROP COLUMN v, ADD w TEXT; CREATE TABLE later (id INT PRIMARY KEY); RENAME TABLE loose TO looser");
    let refused = shop.cli(&["undo", &id]);
    assert!(
        refused
            .to_string()
            .contains("the columns of the table changed since"),
        "{refused}"
    );
    shop.cli(&["undo", &id, "--partial"]);
    assert_eq!(
        shop.server.sql("shop", "SELECT a FROM child WHERE id = 10"),
        "1\n"
    );
    for text in ["INSERT INTO later VALUES (1)", "UPDATE a SET w = 'x'"] {
        let refused = shop.cli(&["sql", "--db", "shop", text]);
        assert!(
            refused
                .err
                .contains("`backout db enroll` covers new tables"),
            "{refused}"
        );
    }
    shop.ok(&["db", "enroll", &shop.server.url("shop")]);
    let before = shop.all();
    shop.sql("INSERT INTO later VALUES (1); UPDATE a SET w = 'x'; DELETE FROM looser");
    shop.ok(&["undo", &shop.newest()]);
    assert_eq!(shop.all(), before);
}

#[test]
fn a_server_that_is_away_is_told_and_asked_again() {
    let mut shop = Shop::new(SCHEMA);
    let before = shop.all();
    shop.sql("UPDATE a SET v = 5");
    let id = shop.newest();
    // What was committed is on the disk of a server that was stopped, not killed.
    shop.server.sql("shop", "SET GLOBAL innodb_flush_log_at_trx_commit = 1; UPDATE a SET v = 6 WHERE id = 2; UPDATE a SET v = 5 WHERE id = 2");
    shop.server.down();
    let log = shop.cli(&["log"]);
    assert!(
        log.code == 0
            && log
                .err
                .contains("what other clients did in shop is not known now"),
        "{log}"
    );
    let refused = shop.cli(&["undo", &id]);
    assert!(
        refused.code != 0 && refused.err.contains("cannot be reached"),
        "{refused}"
    );
    shop.server.up();
    shop.ok(&["undo", &id, "--others"]);
    assert_eq!(shop.all(), before);
}

#[test]
fn who_may_not_come_in_is_told_where_a_password_was_looked_for() {
    let shop = Shop::new(SCHEMA);
    shop.server.sql(
        "mysql",
        "CREATE USER ann IDENTIFIED BY 'p w@'; GRANT ALL ON *.* TO ann",
    );
    let socket = shop.server.socket().display().to_string();
    let url = |login: &str| format!("mysql://{login}@localhost/shop?socket={socket}");
    let refused = shop.cli(&["sql", "--db", &url("ann"), "SELECT 1"]);
    assert!(
        refused
            .err
            .contains("there is none in MYSQL_PWD and none in ~/.my.cnf"),
        "{refused}"
    );
    shop.ok(&["sql", "--db", &url("ann:p%20w%40"), "UPDATE a SET v = 5"]);
    let asked = shop
        .world
        .command(&["sql", "--db", &url("ann"), "SELECT USER()"])
        .env("MYSQL_PWD", "p w@")
        .output()
        .unwrap();
    assert!(
        String::from_utf8_lossy(&asked.stdout).contains("ann@localhost"),
        "{asked:?}"
    );
    let found = std::process::Command::new("grep")
        .args(["-r", "-a", "-l", "p%20w\\|p w@"])
        .arg(shop.world.place("state"))
        .output();
    assert_eq!(String::from_utf8(found.unwrap().stdout).unwrap(), "");
    for (url, why) in [
        (
            "mysql://root@localhost/?socket=/nowhere",
            "the URL names no database",
        ),
        ("mysql://root@localhost:x/d", "the port is no number"),
        ("mysql://root@localhost/d?socket=/nowhere/s", "No such file"),
    ] {
        let refused = shop.cli(&["sql", "--db", url, "SELECT 1"]);
        assert!(
            refused.err.contains("cannot be reached") && refused.err.contains(why),
            "{refused}"
        );
    }
}

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    /// Makes up a transaction of a few statements.
    fn transaction(&mut self, client: u64) -> String {
        let count = 1 + self.roll(4);
        let each = (0..count).map(|_| {
            let (id, v) = (self.roll(30), self.roll(1000));
            match self.roll(9) {
                0 | 1 => format!("INSERT IGNORE INTO a VALUES ({id}, {v}, 'c{client}-{v}')"),
                2 => format!("UPDATE a SET v = v + {v} WHERE id % 7 = {}", id % 7),
                3 => format!("DELETE FROM a WHERE id = {id}"),
                4 => format!("INSERT IGNORE INTO child SELECT {id} + 100 * {client}, MIN(id) FROM a HAVING COUNT(*) > 0"),
                5 => format!("INSERT INTO loose VALUES ('{v}'), ('q')"),
                6 => "DELETE FROM loose LIMIT 1".to_owned(),
                7 => format!("REPLACE INTO friend SELECT {id}, MAX(id) FROM a"),
                _ => format!("UPDATE IGNORE a SET id = id + 1000 WHERE id = {id}"),
            }
        });
        each.collect::<Vec<_>>().join("; ")
    }
}

#[test]
fn random_transactions_of_several_clients_at_once_go_back_one_by_one() {
    let shop = Shop::new(SCHEMA);
    let before = shop.all();
    std::thread::scope(|scope| {
        for client in 1..=3 {
            let server = &shop.server;
            scope.spawn(move || {
                let mut dice = Dice(client * 7919);
                for _ in 0..10 {
                    // Two clients may stand in each other's way; then one of them is sent away, whole.
                    let sql = format!("START TRANSACTION; {}; COMMIT", dice.transaction(client));
                    let _ended = server.client("shop", &sql).output();
                }
            });
        }
        let mut dice = Dice(42);
        for _ in 0..5 {
            let _ended = shop.cli(&["sql", "--db", "shop", &dice.transaction(9)]);
        }
    });
    let after = shop.all();
    assert_ne!(before, after);
    let log = shop.ok(&["--json", "log", "-n", "0"]);
    let log: serde_json::Value = serde_json::from_str(&log).unwrap();
    let ids = log["operations"].as_array().unwrap().iter();
    let ids: Vec<String> = ids
        .map(|it| it["id"].as_str().unwrap().to_owned())
        .collect();
    assert!(ids.len() > 10, "{} operations", ids.len());
    let mut left = ids;
    while !left.is_empty() {
        let count = left.len();
        left.retain(|id| shop.cli(&["undo", id, "--others", "--committed"]).code != 0);
        // An undo takes what was built on it along.
        left.retain(|id| !shop.ok(&["show", id]).contains("undone"));
        assert!(left.len() < count, "none of {left:?} goes back");
    }
    assert_eq!(shop.all(), before);
}
