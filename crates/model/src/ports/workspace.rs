//! The workspace: where the engine keeps what is no record and no image.
//!
//! Files and directories on this machine, also where the journal is elsewhere: a running command is watched here, and the
//! layers of a trial lie here. Nobody else writes there, and no operation may.

use std::path::{Path, PathBuf};

use super::StorageError;
use crate::OperationId;

/// Places on this machine that are nobody's to write but ours.
pub trait Workspace {
    /// Gives the state directory.
    fn directory(&self) -> &Path;

    /// Gives the place of the log of what a running command touches.
    fn capture_log(&self, id: OperationId) -> PathBuf;

    /// Gives the place where the watcher of a command can be asked.
    fn capture_desk(&self, id: OperationId) -> PathBuf;

    /// Gives the place of the index of what was last scanned.
    fn scan_index(&self) -> PathBuf;

    /// Lists the directories that are nobody's to write but ours.
    fn own_directories(&self) -> Vec<PathBuf>;

    /// Lists the symbolic links that lead to the state, which are nobody's to take away.
    fn links_to_it(&self) -> &[PathBuf];

    /// Gives the directory of a trial, there or not.
    fn trial_directory(&self, id: OperationId) -> PathBuf;

    /// Writes what is to be known of a trial, durably, making its directory if it is not there.
    fn write_trial(&self, id: OperationId, manifest: &[u8]) -> Result<(), StorageError>;

    /// Reads what is to be known of a trial; nothing if there is none of that name.
    fn read_trial(&self, id: OperationId) -> Result<Option<Vec<u8>>, StorageError>;

    /// Lists the trials that have a directory.
    fn trials(&self) -> Result<Vec<OperationId>, StorageError>;
}
