//! From a path as given to the one name that it means, with what is planned before it in the same batch.
//!
//! A link that an earlier change makes is followed, and one that it takes away is not: the path means what it would mean
//! if the earlier changes had been made already.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use backout_model::TargetPath;

use super::{Planner, View};
use crate::file::error::FileError;
use crate::file::execute::Step;
use crate::file::recipe::{Change, Image, Kind};
use crate::file::resolve::{LINKS_MAX, Last, Resolved, refuse_ours, resolve};

/// One step on the way along a path.
enum Part {
    Name(OsString),
    Up,
    /// The end of a link: one that leads nowhere cannot become a directory.
    Directory,
}

impl Planner<'_> {
    /// Finds the name that a path means, and lets a file be there that was to be moved there.
    pub(super) fn resolve(&mut self, given: &Path, last: Last) -> Result<TargetPath, FileError> {
        let path = self.name_of(given, last)?;
        self.untangle(&path)?;
        Ok(path)
    }

    /// Finds the name that a path means.
    pub(super) fn name_of(&mut self, given: &Path, last: Last) -> Result<TargetPath, FileError> {
        let resolved = if self.steps.is_empty() {
            resolve(self.context, given, last)?
        } else {
            self.walk(given, last)?
        };
        let path = &resolved.path;
        if let Some(base) = self.within.as_ref()
            && !(path.is_below(base) || path == base)
        {
            return Err(FileError::Escapes {
                path: given.display().to_string(),
                to: path.to_string(),
            });
        }
        self.through.extend(resolved.through(given));
        if let Some(link) = resolved.link {
            self.keeper
                .notes
                .push(format!("followed the link `{link}` to `{}`", resolved.path));
        }
        Ok(resolved.path)
    }

    /// Goes along a path, name by name.
    fn walk(&self, given: &Path, last: Last) -> Result<Resolved, FileError> {
        let shown = || given.display().to_string();
        let missing = || FileError::NotFound { path: shown() };
        let absolute = std::path::absolute(given).map_err(|source| FileError::Io {
            path: shown(),
            action: "find",
            source,
        })?;
        let root = || TargetPath::new("/").map_err(|_| FileError::Unusable { path: shown() });
        let (mut at, mut link, mut links) = (root()?, None, 0);
        let mut rest = parts(&absolute);
        while let Some(part) = rest.pop_front() {
            let next = match part {
                // What is not there has nothing above it either.
                Part::Up | Part::Directory if !self.is_directory(&at)? => return Err(missing()),
                Part::Up => {
                    at = at.parent().unwrap_or(at);
                    continue;
                }
                Part::Directory => continue,
                Part::Name(name) => at.join(&name),
            };
            let is_last = rest.is_empty();
            let pointed = match last {
                Last::Itself if is_last => None,
                Last::Itself | Last::Followed => self.link_at(&next)?,
            };
            let Some(pointed) = pointed else {
                at = next;
                continue;
            };
            links += 1;
            if links > LINKS_MAX {
                return Err(FileError::Circle { path: shown() });
            }
            if is_last && link.is_none() {
                link = Some(next.clone());
            }
            if pointed.is_absolute() {
                at = root()?;
            }
            let mut way = parts(&pointed);
            if !is_last {
                way.push_back(Part::Directory);
            }
            way.append(&mut rest);
            rest = way;
        }
        if at.parent().is_none() {
            return Err(FileError::Unusable { path: shown() });
        }
        refuse_ours(self.context, &at)?;
        Ok(Resolved { path: at, link })
    }

    fn is_directory(&self, path: &TargetPath) -> Result<bool, FileError> {
        if path.parent().is_none() {
            return Ok(true);
        }
        match self.view(path) {
            Ok(View::Real(_, node)) => Ok(node.kind == Kind::Directory),
            Ok(View::Planned(index)) => Ok(self.after(index).is_some_and(Image::is_directory)),
            // What was moved is looked at when it is used.
            Err(FileError::Entangled { .. }) => Ok(true),
            Ok(View::Absent) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Reads where a name points, if it will be a link by now.
    fn link_at(&self, path: &TargetPath) -> Result<Option<PathBuf>, FileError> {
        if let Some(index) = self.sets.get(path) {
            return match self.after(*index) {
                Some(Image::Symlink { to, .. }) => Ok(Some(OsStr::from_bytes(&to.0).into())),
                Some(Image::Linked {
                    to,
                    identity: Some(_),
                    ..
                }) => read_link(to),
                Some(Image::Linked { to, .. }) => self.link_at(to),
                Some(_) | None => Ok(None),
            };
        }
        if let Some(step) = self.moved_to.get(path).and_then(|at| self.steps.get(*at)) {
            return match &step.change {
                Change::Move {
                    from,
                    node: Kind::Symlink,
                    ..
                } => read_link(from),
                Change::Move { .. }
                | Change::Set { .. }
                | Change::Retouch { .. }
                | Change::Rewrite { .. } => Ok(None),
            };
        }
        let is_planned = |above: &TargetPath| {
            self.sets.contains_key(above)
                || self.moved_from.contains_key(above)
                || self.moved_to.contains_key(above)
        };
        if self.moved_from.contains_key(path) || path.ancestors().any(|above| is_planned(&above)) {
            return Ok(None);
        }
        read_link(path)
    }

    /// Refuses to replace what an earlier change of the batch made and then gave a second name: that one stays.
    pub(super) fn refuse_named(&self, path: &TargetPath) -> Result<(), FileError> {
        if self.in_batch && self.is_first(path) {
            return Err(FileError::Entangled {
                path: path.to_string(),
            });
        }
        Ok(())
    }

    /// Tells whether a planned second name is of what is only planned at this one.
    pub(super) fn is_first(&self, path: &TargetPath) -> bool {
        let is_second = |step: &Step| match &step.change {
            Change::Set {
                after: Image::Linked {
                    to, identity: None, ..
                },
                ..
            } => to == path,
            Change::Set { .. }
            | Change::Move { .. }
            | Change::Retouch { .. }
            | Change::Rewrite { .. } => false,
        };
        self.sets.contains_key(path) && self.steps.iter().any(is_second)
    }
}

fn parts(path: &Path) -> VecDeque<Part> {
    let parts = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(Part::Name(name.to_owned())),
        Component::ParentDir => Some(Part::Up),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    });
    parts.collect()
}

/// Reads where a name points now, if it is a link.
fn read_link(path: &TargetPath) -> Result<Option<PathBuf>, FileError> {
    let shown = || path.to_string();
    match std::fs::read_link(path.as_path()) {
        Ok(pointed) => Ok(Some(pointed)),
        Err(error) => match error.kind() {
            // It is no link, or nothing.
            io::ErrorKind::InvalidInput | io::ErrorKind::NotFound => Ok(None),
            io::ErrorKind::NotADirectory => Err(FileError::NotADirectory {
                path: path.parent().map_or_else(shown, |above| above.to_string()),
            }),
            io::ErrorKind::PermissionDenied => Err(FileError::Permission {
                path: shown(),
                action: "enter",
            }),
            _ => Err(FileError::Io {
                path: shown(),
                action: "find",
                source: error,
            }),
        },
    }
}
