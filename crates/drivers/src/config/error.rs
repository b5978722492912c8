//! What can go wrong with keys of config files.

use backout_config::ConfigError;
use backout_model::ports::{ContentsError, DriverError, Fault};
use backout_model::report::Report;

use crate::file::FileError;

/// Says why a key was not changed.
#[derive(Debug, thiserror::Error)]
pub enum ConfigFault {
    /// The name of the file does not tell how it is written.
    #[error("the name of `{path}` does not tell how it is written")]
    NoFormat {
        /// The file.
        path: String,
    },
    /// The text is not understood, or the key cannot be edited as asked.
    #[error("`{path}`: {cause}")]
    Config {
        /// The file.
        path: String,
        /// What is wrong, and where.
        cause: ConfigError,
    },
    /// The recipe is of a version that this program does not know.
    #[error("the recipe has version {found}, this program reads up to {known}")]
    Recipe {
        /// The version.
        found: u16,
        /// The newest that is known.
        known: u16,
    },
    /// The recipe cannot be read.
    #[error("the recipe cannot be read")]
    Unreadable(#[source] serde_json::Error),
    /// What the store keeps of the keys cannot be had.
    #[error(transparent)]
    Contents(#[from] ContentsError),
    /// The file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
}

impl Fault for ConfigFault {
    fn is_stop(&self) -> bool {
        self.of_file().is_some_and(FileError::is_stop)
    }

    fn may_pass(&self) -> bool {
        self.of_file().is_some_and(Fault::may_pass)
    }

    fn is_half_done(&self) -> bool {
        self.of_file().is_some_and(Fault::is_half_done)
    }

    fn out_of_reach(&self) -> Option<&str> {
        self.of_file().and_then(Fault::out_of_reach)
    }

    fn report(&self) -> Option<Report> {
        Some(super::report::report(self))
    }
}

impl ConfigFault {
    const fn of_file(&self) -> Option<&FileError> {
        match self {
            Self::File(error) => Some(error),
            Self::NoFormat { .. }
            | Self::Config { .. }
            | Self::Recipe { .. }
            | Self::Unreadable(_)
            | Self::Contents(_) => None,
        }
    }
}

impl From<ConfigFault> for DriverError {
    fn from(error: ConfigFault) -> Self {
        match error {
            // What is wrong with the file is told as for any write of it.
            ConfigFault::File(error) => error.into(),
            error @ (ConfigFault::NoFormat { .. }
            | ConfigFault::Config { .. }
            | ConfigFault::Recipe { .. }
            | ConfigFault::Unreadable(_)
            | ConfigFault::Contents(_)) => Self::new(error),
        }
    }
}
