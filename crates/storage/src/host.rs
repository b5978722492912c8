//! Which machine uses the store: one at a time.
//!
//! SQLite's log is shared through the memory of one machine, so two machines with one state directory would tear the journal
//! apart. The file `host` names the machine that uses the store, and says when that last said so: its heartbeat.
//!
//! - The same machine, or another name of it (a container of the same boot): it goes on.
//! - Another machine, on a file system that machines share: refused, until somebody who knows that the other one is done with it
//!   removes the file.
//! - Another machine, elsewhere: the disk was moved, or a copy was brought. It is taken over, unless the other one was at work
//!   just now: then the file system is shared in a way that nobody told us of.
//! - No file, or one that cannot be read: a store of an older program, or what a loss of power left. It is made.
//!
//! Where the file cannot be written the store is used without: a full disk is no second machine. It has always the same length,
//! so that one write replaces all of it, and needs no sync.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::StorageError;
use crate::owner::{boot_id, host_id, host_name};

/// The name of the file.
const HOST: &str = "host";
/// Its length.
const BYTES: usize = 512;

/// The heart beats no more often than this,
const BEAT: Duration = Duration::from_secs(10);

/// and a machine whose heart has not beaten for so long is done with the store.
const SILENT_MAX: Duration = Duration::from_mins(1);

/// File systems that several machines may have mounted, as `statfs` names them (`linux/magic.h`).
const SHARED: [u64; 12] = [
    NFS, SMB, CIFS, SMB2, CEPH, V9FS, FUSE, OCFS2, GFS2, LUSTRE, GPFS, AFS,
];
const NFS: u64 = 0x6969;
const SMB: u64 = 0x517b;
const CIFS: u64 = 0xff53_4d42;
const SMB2: u64 = 0xfe53_4d42;
const CEPH: u64 = 0x00c3_6400;
const V9FS: u64 = 0x0102_1997;
const FUSE: u64 = 0x6573_5546;
const OCFS2: u64 = 0x7461_636f;
const GFS2: u64 = 0x0116_1970;
const LUSTRE: u64 = 0x0bd0_0bd0;
const GPFS: u64 = 0x4750_4653;
const AFS: u64 = 0x5346_414f;

/// The machine that uses a store, as its file says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Noted {
    host: String,
    name: String,
    boot: String,
    /// When it last said so: milliseconds since 1970.
    at: u64,
}

impl Noted {
    fn here() -> Self {
        Self {
            host: host_id(),
            name: host_name(),
            boot: boot_id().unwrap_or_default(),
            at: u64::try_from(since_1970().as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// Tells how long it has said nothing. A clock that went back, or runs ahead, counts as just now.
    fn silence(&self) -> Duration {
        since_1970().saturating_sub(Duration::from_millis(self.at))
    }

    /// Tells whether it says the same of the machine.
    fn is_like(&self, other: &Self) -> bool {
        (&self.host, &self.name, &self.boot) == (&other.host, &other.name, &other.boot)
    }

    fn read(directory: &Path) -> Option<Self> {
        let bytes = fs::read(directory.join(HOST)).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    fn is_same_machine(&self, other: &Self) -> bool {
        self.host == other.host || (self.boot == other.boot && !self.boot.is_empty())
    }
}

/// This machine, as a user of the store.
#[derive(Debug)]
pub(crate) struct Guest {
    directory: PathBuf,
    beaten: Mutex<Instant>,
}

impl Guest {
    /// Says that this machine uses the store, or why it may not.
    pub(crate) fn enter(directory: &Path) -> Result<Self, StorageError> {
        look(directory)?;
        Ok(Self {
            directory: directory.to_path_buf(),
            beaten: Mutex::new(Instant::now()),
        })
    }

    /// Says so again, now and then; finds out if another machine has taken the store.
    pub(crate) fn stay(&self) -> Result<(), StorageError> {
        let mut beaten = self.beaten.lock().unwrap_or_else(PoisonError::into_inner);
        if beaten.elapsed() >= BEAT {
            look(&self.directory)?;
            *beaten = Instant::now();
        }
        Ok(())
    }
}

fn look(directory: &Path) -> Result<(), StorageError> {
    let here = Noted::here();
    // Of two machines that make the file at the same moment one finds the other's.
    for is_last in [false, true] {
        let Some(noted) = Noted::read(directory) else {
            let made = write(directory, &here, !is_last);
            if !is_last && made.is_err() {
                continue;
            }
            return Ok(());
        };
        if noted.is_same_machine(&here) {
            if !noted.is_like(&here) || noted.silence() >= BEAT {
                // A heart that cannot beat is only noticed by a second machine.
                let _beaten = write(directory, &here, false);
            }
            return Ok(());
        }
        let is_shared = is_shared(directory);
        if is_shared || noted.silence() < SILENT_MAX {
            return Err(StorageError::AnotherHost {
                path: directory.to_path_buf(),
                host: noted.name,
                is_shared,
            });
        }
        let _noted = write(directory, &here, false);
        return Ok(());
    }
    Ok(())
}

fn since_1970() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default()
}

/// Writes the file whole; a new one only if there is none.
fn write(directory: &Path, noted: &Noted, is_new: bool) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(noted)?;
    bytes.resize(BYTES.max(bytes.len() + 1) - 1, b' ');
    bytes.push(b'\n');
    let mut options = File::options();
    options.write(true).mode(0o600);
    if is_new {
        options.create_new(true);
    } else {
        options.create(true).truncate(false);
    }
    let mut file = options.open(directory.join(HOST))?;
    file.write_all(&bytes)?;
    file.set_len(bytes.len() as u64)
}

/// Tells whether several machines may have the file system mounted.
fn is_shared(directory: &Path) -> bool {
    #[cfg(feature = "testing")]
    if std::env::var_os("BACKOUT_TEST_SHARED").is_some() {
        return true;
    }
    let found = rustix::fs::statfs(directory);
    found.is_ok_and(|found| SHARED.contains(&kind_of(found.f_type)))
}

/// The number is 32 bits wide, whatever the machine keeps it in.
fn kind_of(f_type: impl TryInto<i64>) -> u64 {
    f_type
        .try_into()
        .map_or(0, |kind| kind.cast_unsigned() & 0xffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elsewhere(directory: &Path, silent: Duration) {
        let other = Noted {
            host: "another".to_owned(),
            name: "other.example".to_owned(),
            boot: "another".to_owned(),
            at: silent_since(silent),
        };
        write(directory, &other, false).unwrap();
    }

    fn silent_since(silent: Duration) -> u64 {
        let then = since_1970().checked_sub(silent).unwrap();
        u64::try_from(then.as_millis()).unwrap()
    }

    fn is_here(directory: &Path) -> bool {
        Noted::read(directory).is_some_and(|noted| noted.is_like(&Noted::here()))
    }

    #[test]
    fn a_machine_that_was_at_work_just_now_keeps_the_store() {
        let directory = tempfile::tempdir().unwrap();
        elsewhere(directory.path(), Duration::ZERO);
        let refused = Guest::enter(directory.path()).unwrap_err();
        assert!(
            matches!(&refused, StorageError::AnotherHost { host, is_shared: false, .. } if host == "other.example"),
            "{refused}"
        );
        elsewhere(directory.path(), SILENT_MAX);
        let guest = Guest::enter(directory.path()).unwrap();
        assert!(is_here(directory.path()), "it is moved");
        // Whoever was at work here, and was silent for long, finds that out.
        elsewhere(directory.path(), Duration::ZERO);
        *guest.beaten.lock().unwrap() = Instant::now().checked_sub(BEAT).unwrap();
        assert!(matches!(
            guest.stay(),
            Err(StorageError::AnotherHost { .. })
        ));
    }

    #[test]
    fn another_name_of_this_machine_and_a_file_that_says_nothing_are_no_other_machine() {
        let directory = tempfile::tempdir().unwrap();
        let container = Noted {
            host: "a-container".to_owned(),
            name: "a-container".to_owned(),
            ..Noted::here()
        };
        write(directory.path(), &container, false).unwrap();
        Guest::enter(directory.path()).unwrap();
        assert!(is_here(directory.path()));
        for nothing in ["", "{", "\0\0\0"] {
            fs::write(directory.path().join(HOST), nothing).unwrap();
            Guest::enter(directory.path()).unwrap();
            assert!(is_here(directory.path()));
        }
    }

    #[test]
    fn the_heart_of_this_machine_beats_and_the_file_keeps_its_length() {
        let directory = tempfile::tempdir().unwrap();
        Guest::enter(directory.path()).unwrap();
        let silent = Noted {
            at: silent_since(BEAT),
            ..Noted::here()
        };
        write(directory.path(), &silent, false).unwrap();
        Guest::enter(directory.path()).unwrap();
        let noted = Noted::read(directory.path()).unwrap();
        assert!(noted.silence() < BEAT);
        let file = fs::metadata(directory.path().join(HOST)).unwrap();
        assert_eq!(file.len(), BYTES as u64);
    }
}
