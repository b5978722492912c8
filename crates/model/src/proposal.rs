//! A proposal: a change that waits for a decision, from which any process can stage the same change again.
//!
//! It is bound to the digest of exactly what was staged. Design: `docs/design/gates.md`.

use serde::{Deserialize, Serialize};

use crate::Strategy;
use crate::gate::Reason;
use crate::{
    AgentId, CallKey, Decision, Dependency, Digest, DriverName, OperationId, Owner, Target, TaskId,
    Timestamp, Verb,
};

/// A request that any later process can carry out. It may hold secrets, so what was asked is a content and in no record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptRequest {
    /// Who understands it.
    pub driver: DriverName,
    /// A content: what was asked, in the driver's own words.
    pub body: Digest,
    /// The contents that it needs, itself included.
    pub contents: Vec<Digest>,
    /// The rights that what it makes does not get, of who asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub umask: Option<u32>,
}

/// A call that its caller gave a key, so that asking again does nothing twice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// What its caller calls it by.
    pub key: CallKey,
    /// The digest of what was asked: the same key with another request is a mistake.
    pub request: Digest,
    /// How the digest was made. Only those that were made in the same way can be compared.
    #[serde(default, skip_serializing_if = "is_first")]
    pub way: u8,
}

impl Asked {
    /// The way in which digests are made today.
    const WAY: u8 = 1;

    /// Notes what is asked.
    pub const fn new(key: CallKey, request: Digest) -> Self {
        Self {
            key,
            request,
            way: Self::WAY,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for this")]
const fn is_first(way: &u8) -> bool {
    *way == 0
}

/// A staged change that waits for a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    /// The operation that it becomes.
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
    /// The process that asked.
    pub owner: Owner,
    /// What it would write.
    pub targets: Vec<Target>,
    /// What the agent said it was built on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<Dependency>,
    /// The call that it answers, if that has a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Asked>,
    /// How it could be undone, and why so.
    pub decision: Decision,
    /// What was asked.
    pub request: KeptRequest,
    /// The digest of what was staged: each target with what it was and what it would become.
    pub staged: Digest,
    /// Why it has to wait.
    pub reasons: Vec<Reason>,
    /// When it is refused if nobody has decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
}

/// The rule of a proposal that waits because nothing takes it back.
pub const IRREVERSIBLE: &str = "irreversible";

impl Proposal {
    /// Tells whether it only waits for its task: it is sent when the task is committed, and dropped when that is rolled back.
    pub fn is_held(&self) -> bool {
        let is_only = self
            .reasons
            .iter()
            .all(|reason| reason.rule == IRREVERSIBLE);
        is_only && self.task.is_some() && self.decision.strategy == Strategy::Irreversible
    }

    /// Tells whether its time is up.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| now >= expires)
    }
}

/// Who decided about a proposal, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// Who, as far as the system can tell.
    pub by: String,
    /// Why, in his own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}
