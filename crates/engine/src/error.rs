//! What can go wrong with a command.

use std::io;

use backout_capture::overlay::OverlayError;
use backout_files::{BaseChanged, UnusablePath};
use backout_model::ports::{DriverError, OnConflict, Stopped};
use backout_model::{
    AgentId, CheckpointName, DriverName, Key, LeftAlone, OperationId, Owner, PlanError, Status,
    Target, TargetOutcome, TargetPath, TaskId, Timestamp, Verb,
};
use backout_storage::{RefError, StorageError};

use crate::{
    DriftError, Forcing, GateError, GraphError, LadderError, PlanView, RefusedTarget, ResumeError,
    RolloutError, SandboxError, StageError, TakeBack, TrialError, UndoReport, WorkspaceError,
};

/// A command whose changes are not in the journal yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotOver {
    /// Its operation.
    pub id: OperationId,
    /// Whether its process died. Nobody has settled what it did then.
    pub is_dead: bool,
}

/// Says why a command was not, or not wholly, carried out.
#[derive(Debug, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "the message of a variant says what its fields are"
)]
pub enum EngineError {
    /// The store failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A driver could not do it. Nothing was changed.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// The driver that a request or a recipe names is not there. Nothing was changed.
    #[error("this program has no driver `{name}`")]
    NoDriver { name: DriverName },
    /// Two drivers of one name.
    #[error("there is a driver `{name}` already")]
    DriverTaken { name: DriverName },
    /// The undo could not be made durable, so the write did not happen.
    #[error("the undo of this write could not be recorded")]
    NotArmed(#[source] StorageError),
    /// The write failed and was put back.
    #[error("operation {id} failed and was taken back")]
    TakenBack {
        id: OperationId,
        /// Why it failed.
        #[source]
        cause: Box<Self>,
    },
    /// The write happened and could not be recorded. A recovery takes it back.
    #[error("operation {id} happened, but could not be recorded")]
    NotRecorded {
        id: OperationId,
        /// Why not.
        #[source]
        cause: StorageError,
    },
    /// The write was to be taken back, and stays.
    #[error("operation {id} was to be taken back, and stays")]
    Stays {
        id: OperationId,
        /// Why it was to go.
        #[source]
        cause: Box<Self>,
        /// Why it stays.
        why: Box<Self>,
        /// Whether `failed` and `status` tell of it from now on.
        is_told: bool,
    },
    /// The write failed, and so did putting it back.
    #[error("operation {id} failed half-way and could not be taken back")]
    HalfDone {
        id: OperationId,
        /// Why it failed.
        #[source]
        cause: Box<Self>,
        /// What became of each target.
        outcomes: Vec<TargetOutcome>,
        /// Those of them that are as the operation was to make them.
        made: Vec<Target>,
        /// Why nothing takes it back, if that is known.
        lost: Option<String>,
    },
    /// A command ran, and what it did could not be recorded. Its log is there, and so is all that was kept: a recovery
    /// settles it.
    #[error("what the command did is not recorded")]
    NotSettled {
        id: OperationId,
        /// Why not.
        #[source]
        cause: Box<Self>,
    },
    /// A gate said no. Nothing was changed.
    #[error("the write was refused: {why}")]
    Refused {
        /// The operation, as the journal knows it.
        id: OperationId,
        /// What the gate said.
        why: String,
    },
    /// A gate does not let it pass, or somebody has to decide first.
    #[error(transparent)]
    Gate(#[from] GateError),
    /// An undo that failed was not looked after as asked.
    #[error(transparent)]
    Ladder(#[from] LadderError),
    /// More would have to go than was asked for. Nothing was changed.
    #[error("others built on it: {}", named(by))]
    BuiltOn {
        /// What they did, newest first.
        by: Vec<(OperationId, String)>,
    },
    /// A check after the write said no. The write was taken back.
    #[error("the write did not hold: {why}")]
    NotVerified {
        /// What the check said.
        why: String,
    },
    /// Somebody else kept writing the target for as long as we waited.
    #[error("`{target}` is being written by process {}", owner.pid)]
    Busy {
        /// What both want to write.
        target: Target,
        by: OperationId,
        /// The process behind it.
        owner: Box<Owner>,
    },
    /// A command wrote the targets, and its checks took longer than we waited.
    #[error("what operation {by} wrote is still being checked")]
    BeingChecked {
        /// What was to be written.
        targets: Vec<Target>,
        /// The command.
        by: OperationId,
        /// Its line for people.
        summary: String,
    },
    /// The name of an operation does not lead to one.
    #[error(transparent)]
    Ref(#[from] RefError),
    /// There is no plan for what was asked.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The plan needs operations that nobody named and that need a word.
    #[error("operations that need a word depend on it")]
    NeedsWord(Box<PlanView>),
    /// Targets changed since; nothing was undone.
    #[error("targets changed since the operation")]
    Conflicts {
        /// The targets that refuse, each with its reason.
        targets: Vec<RefusedTarget>,
        /// The operations that were asked for.
        named: Vec<OperationId>,
        /// What was to be done with them.
        tried: OnConflict,
        /// Whether a merge would get past all of them.
        is_mergeable: bool,
        /// How far force would get past them.
        force: Option<Forcing>,
        /// Whether something else could be taken back.
        has_rest: bool,
    },
    /// Some of it could not be taken back.
    #[error("not everything came back")]
    Partial(Box<UndoReport>),
    /// Somebody stopped it. The operation under way was put back as it was; those before it stay taken back.
    #[error("it was interrupted")]
    Stopped(Box<UndoReport>),
    /// Nothing was done below a directory; perhaps elsewhere.
    #[error("there is nothing to undo below `{below}`")]
    NothingBelow {
        /// The directory.
        below: TargetPath,
        /// The newest operation anywhere, and its line for people.
        elsewhere: Option<(OperationId, String)>,
        /// A command that may have changed something there.
        at_work: Option<NotOver>,
    },
    /// What an undo or a redo would do is not known before something is settled that a dead process left.
    #[error("operation {} is to be settled before the {verb}", id.short())]
    NotSettledYet {
        /// What was left.
        id: OperationId,
        /// What would be done.
        verb: Verb,
    },
    /// What was done last cannot be undone any more, but something older can.
    #[error("the newest operation {id} can no longer be undone", id = id.short())]
    NewestExpired {
        id: OperationId,
        /// Its line for people.
        summary: String,
        /// The newest that can be undone, and its line for people.
        older: (OperationId, String),
    },
    /// Nothing takes back what was done last, but something older can be undone.
    #[error("nothing takes back the newest operation {id}", id = id.short())]
    NewestLost {
        id: OperationId,
        /// Why nothing does.
        why: String,
        /// The newest that can be undone, and its line for people.
        older: (OperationId, String),
    },
    /// Nothing that is in effect was done to a path.
    #[error("there is nothing to undo at `{path}`")]
    NothingOnPath {
        /// The path, or the other target.
        path: Box<Key>,
        /// Whether nothing is there, and nothing was ever written there.
        is_unknown: bool,
        /// Since when.
        since: Option<Timestamp>,
        /// An operation that wrote a tree as one in which the path lies.
        inside: Option<OperationId>,
        /// An operation that wrote the same file by another of its names, and that name.
        other: Option<(OperationId, TargetPath)>,
        /// An operation that wrote by a name which leads here now, and that name.
        old_name: Option<Box<(OperationId, TargetPath)>>,
        /// What the path leads to, if it is a symbolic link and that was written.
        leads_to: Option<Box<TargetPath>>,
        /// A command that may have changed it.
        at_work: Option<NotOver>,
    },
    /// What was named is not undone.
    #[error("operation {id} is not undone")]
    NothingToRedo {
        /// The operation that was named.
        id: OperationId,
    },
    /// It was begun before, and only a person can tell whether it happened then.
    #[error("an undo or redo of operation {id} is in doubt")]
    Undecided {
        /// What was to be taken back or brought back.
        id: OperationId,
        /// The undo or redo that is in doubt.
        by: OperationId,
        /// Which of them it is.
        verb: Verb,
    },
    /// What was named is an undo that was taken back before.
    #[error("operation {id} was taken back before")]
    TakenBackBefore {
        /// The undo that was named.
        id: OperationId,
        /// Another undo, which took the same back again and holds it now.
        again: Option<OperationId>,
        /// What took it back, if that still holds.
        by: Option<OperationId>,
    },
    /// Nobody named anything, and there is no undo that could be taken back.
    #[error("there is nothing to redo")]
    NoUndo {
        /// What a recovery took back last, with its line for people: that comes back by name.
        recovered: Option<(OperationId, String)>,
        /// What a redo had to take back, with its line for people, and that act: it comes back by name.
        swapped: Option<(OperationId, String, OperationId)>,
    },
    /// An undo or a redo that died was put back: there is no half of it to bring back.
    #[error("operation {id} died and was put back")]
    PutBack {
        /// The undo or redo.
        id: OperationId,
        /// What to ask for instead.
        again: crate::DoAgain,
    },
    /// What is meant is a part of a tree that can only be taken back as one.
    #[error("a part of operation {id} cannot be taken back by itself")]
    Inseparable {
        /// The operation: an undo, if it is to be redone.
        id: OperationId,
        /// Which way it was to go.
        way: TakeBack,
        /// The tree, or the whole of which it is a part.
        tree: Option<Key>,
    },
    /// The operation did not touch what is to be restored.
    #[error("operation {id} did not touch `{target}`")]
    NotTouched {
        /// What is to be restored.
        target: Key,
        id: OperationId,
    },
    /// The driver restores nothing by itself.
    #[error("the driver `{driver}` restores nothing by itself")]
    NoRestore {
        driver: DriverName,
        /// What was to be restored.
        target: Option<Key>,
        id: OperationId,
    },
    /// Nobody has what a path was.
    #[error("`{path}` cannot be restored")]
    Unrestorable {
        path: String,
        /// Why not.
        why: String,
        /// The operation, if taking all of it back is another way.
        undo: Option<OperationId>,
    },
    /// The file that a part lay in has no place for it.
    #[error("`{part}` was not restored")]
    NoHome {
        part: Box<Key>,
        /// Whether there is no such file.
        is_gone: bool,
        /// What was found.
        why: String,
        /// The operation to restore from.
        from: OperationId,
        /// Whether what it left is meant, and not what was there before.
        is_after: bool,
    },
    /// The operation waits for no decision.
    #[error("operation {id} is {status}: there is nothing to decide")]
    NothingToDecide { id: OperationId, status: Status },
    /// The operation is still being carried out.
    #[error("operation {id} is at work in process {}", owner.pid)]
    AtWork {
        id: OperationId,
        /// The process.
        owner: Owner,
    },
    /// There is no such task.
    #[error("there is no task `{id}`")]
    NoTask {
        /// The name.
        id: TaskId,
    },
    /// Nothing can be added to a task that was committed or rolled back.
    #[error("the task `{id}` has ended")]
    TaskEnded {
        /// The name.
        id: TaskId,
    },
    /// A task of that name is open already.
    #[error("the task `{id}` is open already")]
    TaskOpen {
        /// The name.
        id: TaskId,
    },
    /// An operation of a task waits for a decision, so that the task cannot be committed.
    #[error("operation {id} of task `{task}` waits for a decision")]
    TaskWaits { task: TaskId, id: OperationId },
    /// No task was named and it is not clear which was meant.
    #[error("{open} tasks are open")]
    WhichTask { open: usize },
    /// There is no such checkpoint.
    #[error("there is no checkpoint `{name}`")]
    NoCheckpoint { name: CheckpointName },
    /// Nothing was done since a checkpoint or a time, but to undo what stood then.
    #[error("there is nothing to undo")]
    UndoneSince { undone: Vec<LeftAlone> },
    /// A checkpoint of this name belongs to somebody else.
    #[error("there is a checkpoint `{name}` already")]
    CheckpointTaken {
        name: CheckpointName,
        /// Whose it is.
        agent: Option<AgentId>,
        task: Option<TaskId>,
    },
    /// It was asked from inside of a command, and is not the work of that command's agent and task.
    #[error("operation {id} is not for this command to take back")]
    NotOwn {
        id: OperationId,
        /// Whose work it is, if anybody said.
        agent: Option<AgentId>,
        /// The task it belongs to.
        task: Option<TaskId>,
    },
    /// There is no such process.
    #[error("there is no process {pid}")]
    NoProcess {
        /// Its number.
        pid: u32,
    },
    /// The program could not be executed.
    #[error("`{program}` could not be started")]
    NotStarted {
        /// The program, as it was named.
        program: String,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// A command cannot be watched here.
    #[error("the command cannot be watched here")]
    NoCapture {
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// A trial could not be made, found or used.
    #[error(transparent)]
    Trial(#[from] TrialError),
    /// A sandbox could not be made, found or used.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// An agent does not go on.
    #[error(transparent)]
    Resume(#[from] ResumeError),
    /// Something is wrong with a stage.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// Directories could not be kept or brought back.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// A rollout could not be begun, found or taken up.
    #[error(transparent)]
    Rollout(#[from] RolloutError),
    /// Nothing was done about a drift.
    #[error(transparent)]
    Drift(#[from] DriftError),
    /// The graph was not updated, or evidence could not be made or read.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The machine could not be asked.
    #[error("cannot {action}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
}

impl EngineError {
    /// Tells whether it is a driver that could not do something, or is not there.
    pub(crate) const fn is_of_driver(&self) -> bool {
        matches!(self, Self::Driver(_) | Self::NoDriver { .. })
    }

    /// Tells whether there is nobody to answer for targets now: no driver, or none that reaches them where they are. What is
    /// in files is here.
    pub(crate) fn is_unanswered<'t>(&self, mut targets: impl Iterator<Item = &'t Target>) -> bool {
        match self {
            Self::NoDriver { .. } => true,
            Self::Driver(_) => !self.is_stop() && targets.all(|target| target.file().is_none()),
            _ => false,
        }
    }

    /// Tells whether somebody stopped it.
    pub fn is_stop(&self) -> bool {
        match self {
            Self::Driver(error) => error.fault().is_stop(),
            Self::Stopped(_) => true,
            Self::TakenBack { cause, .. } | Self::HalfDone { cause, .. } => cause.is_stop(),
            _ => false,
        }
    }
}

/// Names operations with their lines.
pub(crate) fn named(operations: &[(OperationId, String)]) -> String {
    let each = operations
        .iter()
        .map(|(id, summary)| format!("{} ({summary})", id.short()));
    let each: Vec<String> = each.collect();
    each.join(", ")
}

impl From<OverlayError> for EngineError {
    fn from(error: OverlayError) -> Self {
        Self::Trial(error.into())
    }
}

impl From<Stopped> for EngineError {
    fn from(stopped: Stopped) -> Self {
        Self::Driver(stopped.into())
    }
}

impl From<BaseChanged> for EngineError {
    fn from(error: BaseChanged) -> Self {
        Self::Driver(error.into())
    }
}

impl From<UnusablePath> for EngineError {
    fn from(error: UnusablePath) -> Self {
        Self::Driver(error.into())
    }
}
