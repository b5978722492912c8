//! What every store must do, as a suite, and a store in memory that does it.
//!
//! Only tests use this crate.

mod clock;
pub mod conformance;
mod faulty;
pub mod memory;

pub use clock::{CountedIds, TestClock};
pub use faulty::FaultyStore;
pub use memory::MemoryStore;
