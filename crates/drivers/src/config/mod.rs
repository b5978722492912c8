//! Single keys of config files: JSON, JSON with comments, YAML, TOML, INI and `.env`.
//!
//! What it can undo exactly: each key that it changed, whatever else was changed in the file meanwhile; if nothing was, the
//! whole file to the last bit. What it cannot: a key that somebody else changed too (that is a conflict). What it relies on:
//! `backout_config` for the text, and the file driver for the file.
//!
//! - A target is a key inside of the file, so that whole-file writes and key writes see each other.
//! - A write is a write of the file driver: staged, atomic, with mode, owner and attributes kept, and with the file as it
//!   was. Its recipe lies in ours (`recipe.rs`), with the keys that changed beside it.
//! - The way back is taken key by key (`way.rs`). Where the file is exactly as the write left it, the file driver
//!   takes it back instead: then times and the rest come back, too.
//! - Values may be secrets: they lie in the store like images and are in no record.

mod back;
mod current;
mod driver;
mod error;
mod known;
mod recipe;
mod report;
mod request;
mod story;
mod way;

#[cfg(test)]
mod tests;

pub use backout_config::{ConfigError, Format, KeyPath, NewValue, Value};
pub use driver::ConfigDriver;
pub use error::ConfigFault;
pub use request::{ConfigEdit, ConfigRequest, Was};
