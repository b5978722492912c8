//! Text as bytes and lines: comparing, merging, patching, editing.
//!
//! Every function here is pure and total: any bytes may come in, none makes it panic, and the work is
//! bounded by named limits. A line is a run of bytes up to and including its `\n`; a last line without
//! one is a different line from the same line with one, and `\r` is a byte like any other. So line
//! ends and missing final newlines survive every merge, patch and edit exactly.
//!
//! - [`unified`] and [`stat`] show a change to people.
//! - [`merge3`] takes one change out of a file and keeps everybody else's, or says where it cannot.
//! - [`patch::parse()`] and [`patch::apply()`] read what `git diff` writes, without fuzz.
//! - [`replace`] is search and replace for agents: unique unless told otherwise.
//!
//! Not here: reading or writing files, deciding which change to take out, decoding of characters.

mod align;
pub mod diff;
pub mod edit;
mod grid;
mod lines;
pub mod merge;
pub mod patch;
mod search;

pub use diff::{DiffStat, header_name, is_text, stat, unified, unified_bytes};
pub use edit::{Difference, EditError, NearMiss, Occurrence, replace};
pub use merge::{Merge, MergeConflict, merge3};
pub use patch::{
    FileMode, FilePatch, Hunk, HunkLine, Moved, Patch, PatchError, PatchPath, apply, parse,
};
