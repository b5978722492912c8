//! Commands: whatever a process tree does to files can be taken back.
//!
//! What it can undo exactly: everything that the file driver can, for every name that the command changed. What it
//! cannot: what happened outside of the file system (a sent mail, a killed process, a kernel setting), and files above
//! the limit that somebody let pass. What it relies on: being asked before each call ([`backout_capture::live`]).
//!
//! ```text
//! call ─► recorder ─► log (what the name was, before the call goes on)
//!                        │
//! end or crash ──────────┴─► settle: what each name was against what it is ─► a recipe of the file driver
//! ```
//!
//! - The log is what finds the effect again: the operation is armed with its path, so a recovery can settle what a dead
//!   supervisor captured. `tracker.rs` is what the log says, in memory.
//! - Names are kept in the coordinates of the world before the command: a directory that moved keeps its old name there
//!   until the end, so that what happens inside of it is found again.
//! - A command that is over is an operation on files like any other: undo, redo, diff, conflicts, garbage collection are
//!   the file driver's.

mod before_call;
mod before_image;
mod conclude;
mod current;
mod dirs;
mod driver;
mod expect;
mod guard;
mod inodes;
mod layers;
mod log;
mod looked;
mod moves;
mod nameless;
mod neighbours;
mod numbers;
mod order;
mod orphans;
mod others;
mod part;
mod recorder;
mod renames;
mod rewrites;
mod scan;
mod settle;
mod texts;
mod tracker;
mod trees;

pub use backout_files::{Ask, Claim, Counts, Limits, OverLimit, Part, Settled, Share};
pub use driver::CommandDriver;
#[doc(hidden)]
pub use log::{framed, weighed};
pub use recorder::{Recorder, RecorderError};
