//! What the gates say of what a command did, when it is over.
//!
//! Nobody can check a call of `write`, and a command's work cannot wait in the world for a decision: what the gates deny or ask
//! about is taken back as a whole. Until then the command counts as *interrupted*, so that a death in between is told.

use std::sync::Arc;

use backout_crashpoint::crash_point;
use backout_files::Settled;
use backout_model::ports::{
    AppliedChange, Durability, Entry, NewContent, Reason, Ruling, StagedChange,
};
use backout_model::{
    CommandEnd, Completion, Effect, Event, OperationId, Source, Status, Target, TargetPath,
    Trigger, TriggerKind, Verb,
};

use super::part::decision;
use super::watch::{Watch, end_the_rest};
use super::{Part, RunReport};
use crate::{Engine, EngineError, GateError, OperationRef, UndoOptions, UndoWhat};

/// What the gates make of a command that is over.
#[derive(Debug, Default)]
pub(crate) struct Gated {
    /// What is told with it.
    pub(crate) warnings: Vec<String>,
    /// Why it cannot stay.
    reasons: Vec<Reason>,
    /// Whether somebody wants to see how it turns out.
    is_watched: bool,
    /// Whether somebody stopped the checks.
    is_stopped: bool,
}

impl Gated {
    /// What is recorded of it with the command: who asks the journal later finds why it was taken back.
    pub(super) fn recorded(&self) -> Vec<String> {
        Reason::told(&self.reasons)
    }

    /// Tells whether they have nothing to say.
    pub(super) const fn is_silent(&self) -> bool {
        self.is_done() && self.warnings.is_empty()
    }

    /// Why it cannot stay.
    pub(crate) fn reasons(&self) -> &[Reason] {
        &self.reasons
    }

    /// The same, to keep.
    pub(crate) fn into_reasons(self) -> Vec<Reason> {
        self.reasons
    }

    /// Tells whether it is done when it is recorded.
    pub(crate) const fn is_done(&self) -> bool {
        self.reasons.is_empty() && !self.is_watched
    }
}

impl Engine {
    /// Tells whether the gates are asked about what a command wrote.
    pub(super) fn is_gated(&self, settled: &Settled) -> bool {
        !self.settings.gates.is_empty() && !settled.is_nothing
    }

    /// Asks the gates about what a command wrote; `through` are the links by which it did. Who stops them has found nothing
    /// out, and what nobody has looked at does not stay.
    pub(super) fn ask_about(
        &self,
        summary: &str,
        settled: &Settled,
        through: Vec<(TargetPath, TargetPath)>,
        (watch, part, end): (&Watch, Part, &CommandEnd),
    ) -> Result<Gated, EngineError> {
        if !self.is_gated(settled) {
            return Ok(Gated::default());
        }
        // What was meant for the command, or for what it left running, is not meant for its checks.
        watch.forget_asked(end);
        let mut gated = self.ruled((Verb::Run, summary), settled, through)?;
        if watch.is_asked_to_end() {
            let what = match part {
                Part::Command { .. } => "it",
                Part::Background => "what it left running",
            };
            let found = format!("somebody stopped {what} before the checks were over");
            gated.reasons = vec![Reason::new("Ctrl-C", found)];
            gated.is_stopped = true;
        }
        Ok(gated)
    }

    /// Asks the gates about what was written without them.
    pub(crate) fn ruled(
        &self,
        (verb, summary): (Verb, &str),
        settled: &Settled,
        through: Vec<(TargetPath, TargetPath)>,
    ) -> Result<Gated, EngineError> {
        if !self.is_gated(settled) {
            return Ok(Gated::default());
        }
        let effect = Effect {
            recipe: settled.recipe.clone(),
            completion: Some(settled.completion.clone()),
        };
        let happened = Arc::clone(&self.files).happened(&effect, through)?;
        let decision = decision();
        let ruling = self.ruling_on(&StagedChange {
            verb,
            has_happened: true,
            summary,
            agent: self.context.agent.as_ref(),
            task: self.context.task.as_ref(),
            targets: &settled.targets,
            decision: &decision,
            staged: &*happened,
        });
        let mut gated = Gated {
            is_watched: self.is_watched(verb, &settled.targets),
            ..Gated::default()
        };
        match ruling {
            Ruling::Allow => {}
            Ruling::Warn { reasons } => gated.warnings = Reason::told(&reasons),
            Ruling::Ask { reasons, .. } | Ruling::Deny { reasons } => gated.reasons = reasons,
        }
        Ok(gated)
    }

    /// Records a command that the gates do not simply let be, has them watch it, and takes it back if they say no.
    pub(super) fn record_gated(
        &self,
        mut report: RunReport,
        gated: Gated,
        (captured, contents): (Event, Vec<NewContent>),
        (completion, targets): (Completion, &[Target]),
        watch: &mut Watch,
    ) -> Result<RunReport, EngineError> {
        let id = report.id;
        let end = if report.status == Status::Applied {
            let completion = completion.clone();
            Event::Applied { id, completion }
        } else {
            Event::Commit { id }
        };
        let events = vec![captured, Event::Interrupted { id, completion }];
        let entry = Entry { events, contents };
        // From here on nobody asks us any more before he writes, and the verdict is not out before the watch is over.
        let _held = self.lease_for_verdict(targets);
        report.is_stopped = gated.is_stopped;
        self.store.append(&entry, Durability::Power)?;
        crash_point("run.gated");
        let mut reasons = gated.reasons;
        if reasons.is_empty() {
            let change = AppliedChange {
                id,
                verb: Verb::Run,
                summary: &report.summary,
                agent: self.context.agent.as_ref(),
                task: self.context.task.as_ref(),
                targets,
            };
            let is_stopped = || watch.is_asked_to_end();
            match self.watched_until(&change, &is_stopped) {
                Ok(()) => {}
                Err(EngineError::Gate(GateError::Failed { reasons: found })) => reasons = found,
                Err(error) if error.is_stop() => {
                    report.is_stopped = true;
                    let found = "somebody stopped it before the watch was over";
                    reasons = vec![Reason::new("Ctrl-C", found)];
                }
                Err(error) => return Err(error),
            }
        }
        if reasons.is_empty() {
            self.store
                .append(&Entry::of(vec![end]), Durability::Power)?;
        } else {
            report.status = Status::Interrupted;
            report.reasons = reasons;
            let left = self.end_what_is_left(&mut report, watch)?;
            self.take_back_gated(&mut report, left)?;
        }
        crash_point("run.committed");
        self.forget_log(id);
        Ok(report)
    }

    /// Ends what a command left running before it is taken back: what that wrote afterwards would be in no operation. What it
    /// wrote until then is one; gives it, if it is there.
    fn end_what_is_left(
        &self,
        report: &mut RunReport,
        watch: &mut Watch,
    ) -> Result<Option<OperationId>, EngineError> {
        if watch.next.is_none() {
            return Ok(None);
        }
        end_the_rest();
        crash_point("run.rest-ended");
        report.notes.push(format!(
            "what it left running was ended before it was taken back: {}",
            report.end.survivors.join(", ")
        ));
        let left = self.watch_rest(watch)?;
        // What the gates said no to is gone already.
        let left = left.filter(|left| left.status != Status::Undone);
        Ok(left.map(|left| left.id))
    }

    pub(crate) fn take_back_gated(
        &self,
        report: &mut RunReport,
        left: Option<OperationId>,
    ) -> Result<(), EngineError> {
        let named = [Some(report.id), left].into_iter().flatten();
        let named = named.map(|id| OperationRef::Prefix(id.to_string()));
        let what = UndoWhat::Operations(named.collect());
        let rules: Vec<&str> = report.reasons.iter().map(|it| it.rule.as_str()).collect();
        let rule = rules.join("; ");
        let trigger = if report.is_stopped {
            Trigger::new(TriggerKind::ManualAbort, Source::Person)
        } else {
            Trigger::new(TriggerKind::PolicyViolation, Source::Gate { rule })
        };
        let options = UndoOptions {
            partial: true,
            trigger: Some(trigger),
            ..UndoOptions::default()
        };
        match self.watch.going_back(|| self.undo(&what, &options)) {
            Ok(undone) => {
                report.status = Status::Undone;
                report.undone = Some(undone);
            }
            Err(EngineError::Partial(undone)) => report.undone = Some(*undone),
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
