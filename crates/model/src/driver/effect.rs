//! What a driver says of an effect that was recorded: its targets, where each stands now, and what an undo can promise.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ports::OnConflict;
use crate::{Flaw, Key, OutcomeKind, Slot, Target, TargetPath};

/// What a recipe says of its targets, without a look at the world.
#[derive(Debug, Clone, Default)]
pub struct Outline {
    /// What it wrote.
    pub targets: Vec<Target>,
    /// Trees that went with all that was in them, kept as one.
    pub gone: BTreeSet<Key>,
    /// Trees that came back as one.
    pub come: BTreeSet<Key>,
    /// Trees that were moved to where nothing was.
    pub brought: BTreeSet<Key>,
    /// What an undo can promise.
    pub guarantee: Guarantee,
    /// Who may have seen the effect, or acted on it, before it is taken back, if anybody could: an undo does not change that.
    pub seen_by_others: Option<String>,
}

/// What an undo of an effect can promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Guarantee {
    /// Each target becomes exactly what it was.
    #[default]
    Exact,
    /// A second effect answers the first one.
    Compensating,
}

impl Outline {
    /// Says no more than what was written.
    pub fn of(targets: Vec<Target>) -> Self {
        Self {
            targets,
            ..Self::default()
        }
    }

    /// Says that an undo can only answer the effect by another one.
    #[must_use]
    pub const fn compensating(mut self) -> Self {
        self.guarantee = Guarantee::Compensating;
        self
    }

    /// Says who may have seen the effect before it is taken back, such as `clients of shop that read these rows`.
    #[must_use]
    pub fn seen_by(mut self, who: impl Into<String>) -> Self {
        self.seen_by_others = Some(who.into());
        self
    }
}

/// How what is there relates to an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// The effect is not there.
    Before,
    /// As the operation made it.
    After,
    /// Neither.
    Other {
        /// What differs from how the operation made it.
        why: String,
    },
}

impl State {
    /// Compares what is there with what was before and after.
    pub fn of<T: PartialEq + ?Sized>(now: &T, before: &T, after: &T) -> Self {
        if now == after {
            Self::After
        } else if now == before {
            Self::Before
        } else {
            let why = "somebody else changed it".to_owned();
            Self::Other { why }
        }
    }

    /// Gives what becomes of a target that is taken back, if it can come back exactly: the one rule of before, after and
    /// now.
    pub fn taken_back(self, on_conflict: OnConflict) -> OutcomeKind {
        match (self, on_conflict) {
            (Self::Before, _) => OutcomeKind::AlreadyGone,
            (Self::After, _) => OutcomeKind::Restored,
            (Self::Other { why }, OnConflict::Force) => OutcomeKind::Overwritten { why },
            (Self::Other { why }, OnConflict::Refuse | OnConflict::Merge) => {
                OutcomeKind::Conflict { why }
            }
        }
    }
}

/// A target and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examined {
    /// As the recipe names it.
    pub target: Target,
    /// How what is there now relates to the operation.
    pub state: State,
    /// The number of the change that it is part of: the two names of a move stand and fall together.
    pub change: usize,
    /// Whether nothing was there before, so that an undo takes it away.
    pub goes: bool,
    /// Why what it was cannot be brought back, if it cannot.
    pub lost: Option<String>,
    /// Why what the operation left there is not its alone, if it is not.
    pub shared: Option<String>,
    /// What stands in a directory that the operation made, and is not the operation's.
    pub strangers: Vec<TargetPath>,
    /// The directory that does not let us take it back, if it is only that.
    pub barred: Option<TargetPath>,
    /// The directory that it is to come back to, if only that is missing: a newer step may bring it.
    pub home: Option<TargetPath>,
    /// Whether the operation has taken out of its slot what it was to bring, whatever somebody made of that since.
    pub has_come: bool,
    /// Whether nobody can look where it stands, so that a person's word holds.
    pub is_unseen: bool,
}

impl Examined {
    /// Says where a target stands that has nothing special about it: it stands and falls alone, and can be brought back.
    /// `change` tells it from the others.
    pub const fn new(change: usize, target: Target, state: State) -> Self {
        Self {
            target,
            state,
            change,
            goes: false,
            lost: None,
            shared: None,
            strangers: Vec::new(),
            barred: None,
            home: None,
            has_come: false,
            is_unseen: false,
        }
    }
}

/// What a part of something was and is, in the words of what holds it.
#[derive(Clone, PartialEq, Eq)]
pub struct ValueChange {
    /// The part.
    pub key: Key,
    /// What it was; none if it was not there.
    pub before: Option<String>,
    /// What it became.
    pub after: Option<String>,
    /// What it is now; the error says why nobody can tell.
    pub now: Result<Option<String>, String>,
}

impl fmt::Debug for ValueChange {
    // Values may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ValueChange({})", self.key)
    }
}

/// What is wrong with something that is kept, if anything is.
pub type LookedAt = (Slot, Option<Flaw>);
