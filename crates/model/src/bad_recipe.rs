//! What a driver wrote down and nobody can read.

use crate::KeyError;
use crate::ports::{DriverError, Fault};
use crate::report::{ErrorCode, Report};

/// Says why something that a driver wrote down cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum BadRecipe {
    /// A newer program wrote it, or none that there ever was.
    #[error("the recipe has version {found}, this program reads up to {known}")]
    Version {
        /// The version of the recipe.
        found: u16,
        /// The newest one that is known.
        known: u16,
    },
    /// It is not what it says.
    #[error("what the driver wrote down cannot be read")]
    Unreadable(#[from] serde_json::Error),
}

impl Fault for BadRecipe {
    fn report(&self) -> Option<Report> {
        let report = Report::refused(self.to_string());
        Some(match self {
            Self::Version { .. } => report
                .next("use the newer program")
                .code(ErrorCode::NewerRecipe),
            Self::Unreadable(_) => report.because_of_causes(self).code(ErrorCode::Damaged),
        })
    }
}

impl From<BadRecipe> for DriverError {
    fn from(bad: BadRecipe) -> Self {
        Self::new(bad)
    }
}

impl Fault for KeyError {}

impl From<KeyError> for DriverError {
    fn from(error: KeyError) -> Self {
        Self::new(error)
    }
}

impl From<serde_json::Error> for DriverError {
    fn from(error: serde_json::Error) -> Self {
        BadRecipe::Unreadable(error).into()
    }
}
