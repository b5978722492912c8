//! Durable writes: protected against bare, small and large.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use backout_drivers::file::FileRequest;
use backout_engine::{Engine, Settings};

use crate::Failure;
use crate::report::Row;

/// How often each contender writes. Short blocks alternate, so that the disk's moods hit both alike.
const ROUNDS: usize = 40;
const BLOCK: usize = 5;

/// Writes 4 KiB over an existing 4 KiB, bare and protected, in turns.
pub(crate) fn small(directory: &Path) -> Result<Vec<Row>, Failure> {
    let engine = Engine::open(
        Settings::new(directory.join("state")),
        backout_drivers::local,
    )?;
    let (bare, protected) = (directory.join("bare"), directory.join("protected"));
    fs::write(&bare, content(0))?;
    fs::write(&protected, content(0))?;
    let (mut bare_times, mut protected_times) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        for number in 0..BLOCK {
            let bytes = content(round * BLOCK + number + 1);
            let begun = Instant::now();
            bare_write(&bare, &bytes)?;
            bare_times.push(begun.elapsed());
        }
        for number in 0..BLOCK {
            let request = FileRequest::write(&protected, content(round * BLOCK + number + 1));
            let begun = Instant::now();
            engine.write(&request)?;
            protected_times.push(begun.elapsed());
        }
    }
    let (bare, protected) = (median(&mut bare_times), median(&mut protected_times));
    let ratio = protected.as_secs_f64() / bare.as_secs_f64();
    Ok(vec![Row {
        work: "protected durable write of 4 KiB, one process".to_owned(),
        measured: format!(
            "{ratio:.2} x bare ({} against {} us)",
            protected.as_micros(),
            bare.as_micros()
        ),
        promise: "<= 2.0 x bare".to_owned(),
        kept: Some(ratio <= 2.0),
    }])
}

/// Replaces ever larger files by a small one: the time must not grow with the size of what is kept.
pub(crate) fn large(directory: &Path) -> Result<Vec<Row>, Failure> {
    let mut settings = Settings::new(directory.join("state"));
    settings.retention.store_bytes_max = u64::MAX; // what is kept here is not the question
    let engine = Engine::open(settings, backout_drivers::local)?;
    let mut rows = Vec::new();
    for (name, size) in [
        ("1 MiB", 1 << 20),
        ("64 MiB", 64 << 20),
        ("1 GiB", 1_u64 << 30),
    ] {
        let (mut times, mut bare_times) = (Vec::new(), Vec::new());
        for _ in 0..3 {
            let path = directory.join("large");
            fill(&path, size)?;
            let begun = Instant::now();
            bare_write(&directory.join("bare"), &content(1))?;
            bare_times.push(begun.elapsed());
            let begun = Instant::now();
            engine.write(&FileRequest::write(&path, content(1)))?;
            times.push(begun.elapsed());
            fs::remove_file(&path)?;
        }
        let (time, bare) = (median(&mut times), median(&mut bare_times));
        let is_promised = size == 1 << 30;
        rows.push(Row {
            work: format!("a file of {name} is replaced, its old content kept"),
            measured: format!(
                "{:.2} ms, no byte copied (a bare durable write of 4 KiB: {:.2} ms)",
                time.as_secs_f64() * 1000.0,
                bare.as_secs_f64() * 1000.0
            ),
            promise: if is_promised {
                "<= 10 ms".to_owned()
            } else {
                String::new()
            },
            kept: is_promised.then_some(time <= Duration::from_millis(10)),
        });
    }
    Ok(rows)
}

fn content(number: usize) -> Vec<u8> {
    let line = format!("this is version {number} of a line that a program might have\n");
    line.repeat(4096 / line.len() + 1)
        .into_bytes()
        .into_iter()
        .take(4096)
        .collect()
}

/// What careful software does without us.
fn bare_write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let temporary = path.with_extension("tmp");
    let mut file = File::create(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    File::open(path.parent().ok_or("a file has a directory")?)?.sync_all()?;
    Ok(())
}

fn fill(path: &Path, size: u64) -> Result<(), Failure> {
    let mut file = File::create(path)?;
    let block = vec![b'x'; 1 << 20];
    for _ in 0..size >> 20 {
        file.write_all(&block)?;
    }
    file.sync_all()?;
    Ok(())
}

pub(crate) fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
