//! The witness: a small file beside the journal that remembers how far the journal had come, and the same as an attribute
//! of the directory.
//!
//! A write-ahead log that was cut short or deleted is a shorter history to the database, and nothing in it says so. The
//! witness does: in the same boot no committed record can be missing, after another boot none that was synced.
//!
//! - Written after each commit that appended records, without a sync. One that is behind is harmless.
//! - It carries its own digest. One that cannot be read is no witness.
//! - The attribute is there for whoever removes the end of the journal and the file with it: it goes only with the directory.
//!   Where a file system has no attributes there is the file alone.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use backout_model::{Digest, Lsn};
use serde::{Deserialize, Serialize};

use crate::owner::boot_id;

/// The name of the file.
pub(crate) const HEAD: &str = "head";

/// The name of the attribute.
const ATTRIBUTE: &str = "user.backout.head";

/// The file has always this length, so that one write replaces all of it.
const BYTES: usize = 512;
const DIGEST_BYTES: usize = 64;

/// How far the journal had come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Witness {
    /// The last record.
    pub(crate) last: Lsn,
    /// Of the last record that was seen.
    pub(crate) hash: Digest,
    /// The last record that was certainly on the disk.
    pub(crate) durable: Lsn,
    /// When the machine was started, for the others.
    boot: String,
}

impl Witness {
    /// Reads the witness of a state directory: the file or the attribute, whichever has seen more.
    pub(crate) fn read(directory: &Path) -> Option<Self> {
        let file = std::fs::read(directory.join(HEAD)).ok();
        let file = file.as_deref().and_then(Self::parse);
        let both = [file, Self::in_attribute(directory)].into_iter().flatten();
        both.max_by_key(Self::must_have)
    }

    fn in_attribute(directory: &Path) -> Option<Self> {
        let mut bytes = [0; BYTES];
        let length = rustix::fs::getxattr(directory, ATTRIBUTE, &mut bytes).ok()?;
        Self::parse(bytes.get(..length)?)
    }

    /// Takes the witness of a state directory away: it speaks of a journal that is no more.
    pub(crate) fn dismiss(directory: &Path) {
        // What is not there need not go.
        let _file = std::fs::remove_file(directory.join(HEAD));
        let _attribute = rustix::fs::removexattr(directory, ATTRIBUTE);
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let (digest, rest) = text.split_at_checked(DIGEST_BYTES)?;
        let json = rest.trim();
        (Digest::of(json.as_bytes()).to_string() == digest)
            .then(|| serde_json::from_str(json).ok())?
    }

    /// Gives the last record that must be in the journal now.
    pub(crate) fn must_have(&self) -> Lsn {
        if boot_id().is_ok_and(|boot| self.boot == boot) {
            self.last
        } else {
            self.durable
        }
    }
}

/// Where the witness is written.
#[derive(Debug)]
pub(crate) struct WitnessFile {
    path: PathBuf,
    file: Option<File>,
}

impl WitnessFile {
    /// Opens the file when it is needed first.
    pub(crate) fn of(directory: &Path) -> Self {
        Self {
            path: directory.join(HEAD),
            file: None,
        }
    }

    /// Notes the last record, unless a later one is noted already. It is a help and no duty: what cannot be
    /// written is not.
    pub(crate) fn note(&mut self, last: Lsn, hash: Digest, is_durable: bool) {
        let _noted = self.try_note(last, hash, is_durable);
    }

    fn try_note(&mut self, last: Lsn, hash: Digest, is_durable: bool) -> io::Result<()> {
        let file = match &self.file {
            Some(file) => file,
            None => self.file.insert(
                File::options()
                    .create(true)
                    .truncate(false)
                    .read(true)
                    .write(true)
                    .mode(0o600)
                    .open(&self.path)?,
            ),
        };
        let mut bytes = [0; BYTES];
        let length = file.read_at(&mut bytes, 0)?;
        let before = bytes.get(..length).and_then(Witness::parse);
        let directory = self.path.parent().unwrap_or(&self.path);
        let before = before.or_else(|| Witness::in_attribute(directory));
        let before = before.as_ref();
        if before.is_some_and(|before| before.last > last) {
            return Ok(());
        }
        let witness = Witness {
            last,
            hash,
            durable: if is_durable {
                last
            } else {
                before.map_or(Lsn(0), |before| before.durable)
            },
            boot: boot_id()?,
        };
        let json = serde_json::to_string(&witness)?;
        let mut text = format!("{}{json}", Digest::of(json.as_bytes()));
        let flags = rustix::fs::XattrFlags::empty();
        // Not every file system has attributes.
        let _kept = rustix::fs::setxattr(directory, ATTRIBUTE, text.as_bytes(), flags);
        text.extend(std::iter::repeat_n(' ', BYTES.saturating_sub(text.len())));
        file.write_all_at(text.as_bytes(), 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(directory: &Path, last: u64, is_durable: bool) {
        let hash = Digest::of(&last.to_le_bytes());
        WitnessFile::of(directory).note(Lsn(last), hash, is_durable);
    }

    #[test]
    fn the_witness_never_goes_back_and_knows_what_was_synced() {
        let directory = tempfile::tempdir().unwrap();
        noted(directory.path(), 7, true);
        noted(directory.path(), 9, false);
        noted(directory.path(), 8, true);
        let witness = Witness::read(directory.path()).unwrap();
        assert_eq!((witness.last, witness.durable), (Lsn(9), Lsn(7)));
        assert_eq!(witness.must_have(), Lsn(9));
        let other = Witness {
            boot: "another".to_owned(),
            ..witness
        };
        assert_eq!(other.must_have(), Lsn(7));
    }

    #[test]
    fn the_attribute_speaks_where_the_file_is_gone_or_behind() {
        let directory = tempfile::tempdir().unwrap();
        noted(directory.path(), 7, true);
        let old = std::fs::read(directory.path().join(HEAD)).unwrap();
        noted(directory.path(), 9, true);
        for file in [None, Some(old)] {
            match file {
                Some(bytes) => std::fs::write(directory.path().join(HEAD), bytes).unwrap(),
                None => std::fs::remove_file(directory.path().join(HEAD)).unwrap(),
            }
            let witness = Witness::read(directory.path()).unwrap();
            assert_eq!(witness.must_have(), Lsn(9));
        }
        Witness::dismiss(directory.path());
        assert_eq!(Witness::read(directory.path()), None);
    }

    #[test]
    fn a_witness_with_any_bit_changed_is_no_witness() {
        let directory = tempfile::tempdir().unwrap();
        noted(directory.path(), 7, true);
        let bytes = std::fs::read(directory.path().join(HEAD)).unwrap();
        let used = String::from_utf8_lossy(&bytes).trim_end().len();
        for index in 0..used {
            let mut hurt = bytes.clone();
            hurt[index] ^= 1;
            assert_eq!(Witness::parse(&hurt), None, "byte {index}");
        }
        assert_eq!(Witness::parse(&bytes[..40]), None);
        assert!(Witness::parse(&bytes).is_some());
    }
}
