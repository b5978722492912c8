//! The way that a path takes: the links on it, and where it ends.
//!
//! A link is followed by its text, so that one which leads nowhere tells what it would lead to, and every link of a chain is known.

use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// More links on one way are not followed: the system gives up there, too.
const LINKS_MAX: usize = 40;

/// Where a path leads.
#[derive(Debug, Default)]
pub(crate) struct Way {
    /// The links on it, each by the directory that it is really in.
    pub(crate) links: Vec<PathBuf>,
    /// What is meant in the end, without links on the way; it need not be there.
    pub(crate) end: PathBuf,
}

impl Way {
    /// Follows an absolute path.
    pub(crate) fn of(path: &Path) -> Self {
        let mut way = Self {
            links: Vec::new(),
            end: PathBuf::from("/"),
        };
        // The last is next.
        let mut names = reversed(path);
        while let Some(name) = names.pop() {
            if name == ".." {
                way.end.pop();
                continue;
            }
            let here = way.end.join(&name);
            match fs::read_link(&here) {
                Ok(to) if way.links.len() < LINKS_MAX => {
                    if to.is_absolute() {
                        way.end = PathBuf::from("/");
                    }
                    names.extend(reversed(&to));
                    way.links.push(here);
                }
                Ok(_) | Err(_) => way.end = here,
            }
        }
        way
    }
}

/// Lists the names of a path from its end.
fn reversed(path: &Path) -> Vec<OsString> {
    let names = path.components().rev();
    let names = names.filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn every_link_of_a_chain_is_known_and_so_is_what_is_not_there() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        fs::create_dir_all(base.join("d/e")).unwrap();
        symlink("two", base.join("one")).unwrap();
        symlink(base.join("d/three"), base.join("two")).unwrap();
        symlink("../gone/x", base.join("d/three")).unwrap();
        let way = Way::of(&base.join("one/y"));
        let links = ["one", "two", "d/three"].map(|name| base.join(name));
        assert_eq!(way.links, links);
        assert_eq!(way.end, base.join("gone/x/y"));
        symlink("d/e", base.join("l")).unwrap();
        assert_eq!(Way::of(&base.join("l/../k")).end, base.join("d/k"));
        symlink("loop", base.join("loop")).unwrap();
        assert_eq!(Way::of(&base.join("loop")).end, base.join("loop"));
    }
}
