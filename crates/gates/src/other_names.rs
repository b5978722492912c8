//! Other names of files: who writes a file by one of its names writes it by all of them.

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// More names are not looked through.
pub(crate) const NAMES_MAX: usize = 100_000;

/// The files with several names at and below some places, with the names that they have there.
#[derive(Debug)]
pub(crate) struct Shared {
    names: HashMap<(u64, u64), Vec<PathBuf>>,
    is_whole: bool,
}

impl Shared {
    /// Looks through places. A place below another is looked through once.
    pub(crate) fn below<'p>(places: impl IntoIterator<Item = &'p Path>) -> Self {
        let mut places: Vec<&Path> = places.into_iter().collect();
        places.sort_unstable();
        places.dedup_by(|later, first| later.starts_with(first));
        let mut shared = Self {
            names: HashMap::new(),
            is_whole: true,
        };
        let mut left = NAMES_MAX;
        let mut waiting: Vec<PathBuf> = places.into_iter().map(Path::to_owned).collect();
        while let Some(path) = waiting.pop() {
            let Ok(found) = path.symlink_metadata() else {
                continue;
            };
            if found.is_file() && found.nlink() > 1 {
                shared.names.entry(number(&found)).or_default().push(path);
            } else if found.is_dir() {
                for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
                    let Some(fewer) = left.checked_sub(1) else {
                        shared.is_whole = false;
                        return shared;
                    };
                    left = fewer;
                    waiting.push(entry.path());
                }
            }
        }
        shared
    }

    /// Lists the names of a file.
    pub(crate) fn of(&self, file: &Metadata) -> &[PathBuf] {
        self.names.get(&number(file)).map_or(&[], Vec::as_slice)
    }

    /// Tells whether a file may have names there that were not looked at.
    pub(crate) fn may_lack(&self, file: &Metadata) -> bool {
        !self.is_whole && (self.of(file).len() as u64) < file.nlink()
    }
}

fn number(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

/// Looks at a file that has several names; none if it is something else, or has one.
pub(crate) fn several(path: &Path) -> Option<Metadata> {
    let found = path.symlink_metadata().ok()?;
    (found.is_file() && found.nlink() > 1).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_names_of_a_file_are_found_wherever_they_are() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path();
        fs::create_dir_all(base.join("d/e")).unwrap();
        fs::write(base.join("one"), "1").unwrap();
        fs::write(base.join("alone"), "1").unwrap();
        for name in ["d/two", "d/e/three"] {
            fs::hard_link(base.join("one"), base.join(name)).unwrap();
        }
        assert!(several(&base.join("alone")).is_none());
        let file = several(&base.join("one")).unwrap();
        let places = [base.join("d"), base.join("d/e"), base.join("one")];
        let shared = Shared::below(places.iter().map(PathBuf::as_path));
        let mut names = shared.of(&file).to_vec();
        names.sort();
        let expected = ["d/e/three", "d/two", "one"].map(|name| base.join(name));
        assert_eq!(names, expected);
        assert!(!shared.may_lack(&file));
        let elsewhere = Shared::below([base.join("d/e").as_path()]);
        assert_eq!(elsewhere.of(&file), [base.join("d/e/three")]);
    }
}
