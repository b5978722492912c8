//! Repairs of small journals: what is chosen, what stays visible, what a crash leaves.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use backout_model::ports::Clock;
use backout_model::{Digest, Event, GENESIS, GapLink, Lsn, OperationId, Record, Timestamp};
use proptest::prelude::*;

use super::chain::choose;
use super::found::{Candidate, Found};
use super::pages::Pages;
use super::repair_journal;
use crate::Store;
use crate::journal::tests::{World, node};

const AT: Timestamp = Timestamp(1_700_000_000_000);

/// A chain of so many records.
fn chain(length: u64) -> BTreeMap<Lsn, Vec<Candidate>> {
    let mut hash = GENESIS;
    let record = |number: u64| {
        let id = OperationId::from_bits(number);
        let body = serde_json::to_vec(&Event::Commit { id }).unwrap();
        hash = Record::chain(&hash, Lsn(number), AT, &body);
        (Lsn(number), vec![Candidate { at: AT, body, hash }])
    };
    (1..=length).map(record).collect()
}

fn places(chain: &super::chain::Chain) -> Vec<u64> {
    chain.records.iter().map(|record| record.lsn.0).collect()
}

#[test]
fn a_body_that_was_changed_costs_only_its_own_record() {
    let mut found = chain(5);
    found.get_mut(&Lsn(3)).unwrap()[0].body[0] ^= 1;
    let chosen = choose(&found, None);
    assert_eq!(places(&chosen), [1, 2, 4, 5]);
    assert!(chosen.records.iter().all(|record| record.is_linked));
    assert!(matches!(chosen.gaps[0].link, GapLink::Hash(_)));
}

#[test]
fn behind_records_that_are_gone_the_first_is_kept_but_not_trusted() {
    let mut found = chain(6);
    found.remove(&Lsn(3));
    let chosen = choose(&found, None);
    assert_eq!(places(&chosen), [1, 2, 4, 5, 6]);
    let linked: Vec<bool> = chosen
        .records
        .iter()
        .map(|record| record.is_linked)
        .collect();
    assert_eq!(linked, [true, true, false, true, true]);
    assert!(matches!(chosen.gaps[0].link, GapLink::Pin(_)));
}

#[test]
fn a_last_record_that_nothing_vouches_for_is_not_kept() {
    let mut found = chain(4);
    found.remove(&Lsn(3));
    let chosen = choose(&found, None);
    assert_eq!(places(&chosen), [1, 2]);
    let had = choose(&found, Some((Lsn(6), None)));
    assert_eq!((had.gaps[0].first, had.gaps[0].last), (Lsn(3), Lsn(6)));
}

#[test]
fn of_two_records_for_one_place_the_one_that_others_follow_is_taken() {
    let mut found = chain(4);
    let before = found[&Lsn(2)][0].hash;
    let id = OperationId::from_bits(99);
    let body = serde_json::to_vec(&Event::Commit { id }).unwrap();
    let hash = Record::chain(&before, Lsn(3), AT, &body);
    found
        .get_mut(&Lsn(3))
        .unwrap()
        .push(Candidate { at: AT, body, hash });
    let chosen = choose(&found, None);
    assert_eq!(places(&chosen), [1, 2, 3, 4]);
    assert_eq!(chosen.gaps, []);
    assert_eq!(
        chosen.records[2].event.operation(),
        Some(OperationId::from_bits(3))
    );
}

/// A journal of three operations of which the record with this place is gone.
fn without(lsn: i64) -> (tempfile::TempDir, Arc<dyn Clock>) {
    let world = World::new();
    for number in 1..=3 {
        world.commit(number, &[node("/a")]);
    }
    let raw = world.raw();
    raw.execute_batch("DROP TRIGGER record_is_cut_at_the_anchor")
        .unwrap();
    raw.execute("DELETE FROM record WHERE lsn = ?1", [lsn])
        .unwrap();
    raw.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| {
        row.get::<_, i64>(0)
    })
    .unwrap();
    // No old copy of it may be left.
    raw.execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")
        .unwrap();
    let World {
        directory, clock, ..
    } = world;
    (directory, clock)
}

#[test]
fn whoever_takes_a_record_out_and_repairs_is_told_of_for_ever() {
    let (directory, clock) = without(5);
    let path = directory.path().join("state");
    let salvage = repair_journal(&path, &clock).unwrap();
    assert_eq!((salvage.records, salvage.lost_records()), (8, 1));
    let store = Store::open(&path, clock.clone()).unwrap();
    let report = store.verify(&mut |_, _| {}).unwrap();
    assert_eq!(report.findings, []);
    assert_eq!(report.repairs[0].gaps, salvage.gaps);
    assert!(path.join(&report.repairs[0].evidence).exists());
    // The word of the repair is all that explains the gap.
    let raw = rusqlite::Connection::open(path.join("journal.sqlite")).unwrap();
    raw.execute_batch("DROP TRIGGER record_is_append_only")
        .unwrap();
    raw.execute(
        "UPDATE record SET kind = 'commit' WHERE kind = 'repaired'",
        [],
    )
    .unwrap();
    assert!(!store.verify(&mut |_, _| {}).unwrap().findings.is_empty());
}

#[test]
fn a_swap_that_was_interrupted_is_finished_by_the_next_who_opens_the_store() {
    let (directory, clock) = without(5);
    let path = directory.path().join("state");
    repair_journal(&path, &clock).unwrap();
    let last = |store: &Store| store.summary().unwrap().last_lsn;
    let repaired = last(&Store::open(&path, clock.clone()).unwrap());
    // As it was in the middle: the new one waits, the old one and its log are still there.
    let at = |name: &str| path.join(name);
    let _none = fs::remove_file(at("journal.sqlite-wal"));
    fs::rename(at("journal.sqlite"), at("journal.repaired")).unwrap();
    fs::copy(at("journal.damaged-1"), at("journal.sqlite")).unwrap();
    fs::write(at("journal.sqlite-wal"), "a log of the old one").unwrap();
    let store = Store::open(&path, clock.clone()).unwrap();
    assert_eq!(last(&store), repaired);
    assert!(!at("journal.repaired").exists());
    assert_eq!(store.verify(&mut |_, _| {}).unwrap().findings, []);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_may_be_looked_through(
        database in prop::collection::vec(prop_oneof![Just(0_u8), Just(13), any::<u8>()], 0..9000),
        log in prop::collection::vec(any::<u8>(), 0..9000),
    ) {
        let found = Found::in_pages(&Pages::new(database, log));
        let chosen = choose(&found.records, Some((Lsn(3), Some(Digest::of(b"x")))));
        prop_assert!(chosen.end.0 >= Lsn(3));
    }
}
