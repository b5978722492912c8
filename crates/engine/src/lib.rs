//! Stage, gate, arm, apply, verify, commit; undo, redo, roll back; recover.
//!
//! - [`Engine::execute`] takes one of a closed set of [`Command`]s and gives a [`Reply`] or an [`EngineError`], which
//!   becomes a [`Report`] for people. The CLI and every later surface build the same values.
//! - No write without a back-out plan: every change of the world goes through [`Engine::stage`].
//! - The engine knows no terminal and no socket.

mod accept;
mod calls;
mod causes;
mod command;
mod diff;
mod doctor;
mod drift;
mod engine;
mod error;
mod gate;
mod gate_error;
mod graph;
mod heart;
mod history;
mod ladder;
mod lease;
mod lifecycle;
mod maintenance;
mod once;
mod proposal;
mod reads;
mod recover;
mod repair;
mod reply;
mod report;
mod restore;
mod resume;
mod rollout;
mod run;
mod sandbox;
mod selection;
mod sources;
mod stage;
mod strategy;
mod taken_back;
mod task;
mod trial;
mod undo;
mod untold;
mod window;
mod workspace;
mod write_request;

pub use backout_model::Glob;
pub use backout_model::ports::{Filter, Ids, OperationRef};
pub use backout_mplp::Expect;
pub use calls::{
    CallBegun, CallEnded, Caller, NewPrompt, PromptFilter, PromptView, ToolCall, notice_free,
};
pub use command::{
    CheckpointCommand, Command, Context, Decide, ExportTarget, Forebear, RecoverWhat, RedoWhat,
    TaskCommand, UndoOptions, UndoWhat,
};
pub use drift::{
    DriftCommand, DriftDecided, DriftError, DriftHistory, DriftReport, DriftView, Round,
    Unanswered, Watched, Watcher,
};
pub use engine::{Engine, MakeDrivers, Settings};
pub use error::{EngineError, NotOver};
pub use gate_error::GateError;
pub use graph::{
    EvidenceView, GraphChecked, GraphCommand, GraphError, GraphFlaw, GraphPlace, GraphUpdated,
    GraphView,
};
pub use ladder::{FailedCommand, FailedUndo, LadderError};
pub use lifecycle::StagedOperation;
pub use proposal::{Inside, ProposalCommand, ProposalView};
pub use repair::RepairReport;
pub use reply::{
    ActLeft, Along, Diff, DiffChange, DiffFile, DiffSide, DiffValue, DoAgain, DoctorReport,
    Finding, Finished, Forcing, GcOutcome, LeftPending, PlanDiff, PlanView, PlannedStep,
    PlannedTarget, RecoverReport, Recovered, RecoveredAs, RefusedTarget, Reply, Shown,
    StatusReport, TakeBack, TargetState, TaskLeft, UndoReport, UndoneStep,
};
pub use report::{
    Call, ErrorCode, Next, Report, Severity, Typed, advice, force_options, literal, quoted,
    redo_undone, word_options,
};
pub use resume::{
    Differs, DiffersWhy, InTheWay, MarkRequest, Marked, NotDue, ResumeError, ResumeWhat, Resumed,
    Reverted, RevertedWhy, SkippedCheckpoint, Stays, StaysWhy, redacted,
};
pub use rollout::{
    AlsoGone, ProposalNow, RolloutCommand, RolloutError, RolloutStart, RolloutView, StartStep,
    StepNow, StepView, WaveStanding, WaveView,
};
pub use run::{
    COPY_BYTES_MAX, Capture, RUN_VARIABLE, Ran, RunReport, RunRequest, STATE_VARIABLE, Watch,
};
pub use sandbox::{
    OnFailure, SandboxAct, SandboxBatch, SandboxCheckpoint, SandboxCommand, SandboxEntry,
    SandboxError, SandboxExport, SandboxExported, SandboxKeep, SandboxPruned, SandboxRan,
    SandboxSettled, SandboxStanding, SandboxStart, SandboxTask, SandboxVerdict, SandboxView,
};
pub use selection::Selection;
pub use sources::{RandomIds, SystemClock};
pub use stage::{GraphLeft, StageCommand, StageEnd, StageError, StageStanding, StageView};
pub use trial::{
    TrialChangeView, TrialEnd, TrialError, TrialStanding, TrialTask, TrialView, TrialWhat,
    TryCommand,
};
pub use undo::real_target;
pub use workspace::{
    LetGo, NotKept, WorkspaceBy, WorkspaceChange, WorkspaceError, WorkspaceKept, WorkspacePlan,
    WorkspaceReturn,
};
pub use write_request::{RequestText, WriteRequest};
