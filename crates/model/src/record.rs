//! A record of the journal: one event, its place, and its link in the hash chain.
//!
//! - The hash covers the previous hash, the place, the time and the event's stored bytes, so a record
//!   cannot be changed, dropped, added or moved without breaking the chain.
//! - Events are facts: an undo appends, nothing is taken out.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{
    AgentId, Asked, Captured, Checkpoint, CommandStart, Completion, Decided, Decision, Dependency,
    Digest, Escalated, Note, OperationId, Owner, Prompt, PromptId, Proposal, Recipe, Repair,
    RolloutEnd, RolloutMark, RolloutPlan, Standing, Target, TargetOutcome, TaskId, Timestamp,
    Trigger, Verb,
};

/// The hash before the first record.
pub const GENESIS: Digest = Digest::from_bytes([0; 32]);

/// A place in the journal. The first record has 1.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Lsn(pub u64);

impl Lsn {
    /// Gives the place after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Everything that must be durable before a write may happen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// Its own for ever.
    pub id: OperationId,
    /// What kind of write it is.
    pub verb: Verb,
    /// One line for people.
    pub summary: String,
    /// Who asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// The piece of work it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The prompt that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<PromptId>,
    /// Who answers for it until it is finished.
    pub owner: Owner,
    /// How it can be undone, and why so.
    pub decision: Decision,
    /// What it writes.
    pub targets: Vec<Target>,
    /// What the agent said it was built on; the journal adds what it can see itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<Dependency>,
    /// For an undo or a redo: the operation that it takes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<OperationId>,
    /// For an undo or a redo: the operation whose recipe it carried out, if that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<OperationId>,
    /// For an undo or a redo: the first one of the plan that it is part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<OperationId>,
    /// For an undo or a redo: what was asked for, if that is the other. A redo may have to undo what was written since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Verb>,
    /// For the first of several undos or redos of one act: what the act is to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<ActPlan>,
    /// For an undo, a redo or a recovery: what set it off. Older programs do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Trigger>,
    /// Things worth knowing about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// None of what drivers write themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandStart>,
    /// The call that it answers, if that has a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Asked>,
    /// Who let it pass, if it was a proposal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Decided>,
    /// How to take it back.
    pub recipe: Recipe,
}

/// What an undo or a redo of several operations is to do. It is durable with the first step, so that whoever finds only a part
/// of it done can tell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActPlan {
    /// The operations that it takes back, in this order.
    pub steps: Vec<OperationId>,
    /// The task that it rolls back, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Whether only a part of their targets was chosen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_part: bool,
}

/// A write that was turned away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// It never begins.
    pub id: OperationId,
    /// What kind of write it would have been.
    pub verb: Verb,
    /// One line for people.
    pub summary: String,
    /// Who asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// What it would have written.
    pub targets: Vec<Target>,
    /// Who would have answered for it.
    pub owner: Owner,
    /// Why not.
    pub why: String,
    /// The call that it answers, if that has a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Asked>,
    /// What set it off, if somebody rejected a proposal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Trigger>,
    /// Who decided so, if it was a proposal and somebody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<Decided>,
}

/// One fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// An operation is armed: from here on it may have happened.
    Intent(Box<Intent>),
    /// A gate asked for a decision; nothing was touched.
    Proposed(Box<Proposal>),
    /// A gate or a person said no, or nobody said anything in time; nothing was touched.
    Refused(Box<Refusal>),
    /// A command is over: what it did and how to take it back are known.
    Captured(Box<Captured>),
    /// A command's watcher died. What the command did stays until somebody decides.
    Interrupted {
        /// It is in effect.
        id: OperationId,
        /// Which inodes it left.
        completion: Completion,
    },
    /// The effect happened and was verified.
    Applied {
        /// It can still be taken back with its task.
        id: OperationId,
        /// What only the effect could tell.
        completion: Completion,
    },
    /// The operation is kept.
    Commit {
        /// It is done.
        id: OperationId,
    },
    /// The operation did not come to pass.
    Abort {
        /// All of it is as before.
        id: OperationId,
        /// Why not.
        why: String,
        /// What became of each target.
        outcomes: Vec<TargetOutcome>,
        /// What set it off that what had happened was put back. Older programs do not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trigger: Option<Trigger>,
    },
    /// An operation was taken back by another.
    Undone {
        /// The operation that was taken back.
        id: OperationId,
        /// The undo.
        by: OperationId,
        /// What became of each target.
        outcomes: Vec<TargetOutcome>,
        /// Whether only the targets that are settled were taken back, and the others stay in effect.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_partial: bool,
    },
    /// An undone operation is in effect again.
    Redone {
        /// The operation that came back.
        id: OperationId,
        /// The redo.
        by: OperationId,
        /// Which of its targets, and whose recipe takes each back now. None means all, by the redo's: so older
        /// programs wrote it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        targets: Option<Vec<Standing>>,
    },
    /// Taking an operation back did not work on every target.
    UndoFailed {
        /// It stays in effect, or a part of it does.
        id: OperationId,
        /// What became of each target.
        outcomes: Vec<TargetOutcome>,
    },
    /// Taking an operation back failed, and this was done about it.
    Escalated(Box<Escalated>),
    /// Somebody gives a name to what follows.
    TaskBegin {
        /// Its name.
        task: TaskId,
        /// Who does the work.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentId>,
        /// The process whose death rolls it back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owner: Option<Owner>,
    },
    /// A task's operations are kept.
    TaskCommit {
        /// Its name.
        task: TaskId,
    },
    /// A task's operations were taken back. If they are brought back, the task is what it was before.
    TaskRollback {
        /// Its name.
        task: TaskId,
        /// The reason, for people.
        why: String,
    },
    /// A point to return to.
    Checkpoint(Checkpoint),
    /// A person asked an agent for something.
    Prompt(Box<Prompt>),
    /// Something is so that is no operation's doing, or about none.
    Noted(Box<Note>),
    /// The images of these operations were let go; they can no longer be undone.
    Expired {
        /// They stay in the log.
        ids: Vec<OperationId>,
        /// Which rule let them go.
        why: String,
    },
    /// The records up to here were exported and cut off.
    Cut {
        /// The last record that was cut.
        up_to: Lsn,
        /// Its hash: the chain goes on from it.
        anchor: Digest,
    },
    /// Something these operations need was lost; they can no longer be undone.
    Lost {
        /// They stay in the log.
        ids: Vec<OperationId>,
        /// What is gone.
        why: String,
    },
    /// The journal was damaged and put together again.
    Repaired(Box<Repair>),
    /// A rollout begins; nothing was touched.
    RolloutBegun(Box<RolloutPlan>),
    /// A rollout has come somewhere.
    RolloutAt {
        /// The rollout.
        id: OperationId,
        /// Who carries it out.
        owner: Owner,
        /// Where to.
        #[serde(flatten)]
        mark: RolloutMark,
    },
    /// A rollout is over.
    RolloutEnded {
        /// The rollout.
        id: OperationId,
        /// Whether all was written, or what became of the rest.
        #[serde(flatten)]
        end: RolloutEnd,
    },
}

/// Says how a stored record is damaged.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The stored hash is not the one the record and its predecessor give.
    #[error("record {lsn} does not match its hash")]
    BrokenLink {
        /// Its place.
        lsn: Lsn,
    },
    /// The body is not an event.
    #[error("record {lsn} cannot be read")]
    Unreadable {
        /// Its place.
        lsn: Lsn,
        /// What the parser said.
        #[source]
        cause: serde_json::Error,
    },
}

/// An event at its place in the chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its place.
    pub lsn: Lsn,
    /// When it was written.
    pub at: Timestamp,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
    /// The link to the next record.
    pub hash: Digest,
}

impl Record {
    /// Computes the link of a record whose event is stored as `body`.
    pub fn chain(previous: &Digest, lsn: Lsn, at: Timestamp, body: &[u8]) -> Digest {
        let mut hasher = blake3::Hasher::new();
        hasher.update(previous.as_bytes());
        hasher.update(&lsn.0.to_le_bytes());
        hasher.update(&at.0.to_le_bytes());
        hasher.update(body);
        Digest::from_bytes(*hasher.finalize().as_bytes())
    }

    /// Reads a stored record and checks its link.
    pub fn read(
        previous: &Digest,
        lsn: Lsn,
        at: Timestamp,
        body: &[u8],
        hash: Digest,
    ) -> Result<Self, RecordError> {
        if Self::chain(previous, lsn, at, body) != hash {
            return Err(RecordError::BrokenLink { lsn });
        }
        let event =
            serde_json::from_slice(body).map_err(|cause| RecordError::Unreadable { lsn, cause })?;
        Ok(Self {
            lsn,
            at,
            event,
            hash,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Timestamp = Timestamp(1_700_000_000_000);

    fn commit() -> Vec<u8> {
        serde_json::to_vec(&Event::Commit {
            id: OperationId::from_bits(7),
        })
        .unwrap()
    }

    #[test]
    fn a_record_is_read_back_with_its_link() {
        let hash = Record::chain(&GENESIS, Lsn(1), AT, &commit());
        let record = Record::read(&GENESIS, Lsn(1), AT, &commit(), hash).unwrap();
        assert_eq!(record.event.kind(), "commit");
        assert_eq!(record.event.operation(), Some(OperationId::from_bits(7)));
    }

    #[test]
    fn any_change_breaks_the_link() {
        let hash = Record::chain(&GENESIS, Lsn(1), AT, &commit());
        let other = Digest::of(b"another past");
        let mut body = commit();
        body.push(b' ');
        let broken = [
            Record::read(&other, Lsn(1), AT, &commit(), hash),
            Record::read(&GENESIS, Lsn(2), AT, &commit(), hash),
            Record::read(&GENESIS, Lsn(1), Timestamp(1), &commit(), hash),
            Record::read(&GENESIS, Lsn(1), AT, &body, hash),
            Record::read(&GENESIS, Lsn(1), AT, &commit(), other),
        ];
        for result in broken {
            assert!(matches!(result, Err(RecordError::BrokenLink { .. })));
        }
    }
}
