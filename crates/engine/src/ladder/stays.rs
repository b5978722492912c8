//! A write that a check wanted gone and that stays, since something stands in the way: a person has to know.

use backout_model::ports::{Durability, Entry};
use backout_model::{
    Climbed, Escalated, Event, Failure, Operation, OperationId, OutcomeKind, PlanError, Rung,
    Target, TargetOutcome, Trigger,
};

use crate::lifecycle::with_causes;
use crate::{Engine, EngineError};

impl Engine {
    /// Records that an operation could not be taken back, and tells a person if there is a way to: `failed` and `status` have it
    /// until it is gone or somebody accepts it. Tells whether that is recorded.
    pub(crate) fn tell_it_stays(
        &self,
        id: OperationId,
        trigger: Trigger,
        why: &EngineError,
    ) -> bool {
        self.try_to_tell(id, trigger, why).is_ok()
    }

    fn try_to_tell(
        &self,
        id: OperationId,
        trigger: Trigger,
        why: &EngineError,
    ) -> Result<(), EngineError> {
        let unknown = PlanError::Unknown { id };
        let operation = self.store.operation(id)?.ok_or(unknown)?;
        let standing = operation.in_effect().map(|it| it.target.clone());
        let outcomes: Vec<TargetOutcome> = standing.map(|it| outcome_of(it, why)).collect();
        let strategy = operation.decision.strategy;
        let failure = Failure {
            operation: id,
            verb: operation.verb,
            summary: operation.summary.clone(),
            agent: operation.agent.clone(),
            task: operation.task.clone(),
            strategy,
            trigger: trigger.clone(),
            targets: outcomes.clone(),
            tried: Vec::new(),
        };
        let escalated = Escalated {
            id,
            rung: Rung::Alert,
            climbed: self.alerted(&operation, &failure),
            times: 0,
            is_first: true,
            strategy,
            trigger,
            outcomes,
            owner: self.store.this_process(),
            decided: None,
        };
        let event = Event::Escalated(Box::new(escalated));
        self.store
            .append(&Entry::of(vec![event]), Durability::Power)?;
        Ok(())
    }

    fn alerted(&self, operation: &Operation, failure: &Failure) -> Climbed {
        let targets: Vec<Target> = operation.in_effect().map(|it| it.target.clone()).collect();
        let rungs = self.rungs(failure.trigger.severity, &targets);
        let hook = self.settings.escalation.as_ref();
        match hook.filter(|hook| rungs.alert && hook.alerts(failure)) {
            None => Climbed::NotPossible {
                why: "there is no way to tell a person".to_owned(),
            },
            Some(hook) => match hook.alert(failure) {
                Ok(()) => Climbed::Helped,
                Err(why) => Climbed::DidNotHelp { why },
            },
        }
    }
}

/// Says why a target stays.
fn outcome_of(target: Target, why: &EngineError) -> TargetOutcome {
    let kind = if let EngineError::Conflicts { targets, .. } = why {
        match targets.iter().find(|refused| refused.target == target) {
            Some(refused) => OutcomeKind::Conflict {
                why: refused.why.clone(),
            },
            None => OutcomeKind::Skipped {
                why: "another target cannot be taken back, so nothing was".to_owned(),
            },
        }
    } else {
        OutcomeKind::Failed {
            why: with_causes(why),
        }
    };
    TargetOutcome::new(target, kind)
}
