//! How a command is watched: the kernel's means, and nothing of what is done with what they see.
//!
//! - [`live`]: a supervisor that the kernel asks before each mutating call of a process tree.
//! - [`overlay`]: a view of the file system whose writes land in a layer.
//! - [`attributes`]: whether a name has extended attributes.
//! - [`owner`]: a look at what is closed to its own owner.
//! - [`witness`]: which process changed something in a directory.
//!
//! Nothing here knows the journal, a recipe or a terminal.

pub mod attributes;
pub mod live;
pub mod overlay;
pub mod owner;
pub mod witness;
