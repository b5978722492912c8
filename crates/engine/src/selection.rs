//! Which targets are meant: of a trial, of an undo.

use std::ffi::OsStr;
use std::path::Path;

use backout_model::{Target, TargetPath};

use serde::{Deserialize, Serialize};

use crate::Glob;

/// So many names below a directory are looked at for what was excluded.
const LOOKED_AT_MAX: usize = 100_000;

/// Which paths are meant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Selection {
    /// Those that match one of these; all, if there are none.
    pub only: Vec<Glob>,
    /// But not those that match one of these.
    pub exclude: Vec<Glob>,
}

impl Selection {
    /// Reads patterns as they are typed at a directory. One that may be for a path or for a target elsewhere is for both.
    pub fn typed<P: AsRef<OsStr>>(patterns: &[P], here: &Path) -> Vec<Glob> {
        let both = |pattern: &P| {
            let elsewhere = Glob::elsewhere(pattern);
            std::iter::once(Glob::new(pattern, here)).chain(elsewhere)
        };
        patterns.iter().flat_map(both).collect()
    }

    /// Tells whether everything is meant.
    pub const fn is_everything(&self) -> bool {
        self.only.is_empty() && self.exclude.is_empty()
    }

    /// Tells whether a target is meant: by its file, or by all that leads to it.
    pub fn has_target(&self, target: &Target) -> bool {
        if let (Some(path), []) = (target.file(), target.key().parts()) {
            return self.has(std::iter::once(path.as_path()));
        }
        // Who names a key means all that is in it. Names may be typed with or without signs for what is odd in them.
        let above = target.key().ancestors().into_iter();
        let above = above.filter(|above| above.file().is_none() || !above.parts().is_empty());
        let keys = above.chain([target.key().clone()]);
        let keys: Vec<_> = keys
            .flat_map(|key| [key.to_string(), key.plainly()])
            .collect();
        let keys = keys.iter().map(Path::new);
        let file = target.file().map(TargetPath::as_path);
        self.has(file.into_iter().chain(keys))
    }

    /// Tells whether a path is excluded.
    pub(crate) fn leaves_out(&self, path: &Path) -> bool {
        self.exclude.iter().any(|glob| glob.matches(path))
    }

    /// Tells whether a directory, as it is now, holds something that is excluded by the name that it has with the directory named otherwise. One
    /// that holds very much counts as if it did.
    pub(crate) fn leaves_out_in(&self, root: &Path, named: &Path) -> bool {
        let is_directory = |path: &Path| path.symlink_metadata().is_ok_and(|it| it.is_dir());
        let mut directories = vec![root.to_path_buf()];
        let mut looked_at = 0;
        while let Some(directory) = directories.pop().filter(|it| is_directory(it)) {
            let entries = std::fs::read_dir(&directory).into_iter().flatten();
            for path in entries.flatten().map(|entry| entry.path()) {
                looked_at += 1;
                let inside = path.strip_prefix(root).unwrap_or(&path);
                if looked_at > LOOKED_AT_MAX || self.leaves_out(&named.join(inside)) {
                    return true;
                }
                if is_directory(&path) {
                    directories.push(path);
                }
            }
        }
        false
    }

    /// Tells whether something is meant that goes by one of these paths.
    pub fn has<'p>(&self, paths: impl Iterator<Item = &'p Path>) -> bool {
        let (mut is_chosen, mut is_excluded) = (self.only.is_empty(), false);
        for path in paths {
            is_chosen |= self.only.iter().any(|glob| glob.matches(path));
            is_excluded |= self.exclude.iter().any(|glob| glob.matches(path));
        }
        is_chosen && !is_excluded
    }
}
