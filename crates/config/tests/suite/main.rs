//! What a person expects of editing a key, by tables, and what must hold for every text, by random documents.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod changes;
mod env;
mod ini;
mod json;
mod keys;
mod laws;
mod meanwhile;
mod refusals;
mod steps;
mod toml;
mod yaml;
