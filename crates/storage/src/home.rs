//! Whose kept files these are: a store knows where it lives, and so whether it is a copy of another one.
//!
//! A copied state directory has the same records as the first, but what they keep outside of it is there once, and the
//! first one's. So a store notes the path and the inode of its directory, in the file `home`:
//!
//! - The same path, or the same inode (a directory that was renamed): it is the same store.
//! - The path of the store that it is a copy of: it went away and came back, and is that store.
//! - None of these: it is a copy. Its first write notes how far the journal had come. What operations up to there keep outside
//!   of its own directory stays the first one's: this store takes nothing out and removes nothing.
//! - No note: a store of an older program. It is at home where it is first written.
//! - A note that cannot be read may be anybody's: it counts as a copy's. An empty one is what a loss of power left of a
//!   note that the disk never had, and counts as none: the note is not worth a sync of its own.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use backout_model::{Lsn, TargetPath};
use serde::{Deserialize, Serialize};

/// The name of the file.
const HOME: &str = "home";
/// Its name while it is written.
const NEW: &str = "home.new";

/// Where a store lives, as its file says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Noted {
    path: TargetPath,
    device: u64,
    inode: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    copied: Option<Copied>,
}

/// What a copy knows of the store that it was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Copied {
    /// Where that one was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<TargetPath>,
    /// The last record that both have.
    pub(crate) last: Lsn,
}

/// What an open store knows of its home.
#[derive(Debug, Default)]
pub(crate) struct Home {
    /// Of which store it is a copy, if it is one.
    pub(crate) copied: Option<Copied>,
    /// Whether the file says all this.
    is_noted: bool,
}

impl Home {
    /// Looks whether the store in `directory`, whose journal has come to `last`, is at home.
    pub(crate) fn find(directory: &Path, last: Lsn) -> io::Result<Self> {
        let here = Noted::here(directory)?;
        let copied = match fs::read(directory.join(HOME)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
            Ok(bytes) if bytes.iter().all(|byte| *byte == 0) => None,
            Ok(bytes) => match serde_json::from_slice::<Noted>(&bytes) {
                Ok(noted) if noted.is_same_place(&here) => {
                    let is_noted = Noted {
                        copied: None,
                        ..noted.clone()
                    } == here;
                    let copied = noted.copied;
                    return Ok(Self { copied, is_noted });
                }
                // It went away and came back.
                Ok(noted) if noted.was_copied_from(&here) => None,
                Ok(noted) => Some(Copied {
                    from: Some(noted.path),
                    last,
                }),
                Err(_) => Some(Copied { from: None, last }),
            },
        };
        let is_noted = false;
        Ok(Self { copied, is_noted })
    }

    /// Writes it down, unless that was done. Only within a write of the journal: nobody appends meanwhile. What cannot be
    /// written now is by the next one; until then the store knows it as it found it.
    pub(crate) fn note(&mut self, directory: &Path, last: impl FnOnce() -> Option<Lsn>) {
        if self.is_noted {
            return;
        }
        let Some(found) = last().and_then(|last| Self::find(directory, last).ok()) else {
            return;
        };
        self.is_noted = found.is_noted || write(directory, found.copied.as_ref()).is_ok();
        self.copied = found.copied;
    }
}

impl Noted {
    fn here(directory: &Path) -> io::Result<Self> {
        let found = fs::metadata(directory)?;
        Ok(Self {
            path: TargetPath::new(directory).map_err(io::Error::other)?,
            device: found.dev(),
            inode: found.ino(),
            copied: None,
        })
    }

    fn was_copied_from(&self, here: &Self) -> bool {
        let copied = self.copied.as_ref();
        copied.is_some_and(|copied| copied.from.as_ref() == Some(&here.path))
    }

    fn is_same_place(&self, here: &Self) -> bool {
        self.path == here.path || (self.device, self.inode) == (here.device, here.inode)
    }
}

fn write(directory: &Path, copied: Option<&Copied>) -> io::Result<()> {
    let noted = Noted {
        copied: copied.cloned(),
        ..Noted::here(directory)?
    };
    let new = directory.join(NEW);
    let mut file = File::options()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(&new)?;
    file.write_all(&serde_json::to_vec(&noted)?)?;
    fs::rename(&new, directory.join(HOME))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(directory: &Path, last: u64) -> Home {
        let mut home = Home::find(directory, Lsn(last)).unwrap();
        home.note(directory, || Some(Lsn(last)));
        home
    }

    #[test]
    fn a_store_that_was_renamed_is_the_same_and_a_copy_is_not() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| fs::canonicalize(scratch.path()).unwrap().join(name);
        fs::create_dir(at("first")).unwrap();
        assert_eq!(noted(&at("first"), 3).copied, None);
        fs::rename(at("first"), at("renamed")).unwrap();
        assert_eq!(noted(&at("renamed"), 4).copied, None);
        fs::create_dir(at("copy")).unwrap();
        fs::copy(at("renamed").join(HOME), at("copy").join(HOME)).unwrap();
        let copied = Copied {
            from: TargetPath::new(at("renamed")).ok(),
            last: Lsn(5),
        };
        assert_eq!(noted(&at("copy"), 5).copied.as_ref(), Some(&copied));
        // What it does itself is its own, so the place stays.
        assert_eq!(noted(&at("copy"), 9).copied.as_ref(), Some(&copied));
        // Put where the first one was noted, it is that one.
        fs::rename(at("renamed"), at("away")).unwrap();
        fs::create_dir(at("renamed")).unwrap();
        fs::copy(at("away").join(HOME), at("renamed").join(HOME)).unwrap();
        assert_eq!(noted(&at("renamed"), 9).copied, None);
        // So is the copy, if it is put there.
        fs::copy(at("copy").join(HOME), at("renamed").join(HOME)).unwrap();
        assert_eq!(noted(&at("renamed"), 9).copied, None);
    }

    #[test]
    fn a_note_that_cannot_be_read_may_be_anybodys() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = fs::canonicalize(scratch.path()).unwrap();
        fs::write(directory.join(HOME), "{\"path\": 1}").unwrap();
        let copied = noted(&directory, 7).copied.unwrap();
        assert_eq!((copied.from, copied.last), (None, Lsn(7)));
        fs::write(directory.join(HOME), [0; 30]).unwrap();
        assert_eq!(noted(&directory, 7).copied, None);
    }
}
