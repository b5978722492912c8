//! The engine on real files, with the store of SQLite. With the store in memory: `tests/engine_memory`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod again;
mod faults;
mod ladder;
mod life;
mod meant;
mod picky;
mod reports;
mod rollout;
mod shelf;
mod strange;
mod strategy;
mod trouble;
mod undo;
mod wire;
mod world;
