//! `backout serve` as the built program, asked over real sockets.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod api;
mod door;
mod events;
mod fuzzed;
mod life;
mod mcp;
mod otlp;
mod roles;
mod rules;
mod world;
