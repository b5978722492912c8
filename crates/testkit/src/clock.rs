//! Time and ids that tests decide.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use backout_model::ports::{Clock, Ids};
use backout_model::{OperationId, Timestamp};

/// When time begins.
const BEGIN: i64 = 1_800_000_000_000;

/// A clock that stands still until it is told to move.
#[derive(Debug)]
pub struct TestClock(AtomicI64);

impl Default for TestClock {
    fn default() -> Self {
        Self(AtomicI64::new(BEGIN))
    }
}

impl TestClock {
    /// Lets time pass, or go back.
    pub fn pass(&self, millis: i64) {
        self.0.fetch_add(millis, Ordering::Relaxed);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::Relaxed))
    }
}

/// Ids that are counted, and spread so that short prefixes tell them apart.
#[derive(Debug, Default)]
pub struct CountedIds(AtomicU64);

impl Ids for CountedIds {
    fn next(&self) -> OperationId {
        let count = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        OperationId::from_bits(count.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }
}
