//! What it costs to make the rows of an `SQLite` file reversible, and how fast they come back.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use backout_drivers::sqlite::SqlRequest;
use backout_engine::{Engine, Settings, UndoOptions, UndoWhat};
use rusqlite::Connection;

use crate::Failure;
use crate::durable::median;
use crate::report::Row;

const ROUNDS: usize = 60;
const MANY: u64 = 100_000;

const BANK: &str = "PRAGMA journal_mode=WAL; CREATE TABLE branch(id INTEGER PRIMARY KEY, balance INT); \
                    CREATE TABLE teller(id INTEGER PRIMARY KEY, branch INT, balance INT); \
                    CREATE TABLE account(id INTEGER PRIMARY KEY, branch INT, balance INT, filler TEXT); \
                    CREATE TABLE history(account INT, teller INT, delta INT, at TEXT); \
                    INSERT INTO branch VALUES(1, 0); INSERT INTO teller VALUES(1, 1, 0); \
                    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) \
                    INSERT INTO account SELECT i, 1, 0, printf('%.80c', 'x') FROM n";

/// Measures transactions like those of TPC-B, and the undo of many rows.
pub(crate) fn measure(directory: &Path) -> Result<Vec<Row>, Failure> {
    fs::create_dir_all(directory.join("work"))?;
    let engine = Engine::open(Settings::new(directory.join("state")))?;
    let (bare, ours) = (
        directory.join("work/bare.db"),
        directory.join("work/ours.db"),
    );
    for path in [&bare, &ours] {
        Connection::open(path)?.execute_batch(BANK)?;
    }
    let connection = Connection::open(&bare)?;
    connection.execute_batch("PRAGMA synchronous=FULL")?;
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        let sql = transaction(round);
        let begun = Instant::now();
        connection.execute_batch(&format!("BEGIN IMMEDIATE; {sql}; COMMIT"))?;
        without.push(begun.elapsed());
        let begun = Instant::now();
        engine.write(&SqlRequest::new(ours.clone(), sql))?;
        with.push(begun.elapsed());
    }
    let ratio = median(&mut with).as_secs_f64() / median(&mut without).as_secs_f64();
    let transactions = Row {
        work: "a transaction like TPC-B's on an SQLite file, against the same without an undo"
            .to_owned(),
        measured: format!("{ratio:.2}x"),
        promise: "<= 2x".to_owned(),
        kept: Some(ratio <= 2.0),
    };
    Ok(vec![transactions, many(&engine, &ours)?])
}

fn transaction(round: usize) -> String {
    let account = round * 1583;
    format!(
        "UPDATE account SET balance = balance + 7 WHERE id = {account}; UPDATE teller SET balance = balance + 7 WHERE id = 1; \
         UPDATE branch SET balance = balance + 7 WHERE id = 1; INSERT INTO history VALUES({account}, 1, 7, '2027-01-15')"
    )
}

/// Changes many rows and takes that back.
fn many(engine: &Engine, path: &Path) -> Result<Row, Failure> {
    let all = "UPDATE account SET balance = balance + 1".to_owned();
    let done = engine.write(&SqlRequest::new(path.to_owned(), all))?;
    let id = done.id.ok_or("nothing was changed")?;
    let begun = Instant::now();
    engine.undo(
        &UndoWhat::Operations(vec![id.into()]),
        &UndoOptions::default(),
    )?;
    let rate = per_second(MANY, begun.elapsed());
    Ok(Row {
        work: format!("the undo of {MANY} rows of an SQLite file"),
        measured: format!("{rate:.0} rows/s"),
        promise: ">= 20000 rows/s".to_owned(),
        kept: Some(rate >= 20_000.0),
    })
}

fn per_second(rows: u64, time: Duration) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a count of rows")]
    let rows = rows as f64;
    rows / time.as_secs_f64()
}
