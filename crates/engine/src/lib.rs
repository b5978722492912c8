//! Stage, gate, arm, apply, verify, commit; undo, redo, roll back; recover.
//!
//! - [`Engine::execute`] takes one of a closed set of [`Command`]s and gives a [`Reply`] or an [`EngineError`], which
//!   becomes a [`Report`] for people. The CLI and every later surface build the same values.
//! - No write without a back-out plan: every change of the world goes through [`Engine::stage`].
//! - The engine knows no terminal and no socket.

mod command;
mod doctor;
mod engine;
mod error;
mod history;
mod lifecycle;
mod recover;
mod repair;
mod report;
mod run;
mod sources;
mod task;
mod trial;
mod undo;
mod upkeep;

pub use backout_storage::{Filter, OperationRef};
pub use command::{
    CheckpointCommand, Command, Context, DiffFile, DoctorReport, ExportTarget, Finding, Finished,
    GcOutcome, PlanView, PlannedStep, PlannedTarget, RecoverReport, Recovered, RefusedTarget,
    Reply, Shown, StatusReport, TargetState, TaskCommand, UndoOptions, UndoReport, UndoWhat,
    UndoneStep,
};
pub use engine::{Engine, Settings};
pub use error::EngineError;
pub use lifecycle::StagedOperation;
pub use repair::RepairReport;
pub use report::{Report, Severity};
pub use run::{COPY_BYTES_MAX, Capture, RunReport, RunRequest, Watch};
pub use sources::{Ids, RandomIds, SystemClock};
pub use trial::{
    Glob, Selection, TrialChange, TrialEnd, TrialError, TrialStanding, TrialState, TrialTask,
    TrialView, TrialWhat, TryCommand,
};
