//! Trials: one directory each, with the layers of a command and a manifest that says what they mean.
//!
//! ```text
//! trials/ID/manifest.json     what the engine wrote about it; whole or not there
//! trials/ID/layers/           what the command wrote, as overlays left it
//! ```

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::PathBuf;

use backout_model::OperationId;

use crate::state_dir::sync_directory;
use crate::{StorageError, Store};

const TRIALS: &str = "trials";
const MANIFEST: &str = "manifest.json";
const MANIFEST_NEW: &str = "manifest.json.new";

impl Store {
    /// Gives the directory of a trial, there or not.
    pub fn trial_directory(&self, id: OperationId) -> PathBuf {
        self.directory().join(TRIALS).join(id.to_string())
    }

    /// Writes what is to be known of a trial, durably, making its directory if it is not there.
    pub fn write_trial(&self, id: OperationId, manifest: &[u8]) -> Result<(), StorageError> {
        let directory = self.trial_directory(id);
        let write = || {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&directory)?;
            let waiting = directory.join(MANIFEST_NEW);
            let mut options = File::options();
            options.write(true).create(true).truncate(true).mode(0o600);
            let mut file = options.open(&waiting)?;
            file.write_all(manifest)?;
            file.sync_all()?;
            fs::rename(&waiting, directory.join(MANIFEST))?;
            sync_directory(&directory)?;
            sync_directory(&self.directory().join(TRIALS))
        };
        write().map_err(|source| self.trial_failed(id, "write", source))
    }

    /// Reads what is to be known of a trial; nothing if there is none of that name.
    pub fn read_trial(&self, id: OperationId) -> Result<Option<Vec<u8>>, StorageError> {
        match fs::read(self.trial_directory(id).join(MANIFEST)) {
            Ok(manifest) => Ok(Some(manifest)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.trial_failed(id, "read", error)),
        }
    }

    /// Lists the trials that have a directory.
    pub fn trials(&self) -> Result<Vec<OperationId>, StorageError> {
        let directory = self.directory().join(TRIALS);
        let listing = match fs::read_dir(&directory) {
            Ok(listing) => listing,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => {
                return Err(StorageError::StateDir {
                    path: directory,
                    action: "read",
                    source,
                });
            }
        };
        let names = listing.flatten().map(|entry| entry.file_name());
        Ok(names
            .filter_map(|name| name.to_str()?.parse().ok())
            .collect())
    }

    fn trial_failed(
        &self,
        id: OperationId,
        action: &'static str,
        source: io::Error,
    ) -> StorageError {
        StorageError::StateDir {
            path: self.trial_directory(id).join(MANIFEST),
            action,
            source,
        }
    }
}
