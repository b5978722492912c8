//! Paths as people give them and like to see them.
//!
//! What goes to the engine is absolute, so that the journal means the same from every directory; what people
//! see is relative to where they are.

use std::io;
use std::path::{Component, Path, PathBuf};

use backout_engine::Report;
use backout_model::{Target, TargetPath};

/// Makes a path absolute. A `..` is resolved where the directories exist, since a link may lie before it.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, Report> {
    // A path that is not empty can only fail for the directory that it begins at.
    let failed = |error: io::Error| {
        Report::refused("the current directory cannot be found")
            .because(error)
            .next("go to a directory that is there")
    };
    if path.as_os_str().is_empty() {
        return Err(Report::usage("a path is empty").next("give the path of a file"));
    }
    let absolute = std::path::absolute(path).map_err(failed)?;
    let climbs = absolute
        .components()
        .any(|component| component == Component::ParentDir);
    match (climbs, absolute.parent(), absolute.file_name()) {
        (true, Some(parent), Some(name)) => Ok(parent
            .canonicalize()
            .map_or(absolute.clone(), |parent| parent.join(name))),
        _ => Ok(absolute),
    }
}

/// Gives a path as the journal knows it, without links on the way; what is gone is taken as it is written.
pub(crate) fn real(path: &Path) -> Result<TargetPath, Report> {
    let absolute = absolute(path)?;
    let real = match (absolute.parent(), absolute.file_name()) {
        (Some(parent), Some(name)) => parent.canonicalize().map(|parent| parent.join(name)),
        _ => absolute.canonicalize(),
    };
    let path = TargetPath::new(real.unwrap_or_else(|_| absolute.clone()));
    path.map_err(|error| {
        Report::usage(format!("`{}` cannot be looked up", absolute.display()))
            .because(error)
            .next("give the path without `..`")
    })
}

/// The directory we are in, left out of what people see.
#[derive(Debug, Clone, Default)]
pub(crate) struct Here {
    directory: String,
}

impl Here {
    /// Looks where we are; nowhere, if the directory is gone or its name is not text.
    pub(crate) fn find() -> Self {
        let directory = std::env::current_dir()
            .ok()
            .and_then(|path| path.into_os_string().into_string().ok());
        // Below the root everything would be shortened, to no gain.
        Self {
            directory: directory.filter(|path| path != "/").unwrap_or_default(),
        }
    }

    /// Gives the directory; the root, if it is nowhere.
    pub(crate) fn directory(&self) -> &Path {
        if self.directory.is_empty() {
            return Path::new("/");
        }
        Path::new(&self.directory)
    }

    /// Leaves the directory out wherever a path in `text` begins with it.
    pub(crate) fn shorten(&self, text: &str) -> String {
        if self.directory.is_empty() {
            return text.to_owned();
        }
        let mut shown = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once(self.directory.as_str()) {
            shown.push_str(before);
            let begins = shown
                .chars()
                .next_back()
                .is_none_or(|c| c.is_whitespace() || "`'\"(=:".contains(c));
            match after.strip_prefix('/') {
                Some(below) if begins && !below.starts_with(is_end) && !below.is_empty() => {
                    // It may be typed, and would be taken for a flag.
                    if below.starts_with('-') {
                        shown.push_str("./");
                    }
                    rest = below;
                }
                None if begins && (after.is_empty() || after.starts_with(is_end)) => {
                    shown.push('.');
                    rest = after;
                }
                _ => {
                    shown.push_str(&self.directory);
                    rest = after;
                }
            }
        }
        shown + rest
    }

    /// Gives a path below the directory as it is from there.
    pub(crate) fn below<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        let is_known = !self.directory.is_empty();
        path.strip_prefix(&self.directory).ok().filter(|_| is_known)
    }

    /// Shows a path as seen from here.
    pub(crate) fn show(&self, path: &Path) -> String {
        self.printed(&path.display())
    }

    /// Shows a target as seen from here.
    pub(crate) fn target(&self, target: &Target) -> String {
        self.printed(target)
    }

    fn printed(&self, place: &dyn std::fmt::Display) -> String {
        super::ui::printable(&self.shorten(&place.to_string()))
    }
}

/// Tells whether a path has ended.
fn is_end(character: char) -> bool {
    character.is_whitespace() || "`'\"):,".contains(character)
}

/// Gives directories by their real paths.
pub(crate) fn directories(roots: &[PathBuf]) -> Result<Vec<TargetPath>, Report> {
    let mut found = Vec::new();
    for root in roots {
        let real = root.canonicalize().ok().filter(|real| real.is_dir());
        let target = real.and_then(|real| TargetPath::new(real).ok());
        let no_directory = || Report::refused(format!("`{}` is not a directory", root.display()));
        found.push(target.ok_or_else(no_directory)?);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_below_the_directory_are_shown_relative_to_it() {
        let here = Here {
            directory: "/home/ada/project".to_owned(),
        };
        for (long, short) in [
            ("write /home/ada/project/src/a.rs", "write src/a.rs"),
            ("`/home/ada/project/a` does not exist", "`a` does not exist"),
            (
                "move /home/ada/project/a to /home/ada/project/b",
                "move a to b",
            ),
            ("patch /home/ada/project", "patch ."),
            ("undo /home/ada/project/-n", "undo ./-n"),
            ("`/home/ada/project` is a directory", "`.` is a directory"),
            ("write /home/ada/projects/x", "write /home/ada/projects/x"),
            (
                "write /mnt/home/ada/project/x",
                "write /mnt/home/ada/project/x",
            ),
            ("write /home/ada/other", "write /home/ada/other"),
        ] {
            assert_eq!(here.shorten(long), short);
        }
        assert_eq!(Here::default().shorten("write /a"), "write /a");
    }

    #[test]
    fn an_empty_path_is_refused() {
        assert!(absolute(Path::new("")).is_err());
        assert_eq!(
            absolute(Path::new("/a//b/./c")).ok(),
            Some(PathBuf::from("/a/b/c"))
        );
    }
}
