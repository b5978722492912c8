//! What a layer makes of names, and what went wrong with it.

use std::path::PathBuf;

use backout_model::any_path;
use backout_model::ports::{DriverError, Fault};
use backout_model::report::{ErrorCode, Report};
use serde::{Deserialize, Serialize};

use crate::Baseline;

/// One name that a layer changes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LayerEntry {
    /// The name.
    #[serde(with = "any_path")]
    pub path: PathBuf,
    /// What it was when the layer was made; anything else is a conflict.
    pub baseline: Baseline,
    /// What stands there once the layer is applied.
    pub becomes: LayerState,
}

/// What a name becomes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LayerState {
    /// Nothing; a directory goes with all that is in it.
    Nothing,
    /// What is at this path, with mode, owner, times and attributes; of a directory not its entries.
    Like(#[serde(with = "any_path")] PathBuf),
    /// A second name of what is at this path, now or by an earlier entry.
    Linked(#[serde(with = "any_path")] PathBuf),
    /// What was at another path, with all that is in it.
    Moved {
        /// The other path.
        #[serde(with = "any_path")]
        from: PathBuf,
        /// What was there when the layer was made.
        baseline: Baseline,
    },
}

/// How many paths of a conflict are named.
const NAMED_MAX: usize = 10;

/// What a layer was made over is not there any more as it was.
#[derive(Debug, thiserror::Error)]
#[error("{} changed since the layer was made", counted(paths))]
pub struct BaseChanged {
    /// The paths that changed.
    pub paths: Vec<String>,
}

fn counted(paths: &[String]) -> String {
    match paths {
        [only] => format!("`{only}`"),
        many => format!("{} paths", many.len()),
    }
}

impl Fault for BaseChanged {
    fn report(&self) -> Option<Report> {
        let mut report =
            Report::refused("nothing was applied: what the layer was made over changed");
        for path in self.paths.iter().take(NAMED_MAX) {
            report = report.because(format!("`{path}` changed since the command began"));
        }
        let more = self.paths.len().checked_sub(NAMED_MAX);
        if let Some(more) = more.filter(|more| *more > 0) {
            report = report.because(format!("and {more} more"));
        }
        let report = report
            .next("apply the rest with `--exclude PATH`, or a part with `--only GLOB`")
            .next("or run the command again over what is there now: discard the trial, or go back in the sandbox, first");
        Some(report.code(ErrorCode::BaseChanged))
    }
}

impl From<BaseChanged> for DriverError {
    fn from(error: BaseChanged) -> Self {
        Self::new(error)
    }
}

/// A path cannot be a target at all.
#[derive(Debug, thiserror::Error)]
#[error("`{path}` cannot be written to")]
pub struct UnusablePath {
    /// As it was written.
    pub path: String,
}

impl Fault for UnusablePath {
    fn report(&self) -> Option<Report> {
        let report = Report::refused(self.to_string()).next("check the path");
        Some(report.code(ErrorCode::UnusablePath))
    }
}

impl From<UnusablePath> for DriverError {
    fn from(error: UnusablePath) -> Self {
        Self::new(error)
    }
}
