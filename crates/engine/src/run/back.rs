//! Taking back a command that waits for a decision: with its parts, and without what others built on it.

use std::collections::BTreeMap;

use backout_model::ports::OnConflict;
use backout_model::{
    DependencyReason, History, Operation, OperationId, OutcomeKind, PlanError, Standing,
    TargetOutcome, Trigger,
};
use backout_storage::OperationRef;

use crate::{
    Along, Engine, EngineError, Recovered, RecoveredAs, UndoOptions, UndoReport, UndoWhat,
    UndoneStep,
};

impl Engine {
    /// Takes back a command that waits for a decision, if nothing stands in the way.
    pub(crate) fn roll_back(
        &self,
        id: OperationId,
        on_conflict: OnConflict,
        trigger: Option<Trigger>,
    ) -> Result<Recovered, EngineError> {
        let what = UndoWhat::Operations(vec![OperationRef::Prefix(id.to_string())]);
        let own = self.with_parts(id)?;
        let is_forced = on_conflict == OnConflict::Force;
        let options = UndoOptions {
            on_conflict,
            committed: true,
            others: true,
            // Whoever forces it takes what can be had, and what was built on it goes along.
            partial: is_forced,
            only: (!is_forced).then(|| own.clone()),
            trigger,
            ..UndoOptions::default()
        };
        match self.undo(&what, &options) {
            Ok(report) => self.taken_back_with(id, RecoveredAs::TakenBack, &own, report),
            Err(EngineError::BuiltOn { by }) => {
                let outcomes = self.done_since(&own, &by)?;
                let built_on = by.into_iter().map(|(id, summary)| Along { id, summary });
                Ok(Recovered {
                    built_on: built_on.collect(),
                    ..self.recovered(id, RecoveredAs::Interrupted, None, outcomes)?
                })
            }
            Err(
                EngineError::Plan(
                    PlanError::ChangedNothing { .. } | PlanError::AlreadyUndone { .. },
                )
                | EngineError::UndoneSince { .. },
            ) => self.recovered(id, RecoveredAs::Interrupted, None, Vec::new()),
            Err(EngineError::Conflicts { targets, .. }) => {
                let outcomes = targets.into_iter().map(|refused| {
                    TargetOutcome::new(refused.target, OutcomeKind::Conflict { why: refused.why })
                });
                self.recovered(id, RecoveredAs::Interrupted, None, outcomes.collect())
            }
            Err(EngineError::Partial(report)) => {
                self.taken_back_with(id, RecoveredAs::Interrupted, &own, *report)
            }
            Err(error) => Err(error),
        }
    }

    /// Says what became of a command that was taken back, and of what was built on it and went along.
    fn taken_back_with(
        &self,
        id: OperationId,
        became: RecoveredAs,
        own: &[OperationId],
        report: UndoReport,
    ) -> Result<Recovered, EngineError> {
        let is_own = |step: &UndoneStep| own.contains(&step.id);
        let (own, others): (Vec<_>, Vec<_>) = report.steps.into_iter().partition(is_own);
        let outcomes = own.into_iter().flat_map(|step| step.outcomes).collect();
        let others = others.into_iter().filter(|step| step.by.is_some());
        let along = others.map(|step| Along {
            id: step.id,
            summary: step.summary,
        });
        Ok(Recovered {
            along: along.collect(),
            ..self.recovered(id, became, report.act, outcomes)?
        })
    }

    /// Names a command and all that was done within it.
    fn with_parts(&self, id: OperationId) -> Result<Vec<OperationId>, EngineError> {
        let history = History::new(self.store.connected(&[id])?);
        let mut own = vec![id];
        let mut at = 0;
        while let Some(&of) = own.get(at) {
            let within = history.dependents(of).filter_map(|(part, reason)| {
                let is_part = reason == DependencyReason::Within && !part.verb.is_reversal();
                is_part.then_some(part.id)
            });
            let new: Vec<OperationId> = within.filter(|part| !own.contains(part)).collect();
            own.extend(new);
            at += 1;
        }
        Ok(own)
    }

    /// Says which targets of a command others have written since. Whoever did that was told that it is so: it is not pulled
    /// away from below.
    fn done_since(
        &self,
        own: &[OperationId],
        by: &[(OperationId, String)],
    ) -> Result<Vec<TargetOutcome>, EngineError> {
        let mut later = Vec::with_capacity(by.len());
        for (id, summary) in by {
            if let Some(operation) = self.store.operation(*id)? {
                later.push((operation, summary));
            }
        }
        let mut outcomes = BTreeMap::new();
        for id in own {
            let Some(operation) = self.store.operation(*id)? else {
                continue;
            };
            for Standing { target, .. } in operation.in_effect() {
                let touches = |(later, _): &&(Operation, &String)| {
                    let mut theirs = later.in_effect();
                    theirs.any(|theirs| theirs.target.overlap(target).is_some())
                };
                let kind = match later.iter().find(touches) {
                    Some((later, summary)) => OutcomeKind::Conflict {
                        why: format!("{} was done since: {summary}", later.id.short()),
                    },
                    None => OutcomeKind::Skipped {
                        why: "another target cannot be taken back, so nothing was".to_owned(),
                    },
                };
                let outcome = TargetOutcome::new(target.clone(), kind);
                outcomes.entry(target.key().clone()).or_insert(outcome);
            }
        }
        let mut outcomes: Vec<TargetOutcome> = outcomes.into_values().collect();
        let is_written =
            |outcome: &TargetOutcome| matches!(outcome.kind, OutcomeKind::Conflict { .. });
        if let Some((later, summary)) = later.first()
            && !outcomes.iter().any(is_written)
        {
            // Nobody wrote a target again: what was made of them stands in the way.
            let why = format!("{} was built on it: {summary}", later.id.short());
            for outcome in &mut outcomes {
                outcome.kind = OutcomeKind::Skipped { why: why.clone() };
            }
        }
        Ok(outcomes)
    }
}
