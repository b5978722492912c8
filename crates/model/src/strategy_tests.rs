//! The decision matrix as a table, row by row, and what follows a strategy that cannot be prepared.

use super::*;

const MIB: u64 = 1024 * 1024;

/// One row of the table: what the write is, the strategy, what is tried next, a word of the reason.
type Row = (
    &'static str,
    Traits,
    Strategy,
    &'static [Strategy],
    &'static str,
);

fn with(kind: OperationKind, change: impl FnOnce(&mut Traits)) -> Traits {
    let mut traits = Traits::of(kind);
    change(&mut traits);
    traits
}

fn copied(size_bytes: u64) -> Traits {
    with(OperationKind::FileWrite, |t| {
        (t.size_bytes, t.is_copied) = (size_bytes, true);
    })
}

/// The nine rows of the article's matrix, in its order.
fn matrix() -> Vec<Row> {
    use OperationKind as K;
    use Strategy::{Compensation, Irreversible, Snapshot, Transaction};
    vec![
        (
            "file < 100 MB",
            copied(100 * MIB - 1),
            Snapshot,
            &[Transaction],
            "to copy",
        ),
        (
            "file >= 100 MB",
            copied(100 * MIB),
            Transaction,
            &[Snapshot],
            "too large",
        ),
        (
            "multi-file",
            with(K::FileMulti, |t| t.files = 7),
            Snapshot,
            &[Transaction],
            "7 files",
        ),
        (
            "database",
            Traits::of(K::DatabaseWrite),
            Transaction,
            &[Compensation],
            "rows",
        ),
        (
            "api",
            Traits::of(K::ApiCall),
            Compensation,
            &[Irreversible],
            "inverse",
        ),
        (
            "frequent",
            with(K::FileWrite, |t| {
                (t.writes_per_minute, t.size_bytes) = (6, LOGGED_BYTES_MIN + 1);
            }),
            Transaction,
            &[Snapshot],
            "6 writes",
        ),
        (
            "semantic",
            with(K::ApiCall, |t| t.needs_semantic_undo = true),
            Compensation,
            &[Irreversible],
            "meaning",
        ),
    ]
}

/// The kinds that the article's code knows and its matrix does not list, and the edges of its numbers.
fn beyond_the_matrix() -> Vec<Row> {
    use OperationKind as K;
    use Strategy::{Irreversible, Snapshot, Transaction};
    vec![
        (
            "config",
            Traits::of(K::ConfigChange),
            Transaction,
            &[],
            "key",
        ),
        (
            "delete, of any size",
            with(K::FileDelete, |t| t.size_bytes = 4096 * MIB),
            Snapshot,
            &[],
            "kept",
        ),
        (
            "one-way api",
            with(K::ApiCall, |t| t.is_reversible_api = false),
            Irreversible,
            &[],
            "no inverse",
        ),
        (
            "five a minute",
            with(K::FileWrite, |t| {
                (t.writes_per_minute, t.size_bytes) = (5, 4096);
            }),
            Snapshot,
            &[Transaction],
            "keep whole",
        ),
        (
            "frequent and tiny",
            with(K::FileWrite, |t| {
                (t.writes_per_minute, t.size_bytes) = (60, LOGGED_BYTES_MIN);
            }),
            Snapshot,
            &[Transaction],
            "keep whole",
        ),
        (
            "large, and a depot takes its inode",
            with(K::FileWrite, |t| t.size_bytes = 4096 * MIB),
            Snapshot,
            &[Transaction],
            "without a copy",
        ),
        (
            "frequent and large, and a depot takes its inode",
            with(K::FileWrite, |t| {
                t.writes_per_minute = 9;
                t.size_bytes = RIDING_BYTES_MAX + 1;
            }),
            Snapshot,
            &[Transaction],
            "without a copy",
        ),
    ]
}

#[test]
fn every_row_of_the_matrix_is_decided_as_written() {
    for (row, traits, strategy, fallbacks, word) in matrix().into_iter().chain(beyond_the_matrix())
    {
        let decision = choose(&traits);
        assert_eq!(decision.strategy, strategy, "{row}");
        assert_eq!(decision.asked, Some(strategy), "{row}");
        assert_eq!(decision.fallbacks, fallbacks, "{row}");
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
fn an_explicit_preference_wins_over_every_rule_and_has_no_fallback() {
    for kind in OperationKind::ALL {
        for strategy in [
            Strategy::Snapshot,
            Strategy::Transaction,
            Strategy::Compensation,
            Strategy::Irreversible,
        ] {
            let traits = with(kind, |t| {
                t.preferred = Some(strategy);
                t.needs_semantic_undo = true;
                t.is_reversible_api = false;
            });
            let decision = choose(&traits);
            assert_eq!(decision.strategy, strategy);
            assert!(decision.reason.contains("asked"));
            assert_eq!(decision.next("it cannot".to_owned()), None);
        }
    }
}

/// The row of a file that would be copied, by how much room there is for it.
#[test]
fn without_room_for_a_copy_the_change_is_logged_and_the_reason_is_on_record() {
    let with_room = |free_bytes| {
        choose(&Traits {
            free_bytes,
            ..copied(10 * MIB)
        })
    };
    for free_bytes in [None, Some(10 * MIB), Some(u64::MAX)] {
        let decision = with_room(free_bytes);
        assert_eq!(decision.strategy, Strategy::Snapshot, "{free_bytes:?}");
        assert!(decision.not_prepared.is_empty());
    }
    let decision = with_room(Some(10 * MIB - 1));
    assert_eq!(decision.asked, Some(Strategy::Snapshot));
    assert_eq!(decision.strategy, Strategy::Transaction);
    assert_eq!(decision.fallbacks, [Strategy::Snapshot]);
    let [tried] = &decision.not_prepared[..] else {
        panic!("{decision:?}");
    };
    assert_eq!(tried.strategy, Strategy::Snapshot);
    assert!(tried.why.contains("10485759 bytes are free"), "{tried:?}");
    // What no copy is made of needs no room, and who insists gets what was asked for.
    let kept = with(OperationKind::FileWrite, |t| {
        (t.size_bytes, t.free_bytes) = (10 * MIB, Some(0));
    });
    assert_eq!(choose(&kept).strategy, Strategy::Snapshot);
    let insisted = Traits {
        preferred: Some(Strategy::Snapshot),
        free_bytes: Some(0),
        ..copied(10 * MIB)
    };
    assert_eq!(choose(&insisted).strategy, Strategy::Snapshot);
}

#[test]
fn what_could_not_be_prepared_is_on_record_with_what_was_asked_for() {
    let decision = choose(&copied(200 * MIB));
    let next = decision
        .next("half of it changes".to_owned())
        .expect("a copy");
    assert_eq!(
        (next.asked, next.strategy),
        (Some(Strategy::Transaction), Strategy::Snapshot)
    );
    let tried = &next.not_prepared[..];
    assert!(
        matches!(tried, [NotPrepared { strategy: Strategy::Transaction, why }] if why == "half of it changes")
    );
    assert_eq!(next.next("the disk is full".to_owned()), None);
}

#[test]
fn a_decision_of_an_older_program_is_read() {
    let old = r#"{"strategy":"transaction","fallback":"snapshot-per-file","reason":"7 files are all or nothing"}"#;
    let read: Decision = serde_json::from_str(old).expect("it is read");
    assert_eq!((read.strategy, read.asked), (Strategy::Transaction, None));
    assert_eq!(serde_json::to_string(&read).expect("it is written"), old);
}
