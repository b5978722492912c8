//! What the engine asks about commands: record what one does, and say what it did.
//!
//! What a command did becomes a recipe of the file driver, so nothing here takes anything back.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use backout_model::{Armed, OperationId, TargetPath};

use super::Part;
use super::recorder::{Limits, Recorder, RecorderError};
use super::scan::scan;
use super::settle::{Reading, Settled, settle, settle_log};
use crate::file::{FileDriver, FileError};

/// Where the log of a command is, as its recipe says.
#[derive(Debug)]
pub struct CommandLog(pub PathBuf);

/// Records what commands do to files.
#[derive(Debug, Clone)]
pub struct CommandDriver {
    files: Arc<FileDriver>,
}

impl CommandDriver {
    /// Takes the driver whose recipes tell what a command did.
    pub const fn new(files: Arc<FileDriver>) -> Self {
        Self { files }
    }

    /// Begins to record what a command does to files, in the log that was armed with it. Nothing can be watched without a
    /// recorder, so nothing starts before its undo is durable.
    pub fn record(
        &self,
        armed: Armed<CommandLog>,
        limits: Limits,
    ) -> Result<Recorder, RecorderError> {
        let (id, _, CommandLog(log)) = armed.into_parts();
        Recorder::new(
            id,
            &log,
            (
                Arc::clone(&self.files.context().depots),
                Arc::clone(&self.files.context().stash),
            ),
            limits,
        )
    }

    /// Keeps everything below some directories before a command. `index` remembers what need not be read again. Gives
    /// how many files were read.
    pub fn scan(
        &self,
        id: OperationId,
        recorder: &mut Recorder,
        roots: &[TargetPath],
        index: &Path,
    ) -> Result<u64, FileError> {
        let scanned = scan(self.files.context(), id, roots, index)?;
        recorder
            .scanned(scanned.notes)
            .map_err(|source| FileError::Io {
                path: index.display().to_string(),
                action: "write the capture log beside",
                source,
            })?;
        Ok(scanned.read)
    }

    /// Says what a command did that was recorded: the net effect, and how to take it back.
    pub fn settle(&self, id: OperationId, mut recorder: Recorder) -> Result<Settled, FileError> {
        // What is seen is known, also when the log has no room for it.
        let _noted = recorder.look_around();
        settle(self.files.context(), id, recorder.into_ledger())
    }

    /// Says what a command did, by the log that its dead supervisor left. Parts of it count as told if `is_recorded`. If
    /// the machine went down since, its end `may_be_cut` off. What is kept out of reach is an error, unless it is to be settled
    /// `anyway`.
    pub fn settle_log(
        &self,
        id: OperationId,
        log: &Path,
        is_recorded: &dyn Fn(OperationId) -> bool,
        reading: Reading,
    ) -> Result<Settled, FileError> {
        settle_log(self.files.context(), id, log, is_recorded, reading)
    }

    /// Says what a part of a running command has done so far, as the operation `id`. With that part it begins anew.
    pub fn settle_part(
        &self,
        id: OperationId,
        recorder: &mut Recorder,
        part: Part,
    ) -> Result<Settled, FileError> {
        let unwritten = |source| FileError::Io {
            path: "the capture log".to_owned(),
            action: "write",
            source,
        };
        let part = recorder.cut(id, part).map_err(unwritten)?;
        settle(self.files.context(), id, part)
    }
}
