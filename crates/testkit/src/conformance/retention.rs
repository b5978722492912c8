//! What goes, and what never does.

use backout_model::ports::StorageError;
use backout_model::{
    Asked, Digest, DriverName, Event, ExpiryReason, Intent, OperationId, OutcomeKind, Retention,
    TargetOutcome, Verb,
};
use backout_storage::this_process;

use super::{World, applied, dead, id, intent, node};

const HOUR_MS: i64 = 60 * 60 * 1000;
const DAY_MS: i64 = 24 * HOUR_MS;

/// All that may go goes after an hour.
fn strict() -> Retention {
    Retention {
        committed_ms_max: HOUR_MS,
        ..Retention::standard()
    }
}

fn has(world: &World, bytes: &[u8]) -> bool {
    world.store.has(&Digest::of(bytes)).expect("asked")
}

fn ids(expired: &[(OperationId, ExpiryReason)]) -> Vec<OperationId> {
    let mut ids: Vec<_> = expired.iter().map(|(id, _)| *id).collect();
    ids.sort_unstable();
    ids
}

/// With a record of it; what a younger one needs too stays.
pub fn what_is_past_its_time_goes_and_can_no_longer_be_undone(world: &World) {
    world.finish(world.arm_with(1, &[node("/a")], &[b"old", b"both"]));
    world.clock.pass(HOUR_MS);
    world.finish(world.arm_with(2, &[node("/a")], &[b"both"]));
    let report = world.gc(&strict(), false);
    assert_eq!(report.expired, [(id(1), ExpiryReason::TooOld)]);
    assert!(!world.operation(id(1)).retained);
    assert!(world.operation(id(2)).retained);
    assert_eq!((has(world, b"old"), has(world, b"both")), (false, true));
    assert_eq!(report.contents, 1);
    assert!(report.after.total < report.before.total);
    let records = world
        .store
        .records_after(backout_model::Lsn(6), 9)
        .expect("read");
    let kinds: Vec<_> = records.iter().map(|it| it.event.kind()).collect();
    assert_eq!(kinds, ["expired"]);
    assert_eq!(world.gc(&strict(), false).expired, []);
}

/// Armed, applied, in doubt, interrupted: whatever its age.
pub fn what_is_unfinished_never_goes(world: &World) {
    world.arm_with(1, &[node("/armed")], &[b"armed"]);
    world.arm_with(2, &[node("/applied")], &[b"applied"]);
    world.append(vec![applied(id(2))]);
    world.arm_with(3, &[node("/doubt")], &[b"doubt"]);
    let why = "changed".to_owned();
    world.append(vec![Event::Abort {
        id: id(3),
        why: String::new(),
        outcomes: vec![TargetOutcome::new(
            node("/doubt"),
            OutcomeKind::Conflict { why },
        )],
        trigger: None,
    }]);
    world.arm_with(4, &[node("/interrupted")], &[b"interrupted"]);
    world.append(vec![Event::Interrupted {
        id: id(4),
        completion: backout_model::Completion::default(),
    }]);
    world.clock.pass(999 * DAY_MS);
    assert_eq!(world.gc(&strict(), false).expired, []);
    for kept in [&b"armed"[..], b"applied", b"doubt", b"interrupted"] {
        assert!(has(world, kept));
    }
}

/// But says what would go.
pub fn a_dry_run_changes_nothing(world: &World) {
    world.finish(world.arm_with(1, &[node("/a")], &[b"old"]));
    world.clock.pass(2 * HOUR_MS);
    let before = world.store.summary().expect("numbers");
    let report = world.gc(&strict(), true);
    assert!(report.is_dry_run);
    assert_eq!(ids(&report.expired), [id(1)]);
    assert!(has(world, b"old"));
    assert_eq!(world.store.summary().expect("numbers"), before);
}

/// When the youngest of them is due.
pub fn an_operation_and_what_took_it_back_go_together(world: &World) {
    world.finish(world.arm_with(1, &[node("/a")], &[b"first"]));
    world.clock.pass(50 * HOUR_MS);
    let undo = world.undo(2, id(1), &[node("/a")]);
    assert_eq!(world.gc(&strict(), false).expired, [], "the undo is young");
    assert!(has(world, b"first"));
    world.clock.pass(HOUR_MS);
    assert_eq!(ids(&world.gc(&strict(), false).expired), [id(1), undo]);
    assert!(!has(world, b"first"));
    // Taken back in two parts: the first undo waits for the second.
    world.commit(3, &[node("/a"), node("/b")]);
    let take_back = |number, path| {
        let by = world.finish(world.arm_as(Intent {
            verb: Verb::Undo,
            undoes: Some(id(3)),
            ..intent(number, &[node(path)])
        }));
        let outcome = TargetOutcome::new(node(path), OutcomeKind::Restored);
        world.append(vec![Event::Undone {
            id: id(3),
            by,
            outcomes: vec![outcome],
            is_partial: true,
        }]);
    };
    take_back(4, "/a");
    world.clock.pass(50 * HOUR_MS);
    take_back(5, "/b");
    assert_eq!(world.gc(&strict(), false).expired, []);
    world.clock.pass(HOUR_MS);
    let gone = ids(&world.gc(&strict(), false).expired);
    assert_eq!(gone, [id(3), id(4), id(5)]);
}

/// Its history may be needed for that.
pub fn what_somebody_is_about_to_write_waits(world: &World) {
    world.finish(world.arm_with(1, &[node("/a")], &[b"old"]));
    world.clock.pass(2 * HOUR_MS);
    let leased = world
        .store
        .lease(id(2), &[node("/a")], &this_process(), &[]);
    leased.expect("leased");
    assert_eq!(world.gc(&strict(), false).expired, []);
    world.store.release(id(2)).expect("released");
    assert_eq!(ids(&world.gc(&strict(), false).expired), [id(1)]);
}

/// Their lease says so. What the dead put aside goes, and their leases with it.
pub fn what_is_put_aside_for_the_living_stays(world: &World) {
    for (number, owner, bytes) in [(1, this_process(), &b"living"[..]), (2, dead(), b"dead")] {
        let target = [node(&format!("/{number}"))];
        let leased = world.store.lease(id(number), &target, &owner, &[]);
        leased.expect("leased");
        world.store.stash(id(number), &mut &*bytes).expect("kept");
    }
    world.gc(&strict(), false);
    assert_eq!((has(world, b"living"), has(world, b"dead")), (true, false));
    assert_eq!(world.store.summary().expect("numbers").leases, 1);
}

/// And is named.
pub fn what_no_driver_here_understands_stays(world: &World) {
    let queue = DriverName::from("queue".to_owned());
    let mut other = intent(1, &[node("/a")]);
    other.recipe.driver = queue.clone();
    world.finish(world.arm_as(other));
    world.clock.pass(2 * HOUR_MS);
    world.store.know_driver(DriverName::FILE);
    let report = world.gc(&strict(), false);
    assert_eq!(report.expired, []);
    let others: Vec<_> = report.others.iter().map(|it| (it.id, &it.driver)).collect();
    assert_eq!(others, [(id(1), &queue)]);
    let verified = world.store.verify_with(&|_, _| Vec::new(), &mut |_, _| {});
    assert_eq!(verified.expect("checked").others, report.others);
    world.store.know_driver(queue);
    assert_eq!(ids(&world.gc(&strict(), false).expired), [id(1)]);
}

/// What is old enough goes for it, oldest first.
pub fn a_full_store_refuses_what_it_has_no_room_for(world: &World) {
    // Nothing that could be stored in less space.
    let bytes = |seed: u64| -> Vec<u8> {
        let hash = |n: u64| *Digest::of(&(seed * 1000 + n).to_le_bytes()).as_bytes();
        (0..30).flat_map(hash).collect()
    };
    world.finish(world.arm_with(1, &[node("/a")], &[&bytes(1)]));
    world.clock.pass(2 * HOUR_MS);
    world.finish(world.arm_with(2, &[node("/b")], &[&bytes(2)]));
    let stored = world.store.stored_bytes().expect("known").total;
    let small = Retention {
        store_bytes_max: stored + 100,
        ..Retention::standard()
    };
    let make_room = |adding| world.store.make_room(&small, world.now(), adding);
    make_room(100).expect("there is room");
    assert!(has(world, &bytes(1)));
    make_room(500).expect("the old one goes");
    assert_eq!(
        (has(world, &bytes(1)), has(world, &bytes(2))),
        (false, true)
    );
    let refused = make_room(stored);
    let cap = stored + 100;
    assert!(
        matches!(refused, Err(StorageError::OverCap { cap: it, .. }) if it == cap),
        "{refused:?}"
    );
    assert!(has(world, &bytes(2)), "it is not an hour old");
}

/// The records in the file and those in the journal are one chain.
pub fn old_records_are_exported_and_cut_and_the_chain_goes_on(world: &World) {
    world.commit(1, &[node("/a")]);
    world.finish(world.arm_as(Intent {
        verb: Verb::Append,
        ..intent(2, &[node("/b")])
    }));
    world.clock.pass(40 * DAY_MS);
    assert_eq!(
        ids(&world.gc(&Retention::standard(), false).expired),
        [id(1), id(2)]
    );
    assert_eq!(
        world.store.cut_audit(&Retention::standard()).expect("cut"),
        None,
        "too young"
    );
    world.clock.pass(8 * DAY_MS);
    world.commit(3, &[node("/a")]);
    let file = world.store.cut_audit(&Retention::standard()).expect("cut");
    let exported = std::fs::read_to_string(file.expect("something is cut")).expect("a file");
    assert_eq!(exported.lines().count(), 7);
    assert_eq!(world.store.operation(id(1)).expect("asked"), None);
    let world_again = world.again();
    let report = world_again.verify_with(&|_, _| Vec::new(), &mut |_, _| {});
    let report = report.expect("checked");
    assert_eq!((report.records, report.findings), (4, Vec::new()));
    world.commit(4, &[node("/a")]);
    let last = world.store.summary().expect("numbers").last_lsn;
    assert_eq!(last, backout_model::Lsn(14));
    assert_eq!(
        world.store.cut_audit(&Retention::standard()).expect("cut"),
        None
    );
}

/// A call that is made again within a week gets its first answer, however short records are kept.
pub fn a_key_outlives_its_images_and_a_short_audit(world: &World) {
    let call = Asked::new("call-1".parse().expect("a key"), Digest::of(b"asked"));
    world.finish(world.arm_as(Intent {
        call: Some(call.clone()),
        ..intent(1, &[node("/a")])
    }));
    world.clock.pass(2 * DAY_MS);
    let short = Retention {
        committed_ms_max: DAY_MS,
        audit_ms: 0,
        ..Retention::standard()
    };
    assert_eq!(ids(&world.gc(&short, false).expired), [id(1)]);
    let answer = || world.store.answer_to(&call.key).expect("asked");
    assert_eq!(world.store.cut_audit(&short).expect("cut"), None);
    assert_eq!(answer(), Some((id(1), call.clone())));
    world.clock.pass(6 * DAY_MS);
    assert!(world.store.cut_audit(&short).expect("cut").is_some());
    assert_eq!(answer(), None);
}
