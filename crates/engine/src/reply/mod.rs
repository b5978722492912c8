//! The closed set of replies: one JSON shape for every surface.

mod diff;
mod recover;
mod undo;

use std::collections::BTreeMap;
use std::path::PathBuf;

use backout_model::compensation::CompensationAction;
use backout_model::{
    Checkpoint, CheckpointName, Decision, Operation, OperationId, Proposal, Record, Status,
    Strategy, Task, TaskId, Timestamp, any_path,
};
use backout_mplp::Document;
use backout_storage::{CompactReport, GcReport, StoreSummary, StoredBytes, VerifyReport};
use serde::{Deserialize, Serialize};

use crate::{
    DriftDecided, DriftReport, EvidenceView, FailedUndo, GraphChecked, GraphUpdated, GraphView,
    LetGo, NotDue, PromptView, ProposalView, Ran, RepairReport, Resumed, RolloutView, SandboxBatch,
    SandboxExported, SandboxPruned, SandboxRan, SandboxView, StageView, TrialView, WorkspaceKept,
    WorkspacePlan,
};

pub use diff::{Diff, DiffChange, DiffFile, DiffSide, DiffValue, PlanDiff};
pub use recover::{ActLeft, Along, DoAgain, RecoverReport, Recovered, RecoveredAs, TaskLeft};
pub use undo::{
    Forcing, PlanView, PlannedStep, PlannedTarget, RefusedTarget, TakeBack, TargetState,
    UndoReport, UndoneStep,
};

/// What the engine answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "kebab-case")]
pub enum Reply {
    /// The write happened, or nothing needed to.
    Finished(Finished),
    /// What a tried command changed.
    Trial(TrialView),
    /// Trials, newest first.
    Trials {
        /// Those that are asked for.
        trials: Vec<TrialView>,
    },
    /// A trial was let go.
    Discarded {
        /// Its name.
        id: OperationId,
        /// Whether it was only the rest of it: a part had been applied before.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_rest: bool,
    },
    /// One, as it stands now.
    Sandbox(Box<SandboxView>),
    /// Sandboxes, by name.
    Sandboxes {
        /// Those that are there.
        sandboxes: Vec<SandboxView>,
    },
    /// What a command in a sandbox did.
    SandboxRan(Box<SandboxRan>),
    /// What commands in a sandbox did, one after the other.
    SandboxBatch(Box<SandboxBatch>),
    /// Checkpoints of a sandbox were let go.
    SandboxPruned(Box<SandboxPruned>),
    /// A sandbox was written down for elsewhere.
    SandboxExported(Box<SandboxExported>),
    /// A sandbox was let go.
    SandboxEnded {
        /// It is free again.
        name: String,
    },
    /// What waits for a decision, oldest first.
    Pending {
        /// None has expired.
        proposals: Vec<Proposal>,
        /// They wait to be applied or discarded.
        trials: Vec<TrialView>,
        /// What went wrong when people were to hear of them.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        untold: BTreeMap<OperationId, Vec<String>>,
        /// The present moment, to tell ages by.
        now: Timestamp,
    },
    /// One proposal, with what it would change.
    Proposal(Box<ProposalView>),
    /// A proposal was refused.
    Rejected {
        /// Nothing of it was written.
        proposal: OperationId,
    },
    /// A rollout, as it stands.
    Rollout(Box<RolloutView>),
    /// Rollouts, newest first.
    Rollouts {
        /// Those that are asked for.
        rollouts: Vec<RolloutView>,
    },
    /// The project's state graph.
    Graph(Box<GraphView>),
    /// The project's state graph as one document.
    GraphDocument(Box<Document>),
    /// What an update of the graph came to.
    GraphUpdated(Box<GraphUpdated>),
    /// What is wrong with the graph, or with objects.
    GraphChecked(Box<GraphChecked>),
    /// Evidence that was written, or looked at.
    Evidence(Box<EvidenceView>),
    /// What an undo would do.
    Plan(PlanView),
    /// What an undo did.
    Undone(UndoReport),
    /// Undos that failed and that nobody solved since, newest first.
    Failed {
        /// Each with what was tried.
        failed: Vec<FailedUndo>,
    },
    /// What could not be taken back stays.
    Accepted {
        /// Whose undo failed.
        id: OperationId,
    },
    /// What is not as it was recorded.
    Drift(DriftReport),
    /// What was decided about drift.
    DriftDecided(DriftDecided),
    /// One, as it stands now.
    Task(Task),
    /// Tasks, newest first.
    Tasks {
        /// Those that are asked for.
        tasks: Vec<Task>,
    },
    /// A task was committed.
    Committed {
        /// It has ended.
        task: TaskId,
        /// They are kept until they expire.
        operations: Vec<OperationId>,
    },
    /// One that was taken.
    Checkpoint(Checkpoint),
    /// Checkpoints, newest first.
    Checkpoints {
        /// Those that are asked for.
        checkpoints: Vec<Checkpoint>,
    },
    /// A checkpoint was asked for that is not due yet.
    CheckpointNotDue(NotDue),
    /// Where an agent goes on.
    Resumed(Box<Resumed>),
    /// A stage, as it stands.
    Stage(Box<StageView>),
    /// Stages, newest first.
    Stages {
        /// Those that are asked for.
        stages: Vec<StageView>,
    },
    /// A checkpoint that keeps directories.
    WorkspaceKept(Box<WorkspaceKept>),
    /// What going back to such a checkpoint would change.
    WorkspacePlan(Box<WorkspacePlan>),
    /// The files of a checkpoint were let go.
    WorkspaceDropped {
        /// The mark of that name stays.
        name: CheckpointName,
        /// How many bytes that gave back.
        bytes: u64,
    },
    /// Operations, newest first.
    Log {
        /// Those that are asked for.
        operations: Vec<Operation>,
    },
    /// What people asked agents, newest first.
    Prompts {
        /// Each with what it led to.
        prompts: Vec<PromptView>,
    },
    /// One operation with all that is known of it.
    Shown(Box<Shown>),
    /// What an operation changed.
    Diff(Diff),
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
    Ran(Box<Ran>),
    /// How many records were exported.
    Exported {
        /// Their number.
        records: u64,
    },
}

/// A finished write.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Finished {
    /// The operation; none if the target was already as asked, so that nothing was recorded.
    pub id: Option<OperationId>,
    /// One line for people.
    pub summary: String,
    /// Where it stands: applied in a task, committed otherwise.
    pub status: Option<Status>,
    /// How it would be taken back.
    pub strategy: Option<Strategy>,
    /// What was asked for, why, what could not be prepared, and what it cost; none if nothing was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// Things worth knowing.
    pub notes: Vec<String>,
    /// Whether nothing takes it back; a note says why.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_lost: bool,
    /// What was left out of a trial that was applied in part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<LeftPending>,
    /// Whether the same call was answered before, so that nothing was written now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_again: bool,
}

impl Finished {
    /// The answer where everything is as asked already.
    pub(crate) const fn nothing(summary: String, notes: Vec<String>) -> Self {
        Self {
            id: None,
            summary,
            status: None,
            strategy: None,
            decision: None,
            notes,
            is_lost: false,
            left: None,
            is_again: false,
        }
    }
}

/// What was left out of a trial that was applied in part, and still waits for a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftPending {
    /// It stays under this name.
    pub trial: OperationId,
    /// In names.
    pub changes: usize,
}

/// One operation with all that is known of it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Shown {
    /// With each of its targets.
    pub operation: Operation,
    /// What was built on it.
    pub dependents: Vec<OperationId>,
    /// Every record that speaks of it.
    pub records: Vec<Record>,
    /// How each target stands now.
    pub targets: Vec<PlannedTarget>,
    /// What each was, became and is, if it is told in values alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<DiffFile>,
    /// What answers it, and how far that is, if another effect does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compensation: Option<CompensationAction>,
}

/// Where things stand.
#[derive(Debug, Serialize, Deserialize)]
pub struct StatusReport {
    /// The state directory.
    #[serde(with = "any_path")]
    pub state_dir: PathBuf,
    /// The journal in numbers.
    pub summary: StoreSummary,
    /// What the store holds.
    pub stored: StoredBytes,
    /// Whether something that was kept since the last write could not be weighed yet: it holds more then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unweighed: bool,
    /// What it may hold.
    pub cap_bytes: u64,
    /// How large the journal is on the disk.
    pub journal_bytes: u64,
    /// Tasks that wait for a decision.
    pub open_tasks: Vec<Task>,
    /// Operations being written right now, or left behind by the dead.
    pub unfinished: Vec<Operation>,
    /// Those of them whose process is at work.
    pub at_work: Vec<OperationId>,
    /// Proposals that wait for a decision.
    pub proposals: Vec<Proposal>,
    /// Trials that wait for a decision.
    pub trials: Vec<TrialView>,
    /// Sandboxes, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sandboxes: Vec<SandboxView>,
    /// Rollouts that are not over, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rollouts: Vec<RolloutView>,
    /// Operations that somebody has to look at.
    pub stuck: Vec<Operation>,
    /// Operations whose undo failed, and that a person has to look at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<OperationId>,
    /// How many targets have drifted, as far as was noted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub drifted: u64,
    /// Undos and redos of several operations that were left between two of them.
    pub acts_left: Vec<ActLeft>,
    /// The last few, for people.
    pub newest: Vec<Operation>,
    /// The present moment, to tell ages by.
    pub now: Timestamp,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands a reference over"
)]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What garbage collection did.
#[derive(Debug, Serialize, Deserialize)]
pub struct GcOutcome {
    /// What was let go.
    pub collected: GcReport,
    /// What was packed.
    pub compacted: Option<CompactReport>,
    /// Checkpoints whose files were let go.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workspaces: Vec<LetGo>,
    /// Where the audit records that left the journal are.
    #[serde(default, with = "any_path::some")]
    pub audit_file: Option<PathBuf>,
}

/// One thing a check of the machine found.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Finding {
    /// In a few words.
    pub check: String,
    /// Whether it is as it should be.
    pub is_good: bool,
    /// What was found.
    pub detail: String,
    /// What to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// What a check of the machine and the store found.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DoctorReport {
    /// One line per check.
    pub findings: Vec<Finding>,
    /// What was repaired, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair: Option<RepairReport>,
}
