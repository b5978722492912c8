//! What the engine asks about files and about commands that change them, as ports, and the data that both sides speak in.
//!
//! - [`Files`] tells what files were and are, [`Directories`] keeps whole directories, [`Commands`] and [`Recorder`] tell what
//!   a process tree does. `drivers` implements them; the engine knows no more of that crate.
//! - [`Drivers`] is what somebody opens an engine with.
//!
//! A crate of its own because a recorder answers `capture`, which `model` does not know. Nothing here changes anything.

mod any_bytes;
mod baseline;
mod claim;
mod command;
mod directories;
pub mod inode;
mod layer;
mod port;
pub mod said;
mod umask;
mod was;

pub use any_bytes::AnyBytes;
pub use baseline::Baseline;
pub use claim::Claim;
pub use command::{
    Ask, CommandLog, Commands, Counts, Database, FileRead, Forbids, Left, Limits, Looked,
    OverLimit, Part, Reading, Recorder, Settled, Share, Since, Writing,
};
pub use directories::{
    Difference, Differences, Directories, KeptRoot, NextIndex, Objects, Unread, Walked, What,
    index_name,
};
pub use layer::{BaseChanged, LayerEntry, LayerState, UnusablePath};
pub use port::{Drivers, Files, Lacking};
pub use umask::{is_for_another, umask, with_umask};
pub use was::{Base, Body, FileChange, Past, Shown, Was, WrittenDown};
