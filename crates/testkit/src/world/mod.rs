//! What the worlds of tests have in common: a look at everything, a place in memory, and what a process said.
//!
//! The worlds themselves are not here, since they differ in what they are for:
//!
//! - `crates/cli/tests/suite`: a fixed clock and counted ids, terminals, output without the name of the world;
//! - `crates/cli/tests/proof`: the program as it is, ordinary users, disks of their own, a check of the store;
//! - `crates/engine/tests`: an engine in the process, on either store; its random stories also foresee trees, with inodes and
//!   moments that nobody knows yet, so their snapshot is one of their own (`model/seen.rs`);
//! - `crates/cli/tests/laws`: trees that an oracle makes up, of names, modes and contents alone;
//! - drivers: a driver and its ports, without an engine (`crate::driver`, `crate::fakes`).

mod redis;
mod tree;

use std::path::PathBuf;
use std::process::Output;

pub use self::redis::{RedisClient, RedisServer, Reply};
pub use self::tree::{Entry, Tree, xattrs};

/// Gives a directory in memory, or else the usual one: for what is done thousands of times, each with its syncs. A set
/// `TMPDIR` decides, so that tests can run on any file system.
pub fn memory() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if std::env::var_os("TMPDIR").is_none() && memory.is_dir() {
        memory
    } else {
        std::env::temp_dir()
    }
}

/// Says how a process ended, and what it printed.
pub fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!(
        "{}\n{}{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    )
}
