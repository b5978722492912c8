//! Undos that failed for good: which, why, what was tried, and what to do next; trying again, and accepting what is left.

use backout_crashpoint::crash_point;
use backout_model::ports::{Durability, Entry, State};
use backout_model::{
    Climbed, Decided, Escalated, Event, Operation, OperationId, OutcomeKind, Rung, Strategy,
    TargetOutcome, Tried, Trigger, Verb,
};
use backout_storage::OperationRef;
use serde::{Deserialize, Serialize};

use super::{LadderError, is_failed};
use crate::{
    Call, Engine, EngineError, Next, RedoWhat, Reply, TakeBack, UndoOptions, UndoReport, UndoWhat,
};

/// What to do with undos that failed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailedCommand {
    /// List them.
    List,
    /// Climb again.
    Retry {
        /// For which; none means all.
        operations: Vec<OperationRef>,
    },
    /// Leave what could not be taken back as it is.
    Accept {
        /// The operation whose undo failed.
        operation: OperationRef,
        /// Who says so, and why.
        decided: Decided,
    },
}

/// An undo that failed and that nobody solved since.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FailedUndo {
    /// The operation that was to go or to come back.
    pub id: OperationId,
    /// Whether an undo or a redo failed.
    pub way: TakeBack,
    /// Its line for people.
    pub summary: String,
    /// How it was to be done.
    pub strategy: Strategy,
    /// What set it off.
    pub trigger: Trigger,
    /// The targets that are not as they were to be, and why.
    pub targets: Vec<TargetOutcome>,
    /// What was tried, in order.
    pub tried: Vec<Tried>,
    /// Whether somebody stands on the ladder at this moment. If not, and the last rung only began, he died on it.
    pub is_climbing: bool,
    /// What to do about it, as programs read it: [`FailedUndo::advice`] says the same.
    pub next: Vec<serde_json::Value>,
}

impl FailedUndo {
    /// Says what to do about it, best first.
    pub fn advice(&self) -> Vec<Next> {
        next_of(self.id, self.way, &self.targets)
    }
}

impl Engine {
    pub(crate) fn look_after_failed(&self, command: FailedCommand) -> Result<Reply, EngineError> {
        match command {
            FailedCommand::List => Ok(Reply::Failed {
                failed: self.failed_undos()?,
            }),
            FailedCommand::Retry { operations } => self.retry(&operations).map(Reply::Undone),
            FailedCommand::Accept { operation, decided } => {
                let id = self.accept_failed(&operation, &decided)?;
                Ok(Reply::Accepted { id })
            }
        }
    }

    /// Lists the undos that failed and that nobody solved since. What a look finds as before is solved.
    pub fn failed_undos(&self) -> Result<Vec<FailedUndo>, EngineError> {
        let mut failed = Vec::new();
        for operation in self.store.failed()? {
            failed.extend(self.failed_undo(&operation)?);
        }
        Ok(failed)
    }

    fn failed_undo(&self, operation: &Operation) -> Result<Option<FailedUndo>, EngineError> {
        let mut climb: Vec<(Escalated, backout_model::Timestamp)> = Vec::new();
        for record in self.store.records_of(operation.id)? {
            if let Event::Escalated(escalated) = record.event {
                if escalated.is_first {
                    climb.clear();
                }
                climb.push((*escalated, record.at));
            }
        }
        let Some((last, _)) = climb.last() else {
            return Ok(None);
        };
        let in_effect = |target: &TargetOutcome| {
            let mut standing = operation.in_effect();
            standing.any(|standing| standing.target == target.target)
        };
        let mut targets = last.outcomes.clone();
        targets.retain(|it| !it.kind.is_complete() && in_effect(it));
        if !targets.iter().any(is_failed) && last.rung == Rung::Retry
            || targets.is_empty()
            || self.is_as_before(operation, &targets)
        {
            return Ok(None);
        }
        let mut tried: Vec<Tried> = Vec::new();
        for (escalated, at) in &climb {
            tried.retain(|it| it.rung != escalated.rung);
            tried.push(escalated.tried(*at));
        }
        let subject = self.subject_of(operation)?;
        let way = if matches!(operation.verb, Verb::Undo | Verb::Recover) {
            TakeBack::Redo
        } else {
            TakeBack::Undo
        };
        let is_climbing = matches!(last.climbed, Climbed::Began) && self.is_at_it(last);
        Ok(Some(FailedUndo {
            id: subject.id,
            way,
            summary: subject.summary.clone(),
            strategy: last.strategy,
            trigger: last.trigger.clone(),
            next: told(next_of(subject.id, way, &targets)),
            targets,
            tried,
            is_climbing,
        }))
    }

    fn is_at_it(&self, last: &Escalated) -> bool {
        last.owner != self.store.this_process() && self.store.is_alive(&last.owner)
    }

    /// Tells whether what could not be taken back is as before all the same. What cannot be looked at is not. What a redo brought
    /// is the redo's: the first effect is gone for ever.
    fn is_as_before(&self, operation: &Operation, targets: &[TargetOutcome]) -> bool {
        let mut examined = Vec::new();
        for holder in operation.holders() {
            let Ok(effect) = self.store.effect(holder) else {
                return false;
            };
            let found = match self.driver_of(&effect) {
                Ok(driver) => driver.examine(&effect, false),
                Err(_) => return false,
            };
            let Ok(found) = found else {
                return false;
            };
            let is_held = |it: &backout_model::ports::Examined| {
                operation.in_effect().any(|standing| {
                    standing.target == it.target
                        && standing.held_by.unwrap_or(operation.id) == holder
                })
            };
            examined.extend(found.into_iter().filter(is_held));
        }
        targets.iter().all(|target| {
            let mut found = examined.iter().filter(|it| it.target == target.target);
            found.next().is_some_and(|it| it.state == State::Before)
        })
    }

    /// Climbs again for undos that failed: these, or all.
    fn retry(&self, operations: &[OperationRef]) -> Result<UndoReport, EngineError> {
        let mut failed = self.failed_undos()?;
        if !operations.is_empty() {
            let ids = self.resolved(operations)?;
            let known: Vec<OperationId> = failed.iter().map(|it| it.id).collect();
            if let Some(id) = ids.iter().copied().find(|id| !known.contains(id)) {
                return Err(LadderError::NotFailed { id }.into());
            }
            failed.retain(|it| ids.contains(&it.id));
        }
        let mut report = UndoReport::default();
        let mut hindered = None;
        for one in failed {
            match self.retry_one(&one) {
                Ok(done) => add(&mut report, done),
                Err(EngineError::Partial(done)) => add(&mut report, *done),
                // The others are not held up.
                Err(error @ EngineError::Conflicts { .. }) => hindered = hindered.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        match hindered {
            Some(error) if report.steps.is_empty() => Err(error),
            None if report.is_complete() => Ok(report),
            Some(_) | None => Err(EngineError::Partial(Box::new(report))),
        }
    }

    fn retry_one(&self, failed: &FailedUndo) -> Result<UndoReport, EngineError> {
        let options = UndoOptions {
            committed: true,
            trigger: Some(Trigger {
                source: super::asker(self.context.agent.as_ref()),
                ..failed.trigger.clone()
            }),
            ..UndoOptions::default()
        };
        let named = vec![OperationRef::Prefix(failed.id.to_string())];
        match failed.way {
            TakeBack::Undo => self.undo(&UndoWhat::Operations(named), &options),
            TakeBack::Redo => self.redo(&RedoWhat::Operations(named), &options),
        }
    }

    /// Records that what could not be taken back stays, who says so, and why.
    pub fn accept_failed(
        &self,
        reference: &OperationRef,
        decided: &Decided,
    ) -> Result<OperationId, EngineError> {
        let id = self.store.resolve(reference)?;
        let mut open = Vec::new();
        for operation in self.store.failed()? {
            if operation.id == id || self.subject_of(&operation)?.id == id {
                open.push(operation);
            }
        }
        if open.is_empty() {
            return Err(LadderError::NotFailed { id }.into());
        }
        for operation in &open {
            let agent = self.subject_of(operation)?.agent;
            if self.is_own(agent.as_ref())? {
                return Err(LadderError::Own { id }.into());
            }
        }
        let mut events = Vec::new();
        for operation in open {
            let Some(last) = self.last_rung(operation.id)? else {
                continue;
            };
            events.push(Event::Escalated(Box::new(Escalated {
                rung: Rung::Accept,
                climbed: Climbed::Helped,
                times: 0,
                is_first: false,
                owner: self.store.this_process(),
                decided: Some(decided.clone()),
                ..last
            })));
        }
        crash_point("ladder.accepting");
        self.store.append(&Entry::of(events), Durability::Power)?;
        crash_point("ladder.accepted-by-hand");
        Ok(id)
    }
}

/// Says what to do about an undo that failed, best first.
fn next_of(id: OperationId, way: TakeBack, targets: &[TargetOutcome]) -> Vec<Next> {
    let again = match way {
        TakeBack::Undo => Call::undo(&[id]),
        TakeBack::Redo => Call::redo(&[id]),
    };
    let mut next = vec![Next::naming(
        "put right what stands in the way, then {}, or climb again with {}",
        [again, Call::of("failed").option("retry").operation(id)],
    )];
    let is_conflict = |it: &TargetOutcome| matches!(it.kind, OutcomeKind::Conflict { .. });
    if way == TakeBack::Undo && targets.iter().any(is_conflict) {
        next.push(Next::naming(
            "or take it back over what somebody else made of it with {}, which keeps that",
            [Call::undo(&[id]).option("force")],
        ));
    }
    if let Some(path) = targets.iter().find_map(|it| it.target.file()) {
        next.push(Next::naming(
            "see which other versions there are with {}",
            [Call::log_of(path)],
        ));
    }
    let accept = Call::of("failed").option("accept").operation(id);
    next.push(Next::naming(
        "or leave it as it is with {}",
        [accept.option("why").blank("TEXT")],
    ));
    next
}

fn told(next: Vec<Next>) -> Vec<serde_json::Value> {
    let told = next.into_iter().map(serde_json::to_value);
    // A sentence with its calls is always JSON.
    told.filter_map(Result::ok).collect()
}

fn add(report: &mut UndoReport, done: UndoReport) {
    report.act = report.act.or(done.act);
    report.steps.extend(done.steps);
}
