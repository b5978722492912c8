//! The coding agents: hooks and the seam by recorded payloads, and the real agents with a scripted model on loopback.
//!
//! The real ones are npm packages of pinned versions, which the first test that needs one installs into `target/agents`. Each runs with its own home directory and
//! an empty environment, and talks to a server in `models/` that plays the turns of a script: no account, no network.

#![cfg(feature = "testing")]
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod dying;
mod failing;
mod hooks;
mod open;
mod prompts;
mod real;
mod settings;
mod tools;
mod world;
