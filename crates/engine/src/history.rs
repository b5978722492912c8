//! Looking back: one operation with all that is known of it, and where things stand.

use std::path::PathBuf;

use backout_files::Was;
use backout_model::compensation::{CompensationAction, CompensationStatus};
use backout_model::ports::State;
use backout_model::{
    Chosen, Effect, Operation, OperationId, Standing, Status, Target, TaskStatus, UndoStep,
};
use backout_storage::{Filter, OperationRef, StorageError};

use crate::lifecycle::with_causes;
use crate::{
    DiffFile, Engine, EngineError, PlannedTarget, Selection, Shown, StatusReport, TargetState,
};

/// How many operations a status shows.
const NEWEST: usize = 5;

impl Engine {
    pub(crate) fn show(&self, reference: &OperationRef) -> Result<Shown, EngineError> {
        let id = self.store.resolve(reference)?;
        let operation = self
            .store
            .operation(id)?
            .ok_or(backout_model::PlanError::Unknown { id })?;
        let mut dependents: Vec<_> = self
            .store
            .connected(&[id])?
            .into_iter()
            .filter(|other| other.depends_on.iter().any(|edge| edge.on == id))
            .collect();
        dependents.sort_by_key(|other| other.lsn);
        let (targets, values) = if operation.status.is_in_effect() && operation.retained {
            let now = self.targets_now(&operation);
            match now.and_then(|targets| Ok((targets, self.values_now(id)?))) {
                // What it did is known all the same.
                Err(error) if error.is_unanswered(operation.in_effect().map(|it| &it.target)) => {
                    (of_nobody(&operation, &error), Vec::new())
                }
                now => now?,
            }
        } else {
            (Vec::new(), Vec::new())
        };
        Ok(Shown {
            dependents: dependents.into_iter().map(|other| other.id).collect(),
            records: self.store.records_of(id)?,
            compensation: self.compensation_of(&operation)?,
            targets,
            values,
            operation,
        })
    }

    /// Says what answers an operation, and how far that is, if another effect does.
    pub(crate) fn compensation_of(
        &self,
        operation: &Operation,
    ) -> Result<Option<CompensationAction>, EngineError> {
        let is_done = operation.status.is_in_effect() || operation.status == Status::Undone;
        if !is_done || !operation.retained || operation.verb.is_reversal() {
            return Ok(None);
        }
        // What a redo brought is answered by the way back of the redo.
        let holder = operation.holders().into_iter().next();
        let effect = self.store.effect(holder.unwrap_or(operation.id))?;
        // A command that runs has no driver yet, and whose driver is not here says nothing of it.
        let Ok(driver) = self.driver_of(&effect) else {
            return Ok(None);
        };
        let Some(answer) = driver.answered_by(&effect)? else {
            return Ok(None);
        };
        let failed = self.failed_undos()?;
        let failed = failed.into_iter().find(|it| it.id == operation.id);
        let error = failed.as_ref().and_then(|failed| {
            let mut targets = failed.targets.iter();
            targets.next().map(|target| target.kind.to_string())
        });
        let status = match (operation.status, &failed) {
            (Status::Undone, _) => CompensationStatus::Completed,
            (_, Some(_)) => CompensationStatus::Failed,
            (_, None) => CompensationStatus::Pending,
        };
        Ok(Some(CompensationAction {
            original_action: operation.summary.clone(),
            compensation_action: answer,
            status,
            error,
        }))
    }

    /// Says what each value was, became and is, if an operation is told in values alone.
    fn values_now(&self, id: OperationId) -> Result<Vec<DiffFile>, EngineError> {
        let effect = self.store.effect(id)?;
        let driver = self.driver_of(&effect)?;
        if driver.as_files(&effect)?.is_some() {
            return Ok(Vec::new());
        }
        let values = driver.values(&effect)?.unwrap_or_default();
        let all = Selection::default();
        Ok(Self::compare_values(&values, &all, false, false))
    }

    /// Says how each target that is in effect stands now.
    fn targets_now(&self, operation: &Operation) -> Result<Vec<PlannedTarget>, EngineError> {
        let mut all = Vec::new();
        for holder in operation.holders() {
            let is_held = |standing: &&Standing| standing.held_by.unwrap_or(operation.id) == holder;
            let targets = operation.in_effect().filter(is_held);
            let step = UndoStep {
                id: operation.id,
                with: holder,
                targets: targets.map(|standing| standing.target.clone()).collect(),
                strategy: operation.decision.strategy,
                chosen: Chosen::Named,
            };
            let work = self.work(operation, &step)?;
            let driver = self.driver_of(&work.effect)?;
            let mut examined = driver.examine(&work.effect, false)?;
            for it in examined.iter_mut().filter(|it| it.lost.is_some()) {
                if self.comes_later(holder, &work.effect, &it.target)? {
                    it.lost = None;
                }
            }
            let planned = work.examined(&examined).into_iter();
            all.extend(planned.map(|(target, found)| PlannedTarget {
                goes: false,
                comes: false,
                whole_by: None,
                target,
                state: match found.map(|found| (&found.lost, &found.state)) {
                    Some((Some(why), _)) => TargetState::CannotComeBack { why: why.clone() },
                    Some((None, State::After)) => TargetState::ComesBack,
                    Some((_, State::Before)) | None => TargetState::AlreadyBefore,
                    Some((None, State::Other { why })) => {
                        TargetState::Conflict { why: why.clone() }
                    }
                },
            }));
        }
        all.sort_by(|one, other| one.target.cmp(&other.target));
        Ok(all)
    }

    /// Tells whether what an effect replaced can be made again from what later operations keep.
    fn comes_later(
        &self,
        holder: OperationId,
        effect: &Effect,
        target: &Target,
    ) -> Result<bool, EngineError> {
        let path = target.file().filter(|_| target.key().parts().is_empty());
        let (Some(path), Some(operation)) = (path, self.store.operation(holder)?) else {
            return Ok(false);
        };
        let mut sides = self.sides_of(effect)?.into_iter();
        let side = sides.find(|side| side.path == *path);
        let Some(before) = side.and_then(|side| side.before).filter(Was::is_file) else {
            return Ok(false);
        };
        let bases = self.files.bases(&before)?;
        Ok(!bases.is_empty() && self.kept_later(&operation, path, &before)?.is_some())
    }

    pub(crate) fn status(&self) -> Result<StatusReport, EngineError> {
        let tasks = self.store.tasks()?;
        let newest = Filter {
            limit: Some(NEWEST),
            ..Filter::default()
        };
        // What was kept since the last write is weighed now. A full disk is no reason to say nothing.
        let is_unweighed = match self.store.measure_new_slots() {
            Ok(()) => false,
            Err(StorageError::DiskFull { .. }) => true,
            Err(error) => return Err(error.into()),
        };
        let unfinished = self.store.armed()?;
        let at_work = unfinished
            .iter()
            .filter(|op| self.store.is_alive(&op.owner));
        Ok(StatusReport {
            at_work: at_work.map(|op| op.id).collect(),
            proposals: self.waiting()?,
            trials: self.pending_trials()?,
            sandboxes: self.all_sandboxes()?,
            rollouts: self.open_rollouts()?,
            journal_bytes: self.store.journal_bytes(),
            state_dir: PathBuf::from(self.store.directory()),
            summary: self.store.summary()?,
            stored: self.store.stored_bytes()?,
            is_unweighed,
            cap_bytes: self.settings.retention.store_bytes_max,
            open_tasks: tasks
                .into_iter()
                .filter(|t| t.status == TaskStatus::Open)
                .collect(),
            unfinished,
            stuck: self.store.stuck()?,
            failed: self.failed_undos()?.into_iter().map(|it| it.id).collect(),
            drifted: self.drifted()?,
            acts_left: self.acts_left()?,
            newest: self.store.operations(&newest)?,
            now: self.now(),
        })
    }
}

/// Says of each target in effect that nobody here can take it back.
fn of_nobody(operation: &Operation, error: &EngineError) -> Vec<PlannedTarget> {
    let each = operation.in_effect().map(|standing| PlannedTarget {
        goes: false,
        comes: false,
        whole_by: None,
        target: standing.target.clone(),
        state: TargetState::CannotComeBack {
            why: with_causes(error),
        },
    });
    each.collect()
}
