//! What an operation, a recipe, a record and a plan are.
//!
//! Everything here is plain data and pure functions: no I/O, no clock, no threads. The traits that the
//! domain needs from the outside (`Store`, `Driver`, `Clock`, `Ids`) are declared in [`ports`] and implemented in
//! other crates.
//!
//! - One JSON shape serves the journal, `--json` and every later surface, so these types derive serde.
//! - A change whose undo nobody recorded does not compile: see [`Armed`].

pub mod any_path;
pub mod any_words;
mod arm;
mod bad_recipe;
mod command;
pub mod compensation;
mod digest;
pub mod drift;
mod driver;
mod event;
mod gate;
mod glob;
mod graph;
mod id;
mod json_text;
mod key;
pub mod ladder;
mod left;
mod note;
mod operation;
mod outcome;
mod path;
mod plan;
mod plan_error;
pub mod ports;
mod prompt;
mod proposal;
mod recipe;
mod record;
mod recorded;
mod repair;
pub mod report;
mod resume;
mod retention;
pub mod reversal;
mod rollout;
mod status;
mod strategy;
mod target;
pub mod text;
mod touched;
mod trigger;
mod trigger_actions;
mod values;
mod watch;
pub mod wide;

pub use arm::{Armed, arm};
pub use command::{
    CaptureLevel, CaptureMode, Captured, CommandEnd, CommandStart, OnFailure, ReadFrom,
};
pub use digest::{Digest, DigestError};
pub use event::Begun;
pub use glob::{Glob, GlobError};
pub use graph::{Dependency, DependencyReason, History};
pub use id::{AgentId, CallKey, CheckpointName, IdError, OperationId, PromptId, TaskId};
pub use json_text::JsonText;
pub use key::{Below, Key, KeyError};
pub use ladder::{Climbed, Escalated, Failure, Ladder, Rung, Rungs, Tried};
pub use left::LeftAlone;
pub use note::{Note, NoteFilter, Topic};
pub use operation::{
    Checkpoint, CheckpointFiles, CheckpointRoot, Operation, Owner, Standing, Task, TaskStatus,
    Timestamp, Verb,
};
pub use outcome::{OutcomeKind, TargetOutcome};
pub use path::{PathError, TargetPath};
pub use plan::{Chosen, Goal, Permission, Scope, UndoPlan, UndoStep, plan_undo};
pub use plan_error::PlanError;
pub use prompt::Prompt;
pub use proposal::{Asked, Decided, IRREVERSIBLE, KeptRequest, Proposal};
pub use recipe::{Completion, DriverName, Effect, Flaw, Recipe, Slot};
pub use record::{ActPlan, Event, GENESIS, Intent, Lsn, Record, RecordError, Refusal};
pub use repair::{Assumed, Gap, GapLink, Repair};
pub use resume::{
    BadCheckpoint, MarkReason, NoStep, RESUME_FORMAT, ResumePoint, STATE_BYTES_MAX, StepAt,
    UNDO_STACK_MAX, settled,
};
pub use retention::{Candidate, ExpiryReason, KEY_MS_MIN, Retention, select_expired};
pub use rollout::{
    GoOn, OnWaveFailure, RolloutEnd, RolloutMark, RolloutPast, RolloutPlan, RolloutState,
    RolloutStep, WaveCheck,
};
pub use status::{Status, StatusError};
pub use strategy::{
    Cost, Decision, NotPrepared, OperationKind, RIDING_BYTES_MAX, Strategy, Traits, choose,
};
pub use target::{Overlap, Reach, Target};
pub use trigger::{Severity, Source, Trigger, TriggerKind, UnknownWord};
pub use trigger_actions::TriggerAction;
