//! The file in which processes tell each other what they changed: one change a line, one process at a time.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use backout_model::ports::StorageError;

use super::change::Change;
use super::state::{Answer, State};

/// The name of the file.
const LOG: &str = "changes";

#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    file: File,
    /// How much of it is known.
    read: u64,
}

/// The right to change the state. It ends when it is dropped.
#[derive(Debug)]
pub(super) struct Turn<'l>(&'l mut Log);

impl Log {
    pub(super) fn open(directory: &Path) -> io::Result<Self> {
        let path = directory.join(LOG);
        let mut options = File::options();
        let file = options.read(true).append(true).create(true).open(&path)?;
        Ok(Self {
            path,
            file,
            read: 0,
        })
    }

    /// Waits for its turn, and learns what others changed.
    pub(super) fn turn(&mut self, state: &mut State) -> Answer<Turn<'_>> {
        self.file.lock().map_err(|source| self.failed(source))?;
        self.learn(state)?;
        Ok(Turn(self))
    }

    fn learn(&mut self, state: &mut State) -> Answer<()> {
        let failed = |source| StorageError::StateDir {
            path: self.path.clone(),
            action: "read",
            source,
        };
        let mut reader = BufReader::new(&self.file);
        let from = SeekFrom::Start(self.read);
        reader.seek(from).map_err(failed)?;
        let mut line = Vec::new();
        loop {
            line.clear();
            let length = reader.read_until(b'\n', &mut line).map_err(failed)?;
            if length == 0 {
                return Ok(());
            }
            let change: Change = serde_json::from_slice(&line)
                .map_err(|cause| StorageError::inconsistent("the log of changes", &cause))?;
            state.apply(&change)?;
            self.read += length as u64;
        }
    }

    fn failed(&self, source: io::Error) -> StorageError {
        StorageError::StateDir {
            path: self.path.clone(),
            action: "use",
            source,
        }
    }
}

impl Turn<'_> {
    /// Tells the others of a change.
    pub(super) fn write(&mut self, change: &Change) -> Answer<()> {
        let mut line = serde_json::to_vec(change)
            .map_err(|cause| StorageError::inconsistent("a change to be told", &cause))?;
        line.push(b'\n');
        let written = self.0.file.write_all(&line);
        written.map_err(|source| self.0.failed(source))?;
        self.0.read += line.len() as u64;
        Ok(())
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // Whoever waits gets it at the latest when the file is closed.
        let _given = self.0.file.unlock();
    }
}
