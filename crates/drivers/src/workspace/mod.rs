//! Workspaces: everything below a directory, written down so that it can become so again.
//!
//! ```text
//! walk ─► an entry for each name ─► a tree for each directory ─► one digest for the whole root
//!   └ the stat index of the last walk: what has the same inode and times is not read again
//! ```
//!
//! - A tree is a content like any other: a list of entries, known by its digest. Two states share all that is the same.
//! - Nothing is followed and no other mount is entered. What cannot be read, and other mounts, are entries that say so; a way
//!   back leaves them alone.
//! - A file that changed within the clock tick of the walk is read again the next time, as git does with racy entries.
//! - Memory: the names of one directory for each level of the tree, and 32 bytes for each directory.
//!
//! All of it is behind the port `backout_files::Directories`. Not here: where trees and files are kept (`Objects`, which the
//! caller gives), the write that brings a state back (the file driver's `Restore`). Design: `docs/design/workspace.md`.

mod differ;
mod entry;
mod index;
mod objects;
mod port;
mod walk;

#[cfg(test)]
mod tests;
