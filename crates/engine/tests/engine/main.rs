//! The engine on real files.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod life;
mod reports;
mod undo;
mod world;
