//! The syntax checks: tables of texts for each format, limits, encodings, and texts that nobody thought of.

#![expect(clippy::panic, reason = "a test fails by panicking")]

mod anything;
mod detection;
mod limits;
mod tables;
mod texts;
