//! What every part of the driver works with: the store, the depots, the syncs, the watch.

use std::sync::Arc;

use backout_model::ports::{Depots, ReadContents, Store, Watch, WriteContents};

use super::error::FileError;
use super::sys::Syncs;

/// The ports and counters of a driver.
#[derive(Debug)]
pub(crate) struct FileContext {
    pub(crate) contents: Arc<dyn ReadContents>,
    pub(crate) stash: Arc<dyn WriteContents>,
    pub(crate) depots: Arc<dyn Depots>,
    /// Tells what operations left, where there is a journal.
    pub(crate) journal: Option<Arc<dyn Store>>,
    pub(crate) watch: Watch,
    pub(crate) syncs: Syncs,
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
            journal: None,
            watch: Watch::default(),
            syncs: Syncs::default(),
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
        self.watch.check().map_err(|_| FileError::Stopped)
    }

    /// Does something that must not be stopped: it takes back what was begun.
    pub(crate) fn going_back<T>(&self, work: impl FnOnce() -> T) -> T {
        self.watch.going_back(work)
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
