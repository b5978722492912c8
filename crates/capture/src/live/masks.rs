//! Which rights each process never gives to what it makes: read once, and again when a process changes its own.
//!
//! Reading it costs more than all else that is looked at for a new file. It changes by one call only, which is asked about and
//! says what it will be. Between our answer and the change itself nothing is remembered.

use std::collections::HashMap;

use super::calls::as_int;
use super::ending::has_left;
use super::process_info::umask_of;
use super::sys::Notice;

/// So many are remembered.
const MASKS_MAX: usize = 4096;

/// The masks that are known.
#[derive(Debug, Default)]
pub(super) struct Masks {
    /// By thread.
    known: HashMap<u32, u32>,
    /// Calls that change one and may not be over.
    changing: Vec<Notice>,
}

impl Masks {
    /// A thread is about to change its mask, and that of whoever shares it.
    pub(super) fn changes(&mut self, notice: &Notice) {
        self.known.clear();
        self.changing.push(*notice);
    }

    /// Hears that a thread makes another call: what it did before is over. If it changed its mask, that is known.
    pub(super) fn asks_again(&mut self, thread: u32) {
        let own = self.changing.iter().find(|call| call.thread == thread);
        let Some([mask, ..]) = own.map(|call| call.arguments) else {
            return;
        };
        self.are_over(|call| call.thread == thread);
        if self.changing.is_empty() {
            self.known
                .insert(thread, as_int(mask).cast_unsigned() & 0o777);
        }
    }

    /// Forgets all: the numbers of threads may stand for others from now on.
    pub(super) fn forget(&mut self) {
        self.known.clear();
    }

    /// Gives the mask of a thread; none if it cannot be told.
    pub(super) fn of(&mut self, thread: u32) -> Option<u32> {
        self.are_over(|call| has_left(call, None));
        if let Some(mask) = self.known.get(&thread) {
            return Some(*mask);
        }
        let mask = umask_of(thread)?;
        if self.changing.is_empty() && self.known.len() < MASKS_MAX {
            self.known.insert(thread, mask);
        }
        Some(mask)
    }

    /// Takes out the calls that are over. What was known before each of them is not known after it.
    fn are_over(&mut self, is_over: impl Fn(&Notice) -> bool) {
        if !self.changing.is_empty() {
            self.known.clear();
            self.changing.retain(|call| !is_over(call));
        }
    }
}
