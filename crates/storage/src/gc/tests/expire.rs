//! Which operations lose their images: every status, age and cap, redos, leases, and the cap.

use std::fs;

use backout_model::{Event, ExpiryReason, Refusal, Retention, Status, Verb};

use super::{ids, strict};
use crate::contents::fixture::{DAY_MS, HOUR_MS, World, id, node, noise};
use crate::gc::STEPS;
use crate::{GcRequest, StorageError, this_process};

#[test]
fn every_status_age_and_cap() {
    const CAPS: [u64; 2] = [u64::MAX, 0];
    let ages = [0, HOUR_MS - 1, HOUR_MS, DAY_MS, 31 * DAY_MS, 400 * DAY_MS];
    let statuses = [
        (Status::Armed, false),
        (Status::Applied, false),
        (Status::InDoubt, false),
        (Status::Failed, false),
        (Status::Committed, true),
        (Status::Aborted, true),
        (Status::Undone, true),
    ];
    for store_bytes_max in CAPS {
        for age in ages {
            let world = World::new();
            let retention = Retention {
                store_bytes_max,
                ..Retention::standard()
            };
            for (number, (status, _)) in statuses.iter().enumerate() {
                let number = number as u64;
                world.arm(number, &[&format!("/{number}")], &[&noise(number, 500)]);
                world.bring(id(number), *status);
            }
            world.pass(age);
            let report = world.gc(&retention);
            for (number, (status, is_finished)) in statuses.iter().enumerate() {
                let number = number as u64;
                let is_due = age >= 30 * DAY_MS || (age >= HOUR_MS && store_bytes_max == 0);
                let goes = *is_finished && is_due;
                let case = format!("{status}, {age} ms old, cap {store_bytes_max}");
                assert_eq!(ids(&report).contains(&number), goes, "{case}");
                assert_eq!(world.has(&noise(number, 500)), !goes, "{case}");
                assert_eq!(world.read(&noise(number, 500)), !goes, "{case}");
            }
            assert_eq!(report.contents, report.expired.len() as u64);
        }
    }
}

#[test]
fn expiry_is_recorded_and_happens_once() {
    let world = World::new();
    world.write(1, "/a", &[b"a file"]);
    world.pass(40 * DAY_MS);
    assert_eq!(
        world.gc(&Retention::standard()).expired,
        [(id(1), ExpiryReason::TooOld)]
    );
    assert_eq!(
        world.count("SELECT count(*) FROM record WHERE kind = 'expired'"),
        1
    );
    assert_eq!(world.count("SELECT retained FROM operation"), 0);
    assert_eq!(world.rows("reference"), 0);
    assert_eq!(world.gc(&Retention::standard()).expired, []);
    assert_eq!(
        world.count("SELECT count(*) FROM record WHERE kind = 'expired'"),
        1
    );
    assert_eq!(world.store.verify(&mut |_, _| {}).unwrap().findings, []);
}

#[test]
fn a_refused_operation_leaves_nothing() {
    let world = World::new();
    world.lease(1, "/a", true);
    world.stash(1, b"staged, and then refused");
    world.append(vec![Event::Refused(Box::new(Refusal {
        id: id(1),
        verb: Verb::Write,
        summary: "write".to_owned(),
        agent: None,
        targets: vec![node("/a")],
        owner: this_process(),
        why: "a test".to_owned(),
        call: None,
        trigger: None,
        decided: None,
    }))]);
    world.store.release(id(1)).unwrap();
    assert_eq!(world.gc(&Retention::standard()).contents, 1);
}

#[test]
fn a_file_keeps_its_newest_versions_and_they_stay_readable() {
    let world = World::new();
    let retention = Retention {
        versions_per_file_max: 3,
        ..Retention::standard()
    };
    let text = "the same line again\n".repeat(200);
    let versions: Vec<Vec<u8>> = (0..9)
        .map(|n| format!("{text}version {n} {}", n * 991).into_bytes())
        .collect();
    for n in 0..8 {
        world.write(n as u64, "/f", &[&versions[n], &versions[n + 1]]);
        world.pass(1);
    }
    world.compact();
    world.pass(2 * HOUR_MS);
    let report = world.gc(&retention);
    assert_eq!(ids(&report), [0, 1, 2, 3, 4]);
    assert!(
        report
            .expired
            .iter()
            .all(|(_, reason)| *reason == ExpiryReason::TooManyVersions)
    );
    for (number, version) in versions.iter().enumerate() {
        assert_eq!(world.read(version), number >= 5, "version {number}");
    }
}

#[test]
fn an_operation_and_its_redo_go_together() {
    let world = World::new();
    let (a, undo, redo) = (id(1), id(2), id(3));
    for n in 1..=3 {
        world.write(n, &format!("/{n}"), &[&noise(n, 400)]);
    }
    world.append(vec![Event::Undone {
        id: a,
        by: undo,
        outcomes: vec![],
        is_partial: false,
    }]);
    world.pass(DAY_MS);
    world.append(vec![Event::Undone {
        id: undo,
        by: redo,
        outcomes: vec![],
        is_partial: false,
    }]);
    world.append(vec![Event::Redone {
        id: a,
        by: redo,
        targets: None,
    }]);
    // The redo is a day old by itself, but it is how the operation would be taken back.
    world.pass(HOUR_MS - 1);
    assert_eq!(ids(&world.gc(&strict())), [0; 0]);
    world.pass(1);
    let mut gone = ids(&world.gc(&strict()));
    gone.sort_unstable();
    assert_eq!(gone, [1, 2, 3]);
}

#[test]
fn a_redo_of_something_uncommitted_stays() {
    let world = World::new();
    let task = world.arm(1, &["/f"], &[&noise(1, 400)]);
    world.bring(task, Status::Applied);
    world.write(2, "/g", &[&noise(2, 400)]);
    world
        .raw()
        .execute("UPDATE target SET held_by = 2 WHERE operation = 1", [])
        .unwrap();
    world.pass(400 * DAY_MS);
    assert_eq!(ids(&world.gc(&strict())), [0; 0]);
    assert!(world.read(&noise(1, 400)) && world.read(&noise(2, 400)));
}

/// The clock went back, somebody wrote, and the clock was put right: the newest operation looked months old.
#[test]
fn what_was_written_while_the_clock_was_wrong_is_as_young_as_what_came_before_it() {
    let world = World::new();
    world.write(1, "/a", &[&noise(1, 400)]);
    world.pass(-100 * DAY_MS);
    world.write(2, "/b", &[&noise(2, 400)]);
    world.pass(100 * DAY_MS + HOUR_MS - 1);
    assert_eq!(ids(&world.gc(&strict())), [0; 0]);
    world.pass(1);
    assert_eq!(ids(&world.gc(&strict())), [1, 2]);
}

#[test]
fn an_operation_whose_target_is_being_written_waits() {
    let world = World::new();
    world.write(1, "/dir/f", &[b"old"]);
    world.write(2, "/elsewhere", &[b"older"]);
    world.pass(400 * DAY_MS);
    world.lease(7, "/dir/f", true);
    assert_eq!(ids(&world.gc(&strict())), [2]);
    world.store.release(id(7)).unwrap();
    assert_eq!(ids(&world.gc(&strict())), [1]);
}

#[test]
fn the_lease_of_an_armed_operation_whose_owner_died_is_left_for_recovery() {
    let world = World::new();
    world.lease(1, "/f", false);
    world.arm(1, &["/f"], &[b"needed to go back"]);
    world.lease(2, "/g", false);
    fs::create_dir(world.path("staging").join(id(1).to_string())).unwrap();
    world.pass(400 * DAY_MS);
    world.gc(&strict());
    assert_eq!(world.count("SELECT operation FROM lease"), 1);
    assert_eq!(world.list("staging").len(), 1);
    assert!(world.read(b"needed to go back"));
}

#[test]
fn a_dry_run_foresees_and_changes_nothing() {
    let world = World::new();
    for n in 1..=3 {
        world.write(n, "/f", &[&noise(n, 5000), &noise(n + 1, 5000)]);
        world.pass(DAY_MS);
    }
    fs::create_dir(world.path("staging").join(id(77).to_string())).unwrap();
    let retention = Retention {
        committed_ms_max: 2 * DAY_MS,
        ..Retention::standard()
    };
    let request = GcRequest {
        retention: retention.clone(),
        is_dry_run: true,
        now: world.now(),
    };
    let foreseen = world.store.gc(&request, &mut |_, _| {}).unwrap();
    assert!(foreseen.is_dry_run);
    assert_eq!((ids(&foreseen), foreseen.staging), (vec![1, 2], 1));
    assert_eq!(world.count("SELECT sum(retained) FROM operation"), 3);
    assert_eq!(world.list("staging").len(), 1);
    let done = world.gc(&retention);
    assert_eq!(done.expired, foreseen.expired);
    assert_eq!(done.after.total, foreseen.after.total);
    assert_eq!(done.before, foreseen.before);
}

#[test]
fn over_the_cap_no_more_goes_than_must() {
    let world = World::new();
    // Neighbours share a version, so no operation is the only one that needs its images.
    for n in 0..10 {
        world.write(n, "/f", &[&noise(n, 10_000), &noise(n + 1, 10_000)]);
        world.pass(HOUR_MS);
    }
    let retention = Retention {
        store_bytes_max: 75_000,
        ..Retention::standard()
    };
    let report = world.gc(&retention);
    assert_eq!(ids(&report), [0, 1, 2, 3], "11 versions were stored, 7 fit");
    assert_eq!(report.after.total, 70_000);
}

#[test]
fn room_is_made_or_the_next_write_is_refused() {
    let world = World::new();
    let retention = Retention {
        store_bytes_max: 100_000,
        ..Retention::standard()
    };
    let make_room = || world.store.make_room(&retention, world.now(), 0);
    for n in 0..11 {
        world.write(n, "/f", &[&noise(n, 10_000)]);
        world.pass(1);
    }
    // Everything is younger than an hour: nothing may go.
    let refused = make_room();
    assert!(matches!(
        refused,
        Err(StorageError::OverCap {
            stored: 110_000,
            adding: 0,
            cap: 100_000
        })
    ));
    assert_eq!(world.rows("content"), 11);
    world.pass(HOUR_MS);
    make_room().unwrap();
    // Down to nine tenths, so that the next writes need not do it again.
    assert_eq!(world.store.stored_bytes().unwrap().total, 90_000);
    assert_eq!(
        world.count("SELECT max(id) FROM operation WHERE retained = 0"),
        1
    );
    make_room().unwrap();
    assert_eq!(world.store.stored_bytes().unwrap().total, 90_000);

    // What is not committed is never let go, so the store stays full and says so.
    world.arm(90, &["/g"], &[&noise(90, 150_000)]);
    world.pass(400 * DAY_MS);
    assert!(matches!(
        make_room(),
        Err(StorageError::OverCap {
            stored: 150_000,
            ..
        })
    ));
    assert!(world.read(&noise(90, 150_000)));
}

#[test]
fn audit_records_are_counted_from_the_moment_their_images_went() {
    let world = World::new();
    let count = || world.gc(&Retention::standard()).audit_records;
    world.write(1, "/a", &[b"one"]);
    world.pass(40 * DAY_MS);
    world.write(2, "/b", &[b"two"]);
    assert_eq!(count(), 0, "the images went just now");
    world.pass(7 * DAY_MS - 1);
    assert_eq!(count(), 0);
    world.pass(1);
    assert_eq!(
        count(),
        3,
        "intent, applied and commit of the first operation"
    );
    world.pass(23 * DAY_MS);
    assert_eq!(count(), 3, "the images of the second went just now");
    world.pass(7 * DAY_MS);
    assert_eq!(count(), 8, "everything");
}

#[test]
fn progress_comes_to_its_end() {
    let world = World::new();
    let mut seen = Vec::new();
    let request = GcRequest {
        retention: strict(),
        is_dry_run: false,
        now: world.now(),
    };
    world
        .store
        .gc(&request, &mut |done, total| seen.push((done, total)))
        .unwrap();
    assert!(seen.is_sorted());
    assert_eq!(seen.last(), Some(&(STEPS, STEPS)));
}

#[test]
fn of_operations_that_finished_together_the_first_goes_first() {
    let world = World::new();
    // A task: many edits of one file, committed at one moment. Ids are random, so they say nothing.
    let number = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for n in 0..20 {
        world.write(number(n), "/f", &[&noise(n, 3000), &noise(n + 1, 3000)]);
    }
    world.pass(2 * HOUR_MS);
    let retention = Retention {
        versions_per_file_max: 5,
        ..Retention::standard()
    };
    let gone = ids(&world.gc(&retention));
    assert_eq!(gone, (0..15).map(number).collect::<Vec<_>>());
    let retention = Retention {
        store_bytes_max: 10_000,
        ..Retention::standard()
    };
    let gone = ids(&world.gc(&retention));
    assert_eq!(gone, (15..18).map(number).collect::<Vec<_>>());
    assert!(world.read(&noise(18, 3000)) && world.read(&noise(20, 3000)));
}

#[test]
fn the_cap_is_reached_even_if_versions_depend_on_each_other() {
    let world = World::new();
    let text = noise(1, 5000);
    let version = |n: u8| [text.as_slice(), &[n; 9]].concat();
    for n in 0..20_u8 {
        let (before, after) = (version(n), version(n + 1));
        let operation = world.arm(u64::from(n), &["/f"], &[&before, &after]);
        // The oldest wait for their task, so the newest must go, and with it what the others are stored against.
        let status = if n < 2 {
            Status::Applied
        } else {
            Status::Committed
        };
        world.bring(operation, status);
        world.pass(1);
    }
    world.compact();
    world.pass(2 * HOUR_MS);
    let retention = Retention {
        store_bytes_max: 100,
        ..Retention::standard()
    };
    let refused = world.store.make_room(&retention, world.now(), 0);
    assert!(matches!(refused, Err(StorageError::OverCap { .. })));
    assert_eq!(world.count("SELECT sum(retained) FROM operation"), 2);
    for n in 0..=2 {
        assert!(world.read(&version(n)));
    }
    assert_eq!(world.rows("content"), 3);
}
