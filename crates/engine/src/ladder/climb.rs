//! One climb: rung after rung, each recorded, until the operation is taken back or only a person can help.

use backout_crashpoint::crash_point;
use backout_model::ladder::{Height, NextRung};
use backout_model::ports::{Durability, Entry};
use backout_model::{
    Climbed, Decided, Escalated, Event, Failure, Operation, OperationId, Rung, Rungs, Severity,
    Source, Target, Trigger, UndoStep,
};

use super::Attempt;
use crate::lifecycle::with_causes;
use crate::{Engine, EngineError, UndoneStep};

/// What could not be taken back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fallen<'f> {
    pub(super) operation: &'f Operation,
    pub(super) step: &'f UndoStep,
    pub(super) trigger: &'f Trigger,
}

/// Tries once more.
pub(super) type Again<'a> = &'a dyn Fn() -> Result<Attempt, EngineError>;

/// A climb under way.
struct Climb<'e> {
    engine: &'e Engine,
    fallen: Fallen<'e>,
    attempt: Attempt,
    retried: u32,
    /// Whether it is recorded how the lowest rung ended.
    is_told: bool,
    /// Why nothing more can be recorded, if so: then nothing more is done either.
    unrecorded: Option<String>,
    undone: Vec<backout_model::Tried>,
    is_accepted: bool,
}

impl Engine {
    /// Climbs the ladder for a step that failed. Gives the step as it is then.
    pub(super) fn climb(
        &self,
        fallen: Fallen<'_>,
        first: Attempt,
        again: Again<'_>,
    ) -> Result<UndoneStep, EngineError> {
        let before = self.last_rung(fallen.operation.id)?;
        if let Some(before) = before {
            let is_accepted = !before.is_open() && before.rung == Rung::Accept;
            // What nobody asked for does not call hooks and people again and again.
            if is_accepted || before.is_open() && fallen.trigger.source == Source::Recovery {
                return Ok(UndoneStep {
                    is_accepted,
                    ..first.undone
                });
            }
        }
        let mut climb = Climb {
            engine: self,
            fallen,
            attempt: first,
            retried: 0,
            is_told: false,
            unrecorded: None,
            undone: Vec::new(),
            is_accepted: false,
        };
        climb.go(again)?;
        Ok(climb.end())
    }

    /// Says which rungs there are for a severity and such targets.
    pub(super) fn rungs(&self, severity: Severity, targets: &[Target]) -> Rungs {
        let usual = *self.settings.ladder.rungs(severity);
        let hooks = self.settings.escalation.as_ref();
        hooks.map_or(usual, |hooks| hooks.rungs(severity, targets, usual))
    }

    /// Gives the last rung that somebody stood on for an operation.
    pub(super) fn last_rung(&self, id: OperationId) -> Result<Option<Escalated>, EngineError> {
        let newest_first = self.store.records_of(id)?.into_iter().rev();
        let mut rungs = newest_first.filter_map(|record| {
            if let Event::Escalated(escalated) = record.event {
                Some(*escalated)
            } else {
                None
            }
        });
        Ok(rungs.next())
    }
}

impl Climb<'_> {
    fn go(&mut self, again: Again<'_>) -> Result<(), EngineError> {
        let severity = self.fallen.trigger.severity;
        let rungs = self.engine.rungs(severity, &self.fallen.step.targets);
        let mut tried = Vec::new();
        loop {
            let next = rungs.next(Height {
                may_pass: self.attempt.may_pass,
                retried: self.retried,
                tried: &tried,
            });
            match next {
                NextRung::Retry { pause_ms } => {
                    if !self.engine.waited(pause_ms) {
                        self.attempt.undone.is_stopped = true;
                        return Ok(());
                    }
                    crash_point("ladder.waited");
                    self.attempt = again()?;
                    self.retried += 1;
                    if !self.attempt.has_failed() {
                        if self.is_solved() {
                            self.note(Rung::Retry, Climbed::Helped, Durability::Process);
                        }
                        return Ok(());
                    }
                }
                NextRung::Climb(rung) => {
                    self.tell_retries();
                    if self.unrecorded.is_some() {
                        return Ok(());
                    }
                    tried.push(rung);
                    self.stand_on(rung, again)?;
                    if self.is_over() {
                        return Ok(());
                    }
                }
                NextRung::Person => {
                    self.tell_retries();
                    return Ok(());
                }
            }
        }
    }

    fn is_solved(&self) -> bool {
        self.attempt.undone.is_complete()
    }

    fn is_over(&self) -> bool {
        self.is_solved() || self.attempt.undone.is_stopped || self.unrecorded.is_some()
    }

    /// Records that it failed, and that trying again did not help.
    fn tell_retries(&mut self) {
        if self.is_told {
            return;
        }
        let climbed = if self.retried == 0 {
            let why = "its reason does not pass by itself".to_owned();
            Climbed::NotPossible { why }
        } else {
            let why = self.why();
            Climbed::DidNotHelp { why }
        };
        self.note(Rung::Retry, climbed, Durability::Power);
        crash_point("ladder.failed");
    }

    fn stand_on(&mut self, rung: Rung, again: Again<'_>) -> Result<(), EngineError> {
        let climbed = match rung {
            // The lowest is stood on before all others.
            Rung::Retry => return Ok(()),
            Rung::Fallback => self.fall_back(again)?,
            Rung::Restore => self.restore(again)?,
            Rung::Alert => self.alert(),
            Rung::Accept => {
                self.is_accepted = true;
                Climbed::Helped
            }
        };
        let durability = match climbed {
            Climbed::NotPossible { .. } => Durability::Process,
            Climbed::Began | Climbed::Helped | Climbed::DidNotHelp { .. } => Durability::Power,
        };
        self.note(rung, climbed, durability);
        match rung {
            Rung::Retry | Rung::Fallback => crash_point("ladder.fallen-back"),
            Rung::Restore => crash_point("ladder.restore-told"),
            Rung::Alert => crash_point("ladder.alert-told"),
            Rung::Accept => crash_point("ladder.accepted"),
        }
        Ok(())
    }

    /// Looks for the same bytes elsewhere, and tries again with them.
    fn fall_back(&mut self, again: Again<'_>) -> Result<Climbed, EngineError> {
        let found = self.engine.brought_from_elsewhere(self.fallen.step)?;
        crash_point("ladder.found-elsewhere");
        match found {
            Err(why) => Ok(Climbed::NotPossible { why }),
            Ok(_) => self.tried_again(again, None),
        }
    }

    /// Calls the environment-restore hook, and looks. However the hook ended, only the look counts.
    fn restore(&mut self, again: Again<'_>) -> Result<Climbed, EngineError> {
        let failure = self.failure();
        let hook = self.engine.settings.escalation.clone();
        let Some(hook) = hook.filter(|hook| hook.restores(&failure)) else {
            let why = "there is no hook that restores the environment".to_owned();
            return Ok(Climbed::NotPossible { why });
        };
        self.note(Rung::Restore, Climbed::Began, Durability::Power);
        if let Some(why) = self.unrecorded.clone() {
            return Ok(Climbed::NotPossible { why });
        }
        crash_point("ladder.restore-began");
        let ended = hook.restore(&failure);
        crash_point("ladder.restore-ended");
        self.tried_again(again, Some(ended))
    }

    fn tried_again(
        &mut self,
        again: Again<'_>,
        hook: Option<Result<(), String>>,
    ) -> Result<Climbed, EngineError> {
        self.attempt = again()?;
        if self.is_solved() {
            return Ok(Climbed::Helped);
        }
        let why = self.why();
        Ok(Climbed::DidNotHelp {
            why: match hook {
                None => why,
                Some(Ok(())) => format!("the hook ended well, and did not help: {why}"),
                Some(Err(said)) => format!("{said}; {why}"),
            },
        })
    }

    fn alert(&mut self) -> Climbed {
        let failure = self.failure();
        let hook = self.engine.settings.escalation.clone();
        let Some(hook) = hook.filter(|hook| hook.alerts(&failure)) else {
            let why = "there is no way to tell a person".to_owned();
            return Climbed::NotPossible { why };
        };
        self.note(Rung::Alert, Climbed::Began, Durability::Power);
        if let Some(why) = self.unrecorded.clone() {
            return Climbed::NotPossible { why };
        }
        crash_point("ladder.alert-began");
        match hook.alert(&failure) {
            Ok(()) => Climbed::Helped,
            Err(why) => Climbed::DidNotHelp { why },
        }
    }

    /// Says in words what is wrong now.
    fn why(&self) -> String {
        let mut outcomes = self.attempt.undone.outcomes.iter();
        let found = outcomes.find(|outcome| !outcome.kind.is_complete());
        let said = found.map(|it| format!("`{}`: {}", it.target, it.kind));
        said.unwrap_or_default()
    }

    fn failure(&self) -> Failure {
        let operation = self.fallen.operation;
        Failure {
            operation: operation.id,
            verb: operation.verb,
            summary: operation.summary.clone(),
            agent: operation.agent.clone(),
            task: operation.task.clone(),
            strategy: self.fallen.step.strategy,
            trigger: self.fallen.trigger.clone(),
            targets: self.attempt.undone.outcomes.clone(),
            tried: self.undone.clone(),
        }
    }

    /// Records a rung. If that fails, nobody climbs on.
    fn note(&mut self, rung: Rung, climbed: Climbed, durability: Durability) {
        if self.unrecorded.is_some() {
            return;
        }
        let decided = (rung == Rung::Accept).then(|| Decided {
            by: "the settings of the ladder".to_owned(),
            why: None,
        });
        let escalated = Escalated {
            id: self.fallen.operation.id,
            rung,
            climbed,
            times: if rung == Rung::Retry { self.retried } else { 0 },
            is_first: !self.is_told,
            strategy: self.fallen.step.strategy,
            trigger: self.fallen.trigger.clone(),
            outcomes: self.attempt.undone.outcomes.clone(),
            owner: self.engine.store.this_process(),
            decided,
        };
        self.is_told = true;
        let tried = escalated.tried(self.engine.now());
        let event = Event::Escalated(Box::new(escalated));
        let entry = Entry::of(vec![event]);
        match self.engine.store.append(&entry, durability) {
            Ok(_) => {
                // What began and what came of it is one thing to tell.
                self.undone.retain(|it| it.rung != rung);
                self.undone.push(tried);
            }
            Err(error) => self.unrecorded = Some(with_causes(&error)),
        }
    }

    /// Gives the step as it is now.
    fn end(self) -> UndoneStep {
        let mut undone = self.attempt.undone;
        undone.tried = self.undone;
        undone.is_accepted = self.is_accepted && self.unrecorded.is_none();
        undone.notes.extend(
            self.unrecorded
                .map(|why| format!("what was done about it could not be recorded: {why}")),
        );
        undone
    }
}
