//! How a command can end other than well.

use backout_engine::{EngineError, Report};

/// Why a command did not, or not wholly, do what it was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The engine refused or failed.
    Engine(EngineError),
    /// It did not even come to asking the engine.
    Report(Report),
    /// The reply has been shown, and what it says is bad: a store with damage, an unhealthy machine.
    Shown(u8),
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        Self::Engine(error)
    }
}

impl From<Report> for Failure {
    fn from(report: Report) -> Self {
        Self::Report(report)
    }
}
