//! The same suite as `tests/engine`, with the store in memory.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../engine/again.rs"]
mod again;
#[path = "../engine/faults.rs"]
mod faults;
mod hosts;
#[path = "../engine/ladder.rs"]
mod ladder;
#[path = "../engine/life.rs"]
mod life;
#[path = "../engine/meant.rs"]
mod meant;
#[path = "../engine/picky.rs"]
mod picky;
#[path = "../engine/reports.rs"]
mod reports;
#[path = "../engine/rollout.rs"]
mod rollout;
mod shelf;
#[path = "../engine/strange.rs"]
mod strange;
#[path = "../engine/strategy.rs"]
mod strategy;
#[path = "../engine/trouble.rs"]
mod trouble;
#[path = "../engine/undo.rs"]
mod undo;
#[path = "../engine/wire.rs"]
mod wire;
#[path = "../engine/world.rs"]
mod world;
