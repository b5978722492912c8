//! Other clients of a `PostgreSQL`, several at once, and connections that break.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::postgres::{SCHEMA, Shop};

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
            match self.roll(8) {
                0 | 1 => format!("INSERT INTO a VALUES ({id}, {v}, 'c{client}-{v}') ON CONFLICT DO NOTHING"),
                2 => format!("UPDATE a SET v = v + {v} WHERE id % 7 = {}", id % 7),
                3 => format!("DELETE FROM a WHERE id = {id}"),
                4 => format!("INSERT INTO child SELECT {id} + 100 * {client}, min(id) FROM a HAVING count(*) > 0 ON CONFLICT DO NOTHING"),
                5 => format!("INSERT INTO loose VALUES ('{v}'), ('q')"),
                6 => "DELETE FROM loose WHERE ctid IN (SELECT ctid FROM loose LIMIT 1)".to_owned(),
                _ => format!("UPDATE a SET id = id + 1000 WHERE id = {id} AND NOT EXISTS (SELECT FROM a WHERE id = {id} + 1000)
                              AND NOT EXISTS (SELECT FROM child WHERE child.a = {id})"),
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
                for _ in 0..12 {
                    // Two clients may stand in each other's way; then one of them is sent away, whole.
                    let sql = format!("BEGIN; {}; COMMIT", dice.transaction(client));
                    let _ended = server
                        .program("psql", "postgres")
                        .args(["-qAt", "-v", "ON_ERROR_STOP=1", "-c", &sql])
                        .output();
                }
            });
        }
        let mut dice = Dice(42);
        for _ in 0..6 {
            let _ended = shop.cli(&["sql", "--db", "shop", &dice.transaction(9)]);
        }
    });
    let after = shop.all();
    assert_ne!(before, after);
    let log = shop.ok(&["--json", "log", "-n", "0"]);
    let log: serde_json::Value = serde_json::from_str(&log).unwrap();
    let ids: Vec<String> = log["operations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["id"].as_str().unwrap().to_owned())
        .collect();
    assert!(ids.len() > 10, "{} operations", ids.len());
    // What committed between two looks of ours stands in the journal behind what was built on it. Then the one that was built
    // on it goes first, and nothing is lost meanwhile.
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

#[test]
fn of_two_that_wait_for_each_other_one_is_sent_away_whole() {
    let shop = Shop::new(SCHEMA);
    let theirs = "BEGIN; UPDATE a SET v = 100 WHERE id = 2; SELECT pg_sleep(1); UPDATE a SET v = 100 WHERE id = 1; COMMIT";
    let ours =
        "UPDATE a SET v = 200 WHERE id = 1; SELECT pg_sleep(1); UPDATE a SET v = 200 WHERE id = 2";
    let (their, our) = std::thread::scope(|scope| {
        let their = scope.spawn(|| {
            let mut psql = shop.server.program("psql", "postgres");
            psql.args(["-qAt", "-v", "ON_ERROR_STOP=1", "-c", theirs])
                .output()
                .unwrap()
        });
        let our = shop.cli(&["sql", "--db", "shop", ours]);
        (their.join().unwrap(), our)
    });
    assert!(their.status.success() || our.code == 0, "{our}");
    let now = shop.server.psql("postgres", "SELECT DISTINCT v FROM a");
    assert_eq!(
        now.lines().count(),
        1,
        "all of one and nothing of the other: {now}"
    );
    if our.code != 0 {
        assert!(our.err.contains("deadlock detected"), "{our}");
        assert!(!shop.ok(&["log"]).contains("sql in shop"));
    }
}

#[test]
fn what_another_client_wrote_is_an_operation_with_its_name() {
    let shop = Shop::new(SCHEMA);
    let before = shop.all();
    shop.server.psql(
        "postgres",
        "SET backout.agent = 'builder'; UPDATE a SET v = v + 1",
    );
    shop.server.psql(
        "postgres",
        "BEGIN; INSERT INTO a VALUES (9, 9, 'nine'); ROLLBACK",
    );
    shop.server.psql(
        "postgres",
        "BEGIN; INSERT INTO a VALUES (5, 9, 'five'); DELETE FROM a WHERE id = 5; COMMIT",
    );
    let log = shop.ok(&["log"]);
    assert!(
        log.contains("builder") && log.contains("wrote a (2 changed)"),
        "{log}"
    );
    assert_eq!(log.lines().count(), 1, "{log}");
    shop.ok(&["undo", &shop.newest(), "--others"]);
    assert_eq!(shop.all(), before);
    assert_eq!(
        shop.ok(&["log"]).lines().count(),
        2,
        "nothing is taken up twice"
    );
}

#[test]
fn the_rows_and_files_of_a_command_are_one_undo() {
    let shop = Shop::new(SCHEMA);
    let before = shop.all();
    let psql = shop
        .server
        .psql_words("postgres", "COPY loose FROM STDIN; UPDATE a SET v = 0");
    let line = format!(
        "echo data > made; printf 'x\\ny\\n' | {}",
        psql[..psql.len() - 1].join(" ")
    );
    shop.ok(&[
        "run",
        "--",
        "sh",
        "-c",
        &format!("{line} 'COPY loose FROM STDIN'"),
    ]);
    assert!(shop.world.has("made") && shop.all().contains("(x)"));
    let log = shop.ok(&["--json", "log"]);
    let log: serde_json::Value = serde_json::from_str(&log).unwrap();
    let all = log["operations"].as_array().unwrap();
    let run = all.iter().find(|it| it["verb"] == "run").unwrap();
    shop.ok(&["undo", run["id"].as_str().unwrap()]);
    assert!(!shop.world.has("made"));
    assert_eq!(shop.all(), before);
}

#[test]
fn a_command_that_only_wrote_rows_is_not_called_one_that_changed_nothing() {
    let shop = Shop::new(SCHEMA);
    let before = shop.all();
    let psql = shop.server.psql_words("postgres", "UPDATE a SET v = 0");
    let words: Vec<&str> = ["run", "--"]
        .into_iter()
        .chain(psql.iter().map(String::as_str))
        .collect();
    shop.ok(&words);
    let log = shop.ok(&["log"]);
    assert!(
        log.contains("(what it did stands by itself, and goes with it)")
            && !log.contains("changed nothing"),
        "{log}"
    );
    let json: serde_json::Value = serde_json::from_str(&shop.ok(&["--json", "log"])).unwrap();
    let all = json["operations"].as_array().unwrap();
    let run = all.iter().find(|it| it["verb"] == "run").unwrap();
    shop.ok(&["undo", run["id"].as_str().unwrap()]);
    assert_eq!(shop.all(), before);
}

/// Nothing is cut.
const WHOLE: u8 = 0;
/// The next commit does not reach the server.
const BEFORE: u8 = 1;
/// The next commit reaches the server, and its answer nobody.
const AFTER: u8 = 2;
/// The answer is being kept back.
const SILENT: u8 = 3;

/// Stands between a client and the server, and cuts them off at a commit. It ends with the process of the test.
fn between(server: PathBuf, place: &Path, cut: &Arc<AtomicU8>) {
    let listener = UnixListener::bind(place.join(".s.PGSQL.5432")).unwrap();
    let cut = Arc::clone(cut);
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let client = client.unwrap();
            let server = UnixStream::connect(&server).unwrap();
            let (to_client, to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            let (asks, answers) = (Arc::clone(&cut), Arc::clone(&cut));
            std::thread::spawn(move || {
                pass(client, to_server, |bytes| goes_to_server(&asks, bytes));
            });
            std::thread::spawn(move || {
                let is_kept_back = || {
                    answers
                        .compare_exchange(SILENT, WHOLE, Ordering::SeqCst, Ordering::SeqCst)
                        .is_ok()
                };
                pass(server, to_client, |_| !is_kept_back());
            });
        }
    });
}

/// Tells whether what a client says may pass.
fn goes_to_server(cut: &AtomicU8, bytes: &[u8]) -> bool {
    if !bytes.windows(7).any(|it| it == b"COMMIT\0") {
        return true;
    }
    let swap = |from, to| {
        cut.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
    };
    let _answer_is_kept_back = swap(AFTER, SILENT);
    !swap(BEFORE, WHOLE)
}

/// Hands on what comes, until something may not pass: then both ends are closed.
fn pass(mut from: UnixStream, mut to: UnixStream, may_pass: impl Fn(&[u8]) -> bool) {
    let mut buffer = [0; 8192];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let read = buffer.get(..count).unwrap_or_default();
        if !may_pass(read) || to.write_all(read).is_err() {
            break;
        }
    }
    let _closed = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

#[test]
fn a_commit_whose_answer_was_lost_is_asked_for_and_one_that_never_came_did_not_happen() {
    let shop = Shop::new(SCHEMA);
    let place = tempfile::tempdir().unwrap();
    let cut = Arc::new(AtomicU8::new(WHOLE));
    between(shop.server.socket(), place.path(), &cut);
    let url = format!(
        "postgres://postgres@/postgres?host={}",
        place.path().display()
    );
    let before = shop.all();
    cut.store(BEFORE, Ordering::SeqCst);
    let lost = shop.cli(&["sql", "--db", &url, "UPDATE a SET v = 5"]);
    assert!(lost.code != 0, "{lost}");
    assert_eq!(cut.load(Ordering::SeqCst), WHOLE, "it was cut");
    assert_eq!(shop.all(), before);
    cut.store(AFTER, Ordering::SeqCst);
    let found = shop.cli(&["sql", "--db", &url, "UPDATE a SET v = 6"]);
    assert_eq!(found.code, 0, "{found}");
    assert_eq!(cut.load(Ordering::SeqCst), WHOLE, "it was cut");
    assert!(shop.all().contains("(1,6,one)"));
    shop.ok(&["undo", &shop.newest()]);
    assert_eq!(shop.all(), before);
    // The same for the way back.
    let id = shop.newest();
    cut.store(BEFORE, Ordering::SeqCst);
    let lost = shop.cli(&["redo", &id]);
    assert!(
        lost.code != 0 && cut.load(Ordering::SeqCst) == WHOLE,
        "{lost}"
    );
    assert_eq!(shop.all(), before);
    shop.ok(&["redo", &id]);
    assert!(shop.all().contains("(1,6,one)"));
}
