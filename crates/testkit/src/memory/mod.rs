//! A store in memory: records in a list, all else by a fold over them, contents in a map.
//!
//! It is the second store: what the engine does on it, it does through the ports alone. What is a matter of files by its
//! nature (depots, staging, the logs of commands, the layers of trials) lies in a directory.
//!
//! - [`MemoryStore::again`] gives the same store as another program sees it, [`MemoryStore::again_on`] on another machine.
//! - [`MemoryStore::shared`] also writes each change to a file, and reads there what other processes changed: so a process
//!   may die, and another one finds what it left.
//!
//! Nothing is compressed, nothing is fast, nothing is safe from a loss of power.

mod change;
mod contents;
mod gc;
mod journal;
mod leases;
mod log;
mod maintenance;
mod notes;
mod owners;
mod standing;
mod state;
mod verify;
mod workspace;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use backout_model::ports::{Append, Clock, Durability, Entry, StorageError};
use backout_model::{Digest, DriverName, Lsn};

use change::Change;
use log::Log;
use state::{Answer, State};

/// A store that is forgotten with its last handle.
#[derive(Debug)]
pub struct MemoryStore {
    shared: Arc<Shared>,
    drivers: Mutex<BTreeSet<DriverName>>,
    /// The machine that it is opened on, if that is another one than this.
    host: Option<String>,
}

/// What all who opened it share.
#[derive(Debug)]
struct Shared {
    clock: Arc<dyn Clock>,
    directory: PathBuf,
    inside: Mutex<Inside>,
}

#[derive(Debug, Default)]
struct Inside {
    state: State,
    log: Option<Log>,
}

impl MemoryStore {
    /// Makes an empty store whose files lie in `directory`, which is made.
    pub fn new(directory: &Path, clock: Arc<dyn Clock>) -> io::Result<Self> {
        Self::with(directory, clock, false)
    }

    /// Opens a store that several processes share: its changes stand in a file in `directory`.
    pub fn shared(directory: &Path, clock: Arc<dyn Clock>) -> io::Result<Self> {
        Self::with(directory, clock, true)
    }

    fn with(directory: &Path, clock: Arc<dyn Clock>, is_shared: bool) -> io::Result<Self> {
        let directory = workspace::make(directory)?;
        let log = is_shared.then(|| Log::open(&directory)).transpose()?;
        let inside = Inside {
            log,
            ..Inside::default()
        };
        Ok(Self {
            shared: Arc::new(Shared {
                clock,
                directory,
                inside: Mutex::new(inside),
            }),
            drivers: Mutex::default(),
            host: None,
        })
    }

    /// Gives the same store, as another program would open it.
    #[must_use]
    pub fn again(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            drivers: Mutex::default(),
            host: None,
        }
    }

    /// Gives the same store, as a process on another machine would open it.
    #[must_use]
    pub fn again_on(&self, host: &str) -> Self {
        Self {
            host: Some(host.to_owned()),
            ..self.again()
        }
    }

    /// Makes a content something else than its name says.
    pub fn hurt(&self, content: Digest) {
        let hurt = self.change(|_| Ok((Some(Change::Hurt { content }), ())));
        hurt.expect("a content is hurt");
    }

    /// Takes a content away.
    pub fn lose(&self, content: Digest) {
        let contents = vec![content];
        let lost = self.change(|_| Ok((Some(Change::Drop { contents }), ())));
        lost.expect("a content is lost");
    }

    /// Answers a question about one moment.
    fn ask<T>(&self, question: impl FnOnce(&State) -> Answer<T>) -> Answer<T> {
        let mut inside = held(&self.shared.inside);
        let Inside { state, log } = &mut *inside;
        let _turn = log.as_mut().map(|log| log.turn(state)).transpose()?;
        question(state)
    }

    /// Decides on a change and makes it, with nobody in between.
    fn change<T>(&self, decide: impl FnOnce(&State) -> Answer<(Option<Change>, T)>) -> Answer<T> {
        let mut inside = held(&self.shared.inside);
        let Inside { state, log } = &mut *inside;
        let turn = log.as_mut().map(|log| log.turn(state)).transpose()?;
        let (change, value) = decide(state)?;
        if let Some(change) = change {
            state.apply(&change)?;
            if let Some(mut turn) = turn {
                turn.write(&change)?;
            }
        }
        Ok(value)
    }
}

impl Append for MemoryStore {
    fn append(&self, entry: &Entry, _durability: Durability) -> Result<Lsn, StorageError> {
        let (mut contents, mut changes) = (Vec::new(), Vec::new());
        for content in &entry.contents {
            let bytes = content.bytes.clone();
            match content.over {
                Some(over) => changes.push((content.digest, over.base, over.size, bytes)),
                None => contents.push(bytes),
            }
        }
        let change = Change::Append {
            at: self.shared.clock.now(),
            events: entry.events.clone(),
            contents,
            changes,
        };
        let count = entry.events.len() as u64;
        self.change(|state| Ok((Some(change), Lsn(state.head().0.0 + count))))
    }
}

/// Locks what is never left half-changed.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
