//! Acts that were left half-way: an undo, a redo or a rollback of several operations whose process died between two of them.
//!
//! Each step is whole, so recovery finds nothing to settle; yet somebody asked for all of it. What the act was to do is durable
//! with its first step, what it has done is in the journal: the rest is told, once by the next command that writes, and by
//! `status` until it is done, taken back, or kept so (`recover --keep`).

use std::collections::HashMap;

use backout_model::ports::OpenAct;
use backout_model::{ActPlan, Operation, OperationId, TaskStatus, Verb};

use super::preview::{Planned, way_of};
use crate::{ActLeft, DoAgain, Engine, EngineError, TakeBack, UndoOptions, UndoReport};

impl Planned {
    /// Gives what is written down of a plan before its first step; none if that is all of it.
    pub(super) fn act_plan(&self, options: &UndoOptions) -> Option<ActPlan> {
        let steps: Vec<OperationId> = self.plan.steps.iter().map(|step| step.id).collect();
        let is_part = self.plan.steps.iter().any(|step| {
            let all = self.history.get(step.id).map(|it| it.in_effect().count());
            all.is_some_and(|all| step.targets.len() < all)
        });
        let is_chosen = !options.selection.is_everything();
        let task = self.task.clone().filter(|_| !is_chosen);
        // A task ends when its last operation is taken back, and that is one more step.
        (steps.len() > 1 || task.is_some()).then_some(ActPlan {
            steps,
            task,
            is_part,
        })
    }
}

impl Engine {
    /// Notes that whoever asked for an act knows how it ended.
    pub(super) fn tell_end(
        &self,
        report: &UndoReport,
        plan: Option<&ActPlan>,
        ended: &Result<bool, EngineError>,
    ) {
        let (Some(act), Some(plan)) = (report.act, plan) else {
            return;
        };
        match ended {
            // The record that the task is rolled back comes last.
            Ok(true) if plan.task.is_some() && report.is_complete() => {}
            Ok(_) | Err(EngineError::Stopped(_)) => self.end_act(act),
            Err(_) => self.abandon(act),
        }
    }

    /// Takes the mark of an act away. If that fails somebody will find it, and hold it against the journal.
    pub(crate) fn end_act(&self, act: OperationId) {
        if self.store.end_act(act).is_err() {
            self.abandon(act);
        }
    }

    /// Lists the acts that were left half-way and that nobody has decided about.
    pub(crate) fn acts_left(&self) -> Result<Vec<ActLeft>, EngineError> {
        let mut left = Vec::new();
        for open in self.left_open()? {
            left.extend(self.act_left(open.id)?);
        }
        Ok(left)
    }

    /// Tells whoever writes next of the acts that were left half-way, once, and forgets those that came to an end.
    pub(crate) fn tell_acts_left(&self) -> Result<(), EngineError> {
        for open in self.left_open()? {
            match self.act_left(open.id)? {
                Some(left) if !open.is_told => {
                    if self.store.tell_act(open.id)? {
                        self.note_act_left(left);
                    }
                }
                Some(_) => {}
                None => self.store.end_act(open.id)?,
            }
        }
        Ok(())
    }

    /// Leaves an act as far as it came. Says no if it was not left half-way.
    pub(crate) fn keep_act(&self, act: OperationId) -> Result<bool, EngineError> {
        let is_left = self.acts_left()?.iter().any(|left| left.act == act);
        if is_left {
            self.store.end_act(act)?;
        }
        Ok(is_left)
    }

    fn left_open(&self) -> Result<Vec<OpenAct>, EngineError> {
        let mut open = self.store.open_acts()?;
        open.retain(|act| self.is_abandoned(act.id) || !self.store.is_alive(&act.owner));
        Ok(open)
    }

    /// Says how far an act came; none if it was done or taken back as a whole.
    fn act_left(&self, act: OperationId) -> Result<Option<ActLeft>, EngineError> {
        let (Some(plan), Some(first)) = (self.store.plan_of(act)?, self.store.operation(act)?)
        else {
            return Ok(None);
        };
        let mut done: HashMap<OperationId, usize> = HashMap::new();
        for id in self.members(&first)? {
            let member = self.store.operation(id)?;
            if let Some(about) = member.and_then(|member| member.undoes) {
                *done.entry(about).or_default() += 1;
            }
        }
        let number = done.values().sum();
        let mut rest = Vec::new();
        for id in &plan.steps {
            // One operation may take several steps.
            if let Some(steps) = done.get_mut(id).filter(|steps| **steps > 0) {
                *steps -= 1;
                continue;
            }
            if let Some(operation) = self.store.operation(*id)?
                && operation.status.is_in_effect()
                && !self.is_taken_since(&operation, &first)?
            {
                rest.push(operation);
            }
        }
        let task = match &plan.task {
            Some(task) => self.store.task(task)?,
            None => None,
        };
        let task = task.filter(|task| task.status != TaskStatus::RolledBack);
        if number == 0 || rest.is_empty() && task.is_none() {
            return Ok(None);
        }
        let verb = first.asked.unwrap_or(first.verb);
        Ok(Some(ActLeft {
            act,
            verb,
            planned: plan.steps.len(),
            done: number,
            rest: self.enough_of(verb, &rest)?,
            task: task.map(|task| task.id),
            is_part: plan.is_part,
        }))
    }

    /// Says what to ask for again when a step of an act died and was put back: all of what was asked for, which need not be
    /// what that step was to do.
    pub(crate) fn do_again(&self, died: &Operation) -> Result<DoAgain, EngineError> {
        let verb = died.asked.unwrap_or(died.verb);
        let plan = self.store.plan_of(died.group.unwrap_or(died.id))?;
        let mut rest = Vec::new();
        for id in plan
            .filter(|plan| !plan.is_part)
            .iter()
            .flat_map(|it| &it.steps)
        {
            let operation = self.store.operation(*id)?;
            rest.extend(operation.filter(|it| it.status.is_in_effect()));
        }
        let operations = self.enough_of(verb, &rest)?;
        if !operations.is_empty() {
            return Ok(DoAgain { verb, operations });
        }
        let subject = self.subject(died.clone())?;
        Ok(DoAgain {
            verb: died.verb,
            operations: vec![subject.unwrap_or(died.id)],
        })
    }

    /// Tells whether a part of an operation was taken back after an act began: then somebody has gone on with it.
    fn is_taken_since(
        &self,
        operation: &Operation,
        first: &Operation,
    ) -> Result<bool, EngineError> {
        for undo in operation.undos() {
            let undo = self.store.operation(undo)?;
            if undo.is_some_and(|undo| undo.lsn > first.lsn) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Names what is enough to go on: what was built on one that is named goes with it.
    pub(super) fn enough_of(
        &self,
        verb: Verb,
        rest: &[Operation],
    ) -> Result<Vec<OperationId>, EngineError> {
        let wanted = if verb == Verb::Redo {
            TakeBack::Redo
        } else {
            TakeBack::Undo
        };
        let mut enough = Vec::new();
        for operation in rest.iter().filter(|it| way_of(it) == wanted) {
            let mut built_on = operation.depends_on.iter();
            let goes_along = wanted == TakeBack::Undo
                && built_on.any(|edge| {
                    edge.reason.is_of_targets() && rest.iter().any(|other| other.id == edge.on)
                });
            if !goes_along {
                enough.push(self.subject_of(operation)?.id);
            }
        }
        enough.dedup();
        Ok(enough)
    }
}
