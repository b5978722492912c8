//! The calls that need `unsafe`: what happens between the fork and the command, and signals.
//!
//! ```text
//! C0  our process        waits, passes signals on
//! C1  in the new namespaces but for processes; waits for C2
//! C2  the first process of its namespace: puts the mounts together, reaps what others leave behind
//! C3  the command
//! ```
//!
//! Between fork and exec nothing is allocated: every path is made ready before.

mod child;
mod mounts;
mod script;
mod signals;

pub(super) use child::{Notice, before_exec, enter};
pub(super) use script::Script;
pub(super) use signals::{Mask, Signals, has_terminal, take_terminal_back};
