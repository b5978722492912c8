//! What the file driver can be asked.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

use backout_files::{Baseline, LayerEntry, Past};
use backout_model::ports::{DriverError, Request};
use backout_model::text::Occurrence;
use backout_model::{Digest, DriverName, JsonText, OperationKind, Verb, any_path};
use serde::{Deserialize, Serialize};

use super::any_bytes::{as_bytes, as_text};
use super::error::FileError;
use super::mode::ModeChange;

/// Where new bytes come from.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// From memory.
    Bytes(#[serde(with = "as_bytes")] Vec<u8>),
    /// From another file, by its path.
    Path(#[serde(with = "any_path")] PathBuf),
    /// From the content store.
    Stored(Digest),
    /// From an open file or a pipe, from where it stands to its end. Only this process has it.
    #[serde(skip)]
    Opened(File),
}

/// What must be there before a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expect {
    /// A file or nothing.
    #[default]
    Anything,
    /// Nothing.
    New,
    /// A file.
    Existing,
}

/// A write to the file system. Relative paths start at the current directory of the process; write,
/// append, edit and chmod follow a symbolic link at the end of the path, the others act on the link.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileRequest {
    /// Put a file's whole content.
    Write {
        /// The file.
        #[serde(with = "any_path")]
        path: PathBuf,
        /// Its new content.
        source: Source,
        /// What must be there before.
        expect: Expect,
        /// Whether missing directories are made.
        parents: bool,
        /// The permission bits; by default those of the old file, or the usual ones.
        mode: Option<u32>,
    },
    /// Add to a file's end.
    Append {
        /// The file.
        #[serde(with = "any_path")]
        path: PathBuf,
        /// What is added.
        source: Source,
    },
    /// Replace a part of a file.
    Edit {
        /// The file.
        #[serde(with = "any_path")]
        path: PathBuf,
        /// What is looked for.
        #[serde(with = "as_bytes")]
        search: Vec<u8>,
        /// What comes instead.
        #[serde(with = "as_bytes")]
        replacement: Vec<u8>,
        /// Which of the places found.
        occurrence: Occurrence,
    },
    /// Apply a unified patch of one or more files.
    Patch {
        /// The directory that the names in the patch start at, and that they may not leave.
        #[serde(with = "any_path")]
        base: PathBuf,
        /// The patch.
        #[serde(with = "as_bytes")]
        patch: Vec<u8>,
    },
    /// Remove a file, a link, an empty directory or a tree.
    Remove {
        /// The name that it is about.
        #[serde(with = "any_path")]
        path: PathBuf,
        /// Whether a directory goes with all that is in it.
        recursive: bool,
    },
    /// Give a file or a tree another name.
    Move {
        /// The old name.
        #[serde(with = "any_path")]
        from: PathBuf,
        /// The new name.
        #[serde(with = "any_path")]
        to: PathBuf,
        /// Whether a file of the new name is replaced.
        replace: bool,
    },
    /// Make a second file or tree like the first.
    Copy {
        /// The first.
        #[serde(with = "any_path")]
        from: PathBuf,
        /// The second.
        #[serde(with = "any_path")]
        to: PathBuf,
        /// Whether a directory is copied with all that is in it.
        recursive: bool,
        /// Whether a file of the new name is replaced.
        replace: bool,
    },
    /// Make a directory.
    Mkdir {
        /// The directory.
        #[serde(with = "any_path")]
        path: PathBuf,
        /// Whether missing directories above are made, and an existing one is fine.
        parents: bool,
        /// The permission bits.
        mode: Option<u32>,
    },
    /// Make a symbolic link.
    Symlink {
        /// The link.
        #[serde(with = "any_path")]
        path: PathBuf,
        /// Where it points, as given.
        #[serde(with = "as_text")]
        to: OsString,
        /// Whether a file of that name is replaced.
        replace: bool,
    },
    /// Give a file a second name.
    HardLink {
        /// The second name.
        #[serde(with = "any_path")]
        path: PathBuf,
        /// The file.
        #[serde(with = "any_path")]
        to: PathBuf,
    },
    /// Change permissions.
    Chmod {
        /// The name that it is about.
        #[serde(with = "any_path")]
        path: PathBuf,
        /// The bits to set, to clear or to give.
        mode: ModeChange,
        /// Whether all below it changes too.
        recursive: bool,
    },
    /// Change the owner.
    Chown {
        /// The name that it is about.
        #[serde(with = "any_path")]
        path: PathBuf,
        /// The new owner.
        uid: Option<u32>,
        /// The new group.
        gid: Option<u32>,
        /// Whether all below it changes too.
        recursive: bool,
    },
    /// Make real what a layer holds, all or nothing. Paths are absolute and come in the order of their names, so that what
    /// lies in a directory follows it.
    Layer {
        /// One line for people.
        summary: String,
        /// What changes.
        entries: Vec<LayerEntry>,
    },
    /// Make names what they were.
    Restore {
        /// One line for people.
        summary: String,
        /// The names, in their order, so that what lies in a directory follows it.
        names: Vec<Past>,
    },
    /// Several of these, all or nothing; later entries see what earlier ones planned.
    Batch(Vec<Self>),
    /// A batch whose paths, links followed, may not lead out of a directory.
    Within {
        /// The directory.
        #[serde(with = "any_path")]
        base: PathBuf,
        /// The changes.
        requests: Vec<Self>,
    },
}

impl FileRequest {
    /// Makes a plain write of bytes.
    pub fn write(path: impl Into<PathBuf>, bytes: impl Into<Vec<u8>>) -> Self {
        Self::Write {
            path: path.into(),
            source: Source::Bytes(bytes.into()),
            expect: Expect::Anything,
            parents: false,
            mode: None,
        }
    }

    /// Tells what kind of write it is.
    pub const fn verb(&self) -> Verb {
        match self {
            Self::Write { .. } => Verb::Write,
            Self::Append { .. } => Verb::Append,
            Self::Edit { .. } | Self::Patch { .. } => Verb::Edit,
            Self::Remove { .. } => Verb::Remove,
            Self::Move { .. } => Verb::Move,
            Self::Copy { .. } => Verb::Copy,
            Self::Mkdir { .. } => Verb::Mkdir,
            Self::Symlink { .. } | Self::HardLink { .. } => Verb::Link,
            Self::Chmod { .. } => Verb::Chmod,
            Self::Chown { .. } => Verb::Chown,
            Self::Layer { .. } | Self::Batch(_) | Self::Within { .. } => Verb::Batch,
            Self::Restore { .. } => Verb::Restore,
        }
    }

    /// Tells which row of the decision matrix it is.
    pub(crate) const fn kind(&self) -> OperationKind {
        match self {
            Self::Remove { .. } => OperationKind::FileDelete,
            Self::Patch { .. }
            | Self::Layer { .. }
            | Self::Restore { .. }
            | Self::Batch(_)
            | Self::Within { .. }
            | Self::Move { .. }
            | Self::Copy {
                recursive: true, ..
            }
            | Self::Chmod {
                recursive: true, ..
            }
            | Self::Chown {
                recursive: true, ..
            } => OperationKind::FileMulti,
            Self::Write { .. }
            | Self::Append { .. }
            | Self::Edit { .. }
            | Self::Copy { .. }
            | Self::Mkdir { .. }
            | Self::Symlink { .. }
            | Self::HardLink { .. }
            | Self::Chmod { .. }
            | Self::Chown { .. } => OperationKind::FileWrite,
        }
    }

    /// Says it in one line.
    pub fn summary(&self) -> String {
        let show = |path: &Path| path.display().to_string();
        match self {
            Self::Write { path, .. } => format!("write {}", show(path)),
            Self::Append { path, .. } => format!("append to {}", show(path)),
            Self::Edit { path, .. } => format!("edit {}", show(path)),
            Self::Patch { base, .. } => format!("patch {}", show(base)),
            Self::Remove {
                path,
                recursive: true,
            } => format!("remove {} and all below", show(path)),
            Self::Remove { path, .. } => format!("remove {}", show(path)),
            Self::Move { from, to, .. } => format!("move {} to {}", show(from), show(to)),
            Self::Copy { from, to, .. } => format!("copy {} to {}", show(from), show(to)),
            Self::Mkdir { path, .. } => format!("make directory {}", show(path)),
            Self::Symlink { path, to, .. } => format!("link {} to {}", show(path), to.display()),
            Self::HardLink { path, to } => format!("name {} also {}", show(to), show(path)),
            Self::Chmod { path, mode, .. } => format!("change mode of {} to {mode}", show(path)),
            Self::Chown { path, uid, gid, .. } => {
                let part = |id: &Option<u32>| id.map(|id| id.to_string()).unwrap_or_default();
                format!(
                    "change owner of {} to {}:{}",
                    show(path),
                    part(uid),
                    part(gid)
                )
            }
            Self::Layer { summary, .. } | Self::Restore { summary, .. } => summary.clone(),
            Self::Batch(requests) | Self::Within { requests, .. } => match requests.as_slice() {
                [] => "an empty batch".to_owned(),
                [only] => only.summary(),
                [first, rest @ ..] => format!("{} and {} more", first.summary(), rest.len()),
            },
        }
    }

    /// Lists the paths whose content it takes over.
    pub(crate) fn sources(&self) -> Vec<&Path> {
        match self {
            Self::Copy { from, .. } => vec![from],
            Self::HardLink { to, .. } => vec![to],
            Self::Write { source, .. } | Self::Append { source, .. } => match source {
                Source::Path(path) => vec![path],
                Source::Bytes(_) | Source::Stored(_) | Source::Opened(_) => Vec::new(),
            },
            Self::Batch(requests) | Self::Within { requests, .. } => {
                requests.iter().flat_map(Self::sources).collect()
            }
            Self::Edit { .. }
            | Self::Patch { .. }
            | Self::Remove { .. }
            | Self::Move { .. }
            | Self::Mkdir { .. }
            | Self::Symlink { .. }
            | Self::Chmod { .. }
            | Self::Chown { .. }
            | Self::Layer { .. }
            | Self::Restore { .. } => Vec::new(),
        }
    }

    /// Lists the paths as given, to be looked at together.
    pub fn paths(&self) -> Vec<&Path> {
        match self {
            Self::Write { path, .. }
            | Self::Append { path, .. }
            | Self::Edit { path, .. }
            | Self::Remove { path, .. }
            | Self::Mkdir { path, .. }
            | Self::Symlink { path, .. }
            | Self::Chmod { path, .. }
            | Self::Chown { path, .. } => vec![path],
            Self::Patch { base, .. } => vec![base],
            Self::HardLink { path, to } => vec![path, to],
            Self::Move { from, to, .. } | Self::Copy { from, to, .. } => vec![from, to],
            Self::Layer { entries, .. } => entries.iter().map(|entry| &*entry.path).collect(),
            Self::Restore { names, .. } => names.iter().map(|past| past.path.as_path()).collect(),
            Self::Batch(requests) | Self::Within { requests, .. } => {
                requests.iter().flat_map(Self::paths).collect()
            }
        }
    }
}

impl FileRequest {
    /// Lists the paths that it is about, but for those that are known to be new.
    pub(crate) fn old_paths(&self) -> Vec<&Path> {
        let Self::Layer { entries, .. } = self else {
            return self.paths();
        };
        let is_old = |entry: &&LayerEntry| entry.baseline != Baseline::Absent;
        let old = entries.iter().filter(is_old);
        old.map(|entry| &*entry.path).collect()
    }
}

impl Request for FileRequest {
    fn driver(&self) -> DriverName {
        DriverName::FILE
    }

    fn verb(&self) -> Verb {
        self.verb()
    }

    fn summary(&self) -> String {
        self.summary()
    }

    fn as_text(&self) -> Result<JsonText, DriverError> {
        Ok(JsonText::of(self).map_err(FileError::Request)?)
    }
}
