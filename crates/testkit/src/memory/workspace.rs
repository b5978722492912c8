//! What is a matter of files by its nature: depots, staging, the logs of commands, the layers of trials.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use backout_model::ports::{Depots, StorageError, Workspace};
use backout_model::{OperationId, Slot, TargetPath};

use super::MemoryStore;
use super::state::Answer;

pub(super) const DEPOT: &str = "depot";
pub(super) const STAGING: &str = "staging";
pub(super) const CAPTURES: &str = "captures";
const TRIALS: &str = "trials";
const MANIFEST: &str = "manifest.json";

/// Makes the directories of a store, and gives the first by its real name.
pub(super) fn make(directory: &Path) -> io::Result<PathBuf> {
    for part in ["", DEPOT, STAGING, CAPTURES, TRIALS] {
        private(&directory.join(part))?;
    }
    directory.canonicalize()
}

fn private(directory: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(directory)
}

impl Workspace for MemoryStore {
    fn directory(&self) -> &Path {
        &self.shared.directory
    }

    fn capture_log(&self, id: OperationId) -> PathBuf {
        self.directory().join(CAPTURES).join(id.to_string())
    }

    fn capture_desk(&self, id: OperationId) -> PathBuf {
        self.directory().join(CAPTURES).join(format!("{id}.desk"))
    }

    fn scan_index(&self) -> PathBuf {
        self.directory().join(CAPTURES).join("scanned")
    }

    fn own_directories(&self) -> Vec<PathBuf> {
        let parts = ["", DEPOT, STAGING, CAPTURES];
        parts.map(|part| self.directory().join(part)).to_vec()
    }

    fn links_to_it(&self) -> &[PathBuf] {
        &[]
    }

    fn trial_directory(&self, id: OperationId) -> PathBuf {
        self.directory().join(TRIALS).join(id.to_string())
    }

    fn write_trial(&self, id: OperationId, manifest: &[u8]) -> Answer<()> {
        let directory = self.trial_directory(id);
        let written = private(&directory).and_then(|()| {
            let new = directory.join("manifest.json.new");
            fs::write(&new, manifest)?;
            fs::rename(new, directory.join(MANIFEST))
        });
        written.map_err(|source| failed(directory, "write", source))
    }

    fn read_trial(&self, id: OperationId) -> Answer<Option<Vec<u8>>> {
        let path = self.trial_directory(id).join(MANIFEST);
        match fs::read(&path) {
            Ok(manifest) => Ok(Some(manifest)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(path, "read", error)),
        }
    }

    fn trials(&self) -> Answer<Vec<OperationId>> {
        let directory = self.directory().join(TRIALS);
        let names = names_in(&directory).map_err(|source| failed(directory, "read", source))?;
        Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
    }
}

impl Depots for MemoryStore {
    fn depot_for(&self, directory: &TargetPath) -> Option<TargetPath> {
        let device = |path: &Path| Some(fs::metadata(path).ok()?.dev());
        let own = self.directory().join(DEPOT);
        let is_same = device(directory.as_path())? == device(&own)?;
        is_same.then(|| TargetPath::new(own).ok()).flatten()
    }

    fn staging(&self, by: OperationId) -> io::Result<TargetPath> {
        let path = self.directory().join(STAGING).join(by.to_string());
        private(&path)?;
        TargetPath::new(path).map_err(io::Error::other)
    }

    fn slots_of(&self, by: OperationId) -> Vec<Slot> {
        let own = self.directory().join(DEPOT);
        let Ok(depot) = TargetPath::new(&own) else {
            return Vec::new();
        };
        let mut names = names_in(&own).unwrap_or_default();
        names.retain(|name| operation_of(name) == Some(by));
        names.sort();
        let slot = |name| Slot {
            depot: depot.clone(),
            name,
        };
        names.into_iter().map(slot).collect()
    }

    fn is_ours(&self, path: &TargetPath) -> bool {
        path.as_path().starts_with(self.directory())
    }

    fn is_above_ours(&self, path: &TargetPath) -> bool {
        self.directory().starts_with(path.as_path())
    }
}

pub(super) fn failed(path: PathBuf, action: &'static str, source: io::Error) -> StorageError {
    StorageError::StateDir {
        path,
        action,
        source,
    }
}

/// Lists the names in a directory of ours, which are all text.
pub(super) fn names_in(directory: &Path) -> io::Result<Vec<String>> {
    let entries = fs::read_dir(directory)?.flatten();
    Ok(entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect())
}

/// Reads the operation's id from a name such as `00abcdef01234567-1`.
pub(super) fn operation_of(name: &str) -> Option<OperationId> {
    let (id, rest) = name.split_at_checked(16)?;
    let is_end = rest.is_empty() || rest.starts_with(['-', '~', '.']);
    id.parse().ok().filter(|_| is_end)
}
