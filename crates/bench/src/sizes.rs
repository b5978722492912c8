//! What the store takes.

use std::fs;
use std::path::Path;

use backout_drivers::file::FileRequest;
use backout_engine::{Engine, Settings};

use crate::Failure;
use crate::report::Row;

/// Fifty one-line edits of a file of 10 KiB, then compaction.
pub(crate) fn fifty_edits(directory: &Path) -> Result<Vec<Row>, Failure> {
    let engine = Engine::open(
        Settings::new(directory.join("state")),
        backout_drivers::local,
    )?;
    let path = directory.join("config.rs");
    let mut lines: Vec<String> = (0..1000).map(line).scan(0, fits).collect();
    fs::write(&path, text(&lines))?;
    for edit in 0..50 {
        let place = (edit * 37) % lines.len();
        if let Some(line) = lines.get_mut(place) {
            *line = format!("    let edited_{edit} = options.get(\"edited\").unwrap_or({edit});");
        }
        engine.write(&FileRequest::write(&path, text(&lines)))?;
    }
    let before = engine.store().stored_bytes()?.inline;
    engine.gc(false, true)?;
    let after = engine.store().stored_bytes()?.inline;
    Ok(vec![Row {
        work: "50 one-line edits of a file of 10 KiB".to_owned(),
        measured: format!("{after} bytes stored after compaction ({before} before)"),
        promise: "<= 6 KB".to_owned(),
        kept: Some(after <= 6_000),
    }])
}

/// A thousand operations on a hundred files, with a checkpoint every ten.
pub(crate) fn thousand_operations(directory: &Path) -> Result<Vec<Row>, Failure> {
    let state = directory.join("state");
    let engine = Engine::open(Settings::new(&state), backout_drivers::local)?;
    for number in 0..1000 {
        let path = directory.join(format!("file-{}", number % 100));
        let content = format!("{}\nversion {number}\n", line(number).repeat(20));
        engine.write(&FileRequest::write(&path, content))?;
        if number % 10 == 9 {
            engine.mark(None, step(number))?;
        }
    }
    let before = bytes_below(&state)?;
    engine.gc(false, true)?;
    drop(engine);
    let after = bytes_below(&state)?;
    Ok(vec![Row {
        work: "1 000 operations with a checkpoint every 10".to_owned(),
        measured: format!(
            "{:.2} MB on disk ({:.2} MB before compaction)",
            megabytes(after),
            megabytes(before)
        ),
        promise: "< 10 MB".to_owned(),
        kept: Some(after.max(before) < 10_000_000),
    }])
}

/// What an agent would keep with a checkpoint.
fn step(number: usize) -> serde_json::Value {
    serde_json::json!({ "step": number, "plan": ["read", "edit", "test"], "cwd": "work" })
}

/// A line of code, each one different.
fn line(number: usize) -> String {
    let words = [
        "parse", "render", "connect", "retry", "flush", "decode", "route", "verify",
    ];
    let word = |n: usize| words.get(n % words.len()).copied().unwrap_or_default();
    let (first, second) = (word(number), word(number / 3 + number));
    format!(
        "    pub fn {first}_{second}_{number}(&self, limit: usize) -> Result<{number}, Error> {{ }}"
    )
}

/// Takes lines until there are 10 KiB of them.
fn fits(taken: &mut usize, line: String) -> Option<String> {
    *taken += line.len() + 1;
    if *taken > 10 * 1024 { None } else { Some(line) }
}

fn text(lines: &[String]) -> String {
    let mut text = lines.join("\n");
    text.push('\n');
    text
}

fn bytes_below(directory: &Path) -> Result<u64, Failure> {
    let mut total = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let found = entry.metadata()?;
        total += if found.is_dir() {
            bytes_below(&entry.path())?
        } else {
            found.len()
        };
    }
    Ok(total)
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
