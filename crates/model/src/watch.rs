//! Who is told how far long work is, and who may stop it.
//!
//! - A driver holds a [`Watch`] and shows it by `Driver::watch`. On registration it joins that of the engine, so that one
//!   Ctrl-C and one bar hold for all drivers. One that joined nobody tells nobody and is never stopped.
//! - What takes back something that was begun is not stopped half-way ([`Watch::going_back`]), whichever driver does it.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::driver::{DriverError, Fault};

/// Is told how far long work has come, in items, and may stop it.
pub trait Progress: fmt::Debug + Send + Sync {
    /// Says how many items there will be.
    fn total(&self, items: u64);

    /// Says that so many more are done.
    fn advance(&self, items: u64);

    /// Says what the work waits for, when that takes long enough to wonder about.
    fn waits(&self, _for_what: &str) {}

    /// Tells whether somebody wants the work to stop.
    fn is_stopped(&self) -> bool {
        false
    }
}

/// Somebody wanted the work to stop. What was begun is put back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it was interrupted")]
pub struct Stopped;

impl Fault for Stopped {
    fn is_stop(&self) -> bool {
        true
    }
}

impl From<Stopped> for DriverError {
    fn from(stopped: Stopped) -> Self {
        Self::new(stopped)
    }
}

/// A handle on whoever watches. Clones are the same watch.
#[derive(Debug, Clone, Default)]
pub struct Watch(Arc<RwLock<Arc<Watcher>>>);

#[derive(Debug, Default)]
struct Watcher {
    progress: Option<Arc<dyn Progress>>,
    /// How many are taking back what was begun.
    going_back: AtomicUsize,
}

impl Watch {
    /// Tells somebody.
    pub fn of(progress: Arc<dyn Progress>) -> Self {
        let watcher = Watcher {
            progress: Some(progress),
            going_back: AtomicUsize::new(0),
        };
        Self(Arc::new(RwLock::new(Arc::new(watcher))))
    }

    /// From now on tells whoever another watch tells, and stops with it.
    pub fn join(&self, other: &Self) {
        let watcher = other.watcher();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = watcher;
    }

    fn watcher(&self) -> Arc<Watcher> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Says how many items there will be.
    pub fn total(&self, items: u64) {
        if let Some(progress) = &self.watcher().progress {
            progress.total(items);
        }
    }

    /// Says that so many more are done.
    pub fn advance(&self, items: u64) {
        if let Some(progress) = &self.watcher().progress {
            progress.advance(items);
        }
    }

    /// Says what the work waits for, when that takes long enough to wonder about.
    pub fn waits(&self, for_what: &str) {
        if let Some(progress) = &self.watcher().progress {
            progress.waits(for_what);
        }
    }

    /// Tells whether somebody wants the work to stop, and it may be stopped.
    pub fn is_stopped(&self) -> bool {
        let watcher = self.watcher();
        let wants = watcher.progress.as_ref().is_some_and(|it| it.is_stopped());
        wants && watcher.going_back.load(Ordering::Relaxed) == 0
    }

    /// Fails if somebody wants the work to stop. Long work asks this between any two steps.
    pub fn check(&self) -> Result<(), Stopped> {
        if self.is_stopped() {
            return Err(Stopped);
        }
        Ok(())
    }

    /// Does something that must not be stopped: it takes back what was begun.
    pub fn going_back<T>(&self, work: impl FnOnce() -> T) -> T {
        let watcher = self.watcher();
        let _back = Back::begin(&watcher);
        work()
    }
}

/// Counts somebody who goes back, also if the work panics.
struct Back<'w>(&'w Watcher);

impl<'w> Back<'w> {
    fn begin(watcher: &'w Watcher) -> Self {
        watcher.going_back.fetch_add(1, Ordering::Relaxed);
        Self(watcher)
    }
}

impl Drop for Back<'_> {
    fn drop(&mut self) {
        self.0.going_back.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    #[derive(Debug, Default)]
    struct Impatient {
        done: AtomicU64,
    }

    impl Progress for Impatient {
        fn total(&self, _items: u64) {}

        fn advance(&self, items: u64) {
            self.done.fetch_add(items, Ordering::Relaxed);
        }

        fn is_stopped(&self) -> bool {
            true
        }
    }

    #[test]
    fn a_watch_that_joined_another_tells_and_stops_with_it() {
        let (mine, told) = (Watch::default(), Arc::new(Impatient::default()));
        let clone = mine.clone();
        assert_eq!(mine.check(), Ok(()));
        mine.join(&Watch::of(Arc::clone(&told) as _));
        mine.advance(2);
        clone.advance(1);
        mine.total(3);
        mine.waits("a lock");
        assert_eq!(told.done.load(Ordering::Relaxed), 3);
        assert_eq!(clone.check(), Err(Stopped));
        assert!(DriverError::from(Stopped).fault().is_stop());
        assert_eq!(Stopped.to_string(), "it was interrupted");
    }

    #[test]
    fn nobody_stops_what_goes_back_in_any_driver() {
        let whole = Watch::of(Arc::new(Impatient::default()));
        let (one, other) = (Watch::default(), Watch::default());
        one.join(&whole);
        other.join(&whole);
        whole.going_back(|| {
            one.going_back(|| assert_eq!(other.check(), Ok(())));
            assert_eq!(other.check(), Ok(()));
        });
        assert_eq!(other.check(), Err(Stopped));
    }
}
