//! Drift: others change what was recorded, and all of it is found, none of it is invented, and what is decided holds.
//!
//! Real processes on real files; the known set of changes is the oracle.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod again;
mod choices;
mod days;
mod deciding;
mod found;
mod meddler;
mod ours;
#[path = "../proof/random.rs"]
mod random;
mod saying;
mod watching;
mod world;
