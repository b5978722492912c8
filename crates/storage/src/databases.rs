//! The databases that were enrolled: a name and a place for each, so that somebody can be asked who is not in any recipe yet.
//!
//! Not part of the journal: a database holds its own name, and what is lost here is found again by enrolling once more. No
//! password is in it.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::state_dir::sync_directory;
use crate::{StateDir, StorageError};

const DATABASES: &str = "databases.json";
const DATABASES_NEW: &str = "databases.json.new";

/// A database that was enrolled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Database {
    /// What it is called.
    pub name: String,
    /// The number that it gave itself.
    pub id: String,
    /// Where it is, without a password.
    pub url: String,
}

/// Lists the databases that were enrolled from a state directory; none if that is not there.
pub fn databases(directory: &Path) -> Result<Vec<Database>, StorageError> {
    let failed = |source| StorageError::StateDir {
        path: directory.join(DATABASES),
        action: "read",
        source,
    };
    match fs::read(directory.join(DATABASES)) {
        Ok(text) => serde_json::from_slice(&text).map_err(|error| failed(error.into())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(failed(error)),
    }
}

/// Puts the list in the place of the one before.
pub fn write_databases(directory: &Path, databases: &[Database]) -> Result<(), StorageError> {
    let directory = StateDir::open(directory)?;
    let directory = directory.path();
    let write = || {
        let waiting = directory.join(DATABASES_NEW);
        let mut options = File::options();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&waiting)?;
        file.write_all(&serde_json::to_vec_pretty(databases)?)?;
        file.sync_all()?;
        fs::rename(&waiting, directory.join(DATABASES))?;
        sync_directory(directory)
    };
    write().map_err(|source| StorageError::StateDir {
        path: directory.join(DATABASES),
        action: "write",
        source,
    })
}
