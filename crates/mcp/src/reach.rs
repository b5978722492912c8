//! The directories that an agent may write in, and the paths that it names.
//!
//! A path is checked here so that the answer comes early and in words. What keeps an agent in its directories is a gate of the
//! engine, which sees what a driver found at the end of every link.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

use backout_engine::Report;

use crate::Caller;

/// Whether the last name of a path is followed if it is a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Last {
    /// It is written through.
    Followed,
    /// It is meant itself.
    Itself,
}

impl Caller {
    /// Gives a path as an absolute one, if it lies in the directories. One that is not absolute is meant from the first of them.
    pub(crate) fn path(&self, given: &str, last: Last) -> Result<PathBuf, Report> {
        if given.is_empty() || given.contains('\0') {
            return Err(Report::usage(
                "a path must not be empty, and cannot hold a NUL byte",
            ));
        }
        let base = self.roots.first().map(PathBuf::as_path);
        let path = base.unwrap_or(Path::new("/")).join(given);
        let real = real(&path, last).ok_or_else(|| self.outside(given))?;
        if self.roots.iter().any(|root| real.starts_with(root)) {
            Ok(path)
        } else {
            Err(self.outside(given))
        }
    }

    /// The same for a name that goes or is moved: a root itself stays.
    pub(crate) fn movable(&self, given: &str) -> Result<PathBuf, Report> {
        let path = self.path(given, Last::Itself)?;
        let is_root = real(&path, Last::Itself).is_some_and(|it| self.roots.contains(&it));
        if is_root {
            return Err(
                Report::refused(format!("`{given}` is one of your directories itself"))
                    .because("you may write in it, and not take it away")
                    .next("name what is in it"),
            );
        }
        Ok(path)
    }

    /// The same for a directory that is there.
    pub(crate) fn directory(&self, given: Option<&str>) -> Result<PathBuf, Report> {
        let path = self.path(given.unwrap_or("."), Last::Followed)?;
        let real = path.canonicalize().ok().filter(|it| it.is_dir());
        real.ok_or_else(|| {
            Report::refused(format!("`{}` is not a directory", given.unwrap_or(".")))
        })
    }

    fn outside(&self, given: &str) -> Report {
        let roots: Vec<String> = self
            .roots
            .iter()
            .map(|root| format!("`{}`", root.display()))
            .collect();
        Report::refused(format!(
            "`{given}` is outside of the directories that you may use"
        ))
        .because(format!(
            "they are {}, and links count as what they lead to",
            roots.join(", ")
        ))
        .next("name a path inside of them, or ask the person you work for")
    }
}

/// Says where a path leads: what is there is resolved, the rest is taken as it stands. None if that cannot be told.
fn real(path: &Path, last: Last) -> Option<PathBuf> {
    if last == Last::Itself || path.symlink_metadata().is_err() {
        let name = path.file_name()?;
        return above(path.parent()?).map(|parent| parent.join(name));
    }
    // A link that leads nowhere, or to itself, leads to no place that is inside.
    path.canonicalize().ok()
}

/// Resolves a directory of which the end may not be there yet.
fn above(path: &Path) -> Option<PathBuf> {
    if let Ok(found) = path.canonicalize() {
        return Some(found);
    }
    if path.symlink_metadata().is_ok() {
        return None;
    }
    match path.components().next_back()? {
        Component::Normal(name) => above(path.parent()?).map(|parent| parent.join(name)),
        // Nobody knows where `..` leads from a directory that is not there.
        Component::ParentDir | Component::CurDir | Component::RootDir | Component::Prefix(_) => {
            None
        }
    }
}

/// Reads a `file:` address.
pub(crate) fn file_of(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let rest = rest.strip_prefix("localhost").unwrap_or(rest);
    if !rest.starts_with('/') {
        return None;
    }
    let mut bytes = Vec::new();
    let mut given = rest.bytes();
    while let Some(byte) = given.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [given.next()?, given.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    Some(PathBuf::from(OsString::from_vec(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(root: &Path) -> Caller {
        Caller {
            agent: "a".parse().unwrap(),
            roots: vec![root.canonicalize().unwrap()],
        }
    }

    #[test]
    fn every_way_out_is_seen() {
        let world = tempfile::tempdir().unwrap();
        let root = world.path().join("root");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(world.path().join("secret"), "s").unwrap();
        std::os::unix::fs::symlink("..", root.join("up")).unwrap();
        std::os::unix::fs::symlink("../secret", root.join("file")).unwrap();
        std::os::unix::fs::symlink("nowhere", root.join("dangling")).unwrap();
        let caller = caller(&root);
        for bad in [
            "../secret",
            "/etc/passwd",
            "up/secret",
            "up/new/deep",
            "file",
            "a/../../secret",
            "new/../../x",
            "dangling",
            "",
            "a\0b",
            "up",
            "..",
        ] {
            assert!(caller.path(bad, Last::Followed).is_err(), "{bad}");
        }
        for good in ["a", "new/deep/file", "./a", "sub/../a/..b"] {
            std::fs::create_dir_all(root.join("sub")).unwrap();
            assert!(caller.path(good, Last::Followed).is_ok(), "{good}");
        }
        assert!(
            caller.path("file", Last::Itself).is_ok(),
            "the link itself is inside"
        );
        assert!(caller.movable(".").is_err() && caller.movable(root.to_str().unwrap()).is_err());
        assert!(caller.directory(Some("a")).is_err() && caller.directory(None).is_ok());
    }

    #[test]
    fn addresses_of_files_are_read() {
        assert_eq!(file_of("file:///a%20b/c"), Some("/a b/c".into()));
        assert_eq!(file_of("file://localhost/a"), Some("/a".into()));
        for bad in ["http://x/a", "file://other/a", "file:///a%2", "file:///%zz"] {
            assert_eq!(file_of(bad), None, "{bad}");
        }
    }
}
