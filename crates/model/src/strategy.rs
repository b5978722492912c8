//! The decision matrix: which strategy undoes which write, what is tried next, and why.
//!
//! [`choose`] is a pure function of what is known before the write. The rules stand in the order in which
//! they are asked; the first that fits decides. The driver is told the strategy and carries it out, or says why it cannot be
//! prepared; then the next of [`Decision::fallbacks`] is taken, and both are on record. Design, with where it differs from the article:
//! `docs/design/strategy.md`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// From this size on a copy of the whole file costs too much.
pub(crate) const COPIED_BYTES_MAX: u64 = 100 * 1024 * 1024;

/// Above this many writes a minute to one file, whole copies pile up.
pub(crate) const WRITES_PER_MINUTE_MAX: u32 = 5;

/// Up to this size a whole copy costs no more than what it would save to log the change.
pub(crate) const LOGGED_BYTES_MIN: u64 = 1024;

/// Up to this size a state rides with the record that needs it, before and after the write.
pub const RIDING_BYTES_MAX: u64 = 64 * 1024;

/// How a write is taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// The whole state before is kept and put back.
    Snapshot,
    /// The reverse change is logged before the change, and carried out.
    Transaction,
    /// A second effect answers the first.
    Compensation,
    /// Nothing takes it back.
    Irreversible,
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Snapshot => "snapshot",
            Self::Transaction => "transaction",
            Self::Compensation => "compensation",
            Self::Irreversible => "irreversible",
        })
    }
}

/// The kinds of write the matrix knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OperationKind {
    /// One file's content is replaced.
    FileWrite,
    /// Several files in one step.
    FileMulti,
    /// A file or a tree is removed.
    FileDelete,
    /// Rows are inserted, updated or deleted.
    DatabaseWrite,
    /// A key of a structured configuration is changed.
    ConfigChange,
    /// Somebody else's system is called.
    ApiCall,
}

impl OperationKind {
    /// All kinds, for tables and tests.
    pub const ALL: [Self; 6] = [
        Self::FileWrite,
        Self::FileMulti,
        Self::FileDelete,
        Self::DatabaseWrite,
        Self::ConfigChange,
        Self::ApiCall,
    ];
}

/// What is known of a write before it happens. Drivers tell it; how often a target was written and how much room there is, the
/// engine finds out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traits {
    /// What kind of write it is.
    pub kind: OperationKind,
    /// How large the state before is, of the largest file.
    pub size_bytes: u64,
    /// How many files it writes.
    pub files: usize,
    /// How often the busiest of its targets was written in the last minute.
    pub writes_per_minute: u32,
    /// Whether keeping the state before whole would be a copy: it is too large to ride with the record, and no depot takes it.
    pub is_copied: bool,
    /// How many bytes the disk of the store has left for that copy. None if nobody looked.
    pub free_bytes: Option<u64>,
    /// Whether the API can take its call back.
    pub is_reversible_api: bool,
    /// Whether only a second effect with a meaning (a refund) counts as an undo.
    pub needs_semantic_undo: bool,
    /// What the caller insists on.
    pub preferred: Option<Strategy>,
}

impl Traits {
    /// Describes a write of one kind, with nothing special about it.
    pub const fn of(kind: OperationKind) -> Self {
        Self {
            kind,
            size_bytes: 0,
            files: 1,
            writes_per_minute: 0,
            is_copied: false,
            free_bytes: None,
            is_reversible_api: true,
            needs_semantic_undo: false,
            preferred: None,
        }
    }
}

/// A strategy that could not be prepared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotPrepared {
    /// The strategy that was tried.
    pub strategy: Strategy,
    /// Why not.
    pub why: String,
}

/// What keeping the way back costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Cost {
    /// Bytes that went into the store for it, before they are compressed and shared.
    pub stored_bytes: u64,
    /// Bytes of inodes that are kept as they are: nobody copies them, but they take their room.
    pub kept_bytes: u64,
    /// How long it took to stage the write and to prepare its way back.
    pub prepared_ms: u64,
}

/// The strategy of a write: what was asked for, what is used, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// How it is taken back: what was really prepared.
    pub strategy: Strategy,
    /// What older programs said would be tried, and never did. It is kept, since a table must say what its records say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Box<str>>,
    /// What was asked for first. Older records do not say; there it is the strategy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Strategy>,
    /// Why that was asked for.
    pub reason: String,
    /// What would be tried if this could not be prepared, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<Strategy>,
    /// What was tried before and could not be prepared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_prepared: Vec<NotPrepared>,
    /// What it cost; none where nobody counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

impl Decision {
    /// Decides, with what is tried next.
    pub fn new(strategy: Strategy, fallbacks: &[Strategy], reason: impl Into<String>) -> Self {
        Self {
            strategy,
            fallback: None,
            asked: Some(strategy),
            reason: reason.into(),
            fallbacks: fallbacks.to_vec(),
            not_prepared: Vec::new(),
            cost: None,
        }
    }

    /// Gives what is tried next, because this could not be prepared; none if nothing is left to try.
    #[must_use]
    pub fn next(&self, why: String) -> Option<Self> {
        let (next, rest) = self.fallbacks.split_first()?;
        let mut decision = self.clone();
        let strategy = self.strategy;
        decision.not_prepared.push(NotPrepared { strategy, why });
        decision.strategy = *next;
        decision.fallbacks = rest.to_vec();
        Some(decision)
    }
}

/// Chooses how a write will be taken back.
pub fn choose(traits: &Traits) -> Decision {
    use Strategy::{Compensation, Irreversible};
    if let Some(strategy) = traits.preferred {
        return Decision::new(strategy, &[], "the caller asked for it");
    }
    if traits.needs_semantic_undo {
        let reason = "only a second effect with a meaning undoes it";
        return Decision::new(Compensation, &[Irreversible], reason);
    }
    by_kind(traits)
}

fn by_kind(traits: &Traits) -> Decision {
    use Strategy::{Compensation, Irreversible, Snapshot, Transaction};
    match traits.kind {
        OperationKind::ApiCall if traits.is_reversible_api => Decision::new(
            Compensation,
            &[Irreversible],
            "an external call is answered by its inverse",
        ),
        OperationKind::ApiCall => {
            Decision::new(Irreversible, &[], "the external call has no inverse")
        }
        OperationKind::DatabaseWrite => Decision::new(
            Transaction,
            &[Compensation],
            "rows are logged before they change",
        ),
        OperationKind::ConfigChange => {
            Decision::new(Transaction, &[], "a configuration is logged key by key")
        }
        OperationKind::FileDelete => Decision::new(Snapshot, &[], "what is removed is kept whole"),
        OperationKind::FileWrite | OperationKind::FileMulti => files(traits),
    }
}

/// Decides by cost: what keeping whole would store, against what changes.
fn files(traits: &Traits) -> Decision {
    use Strategy::{Snapshot, Transaction};
    let (size, writes) = (traits.size_bytes, traits.writes_per_minute);
    if traits.is_copied && size >= COPIED_BYTES_MAX {
        let reason = format!("too large to copy (size {size}), and no depot takes it");
        return Decision::new(Transaction, &[Snapshot], reason);
    }
    let pays = LOGGED_BYTES_MIN < size && size <= RIDING_BYTES_MAX;
    if writes > WRITES_PER_MINUTE_MAX && pays {
        let reason = format!("{writes} writes in a minute to one file");
        return Decision::new(Transaction, &[Snapshot], reason);
    }
    let reason = match (traits.kind, traits.is_copied) {
        (OperationKind::FileMulti, _) if traits.files > 1 => {
            format!("{} files, each kept whole", traits.files)
        }
        (_, true) => format!("small enough to copy (size {size})"),
        (_, false) if size > RIDING_BYTES_MAX => {
            format!("kept whole without a copy (size {size})")
        }
        (_, false) => format!("small enough to keep whole (size {size})"),
    };
    let decision = Decision::new(Snapshot, &[Transaction], reason);
    let free = traits
        .free_bytes
        .filter(|free| traits.is_copied && *free < size);
    let Some(why) = free.map(|free| format!("no room for a copy: {free} bytes are free")) else {
        return decision;
    };
    // A look at the disk proves nothing: where the change cannot be logged, a copy is tried all the same.
    let logged = decision.next(why).map(|logged| Decision {
        fallbacks: vec![Snapshot],
        ..logged
    });
    logged.unwrap_or(decision)
}

#[cfg(test)]
#[path = "strategy_tests.rs"]
mod tests;
