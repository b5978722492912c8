//! What every part of the driver works with: the store, the depots, the syncs, the progress.

use std::fmt;
use std::sync::Arc;

use backout_model::ports::{Depots, ReadContents, WriteContents};

use super::error::FileError;
use super::sys::Syncs;

/// Is told how far long work has come, in items.
pub trait Progress: fmt::Debug + Send + Sync {
    /// Says how many items there will be.
    fn total(&self, items: u64);

    /// Says that so many more are done.
    fn advance(&self, items: u64);
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
pub(crate) struct Tools {
    pub(crate) contents: Arc<dyn ReadContents>,
    pub(crate) stash: Arc<dyn WriteContents>,
    pub(crate) depots: Arc<dyn Depots>,
    pub(crate) progress: Arc<dyn Progress>,
    pub(crate) syncs: Syncs,
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fault: Fault,
}

impl Tools {
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
            #[cfg(any(test, feature = "testing"))]
            fault: Fault::default(),
        }
    }

    /// Marks a step boundary: a test may end the process here, or make the step fail.
    #[cfg_attr(
        not(any(test, feature = "testing")),
        expect(
            clippy::unused_self,
            clippy::unnecessary_wraps,
            reason = "only tests make steps fail"
        )
    )]
    pub(crate) fn reach(&self, name: &'static str) -> Result<(), FileError> {
        backout_crashpoint::crash_point(name);
        #[cfg(any(test, feature = "testing"))]
        self.fault.reach(name)?;
        Ok(())
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
