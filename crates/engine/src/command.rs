//! The closed set of commands and their replies: one JSON shape for every surface.

use std::path::PathBuf;

use backout_drivers::file::FileRequest;
use backout_model::ports::OnConflict;
use backout_model::{
    AgentId, Checkpoint, CheckpointName, LeftAlone, Lsn, Operation, OperationId, Record, Status,
    Strategy, Target, TargetOutcome, TargetPath, Task, TaskId, Timestamp,
};
use backout_storage::{
    CompactReport, Filter, GcReport, OperationRef, StoreSummary, StoredBytes, VerifyReport,
};
use serde::Serialize;

use crate::{RepairReport, RunReport, TrialView, TryCommand};

/// Who asks, and in what connection.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// The agent that asks.
    pub agent: Option<AgentId>,
    /// The task it belongs to.
    pub task: Option<TaskId>,
    /// What the agent says it builds on.
    pub depends_on: Vec<OperationRef>,
}

/// Something the engine can be asked.
#[derive(Debug)]
pub enum Command {
    /// Change files.
    Write {
        /// What to change.
        request: FileRequest,
    },
    /// Run a command in layers, and what follows from it.
    Try(TryCommand),
    /// Take operations back, or show what that would do.
    Undo {
        /// Which.
        what: UndoWhat,
        /// How.
        options: UndoOptions,
        /// Only show the plan.
        is_dry_run: bool,
    },
    /// Take undos back.
    Redo {
        /// Which operation or undo; none means the newest undo.
        what: Option<OperationRef>,
        /// How.
        options: UndoOptions,
        /// Only show the plan.
        is_dry_run: bool,
    },
    /// Begin, commit or list tasks.
    Task(TaskCommand),
    /// Mark a point to return to, or list the marks.
    Checkpoint(CheckpointCommand),
    /// List operations.
    Log(Filter),
    /// Show one operation.
    Show(OperationRef),
    /// Show what one operation changed.
    Diff(OperationRef),
    /// Show where things stand.
    Status,
    /// Undo what dead processes left unfinished.
    Recover {
        /// Look only at operations after this place.
        from: Option<Lsn>,
    },
    /// Check the whole store.
    Verify,
    /// Let old images go and pack the rest.
    Gc {
        /// Only show what would go.
        is_dry_run: bool,
        /// Also turn version chains into deltas.
        compact: bool,
    },
    /// Check the machine and the store.
    Doctor {
        /// A directory of the file system to check.
        directory: PathBuf,
        /// Put right what can be put right.
        repair: bool,
    },
    /// Write the audit as JSON lines.
    Export {
        /// Where to.
        to: ExportTarget,
        /// Only records after this place.
        from: Lsn,
    },
}

/// Where an export goes.
pub enum ExportTarget {
    /// A stream that is open already.
    Stream(Box<dyn std::io::Write + Send>),
}

impl std::fmt::Debug for ExportTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ExportTarget")
    }
}

/// What to take back.
#[derive(Debug, Clone)]
pub enum UndoWhat {
    /// The newest operation still in effect.
    Newest,
    /// These operations.
    Operations(Vec<OperationRef>),
    /// A whole task.
    Task(TaskId),
    /// Everything since a checkpoint.
    ToCheckpoint(CheckpointName),
}

/// How to take it back.
#[derive(Debug, Clone, Copy, Default)]
pub struct UndoOptions {
    /// What to do with targets that changed since.
    pub on_conflict: OnConflict,
    /// Also take the chain that the named operations were built on.
    pub with_dependencies: bool,
    /// Committed operations that nobody named may go as well.
    pub committed: bool,
    /// Undo what can be undone even if other parts of the plan are in conflict.
    pub partial: bool,
}

/// What to do with tasks.
#[derive(Debug, Clone)]
pub enum TaskCommand {
    /// Begin one.
    Begin {
        /// Its name; none takes a new one.
        id: Option<TaskId>,
        /// The process whose death rolls it back.
        owner_pid: Option<u32>,
    },
    /// Keep its operations.
    Commit {
        /// Its name; none takes the only open one.
        id: Option<TaskId>,
    },
    /// List them.
    List,
}

/// What to do with checkpoints.
#[derive(Debug, Clone)]
pub enum CheckpointCommand {
    /// Mark this point.
    Mark {
        /// Its name; none takes a new one.
        name: Option<CheckpointName>,
        /// What the agent wants to find again.
        state: serde_json::Value,
    },
    /// List them.
    List,
}

/// What the engine answers.
#[derive(Debug, Serialize)]
#[serde(tag = "reply", rename_all = "kebab-case")]
pub enum Reply {
    /// The write happened, or nothing needed to.
    Finished(Finished),
    /// What a tried command changed.
    Trial(TrialView),
    /// Trials, newest first.
    Trials {
        /// The trials.
        trials: Vec<TrialView>,
    },
    /// A trial was let go.
    Discarded {
        /// Its name.
        id: OperationId,
    },
    /// What an undo would do.
    Plan(PlanView),
    /// What an undo did.
    Undone(UndoReport),
    /// A task.
    Task(Task),
    /// Tasks, newest first.
    Tasks {
        /// The tasks.
        tasks: Vec<Task>,
    },
    /// A task was committed.
    Committed {
        /// The task.
        task: TaskId,
        /// Its operations.
        operations: Vec<OperationId>,
    },
    /// A checkpoint.
    Checkpoint(Checkpoint),
    /// Checkpoints, newest first.
    Checkpoints {
        /// The checkpoints.
        checkpoints: Vec<Checkpoint>,
    },
    /// Operations, newest first.
    Log {
        /// The operations.
        operations: Vec<Operation>,
    },
    /// One operation with all that is known of it.
    Shown(Box<Shown>),
    /// What an operation changed.
    Diff {
        /// The operation.
        id: OperationId,
        /// File by file.
        files: Vec<DiffFile>,
    },
    /// Where things stand.
    Status(StatusReport),
    /// What recovery did.
    Recovered(RecoverReport),
    /// What a check of the store found.
    Verified(VerifyReport),
    /// What was let go.
    Collected(GcOutcome),
    /// What a check of the machine found.
    Doctor(DoctorReport),
    /// What a command did.
    Ran(RunReport),
    /// How many records were exported.
    Exported {
        /// Their number.
        records: u64,
    },
}

/// A finished write.
#[derive(Debug, Clone, Serialize)]
pub struct Finished {
    /// The operation; none if the target was already as asked, so that nothing was recorded.
    pub id: Option<OperationId>,
    /// One line for people.
    pub summary: String,
    /// Where it stands: applied in a task, committed otherwise.
    pub status: Option<Status>,
    /// How it would be taken back.
    pub strategy: Option<Strategy>,
    /// Things worth knowing.
    pub notes: Vec<String>,
}

/// How a target stands against what an undo expects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum TargetState {
    /// As the operation left it: it comes back.
    ComesBack,
    /// Already as before.
    AlreadyBefore,
    /// Changed since.
    Conflict {
        /// What differs.
        why: String,
    },
    /// A newer step of the same plan writes it first.
    AfterNewerStep,
    /// It changed since, and the change can be taken out by a merge.
    Merges,
    /// It changed since and is restored anyway; what is there now is kept.
    Overwritten {
        /// What differs.
        why: String,
    },
}

/// One target of a planned step.
#[derive(Debug, Clone, Serialize)]
pub struct PlannedTarget {
    /// The target.
    pub target: Target,
    /// How it stands.
    #[serde(flatten)]
    pub state: TargetState,
}

/// One step of a plan, as people see it.
#[derive(Debug, Clone, Serialize)]
pub struct PlannedStep {
    /// What the plan says.
    #[serde(flatten)]
    pub step: backout_model::UndoStep,
    /// The operation's line for people.
    pub summary: String,
    /// How each target stands.
    pub targets: Vec<PlannedTarget>,
}

/// What an undo would do.
#[derive(Debug, Clone, Serialize)]
pub struct PlanView {
    /// The operations that go, newest first.
    pub steps: Vec<PlannedStep>,
    /// Later operations that stay.
    pub left_alone: Vec<LeftAlone>,
    /// Committed operations that would have to go and that nobody named.
    pub needs_committed: Vec<OperationId>,
    /// Whether the plan can be executed as it is.
    pub is_executable: bool,
}

/// One operation that was to be taken back.
#[derive(Debug, Clone, Serialize)]
pub struct UndoneStep {
    /// The operation.
    pub id: OperationId,
    /// Its line for people.
    pub summary: String,
    /// The operation that took it back; none if it was not.
    pub by: Option<OperationId>,
    /// What became of each target.
    pub outcomes: Vec<TargetOutcome>,
    /// Things worth knowing, such as what could not come back.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl UndoneStep {
    /// Tells whether every target came back.
    pub fn is_complete(&self) -> bool {
        self.by.is_some()
            && self
                .outcomes
                .iter()
                .all(|outcome| outcome.kind.is_settled())
    }
}

/// What an undo did.
#[derive(Debug, Clone, Serialize)]
pub struct UndoReport {
    /// Newest first, as executed.
    pub steps: Vec<UndoneStep>,
    /// Later operations that stayed.
    pub left_alone: Vec<LeftAlone>,
}

impl UndoReport {
    /// Tells whether everything came back.
    pub fn is_complete(&self) -> bool {
        self.steps.iter().all(UndoneStep::is_complete)
    }
}

/// A target whose conflict stopped an undo.
#[derive(Debug, Clone, Serialize)]
pub struct RefusedTarget {
    /// The operation.
    pub id: OperationId,
    /// The target.
    pub target: Target,
    /// What differs.
    pub why: String,
}

/// One operation with all that is known of it.
#[derive(Debug, Serialize)]
pub struct Shown {
    /// The operation.
    pub operation: Operation,
    /// What was built on it.
    pub dependents: Vec<OperationId>,
    /// Every record that speaks of it.
    pub records: Vec<Record>,
    /// How each target stands now.
    pub targets: Vec<PlannedTarget>,
}

/// What an operation changed in one file.
#[derive(Debug, Clone, Serialize)]
pub struct DiffFile {
    /// The file.
    pub path: TargetPath,
    /// A unified diff, or a line that says why there is none.
    pub text: String,
}

/// Where things stand.
#[derive(Debug, Serialize)]
pub struct StatusReport {
    /// The state directory.
    pub state_dir: PathBuf,
    /// The journal in numbers.
    pub summary: StoreSummary,
    /// What the store holds.
    pub stored: StoredBytes,
    /// What it may hold.
    pub cap_bytes: u64,
    /// Tasks that wait for a verdict.
    pub open_tasks: Vec<Task>,
    /// Operations being written right now, or left behind by the dead.
    pub unfinished: Vec<Operation>,
    /// Operations that somebody has to look at.
    pub stuck: Vec<Operation>,
    /// The newest operations.
    pub newest: Vec<Operation>,
    /// The present moment, to tell ages by.
    pub now: Timestamp,
}

/// What recovery did with one operation.
#[derive(Debug, Clone, Serialize)]
pub struct Recovered {
    /// The operation.
    pub id: OperationId,
    /// Its line for people.
    pub summary: String,
    /// What it is now.
    pub status: Status,
    /// What became of each target.
    pub outcomes: Vec<TargetOutcome>,
}

/// What recovery did.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RecoverReport {
    /// Newest first.
    pub operations: Vec<Recovered>,
    /// Tasks whose owner died and that were rolled back.
    pub tasks: Vec<TaskId>,
    /// Operations whose owner is alive and that were left alone.
    pub running: Vec<OperationId>,
}

/// What garbage collection did.
#[derive(Debug, Serialize)]
pub struct GcOutcome {
    /// What was let go.
    pub collected: GcReport,
    /// What was packed.
    pub compacted: Option<CompactReport>,
    /// Where the audit records that left the journal are.
    pub audit_file: Option<PathBuf>,
}

/// One thing a check of the machine found.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// What was checked.
    pub check: String,
    /// Whether it is as it should be.
    pub is_good: bool,
    /// What was found.
    pub detail: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// What a check of the machine and the store found.
#[derive(Debug, Clone, Serialize)]
pub struct DoctorReport {
    /// One line per check.
    pub findings: Vec<Finding>,
    /// What was repaired, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repair: Option<RepairReport>,
}
