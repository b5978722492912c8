//! What goes and what stays: every status, age and cap, leases, redos, leftovers, and a `gc` that dies.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use backout_model::ports::{ReadContents as _, WriteContents as _};
use backout_model::{
    Digest, Event, OperationId, Retention, Slot, Status, TargetPath, Timestamp, Verb, Verdict,
};

use super::{GcReport, GcRequest};
use crate::contents::fixture::{DAY_MS, HOUR_MS, World, id, node, noise};
use crate::{StorageError, this_process};

const MIB: usize = 1 << 20;

/// Keeps nothing longer than the guaranteed hour.
fn strict() -> Retention {
    Retention {
        committed_ms_max: HOUR_MS,
        ..Retention::standard()
    }
}

fn slot(world: &World, number: u64, at: u8) -> Slot {
    let depot = TargetPath::new(fs::canonicalize(world.path("depot")).unwrap()).unwrap();
    Slot {
        depot,
        name: format!("{}-{at}", id(number)),
    }
}

fn ids(report: &GcReport) -> Vec<u64> {
    report.expired.iter().map(|(id, _)| id.bits()).collect()
}

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
        [(id(1), Verdict::TooOld)]
    );
    assert_eq!(
        world.count("SELECT count(*) FROM record WHERE kind = 'expired'"),
        1
    );
    assert_eq!(world.count("SELECT retained FROM operation"), 0);
    assert_eq!(world.count("SELECT count(*) FROM reference"), 0);
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
    world.append(vec![Event::Refused {
        id: id(1),
        verb: Verb::Write,
        summary: "write".to_owned(),
        agent: None,
        targets: vec![node("/a")],
        owner: this_process(),
        why: "a test".to_owned(),
    }]);
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
            .all(|(_, verdict)| *verdict == Verdict::TooManyVersions)
    );
    for (number, version) in versions.iter().enumerate() {
        assert_eq!(world.read(version), number >= 5, "version {number}");
    }
}

#[test]
fn a_dead_version_that_others_are_stored_against_is_replaced_first() {
    // The newest version goes, and one in the middle; those between depend on both.
    let text = noise(1, 3000);
    let versions: Vec<Vec<u8>> = (0..6_u8)
        .map(|n| [text.as_slice(), &[n; 40]].concat())
        .collect();
    let world = World::new();
    for n in 0..5 {
        let operation = world.arm(n as u64, &["/f"], &[&versions[n], &versions[n + 1]]);
        let status = if n == 2 || n == 4 {
            Status::Committed
        } else {
            Status::Applied
        };
        world.bring(operation, status);
    }
    world.compact();
    assert_eq!(
        world.count("SELECT count(*) FROM content WHERE form = 2"),
        5
    );
    // Operation 1 needs version 2, operation 3 needs version 3 and 4: nothing but version 5 is free.
    world.pass(DAY_MS);
    let report = world.gc(&strict());
    assert_eq!(ids(&report), [2, 4]);
    assert_eq!((report.contents, report.rewritten), (1, 1));
    for (number, version) in versions.iter().enumerate() {
        assert_eq!(world.read(version), number < 5, "version {number}");
    }
    // Now operation 3 as well: versions 3 and 4 go, and versions 0 to 2 stay.
    world.append(vec![Event::Commit { id: id(3) }]);
    world.pass(DAY_MS);
    let report = world.gc(&strict());
    assert_eq!(report.contents, 2);
    for (number, version) in versions.iter().enumerate() {
        assert_eq!(world.read(version), number < 3, "version {number}");
    }
    // And one in the middle of a chain: its dependent is stored against the next that lives.
    let report = {
        world
            .raw()
            .execute(
                "DELETE FROM reference WHERE digest = ?1",
                [Digest::of(&versions[1]).as_bytes().as_slice()],
            )
            .unwrap();
        world.gc(&strict())
    };
    assert_eq!((report.contents, report.rewritten), (1, 1));
    assert!(world.read(&versions[0]) && !world.has(&versions[1]) && world.read(&versions[2]));
    assert_eq!(
        world.count("SELECT count(*) FROM content WHERE form = 2"),
        1
    );
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
    }]);
    world.pass(DAY_MS);
    world.append(vec![Event::Undone {
        id: undo,
        by: redo,
        outcomes: vec![],
    }]);
    world.append(vec![Event::Redone { id: a, by: redo }]);
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
        .execute("UPDATE operation SET redone_by = 2 WHERE id = 1", [])
        .unwrap();
    world.pass(400 * DAY_MS);
    assert_eq!(ids(&world.gc(&strict())), [0; 0]);
    assert!(world.read(&noise(1, 400)) && world.read(&noise(2, 400)));
}

#[test]
fn what_a_living_process_put_aside_stays_and_what_a_dead_one_did_goes() {
    let world = World::new();
    let contents = [
        noise(1, 9000),
        noise(2, 9000),
        noise(3, 2 * MIB),
        noise(4, 2 * MIB),
    ];
    for (number, bytes) in contents.iter().enumerate() {
        let number = number as u64;
        world.lease(number, &format!("/{number}"), number % 2 == 0);
        world.stash(number, bytes);
        fs::create_dir(world.path("staging").join(id(number).to_string())).unwrap();
        fs::write(slot(&world, number, 0).path().as_path(), b"kept by a link").unwrap();
    }
    // Nobody ever had a lease for this one.
    let nobody = noise(5, 9000);
    world.stash(9, &nobody);
    world.pass(400 * DAY_MS);
    let report = world.gc(&Retention {
        store_bytes_max: 0,
        ..strict()
    });
    for (number, bytes) in contents.iter().enumerate() {
        let number = number as u64;
        assert_eq!(world.read(bytes), number % 2 == 0, "{number}");
        assert_eq!(
            slot(&world, number, 0).path().as_path().exists(),
            number % 2 == 0,
            "{number}"
        );
    }
    assert!(!world.has(&nobody));
    assert_eq!(
        world.list("staging"),
        [id(0).to_string(), id(2).to_string()]
    );
    assert_eq!(world.list("contents"), ["1.pack"]);
    assert_eq!(
        (report.contents, report.slots, report.staging, report.packs),
        (3, 2, 2, 1)
    );
    assert_eq!(world.count("SELECT count(*) FROM lease"), 2);
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
fn kept_inodes_go_with_their_operation() {
    let world = World::new();
    for number in 1..=2 {
        let slot = slot(&world, number, 0);
        fs::write(slot.path().as_path(), noise(number, 100_000)).unwrap();
        world.arm_with(number, &["/f"], &[], vec![slot]);
    }
    world.bring(id(1), Status::Committed);
    let stored = world.store.stored_bytes().unwrap();
    assert!((200_000..300_000).contains(&stored.slots), "{stored:?}");
    fs::write(world.path("depot/not-ours"), b"").unwrap();
    world.pass(40 * DAY_MS);
    let report = world.gc(&Retention::standard());
    assert_eq!((ids(&report), report.slots), (vec![1], 1));
    assert_eq!(
        world.list("depot"),
        [slot(&world, 2, 0).name, "not-ours".to_owned()]
    );
    assert_eq!(world.store.stored_bytes().unwrap().slots * 2, stored.slots);
}

#[test]
fn a_parked_tree_is_measured_and_removed_whatever_is_in_it() {
    let world = World::new();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("precious"), b"not ours").unwrap();
    let slot = slot(&world, 1, 0);
    world.arm_with(1, &["/tree"], &[], vec![slot.clone()]);
    world.bring(id(1), Status::Committed);
    assert_eq!(
        world.store.stored_bytes().unwrap().slots,
        0,
        "it is parked after arming"
    );

    let top = slot.path().as_path().to_path_buf();
    fs::create_dir_all(top.join("a/b/c")).unwrap();
    fs::write(top.join("a/b/c/file"), noise(1, 500_000)).unwrap();
    fs::hard_link(top.join("a/b/c/file"), top.join("a/again")).unwrap();
    symlink(outside.path(), top.join("a/link")).unwrap();
    symlink(outside.path().join("precious"), top.join("link")).unwrap();
    fs::create_dir(top.join("empty")).unwrap();
    for closed in ["a/b/c", "a/b", "a", "empty"] {
        fs::set_permissions(top.join(closed), fs::Permissions::from_mode(0o000)).unwrap();
    }
    world.gc(&Retention::standard());
    if rustix::process::geteuid().is_root() {
        let slots = world.store.stored_bytes().unwrap().slots;
        assert!((500_000..600_000).contains(&slots), "{slots}");
    }
    world.pass(40 * DAY_MS);
    let report = world.gc(&Retention::standard());
    assert_eq!((report.slots, report.left.as_slice()), (1, [].as_slice()));
    assert_eq!(world.list("depot"), [""; 0]);
    assert!(outside.path().join("precious").exists());
    assert_eq!(world.store.stored_bytes().unwrap().total, 0);
}

#[test]
fn no_tree_is_too_deep() {
    let world = World::new();
    let depot = fs::File::open(world.path("depot")).unwrap();
    let mut at = std::os::fd::OwnedFd::from(depot);
    for level in 0..3000 {
        let name = if level == 0 {
            slot(&world, 1, 0).name
        } else {
            "directory".to_owned()
        };
        let flags = rustix::fs::OFlags::DIRECTORY;
        rustix::fs::mkdirat(&at, &name, rustix::fs::Mode::RWXU).unwrap();
        at = rustix::fs::openat(&at, &name, flags, rustix::fs::Mode::empty()).unwrap();
    }
    let report = world.gc(&Retention::standard());
    assert_eq!((report.slots, report.left.as_slice()), (1, [].as_slice()));
    assert_eq!(world.list("depot"), [""; 0]);
}

#[test]
fn a_tree_that_was_taken_out_again_counts_as_nothing() {
    let world = World::new();
    let slot = slot(&world, 1, 0);
    fs::write(slot.path().as_path(), noise(1, 50_000)).unwrap();
    world.arm_with(1, &["/f"], &[], vec![slot.clone()]);
    assert!(world.store.stored_bytes().unwrap().slots >= 50_000);
    fs::remove_file(slot.path().as_path()).unwrap();
    world.gc(&Retention::standard());
    assert_eq!(world.store.stored_bytes().unwrap().slots, 0);
}

#[test]
fn chunks_go_with_the_last_content_that_needs_them() {
    let world = World::new();
    let common = noise(1, 4 * MIB);
    let first = [noise(2, 12 * MIB), common.clone()].concat();
    let second = [common.clone(), noise(3, MIB)].concat();
    for (number, bytes) in [(1, &first), (2, &second)] {
        world.lease(number, &format!("/{number}"), true);
        world.stash(number, bytes);
        world.arm(number, &[&format!("/{number}")], &[]);
        let refer = "INSERT OR IGNORE INTO reference VALUES (?1, ?2)";
        let digest = Digest::of(bytes);
        world
            .raw()
            .execute(refer, (number.cast_signed(), digest.as_bytes().as_slice()))
            .unwrap();
        world.bring(id(number), Status::Committed);
        world.store.release(id(number)).unwrap();
        world.pass(DAY_MS);
    }
    assert_eq!(world.list("contents"), ["1.pack", "2.pack"]);
    // The first goes; three quarters of its pack are dead, so what is left of it moves.
    let before = world.store.stored_bytes().unwrap().packs;
    let retention = Retention {
        committed_ms_max: 2 * DAY_MS,
        ..Retention::standard()
    };
    let report = world.gc(&retention);
    assert_eq!(
        (ids(&report), report.contents, report.repacked, report.packs),
        (vec![1], 1, 1, 1)
    );
    assert!(report.chunks > 100, "{}", report.chunks);
    assert_eq!(world.list("contents"), ["2.pack", "3.pack"]);
    let after = world.store.stored_bytes().unwrap().packs;
    assert!(
        before - after > 11 * MIB as u64,
        "{before} before, {after} after"
    );
    assert!(world.read(&second));
    // And then the second.
    world.pass(2 * DAY_MS);
    assert_eq!(world.gc(&retention).packs, 2);
    assert_eq!(world.list("contents"), [""; 0]);
    assert_eq!(world.store.stored_bytes().unwrap().total, 0);
}

#[test]
fn a_pack_is_not_taken_from_under_a_reader() {
    let world = World::new();
    let bytes = noise(1, 2 * MIB);
    let digest = world.stash(1, &bytes);
    let mut opened = world.store.open(&digest).unwrap();
    assert!(world.gc(&Retention::standard()).is_busy);
    assert_eq!(world.list("contents"), ["1.pack"]);
    let mut read = Vec::new();
    opened.read_to_end(&mut read).unwrap();
    assert_eq!(read, bytes);
    drop(opened);
    let report = world.gc(&Retention::standard());
    assert_eq!((report.is_busy, report.packs), (false, 1));
}

#[test]
fn a_pack_with_a_damaged_chunk_is_not_tidied_away() {
    let world = World::new();
    world.lease(1, "/1", true);
    world.lease(2, "/2", true);
    let (kept, gone) = (noise(1, MIB), noise(2, 9 * MIB));
    world.stash(1, &kept);
    world.stash(2, &[kept.as_slice(), &gone].concat());
    // The small part is in pack 1; make pack 2 sparse and hurt a living chunk of it.
    world.stash(1, &gone[..2 * MIB]);
    world.store.release(id(2)).unwrap();
    world
        .raw()
        .execute(
            "UPDATE chunk SET size = size - 1 WHERE pack = 2 AND offset > 0",
            [],
        )
        .unwrap();
    let report = world.gc(&Retention::standard());
    assert_eq!((report.repacked, report.left.len()), (0, 1));
    assert!(world.list("contents").contains(&"2.pack".to_owned()));
    assert!(world.read(&kept));
}

#[test]
fn stashes_and_collections_at_once_lose_nothing() {
    let world = World::new();
    let common = noise(99, 2 * MIB);
    for n in 0..4 {
        world.lease(n, &format!("/{n}"), true);
    }
    std::thread::scope(|scope| {
        for n in 0..4_u64 {
            let (store, common) = (world.again(), &common);
            scope.spawn(move || {
                for round in 0..3 {
                    let bytes = [common.as_slice(), &noise(n * 10 + round, MIB)].concat();
                    let (digest, _) = store.stash(id(n), &mut bytes.as_slice()).unwrap();
                    store.check_content(&digest).unwrap();
                }
            });
        }
        let store = world.again();
        let request = GcRequest {
            retention: strict(),
            is_dry_run: false,
            now: Timestamp(i64::MAX),
        };
        scope.spawn(move || {
            for _ in 0..5 {
                store.gc(&request, &mut |_, _| {}).unwrap();
            }
        });
    });
    for n in 0..4_u64 {
        for round in 0..3 {
            assert!(world.read(&[common.as_slice(), &noise(n * 10 + round, MIB)].concat()));
        }
    }
    world.counts_are_right();
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
    let make_room = || world.store.make_room(&retention, world.now());
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
            cap: 100_000
        })
    ));
    assert_eq!(world.count("SELECT count(*) FROM content"), 11);
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
fn free_pages_are_given_back() {
    let world = World::new();
    for n in 0..100 {
        world.write(n, "/f", &[&noise(n, 50_000)]);
    }
    world.pass(40 * DAY_MS);
    world.gc(&Retention::standard());
    assert_eq!(world.count("PRAGMA freelist_count"), 0);
    let pages = world.count("PRAGMA page_count") * world.count("PRAGMA page_size");
    assert!(pages < 1_000_000, "{pages} bytes");
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
    assert_eq!(seen.last(), Some(&(super::STEPS, super::STEPS)));
}

#[test]
fn a_name_belongs_to_an_operation_only_if_it_begins_with_its_id() {
    let of =
        |name: &str| super::tidy::operation_of(name.as_bytes()).map(|bits| bits.cast_unsigned());
    assert_eq!(of("00000000000000ff"), Some(255));
    assert_eq!(of("00000000000000ff-1"), Some(255));
    assert_eq!(of("ffffffffffffffff-1~77"), Some(u64::MAX));
    for name in [
        "",
        "ff",
        "00000000000000ff1",
        "00000000000000fg-1",
        "lost+found",
        "0000000000000ü0-1",
    ] {
        assert_eq!(of(name), None, "{name}");
    }
    assert_eq!(OperationId::from_bits(255).to_string(), "00000000000000ff");
}

#[cfg(feature = "testing")]
mod crashes {
    use super::*;
    use crate::contents::fixture::{dies_at, state_of_child};

    const POINTS: [&str; 14] = [
        "journal.before-commit",
        "gc.expired",
        "gc.references-dropped",
        "gc.contents-removed",
        "gc.chunks-removed",
        "gc.packs-forgotten",
        "gc.pack-removed",
        "pack.created",
        "pack.written",
        "pack.dir-synced",
        "gc.repacked",
        "gc.pack-removed#2",
        "gc.slot-removed",
        "gc.staging-removed",
    ];

    /// A world with something to do for every step; one image of each kind must survive.
    fn littered() -> (World, Vec<Vec<u8>>) {
        let world = World::new();
        let text = noise(1, 2000);
        let versions: Vec<Vec<u8>> = (0..5_u8)
            .map(|n| [text.as_slice(), &[n; 30]].concat())
            .collect();
        for n in 0..4 {
            let operation = world.arm(n as u64, &["/f"], &[&versions[n], &versions[n + 1]]);
            let status = if n == 1 {
                Status::Applied
            } else {
                Status::Committed
            };
            world.bring(operation, status);
        }
        world.compact();
        // A pack that is mostly dead, one that is dead, one that nobody knows.
        world.lease(10, "/10", true);
        let small = noise(2, MIB);
        let doomed = noise(4, MIB);
        world.stash(11, &[small.as_slice(), &noise(3, 3 * MIB)].concat());
        world.stash(10, &small);
        world.stash(12, &doomed);
        fs::write(world.path("contents/99.pack"), b"half written").unwrap();
        let dead = slot(&world, 20, 0);
        fs::create_dir_all(dead.path().as_path().join("a/b/c")).unwrap();
        fs::create_dir_all(world.path("staging").join(id(21).to_string()).join("x")).unwrap();
        (world, vec![versions[1].clone(), versions[2].clone(), small])
    }

    fn collect(world: &World) -> GcReport {
        world.pass(40 * DAY_MS);
        world.gc(&Retention::standard())
    }

    #[test]
    fn child_that_collects() {
        let Some(state) = state_of_child() else {
            return;
        };
        collect(&World::at(&state));
    }

    #[test]
    fn a_gc_that_dies_anywhere_is_finished_by_the_next() {
        for point in POINTS {
            let (world, needed) = littered();
            let test = "gc::tests::crashes::child_that_collects";
            // The lease belongs to this process, which the child sees alive.
            assert!(dies_at(test, &world.path(""), point), "{point}");
            for bytes in &needed {
                assert!(world.read(bytes), "{point}");
            }
            collect(&world);
            for bytes in &needed {
                assert!(world.read(bytes), "{point}");
            }
            let packs = world.list("contents");
            assert_eq!(
                packs.len() as i64,
                world.count("SELECT count(*) FROM pack"),
                "{point}"
            );
            assert!(
                packs.len() == 2 && !packs.contains(&"99.pack".to_owned()),
                "{point}: {packs:?}"
            );
            assert_eq!(world.list("depot"), [""; 0], "{point}");
            assert_eq!(world.list("staging"), [""; 0], "{point}");
            assert_eq!(world.count("SELECT count(*) FROM content"), 3, "{point}");
            assert_eq!(
                world.count("SELECT sum(retained) FROM operation"),
                1,
                "{point}"
            );
            assert_eq!(
                world.store.verify(&mut |_, _| {}).unwrap().findings,
                [],
                "{point}"
            );
        }
    }
}

#[test]
fn an_interrupted_removal_is_found_by_the_next() {
    let world = World::new();
    let name = format!("{}-0~3", id(5));
    fs::create_dir_all(world.path("depot").join(&name).join("x")).unwrap();
    assert_eq!(world.gc(&Retention::standard()).slots, 1);
    assert_eq!(world.list("depot"), [""; 0]);
}
