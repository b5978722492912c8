//! A long life: a million records and a hundred thousand versions, and how long everything takes then.
//!
//! `bench long` makes two stores, one a hundredth of the other: what depends on the length of the life shows as a ratio.
//! Every measurement is a real `backout` process, with its peak of memory.

mod build;

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::process::{Ran, run, run_well};
use crate::report::say;
use crate::{Failure, process, report};
use build::{Life, build};

/// The word that makes this program one that dies with work in flight: state, files, how many.
pub(crate) const DIE: &str = "--die-in-flight";

const RECORDS: usize = 1_000_000;
const ROUNDS: usize = 5;

/// One measured command.
struct Line {
    work: String,
    time: Duration,
    peak_bytes: u64,
}

/// Measures a short and a long life and writes the table.
pub(crate) fn measure(place: &Path, words: &[String]) -> Result<(), Failure> {
    let records = match words {
        [] => RECORDS,
        [flag, number] if flag == "--records" => number.parse()?,
        _ => return Err("usage: bench long [--records NUMBER]".into()),
    };
    let program = process::backout()?;
    let mut columns = Vec::new();
    for records in [records / 100, records] {
        say(&format!("a store with {records} records"));
        let here = place.join(records.to_string());
        std::fs::create_dir_all(&here)?;
        let life = build(&here, records)?;
        columns.push((records, measure_life(&program, &life)?));
    }
    let text = to_markdown(&columns);
    if records == RECORDS {
        report::write_section("long", &text)?;
    }
    say(&text);
    Ok(())
}

/// Dies as told on the command line.
pub(crate) fn die(words: &[String]) -> Result<(), Failure> {
    let [state, work, operations] = words else {
        return Err("state, files and a number are needed".into());
    };
    build::die_in_flight(Path::new(state), Path::new(work), operations.parse()?)
}

fn measure_life(program: &Path, life: &Life) -> Result<Vec<Line>, Failure> {
    let backout = |words: &[&str]| {
        let mut command = Command::new(program);
        command
            .args(words)
            .current_dir(&life.work)
            .env("BACKOUT_STATE_DIR", &life.state);
        command
    };
    let often = |work: &str, words: &[&str]| -> Result<Line, Failure> {
        let runs = (0..ROUNDS).map(|_| run_well(&mut backout(words)));
        median(work, runs.collect::<Result<_, _>>()?)
    };
    let once = |work: &str, words: &[&str]| -> Result<Line, Failure> {
        median(work, vec![run_well(&mut backout(words))?])
    };
    run_well(&mut backout(&["log", "-n", "1"]))?; // the first process after the copy reads the write-ahead log anew
    let mut lines = vec![
        often("`log -n 1`: open and look", &["log", "-n", "1"])?,
        often("`log -n 20`", &["log", "-n", "20"])?,
        often("`log -n 20` of one path", &["log", "-n", "20", "file-7"])?,
        often("`show @-1`", &["show", "@-1"])?,
        often("`status`", &["status"])?,
    ];
    let (mut writes, mut undos) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let text = format!("a version of round {round}\n");
        writes.push(run_well(&mut backout(&[
            "write", "file-7", "--text", &text,
        ]))?);
        undos.push(run_well(&mut backout(&["undo"]))?);
    }
    lines.push(median("`write` of one file", writes)?);
    lines.push(median("`undo` of the newest", undos)?);
    lines.push(often("`recover`, nothing in flight", &["recover"])?);
    for operations in [1, 10, 100] {
        let mut recoveries = Vec::new();
        for _ in 0..ROUNDS {
            let number = operations.to_string();
            let mut dying = Command::new(std::env::current_exe()?);
            run(dying.arg(DIE).arg(&life.state).arg(&life.work).arg(&number))?;
            recoveries.push(run_well(&mut backout(&["recover"]))?);
        }
        lines.push(median(
            &format!("`recover`, {operations} in flight"),
            recoveries,
        )?);
    }
    lines.push(once("`verify`", &["verify"])?);
    lines.push(once("`gc --dry-run`", &["gc", "--dry-run"])?);
    lines.push(once("`gc`", &["gc"])?);
    lines.push(once("`gc`, again", &["gc"])?);
    Ok(lines)
}

fn median(work: &str, mut runs: Vec<Ran>) -> Result<Line, Failure> {
    runs.sort_by_key(|ran| ran.time);
    let peak_bytes = runs
        .iter()
        .map(|ran| ran.peak_bytes)
        .max()
        .unwrap_or_default();
    let middle = runs.get(runs.len() / 2).ok_or("nothing was run")?;
    say(&format!(
        "  {work}: {:?}, {} MiB",
        middle.time,
        peak_bytes >> 20
    ));
    Ok(Line {
        work: work.to_owned(),
        time: middle.time,
        peak_bytes,
    })
}

const HEAD: &str = "\
Written by `cargo xtask bench long`: the same commands against a young store and one with a long life behind it, each a process \
of its own, medians and the highest peak of memory. Three records are one operation; three of ten operations write a new version \
of one of 10 000 files. What is in flight was applied and not committed when its process died.
";

fn to_markdown(columns: &[(usize, Vec<Line>)]) -> String {
    let mut text = format!("{HEAD}\n| |");
    let mut rule = "| --- |".to_owned();
    for (records, _) in columns {
        // Writing to a string cannot fail.
        let _written = write!(text, " {records} records | memory |");
        rule.push_str(" ---: | ---: |");
    }
    let _written = writeln!(text, "\n{rule}");
    let works = columns
        .first()
        .map(|(_, lines)| lines.as_slice())
        .unwrap_or_default();
    for (number, line) in works.iter().enumerate() {
        let _written = write!(text, "| {} |", line.work);
        for (_, lines) in columns {
            let Some(line) = lines.get(number) else {
                continue;
            };
            let ms = line.time.as_secs_f64() * 1000.0;
            let _written = write!(text, " {ms:.1} ms | {} MiB |", line.peak_bytes >> 20);
        }
        text.push('\n');
    }
    text
}
