//! Owners: who this process is, and whether another one is still at work.
//!
//! A store answers, since only it can know of a process on another machine: there a process is alive as long as it says
//! so, in the store. Where nobody can tell, an owner counts as alive: waiting is safe, stealing is not.

use super::StorageError;
use crate::Owner;

/// Whoever works on a store of several hosts says so at least this often,
pub const BEAT_MS: u64 = 5_000;

/// and counts as dead when it has not said so for this long.
pub const SILENT_MS_MAX: i64 = 60_000;

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

    /// Tells whether the owner was stopped (SIGSTOP, Ctrl-Z) and does nothing until somebody lets it go on.
    fn is_paused(&self, _owner: &Owner) -> bool {
        false
    }

    /// Tells whether several machines may use the store at the same time. One that cannot serve them refuses to be opened by
    /// the second.
    fn serves_many_hosts(&self) -> bool {
        false
    }

    /// Says that this process is at work, for those who cannot look.
    fn beat(&self) -> Result<(), StorageError> {
        Ok(())
    }
}
