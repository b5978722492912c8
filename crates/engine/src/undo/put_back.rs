//! Bringing back what an act has done already: something stands in its way that the plan did not see, and all or nothing was
//! asked for.

use std::collections::HashSet;

use backout_model::{
    Chosen, Key, Operation, OperationId, OutcomeKind, Source, Trigger, TriggerKind, UndoStep, Verb,
};

use super::PartOf;
use crate::{Engine, EngineError, UndoReport};

impl Engine {
    /// Brings back what the steps before took back, the last first. Tells whether all is as it was; if not, the report says which
    /// steps stay done.
    pub(crate) fn put_all_back(&self, report: &mut UndoReport) -> Result<bool, EngineError> {
        for done in report.steps.iter_mut().rev() {
            let Some(by) = done.by else {
                continue;
            };
            if !self.put_back(by)? {
                return Ok(false);
            }
            done.by = None;
            for outcome in &mut done.outcomes {
                let why = "it was put back, since not all could be taken back".to_owned();
                outcome.kind = OutcomeKind::Skipped { why };
            }
        }
        Ok(true)
    }

    /// Takes back one undo or redo that was just done. What it had changed stands as it did before: an undo is undone by what
    /// takes the place of the redo that held it, if one did; a redo by what takes the place of the undo.
    fn put_back(&self, by: OperationId) -> Result<bool, EngineError> {
        let Some(done) = self.store.operation(by)? else {
            return Ok(false);
        };
        let (operation, step, before) = if done.verb == Verb::Redo {
            let subject = self.subject_of(&done)?;
            let step = step_of_redo(&done, &subject);
            (subject, step, done.undoes)
        } else {
            let step = self.whole_work(&done)?.step;
            (done, step, self.store.undone_with(by)?)
        };
        let before = before.map(|id| self.store.operation(id)).transpose()?;
        let before = before.flatten().filter(|it| it.verb.is_reversal());
        let trigger = Trigger::new(TriggerKind::TransactionAbort, Source::Recovery);
        let part_of = PartOf {
            // Nobody asked for it: where nothing held it, it is no act of its own.
            asked: match before.as_ref() {
                Some(before) if before.verb == Verb::Recover => Verb::Redo,
                Some(before) => before.asked.unwrap_or(before.verb),
                None => operation.verb,
            },
            group: before.and_then(|before| before.group),
            plan: None,
            trigger: &trigger,
        };
        let back = self.take_back_patiently(&operation, &step, part_of)?;
        Ok(back.is_complete())
    }
}

/// Makes the step that takes back what a redo brought back of an operation.
fn step_of_redo(redo: &Operation, subject: &Operation) -> UndoStep {
    let brought = redo.in_effect().map(|standing| standing.target.key());
    let brought: HashSet<&Key> = brought.collect();
    let targets = subject.in_effect().map(|standing| &standing.target);
    let targets = targets.filter(|target| brought.contains(target.key()));
    UndoStep {
        id: subject.id,
        with: redo.id,
        targets: targets.cloned().collect(),
        strategy: subject.decision.strategy,
        chosen: Chosen::Named,
    }
}
