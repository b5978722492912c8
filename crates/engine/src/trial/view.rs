//! A trial as people and programs see it.

use backout_model::ports::Owners;
use backout_model::{OperationId, TargetPath, Timestamp, wide};
use serde::{Deserialize, Serialize};

use super::manifest::{Manifest, TrialChange, TrialEnd, TrialWhat, command_line};
use super::select;
use crate::{Finished, Selection};

/// What shells add to the number of a signal to make an exit code of it.
const SIGNALLED: u8 = 128;

/// Where a trial stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrialStanding {
    /// The command runs.
    Running,
    /// It changed nothing, so there is nothing to decide.
    Empty,
    /// It waits for a decision.
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

/// A command that was tried, and what it would change.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TrialView {
    /// Its name.
    pub id: OperationId,
    /// When it began.
    pub made: Timestamp,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Where it ran.
    pub directory: TargetPath,
    /// None while it runs.
    #[serde(
        rename = "end",
        default,
        with = "told_end",
        skip_serializing_if = "Option::is_none"
    )]
    pub ended: Option<TrialEnd>,
    /// Where it stands.
    pub standing: TrialStanding,
    /// What it changed, as far as that was asked for.
    pub changes: Vec<TrialChangeView>,
    /// Things worth knowing.
    pub notes: Vec<String>,
    /// The operation that made it real.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
            changes: chosen.into_iter().map(TrialChangeView::from).collect(),
            notes: manifest.notes.clone(),
            applied: None,
        }
    }
}

/// How a trial's command ended, as that of a run is told.
#[derive(Serialize, Deserialize)]
struct ToldEnd {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exit_code: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signal: Option<u8>,
}

impl From<TrialEnd> for ToldEnd {
    fn from(end: TrialEnd) -> Self {
        Self {
            exit_code: end.signal.is_none().then_some(end.code),
            signal: end.signal,
        }
    }
}

impl From<ToldEnd> for TrialEnd {
    fn from(told: ToldEnd) -> Self {
        let signalled = told.signal.unwrap_or_default().wrapping_add(SIGNALLED);
        Self {
            code: told.exit_code.unwrap_or(signalled),
            signal: told.signal,
        }
    }
}

mod told_end {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    use super::{ToldEnd, TrialEnd};

    #[expect(
        clippy::ref_option,
        clippy::trivially_copy_pass_by_ref,
        reason = "serde asks for this"
    )]
    pub(super) fn serialize<S: Serializer>(
        end: &Option<TrialEnd>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        end.map(ToldEnd::from).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<TrialEnd>, D::Error> {
        let told = Option::<ToldEnd>::deserialize(deserializer)?;
        Ok(told.map(TrialEnd::from))
    }
}

/// One name that a tried command changed. Where the layer is and what the name was is the trial's own business.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialChangeView {
    /// The name.
    pub path: TargetPath,
    /// Its old name, if it was moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<TargetPath>,
    /// What happened to it.
    #[serde(rename = "change", with = "ToldWhat")]
    pub what: TrialWhat,
    /// Whether somebody else changed it while the command ran, or since: a trial that is shown is looked at anew.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_conflict: bool,
    /// How many bytes it had, if it was a file.
    #[serde(default, skip_serializing_if = "wide::is_none_or_wide")]
    pub size_before: Option<u64>,
    /// How many bytes it has, if it is a file.
    #[serde(default, skip_serializing_if = "wide::is_none_or_wide")]
    pub size_after: Option<u64>,
    /// How many names lay below it, if it was a directory and is none any more.
    #[serde(default, skip_serializing_if = "wide::is_none_or_wide")]
    pub gone_below: Option<u64>,
}

impl From<&TrialChange> for TrialChangeView {
    fn from(change: &TrialChange) -> Self {
        Self {
            path: change.path.clone(),
            from: change.from().cloned(),
            what: change.what,
            is_conflict: change.is_conflict,
            size_before: change.size_before,
            size_after: change.size_after,
            gone_below: change.gone_below,
        }
    }
}

/// The words for what happened, as `diff` has them.
#[derive(Serialize, Deserialize)]
#[serde(remote = "TrialWhat", rename_all = "kebab-case")]
enum ToldWhat {
    Created,
    Changed,
    Metadata,
    #[serde(rename = "removed")]
    Deleted,
    Moved,
}
