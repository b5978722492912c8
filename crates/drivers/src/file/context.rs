//! What every part of the driver works with: the store, the depots, the syncs, the progress.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use backout_model::ports::{Depots, ReadContents, WriteContents};

use super::error::FileError;
use super::sys::Syncs;

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

/// Tells nobody.
#[derive(Debug)]
struct Silence;

impl Progress for Silence {
    fn total(&self, _items: u64) {}
    fn advance(&self, _items: u64) {}
}

/// The ports and counters of a driver.
#[derive(Debug)]
pub(crate) struct FileContext {
    pub(crate) contents: Arc<dyn ReadContents>,
    pub(crate) stash: Arc<dyn WriteContents>,
    pub(crate) depots: Arc<dyn Depots>,
    pub(crate) progress: Arc<dyn Progress>,
    pub(crate) syncs: Syncs,
    /// Whether what was begun is being taken back: that is not stopped half-way.
    is_going_back: AtomicBool,
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fault: Fault,
}

impl FileContext {
    /// Takes the ports.
    pub(crate) fn new(
        contents: Arc<dyn ReadContents>,
        stash: Arc<dyn WriteContents>,
        depots: Arc<dyn Depots>,
    ) -> Self {
        Self {
            contents,
            stash,
            depots,
            progress: Arc::new(Silence),
            syncs: Syncs::default(),
            is_going_back: AtomicBool::new(false),
            #[cfg(any(test, feature = "testing"))]
            fault: Fault::default(),
        }
    }

    /// Marks a step boundary: somebody may stop the work here, and a test may end the process or make the step fail.
    pub(crate) fn reach(&self, name: &'static str) -> Result<(), FileError> {
        backout_crashpoint::crash_point(name);
        #[cfg(any(test, feature = "testing"))]
        self.fault.reach(name)?;
        self.check_stopped()
    }

    /// Fails if somebody wants the work to stop.
    pub(crate) fn check_stopped(&self) -> Result<(), FileError> {
        if self.progress.is_stopped() && !self.is_going_back.load(Ordering::Relaxed) {
            return Err(FileError::Stopped);
        }
        Ok(())
    }

    /// Does something that must not be stopped: it takes back what was begun.
    pub(crate) fn going_back<T>(&self, work: impl FnOnce() -> T) -> T {
        self.is_going_back.store(true, Ordering::Relaxed);
        let value = work();
        self.is_going_back.store(false, Ordering::Relaxed);
        value
    }

    /// Tells whether a test wants the operation abandoned as it stands, like a crash would.
    #[cfg_attr(
        not(any(test, feature = "testing")),
        expect(clippy::unused_self, reason = "only tests abandon operations")
    )]
    pub(crate) fn is_abandoned(&self) -> bool {
        #[cfg(any(test, feature = "testing"))]
        return self.fault.is_abandoned();
        #[cfg(not(any(test, feature = "testing")))]
        false
    }
}

/// Makes one step fail, in tests.
#[cfg(any(test, feature = "testing"))]
#[derive(Debug, Default)]
pub(crate) struct Fault {
    state: std::sync::Mutex<FaultState>,
}

#[cfg(any(test, feature = "testing"))]
#[derive(Debug, Default)]
struct FaultState {
    passed: usize,
    fail_at: Option<usize>,
    abandons: bool,
    is_abandoned: bool,
}

#[cfg(any(test, feature = "testing"))]
impl Fault {
    /// Makes the step number `at` (from 0, counted anew) fail, and the operation be abandoned if told.
    pub(crate) fn set(&self, at: Option<usize>, abandons: bool) {
        *self.lock() = FaultState {
            passed: 0,
            fail_at: at,
            abandons,
            is_abandoned: false,
        };
    }

    /// Tells how many steps were passed since.
    pub(crate) fn passed(&self) -> usize {
        self.lock().passed
    }

    fn is_abandoned(&self) -> bool {
        self.lock().is_abandoned
    }

    fn reach(&self, name: &'static str) -> Result<(), FileError> {
        let mut state = self.lock();
        let here = state.passed;
        state.passed += 1;
        if state.fail_at != Some(here) {
            return Ok(());
        }
        state.fail_at = None;
        state.is_abandoned = state.abandons;
        let source = std::io::Error::other("a test made this step fail");
        Err(FileError::Io {
            path: name.to_owned(),
            action: "pass",
            source,
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, FaultState> {
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
