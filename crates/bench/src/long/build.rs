//! A store with a long life behind it, made by the engine itself: every record is real, chained and verifiable.
//!
//! It grows in memory-backed storage, where a sync costs nothing, and is copied to the disk before anything is measured.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use backout_drivers::file::FileRequest;
use backout_engine::{Engine, EngineError, Settings};

use crate::Failure;
use crate::process::run_well;
use crate::report::say;

/// Memory-backed storage, if the machine has some.
const MEMORY: &str = "/dev/shm";

/// An operation leaves three: armed, applied, committed.
const RECORDS_PER_OPERATION: usize = 3;

/// Of ten operations three write a new version of a file; the others change its mode.
const TEN: usize = 10;
const WRITES_IN_TEN: usize = 3;

/// How many files the versions are spread over.
const FILES: usize = 10_000;

/// A store and the files that it is about.
#[derive(Debug)]
pub(super) struct Life {
    pub(super) state: PathBuf,
    pub(super) work: PathBuf,
    /// The files lie in memory: their paths are in the records, so they stay where they were written.
    _memory: Option<tempfile::TempDir>,
}

/// Makes a store with so many records.
pub(super) fn build(place: &Path, records: usize) -> Result<Life, Failure> {
    let memory = Path::new(MEMORY)
        .is_dir()
        .then(|| tempfile::tempdir_in(MEMORY));
    let memory = memory.transpose()?;
    let growing = memory.as_ref().map_or(place, tempfile::TempDir::path);
    let (state, work) = (growing.join("state"), growing.join("work"));
    fs::create_dir_all(&work)?;
    grow(&state, &work, records)?;
    let mut life = Life {
        state,
        work,
        _memory: memory,
    };
    let on_disk = place.join("store");
    run_well(
        std::process::Command::new("cp")
            .arg("-a")
            .arg(&life.state)
            .arg(&on_disk),
    )?;
    fs::remove_dir_all(&life.state)?;
    life.state = on_disk;
    Ok(life)
}

fn grow(state: &Path, work: &Path, records: usize) -> Result<(), Failure> {
    let engine = open(state)?;
    let operations = records / RECORDS_PER_OPERATION;
    let begun = Instant::now();
    for number in 0..operations {
        let file = work.join(format!("file-{}", number / TEN % FILES));
        let request = if number % TEN < WRITES_IN_TEN {
            FileRequest::write(file, version(number))
        } else {
            let mode = if number.is_multiple_of(2) {
                "600"
            } else {
                "640"
            };
            FileRequest::Chmod {
                path: file,
                mode: mode.parse()?,
                recursive: false,
            }
        };
        engine.write(&request)?;
        if number % 20_000 == 0 {
            let per_operation = begun.elapsed() / u32::try_from(number + 1)?;
            say(&format!(
                "  {number} of {operations} operations, {per_operation:?} each"
            ));
        }
    }
    Ok(())
}

/// Opens a store that no cap makes smaller while it grows.
fn open(state: &Path) -> Result<Engine, EngineError> {
    let mut settings = Settings::new(state);
    settings.retention.store_bytes_max = u64::MAX;
    Engine::open(settings, backout_drivers::local)
}

fn version(number: usize) -> Vec<u8> {
    let line = format!("version {number} of a line in a file that lives long\n");
    line.repeat(10).into_bytes()
}

/// Has so many operations applied and not committed, each in the other, and dies.
pub(super) fn die_in_flight(state: &Path, work: &Path, operations: usize) -> Result<(), Failure> {
    let engine = open(state)?;
    nest(&engine, work, operations)?;
    Err("the process should have died".into())
}

fn nest(engine: &Engine, work: &Path, left: usize) -> Result<(), EngineError> {
    if left == 0 {
        std::process::abort();
    }
    let file = work.join(format!("in-flight-{left}"));
    let staged = engine.stage(&FileRequest::write(file, version(left)))?;
    staged.apply_and_verify(|| nest(engine, work, left - 1).map_err(|error| error.to_string()))?;
    Ok(())
}
