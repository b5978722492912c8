//! The engine on real files.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod again;
mod life;
mod meant;
mod reports;
mod strange;
mod toy;
mod undo;
mod world;
