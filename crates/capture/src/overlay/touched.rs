//! What one layer changes of what is below it: other layers, and the real files at the bottom.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use super::change::What;
use super::compare::{Difference, difference};
use super::plan::Means;
use super::stack::Stack;
use super::{OverlayError, xattrs};

/// One name that a layer changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched {
    /// The path that it has inside and outside.
    pub path: PathBuf,
    /// What happened to it, in a word.
    pub what: What,
    /// How many bytes it had, if it was a file.
    pub size_before: Option<u64>,
    /// How many bytes it has, if it is a file.
    pub size_after: Option<u64>,
}

/// Tells what the newest layer of a stack changes, sorted by path.
pub fn touched(stack: &Stack, points: &[PathBuf]) -> Result<Vec<Touched>, OverlayError> {
    let mut looker = Looker {
        means: stack.means,
        found: Vec::new(),
    };
    for (number, point) in points.iter().enumerate() {
        let upper = |layer: &PathBuf| layer.join(number.to_string()).join("upper");
        let top = upper(&stack.layer);
        if !top.is_dir() {
            continue;
        }
        let below = stack.lowers.iter().map(upper).filter(|path| path.is_dir());
        let lowers: Vec<PathBuf> = below.chain([point.clone()]).collect();
        looker
            .directory(&top, &lowers, point)
            .map_err(|source| OverlayError::Unreadable { path: top, source })?;
    }
    looker.found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(looker.found)
}

/// Where something is, and what.
type Found = (PathBuf, Metadata);

struct Looker {
    means: Means,
    found: Vec<Touched>,
}

impl Looker {
    /// Compares an upper directory with those that it merges with, topmost first.
    fn directory(&mut self, upper: &Path, lowers: &[PathBuf], path: &Path) -> io::Result<()> {
        for name in names(upper)? {
            let above = upper.join(&name);
            let Some(found) = look(&above)? else {
                continue;
            };
            let here = path.join(&name);
            let (below, merged) = self.below(lowers, &name)?;
            if is_whiteout(&found) {
                if let Some((_, was)) = &below {
                    self.push(here, What::Deleted, Some(was), None);
                }
                continue;
            }
            let what = match &below {
                None => Some(What::Created),
                Some((lower, _)) => match difference(&above, lower)? {
                    Difference::None => None,
                    Difference::Metadata => Some(What::Metadata),
                    Difference::Content => Some(What::Changed),
                },
            };
            if let Some(what) = what {
                let was = below.as_ref().map(|(_, was)| was);
                self.push(here.clone(), what, was, Some(&found));
            }
            if found.is_dir() {
                if is_opaque(self.means, &above)? {
                    self.hidden(&above, &merged, &here)?;
                }
                self.directory(&above, &merged, &here)?;
            }
        }
        Ok(())
    }

    /// What was in a directory that was made anew and is not in it any more, is gone.
    fn hidden(&mut self, upper: &Path, merged: &[PathBuf], path: &Path) -> io::Result<()> {
        let kept: BTreeSet<OsString> = names(upper)?.into_iter().collect();
        let mut before = BTreeSet::new();
        for lower in merged {
            before.extend(names(lower)?);
        }
        for name in before.difference(&kept) {
            if let (Some((_, was)), _) = self.below(merged, name)? {
                self.push(path.join(name), What::Deleted, Some(&was), None);
            }
        }
        Ok(())
    }

    /// Finds what a name is below, and the directories that it merges.
    fn below(&self, lowers: &[PathBuf], name: &OsStr) -> io::Result<(Option<Found>, Vec<PathBuf>)> {
        let (mut first, mut merged) = (None, Vec::new());
        for lower in lowers {
            let path = lower.join(name);
            let Some(found) = look(&path)? else {
                continue;
            };
            if is_whiteout(&found) {
                break;
            }
            let is_dir = found.is_dir();
            if first.is_none() {
                first = Some((path.clone(), found));
            }
            if !is_dir {
                break;
            }
            let is_last = is_opaque(self.means, &path)?;
            merged.push(path);
            if is_last {
                break;
            }
        }
        if first.as_ref().is_some_and(|(_, found)| !found.is_dir()) {
            merged.clear();
        }
        Ok((first, merged))
    }

    fn push(
        &mut self,
        path: PathBuf,
        what: What,
        before: Option<&Metadata>,
        after: Option<&Metadata>,
    ) {
        let size = |found: &Metadata| found.is_file().then_some(found.len());
        self.found.push(Touched {
            path,
            what,
            size_before: before.and_then(size),
            size_after: after.and_then(size),
        });
    }
}

/// An overlay notes a removed name as a character device with the number zero.
pub(super) fn is_whiteout(found: &Metadata) -> bool {
    found.file_type().is_char_device() && found.rdev() == 0
}

/// Tells whether a directory hides what is below it.
pub(super) fn is_opaque(means: Means, path: &Path) -> io::Result<bool> {
    let note = xattrs::read(path, &format!("{}opaque", means.xattr_prefix()))?;
    Ok(note.is_some_and(|value| value == b"y"))
}

/// Looks at a path that may not be there.
pub(super) fn look(path: &Path) -> io::Result<Option<Metadata>> {
    match fs::symlink_metadata(path) {
        Ok(found) => Ok(Some(found)),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(None),
            _ => Err(error),
        },
    }
}

/// Lists a directory, sorted.
pub(super) fn names(directory: &Path) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        names.push(entry?.file_name());
    }
    names.sort();
    Ok(names)
}
