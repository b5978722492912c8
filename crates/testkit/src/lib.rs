//! What every store and every driver must do, as suites, a store in memory that does it, and what tests have in common.
//!
//! Only tests use this crate.

mod clock;
pub mod conformance;
pub mod driver;
pub mod fakes;
mod faulty;
mod made;
pub mod memory;
mod python;
pub mod world;

pub use clock::{CountedIds, TestClock};
pub use faulty::FaultyStore;
pub use memory::MemoryStore;
pub use python::python_with;
