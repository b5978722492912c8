//! The journal's own cases: order, chain, projections, leases, names, dependencies, export and cut.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use backout_model::ports::{Append as _, Clock, Durability, Entry, NewContent};
use backout_model::{
    Decision, Dependency, DependencyReason, DriverName, Event, Intent, Lsn, OperationId,
    OutcomeKind, Owner, Recipe, Retention, Status, Strategy, Target, TargetOutcome, TargetPath,
    Timestamp, Verb,
};

use crate::{Filter, Lease, RefError, StorageError, Store, VerifyFinding, this_process};

/// A clock that stands still until it is told to move.
#[derive(Debug)]
pub(crate) struct TestClock(AtomicI64);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::Relaxed))
    }
}

/// A store in a directory of its own.
pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) clock: Arc<TestClock>,
    pub(crate) directory: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let clock = Arc::new(TestClock(AtomicI64::new(1_800_000_000_000)));
        let store = Store::open(&directory.path().join("state"), clock.clone()).unwrap();
        Self {
            store,
            clock,
            directory,
        }
    }

    fn again(&self) -> Store {
        Store::open(&self.directory.path().join("state"), self.clock.clone()).unwrap()
    }

    pub(crate) fn raw(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.directory.path().join("state/journal.sqlite")).unwrap()
    }

    fn pass(&self, millis: i64) {
        self.clock.0.fetch_add(millis, Ordering::Relaxed);
    }

    fn append(&self, events: Vec<Event>) -> Lsn {
        self.store
            .append(&Entry::of(events), Durability::Process)
            .unwrap()
    }

    fn arm(&self, number: u64, targets: &[Target]) -> OperationId {
        let mut intent = intent(number, targets);
        intent.depends_on = self.store.dependencies(targets).unwrap();
        self.append(vec![Event::Intent(Box::new(intent))]);
        id(number)
    }

    pub(crate) fn commit(&self, number: u64, targets: &[Target]) -> OperationId {
        let id = self.arm(number, targets);
        self.append(vec![
            Event::Applied {
                id,
                completion: backout_model::Completion::default(),
            },
            Event::Commit { id },
        ]);
        id
    }
}

pub(crate) fn id(number: u64) -> OperationId {
    OperationId::from_bits(number << 48)
}

pub(crate) fn node(path: &str) -> Target {
    Target::node(TargetPath::new(path).unwrap())
}

fn tree(path: &str) -> Target {
    Target::tree(TargetPath::new(path).unwrap())
}

pub(super) fn intent(number: u64, targets: &[Target]) -> Intent {
    Intent {
        id: id(number),
        verb: Verb::Write,
        summary: format!("write {number}"),
        agent: None,
        task: None,
        owner: this_process(),
        decision: Decision::new(Strategy::Snapshot, &[], String::new()),
        targets: targets.to_vec(),
        depends_on: vec![],
        undoes: None,
        with: None,
        group: None,
        asked: None,
        plan: None,
        trigger: None,
        notes: vec![],
        command: None,
        call: None,
        approval: None,
        prompt: None,
        recipe: Recipe {
            driver: DriverName::FILE,
            version: 1,
            contents: vec![],
            slots: vec![],
            body: backout_model::JsonText::default(),
        },
    }
}

fn dead() -> Owner {
    Owner {
        started: 1,
        ..this_process()
    }
}

#[test]
fn records_are_numbered_and_read_back_by_another_process() {
    let world = World::new();
    world.commit(1, &[node("/a")]);
    world.commit(2, &[node("/b")]);
    let records = world.again().records_after(Lsn(0), 100).unwrap();
    let kinds: Vec<_> = records.iter().map(|r| (r.lsn.0, r.event.kind())).collect();
    let one = ["intent", "applied", "commit"];
    let expected: Vec<_> = (1..).zip(one.into_iter().chain(one)).collect();
    assert_eq!(kinds, expected);
    assert_eq!(
        world.store.operation(id(1)).unwrap().unwrap().status,
        Status::Committed
    );
}

#[test]
fn an_entry_is_all_or_nothing() {
    let world = World::new();
    let events = vec![
        Event::Intent(Box::new(intent(1, &[node("/a")]))),
        Event::Commit { id: id(9) }, // was never armed
    ];
    let content = NewContent::of(b"secret".to_vec());
    let digest = content.digest;
    let entry = Entry {
        events,
        contents: vec![content],
    };
    assert!(world.store.append(&entry, Durability::Power).is_err());
    assert_eq!(world.store.summary().unwrap().records, 0);
    assert!(!backout_model::ports::ReadContents::has(&world.store, &digest).unwrap());
}

#[test]
fn a_history_that_cannot_have_happened_is_refused() {
    let world = World::new();
    let committed = world.commit(1, &[node("/a")]);
    let again = Entry::of(vec![Event::Commit { id: committed }]);
    let error = world.store.append(&again, Durability::Process).unwrap_err();
    assert!(
        matches!(error, StorageError::Inconsistent { .. }),
        "{error}"
    );
    let twice = Entry::of(vec![Event::Intent(Box::new(intent(1, &[])))]);
    let error = world.store.append(&twice, Durability::Process).unwrap_err();
    assert!(matches!(error, StorageError::DuplicateId { .. }), "{error}");
}

#[test]
fn records_can_be_neither_changed_nor_deleted() {
    let world = World::new();
    world.commit(1, &[node("/a")]);
    for sql in [
        "UPDATE record SET at = 0",
        "DELETE FROM record",
        "DELETE FROM record WHERE lsn = 2",
    ] {
        let error = world.raw().execute(sql, []).unwrap_err();
        assert!(error.to_string().contains("append-only"), "{error}");
    }
}

#[test]
fn verify_names_the_record_that_somebody_changed_behind_our_back() {
    let world = World::new();
    for number in 1..=3 {
        world.commit(number, &[node("/a")]);
    }
    let clean = world.store.verify(&mut |_, _| {}).unwrap();
    assert_eq!((clean.records, clean.findings.len()), (9, 0));
    let raw = world.raw();
    raw.execute_batch(
        "DROP TRIGGER record_is_append_only; DROP TRIGGER record_is_cut_at_the_anchor;",
    )
    .unwrap();
    raw.execute(
        "UPDATE record SET body = cast(replace(body, 'write 2', 'write 9') AS BLOB) WHERE lsn = 4",
        [],
    )
    .unwrap();
    let findings = world.store.verify(&mut |_, _| {}).unwrap().findings;
    assert!(
        matches!(
            findings.as_slice(),
            [
                VerifyFinding::Record { lsn: Lsn(4), .. },
                VerifyFinding::Operation { .. },
                ..
            ]
        ),
        "{findings:?}"
    );
    raw.execute("DELETE FROM record WHERE lsn = 8", []).unwrap();
    let findings = world.store.verify(&mut |_, _| {}).unwrap().findings;
    assert!(
        findings
            .iter()
            .any(|f| matches!(f, VerifyFinding::Record { lsn: Lsn(9), .. }))
    );
}

#[test]
fn verify_sees_a_status_that_the_records_do_not_give() {
    let world = World::new();
    world.commit(1, &[node("/a")]);
    world
        .raw()
        .execute("UPDATE operation SET status = 'undone'", [])
        .unwrap();
    let findings = world.store.verify(&mut |_, _| {}).unwrap().findings;
    assert!(
        matches!(findings.as_slice(), [VerifyFinding::Operation { .. }]),
        "{findings:?}"
    );
}

#[test]
fn an_abort_that_left_something_behind_is_in_doubt() {
    let world = World::new();
    let outcome = |kind| TargetOutcome::new(node("/a"), kind);
    world.arm(1, &[node("/a")]);
    let outcomes = vec![outcome(OutcomeKind::Conflict {
        why: "changed".to_owned(),
    })];
    world.append(vec![Event::Abort {
        id: id(1),
        why: String::new(),
        outcomes,
        trigger: None,
    }]);
    world.arm(2, &[node("/a")]);
    let outcomes = vec![outcome(OutcomeKind::Restored)];
    world.append(vec![Event::Abort {
        id: id(2),
        why: String::new(),
        outcomes,
        trigger: None,
    }]);
    let status = |number| world.store.operation(id(number)).unwrap().unwrap().status;
    assert_eq!((status(1), status(2)), (Status::InDoubt, Status::Aborted));
    assert_eq!(world.store.stuck().unwrap().len(), 1);
}

#[test]
fn names_lead_to_one_operation_or_say_why_not() {
    let world = World::new();
    let none = world.store.resolve(&"@".parse().unwrap());
    assert!(matches!(none, Err(RefError::Unknown { .. })));
    for number in [0x1111, 0x1122, 0xff00] {
        world.commit(number, &[node("/a")]);
    }
    let resolve = |text: &str| world.store.resolve(&text.parse().unwrap());
    assert_eq!(resolve("@").unwrap(), id(0xff00));
    assert_eq!(resolve("@-2").unwrap(), id(0x1111));
    assert_eq!(resolve("FF").unwrap(), id(0xff00));
    assert_eq!(resolve("1122").unwrap(), id(0x1122));
    assert!(
        matches!(resolve("11"), Err(RefError::Ambiguous { candidates, .. }) if candidates.len() == 2)
    );
    assert!(matches!(resolve("@-3"), Err(RefError::Unknown { .. })));
    assert!(matches!(resolve("ab"), Err(RefError::Unknown { .. })));
}

#[test]
fn dependencies_follow_names_and_trees() {
    use DependencyReason::{HoldsTarget, InsideDirectory, SameTarget};
    let world = World::new();
    world.commit(1, &[tree("/d")]); // mkdir
    world.commit(2, &[node("/d/f")]);
    world.commit(3, &[node("/d/f")]);
    world.commit(4, &[node("/other")]);
    world.commit(5, &[tree("/d")]); // rm -r
    let edges = |number: u64| -> Vec<(u64, DependencyReason)> {
        let operation = world.store.operation(id(number)).unwrap().unwrap();
        operation
            .depends_on
            .iter()
            .map(|d| (d.on.bits() >> 48, d.reason))
            .collect()
    };
    assert_eq!(edges(1), []);
    assert_eq!(edges(2), [(1, InsideDirectory)]);
    assert_eq!(edges(3), [(1, InsideDirectory), (2, SameTarget)]);
    assert_eq!(edges(4), []);
    assert_eq!(edges(5), [(1, SameTarget), (3, HoldsTarget)]);
    let connected = world.store.connected(&[id(2)]).unwrap();
    assert_eq!(connected.len(), 4, "all but the unrelated one");
}

#[test]
fn many_targets_depend_on_what_each_of_them_depends_on() {
    let world = World::new();
    world.commit(1, &[tree("/d")]);
    for number in [2, 11, 40, 73] {
        world.commit(number, &[node(&format!("/d/f{number}"))]);
    }
    world.commit(99, &[node("/d/sub/deep"), node("/e")]);
    let mut targets: Vec<Target> = (0..100).map(|n| node(&format!("/d/f{n}"))).collect();
    targets.extend([node("/a"), node("/d/sub/deep"), tree("/e"), node("/z/none")]);
    // In a tree that is new, in one that stands on something, and in one in which something was written.
    targets.extend([
        tree("/new"),
        node("/new/a"),
        tree("/new/sub"),
        node("/new-a"),
    ]);
    targets.extend([node("/e/x"), tree("/d/sub"), node("/d/sub/other")]);
    targets.sort();
    let each: std::collections::BTreeSet<(OperationId, DependencyReason)> = targets
        .iter()
        .flat_map(|target| world.store.dependencies(std::slice::from_ref(target)))
        .flatten()
        .map(|found| (found.on, found.reason))
        .collect();
    let sorted = world.store.dependencies(&targets).unwrap();
    targets.reverse();
    for all in [sorted, world.store.dependencies(&targets).unwrap()] {
        let all: Vec<_> = all.into_iter().map(|it| (it.on, it.reason)).collect();
        assert_eq!(all, each.iter().copied().collect::<Vec<_>>());
    }
    assert_eq!(each.len(), 7, "all six operations, one for two reasons");
}

#[test]
fn what_was_undone_is_no_dependency_and_what_it_hid_is_one_again() {
    let world = World::new();
    world.commit(1, &[node("/a")]);
    world.commit(2, &[node("/a")]);
    let undo = Intent {
        undoes: Some(id(2)),
        verb: Verb::Undo,
        ..intent(3, &[node("/a")])
    };
    world.append(vec![
        Event::Intent(Box::new(undo)),
        Event::Applied {
            id: id(3),
            completion: backout_model::Completion::default(),
        },
        Event::Commit { id: id(3) },
        Event::Undone {
            id: id(2),
            by: id(3),
            outcomes: vec![],
            is_partial: false,
        },
    ]);
    let depends = world.store.dependencies(&[node("/a")]).unwrap();
    let reason = DependencyReason::SameTarget;
    assert_eq!(
        depends,
        [
            Dependency { on: id(1), reason },
            Dependency { on: id(3), reason }
        ]
    );
}

#[test]
fn a_lease_keeps_others_off_overlapping_targets_only() {
    let world = World::new();
    let other = Owner {
        pid: 1,
        started: crate::process(1).unwrap().started,
        ..this_process()
    };
    let lease = |number, target: Target, owner: &Owner| {
        world
            .store
            .lease(id(number), &[target], owner, &[])
            .unwrap()
    };
    assert_eq!(lease(1, tree("/d"), &other), Lease::Taken);
    assert!(matches!(
        lease(2, node("/d/f"), &this_process()),
        Lease::Held { .. }
    ));
    assert!(matches!(
        lease(2, node("/d"), &this_process()),
        Lease::Held { .. }
    ));
    assert_eq!(lease(2, node("/dd"), &this_process()), Lease::Taken);
    world.store.release(id(1)).unwrap();
    assert_eq!(lease(3, node("/d/f"), &this_process()), Lease::Taken);
}

#[test]
fn a_dead_owners_lease_is_taken_over_unless_something_is_armed() {
    let world = World::new();
    world
        .store
        .lease(id(1), &[node("/a")], &dead(), &[])
        .unwrap();
    let taken = world
        .store
        .lease(id(2), &[node("/a")], &this_process(), &[])
        .unwrap();
    assert_eq!(taken, Lease::Taken);
    let armed = Intent {
        owner: dead(),
        ..intent(3, &[node("/b")])
    };
    world
        .store
        .lease(id(3), &[node("/b")], &dead(), &[])
        .unwrap();
    world.append(vec![Event::Intent(Box::new(armed))]);
    let lease = world
        .store
        .lease(id(4), &[node("/b")], &this_process(), &[])
        .unwrap();
    assert_eq!(lease, Lease::Abandoned { by: id(3) });
}

#[test]
fn only_one_of_two_recoveries_claims_an_operation() {
    let world = World::new();
    let armed = Intent {
        owner: dead(),
        ..intent(1, &[node("/a")])
    };
    world.append(vec![Event::Intent(Box::new(armed))]);
    let seen_by_both = world.store.operation(id(1)).unwrap().unwrap();
    assert!(world.store.claim(&seen_by_both, &this_process()).unwrap());
    let second = Owner {
        pid: 1,
        ..this_process()
    };
    assert!(!world.again().claim(&seen_by_both, &second).unwrap());
    assert_eq!(world.store.first_owner(id(1)).unwrap(), dead());
}

#[test]
fn the_log_is_filtered_by_path_and_place() {
    let world = World::new();
    world.commit(1, &[node("/d/f")]);
    world.commit(2, &[node("/dd")]);
    world.commit(3, &[node("/d")]);
    let at = Some(TargetPath::new("/d").unwrap().into());
    let listed = world
        .store
        .operations(&Filter {
            at,
            ..Filter::default()
        })
        .unwrap();
    assert_eq!(
        listed.iter().map(|op| op.id).collect::<Vec<_>>(),
        [id(3), id(1)]
    );
    let after = Filter {
        after: Some(Lsn(3)),
        limit: Some(1),
        ..Filter::default()
    };
    assert_eq!(world.store.operations(&after).unwrap()[0].id, id(3));
}

#[test]
fn old_records_are_exported_and_cut_and_the_chain_goes_on() {
    let world = World::new();
    world.commit(1, &[node("/a")]);
    world.append(vec![Event::Expired {
        ids: vec![id(1)],
        why: "old".to_owned(),
    }]);
    world.pass(8 * 24 * 3600 * 1000);
    world.commit(2, &[node("/a")]);
    let file = world
        .store
        .cut_audit(&Retention::standard())
        .unwrap()
        .expect("something is cut");
    let exported = std::fs::read_to_string(&file).unwrap();
    assert_eq!(exported.lines().count(), 4);
    let first: serde_json::Value = serde_json::from_str(exported.lines().next().unwrap()).unwrap();
    assert_eq!(
        (first["lsn"].as_u64(), first["event"].as_str()),
        (Some(1), Some("intent"))
    );
    assert!(world.store.operation(id(1)).unwrap().is_none());
    let report = world.again().verify(&mut |_, _| {}).unwrap();
    assert_eq!((report.records, report.findings), (4, vec![]));
    world.commit(3, &[node("/a")]);
    assert_eq!(world.store.verify(&mut |_, _| {}).unwrap().findings, []);
    assert_eq!(world.store.cut_audit(&Retention::standard()).unwrap(), None);
}

#[test]
fn a_newer_store_is_refused_and_left_alone() {
    let world = World::new();
    world.raw().pragma_update(None, "user_version", 99).unwrap();
    let open = || Store::open(world.store.directory(), world.clock.clone()).unwrap_err();
    // The store was made with our format and says so: then the number is damage.
    assert!(matches!(open(), StorageError::NotWhole { .. }));
    std::fs::write(world.store.directory().join("lock"), "format 99\n").unwrap();
    let error = open();
    assert!(
        matches!(error, StorageError::NewerFormat { found: 99, .. }),
        "{error}"
    );
    assert!(error.is_broken());
}

#[test]
fn a_deleted_state_directory_takes_no_more_records() {
    let world = World::new();
    std::fs::remove_dir_all(world.store.directory()).unwrap();
    let entry = Entry::of(vec![Event::Intent(Box::new(intent(1, &[])))]);
    let error = world.store.append(&entry, Durability::Power).unwrap_err();
    assert!(matches!(error, StorageError::Gone { .. }), "{error}");
}

#[test]
fn garbage_in_place_of_the_journal_is_reported_as_damage() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(
        directory.path().join("journal.sqlite"),
        b"not a database at all, by far",
    )
    .unwrap();
    let clock = Arc::new(TestClock(AtomicI64::new(0)));
    let error = Store::open(directory.path(), clock).unwrap_err();
    assert!(matches!(error, StorageError::Damaged { .. }), "{error:?}");
}

#[test]
fn the_state_directory_is_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(world.store.directory()), 0o700);
    assert_eq!(mode(&world.store.directory().join("journal.sqlite")), 0o600);
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(world.store.directory(), open).unwrap();
    drop(world.again());
    assert_eq!(mode(world.store.directory()), 0o700, "closed again");
}

/// An undo of 10 000 files that a redo had brought back took minutes.
#[test]
fn the_end_of_a_redo_is_found_by_searches_and_not_by_scans() {
    let world = World::new();
    let explain = format!("EXPLAIN QUERY PLAN {}", super::standing::END_REDO);
    let plan: Vec<String> = world
        .store
        .read(|transaction| {
            let mut statement = transaction.prepare(&explain).unwrap();
            let rows = statement.query_map([1, 2, 3], |row| row.get(3)).unwrap();
            Ok(rows.collect::<Result<_, _>>().unwrap())
        })
        .unwrap();
    let back: Vec<&String> = plan.iter().filter(|line| line.contains("back")).collect();
    assert_eq!(back.len(), 3, "{plan:#?}");
    let is_search = |line: &&String| line.contains("SEARCH") && line.contains("path");
    assert!(back.iter().all(is_search), "{plan:#?}");
}
