//! One folder per kind of target: how to write it and how to take the write back.
//!
//! Every driver implements [`backout_model::ports::Driver`] and passes the same conformance suite
//! (`crates/testkit`, `driver`). A driver never touches a target before the recipe that takes the
//! write back is durable: that is what `Armed` is for.

pub mod command;
pub mod config;
pub mod file;
pub mod sqlite;
