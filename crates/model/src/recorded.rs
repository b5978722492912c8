//! An operation as the record says it that began it. Every store makes its operations by these.

use crate::gate::Reason;
use crate::{
    Decision, Intent, Lsn, Operation, Proposal, Refusal, Standing, Status, Strategy, Target,
    Timestamp,
};

impl Operation {
    /// An operation that is armed.
    pub fn armed(intent: &Intent, lsn: Lsn, at: Timestamp) -> Self {
        Self {
            id: intent.id,
            lsn,
            place: lsn,
            at,
            verb: intent.verb,
            summary: intent.summary.clone(),
            status: Status::Armed,
            agent: intent.agent.clone(),
            task: intent.task.clone(),
            prompt: intent.prompt.clone(),
            owner: intent.owner.clone(),
            decision: intent.decision.clone(),
            targets: standing(&intent.targets),
            depends_on: intent.depends_on.clone(),
            undoes: intent.undoes,
            group: intent.group,
            asked: intent.asked,
            trigger: intent.trigger.clone(),
            retained: true,
            notes: intent.notes.clone(),
        }
    }

    /// A write that waits for a decision.
    pub fn proposed(proposal: &Proposal, lsn: Lsn, at: Timestamp) -> Self {
        Self {
            id: proposal.id,
            lsn,
            place: lsn,
            at,
            verb: proposal.verb,
            summary: proposal.summary.clone(),
            status: Status::Proposed,
            agent: proposal.agent.clone(),
            task: proposal.task.clone(),
            prompt: None,
            owner: proposal.owner.clone(),
            decision: proposal.decision.clone(),
            targets: standing(&proposal.targets),
            depends_on: proposal.depends_on.clone(),
            undoes: None,
            group: None,
            asked: None,
            trigger: None,
            retained: true,
            notes: Reason::told(&proposal.reasons),
        }
    }

    /// A write that was turned away: it has a place and a reason, and nothing to undo.
    pub fn refused(refusal: &Refusal, lsn: Lsn, at: Timestamp) -> Self {
        Self {
            id: refusal.id,
            lsn,
            place: lsn,
            at,
            verb: refusal.verb,
            summary: refusal.summary.clone(),
            status: Status::Refused,
            agent: refusal.agent.clone(),
            task: None,
            prompt: None,
            owner: refusal.owner.clone(),
            decision: Decision::new(Strategy::Irreversible, &[], refusal.why.clone()),
            targets: standing(&refusal.targets),
            depends_on: Vec::new(),
            undoes: None,
            group: None,
            asked: None,
            trigger: refusal.trigger.clone(),
            retained: false,
            notes: Vec::new(),
        }
    }
}

fn standing(targets: &[Target]) -> Vec<Standing> {
    targets.iter().cloned().map(Standing::new).collect()
}
