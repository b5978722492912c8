//! Large contents: chunks, packs, what is shared, what is damaged, and processes that die half-way.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};

use backout_model::Digest;
use backout_model::ports::{ContentsError, ReadContents as _, WriteContents as _};

use super::super::fixture::{World, id, noise};
use super::super::pack::{self, FRAME_BYTES, HEADER_BYTES};
use crate::{StorageError, Store};

const MIB: usize = 1 << 20;

type Damage = Box<dyn Fn(&World)>;

/// A file that compresses a little.
fn file(seed: u64, size: usize) -> Vec<u8> {
    let mut bytes = noise(seed, size);
    for stripe in bytes.chunks_mut(4096) {
        stripe[..2048].fill(b' ');
    }
    bytes
}

fn streamed(store: &Store, digest: &Digest) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut opened = store.open(digest).map_err(io::Error::other)?;
    opened.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[test]
fn a_small_stream_goes_into_the_database() {
    let world = World::new();
    for size in [0, 1, 64 * 1024] {
        let bytes = noise(7, size);
        world.stash(1, &bytes);
        assert!(world.read(&bytes));
    }
    assert_eq!(world.list("contents"), [""; 0]);
    assert_eq!(world.rows("reference"), 3);
}

#[test]
fn a_large_file_comes_back_and_a_similar_one_costs_little() {
    let world = World::new();
    let first = file(1, 20 * MIB);
    let digest = world.stash(1, &first);
    assert_eq!(streamed(&world.store, &digest).unwrap(), first);
    assert!(world.read(&first));
    let before = world.store.stored_bytes().unwrap();
    assert!(
        before.packs < 12 * MIB as u64,
        "half of it compresses: {}",
        before.packs
    );

    let mut second = first.clone();
    second[5 * MIB..5 * MIB + 10].fill(1);
    second.splice(12 * MIB..12 * MIB, *b"twenty bytes, or so.");
    let digest = world.stash(2, &second);
    assert_eq!(streamed(&world.store, &digest).unwrap(), second);
    let after = world.store.stored_bytes().unwrap();
    assert!(
        after.packs - before.packs < MIB as u64,
        "{} bytes more",
        after.packs - before.packs
    );
    world.counts_are_right();

    // Once more the same: nothing but a reference.
    world.stash(3, &second);
    assert_eq!(world.store.stored_bytes().unwrap(), after);
    assert_eq!(world.list("contents"), ["1.pack", "2.pack"]);
    assert_eq!(world.rows("reference"), 3);
    for pack in world.list("contents") {
        let mode = fs::metadata(world.path("contents").join(pack))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn a_file_full_of_holes_is_nearly_nothing() {
    let world = World::new();
    let holes = vec![0; 64 * MIB];
    let digest = world.stash(1, &holes);
    assert!(world.store.stored_bytes().unwrap().total < 1000);
    assert!(streamed(&world.store, &digest).unwrap() == holes);
}

#[test]
fn a_content_that_the_database_has_gets_no_pack() {
    let world = World::new();
    let bytes = noise(1, 300_000);
    world.write(1, "/f", &[&bytes]);
    world.stash(2, &bytes);
    assert_eq!(world.list("contents"), [""; 0]);
    assert!(world.read(&bytes));
}

#[test]
fn a_pack_can_be_read_without_the_database() {
    let world = World::new();
    world.stash(1, &file(1, 2 * MIB));
    let path = world.path("contents/1.pack");
    let places = pack::salvage(&path, 1).unwrap();
    let length = places
        .last()
        .map(|last| last.offset + FRAME_BYTES + u64::from(last.stored));
    assert_eq!(length, Some(fs::metadata(&path).unwrap().len()));
    assert_eq!(places.len(), world.rows("chunk"));
    let pack = fs::File::open(&path).unwrap();
    let bytes: usize = places
        .iter()
        .map(|at| pack::read_frame(&pack, at).unwrap().1.len())
        .sum();
    assert_eq!(bytes, 2 * MIB);
}

#[test]
fn every_kind_of_damage_to_a_pack_is_reported() {
    let overwrite = |at: u64| {
        move |world: &World| {
            let pack = fs::File::options()
                .write(true)
                .open(world.path("contents/1.pack"))
                .unwrap();
            pack.write_all_at(b"?!", at).unwrap();
        }
    };
    let sql = |sql: &'static str| {
        move |world: &World| assert!(world.raw().execute(sql, []).unwrap() > 0, "{sql}")
    };
    let damages: Vec<Damage> = vec![
        Box::new(overwrite(HEADER_BYTES)),                     // marker
        Box::new(overwrite(HEADER_BYTES + 4)),                 // form
        Box::new(overwrite(HEADER_BYTES + 8)),                 // stored
        Box::new(overwrite(HEADER_BYTES + 12)),                // size
        Box::new(overwrite(HEADER_BYTES + 16)),                // digest
        Box::new(overwrite(HEADER_BYTES + FRAME_BYTES + 100)), // bytes
        Box::new(|world| fs::write(world.path("contents/1.pack"), b"BACKOUTP").unwrap()),
        Box::new(|world| fs::write(world.path("contents/1.pack"), b"").unwrap()),
        Box::new(|world| fs::remove_file(world.path("contents/1.pack")).unwrap()),
        Box::new(sql("DELETE FROM chunk WHERE offset = 16")),
        Box::new(sql("UPDATE chunk SET offset = offset + 1")),
        Box::new(sql("UPDATE chunk SET offset = -1")),
        Box::new(sql("UPDATE chunk SET offset = 9223372036854775807")),
        Box::new(sql("UPDATE chunk SET stored = stored + 1")),
        Box::new(sql("UPDATE chunk SET size = 4294967295")),
        Box::new(sql("UPDATE chunk SET pack = 77")),
        Box::new(sql("UPDATE content SET size = size + 1")),
        Box::new(sql("UPDATE content SET size = size - 1")),
        Box::new(sql("UPDATE content SET size = 0")),
        Box::new(sql("UPDATE content SET bytes = x''")),
        Box::new(sql("UPDATE content SET bytes = x'07'")),
        Box::new(sql("UPDATE content SET bytes = x'0102'")),
        Box::new(sql(
            "UPDATE content SET bytes = CAST(bytes || x'00' AS BLOB)",
        )),
        Box::new(sql(
            "UPDATE content SET bytes = substr(bytes, 1, length(bytes) - 32)",
        )),
        // Two chunks in the wrong order: each is sound, the whole is not.
        Box::new(sql(
            "UPDATE content SET bytes = CAST(substr(bytes, 1, 1) || substr(bytes, 34, 32)
                          || substr(bytes, 2, 32) || substr(bytes, 66) AS BLOB)",
        )),
    ];
    for (number, damage) in damages.iter().enumerate() {
        let world = World::new();
        let bytes = file(1, MIB);
        let digest = world.stash(1, &bytes);
        damage(&world);
        let error = backout_model::ports::ReadContents::read(&world.store, &digest);
        assert!(
            matches!(error, Err(ContentsError::Damaged { .. })),
            "{number}: {error:?}"
        );
        assert!(streamed(&world.store, &digest).is_err(), "{number}");
        assert!(world.store.check_content(&digest).is_err(), "{number}");
        // Whoever has the file again makes it whole.
        world.stash(2, &bytes);
        assert!(world.read(&bytes), "{number}");
    }
}

#[test]
fn a_stream_that_failed_stays_failed() {
    let world = World::new();
    let digest = world.stash(1, &file(1, MIB));
    world
        .raw()
        .execute("UPDATE content SET size = size + 1", [])
        .unwrap();
    let mut opened = world.store.open(&digest).unwrap();
    let mut bytes = Vec::new();
    assert!(opened.read_to_end(&mut bytes).is_err());
    assert!(opened.read(&mut [0; 10]).is_err());
}

#[test]
fn a_source_that_fails_leaves_nothing() {
    struct Broken(usize);
    impl Read for Broken {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(1).ok_or(io::ErrorKind::NotConnected)?;
            if self.0.is_multiple_of(3) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            buffer.copy_from_slice(&noise(self.0 as u64, buffer.len()));
            Ok(buffer.len())
        }
    }
    let world = World::new();
    let error = world.store.stash(id(1), &mut Broken(100)).unwrap_err();
    let ContentsError::Store(cause) = error else {
        panic!("{error}");
    };
    assert_eq!(
        cause.to_string(),
        "the content to be stored could not be read"
    );
    assert_eq!(world.list("contents"), [""; 0]);
    assert_eq!(world.rows("content"), 0);
    assert_eq!(world.rows("chunk"), 0);
}

#[test]
fn a_full_disk_has_its_own_name() {
    let full = |errno: rustix::io::Errno| {
        pack::failed(std::path::Path::new("/x"), "write", io::Error::from(errno))
    };
    assert!(matches!(
        full(rustix::io::Errno::NOSPC),
        StorageError::DiskFull { .. }
    ));
    assert!(matches!(
        full(rustix::io::Errno::DQUOT),
        StorageError::DiskFull { .. }
    ));
    assert!(matches!(
        full(rustix::io::Errno::ROFS),
        StorageError::ReadOnly { .. }
    ));
    assert!(matches!(
        full(rustix::io::Errno::IO),
        StorageError::StateDir { .. }
    ));
}

#[test]
fn many_stashes_at_once_do_not_meet() {
    let world = World::new();
    let common = file(9, MIB);
    std::thread::scope(|scope| {
        for n in 0..6_u64 {
            let (store, common) = (world.again(), &common);
            scope.spawn(move || {
                let bytes = [&file(n, MIB), common.as_slice()].concat();
                let (digest, _) = store.stash(id(n), &mut bytes.as_slice()).unwrap();
                assert_eq!(streamed(&store, &digest).unwrap(), bytes);
            });
        }
    });
    for n in 0..6 {
        assert!(world.read(&[&file(n, MIB), common.as_slice()].concat()));
    }
    assert_eq!(world.list("contents").len(), world.rows("pack"));
    world.counts_are_right();
}

#[cfg(feature = "testing")]
mod crashes {
    use super::super::super::fixture::{dies_at, state_of_child};
    use super::*;
    use backout_model::Retention;

    const POINTS: [&str; 8] = [
        "pack.created",
        "pack.half-written",
        "pack.written",
        "pack.file-synced",
        "pack.dir-synced",
        "pack.before-commit",
        "journal.after-commit",
        "pack.recorded",
    ];

    #[test]
    fn child_that_stashes() {
        let Some(state) = state_of_child() else {
            return;
        };
        World::at(&state).stash(1, &file(1, 3 * MIB));
    }

    #[test]
    fn a_process_that_dies_while_stashing_leaves_only_what_gc_removes() {
        for point in POINTS {
            let world = World::new();
            let other = file(2, MIB);
            world.write(7, "/kept", &[b"kept", &other]);
            let test = "contents::stash::tests::crashes::child_that_stashes";
            assert!(dies_at(test, &world.path(""), point), "{point}");
            // What was half done is not there; what is there is whole.
            let bytes = file(1, 3 * MIB);
            assert_eq!(world.has(&bytes), world.read(&bytes), "{point}");
            assert_eq!(
                world.has(&bytes),
                point.ends_with("commit") && point.starts_with("journal")
                    || point == "pack.recorded"
            );
            // Nobody holds a lease for it, so it goes, whole or half.
            world.gc(&Retention::standard());
            assert_eq!(world.list("contents"), [""; 0], "{point}");
            assert!(!world.has(&bytes), "{point}");
            assert!(world.read(&other), "{point}");
            world.stash(2, &bytes);
            assert!(world.read(&bytes), "{point}");
        }
    }
}
