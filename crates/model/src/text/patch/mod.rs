//! Unified patches, as `git diff` and `diff -u` write them.
//!
//! - [`parse()`] checks the whole patch before anybody applies a part of it: counts, names, kinds.
//! - [`apply()`] wants every line of context exactly. A hunk may have moved, but only to the one nearest
//!   place where all of it matches; there is no fuzz.
//! - Names are bytes. `/dev/null` is no name: a file that is created has no old one, a file that is
//!   deleted no new one.
//!
//! Not here: binary patches, combined diffs of merges, and deciding whether a name may be written to.

mod apply;
mod error;
mod hunk;
mod name;
mod parse;
#[cfg(test)]
mod tests;

pub use apply::apply;
pub use error::PatchError;
pub use name::PatchPath;
pub(in crate::text) use name::quoted_name;
pub use parse::parse;

/// A patch: one change to each of its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    /// The changed files in the order of the patch, at least one.
    pub files: Vec<FilePatch>,
}

/// What a patch does to one file. One of `old` and `new` is always there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePatch {
    /// The name before; `None` if the file is created.
    pub old: Option<PatchPath>,
    /// The name after; `None` if the file is deleted.
    pub new: Option<PatchPath>,
    /// Whether the new name replaces the old one or is added to it.
    pub moved: Option<Moved>,
    /// The mode before, where the patch tells it.
    pub old_mode: Option<FileMode>,
    /// The mode after, where the patch tells it.
    pub new_mode: Option<FileMode>,
    /// The changed places, from the first line to the last; none if only name or mode change.
    pub hunks: Vec<Hunk>,
}

impl FilePatch {
    /// Gives the name to speak of: the new one, or the old one of a deleted file.
    pub fn path(&self) -> Option<&PatchPath> {
        self.new.as_ref().or(self.old.as_ref())
    }

    /// Gives the name for errors, even of a patch that was not made by [`parse()`].
    fn name(&self) -> PatchPath {
        self.path()
            .cloned()
            .unwrap_or_else(|| PatchPath::from_bytes(Vec::new()))
    }
}

/// How a file got its new name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moved {
    /// The old name is gone.
    Renamed,
    /// The old file stays.
    Copied,
}

/// The mode of a file as git writes it, type bits included: `0o100644`, `0o100755`, `0o120000`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileMode(u32);

impl FileMode {
    /// Gives all bits, type included.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Tells whether it is a regular file that its owner may execute.
    pub const fn is_executable(self) -> bool {
        self.0 & 0o170_000 == 0o100_000 && self.0 & 0o100 != 0
    }

    /// Tells whether it is a symbolic link, whose content is its target.
    pub const fn is_symlink(self) -> bool {
        self.0 & 0o170_000 == 0o120_000
    }
}

/// One changed place with its context. Line numbers count from 1; a side without lines is numbered by
/// the line before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// Where the lines were before.
    pub old_start: usize,
    /// Where the lines are after.
    pub new_start: usize,
    /// Context, removed and added lines in order.
    pub lines: Vec<HunkLine>,
}

impl Hunk {
    /// Walks over the lines before: context and removed.
    pub fn old_lines(&self) -> impl Iterator<Item = &[u8]> {
        self.lines.iter().filter_map(|line| match line {
            HunkLine::Context(line) | HunkLine::Removed(line) => Some(line.as_slice()),
            HunkLine::Added(_) => None,
        })
    }

    /// Walks over the lines after: context and added.
    pub fn new_lines(&self) -> impl Iterator<Item = &[u8]> {
        self.lines.iter().filter_map(|line| match line {
            HunkLine::Context(line) | HunkLine::Added(line) => Some(line.as_slice()),
            HunkLine::Removed(_) => None,
        })
    }
}

/// One line of a hunk: its bytes with the `\n`, or without it where the file ends so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HunkLine {
    /// In the file before and after.
    Context(Vec<u8>),
    /// In the file before only.
    Removed(Vec<u8>),
    /// In the file after only.
    Added(Vec<u8>),
}
