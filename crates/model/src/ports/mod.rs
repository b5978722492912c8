//! What the domain needs from the outside, as traits.
//!
//! `storage` implements a [`Store`], which is all of what the engine needs kept: the journal, leases, contents, depots, the
//! workspace, its maintenance, and who is alive. `drivers` implement [`Driver`]; tests put their own in place. Reading and
//! writing contents are two traits, so that what may not write cannot.

mod error;
mod journal;
mod leases;
mod maintenance;
mod owners;
mod probe;
mod reference;
mod store;
mod verify;
mod workspace;

use std::collections::BTreeSet;
use std::io::Read;

pub use self::error::{Cause, StorageError};
pub use self::journal::{Filter, Journal};
pub use self::leases::{Lease, Leases, OpenAct};
pub use self::maintenance::{
    APPEND_BOUNDS_US, AppendTimes, CompactBudget, CompactReport, GcReport, GcRequest, Holding,
    LeftBehind, Maintenance, PackSalvage, StoreSummary, StoredBy, StoredBytes, Tell,
};
pub use self::owners::{BEAT_MS, Owners, SILENT_MS_MAX};
pub use self::probe::{Probe, WaveLook};
pub use self::reference::{CANDIDATES_MAX, OperationRef, RefError};
pub use self::store::Store;
pub use self::verify::{
    ChangedSince, CheckSlots, MadeOutside, NotUndoable, OfOtherDriver, OutOfReach, RepairSeen,
    VerifyFinding, VerifyReport, hurt_images,
};
pub use self::workspace::Workspace;
pub use crate::bad_recipe::BadRecipe;
pub use crate::driver::{
    Aspect, Compare, Differing, Driver, DriverError, Examined, Fault, Guarantee, LeftOver,
    LookedAt, Looking, Outline, Request, Scope, Staged, State, ValueChange,
};
pub use crate::gate::{
    AppliedChange, ChangedFile, FileBytes, Gate, NodeFacts, Reason, Ruling, StagedChange, TextPlace,
};
pub use crate::ladder::Escalation;
pub use crate::trigger_actions::{Triggers, UnreadableRules};
pub use crate::values::{NewValue, NewValues};
pub use crate::watch::{Progress, Stopped, Watch};
use serde::{Deserialize, Serialize};

use crate::{
    Completion, Digest, Effect, Event, Key, Lsn, OperationId, OutcomeKind, Recipe, Strategy,
    Target, TargetOutcome, TargetPath, Timestamp,
};

/// Tells the time.
pub trait Clock: std::fmt::Debug + Send + Sync {
    /// Gives the present moment.
    fn now(&self) -> Timestamp;
}

/// Makes ids that nobody else makes.
pub trait Ids: std::fmt::Debug + Send + Sync {
    /// Gives a new id.
    fn next(&self) -> OperationId;
}

/// What a record must survive before the writer goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The death of any process: the operating system has it.
    Process,
    /// Loss of power: the disk has it.
    Power,
}

/// A content that goes into the store together with the record that needs it.
#[derive(Clone, PartialEq, Eq)]
pub struct NewContent {
    /// What it is called.
    pub digest: Digest,
    /// What it is, or with `over` the pieces that it is made of.
    pub bytes: Vec<u8>,
    /// What it is made from, if it is told as a reverse change.
    pub over: Option<Over>,
}

/// What a reverse change is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Over {
    /// The newer version. It is stored as well, or it is in the world.
    pub base: Digest,
    /// How many bytes the older version has.
    pub size: u64,
}

impl NewContent {
    /// Names `bytes` by their digest.
    pub fn of(bytes: Vec<u8>) -> Self {
        Self {
            digest: Digest::of(&bytes),
            bytes,
            over: None,
        }
    }
}

impl std::fmt::Debug for NewContent {
    // Contents may be secrets: only their name and size are ever shown.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "NewContent({:?}, {} bytes)",
            self.digest,
            self.bytes.len()
        )
    }
}

/// Events and contents that become durable together or not at all.
#[derive(Debug, Clone, Default)]
pub struct Entry {
    /// What happened, in order.
    pub events: Vec<Event>,
    /// The contents that these events refer to.
    pub contents: Vec<NewContent>,
}

impl Entry {
    /// Makes an entry of events that bring no contents.
    pub const fn of(events: Vec<Event>) -> Self {
        Self {
            events,
            contents: Vec::new(),
        }
    }
}

/// What takes entries, one after the other.
pub trait Append {
    /// Appends the entry and returns the place of its last record.
    fn append(&self, entry: &Entry, durability: Durability) -> Result<Lsn, StorageError>;

    /// Tells whether an append would begin at once. Whoever only reads appends nothing that would have to wait.
    fn is_free(&self) -> bool {
        true
    }
}

/// Says that a content cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ContentsError {
    /// Nothing of that name is stored.
    #[error("the content {digest} is missing from the store")]
    Missing {
        /// The content.
        digest: Digest,
    },
    /// What is stored under that name is something else.
    #[error("the content {digest} is damaged: {detail}")]
    Damaged {
        /// The content.
        digest: Digest,
        /// What does not fit.
        detail: String,
    },
    /// It is told as a change of something that is not in the store.
    #[error("the content {digest} is told as a change of {base}, which is not in the store")]
    Outside {
        /// The content.
        digest: Digest,
        /// What it is made from.
        base: Digest,
    },
    /// The store could not be read or written.
    #[error("the store of contents could not be used")]
    Store(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Reads contents; every read is checked against the digest.
pub trait ReadContents: std::fmt::Debug + Send + Sync {
    /// Gives a content whole.
    fn read(&self, digest: &Digest) -> Result<Vec<u8>, ContentsError>;

    /// Gives a content piece by piece, for what is too large to hold. The end of the stream is an
    /// error if the digest does not fit.
    fn open(&self, digest: &Digest) -> Result<Box<dyn Read + Send>, ContentsError>;

    /// Lists what would do to make a content that is told as a change of something outside of the store; nothing if all that
    /// it needs is in the store.
    fn outside(&self, digest: &Digest) -> Result<Vec<Digest>, ContentsError>;

    /// Gives a content piece by piece, made from `base`, which is one of [`Self::outside`] and comes from `from`.
    fn open_over(
        &self,
        digest: &Digest,
        base: &Digest,
        from: Box<dyn Read + Send>,
    ) -> Result<Box<dyn Read + Send>, ContentsError>;

    /// Tells whether a content is stored, whole or as a change, without reading it.
    fn has(&self, digest: &Digest) -> Result<bool, ContentsError>;
}

/// Writes contents that are too large to ride with a record.
pub trait WriteContents: std::fmt::Debug + Send + Sync {
    /// Stores all that `from` gives, durably, for the operation `by`, and returns its digest and size.
    fn stash(&self, by: OperationId, from: &mut dyn Read) -> Result<(Digest, u64), ContentsError>;

    /// Tells whether a content of `size` bytes may be told as a change of a newer one that is stored with it: not if the newer
    /// one is told as a change of this, nor if the way to it would be long.
    fn may_be_over(&self, older: &Digest, newer: &Digest, size: u64)
    -> Result<bool, ContentsError>;
}

/// Finds a place on a file system where whole inodes can be kept.
pub trait Depots: std::fmt::Debug + Send + Sync {
    /// Gives a private directory on the file system that holds `directory`, or none if there cannot be one.
    fn depot_for(&self, directory: &TargetPath) -> Option<TargetPath>;

    /// Gives a private directory for staging what cannot be staged beside its target.
    fn staging(&self, by: OperationId) -> std::io::Result<TargetPath>;

    /// Lists what is kept in the name of an operation, wherever that is.
    fn slots_of(&self, _by: OperationId) -> Vec<crate::Slot> {
        Vec::new()
    }

    /// Says why something that was kept can be neither taken out nor put back now although it may well be there, and what
    /// helps; nothing if it can.
    fn out_of_reach(&self, _slot: &crate::Slot) -> Option<String> {
        None
    }

    /// Tells whether a path belongs to our own state, which no operation may write.
    fn is_ours(&self, path: &TargetPath) -> bool;

    /// Tells whether our own state lies below a path: with another name above it, nobody would find it.
    fn is_above_ours(&self, _path: &TargetPath) -> bool {
        false
    }
}

/// What an undo does with a target that changed since.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnConflict {
    /// Leave it alone and say so.
    #[default]
    Refuse,
    /// Take out the operation's change and keep everybody else's, where that is possible.
    Merge,
    /// Restore anyway; what is overwritten is kept in the undo's own recipe.
    Force,
}

/// How an effect is to be taken back.
#[derive(Debug, Clone, Copy, Default)]
pub struct How<'h> {
    /// What to do with a target that changed since.
    pub on_conflict: OnConflict,
    /// Whether targets that cannot be taken back are left, and the others taken back.
    pub is_partial: bool,
    /// Only these targets; none means all.
    pub only: Option<&'h BTreeSet<Key>>,
    /// Directories that were only made so that something had a place: they go if nothing is left in them.
    pub homes: Option<&'h BTreeSet<Key>>,
    /// Whether the effect never finished: then what a step left that was cut short may be replaced, too.
    pub is_unfinished: bool,
    /// What took other parts of the effect back before: what they wrote in its directories was nobody else.
    pub earlier: &'h [Effect],
    /// What else happened in the same file, by its parts, the oldest first, and this operation among it. Empty if it is not told.
    pub past: &'h [Past],
}

/// An operation on parts of a file.
#[derive(Debug, Clone)]
pub struct Past {
    /// Its name.
    pub id: OperationId,
    /// What it did.
    pub effect: Effect,
    /// What it is to the one that is taken back.
    pub role: PastRole,
}

/// What an operation is to one that is taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PastRole {
    /// What is taken back.
    Itself,
    /// It stays.
    Stands,
    /// It was taken back.
    Undone,
    /// Some of it was taken back.
    Partly,
    /// It took this one back or brought it again.
    Way(OperationId),
}

impl From<OnConflict> for How<'_> {
    fn from(on_conflict: OnConflict) -> Self {
        Self {
            on_conflict,
            ..Self::default()
        }
    }
}

impl How<'_> {
    /// Tells whether a target is among those that are to be taken back.
    pub fn means(&self, target: &Target) -> bool {
        let is_named =
            |only: &BTreeSet<Key>| only.iter().any(|key| target.key().is_at_or_below(key));
        self.only.is_none_or(is_named)
    }

    /// Decides whether a way back is taken. If a target cannot come back, and neither a part nor force was asked for, nothing
    /// is: then false, and the other targets are said to be skipped.
    pub fn goes_on(&self, outcomes: &mut [TargetOutcome]) -> bool {
        let is_whole = outcomes.iter().all(|outcome| outcome.kind.is_taken_back());
        if is_whole || self.is_partial || self.on_conflict == OnConflict::Force {
            return true;
        }
        hold_back(outcomes);
        false
    }

    /// Takes back what a dead process left.
    pub const fn unfinished() -> Self {
        Self {
            on_conflict: OnConflict::Refuse,
            is_partial: false,
            only: None,
            homes: None,
            is_unfinished: true,
            earlier: &[],
            past: &[],
        }
    }
}

/// Says of every target that would have come back that it does not, since another cannot.
pub fn hold_back(outcomes: &mut [TargetOutcome]) {
    for outcome in outcomes {
        if outcome.kind.is_taken_back() && outcome.kind != OutcomeKind::AlreadyGone {
            let why = "another target cannot be taken back, so nothing was".to_owned();
            outcome.kind = OutcomeKind::Skipped { why };
        }
    }
}

/// A write that is ready to be armed: the target is untouched.
#[derive(Debug)]
pub struct Prepared<S = Box<dyn Staged>> {
    /// How to take it back.
    pub recipe: Recipe,
    /// What the recipe is: what it keeps.
    pub strategy: Strategy,
    /// What it will write.
    pub targets: Vec<Target>,
    /// The images that must become durable with the recipe.
    pub contents: Vec<NewContent>,
    /// How many bytes it has copied into the store already.
    pub copied_bytes: u64,
    /// The new state, beside the target.
    pub staged: S,
    /// Things worth knowing.
    pub notes: Vec<String>,
    /// Whether the targets are already as asked, so that nothing needs to happen or be recorded.
    pub is_noop: bool,
}

impl<S: Staged> Prepared<S> {
    /// Makes a write that keeps nothing beside its recipe, in which the reverse change stands. One without targets has nothing
    /// to do.
    pub const fn plain(recipe: Recipe, targets: Vec<Target>, staged: S) -> Self {
        Self {
            recipe,
            strategy: Strategy::Transaction,
            is_noop: targets.is_empty(),
            targets,
            contents: Vec::new(),
            copied_bytes: 0,
            staged,
            notes: Vec::new(),
        }
    }

    /// Gives it as the engine handles it: what is staged is the driver's own affair.
    pub fn boxed(self) -> Prepared {
        Prepared {
            recipe: self.recipe,
            strategy: self.strategy,
            copied_bytes: self.copied_bytes,
            targets: self.targets,
            contents: self.contents,
            staged: Box::new(self.staged),
            notes: self.notes,
            is_noop: self.is_noop,
        }
    }
}

impl<S: Staged> PreparedUndo<S> {
    /// Gives it as the engine handles it.
    pub fn boxed(self) -> PreparedUndo {
        PreparedUndo {
            prepared: self.prepared.boxed(),
            outcomes: self.outcomes,
        }
    }
}

/// An undo that is ready to be armed, or the reasons why it is not.
#[derive(Debug)]
pub struct PreparedUndo<S = Box<dyn Staged>> {
    /// The write that takes the operation back, for the targets where that is possible.
    pub prepared: Prepared<S>,
    /// What will become of each target: foreseen before anything is touched.
    pub outcomes: Vec<TargetOutcome>,
}

/// What an effect turned out to be.
#[derive(Debug)]
pub struct Applied {
    /// What only the effect could tell.
    pub completion: Completion,
    /// What the record of the completion must survive: what nobody could find out again must survive all.
    pub durability: Durability,
    /// Targets that a second look found to be something else than was meant.
    pub unlike: Vec<TargetOutcome>,
    /// Whether it turned out to change nothing: then it does not count as done.
    pub is_idle: bool,
}

impl Applied {
    /// Says what a second look found at an effect that can be looked at again, and told nothing that only it could tell.
    /// What is not as it was made was overtaken by somebody else.
    pub fn seen(examined: Vec<Examined>) -> Self {
        let unlike = examined.into_iter().filter_map(|it| {
            let why = match it.state {
                State::After => return None,
                State::Before => "it is as before".to_owned(),
                State::Other { why } => why,
            };
            Some(TargetOutcome::new(
                it.target,
                OutcomeKind::Overtaken { why },
            ))
        });
        Self {
            completion: Completion::default(),
            durability: Durability::Process,
            unlike: unlike.collect(),
            is_idle: false,
        }
    }
}
