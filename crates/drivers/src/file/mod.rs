//! Files, directories and links of the local machine.
//!
//! What it can undo exactly: content, mode, owner, times, extended attributes and ACLs, symbolic and hard
//! links, holes, empty directories, pipes, sockets, devices, whole trees, a file where a directory was. What
//! it cannot: the change time and the inode number of what was kept by its bytes, and, as an ordinary user,
//! what only root may set. What it relies on: a private depot on the target's file system (without one,
//! large files are copied), `/proc`, and that nobody writes below its temporary names.
//!
//! A write never changes a file in place. The new state is staged beside the target, the old one is
//! captured, and only an armed operation swaps the two, one name at a time, each in one step. The one exception
//! is the way back of a command that wrote into a file with several names (`written.rs`). Read `keep.rs`
//! for how the old state is kept, `execute/` for the swap, `undo/` for the way back, `recipe.rs` for the data.

pub(crate) mod any_bytes;
pub(crate) mod before_image;
mod changed;
pub(crate) mod compare;
mod completion;
pub(crate) mod context;
mod driver;
mod elsewhere;
pub(crate) mod error;
mod execute;
mod judge;
mod kept;
mod listing;
pub(crate) mod locks;
mod made;
mod mode;
pub(crate) mod mounted;
pub(crate) mod past;
pub(crate) mod plan;
pub(crate) mod recipe;
pub(crate) mod repeat;
pub(crate) mod report;
mod request;
pub(crate) mod resolve;
mod reversed;
mod stage;
pub(crate) mod sys;
mod undo;
mod view;
pub(crate) mod written;

#[cfg(test)]
mod tests;

pub use backout_files::{
    Baseline, FileChange, Files, Lacking, LayerEntry, LayerState, Past, Shown, UnusablePath, Was,
};
pub use backout_model::text::Occurrence;
pub use driver::FileDriver;
pub use error::FileError;
pub use mode::{ModeChange, ModeError};
pub use request::{Expect, FileRequest, Source};
pub use stage::Staged;
