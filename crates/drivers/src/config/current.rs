//! A config file as it is now: its text, and the inode that it was read from.

use std::io::Read as _;

use backout_config::{ConfigError, SIZE_MAX};
use backout_model::{Digest, Effect, TargetPath};

use crate::file::compare::Current;
use crate::file::error::{FileError, Naming as _};
use crate::file::recipe::{Change, FileRecipe, Image, Kind};
use crate::file::sys::Node;

/// What was read.
#[derive(Debug)]
pub(super) struct Looked {
    pub(super) bytes: Vec<u8>,
    node: Node,
}

/// Why there is no text.
#[derive(Debug)]
pub(super) enum NoText {
    /// There is no such file, in words.
    NoFile(String),
    /// It is too large.
    Config(ConfigError),
}

/// Reads a file.
pub(super) fn look(path: &TargetPath) -> Result<Result<Looked, NoText>, FileError> {
    let current = Current::at(path)?;
    let no_file = |why: String| Ok(Err(NoText::NoFile(why)));
    let (Some(place), Some(node)) = (&current.place, current.node) else {
        return no_file(current.blocked.unwrap_or_else(|| "it is gone".to_owned()));
    };
    if node.kind != Kind::File {
        return no_file(format!("it is {} now", node.kind.noun()));
    }
    if node.identity.size > SIZE_MAX as u64 {
        return Ok(Err(NoText::Config(ConfigError::OverLimit {
            what: "the size in bytes",
            limit: SIZE_MAX,
        })));
    }
    let mut bytes = Vec::new();
    let mut file = place.read()?;
    file.read_to_end(&mut bytes).naming(path, "read")?;
    Ok(Ok(Looked { bytes, node }))
}

impl Looked {
    /// Says what a write of keys does not give back to the file itself, of what the first write took from it.
    pub(super) fn not_given_back(
        &self,
        path: &TargetPath,
        first: &Effect,
    ) -> Result<Vec<String>, FileError> {
        let recipe = FileRecipe::decode(&first.recipe)?;
        let mut notes = Vec::new();
        for change in &recipe.changes {
            let Change::Set {
                before: Image::Kept { copy, meta, .. },
                ..
            } = change
            else {
                continue;
            };
            if copy.is_some() {
                notes.push(format!(
                    "`{path}` has the key back, but does not share its bytes with its other names again"
                ));
            }
            if (meta.uid, meta.gid) != (self.node.uid, self.node.gid) {
                notes.push(format!(
                    "`{path}` has the key back, but not the owner and group that it had"
                ));
            }
        }
        Ok(notes)
    }

    /// Makes sure that the write of a file replaces exactly what was read, and not what somebody wrote since.
    pub(super) fn is_what_goes(
        &self,
        path: &TargetPath,
        write: &FileRecipe,
    ) -> Result<(), FileError> {
        let is_it = |image: &Image| match image {
            Image::File { digest, .. } => *digest == Digest::of(&self.bytes),
            Image::Kept {
                identity, digest, ..
            } => match digest {
                Some(digest) => *digest == Digest::of(&self.bytes),
                None => self.node.is_kept(Kind::File, identity),
            },
            Image::Absent
            | Image::Symlink { .. }
            | Image::Directory { .. }
            | Image::Special { .. }
            | Image::Linked { .. }
            | Image::Unkept { .. } => false,
        };
        let is_same = write.changes.iter().all(|change| match change {
            Change::Set { before, .. } => is_it(before),
            Change::Move { .. } | Change::Retouch { .. } | Change::Rewrite { .. } => false,
        });
        if is_same {
            return Ok(());
        }
        Err(FileError::Changed {
            path: path.to_string(),
        })
    }
}
