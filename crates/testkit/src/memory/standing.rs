//! How operations, their targets and their tasks stand after an undo or a redo.

use backout_model::{
    Below, Key, OperationId, Reach, Standing, Status, TargetOutcome, TaskId, TaskStatus, Verb,
};

use super::state::{Answer, At, Placed, State, all_taken_back};

impl State {
    pub(super) fn undone(
        &mut self,
        at: At,
        (id, by): (OperationId, OperationId),
        outcomes: &[TargetOutcome],
        is_partial: bool,
    ) -> Answer<()> {
        if !is_partial && !all_taken_back(outcomes) {
            return self.status(at, id, Status::Failed);
        }
        let settled = outcomes
            .iter()
            .filter(|outcome| outcome.kind.is_taken_back());
        let settled: Vec<&Key> = settled.map(|outcome| outcome.target.key()).collect();
        if let Some(row) = self.row(id) {
            for placed in &mut row.targets {
                let is_meant = !is_partial || settled.contains(&placed.standing.target.key());
                if is_meant && placed.standing.undone_by.is_none() {
                    placed.standing.undone_by = Some(by);
                }
            }
        }
        self.end_redos(at, id, by)?;
        self.leases.remove(&id);
        if self.has_targets_in_effect(id) {
            self.touch(at, id);
            return Ok(());
        }
        self.status(at, id, Status::Undone)?;
        if let Some(row) = self.row(id) {
            row.undone_by = Some(by);
            row.redone_by = None;
            row.undo_failed = false;
        }
        self.roll_task_back_again(id);
        Ok(())
    }

    /// A redo holds as long as what it brought back does.
    fn end_redos(&mut self, at: At, id: OperationId, by: OperationId) -> Answer<()> {
        let undoes = |id: OperationId| self.operations.get(&id)?.operation.undoes;
        let is_redo_of_it = |redo: &&std::sync::Arc<super::state::Row>| {
            let redo = &redo.operation;
            redo.verb == Verb::Redo
                && redo.status == Status::Committed
                && redo.undoes.and_then(undoes) == Some(id)
        };
        let redos: Vec<OperationId> = self
            .operations
            .values()
            .filter(is_redo_of_it)
            .map(|redo| redo.operation.id)
            .collect();
        let back: Vec<Standing> = self
            .operations
            .get(&id)
            .into_iter()
            .flat_map(|row| &row.targets)
            .map(|placed| placed.standing.clone())
            .filter(Standing::is_in_effect)
            .collect();
        for redo in redos {
            let holds = |key: &Key| {
                back.iter().any(|back| {
                    let other = back.target.key();
                    other == key || (back.held_by == Some(redo) && other.below(key).is_some())
                })
            };
            if let Some(row) = self.row(redo) {
                for placed in &mut row.targets {
                    let standing = &mut placed.standing;
                    if standing.undone_by.is_none() && !holds(standing.target.key()) {
                        standing.undone_by = Some(by);
                    }
                }
            }
            if !self.has_targets_in_effect(redo) {
                self.status(at, redo, Status::Undone)?;
            }
        }
        Ok(())
    }

    fn has_targets_in_effect(&self, id: OperationId) -> bool {
        let row = self.operations.get(&id);
        row.is_some_and(|row| row.has_targets_in_effect())
    }

    /// Notes that something happened to an operation whose status stays.
    fn touch(&mut self, at: At, id: OperationId) {
        if let Some(row) = self.row(id) {
            row.finished = at.now;
        }
    }

    /// An operation that came back is kept, or waits for its task again if that is, or is again, open.
    pub(super) fn redone(
        &mut self,
        at: At,
        id: OperationId,
        by: OperationId,
        targets: Option<&[Standing]>,
    ) -> Answer<()> {
        match targets {
            None => {
                for placed in self.row(id).into_iter().flat_map(|row| &mut row.targets) {
                    placed.standing.undone_by = None;
                    placed.standing.held_by = Some(by);
                }
            }
            Some(targets) => {
                for standing in targets {
                    self.bring_back(at, (id, by), standing)?;
                }
            }
        }
        let task = self.operations.get(&id);
        let task = task.and_then(|row| row.operation.task.clone());
        let row = task.as_ref().and_then(|task| self.tasks.get_mut(task));
        let mut is_open = false;
        if let Some(row) = row {
            if row.task.status == TaskStatus::RolledBack {
                row.task.status = row.was.unwrap_or(row.task.status);
            }
            is_open = row.task.status == TaskStatus::Open;
        }
        let next = if is_open {
            Status::Applied
        } else {
            Status::Committed
        };
        match self.operations.get(&id).map(|row| row.operation.status) {
            Some(status) if status != Status::Undone => self.touch(at, id),
            _ => self.status(at, id, next)?,
        }
        if let Some(row) = self.row(id) {
            row.undone_by = None;
            row.redone_by = Some(by);
            row.operation.place = at.lsn;
        }
        Ok(())
    }

    fn bring_back(
        &mut self,
        at: At,
        (id, by): (OperationId, OperationId),
        brought: &Standing,
    ) -> Answer<()> {
        let key = brought.target.key();
        let of = |placed: &&mut Placed| placed.standing.target.key() == key;
        let targets = self.row(id).into_iter().flat_map(|row| &mut row.targets);
        for placed in targets.filter(of) {
            placed.standing.undone_by = None;
            placed.standing.held_by = brought.held_by;
        }
        // An earlier redo that holds it again is in effect again.
        let Some(holder) = brought.held_by.filter(|holder| *holder != by) else {
            return Ok(());
        };
        let is_above = |placed: &&mut Placed| {
            let above = &placed.standing.target;
            match key.below(above.key()) {
                _ if above.key() == key => true,
                Some(Below::Part) => true,
                Some(Below::Name) => above.reach() == Reach::Tree,
                None => false,
            }
        };
        let targets = self
            .row(holder)
            .into_iter()
            .flat_map(|row| &mut row.targets);
        for placed in targets.filter(is_above) {
            placed.standing.undone_by = None;
        }
        match self.operations.get(&holder).map(|row| row.operation.status) {
            Some(Status::Undone) => self.status(at, holder, Status::Committed),
            _ => Ok(()),
        }
    }

    pub(super) fn finish_task(&mut self, task: &TaskId, status: TaskStatus) {
        let Some(row) = self.tasks.get_mut(task) else {
            return;
        };
        // What it was is remembered: a redo makes it that again.
        if status == TaskStatus::RolledBack && row.task.status != status {
            row.was = Some(row.task.status);
        }
        row.task.status = status;
    }

    /// A task that was rolled back once is rolled back again when nothing of it is left in effect.
    fn roll_task_back_again(&mut self, id: OperationId) {
        let task = self.operations.get(&id);
        let Some(task) = task.and_then(|row| row.operation.task.clone()) else {
            return;
        };
        let is_left = |status: Status| {
            matches!(
                status,
                Status::Armed | Status::Applied | Status::Committed | Status::Interrupted
            )
        };
        let is_at_work = self.operations.values().any(|row| {
            row.operation.task.as_ref() == Some(&task)
                && is_left(row.operation.status)
                && row.has_targets_in_effect()
        });
        if let Some(row) = self.tasks.get_mut(&task)
            && row.task.status != TaskStatus::RolledBack
            && row.was.is_some()
            && !is_at_work
        {
            row.was = Some(row.task.status);
            row.task.status = TaskStatus::RolledBack;
        }
    }
}
