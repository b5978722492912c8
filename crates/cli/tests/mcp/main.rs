//! `backout mcp`, spoken to by the official client and by hand, and `backout log -i` on a real terminal.

#![cfg(feature = "testing")]
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

mod browse;
mod official;
mod raw;
mod world;
