//! Which of the fixed words says what happened.

use backout_model::PlanError;
use backout_model::ports::{DriverError, Fault};
use backout_mplp::Refusal;
use backout_storage::{RefError, StorageError};

use super::ErrorCode;

use crate::{
    DriftError, EngineError, GateError, GraphError, LadderError, ResumeError, RolloutError,
    SandboxError, StageError, TrialError, WorkspaceError,
};

/// Gives the word for what a driver could not do: its own, if it has one.
fn driver(error: &DriverError) -> ErrorCode {
    let own = error.fault().report().map(|report| report.code);
    own.unwrap_or_else(|| fault(error.fault()))
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
        EngineError::Driver(error) => driver(error),
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
        | EngineError::TakenBackBefore { .. }
        | EngineError::UndoneSince { .. }
        | EngineError::NoUndo { .. } => ErrorCode::Nothing,
        EngineError::Undecided { .. } => ErrorCode::Unclear,
        EngineError::NotSettledYet { .. } => ErrorCode::Unfinished,
        EngineError::NewestExpired { .. } => ErrorCode::Expired,
        EngineError::NewestLost { .. } => ErrorCode::Irreversible,
        EngineError::PutBack { .. } => ErrorCode::PutBack,
        EngineError::Inseparable { .. } => ErrorCode::Inseparable,
        EngineError::NotTouched { .. } => ErrorCode::NotTouched,
        EngineError::NoRestore { .. } => ErrorCode::CannotBeKept,
        EngineError::Unrestorable { .. } => ErrorCode::Lost,
        EngineError::NoHome { is_gone: true, .. } => ErrorCode::NotFound,
        EngineError::NoHome { is_gone: false, .. } => ErrorCode::ConfigSyntax,
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
        EngineError::Workspace(error) => workspace(error),
        EngineError::Rollout(error) => rollout(error),
        EngineError::Resume(error) => resume(error),
        EngineError::Stage(error) => stage(error),
        EngineError::Drift(error) => drift(error),
        EngineError::Graph(error) => graph(error),
        EngineError::Io { .. } => ErrorCode::Io,
    }
}

const fn plan(error: &PlanError) -> ErrorCode {
    match error {
        PlanError::Unknown { .. } => ErrorCode::UnknownOperation,
        PlanError::AlreadyUndone { .. }
        | PlanError::BroughtAgain { .. }
        | PlanError::UndoneForGood { .. } => ErrorCode::AlreadyUndone,
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

const fn drift(error: &DriftError) -> ErrorCode {
    match error {
        DriftError::Unknown { .. } | DriftError::NotIgnored { .. } => ErrorCode::NoDrift,
        DriftError::Changed { .. } => ErrorCode::DriftChanged,
        DriftError::NotYours => ErrorCode::NotYourDrift,
        DriftError::NoRestore { .. } | DriftError::NoFile { .. } => ErrorCode::Lost,
        DriftError::Partly { .. } => ErrorCode::Partial,
        DriftError::NoMerge { .. } => ErrorCode::Conflict,
        DriftError::Pattern { .. } | DriftError::NoTarget => ErrorCode::Usage,
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

fn graph(error: &GraphError) -> ErrorCode {
    match error {
        GraphError::Unreadable(_) => ErrorCode::Usage,
        GraphError::Refused { refusal, .. } => match &**refusal {
            Refusal::Conflict { .. } | Refusal::Unsaid { .. } => ErrorCode::GraphConflict,
            Refusal::Violated(_) => ErrorCode::InvariantViolated,
            Refusal::Unknown { .. } | Refusal::IsStep { .. } => ErrorCode::UnknownNode,
            Refusal::NoNode
            | Refusal::Invalid { .. }
            | Refusal::Duplicate { .. }
            | Refusal::KindChanged { .. }
            | Refusal::Terminal { .. }
            | Refusal::Cycle { .. }
            | Refusal::ForeignStep { .. }
            | Refusal::Dangling { .. }
            | Refusal::ForeignEdge { .. }
            | Refusal::TooLarge => ErrorCode::GraphRefused,
        },
        GraphError::NotAsThen { .. } => ErrorCode::NotVerified,
        GraphError::NoRecord { .. } | GraphError::Cut { .. } => ErrorCode::NoRecord,
        GraphError::Pack { .. } => ErrorCode::Io,
    }
}

const fn workspace(error: &WorkspaceError) -> ErrorCode {
    match error {
        WorkspaceError::LetGo { .. } => ErrorCode::FilesLetGo,
        WorkspaceError::Others { .. } => ErrorCode::NeedsWord,
        WorkspaceError::Unreadable { .. } => ErrorCode::Broken,
        WorkspaceError::Nothing { .. } => ErrorCode::Nothing,
        WorkspaceError::Held { .. } => ErrorCode::Inseparable,
    }
}

const fn resume(error: &ResumeError) -> ErrorCode {
    match error {
        ResumeError::TooLarge { .. } => ErrorCode::StateTooLarge,
        ResumeError::Rules(_) => ErrorCode::Gate,
        ResumeError::NoCheckpoint { .. } => ErrorCode::NothingToResume,
        ResumeError::Alive { .. } => ErrorCode::AgentAlive,
        ResumeError::Unsettled { .. } => ErrorCode::TaskWaits,
    }
}

const fn stage(error: &StageError) -> ErrorCode {
    match error {
        StageError::Nobodys { .. } => ErrorCode::Usage,
        StageError::Open { .. } | StageError::Inner { .. } => ErrorCode::StageOpen,
        StageError::NotOpen { .. } => ErrorCode::NoOpenStage,
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
        SandboxError::InTheWay { .. } => ErrorCode::AlreadyExists,
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
        TrialError::AllReal { .. } | TrialError::NothingChosen { .. } => ErrorCode::Nothing,
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
