//! Contents as rows: what is put comes back, and what is damaged is never believed.

use backout_model::Digest;
use backout_model::ports::{ContentsError, Durability, NewContent, ReadContents};

use super::fixture::{World, noise};
use super::rows::put;
use super::slots::{UNMEASURED, rows_sql};
use crate::StorageError;

fn put_in(world: &World, bytes: &[u8]) -> u64 {
    let content = NewContent::of(bytes.to_vec());
    world
        .store
        .write(Durability::Process, |tx| put(&world.store, tx, &content))
        .unwrap()
}

fn read(world: &World, bytes: &[u8]) -> Result<Vec<u8>, ContentsError> {
    ReadContents::read(&world.store, &Digest::of(bytes))
}

/// Three versions of one file, the two older ones as deltas.
fn chain() -> (World, [Vec<u8>; 3]) {
    let world = World::new();
    let text = "a line of code that stays\n".repeat(90);
    let versions = [1, 2, 3].map(|n| format!("{text}version {n} {}\n", n * 7919).into_bytes());
    world.write(1, "/f", &[&versions[0], &versions[1]]);
    world.write(2, "/f", &[&versions[1], &versions[2]]);
    assert_eq!(world.compact().damaged, 0);
    assert_eq!(
        world.count("SELECT count(*) FROM content WHERE form = 2"),
        2
    );
    (world, versions)
}

/// Each command asks for them when it starts: however many are kept, it must not look at them all.
#[test]
fn what_was_not_measured_is_found_without_looking_at_the_rest() {
    let world = World::new();
    let (from, only) = UNMEASURED;
    let sql = format!("EXPLAIN QUERY PLAN {}", rows_sql(from, only));
    let plan: String = world
        .store
        .read(|transaction| {
            let found = transaction.query_row(&sql, [1], |row| row.get(3));
            found.map_err(|error| world.store.named(error))
        })
        .unwrap();
    assert!(plan.contains("slot_unmeasured"), "{plan}");
}

#[test]
fn what_is_put_comes_back_whatever_it_is() {
    let world = World::new();
    for bytes in [
        vec![],
        b"x".to_vec(),
        noise(1, 70_000),
        b"again and again ".repeat(9000),
    ] {
        assert!(matches!(
            read(&world, &bytes),
            Err(ContentsError::Missing { .. })
        ));
        assert!(!world.has(&bytes));
        put_in(&world, &bytes);
        assert!(world.has(&bytes));
        assert_eq!(read(&world, &bytes).unwrap(), bytes);
        world.store.check_content(&Digest::of(&bytes)).unwrap();
        let mut opened = world.store.open(&Digest::of(&bytes)).unwrap();
        let mut streamed = Vec::new();
        opened.read_to_end(&mut streamed).unwrap();
        assert_eq!(streamed, bytes);
    }
    world.counts_are_right();
}

#[test]
fn putting_a_content_twice_stores_it_once() {
    let world = World::new();
    let bytes = noise(1, 1000);
    assert_eq!(put_in(&world, &bytes), 1000);
    assert_eq!(put_in(&world, &bytes), 0);
    assert_eq!(world.store.stored_bytes().unwrap().inline, 1000);
    assert_eq!(world.store.stored_bytes().unwrap().total, 1000);
}

#[test]
fn a_content_under_a_false_name_is_refused() {
    let world = World::new();
    let lie = NewContent {
        digest: Digest::of(b"something else"),
        bytes: b"this".to_vec(),
        over: None,
    };
    let result = world
        .store
        .write(Durability::Process, |tx| put(&world.store, tx, &lie));
    assert!(matches!(result, Err(StorageError::Inconsistent { .. })));
    assert_eq!(world.rows("content"), 0);
}

#[test]
fn putting_a_damaged_content_again_heals_it_and_what_depends_on_it() {
    let (world, versions) = chain();
    world
        .raw()
        .execute("UPDATE content SET bytes = x'00' WHERE form <> 2", [])
        .unwrap();
    for version in &versions {
        assert!(matches!(
            read(&world, version),
            Err(ContentsError::Damaged { .. })
        ));
    }
    put_in(&world, &versions[2]);
    for version in &versions {
        assert_eq!(&read(&world, version).unwrap(), version);
    }
}

#[test]
fn every_kind_of_damage_to_a_row_is_reported() {
    let damages = [
        "UPDATE content SET bytes = x'' WHERE form = 1",
        "UPDATE content SET bytes = substr(bytes, 1, length(bytes) - 3) WHERE form = 1",
        "UPDATE content SET bytes = CAST(bytes || x'00' AS BLOB) WHERE form = 1",
        "UPDATE content SET bytes = zeroblob(length(bytes)) WHERE form = 1",
        "UPDATE content SET form = 0 WHERE form = 1",
        "UPDATE content SET form = 3 WHERE form = 1",
        "UPDATE content SET form = 9 WHERE form = 1",
        "UPDATE content SET form = 2 WHERE form = 1",
        "UPDATE content SET size = size - 1 WHERE form = 1",
        "UPDATE content SET size = size + 1 WHERE form = 1",
        "UPDATE content SET size = -1 WHERE form = 1",
        "UPDATE content SET size = 9223372036854775807 WHERE form = 1",
        "UPDATE content SET base = digest, form = 2 WHERE form = 1",
        "UPDATE content SET bytes = (SELECT bytes FROM content WHERE form = 2) WHERE form = 1",
        "DELETE FROM content WHERE form = 1",
        "UPDATE content SET base = NULL WHERE form = 2",
        "UPDATE content SET base = x'00' WHERE form = 2",
        "UPDATE content SET base = digest WHERE form = 2",
        "UPDATE content SET base = zeroblob(32) WHERE form = 2",
        "UPDATE content SET bytes = x'00' WHERE form = 2",
        "UPDATE content SET size = 5 WHERE form = 2",
        "UPDATE content SET form = 1 WHERE form = 2",
    ];
    for damage in damages {
        let (world, versions) = chain();
        assert!(world.raw().execute(damage, []).unwrap() > 0, "{damage}");
        // The oldest depends on both others, so it feels every damage.
        let error = read(&world, &versions[0]).expect_err(damage);
        assert!(
            matches!(error, ContentsError::Damaged { .. }),
            "{damage}: {error}"
        );
        assert!(
            world
                .store
                .check_content(&Digest::of(&versions[0]))
                .is_err(),
            "{damage}"
        );
        assert!(
            world.store.open(&Digest::of(&versions[0])).is_err(),
            "{damage}"
        );
        for version in &versions {
            assert!(
                read(&world, version).is_ok_and(|bytes| bytes == *version) || !world.read(version)
            );
        }
    }
}

#[test]
fn a_report_names_the_version_that_is_damaged() {
    let (world, versions) = chain();
    world
        .raw()
        .execute("UPDATE content SET bytes = x'00' WHERE form = 1", [])
        .unwrap();
    let error = read(&world, &versions[0]).unwrap_err().to_string();
    assert!(
        error.contains(&Digest::of(&versions[0]).to_string()),
        "{error}"
    );
    assert!(
        error.contains(&Digest::of(&versions[2]).to_string()),
        "{error}"
    );
}
