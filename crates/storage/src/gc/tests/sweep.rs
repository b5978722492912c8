//! Which contents, chunks and packs go with them.

use std::fs;

use backout_model::ports::{ReadContents as _, WriteContents as _};
use backout_model::{Digest, Event, Retention, Status, Timestamp};

use super::{MIB, ids, slot, strict};
use crate::GcRequest;
use crate::contents::fixture::{DAY_MS, World, id, noise};

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
        world.lease(number, &format!("/{number}"), number.is_multiple_of(2));
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
        assert_eq!(world.read(bytes), number.is_multiple_of(2), "{number}");
        assert_eq!(
            slot(&world, number, 0).path().as_path().exists(),
            number.is_multiple_of(2),
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
    assert_eq!(world.rows("lease"), 2);
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
