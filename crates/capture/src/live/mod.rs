//! A supervisor that the kernel asks before each mutating call of a process tree.
//!
//! ```text
//! command ── unlink("a") ──► kernel stops the thread ──► supervisor: resolve, tell the observer
//!                                                           │ continue: the kernel carries the call out
//!                                                           │ refuse:   the call fails with an error
//!                                                           └ done:     the supervisor did it itself
//! ```
//!
//! - Seccomp user notification: no privilege, no namespace, no tracer. Only calls that can change a file are asked about;
//!   reads stay at native speed. Calls whose arguments a filter cannot see (`openat2`, `io_uring`) do not exist for the
//!   command, so that programs fall back to those that it can.
//! - The path is read from the command's memory, so another thread could change it after we looked. So where the process has
//!   our rights and mounts the call is carried out here, to what was looked at (`carry.rs`). What the kernel carries out is
//!   read again first, and calls that change the same names wait until it is over (`flight.rs`).
//! - If the supervisor dies, every call it was asked about fails with `ENOSYS`: the command does not hang. It could go on
//!   writing what it has open, so the front ends it.

mod calls;
mod carry;
mod ending;
mod eyes;
mod filter;
mod flight;
mod front;
mod masks;
mod memory;
mod mounts;
mod operands;
mod order;
mod orphaned;
mod paths;
mod process_info;
mod reach;
mod relay;
mod resolve;
mod rights;
mod spawn;
mod supervise;
mod sys;
mod table;
mod ticker;
mod walk;
mod watchdog;
mod wish;

pub use calls::Act;
pub use front::{Alone, Back, Ending, Front, Pinned, Side, Waited, split};
pub use mounts::is_on_ours;
pub use orphaned::{Mark, Orphans, end_orphans};
pub use process_info::{Descendant, descendants, opened_for_writing};
pub use relay::{ASKED, Guest, Malformed, Outside, RELAY, Refusal, Request, ask_outside, asked};
pub use resolve::{Gone, Held, Place};
pub use spawn::{Child, SpawnError, Spawned, Variables, Watching, spawn};
pub use supervise::{Answer, Event, Observer, Supervisor, Touch};
pub use sys::{end_like, lift_limits, probe};
pub use wish::EndWish;
