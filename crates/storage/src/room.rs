//! Opening the journal where its disk is full.
//!
//! The index of the write-ahead log is a file that every process maps. Whoever opens the journal first makes it anew, with
//! one byte written for each page of it. A file system with smaller blocks, or one that never writes in place, then has holes
//! there. Where no block is left for them, touching the page ends the process (SIGBUS) without a word. So where the disk is that full,
//! the index is in our own memory, which is possible as long as nobody else has the journal open: others wait meanwhile.
//! Whoever has it open in the usual way has made the index already.

use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};
use rustix::fs::{FallocateFlags, Mode, OFlags};

use crate::StateDir;

/// The index of a log of some thousand pages, and what the file system needs to know where it is.
const INDEX_BYTES: u64 = 64 * 1024;

/// The pause before the journal is asked for again.
const PAUSE: Duration = Duration::from_millis(10);

/// Tells whether the disk has no room for the index. Where few blocks are free, only trying tells: a file system keeps some for
/// root, and some for itself.
pub(crate) fn is_short(directory: &StateDir) -> bool {
    let Ok(disk) = rustix::fs::statvfs(directory.path()) else {
        return false;
    };
    if disk.f_bavail.saturating_mul(disk.f_frsize) >= INDEX_BYTES {
        return false;
    }
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let tried = rustix::fs::open(directory.path(), flags, Mode::RUSR | Mode::WUSR)
        .and_then(|file| rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, INDEX_BYTES));
    tried.is_err()
}

/// Opens the journal with the index in our own memory, or else with that of those who have it open. Tells whether it is
/// our own.
pub(crate) fn open(connection: &Connection, wait_max: Duration) -> rusqlite::Result<bool> {
    connection.busy_timeout(Duration::ZERO)?;
    let started = Instant::now();
    loop {
        for (mode, is_alone) in [("EXCLUSIVE", true), ("NORMAL", false)] {
            connection.pragma_update(None, "locking_mode", mode)?;
            let opened = connection.query_row("SELECT 1 FROM sqlite_schema", [], |_| Ok(()));
            match opened {
                Err(error) if is_busy(&error) && started.elapsed() < wait_max => {}
                Err(error) if is_busy(&error) => return Err(error),
                // What else is wrong shows when it is used.
                Ok(()) | Err(_) => {
                    connection.busy_timeout(wait_max)?;
                    return Ok(is_alone);
                }
            }
        }
        std::thread::sleep(PAUSE);
    }
}

/// Tells whether somebody else has what was asked for.
pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}
