//! The decision matrix: which strategy undoes which write, with its fallback and the reason.
//!
//! [`choose`] is a pure function of what is known before the write. The rules stand in the order in which
//! they are asked; the first that fits decides. Two places differ from the article, whose text and code
//! contradict each other:
//!
//! - A delete through our own driver keeps the removed inode whatever its size, so a large one needs no
//!   "recreate from a backup". Only what removes things out of our reach is irreversible.
//! - An API that cannot be called back is irreversible, not "best-effort compensation": it is said before
//!   the call and not after it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Above this a copy of the whole file costs too much.
pub(crate) const SNAPSHOT_BYTES_MAX: u64 = 100 * 1024 * 1024;

/// Above this many writes a minute to one file, whole copies pile up.
pub(crate) const WRITES_PER_MINUTE_MAX: u32 = 5;

/// How a write is taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// The whole state before is kept and put back.
    Snapshot,
    /// What changed is logged before the change, all or nothing, and reversed.
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

/// What is tried when the strategy cannot be prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fallback {
    /// A whole copy instead of a log.
    Snapshot,
    /// A whole copy of each file on its own.
    SnapshotPerFile,
    /// Whole copies, merged into fewer later.
    SnapshotAndMerge,
    /// A log instead of a whole copy.
    Transaction,
    /// A second effect that answers the first.
    Compensation,
    /// Record it, raise the alarm, accept it.
    LogAndAlert,
    /// A person decides.
    Human,
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
    /// Several of these at once.
    Mixed,
}

impl OperationKind {
    /// All kinds, for tables and tests.
    pub const ALL: [Self; 7] = [
        Self::FileWrite,
        Self::FileMulti,
        Self::FileDelete,
        Self::DatabaseWrite,
        Self::ConfigChange,
        Self::ApiCall,
        Self::Mixed,
    ];
}

/// What is known of a write before it happens.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, one per row of the matrix"
)]
pub struct Traits {
    /// What kind of write it is.
    pub kind: OperationKind,
    /// How large the state before is.
    pub size_bytes: u64,
    /// How many files it writes.
    pub files: usize,
    /// How often the busiest of its files was written in the last minute.
    pub writes_per_minute: u32,
    /// Whether the API can take its call back.
    pub is_reversible_api: bool,
    /// Whether only a second effect with a meaning (a refund) counts as an undo.
    pub needs_semantic_undo: bool,
    /// Whether it destroys something that no driver of ours can keep.
    pub destroys_beyond_reach: bool,
    /// Whether other agents' writes are part of it.
    pub crosses_agents: bool,
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
            is_reversible_api: true,
            needs_semantic_undo: false,
            destroys_beyond_reach: false,
            crosses_agents: false,
            preferred: None,
        }
    }
}

/// The strategy chosen for a write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// How it will be taken back.
    pub strategy: Strategy,
    /// What is tried if that cannot be prepared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Fallback>,
    /// Why.
    pub reason: String,
}

impl Decision {
    fn new(strategy: Strategy, fallback: Fallback, reason: impl Into<String>) -> Self {
        Self {
            strategy,
            fallback: Some(fallback),
            reason: reason.into(),
        }
    }
}

/// Chooses how a write will be taken back.
pub fn choose(traits: &Traits) -> Decision {
    if let Some(strategy) = traits.preferred {
        return Decision {
            strategy,
            fallback: None,
            reason: "the caller asked for it".to_owned(),
        };
    }
    if traits.destroys_beyond_reach {
        let reason = "it destroys what no driver can keep";
        return Decision::new(Strategy::Irreversible, Fallback::Human, reason);
    }
    if traits.crosses_agents {
        let reason = "other agents' writes are part of it, so they must be coordinated";
        return Decision::new(Strategy::Compensation, Fallback::Human, reason);
    }
    if traits.needs_semantic_undo {
        let reason = "only a second effect with a meaning undoes it";
        return Decision::new(Strategy::Compensation, Fallback::LogAndAlert, reason);
    }
    by_kind(traits)
}

fn by_kind(traits: &Traits) -> Decision {
    match traits.kind {
        OperationKind::ApiCall if traits.is_reversible_api => Decision::new(
            Strategy::Compensation,
            Fallback::LogAndAlert,
            "an external call is answered by its inverse",
        ),
        OperationKind::ApiCall => Decision::new(
            Strategy::Irreversible,
            Fallback::LogAndAlert,
            "the external call has no inverse",
        ),
        OperationKind::DatabaseWrite => Decision::new(
            Strategy::Transaction,
            Fallback::Compensation,
            "rows are logged before they change",
        ),
        OperationKind::Mixed => Decision::new(
            Strategy::Transaction,
            Fallback::Compensation,
            "several kinds in one step are all or nothing; calls are compensated",
        ),
        OperationKind::ConfigChange => Decision::new(
            Strategy::Transaction,
            Fallback::Snapshot,
            "a configuration is logged key by key",
        ),
        OperationKind::FileMulti => Decision::new(
            Strategy::Transaction,
            Fallback::SnapshotPerFile,
            format!("{} files are all or nothing", traits.files),
        ),
        OperationKind::FileDelete => Decision::new(
            Strategy::Snapshot,
            Fallback::Transaction,
            "what is removed is kept whole",
        ),
        OperationKind::FileWrite => file_write(traits),
    }
}

fn file_write(traits: &Traits) -> Decision {
    if traits.writes_per_minute > WRITES_PER_MINUTE_MAX {
        let reason = format!(
            "{} writes in a minute to one file",
            traits.writes_per_minute
        );
        return Decision::new(Strategy::Transaction, Fallback::SnapshotAndMerge, reason);
    }
    if traits.size_bytes >= SNAPSHOT_BYTES_MAX {
        let reason = format!("too large to copy (size {})", traits.size_bytes);
        return Decision::new(Strategy::Transaction, Fallback::Snapshot, reason);
    }
    let reason = format!("small enough to keep whole (size {})", traits.size_bytes);
    Decision::new(Strategy::Snapshot, Fallback::Transaction, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1024 * 1024;

    /// One row of the table: what the write is, the strategy, the fallback, a word of the reason.
    type Row = (
        &'static str,
        Traits,
        Strategy,
        Option<Fallback>,
        &'static str,
    );

    fn with(kind: OperationKind, change: impl FnOnce(&mut Traits)) -> Traits {
        let mut traits = Traits::of(kind);
        change(&mut traits);
        traits
    }

    /// The nine rows of the article's matrix, in its order.
    fn matrix() -> Vec<Row> {
        use Fallback as F;
        use OperationKind as K;
        use Strategy::{Compensation, Irreversible, Snapshot, Transaction};
        vec![
            (
                "file < 100 MB",
                with(K::FileWrite, |t| t.size_bytes = 100 * MIB - 1),
                Snapshot,
                Some(F::Transaction),
                "keep whole",
            ),
            (
                "file >= 100 MB",
                with(K::FileWrite, |t| t.size_bytes = 100 * MIB),
                Transaction,
                Some(F::Snapshot),
                "too large",
            ),
            (
                "multi-file",
                with(K::FileMulti, |t| t.files = 7),
                Transaction,
                Some(F::SnapshotPerFile),
                "7 files",
            ),
            (
                "database",
                Traits::of(K::DatabaseWrite),
                Transaction,
                Some(F::Compensation),
                "rows",
            ),
            (
                "api",
                Traits::of(K::ApiCall),
                Compensation,
                Some(F::LogAndAlert),
                "inverse",
            ),
            (
                "frequent",
                with(K::FileWrite, |t| t.writes_per_minute = 6),
                Transaction,
                Some(F::SnapshotAndMerge),
                "6 writes",
            ),
            (
                "semantic",
                with(K::ApiCall, |t| t.needs_semantic_undo = true),
                Compensation,
                Some(F::LogAndAlert),
                "meaning",
            ),
            (
                "destructive",
                with(K::FileDelete, |t| t.destroys_beyond_reach = true),
                Irreversible,
                Some(F::Human),
                "no driver",
            ),
            (
                "cross-agent",
                with(K::FileWrite, |t| t.crosses_agents = true),
                Compensation,
                Some(F::Human),
                "agents",
            ),
        ]
    }

    /// The kinds that the article's code knows and its matrix does not list, and the edges of its numbers.
    fn beyond_the_matrix() -> Vec<Row> {
        use Fallback as F;
        use OperationKind as K;
        use Strategy::{Irreversible, Snapshot, Transaction};
        vec![
            (
                "config",
                Traits::of(K::ConfigChange),
                Transaction,
                Some(F::Snapshot),
                "key",
            ),
            (
                "mixed",
                Traits::of(K::Mixed),
                Transaction,
                Some(F::Compensation),
                "several",
            ),
            (
                "small delete",
                Traits::of(K::FileDelete),
                Snapshot,
                Some(F::Transaction),
                "kept",
            ),
            (
                "large delete",
                with(K::FileDelete, |t| t.size_bytes = 4096 * MIB),
                Snapshot,
                Some(F::Transaction),
                "kept",
            ),
            (
                "one-way api",
                with(K::ApiCall, |t| t.is_reversible_api = false),
                Irreversible,
                Some(F::LogAndAlert),
                "no inverse",
            ),
            (
                "five a minute",
                with(K::FileWrite, |t| t.writes_per_minute = 5),
                Snapshot,
                Some(F::Transaction),
                "keep whole",
            ),
            (
                "frequent and large",
                with(K::FileWrite, |t| {
                    t.writes_per_minute = 9;
                    t.size_bytes = 200 * MIB;
                }),
                Transaction,
                Some(F::SnapshotAndMerge),
                "9 writes",
            ),
        ]
    }

    #[test]
    fn every_row_of_the_matrix_is_decided_as_written() {
        for (row, traits, strategy, fallback, word) in
            matrix().into_iter().chain(beyond_the_matrix())
        {
            let decision = choose(&traits);
            assert_eq!(decision.strategy, strategy, "{row}");
            assert_eq!(decision.fallback, fallback, "{row}");
            assert!(decision.reason.contains(word), "{row}: {}", decision.reason);
        }
    }

    #[test]
    fn every_kind_has_a_decision_with_a_reason() {
        for kind in OperationKind::ALL {
            assert!(!choose(&Traits::of(kind)).reason.is_empty(), "{kind:?}");
        }
    }

    #[test]
    fn an_explicit_preference_wins_over_every_rule() {
        for kind in OperationKind::ALL {
            for strategy in [
                Strategy::Snapshot,
                Strategy::Transaction,
                Strategy::Compensation,
                Strategy::Irreversible,
            ] {
                let traits = with(kind, |t| {
                    t.preferred = Some(strategy);
                    t.crosses_agents = true;
                    t.destroys_beyond_reach = true;
                });
                let decision = choose(&traits);
                assert_eq!((decision.strategy, decision.fallback), (strategy, None));
                assert!(decision.reason.contains("asked"));
            }
        }
    }
}
