//! One folder per kind of target: how to write it and how to take the write back.
//!
//! Every driver implements [`backout_model::ports::Driver`] and passes the same conformance suite
//! (`crates/testkit`, `driver`). A driver never touches a target before the recipe that takes the
//! write back is durable: that is what `Armed` is for.

pub mod command;
pub mod config;
pub mod file;
pub mod handler;
pub mod sqlite;
pub mod workspace;

use std::sync::Arc;

use backout_files::Drivers;
use backout_model::ports::Store;

/// Makes the drivers for what is on this machine: files, keys of config files, rows of `SQLite` files, and commands.
pub fn local(store: &Arc<dyn Store>) -> Drivers {
    let files = file::FileDriver::new(
        Arc::clone(store) as _,
        Arc::clone(store) as _,
        Arc::clone(store) as _,
    );
    let files = Arc::new(files.with_journal(Arc::clone(store)));
    Drivers {
        all: vec![
            Arc::new(config::ConfigDriver::new(Arc::clone(&files))),
            Arc::new(sqlite::SqliteDriver::new(Arc::clone(&files))),
            Arc::new(sqlite::SqliteFilesDriver::new(sqlite::SqliteDriver::new(
                Arc::clone(&files),
            ))),
            Arc::clone(&files) as _,
        ],
        directories: Arc::clone(&files) as _,
        commands: Arc::new(command::CommandDriver::new(Arc::clone(&files))),
        files,
    }
}
