//! What can go wrong with a view of the file system.

use std::io;
use std::path::PathBuf;

/// Says why a command was not run in a layer, or what it did cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum OverlayError {
    /// A file that the kernel shows could not be read.
    #[error("could not read `{}`", path.display())]
    Unreadable {
        /// The path as it was asked for.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A directory for the layers could not be made.
    #[error("could not make `{}`", path.display())]
    Unmakable {
        /// The path as it was asked for.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// No directory can hold the layers.
    #[error("no file system here can hold the layers")]
    NoPlace {
        /// The directories that were tried, and why not.
        tried: Vec<String>,
    },
    /// The system does not allow namespaces or overlays here.
    #[error("the layers could not be set up: cannot {step}")]
    Impossible {
        /// What was tried.
        step: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The command could not be started; the layers were fine.
    #[error("`{program}` could not be started")]
    NotStarted {
        /// The program.
        program: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The command could not be waited for.
    #[error("could not {action}")]
    Lost {
        /// What was tried.
        action: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// What was tried when the layers were in place and the command was to begin in its directory.
pub(super) const MOVE_IN: &str = "move to the new root";

impl OverlayError {
    /// Tells whether the layers are fine, and the directory that the command was to begin in is not there.
    pub fn is_directory_gone(&self) -> bool {
        let Self::Impossible { step, source } = self else {
            return false;
        };
        let is_gone = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
        step == MOVE_IN && is_gone.contains(&source.kind())
    }
}
