//! A trial as people and programs see it.

use backout_model::ports::Owners;
use backout_model::{OperationId, TargetPath, Timestamp, wide};
use serde::{Serialize, Serializer};

use super::manifest::{Manifest, TrialChange, TrialEnd, TrialWhat, command_line};
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
    #[serde(
        rename = "end",
        serialize_with = "tell_end",
        skip_serializing_if = "Option::is_none"
    )]
    pub ended: Option<TrialEnd>,
    /// Where it stands.
    pub standing: TrialStanding,
    /// What it changed, as far as that was asked for.
    #[serde(serialize_with = "tell_changes")]
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

    pub(super) fn of(
        owners: &(impl Owners + ?Sized),
        manifest: &Manifest,
        selection: &Selection,
    ) -> Self {
        let standing = if owners.is_from_another_boot(&manifest.owner) {
            TrialStanding::Lost
        } else if manifest.ended.is_some() && manifest.changes.is_empty() {
            TrialStanding::Empty
        } else if manifest.ended.is_some() {
            TrialStanding::Pending
        } else if owners.is_alive(&manifest.owner) {
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

/// How a trial's command ended, as that of a run is told.
#[derive(Serialize)]
struct ToldEnd {
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<u8>,
}

/// A change as programs see it: where the layer is and what the name was is the trial's own business.
#[derive(Serialize)]
struct ToldChange<'c> {
    path: &'c TargetPath,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'c TargetPath>,
    change: &'static str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_conflict: bool,
    #[serde(skip_serializing_if = "wide::is_none_or_wide")]
    size_before: Option<u64>,
    #[serde(skip_serializing_if = "wide::is_none_or_wide")]
    size_after: Option<u64>,
    #[serde(skip_serializing_if = "wide::is_none_or_wide")]
    gone_below: Option<u64>,
}

#[expect(
    clippy::ref_option,
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for this"
)]
fn tell_end<S: Serializer>(end: &Option<TrialEnd>, serializer: S) -> Result<S::Ok, S::Error> {
    let told = end.map(|end| ToldEnd {
        exit_code: end.signal.is_none().then_some(end.code),
        signal: end.signal,
    });
    told.serialize(serializer)
}

fn tell_changes<S: Serializer>(changes: &[TrialChange], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(changes.iter().map(|change| ToldChange {
        path: &change.path,
        from: change.from(),
        change: match change.what {
            TrialWhat::Created => "created",
            TrialWhat::Changed => "changed",
            TrialWhat::Metadata => "metadata",
            TrialWhat::Deleted => "removed",
            TrialWhat::Moved => "moved",
        },
        is_conflict: change.is_conflict,
        size_before: change.size_before,
        size_after: change.size_after,
        gone_below: change.gone_below,
    }))
}
