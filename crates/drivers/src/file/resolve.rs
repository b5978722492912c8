//! From a path as given to the one name that it means.
//!
//! The directories on the way are resolved once, links followed, here and nowhere else; the result has no
//! symbolic link in it, and everything later refuses to follow one.

use std::io;
use std::path::{Component, Path, PathBuf};

use backout_model::TargetPath;
use rustix::io::Errno;

use super::context::FileContext;
use super::error::FileError;

/// How many links may lead to one another.
pub(crate) const LINKS_MAX: usize = 40;

/// What to do with a symbolic link at the end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Last {
    /// Go where it points: the content is meant.
    Followed,
    /// Stop at it: the name is meant.
    Itself,
}

/// A path with its meaning.
#[derive(Debug, Clone)]
pub(crate) struct Resolved {
    /// The one name.
    pub(crate) path: TargetPath,
    /// The link at the end of the path, if one was followed.
    pub(crate) link: Option<TargetPath>,
}

impl Resolved {
    /// Gives the name that was used, if links led from it to the one that it means, with that.
    pub(crate) fn through(&self, given: &Path) -> Option<(TargetPath, TargetPath)> {
        let is_up = |part: Component<'_>| part == Component::ParentDir;
        // Behind a link `..` leads elsewhere than its letters say.
        let asked = if given.components().any(is_up) {
            self.link.clone()
        } else {
            let absolute = std::path::absolute(given).ok()?;
            TargetPath::new(absolute).ok()
        };
        let asked = asked.filter(|asked| *asked != self.path)?;
        Some((asked, self.path.clone()))
    }
}

/// Finds the name that a path means. Nothing needs to be there, not even its directory.
pub(crate) fn resolve(
    context: &FileContext,
    given: &Path,
    last: Last,
) -> Result<Resolved, FileError> {
    let shown = || given.display().to_string();
    let absolute = std::path::absolute(given).map_err(|source| FileError::Io {
        path: shown(),
        action: "find",
        source,
    })?;
    let mut at = absolute;
    let mut link = None;
    for _ in 0..LINKS_MAX {
        let path = name_of(&at, &shown)?;
        let pointed = match last {
            Last::Followed => std::fs::read_link(path.as_path()).ok(),
            Last::Itself => None,
        };
        let Some(pointed) = pointed else {
            let target =
                TargetPath::new(&path).map_err(|_| FileError::Unusable { path: shown() })?;
            refuse_ours(context, &target)?;
            return Ok(Resolved { path: target, link });
        };
        if link.is_none() {
            link = TargetPath::new(&path).ok();
        }
        at = path.parent().unwrap_or(Path::new("/")).join(pointed);
    }
    Err(FileError::Circle { path: shown() })
}

/// Refuses a name in our own state.
pub(crate) fn refuse_ours(context: &FileContext, path: &TargetPath) -> Result<(), FileError> {
    if context.depots.is_ours(path) {
        return Err(FileError::Ours {
            path: path.to_string(),
        });
    }
    Ok(())
}

/// Resolves everything but the last component.
fn name_of(path: &Path, shown: &dyn Fn() -> String) -> Result<PathBuf, FileError> {
    let failed = |source| FileError::Io {
        path: shown(),
        action: "find",
        source,
    };
    match path.components().next_back() {
        Some(Component::Normal(name)) => {
            let parent = path.parent().unwrap_or(Path::new("/"));
            Ok(directory_of(parent, shown)?.join(name))
        }
        // `..` at the end means a directory that exists, or nothing.
        Some(_) => path.canonicalize().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => FileError::NotFound { path: shown() },
            _ => failed(error),
        }),
        None => Err(FileError::Unusable { path: shown() }),
    }
}

/// Resolves a directory; the part that does not exist yet is taken as it is written.
fn directory_of(path: &Path, shown: &dyn Fn() -> String) -> Result<PathBuf, FileError> {
    match path.canonicalize() {
        Ok(real) => Ok(real),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let missing = || FileError::NotFound {
                path: path.display().to_string(),
            };
            // A link that leads nowhere cannot become a directory, nor can `..` be taken literally.
            if path.symlink_metadata().is_ok() {
                return Err(missing());
            }
            let Some(Component::Normal(name)) = path.components().next_back() else {
                return Err(missing());
            };
            let parent = path.parent().ok_or_else(missing)?;
            Ok(directory_of(parent, shown)?.join(name))
        }
        Err(error) => match error.kind() {
            io::ErrorKind::NotADirectory => Err(FileError::NotADirectory {
                path: path.display().to_string(),
            }),
            io::ErrorKind::PermissionDenied => Err(FileError::Permission {
                path: path.display().to_string(),
                action: "enter",
            }),
            _ if Errno::from_io_error(&error) == Some(Errno::LOOP) => Err(FileError::Circle {
                path: path.display().to_string(),
            }),
            _ => Err(FileError::Io {
                path: shown(),
                action: "find",
                source: error,
            }),
        },
    }
}

/// Finds the directory that a path means, the root too.
pub(crate) fn directory(given: &Path) -> Result<TargetPath, FileError> {
    let shown = || given.display().to_string();
    let real = directory_of(given, &shown)?;
    TargetPath::new(&real).map_err(|_| FileError::Unusable { path: shown() })
}
