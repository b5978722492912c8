//! Between applied and committed: gates look whether the world still works, and what they find takes the write back.
//!
//! Whatever is taken back after a gate had seen it, by whomever, is told to that gate: what had reloaded has to reload.
//! Design: `docs/design/checks.md`.

use backout_crashpoint::crash_point;
use backout_model::ports::{AppliedChange, Durability, Reason};
use backout_model::{Target, Verb};

use crate::{Engine, EngineError, GateError, UndoReport};

impl Engine {
    /// Tells whether a gate wants to see how a change of these targets turns out.
    pub(crate) fn is_watched(&self, verb: Verb, targets: &[Target]) -> bool {
        let mut gates = self.settings.gates.iter();
        gates.any(|gate| gate.watches(verb, targets))
    }

    /// Has the gates look at the world after a change. What they find is the error.
    pub(crate) fn watched(&self, change: &AppliedChange<'_>) -> Result<(), EngineError> {
        self.watched_until(change, &|| self.is_stopped())
    }

    /// The same, for one who hears otherwise that somebody wants to stop.
    pub(crate) fn watched_until(
        &self,
        change: &AppliedChange<'_>,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<(), EngineError> {
        crash_point("engine.watching");
        let gates = self.settings.gates.iter();
        let reasons: Vec<Reason> = gates
            .flat_map(|gate| gate.watch(change, is_stopped))
            .collect();
        crash_point("engine.watched");
        if is_stopped() {
            return Err(backout_model::ports::Stopped.into());
        }
        if reasons.is_empty() {
            Ok(())
        } else {
            Err(GateError::Failed { reasons }.into())
        }
    }

    /// Has the gates go by the rules that hold now. Whoever asks for something anew is judged by them: an engine may be open for days.
    pub(crate) fn tell_begins(&self) {
        for gate in &self.settings.gates {
            gate.begins();
        }
    }

    /// Tells the gates that targets are not what they saw any more. Gives what went wrong with that.
    pub(crate) fn tell_taken_back(&self, targets: &[Target]) -> Vec<String> {
        let gates = self.settings.gates.iter();
        gates.flat_map(|gate| gate.taken_back(targets)).collect()
    }

    /// The same of all that an undo or a redo has changed.
    pub(crate) fn told_to_gates(
        &self,
        mut undone: Result<UndoReport, EngineError>,
    ) -> Result<UndoReport, EngineError> {
        let report = match &mut undone {
            Ok(report) => report,
            Err(EngineError::Partial(report) | EngineError::Stopped(report)) => &mut **report,
            Err(_) => return undone,
        };
        if !self.settings.gates.is_empty() {
            let outcomes = report.steps.iter().flat_map(|step| &step.outcomes);
            let changed = outcomes.filter(|outcome| outcome.kind.is_taken_back());
            let targets: Vec<Target> = changed.map(|outcome| outcome.target.clone()).collect();
            report.notes = self.tell_taken_back(&targets);
        }
        undone
    }
}

/// Adds what went wrong when a change was taken back to why it was.
pub(crate) fn told_with(
    cause: EngineError,
    undone: &Result<UndoReport, EngineError>,
) -> EngineError {
    match (cause, undone) {
        (EngineError::Gate(GateError::Failed { mut reasons }), Ok(report)) => {
            let notes = report.notes.iter();
            reasons.extend(notes.map(|note| Reason::new("after it was taken back", note.clone())));
            GateError::Failed { reasons }.into()
        }
        (cause, _) => cause,
    }
}

/// How durable the record is that ends a change: who has watched one does not do so again.
pub(crate) fn durability_of(is_watched: bool, asked: Durability) -> Durability {
    if is_watched { Durability::Power } else { asked }
}
