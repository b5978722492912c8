//! The moment a command began, by the clock that stamps files.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use super::OverlayError;

/// How long one tick of the clock can take.
const TICK: Duration = Duration::from_millis(1);

/// How often it is looked at.
const LOOKS_MAX: usize = 50;

/// A moment, in nanoseconds since 1970: what was changed before has an earlier change time, what is changed from now on
/// the same or a later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClockReference(pub i64);

impl ClockReference {
    /// Reads it off a new file without waiting: what was done in the same tick before counts as done after.
    pub(super) fn at_once(directory: &Path) -> Result<Self, OverlayError> {
        let path = directory.join("clock");
        let stamp = || {
            let found = File::create(&path)?.metadata()?;
            fs::remove_file(&path)?;
            Ok(found.ctime().saturating_mul(1_000_000_000) + found.ctime_nsec())
        };
        let failed = |source| OverlayError::Unmakable {
            path: path.clone(),
            source,
        };
        stamp().map(Self).map_err(failed)
    }

    /// Waits for the clock to tick, so that nothing done before has the same stamp, and reads it off a new file.
    pub(super) fn now(directory: &Path) -> Result<Self, OverlayError> {
        let path = directory.join("clock");
        let stamp = || {
            let _gone = fs::remove_file(&path);
            let found = File::create(&path)?.metadata()?;
            let seconds = found.ctime().saturating_mul(1_000_000_000);
            Ok(seconds.saturating_add(found.ctime_nsec()))
        };
        let failed = |source| OverlayError::Unmakable {
            path: path.clone(),
            source,
        };
        let first: i64 = stamp().map_err(failed)?;
        let mut now = first;
        for _ in 0..LOOKS_MAX {
            if now > first {
                break;
            }
            std::thread::sleep(TICK);
            now = stamp().map_err(failed)?;
        }
        let _gone = fs::remove_file(&path);
        Ok(Self(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_before_is_older() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "x").unwrap();
        let now = ClockReference::now(directory.path()).unwrap();
        let found = fs::metadata(&file).unwrap();
        assert!(found.ctime() * 1_000_000_000 + found.ctime_nsec() < now.0);
        fs::write(&file, "y").unwrap();
        let found = fs::metadata(&file).unwrap();
        assert!(found.ctime() * 1_000_000_000 + found.ctime_nsec() >= now.0);
    }
}
