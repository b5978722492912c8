//! Rows: what capture costs a load like TPC-B, and how fast many rows go back, on SQLite, PostgreSQL and MariaDB.
//!
//! The servers are started here, in directories of their own, with their syncs on. Each round runs the load once with capture and
//! once without; medians are compared. How busy the machine was is written beside the figures.

mod servers;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use self::servers::{MariaDb, Postgres};
use crate::Failure;
use crate::durable::median;
use crate::process::{backout, run_well};
use crate::report::{Report, Row, say, write_section};

const ROUNDS: usize = 5;

/// How many transactions a round has, and how many rows the table of accounts.
const TRANSACTIONS: usize = 400;
const ACCOUNTS: usize = 10_000;

/// How many rows go back at once.
const ROWS: usize = 100_000;

/// What the design promises: at most so many times as long, and at least so many rows in a second.
const TIMES_MAX: f64 = 2.0;
const ROWS_PER_SECOND_MIN: f64 = 20_000.0;

/// The tables of TPC-B, in words that all three understand.
const TABLES: &str = "
    CREATE TABLE branch (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL);
    CREATE TABLE teller (id INTEGER PRIMARY KEY, branch INTEGER NOT NULL, balance INTEGER NOT NULL);
    CREATE TABLE account (id INTEGER PRIMARY KEY, branch INTEGER NOT NULL, balance INTEGER NOT NULL, filler CHAR(84));
    CREATE TABLE history (id INTEGER PRIMARY KEY, teller INTEGER, branch INTEGER, account INTEGER, delta INTEGER);
    CREATE TABLE many (id INTEGER PRIMARY KEY, name VARCHAR(40), amount INTEGER);
    INSERT INTO branch VALUES (1, 0);
";

/// A server or a file that the load can run on.
trait Store {
    fn name(&self) -> &'static str;
    /// Runs statements as its own client does, without us.
    fn client(&self, script: &Path) -> Command;
    /// Runs statements so that they are captured.
    fn captured(&self, script: &Path) -> Result<Command, Failure>;
    /// Lets what clients do be captured, or not.
    fn capture(&self, is_on: bool) -> Result<(), Failure>;
    /// What `backout sql --db` calls it.
    fn address(&self) -> String;
    /// Gives our program, with a state directory of its own.
    fn ours(&self) -> Command;
}

/// Measures all of it, and rewrites the section.
pub(crate) fn measure(place: &Path) -> Result<(), Failure> {
    let program = backout()?;
    let ours = |name| Ours::new(place, &program, name);
    let postgres = Postgres::start(place, ours("postgres")?)?;
    let mariadb = MariaDb::start(place, ours("mariadb")?)?;
    let file = SqliteFile {
        file: place.join("rows.db"),
        ours: ours("sqlite")?,
    };
    let stores: [&dyn Store; 3] = [&file, &postgres, &mariadb];
    let mut report = Report::default();
    for store in stores {
        say(&format!("measuring {}", store.name()));
        fill(place, store)?;
        report.rows.push(load(place, store)?);
        report.rows.push(back(store)?);
    }
    let busy = fs::read_to_string("/proc/loadavg")?;
    let busy = busy.split(' ').take(3).collect::<Vec<_>>().join(" ");
    let cores = std::thread::available_parallelism()?;
    let text = format!(
        "{}\nMeasured with {cores} processors under a load of {busy} (1, 5 and 15 minutes).\n",
        report.to_markdown()
    );
    write_section("rows", &text)?;
    say(&text);
    Ok(())
}

/// Makes the tables, before anything is captured.
fn fill(place: &Path, store: &dyn Store) -> Result<(), Failure> {
    let mut text = TABLES.to_owned();
    let mut rows = |table: &str, count: usize, row: &dyn Fn(usize) -> String| {
        for chunk in (1..=count).collect::<Vec<_>>().chunks(1000) {
            let values: Vec<String> = chunk.iter().map(|id| row(*id)).collect();
            let _written = writeln!(text, "INSERT INTO {table} VALUES {};", values.join(", "));
        }
    };
    rows("teller", 10, &|id| format!("({id}, 1, 0)"));
    rows("account", ACCOUNTS, &|id| format!("({id}, 1, 0, '')"));
    rows("many", ROWS, &|id| format!("({id}, 'name {id}', {id})"));
    run_well(&mut store.client(&script(place, "fill", &text)?))?;
    Ok(())
}

fn script(place: &Path, name: &str, text: &str) -> Result<PathBuf, Failure> {
    let path = place.join(format!("{name}.sql"));
    fs::write(&path, text)?;
    Ok(path)
}

/// Compares the load with capture and without. What a client of a server does is captured by the server, transaction by
/// transaction. Statements for a file go through us, all of them as one operation, and as one transaction without us.
fn load(place: &Path, store: &dyn Store) -> Result<Row, Failure> {
    let (mut on, mut off) = (Vec::new(), Vec::new());
    let (mut next, are_single) = (0, store.name() != SQLITE);
    for _ in 0..ROUNDS {
        store.capture(true)?;
        let with = script(
            place,
            "with",
            &transactions(&mut next, store.name() != SQLITE),
        )?;
        on.push(run_well(&mut store.captured(&with)?)?.time);
        store.capture(false)?;
        let mut text = transactions(&mut next, are_single);
        if !are_single {
            text = format!("BEGIN; {text} COMMIT;");
        }
        let without = script(place, "without", &text)?;
        off.push(run_well(&mut store.client(&without))?.time);
    }
    let (on, off) = (median(&mut on), median(&mut off));
    let times = on.as_secs_f64() / off.as_secs_f64();
    Ok(Row {
        work: format!("{TRANSACTIONS} transactions like TPC-B on {}", store.name()),
        measured: format!(
            "{} with capture, {} without: {times:.2} times",
            seconds(on),
            seconds(off)
        ),
        promise: format!("at most {TIMES_MAX} times"),
        kept: Some(times <= TIMES_MAX),
    })
}

/// Writes a round of transactions, each with numbers of its own.
fn transactions(next: &mut usize, are_single: bool) -> String {
    let mut text = String::new();
    for _ in 0..TRANSACTIONS {
        *next += 1;
        let id = *next;
        let (account, teller) = (id * 7919 % ACCOUNTS + 1, id % 10 + 1);
        let (begin, end) = if are_single {
            ("BEGIN;", "COMMIT;")
        } else {
            ("", "")
        };
        // Writing to a string cannot fail.
        let _written = writeln!(
            text,
            "{begin} UPDATE account SET balance = balance + {id} WHERE id = {account}; SELECT balance FROM account WHERE id = {account};
             UPDATE teller SET balance = balance + {id} WHERE id = {teller}; UPDATE branch SET balance = balance + {id} WHERE id = 1;
             INSERT INTO history VALUES ({id}, {teller}, 1, {account}, {id}); {end}"
        );
    }
    text
}

/// Measures how long an undo of many rows takes.
fn back(store: &dyn Store) -> Result<Row, Failure> {
    store.capture(true)?;
    let mut times = Vec::new();
    for round in 0..3 {
        let text = format!("UPDATE many SET amount = amount + {}", round + 1);
        let address = store.address();
        run_well(store.ours().args(["sql", "--db", &address, &text]))?;
        let undone = run_well(store.ours().args(["undo", "--everywhere"]))?;
        times.push(undone.time);
    }
    let time = median(&mut times);
    #[expect(clippy::cast_precision_loss, reason = "it is shown with three digits")]
    let speed = ROWS as f64 / time.as_secs_f64();
    Ok(Row {
        work: format!("undo of {ROWS} changed rows on {}", store.name()),
        measured: format!("{}: {speed:.0} rows in a second", seconds(time)),
        promise: format!("at least {ROWS_PER_SECOND_MIN:.0}"),
        kept: Some(speed >= ROWS_PER_SECOND_MIN),
    })
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

/// Our program, with a state directory for one server.
struct Ours {
    program: PathBuf,
    state: PathBuf,
}

impl Ours {
    fn new(place: &Path, program: &Path, name: &str) -> Result<Self, Failure> {
        let state = place.join(format!("{name}-state"));
        fs::create_dir(&state)?;
        let program = program.to_owned();
        Ok(Self { program, state })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .current_dir(&self.state)
            .env("BACKOUT_STATE_DIR", &self.state)
            .stdin(Stdio::null());
        command
    }
}

const SQLITE: &str = "SQLite";

/// A database in a file.
struct SqliteFile {
    file: PathBuf,
    ours: Ours,
}

impl Store for SqliteFile {
    fn name(&self) -> &'static str {
        SQLITE
    }

    fn client(&self, script: &Path) -> Command {
        let mut command = Command::new("sqlite3");
        let read = format!(".read {}", script.display());
        command.arg("-bail").arg(&self.file).arg(read);
        command
    }

    fn captured(&self, script: &Path) -> Result<Command, Failure> {
        let mut command = self.ours.command();
        command
            .args(["sql", "--db", &self.address()])
            .stdin(fs::File::open(script)?);
        Ok(command)
    }

    fn capture(&self, _is_on: bool) -> Result<(), Failure> {
        Ok(())
    }

    fn address(&self) -> String {
        self.file.display().to_string()
    }

    fn ours(&self) -> Command {
        self.ours.command()
    }
}
