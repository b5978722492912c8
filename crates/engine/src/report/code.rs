//! The fixed words by which programs know what happened. They are part of the JSON and do not change.

use backout_drivers::config::{ConfigError, ConfigFault};
use backout_drivers::file::FileError;
use backout_drivers::sqlite::SqliteFault;
use backout_model::PlanError;
use backout_model::ports::{BadRecipe, Fault};
use backout_storage::{RefError, StorageError};
use serde::{Serialize, Serializer};

use crate::{EngineError, GateError, LadderError, RolloutError, SandboxError, TrialError};

macro_rules! codes {
    ($($name:ident = $word:literal: $doc:literal,)*) => {
        /// What kind of thing went wrong, for programs.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum ErrorCode {
            $(#[doc = $doc] $name,)*
        }

        impl ErrorCode {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Gives the word.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)*
                }
            }
        }
    };
}

codes! {
    Refused = "refused": "It was refused or failed, in no way that has a word of its own.",
    Usage = "usage": "It was asked wrongly.",
    Broken = "broken": "The store is hurt, in no way that has a word of its own.",
    NotRecorded = "not-recorded": "It happened, and could not be recorded.",
    Stays = "stays": "It was to be taken back, and stays.",
    HalfDone = "half-done": "It failed half-way and could not be put back.",
    Gate = "gate": "A gate said no.",
    Waits = "waits": "It waits for a decision.",
    NothingDone = "nothing-done": "The operation changed nothing: it waits, or was refused.",
    ProposalExpired = "proposal-expired": "Nobody decided about it in time.",
    ProposalStale = "proposal-stale": "What was proposed cannot be done any more as it was proposed.",
    BeingDecided = "being-decided": "Somebody else decides about it at this moment.",
    OwnProposal = "own-proposal": "Who proposed it cannot approve it.",
    NotFailed = "not-failed": "No undo of the operation waits for a person.",
    OwnFailure = "own-failure": "Whose work it is cannot accept what is left of it.",
    KeyTaken = "key-taken": "The key of the call stands for another call.",
    AnsweredBefore = "answered-before": "The call was answered before.",
    UndoneSince = "undone-since": "The call was answered before, and what was done has been undone since.",
    Unclear = "unclear": "The call was made before, and nobody can tell whether it happened.",
    NotVerified = "not-verified": "A check after the write said no.",
    Busy = "busy": "Somebody else is writing the same.",
    MalformedName = "malformed-name": "The text is no name of an operation.",
    UnknownOperation = "unknown-operation": "There is no such operation.",
    AmbiguousName = "ambiguous-name": "The name fits several operations.",
    NeedsWord = "needs-word": "Other operations would have to go, and need a word.",
    Conflict = "conflict": "A target changed since.",
    Partial = "partial": "Not all of it came back.",
    Interrupted = "interrupted": "Somebody stopped it.",
    Nothing = "nothing": "There is nothing to do.",
    PutBack = "put-back": "An undo or a redo that died was put back.",
    Inseparable = "inseparable": "A part cannot be taken back by itself.",
    NotTouched = "not-touched": "The operation did not touch the path.",
    NothingToDecide = "nothing-to-decide": "The operation waits for no decision.",
    AtWork = "at-work": "The operation is still being carried out.",
    UnknownTask = "unknown-task": "There is no such task.",
    TaskEnded = "task-ended": "The task has ended.",
    TaskOpen = "task-open": "The task is open already.",
    TaskWaits = "task-waits": "An operation of the task waits for a decision.",
    WhichTask = "which-task": "It is not clear which task is meant.",
    UnknownCheckpoint = "unknown-checkpoint": "There is no such checkpoint.",
    CheckpointTaken = "checkpoint-taken": "A checkpoint of another agent or task has that name.",
    NoReply = "no-reply": "The reply could not be written. What it was about to tell happened all the same.",
    UnknownProcess = "unknown-process": "There is no such process.",
    NotFromInside = "not-from-inside": "It cannot be asked from inside of a command.",
    NotStarted = "not-started": "The program could not be executed.",
    NoCapture = "no-capture": "A command cannot be watched here.",
    Io = "io": "The system refused a call.",
    AlreadyUndone = "already-undone": "It was undone before.",
    NeverHappened = "never-happened": "It never happened.",
    Unfinished = "unfinished": "It is not finished.",
    Expired = "expired": "Its images are past their retention.",
    Irreversible = "irreversible": "Nothing takes it back.",
    NoLayers = "no-layers": "Layers do not work here.",
    WhichTrial = "which-trial": "It is not clear which trial is meant.",
    TrialLost = "trial-lost": "The trial cannot be used any more.",
    TrialUnfinished = "trial-unfinished": "The trial has not ended.",
    TrialUnreadable = "trial-unreadable": "The trial cannot be read.",
    WhichSandbox = "which-sandbox": "It is not clear which sandbox is meant.",
    SandboxExists = "sandbox-exists": "A sandbox of that name is there already.",
    SandboxBusy = "sandbox-busy": "Somebody else uses the sandbox.",
    SandboxLost = "sandbox-lost": "The sandbox cannot be used any more.",
    SandboxUnreadable = "sandbox-unreadable": "The sandbox cannot be read.",
    SandboxNotApplied = "sandbox-not-applied": "The sandbox holds changes that were not applied.",
    UnknownRollout = "unknown-rollout": "There is no such rollout.",
    WhichRollout = "which-rollout": "It is not clear which rollout is meant.",
    RolloutEnded = "rollout-ended": "The rollout has ended.",
    RolloutAtWork = "rollout-at-work": "Another process carries the rollout out.",
    RolloutBroken = "rollout-broken": "The store failed while a rollout was carried out.",
    StateDirectory = "state-directory": "The state directory cannot be used.",
    NewerFormat = "newer-format": "A newer program made the store.",
    Damaged = "damaged": "The store, or something it holds, is damaged.",
    InUse = "in-use": "Another process holds the store.",
    AnotherHost = "another-host": "Another machine uses the store.",
    StateDirectoryGone = "state-directory-gone": "The state directory is gone.",
    DiskFull = "disk-full": "The disk of the store is full.",
    ReadOnly = "read-only": "The file system is mounted read-only.",
    Poisoned = "poisoned": "An earlier failure of the disk stopped all writes.",
    StoreFull = "store-full": "The store may hold no more.",
    DuplicateId = "duplicate-id": "The id is taken.",
    ContentGone = "content-gone": "A kept content is gone.",
    Database = "database": "The database failed.",
    NotFound = "not-found": "There is no such file.",
    Lost = "lost": "What the path was is not kept.",
    OutOfReach = "out-of-reach": "What was kept is out of reach for now.",
    IsADirectory = "is-a-directory": "It is a directory.",
    NotADirectory = "not-a-directory": "It is not a directory.",
    NotAFile = "not-a-file": "It is not a regular file.",
    AlreadyExists = "already-exists": "It is there already.",
    NotEmpty = "not-empty": "The directory is not empty.",
    IntoItself = "into-itself": "A directory cannot go into itself.",
    Permission = "permission": "The system does not permit it.",
    Locked = "locked": "A flag of the file forbids it.",
    NoSpace = "no-space": "The disk is full.",
    CannotBeKept = "cannot-be-kept": "What is there cannot be kept, so it is not changed.",
    ThroughSymlink = "through-symlink": "A symbolic link is in the way.",
    Escapes = "escapes": "The path leaves its directory.",
    UnusablePath = "unusable-path": "The path cannot be used.",
    OwnState = "own-state": "It is Backout's own.",
    CurrentDirectory = "current-directory": "It is the current directory, or above it.",
    Edit = "edit": "The edit does not fit the file.",
    Patch = "patch": "The patch does not fit.",
    Entangled = "entangled": "Two changes of one operation meddle with each other.",
    BaseChanged = "base-changed": "What a trial was made over changed.",
    ChangedMeanwhile = "changed-meanwhile": "Somebody changed it meanwhile.",
    NewerRecipe = "newer-recipe": "A newer program wrote the recipe.",
    NotSynced = "not-synced": "A sync failed.",
    NoDriver = "no-driver": "The program does not have the driver that a request or a recipe names.",
    ConfigFormat = "config-format": "The name of a file does not tell how it is written.",
    ConfigSyntax = "config-syntax": "A config file is not what its format allows.",
    ConfigKey = "config-key": "A key of a config file cannot be edited as asked.",
    ConfigValue = "config-value": "A value does not fit a key of a config file, or its type is not clear.",
    DriverFailed = "driver-failed": "A driver could not do it, in no way that has a word of its own.",
}

impl Serialize for ErrorCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Gives the word for what a driver says of itself, whichever it is.
fn fault(fault: &dyn Fault) -> ErrorCode {
    match (fault.is_stop(), fault.out_of_reach()) {
        (true, _) => ErrorCode::Interrupted,
        (false, Some(_)) => ErrorCode::OutOfReach,
        (false, None) => ErrorCode::DriverFailed,
    }
}

/// Gives the word for an error.
pub(super) fn of(error: &EngineError) -> ErrorCode {
    match error {
        EngineError::Storage(error) | EngineError::NotArmed(error) => storage(error),
        EngineError::Driver(error) if error.as_a::<SqliteFault>().is_some() => {
            let known = error.as_a().map(super::sqlite::code);
            known.unwrap_or(ErrorCode::DriverFailed)
        }
        EngineError::Driver(error) => match (error.as_a(), error.as_a(), error.as_a()) {
            (Some(error), _, _) => file(error),
            (_, Some(error), _) => config(error),
            (_, _, Some(BadRecipe::Version { .. })) => ErrorCode::NewerRecipe,
            (_, _, Some(BadRecipe::Unreadable(_))) => ErrorCode::Damaged,
            (None, None, None) => fault(error.fault()),
        },
        EngineError::NoDriver { .. } => ErrorCode::NoDriver,
        EngineError::DriverTaken { .. } => ErrorCode::Refused,
        EngineError::TakenBack { cause, .. } => of(cause),
        EngineError::NotRecorded { .. } | EngineError::NotSettled { .. } => ErrorCode::NotRecorded,
        EngineError::Stays { .. } => ErrorCode::Stays,
        EngineError::HalfDone { .. } => ErrorCode::HalfDone,
        EngineError::Refused { .. } => ErrorCode::Gate,
        EngineError::Gate(error) => gate(error),
        EngineError::Ladder(LadderError::NotFailed { .. }) => ErrorCode::NotFailed,
        EngineError::Ladder(LadderError::Own { .. }) => ErrorCode::OwnFailure,
        EngineError::NotVerified { .. } => ErrorCode::NotVerified,
        EngineError::Busy { .. } | EngineError::BeingChecked { .. } => ErrorCode::Busy,
        EngineError::Ref(error) => match error {
            RefError::Malformed { .. } => ErrorCode::MalformedName,
            RefError::Unknown { .. } => ErrorCode::UnknownOperation,
            RefError::Ambiguous { .. } => ErrorCode::AmbiguousName,
            RefError::Storage(error) => storage(error),
        },
        EngineError::Plan(error) => plan(error),
        EngineError::NeedsWord(_) | EngineError::BuiltOn { .. } => ErrorCode::NeedsWord,
        EngineError::Conflicts { .. } => ErrorCode::Conflict,
        EngineError::Partial(_) => ErrorCode::Partial,
        EngineError::Stopped(_) => ErrorCode::Interrupted,
        EngineError::NothingBelow { .. }
        | EngineError::NothingOnPath { .. }
        | EngineError::NothingToRedo { .. }
        | EngineError::UndoneSince { .. }
        | EngineError::NoUndo { .. } => ErrorCode::Nothing,
        EngineError::NewestExpired { .. } => ErrorCode::Expired,
        EngineError::PutBack { .. } => ErrorCode::PutBack,
        EngineError::Inseparable { .. } => ErrorCode::Inseparable,
        EngineError::NotTouched { .. } => ErrorCode::NotTouched,
        EngineError::Unrestorable { .. } => ErrorCode::Lost,
        EngineError::NothingToDecide { .. } => ErrorCode::NothingToDecide,
        EngineError::AtWork { .. } => ErrorCode::AtWork,
        EngineError::NoTask { .. } => ErrorCode::UnknownTask,
        EngineError::TaskEnded { .. } => ErrorCode::TaskEnded,
        EngineError::TaskOpen { .. } => ErrorCode::TaskOpen,
        EngineError::TaskWaits { .. } => ErrorCode::TaskWaits,
        EngineError::WhichTask { .. } => ErrorCode::WhichTask,
        EngineError::NoCheckpoint { .. } => ErrorCode::UnknownCheckpoint,
        EngineError::CheckpointTaken { .. } => ErrorCode::CheckpointTaken,
        EngineError::NoProcess { .. } => ErrorCode::UnknownProcess,
        EngineError::NotOwn { .. } => ErrorCode::NotFromInside,
        EngineError::NotStarted { .. } => ErrorCode::NotStarted,
        EngineError::NoCapture { .. } => ErrorCode::NoCapture,
        EngineError::Trial(error) => trial(error),
        EngineError::Sandbox(error) => sandbox(error),
        EngineError::Rollout(error) => rollout(error),
        EngineError::Io { .. } => ErrorCode::Io,
    }
}

const fn plan(error: &PlanError) -> ErrorCode {
    match error {
        PlanError::Unknown { .. } => ErrorCode::UnknownOperation,
        PlanError::AlreadyUndone { .. } => ErrorCode::AlreadyUndone,
        PlanError::NeverHappened { .. } => ErrorCode::NeverHappened,
        PlanError::Unfinished { .. } => ErrorCode::Unfinished,
        PlanError::Expired { .. } => ErrorCode::Expired,
        PlanError::Irreversible { .. } => ErrorCode::Irreversible,
        PlanError::ChangedNothing { .. } | PlanError::NothingChosen { .. } | PlanError::Nothing => {
            ErrorCode::Nothing
        }
    }
}

fn gate(error: &GateError) -> ErrorCode {
    match error {
        GateError::Denied { .. }
        | GateError::DeniedNow { .. }
        | GateError::RunDenied { .. }
        | GateError::RefusedBefore { .. } => ErrorCode::Gate,
        GateError::Failed { .. } => ErrorCode::NotVerified,
        GateError::Waits { .. } => ErrorCode::Waits,
        GateError::NotProposed { .. } => ErrorCode::NothingToDecide,
        GateError::NothingDone { .. } => ErrorCode::NothingDone,
        GateError::TaskWaits { .. } => ErrorCode::TaskWaits,
        GateError::WaitsAgain { cause, .. } => of(cause),
        GateError::Expired { .. } => ErrorCode::ProposalExpired,
        GateError::Stale { .. } => ErrorCode::ProposalStale,
        GateError::BeingDecided { .. } => ErrorCode::BeingDecided,
        GateError::Own { .. } => ErrorCode::OwnProposal,
        GateError::KeyTaken { .. } => ErrorCode::KeyTaken,
        GateError::Answered(_) => ErrorCode::AnsweredBefore,
        GateError::UndoneSince { .. } => ErrorCode::UndoneSince,
        GateError::Unclear { .. } => ErrorCode::Unclear,
    }
}

const fn rollout(error: &RolloutError) -> ErrorCode {
    match error {
        RolloutError::NoTarget | RolloutError::Twice { .. } => ErrorCode::Usage,
        RolloutError::BadCheck { .. } => ErrorCode::Refused,
        RolloutError::Unknown { .. } => ErrorCode::UnknownRollout,
        RolloutError::Which { .. } => ErrorCode::WhichRollout,
        RolloutError::Ended { .. } => ErrorCode::RolloutEnded,
        RolloutError::AtWork { .. } => ErrorCode::RolloutAtWork,
        RolloutError::Broken { .. } => ErrorCode::RolloutBroken,
    }
}

const fn sandbox(error: &SandboxError) -> ErrorCode {
    match error {
        SandboxError::Which { .. } => ErrorCode::WhichSandbox,
        SandboxError::Exists { .. } => ErrorCode::SandboxExists,
        SandboxError::BadName { .. } => ErrorCode::Usage,
        SandboxError::Busy { .. } => ErrorCode::SandboxBusy,
        SandboxError::NoCheckpoint { .. } => ErrorCode::UnknownCheckpoint,
        SandboxError::Lost { .. } => ErrorCode::SandboxLost,
        SandboxError::Unreadable { .. } => ErrorCode::SandboxUnreadable,
        SandboxError::NotApplied { .. } => ErrorCode::SandboxNotApplied,
        SandboxError::Nothing { .. } => ErrorCode::Nothing,
    }
}

const fn trial(error: &TrialError) -> ErrorCode {
    match error {
        TrialError::Layers(_) => ErrorCode::NoLayers,
        TrialError::NotStarted { .. } => ErrorCode::NotStarted,
        TrialError::Which { .. } => ErrorCode::WhichTrial,
        TrialError::Lost { .. } => ErrorCode::TrialLost,
        TrialError::Unfinished { .. } => ErrorCode::TrialUnfinished,
        TrialError::Unreadable { .. } => ErrorCode::TrialUnreadable,
        TrialError::NothingChosen { .. } => ErrorCode::Nothing,
    }
}

const fn storage(error: &StorageError) -> ErrorCode {
    match error {
        StorageError::StateDir { .. } | StorageError::NotOurs { .. } => ErrorCode::StateDirectory,
        StorageError::NewerFormat { .. } => ErrorCode::NewerFormat,
        StorageError::Damaged { .. }
        | StorageError::NotWhole { .. }
        | StorageError::LostRecords { .. }
        | StorageError::Record(_)
        | StorageError::Inconsistent { .. } => ErrorCode::Damaged,
        StorageError::InUse { .. } => ErrorCode::InUse,
        StorageError::AnotherHost { .. } => ErrorCode::AnotherHost,
        StorageError::Gone { .. } => ErrorCode::StateDirectoryGone,
        StorageError::DiskFull { .. } => ErrorCode::DiskFull,
        StorageError::ReadOnly { .. } | StorageError::InTrial { .. } => ErrorCode::ReadOnly,
        StorageError::Poisoned => ErrorCode::Poisoned,
        StorageError::OverCap { .. } => ErrorCode::StoreFull,
        StorageError::DuplicateId { .. } => ErrorCode::DuplicateId,
        StorageError::ContentGone { .. } => ErrorCode::ContentGone,
        StorageError::Database(_) => ErrorCode::Database,
    }
}

fn config(error: &ConfigFault) -> ErrorCode {
    match error {
        ConfigFault::NoFormat { .. } => ErrorCode::ConfigFormat,
        ConfigFault::Config { cause, .. } => match cause {
            ConfigError::Syntax { .. }
            | ConfigError::NotUtf8 { .. }
            | ConfigError::OverLimit { .. } => ErrorCode::ConfigSyntax,
            ConfigError::Unclear { .. }
            | ConfigError::TypeChange { .. }
            | ConfigError::BadValue { .. }
            | ConfigError::NotATable { .. }
            | ConfigError::Unwritable { .. } => ErrorCode::ConfigValue,
            ConfigError::KeySyntax { .. }
            | ConfigError::NoSuchKeys { .. }
            | ConfigError::Duplicate { .. }
            | ConfigError::Ambiguous { .. }
            | ConfigError::WrongKind { .. }
            | ConfigError::NoIndex { .. }
            | ConfigError::Missing { .. }
            | ConfigError::Shared { .. }
            | ConfigError::Unsupported { .. }
            | ConfigError::Disturbs { .. }
            | ConfigError::Conflict { .. }
            | ConfigError::Remarked { .. }
            | ConfigError::Moved { .. } => ErrorCode::ConfigKey,
        },
        ConfigFault::Recipe { .. } => ErrorCode::NewerRecipe,
        ConfigFault::Unreadable(_) | ConfigFault::Contents(_) => ErrorCode::Damaged,
        ConfigFault::File(error) => file(error),
    }
}

const fn file(error: &FileError) -> ErrorCode {
    match error {
        FileError::Stopped => ErrorCode::Interrupted,
        FileError::NotFound { .. } => ErrorCode::NotFound,
        FileError::Lost { .. } => ErrorCode::Lost,
        FileError::OutOfReach { .. } => ErrorCode::OutOfReach,
        FileError::IsADirectory { .. } => ErrorCode::IsADirectory,
        FileError::NotADirectory { .. } => ErrorCode::NotADirectory,
        FileError::NotAFile { .. } => ErrorCode::NotAFile,
        FileError::AlreadyExists { .. } => ErrorCode::AlreadyExists,
        FileError::NotEmpty { .. } => ErrorCode::NotEmpty,
        FileError::IntoItself { .. } => ErrorCode::IntoItself,
        FileError::Permission { .. } => ErrorCode::Permission,
        FileError::Locked { .. } => ErrorCode::Locked,
        FileError::ReadOnly { .. } => ErrorCode::ReadOnly,
        FileError::NoSpace { .. } => ErrorCode::NoSpace,
        FileError::NoWayToKeep { .. }
        | FileError::NotPrepared { .. }
        | FileError::HoldsMount { .. } => ErrorCode::CannotBeKept,
        FileError::ThroughSymlink { .. } => ErrorCode::ThroughSymlink,
        FileError::Escapes { .. } => ErrorCode::Escapes,
        FileError::Unusable { .. } => ErrorCode::UnusablePath,
        FileError::Ours { .. } => ErrorCode::OwnState,
        FileError::StandingIn { .. } => ErrorCode::CurrentDirectory,
        FileError::Edit { .. } => ErrorCode::Edit,
        FileError::Patch(_) => ErrorCode::Patch,
        FileError::Entangled { .. } => ErrorCode::Entangled,
        FileError::BaseChanged { .. } => ErrorCode::BaseChanged,
        FileError::Changed { .. } => ErrorCode::ChangedMeanwhile,
        FileError::HalfDone { .. } => ErrorCode::HalfDone,
        FileError::Recipe { .. } => ErrorCode::NewerRecipe,
        FileError::Damaged { .. }
        | FileError::Contents(_)
        | FileError::Unreadable(_)
        | FileError::Request(_)
        | FileError::WrongContent { .. } => ErrorCode::Damaged,
        FileError::NotSynced { .. } => ErrorCode::NotSynced,
        FileError::Io { .. } => ErrorCode::Io,
    }
}
