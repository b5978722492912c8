//! Why a gate did not let a change pass, and why nobody could decide about a proposal.

use backout_model::ports::Reason;
use backout_model::{CallKey, OperationId, Proposal, Status, TaskId};

use crate::{EngineError, Finished, RunReport, UndoReport};

/// Says why a change did not happen, or not yet.
#[derive(Debug, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "the message of a variant says what its fields are"
)]
pub enum GateError {
    /// Gates said no. Nothing was changed.
    #[error("the write was refused")]
    Denied {
        /// The operation, as the journal knows it.
        id: OperationId,
        /// What the gates said.
        reasons: Vec<Reason>,
    },
    /// Gates say no to what somebody approved. Nothing was changed, and it still waits.
    #[error("the gates say no by now")]
    DeniedNow {
        /// The proposal.
        id: OperationId,
        /// What the gates said.
        reasons: Vec<Reason>,
    },
    /// A gate looked at the world after the write and said no. The write was taken back.
    #[error("the write did not hold: {}", Reason::told(reasons).join("; "))]
    Failed {
        /// What the gate found.
        reasons: Vec<Reason>,
    },
    /// Gates say no to what a command wrote, or somebody would have to decide about it. It was taken back.
    #[error("what the command wrote was taken back")]
    RunDenied {
        /// The command.
        id: OperationId,
        /// What took it back; none if it stays.
        by: Option<OperationId>,
        /// Whether a part of it stays.
        is_partial: bool,
        /// What the gates said.
        reasons: Vec<Reason>,
    },
    /// Gates want somebody to decide. Nothing was changed.
    #[error("the write waits for a decision")]
    Waits {
        /// What waits.
        proposal: Box<Proposal>,
        /// What went wrong when people were to hear of it.
        untold: Vec<String>,
    },
    /// An operation is not, or not any more, a proposal.
    #[error("operation {id} does not wait for a decision")]
    NotProposed {
        id: OperationId,
        /// Where it stands.
        status: Status,
    },
    /// An operation changed nothing: it waits, or was refused.
    #[error("operation {id} changed nothing")]
    NothingDone {
        id: OperationId,
        /// Where it stands.
        status: Status,
    },
    /// A task is to be committed, and a write of it waits for a decision.
    #[error("a write of the task `{task}` waits for a decision")]
    TaskWaits {
        task: TaskId,
        /// The proposal.
        id: OperationId,
    },
    /// What was approved did not come to pass, and waits again.
    #[error("it did not come to pass")]
    WaitsAgain {
        /// As which it waits.
        again: OperationId,
        /// What happened.
        #[source]
        cause: Box<EngineError>,
    },
    /// Nobody decided about a proposal in time.
    #[error("the time for a decision about {id} is up")]
    Expired {
        /// The proposal.
        id: OperationId,
    },
    /// What was proposed cannot be done any more as it was proposed.
    #[error("{why}")]
    Stale {
        /// The proposal.
        id: OperationId,
        /// Why not.
        why: String,
    },
    /// Another process decides about the proposal at this moment.
    #[error("somebody else is deciding about {id}")]
    BeingDecided {
        /// The proposal.
        id: OperationId,
    },
    /// Who asks does not approve.
    #[error("who proposed {id} cannot approve it")]
    Own {
        /// The proposal.
        id: OperationId,
    },
    /// The key of a call stands for another call.
    #[error("the key `{key}` belongs to operation {id}")]
    KeyTaken {
        key: CallKey,
        /// The operation that answered it.
        id: OperationId,
        /// Whether an older program noted what was asked then, in another way.
        is_older: bool,
    },
    /// The call that was to be staged was answered before.
    #[error("the call was answered before")]
    Answered(Box<Finished>),
    /// The call was refused before.
    #[error("the call was refused before")]
    RefusedBefore {
        /// The operation that answered it.
        id: OperationId,
        /// The reason, for people.
        why: String,
    },
    /// The call was answered before, and what was done has been undone.
    #[error("operation {id}, which answered the call, was undone since")]
    UndoneSince {
        /// The operation that answered it.
        id: OperationId,
        /// What undid it.
        by: Vec<OperationId>,
    },
    /// The call was made before, and nobody can tell whether that happened.
    #[error("nobody can tell whether operation {id} happened")]
    Unclear { id: OperationId },
}

impl GateError {
    /// Says why a command's work did not stay, if gates said no to it.
    pub fn of_run(report: &RunReport) -> Option<Self> {
        let reasons = report.reasons.clone();
        let undone = report.undone.as_ref();
        (!reasons.is_empty()).then(|| Self::RunDenied {
            id: report.id,
            by: undone.and_then(|undone| undone.act),
            is_partial: !undone.is_some_and(UndoReport::is_complete),
            reasons,
        })
    }
}
