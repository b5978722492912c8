//! What is said of a content that is damaged: which part of it, and how.

use std::fs;

use backout_model::Digest;
use backout_model::ports::{ContentsError, Durability, NewContent, ReadContents};

use super::codec::{Flaw, Form, decode};
use super::fixture::{World, noise};
use super::rows::put;

/// What is said when a content is read.
fn said(world: &World, digest: &Digest) -> String {
    match ReadContents::read(&world.store, digest) {
        Err(ContentsError::Damaged { detail, .. }) => detail,
        other => panic!("{other:?}"),
    }
}

fn hurt(world: &World, sql: &str) {
    assert!(world.raw().execute(sql, []).unwrap() > 0, "{sql}");
}

/// Says what is said of a content in one row after a damage.
fn of_row(bytes: &[u8], damage: &str) -> String {
    let world = World::new();
    let content = NewContent::of(bytes.to_vec());
    let digest = content.digest;
    let stored = world
        .store
        .write(Durability::Process, |tx| put(&world.store, tx, &content));
    stored.unwrap();
    hurt(&world, damage);
    said(&world, &digest)
}

#[test]
fn a_row_says_which_of_its_columns_is_wrong() {
    let text = b"again and again ".repeat(100);
    for (damage, words) in [
        (
            "UPDATE content SET size = 9223372036854775807",
            "it is recorded with the impossible size of 9223372036854775807 bytes",
        ),
        (
            "UPDATE content SET bytes = x'00'",
            "it cannot be decompressed (",
        ),
        ("UPDATE content SET form = 0", "bytes long in place of 1600"),
        (
            "UPDATE content SET form = 9",
            "its row has an impossible form",
        ),
        (
            "UPDATE content SET size = -1",
            "its row has an impossible size",
        ),
        (
            "UPDATE content SET form = 2",
            "it is a delta without a base",
        ),
        (
            "UPDATE content SET form = 2, base = digest",
            "its chain of versions has no end",
        ),
    ] {
        let said = of_row(&text, damage);
        assert!(said.contains(words), "{damage}: {said}");
    }
    let said = of_row(&noise(1, 1000), "UPDATE content SET bytes = zeroblob(1000)");
    assert_eq!(said, "its bytes have another digest");
}

#[test]
fn a_content_in_chunks_says_which_of_them_is_wrong() {
    type Damage = fn(&World);
    let damages: [(Damage, &str); 6] = [
        (
            |world| fs::remove_file(world.path("contents/1.pack")).unwrap(),
            "the pack 1 is missing or cannot be opened",
        ),
        (
            |world| fs::write(world.path("contents/1.pack"), b"").unwrap(),
            "it cannot be decompressed (the pack is too short or cannot be read)",
        ),
        (
            |world| hurt(world, "UPDATE chunk SET stored = stored - 1"),
            "it cannot be decompressed (its frame in the pack is broken)",
        ),
        (
            |world| hurt(world, "UPDATE content SET bytes = x'07'"),
            "it cannot be decompressed (its list of chunks is broken)",
        ),
        (
            |world| hurt(world, "UPDATE content SET size = size + 1"),
            "its chunks are sound, but together they are something else",
        ),
        (
            |world| hurt(world, "UPDATE content SET size = size - 1"),
            "its chunks are longer than it is",
        ),
    ];
    for (damage, words) in damages {
        let world = World::new();
        let digest = world.stash(1, &noise(1, 1 << 20));
        damage(&world);
        let said = said(&world, &digest);
        assert!(said.contains(words), "{words}: {said}");
    }
    let world = World::new();
    let digest = world.stash(1, &noise(1, 1 << 20));
    hurt(&world, "UPDATE content SET size = 2000000000");
    assert_eq!(said(&world, &digest), "it is too large to be read whole");
}

#[test]
fn what_is_not_in_one_piece_is_not_read_as_one() {
    let error = decode(Form::Chunks, b"", 0, &Digest::of(b"")).unwrap_err();
    assert_eq!(error.to_string(), "its form cannot stand alone");
    let error = Flaw::Memory { size: 7 };
    assert_eq!(error.to_string(), "there is not enough memory for 7 bytes");
}

#[test]
fn a_new_content_under_a_false_name_is_named() {
    let world = World::new();
    let lie = NewContent {
        digest: Digest::of(b"something else"),
        bytes: b"this".to_vec(),
        over: None,
    };
    let put = world
        .store
        .write(Durability::Process, |tx| put(&world.store, tx, &lie));
    let short = lie.digest.short();
    assert_eq!(
        put.unwrap_err().to_string(),
        format!(
            "the journal contradicts itself at the new content {short}: its bytes have another digest"
        )
    );
}
