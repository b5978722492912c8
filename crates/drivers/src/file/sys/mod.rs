//! The system calls that the driver makes, and the rules it makes them by.
//!
//! - Every name is reached through a descriptor of its directory that was opened without following any
//!   symbolic link ([`Dir`]), so swapping a directory for a link is refused and never followed.
//! - Nothing is overwritten blindly: [`names`] creates, exchanges and takes away names so that somebody
//!   else's file is noticed.
//! - Every sync goes through [`Syncs`], which counts them and lets tests leave them out.

pub(crate) mod bytes;
pub(crate) mod dir;
pub(crate) mod flags;
pub(crate) mod inherit;
pub(crate) mod meta;
pub(crate) mod names;
pub(crate) mod nearby;
pub(crate) mod node;
pub(crate) mod syncs;

pub(crate) use dir::{Dir, Place, as_owner};
pub(crate) use nearby::Nearby;
pub(crate) use node::{Node, nanoseconds};
pub(crate) use syncs::{Syncs, ToSync};
