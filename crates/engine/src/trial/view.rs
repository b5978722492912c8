//! A trial as people and programs see it.

use backout_model::{OperationId, TargetPath, Timestamp};
use backout_storage::{is_alive, is_from_another_boot};
use serde::Serialize;

use super::manifest::{Manifest, TrialChange, TrialEnd, command_line};
use super::select;
use crate::{Finished, Selection};

/// Where a trial stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrialStanding {
    /// The command runs.
    Running,
    /// It changed nothing, so there is nothing to decide.
    Empty,
    /// It waits for a verdict.
    Pending,
    /// Its process died before the command had ended.
    Interrupted,
    /// The machine was started anew since, and the layers are not to be trusted.
    Lost,
    /// It was made real.
    Applied,
    /// It was let go.
    Discarded,
}

/// A trial.
#[derive(Debug, Clone, Serialize)]
pub struct TrialView {
    /// Its name.
    pub id: OperationId,
    /// When it began.
    pub made: Timestamp,
    /// The command.
    pub command: Vec<String>,
    /// Where it ran.
    pub directory: TargetPath,
    /// How it ended.
    #[serde(flatten)]
    pub ended: Option<TrialEnd>,
    /// Where it stands.
    pub standing: TrialStanding,
    /// What it changed, as far as that was asked for.
    pub changes: Vec<TrialChange>,
    /// Things worth knowing.
    pub notes: Vec<String>,
    /// The operation that made it real.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied: Option<Finished>,
}

impl TrialView {
    /// Says the command as it could be typed, cut off where it gets too long.
    pub fn line(&self) -> String {
        command_line(&self.command)
    }

    pub(super) fn of(manifest: &Manifest, selection: &Selection) -> Self {
        let standing = if is_from_another_boot(&manifest.owner) {
            TrialStanding::Lost
        } else if manifest.ended.is_some() && manifest.changes.is_empty() {
            TrialStanding::Empty
        } else if manifest.ended.is_some() {
            TrialStanding::Pending
        } else if is_alive(&manifest.owner) {
            TrialStanding::Running
        } else {
            TrialStanding::Interrupted
        };
        let chosen = select::chosen(selection, &manifest.changes);
        Self {
            id: manifest.id,
            made: manifest.made,
            command: manifest.command.clone(),
            directory: manifest.directory.clone(),
            ended: manifest.ended,
            standing,
            changes: chosen.into_iter().cloned().collect(),
            notes: manifest.notes.clone(),
            applied: None,
        }
    }
}
