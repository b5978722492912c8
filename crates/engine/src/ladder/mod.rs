//! What follows an undo that fails: the steps of a plan, in two rounds.
//!
//! - In the first round each step is tried once, so that none waits for another that fails. In the second round those that
//!   failed climb the ladder (`climb`), and those that stood on one that now came back are tried.
//! - A conflict is no failure: it does not climb, and all or nothing holds for it as before.
//! - Each rung is in the journal before the next one begins. Whoever dies on a rung leaves that to be told (`failed`); a hook is
//!   not called again without somebody's word.
//!
//! Not here: which rung comes next (`model::ladder`), how one step is taken (`undo`).

mod climb;
mod error;
mod failed;
mod fallback;
mod stays;

pub use error::LadderError;
pub use failed::{FailedCommand, FailedUndo};

use std::time::Duration;

use backout_model::ladder::{Height, NextRung};
use backout_model::{
    AgentId, History, Operation, OutcomeKind, Source, TargetOutcome, Trigger, TriggerKind, UndoStep,
};

use crate::undo::{PartOf, is_conflict, stands_on_failed};
use crate::{Engine, EngineError, UndoOptions, UndoReport, UndoneStep};
use climb::Fallen;

/// How long somebody who wants to stop waits at most.
const PAUSE_SLICE_MS: u64 = 50;

/// What came of trying once to take something back.
#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    pub(crate) undone: UndoneStep,
    /// Whether the same may work a moment later.
    pub(crate) may_pass: bool,
    /// Whether it was not tried, because it stands on something that is still there.
    pub(crate) is_skipped: bool,
}

impl Attempt {
    pub(crate) const fn of(undone: UndoneStep) -> Self {
        Self {
            undone,
            may_pass: false,
            is_skipped: false,
        }
    }

    /// Tells whether it was tried and did not work. What somebody stopped, or left half-way, has a way of its own.
    fn has_failed(&self) -> bool {
        let undone = &self.undone;
        !undone.is_stopped && undone.half_done.is_none() && undone.outcomes.iter().any(is_failed)
    }
}

const fn is_failed(outcome: &TargetOutcome) -> bool {
    matches!(outcome.kind, OutcomeKind::Failed { .. })
}

impl Engine {
    /// Says what sets an undo off: what the caller says, or that somebody wants it.
    pub(crate) fn set_off_by(&self, options: &UndoOptions) -> Trigger {
        let asks = || Trigger::new(TriggerKind::UserRequest, asker(self.context.agent.as_ref()));
        options.trigger.clone().unwrap_or_else(asks)
    }

    /// Takes the steps of a plan. Says no if something stood in the way that the plan did not see, and all was put back.
    pub(crate) fn take_steps(
        &self,
        history: &History,
        steps: &[UndoStep],
        act: PartOf<'_>,
        options: &UndoOptions,
        report: &mut UndoReport,
    ) -> Result<bool, EngineError> {
        let mut tries = Vec::with_capacity(steps.len());
        for step in steps {
            let Some(operation) = history.get(step.id) else {
                continue;
            };
            let attempt = if stands_on_failed(history, step, report, options.partial) {
                Attempt {
                    is_skipped: true,
                    ..Attempt::of(self.skipped(operation, step)?)
                }
            } else {
                self.attempt(operation, step, part_of(act, report), options)?
            };
            report.steps.push(attempt.undone.clone());
            tries.push((operation, step, attempt));
            if self.is_put_back(tries.len() - 1, options, report)? {
                return Ok(false);
            }
        }
        for (number, (operation, step, attempt)) in tries.into_iter().enumerate() {
            let is_free =
                attempt.is_skipped && !stands_on_failed(history, step, report, options.partial);
            if !is_free && !attempt.has_failed() {
                continue;
            }
            let part_of = part_of(act, report);
            let first = if is_free {
                self.attempt(operation, step, part_of, options)?
            } else {
                attempt
            };
            let undone = if first.has_failed() {
                self.climb_for_rest((operation, step), first, part_of, options)?
            } else {
                first.undone
            };
            if let Some(told) = report.steps.get_mut(number) {
                *told = undone;
            }
            if self.is_put_back(number, options, report)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Climbs for what failed of a step. What of it was done stays done.
    fn climb_for_rest(
        &self,
        (operation, step): (&Operation, &UndoStep),
        first: Attempt,
        part_of: PartOf<'_>,
        options: &UndoOptions,
    ) -> Result<UndoneStep, EngineError> {
        let trigger = part_of.trigger;
        let Some(by) = first.undone.by else {
            let again = || self.attempt(operation, step, part_of, options);
            let fallen = Fallen {
                operation,
                step,
                trigger,
            };
            return self.climb(fallen, first, &again);
        };
        // A part of it is taken back: it stands otherwise now.
        let now = self.store.operation(step.id)?;
        let now = now.unwrap_or_else(|| operation.clone());
        let outcomes = first.undone.outcomes.iter();
        let (rest, mut done): (Vec<_>, Vec<_>) = outcomes.cloned().partition(is_failed);
        let mut left = step.clone();
        left.targets
            .retain(|target| rest.iter().any(|it| it.target == *target));
        let part_of = PartOf {
            group: part_of.group.or(Some(by)),
            ..part_of
        };
        let again = || self.attempt(&now, &left, part_of, options);
        let fallen = Fallen {
            operation: &now,
            step: &left,
            trigger,
        };
        let mut fresh = first.clone();
        fresh.undone.by = None;
        fresh.undone.outcomes = rest;
        let climbed = self.climb(fallen, fresh, &again)?;
        done.extend(climbed.outcomes.iter().cloned());
        done.sort_by(|one, other| one.target.cmp(&other.target));
        Ok(UndoneStep {
            by: Some(by),
            outcomes: done,
            ..climbed
        })
    }

    /// Looks at a step that was just taken: it may be the first, somebody may have stopped it, and a conflict that the plan did
    /// not see brings back what was done before. Tells whether that was so.
    fn is_put_back(
        &self,
        number: usize,
        options: &UndoOptions,
        report: &mut UndoReport,
    ) -> Result<bool, EngineError> {
        let Some(undone) = report.steps.get(number) else {
            return Ok(false);
        };
        let (is_stopped, by) = (undone.is_stopped, undone.by);
        let is_in_the_way = !options.partial && undone.outcomes.iter().any(is_conflict);
        report.act = report.act.or(by);
        if is_stopped {
            return Err(EngineError::Stopped(Box::new(report.clone())));
        }
        Ok(is_in_the_way && self.put_all_back(report)?)
    }

    /// Takes one step on its own, and again where the reason may pass: what was done is put back at once, or not at all.
    pub(crate) fn take_back_patiently(
        &self,
        operation: &Operation,
        step: &UndoStep,
        part_of: PartOf<'_>,
    ) -> Result<UndoneStep, EngineError> {
        let rungs = self.rungs(part_of.trigger.severity, &step.targets);
        let options = UndoOptions::default();
        let mut retried = 0;
        loop {
            let attempt = self.attempt(operation, step, part_of, &options)?;
            let height = Height {
                may_pass: attempt.has_failed() && attempt.may_pass,
                retried,
                tried: &[],
            };
            match rungs.next(height) {
                NextRung::Retry { pause_ms } if self.waited(pause_ms) => retried += 1,
                NextRung::Retry { .. } | NextRung::Climb(_) | NextRung::Person => {
                    return Ok(attempt.undone);
                }
            }
        }
    }

    /// Waits, and tells whether nobody wants to stop.
    fn waited(&self, pause_ms: u64) -> bool {
        let mut left = pause_ms;
        while left > 0 && !self.is_stopped() {
            let slice = left.min(PAUSE_SLICE_MS);
            std::thread::sleep(Duration::from_millis(slice));
            left -= slice;
        }
        !self.is_stopped()
    }
}

pub(crate) fn asker(agent: Option<&AgentId>) -> Source {
    match agent.cloned() {
        Some(agent) => Source::Agent { agent },
        None => Source::Person,
    }
}

fn part_of<'p>(act: PartOf<'p>, report: &UndoReport) -> PartOf<'p> {
    PartOf {
        group: report.act,
        ..act
    }
}
