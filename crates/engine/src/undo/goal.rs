//! From what somebody wants taken back to a pure plan.

use std::collections::BTreeSet;

use backout_model::ports::{Driver as _, OnConflict};
use backout_model::{
    DependencyReason, Goal, History, Operation, OperationId, OutcomeKind, Permission, PlanError,
    Status, Target, TargetOutcome, UndoPlan, Verb, plan_undo,
};
use backout_storage::{Filter, OperationRef};

use crate::{Engine, EngineError, UndoOptions, UndoWhat};

impl Engine {
    pub(super) fn plan(
        &self,
        what: &UndoWhat,
        options: UndoOptions,
    ) -> Result<(History, UndoPlan), EngineError> {
        let (goal, roots) = self.goal(what, options)?;
        self.plan_goal(&goal, &roots, options)
    }

    fn plan_goal(
        &self,
        goal: &Goal,
        roots: &[OperationId],
        options: UndoOptions,
    ) -> Result<(History, UndoPlan), EngineError> {
        let mut operations = self.store.connected(roots)?;
        if let Some(oldest) = operations
            .iter()
            .filter(|op| roots.contains(&op.id))
            .map(|op| op.lsn)
            .min()
        {
            // Later work that is not connected stays; the plan says so.
            let filter = Filter {
                after: Some(oldest),
                limit: Some(50),
                ..Filter::default()
            };
            operations.extend(self.store.operations(&filter)?);
        }
        let history = History::new(operations);
        let mut permission = Permission {
            committed: options.committed,
            ..Permission::default()
        };
        if options.on_conflict == OnConflict::Merge {
            permission.excused = self.excused(&history, roots)?;
        }
        let plan = plan_undo(&history, goal, &permission)?;
        Ok((history, plan))
    }

    /// Finds the goal and the operations it begins with.
    fn goal(
        &self,
        what: &UndoWhat,
        options: UndoOptions,
    ) -> Result<(Goal, Vec<OperationId>), EngineError> {
        let dependencies = options.with_dependencies;
        match what {
            UndoWhat::Newest => {
                let id = self.newest_in_effect()?;
                Ok((
                    Goal::Operations {
                        ids: vec![id],
                        dependencies,
                    },
                    vec![id],
                ))
            }
            UndoWhat::Operations(references) => {
                let mut ids = Vec::with_capacity(references.len());
                for reference in references {
                    ids.push(self.what_a_redo_brought_back(self.store.resolve(reference)?)?);
                }
                Ok((
                    Goal::Operations {
                        ids: ids.clone(),
                        dependencies,
                    },
                    ids,
                ))
            }
            UndoWhat::Task(task) => {
                if self.store.task(task)?.is_none() {
                    return Err(EngineError::NoTask { id: task.clone() });
                }
                let filter = Filter {
                    task: Some(task.clone()),
                    ..Filter::default()
                };
                Ok((Goal::Task(task.clone()), self.ids_of(&filter)?))
            }
            UndoWhat::ToCheckpoint(name) => {
                let checkpoint = self
                    .store
                    .checkpoint(name)?
                    .ok_or_else(|| EngineError::NoCheckpoint { name: name.clone() })?;
                let filter = Filter {
                    after: Some(checkpoint.lsn),
                    task: checkpoint.task.clone(),
                    agent: checkpoint.agent.clone(),
                    ..Filter::default()
                };
                let goal = Goal::Since {
                    lsn: checkpoint.lsn,
                    task: checkpoint.task,
                    agent: checkpoint.agent,
                };
                Ok((goal, self.ids_of(&filter)?))
            }
        }
    }

    fn ids_of(&self, filter: &Filter) -> Result<Vec<OperationId>, EngineError> {
        Ok(self
            .store
            .operations(filter)?
            .into_iter()
            .map(|operation| operation.id)
            .collect())
    }

    fn newest_in_effect(&self) -> Result<OperationId, EngineError> {
        let agent = self.settings.context.agent.clone();
        let task = self.settings.context.task.clone();
        let found = self.newest(
            &Filter {
                agent,
                task,
                ..Filter::default()
            },
            |operation| !operation.verb.is_reversal() && operation.status != Status::Armed,
        )?;
        found
            .map(|operation| operation.id)
            .ok_or(EngineError::Plan(PlanError::Nothing))
    }

    /// Finds the newest operation in effect that `wanted` accepts, looking at a page at a time.
    fn newest(
        &self,
        filter: &Filter,
        wanted: impl Fn(&Operation) -> bool,
    ) -> Result<Option<Operation>, EngineError> {
        let mut limit = 32;
        loop {
            let page = Filter {
                limit: Some(limit),
                ..filter.clone()
            };
            let operations = self.store.operations(&page)?;
            let is_last = operations.len() < limit;
            let accepted = |op: &Operation| op.status.is_in_effect() && wanted(op);
            if let Some(found) = operations.into_iter().find(accepted) {
                return Ok(Some(found));
            }
            if is_last {
                return Ok(None);
            }
            limit *= 8;
        }
    }

    /// A redo is not undone itself: what it brought back is.
    fn what_a_redo_brought_back(&self, id: OperationId) -> Result<OperationId, EngineError> {
        let Some(operation) = self.store.operation(id)? else {
            return Ok(id);
        };
        if operation.verb != Verb::Redo {
            return Ok(id);
        }
        let undo = operation
            .undoes
            .map(|undo| self.store.operation(undo))
            .transpose()?
            .flatten();
        Ok(undo.and_then(|undo| undo.undoes).unwrap_or(id))
    }

    pub(super) fn plan_redo(
        &self,
        what: Option<&OperationRef>,
        options: UndoOptions,
    ) -> Result<(History, UndoPlan), EngineError> {
        let undos = match what {
            None => self.newest_undo_group()?,
            Some(reference) => {
                let id = self.store.resolve(reference)?;
                let operation = self.store.operation(id)?.ok_or(PlanError::Unknown { id })?;
                match (operation.verb, operation.undone_by) {
                    (Verb::Undo, _) => vec![id],
                    (_, Some(undo)) => vec![undo],
                    _ => return Err(PlanError::Nothing.into()),
                }
            }
        };
        let goal = Goal::Operations {
            ids: undos.clone(),
            dependencies: false,
        };
        self.plan_goal(&goal, &undos, options)
    }

    /// Finds the undos of the newest undo command that still hold.
    fn newest_undo_group(&self) -> Result<Vec<OperationId>, EngineError> {
        let newest = self
            .newest(&Filter::default(), |op| {
                op.verb == Verb::Undo && op.status == Status::Committed
            })?
            .ok_or(PlanError::Nothing)?;
        let group = Filter {
            group: newest.group,
            ..Filter::default()
        };
        let holds = |op: &Operation| op.verb == Verb::Undo && op.status == Status::Committed;
        let members = self.store.operations(&group)?.into_iter().filter(holds);
        Ok(members.map(|op| op.id).collect())
    }

    /// Finds the later writes of the same targets that can stay because the undone change merges out.
    fn excused(
        &self,
        history: &History,
        roots: &[OperationId],
    ) -> Result<BTreeSet<(OperationId, OperationId)>, EngineError> {
        let mut excused = BTreeSet::new();
        for &root in roots {
            let Some(operation) = history.get(root) else {
                continue;
            };
            let effect = self.store.effect(operation.redone_by.unwrap_or(root))?;
            let trial = self
                .files
                .prepare_undo(self.next_id(), &effect, OnConflict::Merge)?;
            let is_settled = |outcome: &TargetOutcome| outcome.kind.is_settled();
            if !trial.outcomes.iter().all(is_settled) {
                continue;
            }
            // Only what is really merged leaves the later write in place. A target that looks untouched was changed
            // to and fro by later work, which then has to go first.
            let is_merged = |target: &Target| {
                let mut over = trial.outcomes.iter();
                over.all(|outcome| {
                    outcome.kind == OutcomeKind::Merged || outcome.target.overlap(target).is_none()
                })
            };
            for (dependent, reason) in history.dependents(root) {
                let stays = reason == DependencyReason::SameTarget
                    && dependent.targets.iter().all(is_merged);
                if stays {
                    excused.insert((dependent.id, root));
                }
            }
        }
        Ok(excused)
    }
}
