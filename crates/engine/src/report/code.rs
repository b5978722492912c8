//! The fixed words by which programs know what happened. They are part of the JSON and do not change.

use backout_drivers::file::FileError;
use backout_model::PlanError;
use backout_storage::{RefError, StorageError};

use crate::{EngineError, TrialError};

/// Gives the word for an error.
pub(super) fn of(error: &EngineError) -> &'static str {
    match error {
        EngineError::Storage(error) | EngineError::NotArmed(error) => storage(error),
        EngineError::File(error) => file(error),
        EngineError::TakenBack { cause, .. } => of(cause),
        EngineError::NotRecorded { .. } => "not-recorded",
        EngineError::Stays { .. } => "stays",
        EngineError::HalfDone { .. } => "half-done",
        EngineError::Refused { .. } => "gate",
        EngineError::NotVerified { .. } => "not-verified",
        EngineError::Busy { .. } => "busy",
        EngineError::Ref(error) => match error {
            RefError::Malformed { .. } => "malformed-name",
            RefError::Unknown { .. } => "unknown-operation",
            RefError::Ambiguous { .. } => "ambiguous-name",
            RefError::Storage(error) => storage(error),
        },
        EngineError::Plan(error) => plan(error),
        EngineError::NeedsWord(_) => "needs-word",
        EngineError::Conflicts { .. } => "conflict",
        EngineError::Partial(_) => "partial",
        EngineError::Stopped(_) => "interrupted",
        EngineError::NothingBelow { .. }
        | EngineError::NothingOnPath { .. }
        | EngineError::NothingToRedo { .. } => "nothing",
        EngineError::PutBack { .. } => "put-back",
        EngineError::Inseparable { .. } => "inseparable",
        EngineError::NotTouched { .. } => "not-touched",
        EngineError::NothingToDecide { .. } => "nothing-to-decide",
        EngineError::AtWork { .. } => "at-work",
        EngineError::NoTask { .. } => "unknown-task",
        EngineError::TaskEnded { .. } => "task-ended",
        EngineError::TaskOpen { .. } => "task-open",
        EngineError::WhichTask { .. } => "which-task",
        EngineError::NoCheckpoint { .. } => "unknown-checkpoint",
        EngineError::NoProcess { .. } => "unknown-process",
        EngineError::NotStarted { .. } => "not-started",
        EngineError::NoCapture { .. } => "no-capture",
        EngineError::Trial(error) => trial(error),
        EngineError::Io { .. } => "io",
    }
}

const fn plan(error: &PlanError) -> &'static str {
    match error {
        PlanError::Unknown { .. } => "unknown-operation",
        PlanError::AlreadyUndone { .. } => "already-undone",
        PlanError::NeverHappened { .. } => "never-happened",
        PlanError::Unfinished { .. } => "unfinished",
        PlanError::Expired { .. } => "expired",
        PlanError::Irreversible { .. } => "irreversible",
        PlanError::ChangedNothing { .. } | PlanError::NothingChosen { .. } | PlanError::Nothing => {
            "nothing"
        }
    }
}

const fn trial(error: &TrialError) -> &'static str {
    match error {
        TrialError::Layers(_) => "no-layers",
        TrialError::NotStarted { .. } => "not-started",
        TrialError::Which { .. } => "which-trial",
        TrialError::Lost { .. } => "trial-lost",
        TrialError::Unfinished { .. } => "trial-unfinished",
        TrialError::Unreadable { .. } => "trial-unreadable",
        TrialError::NothingChosen { .. } => "nothing",
    }
}

const fn storage(error: &StorageError) -> &'static str {
    match error {
        StorageError::StateDir { .. } | StorageError::NotOurs { .. } => "state-directory",
        StorageError::NewerFormat { .. } => "newer-format",
        StorageError::Damaged { .. }
        | StorageError::NotWhole { .. }
        | StorageError::LostRecords { .. }
        | StorageError::Record(_)
        | StorageError::Inconsistent { .. } => "damaged",
        StorageError::InUse { .. } => "in-use",
        StorageError::Gone { .. } => "state-directory-gone",
        StorageError::DiskFull { .. } => "disk-full",
        StorageError::ReadOnly { .. } => "read-only",
        StorageError::Poisoned => "poisoned",
        StorageError::Leased { .. } => "busy",
        StorageError::OverCap { .. } => "store-full",
        StorageError::DuplicateId { .. } => "duplicate-id",
        StorageError::ContentGone { .. } => "content-gone",
        StorageError::NoRecord { .. } => "unknown-record",
        StorageError::Database(_) => "database",
    }
}

const fn file(error: &FileError) -> &'static str {
    match error {
        FileError::Stopped => "interrupted",
        FileError::NotFound { .. } => "not-found",
        FileError::Lost { .. } => "lost",
        FileError::IsADirectory { .. } => "is-a-directory",
        FileError::NotADirectory { .. } => "not-a-directory",
        FileError::NotAFile { .. } => "not-a-file",
        FileError::AlreadyExists { .. } => "already-exists",
        FileError::NotEmpty { .. } => "not-empty",
        FileError::IntoItself { .. } => "into-itself",
        FileError::Permission { .. } => "permission",
        FileError::Locked { .. } => "locked",
        FileError::ReadOnly { .. } => "read-only",
        FileError::NoSpace { .. } => "no-space",
        FileError::NoWayToKeep { .. } => "cannot-be-kept",
        FileError::ThroughSymlink { .. } => "through-symlink",
        FileError::Escapes { .. } => "escapes",
        FileError::Unusable { .. } => "unusable-path",
        FileError::Ours { .. } => "own-state",
        FileError::Edit { .. } => "edit",
        FileError::Patch(_) => "patch",
        FileError::Mode(_) => "mode",
        FileError::Entangled { .. } => "entangled",
        FileError::BaseChanged { .. } => "base-changed",
        FileError::Changed { .. } => "changed-meanwhile",
        FileError::HalfDone { .. } => "half-done",
        FileError::Recipe { .. } => "newer-recipe",
        FileError::Damaged { .. }
        | FileError::Contents(_)
        | FileError::Unreadable(_)
        | FileError::WrongContent { .. } => "damaged",
        FileError::NotSynced { .. } => "not-synced",
        FileError::Io { .. } => "io",
    }
}
