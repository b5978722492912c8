//! Steps of a target in a test: any of them can be made to fail, or to be the last one.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Counts the steps that change a target. A test's target calls [`Steps::pass`] before each.
#[derive(Debug, Default)]
pub struct Steps(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    passed: usize,
    fail_at: Option<usize>,
    is_last: bool,
    is_over: bool,
}

/// Says that a test made a step fail.
#[derive(Debug, thiserror::Error)]
#[error("a test made this step fail")]
pub struct Cut;

impl Steps {
    /// Makes the step number `at` fail, counted from 0 from now on. With `is_last` all later ones fail too, as for a process
    /// that died.
    pub fn fail_at(&self, at: Option<usize>, is_last: bool) {
        *self.lock() = State {
            fail_at: at,
            is_last,
            ..State::default()
        };
    }

    /// Tells how many steps were passed since.
    pub fn passed(&self) -> usize {
        self.lock().passed
    }

    /// Passes a step.
    pub fn pass(&self) -> Result<(), Cut> {
        let mut state = self.lock();
        if state.is_over {
            return Err(Cut);
        }
        let number = state.passed;
        state.passed += 1;
        if state.fail_at == Some(number) {
            state.is_over = state.is_last;
            return Err(Cut);
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
