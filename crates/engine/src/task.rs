//! Tasks and checkpoints: work that is kept or taken back together, and marks to return to.

use backout_crashpoint::crash_point;
use backout_model::ports::{Durability, Entry};
use backout_model::{
    Checkpoint, CheckpointName, Event, OperationId, PlanError, Proposal, Status, Task, TaskId,
    TaskStatus,
};
use backout_storage::Filter;

use crate::{
    CheckpointCommand, Context, Engine, EngineError, GateError, Marked, PlanView, Reply,
    TaskCommand, UndoOptions, UndoReport, UndoWhat, redacted,
};

/// Why a proposal of a task that ended is refused.
const ROLLED_BACK: &str = "its task was rolled back";

impl Engine {
    pub(crate) fn task(&self, command: TaskCommand) -> Result<Reply, EngineError> {
        match command {
            TaskCommand::Begin { id, owner_pid } => self.begin(id, owner_pid).map(Reply::Task),
            TaskCommand::Commit { id } => {
                let task = self.named_or_only(id)?;
                let operations = self.commit(&task)?;
                Ok(Reply::Committed { task, operations })
            }
            TaskCommand::List => Ok(Reply::Tasks {
                tasks: self.store.tasks()?,
            }),
        }
    }

    /// Begins a task. With an owner, the owner's death rolls it back at the next recovery.
    pub fn begin(&self, id: Option<TaskId>, owner_pid: Option<u32>) -> Result<Task, EngineError> {
        let id = match id {
            Some(id) => id,
            None => name(&format!("task-{}", self.next_id().short())),
        };
        self.check_new_task(&id)?;
        let owner = owner_pid
            .map(|pid| {
                self.store
                    .process(pid)
                    .ok_or(EngineError::NoProcess { pid })
            })
            .transpose()?;
        let agent = self.context.agent.clone();
        let event = Event::TaskBegin {
            task: id.clone(),
            agent: agent.clone(),
            owner: owner.clone(),
        };
        self.store
            .append(&Entry::of(vec![event]), Durability::Power)?;
        Ok(Task {
            id,
            status: TaskStatus::Open,
            began: self.now(),
            agent,
            owner,
        })
    }

    /// Makes sure that there is no task of a name.
    pub(crate) fn check_new_task(&self, id: &TaskId) -> Result<(), EngineError> {
        let id = id.clone();
        match self.store.task(&id)? {
            Some(task) if task.status == TaskStatus::Open => Err(EngineError::TaskOpen { id }),
            Some(_) => Err(EngineError::TaskEnded { id }),
            None => Ok(()),
        }
    }

    /// Keeps a task's operations, durably.
    pub fn commit(&self, task: &TaskId) -> Result<Vec<OperationId>, EngineError> {
        let is_committed = self.store.task(task)?;
        let is_committed = is_committed.is_some_and(|it| it.status == TaskStatus::Committed);
        // What it held back did not all leave: the rest leaves now.
        if is_committed && !self.held_by(task)?.is_empty() {
            self.recover_the_dead()?;
            let mut ids = self.kept_of(task)?;
            let sent = self.release(task)?;
            ids.retain(|id| !sent.contains(id));
            ids.extend(sent);
            return Ok(ids);
        }
        let mut ids = self.commit_with(task, Vec::new())?;
        crash_point("outbox.committed");
        ids.extend(self.release(task)?);
        Ok(ids)
    }

    /// Lists what a task that was committed has kept, the first first.
    fn kept_of(&self, task: &TaskId) -> Result<Vec<OperationId>, EngineError> {
        let filter = Filter {
            task: Some(task.clone()),
            ..Filter::default()
        };
        let operations = self.store.operations(&filter)?.into_iter().rev();
        let kept = operations.filter(|it| it.status == Status::Committed && !it.verb.is_reversal());
        Ok(kept.map(|operation| operation.id).collect())
    }

    /// The same, with what becomes true at the same moment.
    pub(crate) fn commit_with(
        &self,
        task: &TaskId,
        also: Vec<Event>,
    ) -> Result<Vec<OperationId>, EngineError> {
        let found = self
            .store
            .task(task)?
            .ok_or_else(|| EngineError::NoTask { id: task.clone() })?;
        if found.status != TaskStatus::Open {
            return Err(EngineError::TaskEnded { id: task.clone() });
        }
        self.recover_the_dead()?;
        let filter = Filter {
            task: Some(task.clone()),
            ..Filter::default()
        };
        let applied = self.store.operations(&filter)?;
        // A task is kept as one, and not while a part of it is at work or waits for a decision.
        let held = self.held_by(task)?;
        for operation in &applied {
            match operation.status {
                // It leaves with the commit.
                Status::Proposed if held.iter().any(|it| it.id == operation.id) => {}
                Status::Armed => return Err(self.unfinished(operation)),
                Status::Proposed => {
                    let (task, id) = (task.clone(), operation.id);
                    return Err(GateError::TaskWaits { task, id }.into());
                }
                Status::InDoubt | Status::Failed => {
                    let (task, id) = (task.clone(), operation.id);
                    return Err(EngineError::TaskWaits { task, id });
                }
                Status::Applied
                | Status::Committed
                | Status::Interrupted
                | Status::Undone
                | Status::Aborted
                | Status::Refused => {}
            }
        }
        let mut ids: Vec<OperationId> = applied
            .iter()
            .filter(|op| matches!(op.status, Status::Applied | Status::Interrupted))
            .map(|op| op.id)
            .collect();
        ids.reverse();
        let mut events: Vec<Event> = ids.iter().map(|&id| Event::Commit { id }).collect();
        events.push(Event::TaskCommit { task: task.clone() });
        events.extend(also);
        self.store.append(&Entry::of(events), Durability::Power)?;
        Ok(ids)
    }

    /// Takes a task, or everything since a checkpoint, back.
    pub fn rollback(
        &self,
        what: &UndoWhat,
        options: &UndoOptions,
        why: &str,
    ) -> Result<UndoReport, EngineError> {
        let dropped = match what {
            UndoWhat::Task(task) if options.selection.is_everything() => self.held_by(task)?,
            UndoWhat::Task(_)
            | UndoWhat::Newest { .. }
            | UndoWhat::Operations(_)
            | UndoWhat::Paths { .. }
            | UndoWhat::Prompt(_)
            | UndoWhat::ToCheckpoint(_)
            | UndoWhat::ToPlace { .. } => Vec::new(),
        };
        let (mut report, left) = match self.undo(what, options) {
            // A task that wrote nothing ends all the same, and so does one of which what stays was accepted.
            Err(error) if is_empty_task(&error, what) => (UndoReport::default(), None),
            Err(EngineError::Partial(report)) if report.is_accepted() => {
                (*report.clone(), Some(EngineError::Partial(report)))
            }
            result => (result?, None),
        };
        // A task of which a part was chosen is not rolled back.
        if let UndoWhat::Task(task) = what
            && options.selection.is_everything()
        {
            self.withdraw(|proposal| proposal.task.as_ref() == Some(task), ROLLED_BACK)?;
            report.notes.extend(dropped.iter().map(said_of_dropped));
            let event = Event::TaskRollback {
                task: task.clone(),
                why: why.to_owned(),
            };
            self.store
                .append(&Entry::of(vec![event]), Durability::Power)?;
            if let Some(act) = report.act {
                self.end_act(act);
            }
        }
        left.map_or(Ok(report), Err)
    }

    /// Shows what [`Engine::rollback`] would do.
    pub(crate) fn preview_rollback(
        &self,
        what: &UndoWhat,
        options: &UndoOptions,
    ) -> Result<PlanView, EngineError> {
        match self.preview_undo(what, options) {
            Err(error) if is_empty_task(&error, what) => Ok(PlanView {
                is_executable: true,
                ..PlanView::default()
            }),
            result => result,
        }
    }

    pub(crate) fn checkpoint(&self, command: CheckpointCommand) -> Result<Reply, EngineError> {
        match command {
            CheckpointCommand::Mark {
                name,
                state,
                resume: None,
            } => self.mark(name, state).map(Reply::Checkpoint),
            CheckpointCommand::Mark {
                name,
                state,
                resume: Some(request),
            } => Ok(match self.mark_state(name, state, &request)? {
                Marked::Taken(checkpoint) => Reply::Checkpoint(checkpoint),
                Marked::NotDue(early) => Reply::CheckpointNotDue(early),
            }),
            CheckpointCommand::Keep {
                name,
                state,
                roots,
                resume,
            } => self
                .keep_workspace(name, state, &roots, resume.as_deref())
                .map(|kept| Reply::WorkspaceKept(Box::new(kept))),
            CheckpointCommand::Return(back) => self.return_to_workspace(&back),
            CheckpointCommand::Drop { name } => self.drop_workspace(&name),
            CheckpointCommand::List => Ok(Reply::Checkpoints {
                checkpoints: self.store.checkpoints()?.iter().map(redacted).collect(),
            }),
        }
    }

    /// Marks this point of the journal, with what the agent wants to find again.
    pub fn mark(
        &self,
        name_given: Option<CheckpointName>,
        state: serde_json::Value,
    ) -> Result<Checkpoint, EngineError> {
        self.mark_with(self.name_of_mark(name_given)?, state, None, None)
    }

    /// Gives the name of a new checkpoint. One of another agent or task keeps its name.
    pub(crate) fn name_of_mark(
        &self,
        name_given: Option<CheckpointName>,
    ) -> Result<CheckpointName, EngineError> {
        let name = match name_given {
            Some(name) => name,
            None => name(&format!("checkpoint-{}", self.next_id().short())),
        };
        let Context { agent, task, .. } = self.context.clone();
        match self.store.checkpoint(&name)? {
            Some(old) if (&old.agent, &old.task) != (&agent, &task) => {
                Err(EngineError::CheckpointTaken {
                    name,
                    agent: old.agent,
                    task: old.task,
                })
            }
            Some(_) | None => Ok(name),
        }
    }

    fn named_or_only(&self, id: Option<TaskId>) -> Result<TaskId, EngineError> {
        if let Some(id) = id.or_else(|| self.context.task.clone()) {
            return Ok(id);
        }
        let tasks = self.store.tasks()?;
        let open: Vec<_> = tasks
            .into_iter()
            .filter(|t| t.status == TaskStatus::Open)
            .collect();
        match <[Task; 1]>::try_from(open) {
            Ok([task]) => Ok(task.id),
            Err(open) => Err(EngineError::WhichTask { open: open.len() }),
        }
    }
}

fn said_of_dropped(held: &Proposal) -> String {
    format!(
        "`{}` was held back, and is dropped: it was never sent",
        held.summary
    )
}

fn is_empty_task(error: &EngineError, what: &UndoWhat) -> bool {
    let is_nothing = matches!(error, EngineError::Plan(PlanError::Nothing));
    is_nothing && matches!(what, UndoWhat::Task(_))
}

/// Makes a name of our own; its characters are plain by construction.
pub(crate) fn name<T: std::str::FromStr>(text: &str) -> T {
    match text.parse() {
        Ok(name) => name,
        Err(_) => unreachable!("letters, digits and dashes make a name"),
    }
}
