//! Accepting what a dead process left: the operation counts as done, as far as it came.
//!
//! - Of an undo or a redo each target is looked at. It stands for what is as it was to make it, and for no more; if that is
//!   nothing, it counts as not done.
//! - Where nobody can look, the one who accepts says that it was done.
//! - What it took out of a slot has come back, whatever somebody made of it since: there is no second one.

use backout_model::ports::{Driver, Durability, Entry, Examined, State};
use backout_model::{
    Completion, Event, Operation, OperationId, OutcomeKind, Status, Target, TargetOutcome,
    TaskStatus, Verb,
};

use crate::lifecycle::failed_everywhere;
use crate::undo::Work;
use crate::{Engine, EngineError, Recovered, RecoveredAs};

impl Engine {
    /// Accepts what is there: the operation counts as done.
    pub(crate) fn keep(&self, operation: &Operation) -> Result<Recovered, EngineError> {
        self.keep_with(operation, Completion::default())
    }

    /// The same, with what the effect told.
    pub(crate) fn keep_with(
        &self,
        operation: &Operation,
        completion: Completion,
    ) -> Result<Recovered, EngineError> {
        let id = operation.id;
        let work = self.whole_work(operation)?;
        self.put_away(&work)?;
        let about = match operation.undoes {
            Some(about) => self.store.operation(about)?,
            None => None,
        };
        let outcomes = about.as_ref().map(|_| self.outcomes_by_look(&work));
        let is_taken_back = |outcome: &TargetOutcome| outcome.kind.is_taken_back();
        if let Some(outcomes) = outcomes
            .as_ref()
            .filter(|all| !all.iter().any(is_taken_back))
        {
            return self.keep_undone(operation, outcomes.clone());
        }
        let mut events = Vec::new();
        if operation.status != Status::Interrupted {
            events.push(Event::Applied { id, completion });
        }
        let is_open = match &operation.task {
            Some(task) => {
                let task = self.store.task(task)?;
                task.is_some_and(|task| task.status == TaskStatus::Open)
            }
            // An undo or a redo is never part of a task.
            None => false,
        };
        match (operation.status, is_open) {
            (Status::Interrupted, true) => {
                let completion = work.effect.completion.clone().unwrap_or_default();
                events.push(Event::Applied { id, completion });
            }
            (_, true) => {}
            (_, false) => events.push(Event::Commit { id }),
        }
        if let Some((about, outcomes)) = about.zip(outcomes.as_deref()) {
            let first = self.whole_work(&about)?;
            let done = at_the_time(outcomes);
            events.extend(self.what_follows(&first, id, &first.spread(&done))?);
            let not_done = outcomes.iter().filter(|it| !it.kind.is_taken_back());
            events.extend(never_done(id, not_done.map(|it| it.target.clone())));
        } else {
            events.extend(never_done(id, self.not_come_to(&work).into_iter()));
        }
        self.store.append(&Entry::of(events), Durability::Power)?;
        self.recovered(id, RecoveredAs::Kept, None, outcomes.unwrap_or_default())
    }

    /// Puts away what it left beside its targets. A command leaves nothing there that is ours.
    fn put_away(&self, work: &Work<'_>) -> Result<(), EngineError> {
        if work.operation.verb == Verb::Run {
            return Ok(());
        }
        let files = self.as_files(&work.effect)?;
        let effect = files.as_ref().unwrap_or(&work.effect);
        Ok(self.driver_of(effect)?.put_away(effect)?)
    }

    /// Accepts what is there where that is nothing of what an undo or a redo was to make: it counts as not done. What it may
    /// have replaced stays kept under its name.
    fn keep_undone(
        &self,
        operation: &Operation,
        outcomes: Vec<TargetOutcome>,
    ) -> Result<Recovered, EngineError> {
        let id = operation.id;
        let event = Event::Abort {
            id,
            why: "its process died, and nothing is as it was to make it".to_owned(),
            outcomes: Vec::new(),
            trigger: None,
        };
        self.store
            .append(&Entry::of(vec![event]), Durability::Power)?;
        self.recovered(id, RecoveredAs::Kept, None, outcomes)
    }

    /// Lists the targets that a write had not come to: nothing was kept of them, and nothing is to be taken back.
    fn not_come_to(&self, work: &Work<'_>) -> Vec<Target> {
        if work.operation.verb == Verb::Run {
            return Vec::new();
        }
        // Where nobody can look, all of it counts as done.
        let examined = self.looked_at(work).unwrap_or_default();
        let is_left = |found: &Examined| found.state == State::Before;
        let left = work.examined(&examined).into_iter();
        let left = left.filter(|(_, found)| found.is_some_and(is_left));
        left.map(|(target, _)| target).collect()
    }

    /// Looks where each target stands.
    fn looked_at(&self, work: &Work<'_>) -> Result<Vec<Examined>, EngineError> {
        let driver = self.driver_of(&work.effect)?;
        Ok(driver.examine(&work.effect, false)?)
    }

    /// Looks which targets of an undo are as it was to make them.
    fn outcomes_by_look(&self, work: &Work<'_>) -> Vec<TargetOutcome> {
        let examined = match self.looked_at(work) {
            Ok(examined) => examined,
            Err(error) => return failed_everywhere(&work.step.targets, &error),
        };
        let driver = self.driver_of(&work.effect);
        let is_answered = driver.is_ok_and(Driver::keeps_undos_in_place);
        let outcome = |(target, found): (Target, Option<&Examined>)| {
            let has_come = found.is_some_and(|found| found.has_come);
            let is_said = found.is_some_and(|found| found.is_unseen);
            let kind = match found.map(|found| &found.state) {
                Some(State::Other { .. }) if is_said => OutcomeKind::Compensated,
                Some(State::After) if is_answered => OutcomeKind::Compensated,
                Some(State::After) => OutcomeKind::Restored,
                Some(State::Before) if has_come => OutcomeKind::Incomplete {
                    why: "somebody removed it since".to_owned(),
                },
                Some(State::Before) => OutcomeKind::Skipped {
                    why: "the undo had not come to it".to_owned(),
                },
                Some(State::Other { why }) if has_come => {
                    OutcomeKind::Incomplete { why: why.clone() }
                }
                Some(State::Other { why }) => OutcomeKind::Skipped { why: why.clone() },
                None => OutcomeKind::AlreadyGone,
            };
            TargetOutcome::new(target, kind)
        };
        work.examined(&examined).into_iter().map(outcome).collect()
    }

    /// Tells whether nothing is left to take back of an undo or a redo that did bring something.
    pub(crate) fn was_removed_since(
        &self,
        work: &Work<'_>,
        outcomes: &[TargetOutcome],
    ) -> Result<bool, EngineError> {
        let is_gone = |outcome: &TargetOutcome| outcome.kind == OutcomeKind::AlreadyGone;
        Ok(work.operation.verb.is_reversal()
            && outcomes.iter().all(is_gone)
            && self
                .driver_of(&work.effect)?
                .examine(&work.effect, false)?
                .iter()
                .any(|it| it.has_come))
    }
}

/// Says what an undo did to each target when it did it: what somebody made of that since is not part of it.
fn at_the_time(outcomes: &[TargetOutcome]) -> Vec<TargetOutcome> {
    let each = outcomes.iter().map(|outcome| {
        if let OutcomeKind::Incomplete { .. } = outcome.kind {
            return TargetOutcome::new(outcome.target.clone(), OutcomeKind::Restored);
        }
        outcome.clone()
    });
    each.collect()
}

/// Says of what is kept half done which targets it has nothing to do with: taking it back does not touch them.
fn never_done(id: OperationId, never: impl Iterator<Item = Target>) -> Option<Event> {
    let never = never.map(|target| TargetOutcome::new(target, OutcomeKind::AlreadyGone));
    let never: Vec<TargetOutcome> = never.collect();
    (!never.is_empty()).then_some(Event::Undone {
        id,
        by: id,
        outcomes: never,
        is_partial: true,
    })
}
