//! Who is alive: here by a look, on another machine by what it says.
//!
//! Several machines may use this store, so it shows what one that serves them does: each process that works with it says so
//! again and again, and counts as dead when it has been silent for too long.

use backout_model::Owner;
use backout_model::ports::{Owners, SILENT_MS_MAX, StorageError};

use super::MemoryStore;
use super::change::Change;
use super::state::State;

impl Owners for MemoryStore {
    fn this_process(&self) -> Owner {
        self.here(backout_storage::this_process())
    }

    fn process(&self, pid: u32) -> Option<Owner> {
        backout_storage::process(pid).map(|owner| self.here(owner))
    }

    fn is_alive(&self, owner: &Owner) -> bool {
        let alive = self.ask(|state| Ok(self.lives(state, owner)));
        // Where nobody can tell, waiting is safe.
        alive.unwrap_or(true)
    }

    fn is_from_another_boot(&self, owner: &Owner) -> bool {
        let here = self.this_process();
        owner.host == here.host && owner.boot != here.boot
    }

    fn is_paused(&self, owner: &Owner) -> bool {
        backout_storage::is_paused(owner)
    }

    fn serves_many_hosts(&self) -> bool {
        true
    }

    fn beat(&self) -> Result<(), StorageError> {
        let (owner, at) = (self.this_process(), self.shared.clock.now());
        self.change(|_| Ok((Some(Change::Beat { owner, at }), ())))
    }
}

impl MemoryStore {
    /// Describes a process of the machine that the store is opened on.
    fn here(&self, owner: Owner) -> Owner {
        match &self.host {
            Some(host) => Owner {
                host: host.clone(),
                boot: format!("the boot of {host}"),
                ..owner
            },
            None => owner,
        }
    }

    /// Tells whether a process may be at work, in the moment that `state` is.
    pub(super) fn lives(&self, state: &State, owner: &Owner) -> bool {
        let here = self.this_process();
        if owner.host.is_empty() || owner.host == here.host {
            let real = backout_storage::this_process();
            let is_this_boot = owner.boot == here.boot;
            return is_this_boot
                && backout_storage::is_alive(&Owner {
                    boot: real.boot,
                    host: real.host,
                    ..owner.clone()
                });
        }
        let now = self.shared.clock.now();
        let last = state.beats.get(owner);
        last.is_some_and(|last| now.millis_since(*last) < SILENT_MS_MAX)
    }
}
