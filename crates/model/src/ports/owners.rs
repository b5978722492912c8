//! Owners: who this process is, and whether another one is still at work.
//!
//! A store answers, since only it can know of a process on another machine: there a process is alive as long as it says
//! so, in the store. Where nobody can tell, an owner counts as alive: waiting is safe, stealing is not.

use crate::Owner;

/// Tells who is who.
pub trait Owners {
    /// Describes this process.
    fn this_process(&self) -> Owner;

    /// Describes another process of this machine, such as the shell that a task belongs to.
    fn process(&self, pid: u32) -> Option<Owner>;

    /// Tells whether the owner may still be at work.
    fn is_alive(&self, owner: &Owner) -> bool;

    /// Tells whether the machine was started anew since the owner worked, so that unsynced records may be lost.
    fn is_from_another_boot(&self, owner: &Owner) -> bool;
}
