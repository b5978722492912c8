//! The closed set of commands.

use std::path::PathBuf;

use backout_model::ports::OnConflict;
use backout_model::{
    AgentId, CallKey, CheckpointName, Dependency, DependencyReason, Digest, Key, Lsn, OperationId,
    Owner, PromptId, Strategy, TargetPath, TaskId, Timestamp, Trigger, any_path,
};
use backout_storage::{Filter, OperationRef};
use serde::{Deserialize, Serialize};

use crate::{
    DriftCommand, FailedCommand, GraphCommand, MarkRequest, PromptFilter, ProposalCommand,
    ResumeWhat, RolloutCommand, RunRequest, SandboxCommand, Selection, StageCommand, TryCommand,
    WorkspaceReturn, WriteRequest,
};

/// Who asks, and in what connection.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Context {
    /// The agent that asks.
    pub agent: Option<AgentId>,
    /// The task it belongs to.
    pub task: Option<TaskId>,
    /// The prompt that it answers.
    pub prompt: Option<PromptId>,
    /// The name that the caller gave to this call, so that asking again does nothing twice.
    pub key: Option<CallKey>,
    /// The digest of what is asked under that key, in words of the caller's own: for one whose request depends on what he
    /// finds. None takes the request itself.
    pub asked: Option<Digest>,
    /// What the agent says it builds on.
    pub depends_on: Vec<OperationRef>,
    /// How writes are to be taken back, if the caller insists: then nothing else is tried.
    pub strategy: Option<Strategy>,
    /// The running command that asks: what it has done is taken back with it.
    pub within: Option<OperationId>,
    /// Whether it is asked from inside of a command: then only the work of the same agent and task is taken back.
    pub is_inside: bool,
    /// The processes that whoever asks descends from, as far as they were looked at: an agent does not decide about its own work
    /// by a process that does not bear its name.
    pub forebears: Vec<Forebear>,
}

impl Context {
    /// Says that what is done is done within the command that asks, if one does.
    pub(crate) fn within_command(&self) -> Option<Dependency> {
        self.within.map(|on| Dependency {
            on,
            reason: DependencyReason::Within,
        })
    }
}

/// A process that another one descends from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forebear {
    /// Its number, and when it began.
    pub process: Owner,
    /// The agent that it was started for.
    #[serde(default)]
    pub agent: Option<AgentId>,
    /// The command that it was started in.
    #[serde(default)]
    pub within: Option<OperationId>,
}

/// Something the engine can be asked.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "command", content = "with", rename_all = "kebab-case")]
pub enum Command {
    /// Write something.
    Write {
        /// What, for the driver that it names.
        request: WriteRequest,
    },
    /// Run a command so that all it does to files can be taken back. A program that serves others does this in a process of
    /// its own: the command is its child, and signals go to it.
    Run(Box<RunRequest>),
    /// Run a command in layers, and what follows from it.
    Try(TryCommand),
    /// Work in sandboxes.
    Sandbox(SandboxCommand),
    /// Decide about what waits for a decision.
    Proposal(ProposalCommand),
    /// Write one change to several targets, wave by wave.
    Rollout(RolloutCommand),
    /// Look after the project's state graph.
    Graph(GraphCommand),
    /// Take operations back, or show what that would do.
    Undo {
        /// What is to be taken back or brought back.
        what: UndoWhat,
        /// What may be overwritten, left or taken along.
        options: UndoOptions,
        /// Only show the plan.
        is_dry_run: bool,
    },
    /// Take undos back.
    Redo {
        /// What is to be taken back or brought back.
        what: RedoWhat,
        /// What may be overwritten, left or taken along.
        options: UndoOptions,
        /// Only show the plan.
        is_dry_run: bool,
    },
    /// Look for drift, and decide about it.
    Drift(DriftCommand),
    /// Look after undos that failed.
    Failed(FailedCommand),
    /// Begin, commit or list tasks.
    Task(TaskCommand),
    /// Mark a point to return to, or list the marks.
    Checkpoint(CheckpointCommand),
    /// Go on where an agent was.
    Resume(ResumeWhat),
    /// Begin, end or list the stages of a pipeline.
    Stage(StageCommand),
    /// List operations.
    Log(Filter),
    /// List what people asked agents, and what that did.
    Prompts(PromptFilter),
    /// Tell all that is known of an operation, with a look at its targets.
    Show(OperationRef),
    /// Show what one operation changed.
    Diff {
        /// The operation, by its id or its place in the log.
        operation: OperationRef,
        /// Which of its names.
        selection: Selection,
        /// Whether only the names are wanted.
        is_brief: bool,
    },
    /// Make paths what they were.
    Restore {
        /// From the root.
        paths: Vec<TargetPath>,
        /// Other targets: keys of config files, rows, whatever the operation's driver can restore by itself.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        targets: Vec<Key>,
        /// The operation before which they were so.
        from: OperationRef,
        /// Not before it, but after it.
        is_after: bool,
    },
    /// Show where things stand.
    Status,
    /// Take back what dead processes left unfinished, or decide about it by hand.
    Recover(RecoverWhat),
    /// Check the whole store.
    Verify,
    /// Check evidence that was exported, by itself and against the journal.
    VerifyEvidence {
        /// It is only read.
        #[serde(with = "any_path")]
        directory: PathBuf,
    },
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
        #[serde(with = "any_path")]
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
#[derive(Serialize, Deserialize)]
pub enum ExportTarget {
    /// A stream that is open already. Only this process has it: such a command cannot be written down.
    #[serde(skip)]
    Stream(Box<dyn std::io::Write + Send>),
    /// A directory that is not there yet, for evidence: events, objects and sums beside the records.
    Evidence(#[serde(with = "any_path")] PathBuf),
}

impl std::fmt::Debug for ExportTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ExportTarget")
    }
}

/// What to take back.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UndoWhat {
    /// The newest act still in effect of the agent that asks: an operation, or a redo of several.
    Newest {
        /// Only what wrote at or below this directory, or outside of the file system; none means everywhere.
        below: Option<TargetPath>,
    },
    /// Each by its name, and what depends on it.
    Operations(Vec<OperationRef>),
    /// What was last done to these paths or other targets, and all below, and to nothing else.
    Paths {
        /// From the root; a key is inside of its file.
        paths: Vec<Key>,
        /// Everything that was done to them since this moment; none means only the last of it.
        since: Option<Timestamp>,
    },
    /// A whole task.
    Task(TaskId),
    /// All that answered a prompt.
    Prompt(PromptId),
    /// Everything since a checkpoint.
    ToCheckpoint(CheckpointName),
    /// Everything since a place in the journal.
    ToPlace {
        /// The place.
        lsn: Lsn,
        /// Only this task's work.
        task: Option<TaskId>,
        /// Only this agent's work.
        agent: Option<AgentId>,
        /// What stays although it came after.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        known: Vec<OperationId>,
    },
}

/// What to bring back.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RedoWhat {
    /// What the newest undo of the agent that asks took back.
    Newest {
        /// Only an undo that wrote at or below this directory, or outside of the file system; none means everywhere.
        below: Option<TargetPath>,
    },
    /// Operations that were undone, or undos.
    Operations(Vec<OperationRef>),
}

/// Which unfinished operations to settle, and how.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecoverWhat {
    /// All that dead processes left.
    All {
        /// Look only at operations after this place.
        from: Option<Lsn>,
    },
    /// These operations, by hand.
    ByHand {
        /// Which: interrupted, in doubt, or left behind by a dead process.
        operations: Vec<OperationRef>,
        /// What becomes of them.
        decide: Decide,
    },
}

/// What becomes of an operation that waits for a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decide {
    /// What is there stays; the operation counts as done and can be undone.
    Keep,
    /// It is taken back.
    Rollback {
        /// What to do with targets that somebody else changed.
        on_conflict: OnConflict,
    },
}

/// How to take it back.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a word of its own for whoever asks"
)]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct UndoOptions {
    /// What to do with targets that changed since.
    pub on_conflict: OnConflict,
    /// Also take the chain that the named operations were built on.
    pub with_dependencies: bool,
    /// Operations of committed tasks that nobody named may go as well.
    pub committed: bool,
    /// Other agents' operations that nobody named may go as well.
    pub others: bool,
    /// Take back what can be taken back, target by target, and leave the rest.
    pub partial: bool,
    /// Only these targets.
    pub selection: Selection,
    /// A preview also says, name by name, what would change.
    pub diff: bool,
    /// Nothing but these operations may go: what was built on them stands in the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only: Option<Vec<OperationId>>,
    /// What sets it off; none means that whoever asks wants it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Trigger>,
}

/// What to do with tasks.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskCommand {
    /// Give a name to what follows.
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
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckpointCommand {
    /// Mark this point.
    Mark {
        /// Its name; none takes a new one.
        name: Option<CheckpointName>,
        /// What the agent wants to find again.
        state: serde_json::Value,
        /// What it says of itself, if it does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resume: Option<Box<MarkRequest>>,
    },
    /// Mark this point, and keep all that is in some directories.
    Keep {
        /// Its name; none takes a new one.
        name: Option<CheckpointName>,
        /// What the agent wants to find again.
        state: serde_json::Value,
        /// The directories.
        roots: Vec<TargetPath>,
        /// What it says of itself, if it does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resume: Option<Box<MarkRequest>>,
    },
    /// Make the directories of a checkpoint what they were.
    Return(WorkspaceReturn),
    /// Let go of the files that a checkpoint keeps; the mark stays.
    Drop {
        /// Of the checkpoint.
        name: CheckpointName,
    },
    /// List them.
    List,
}
