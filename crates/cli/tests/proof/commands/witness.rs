//! A journal that lost its end: whoever removes the witness with it is noticed as well.

use std::fs;
use std::path::PathBuf;

use crate::world::{World, said};

fn journal(world: &World) -> [PathBuf; 3] {
    ["journal.sqlite", "journal.sqlite-wal", "journal.sqlite-shm"]
        .map(|name| world.state().join(name))
}

/// The store takes no writes, says why, and can be repaired.
fn is_noticed(world: &World) {
    let output = world.run(&["verify"]);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let told = world.fails(3, &["write", "more", "--text", "x"]);
    assert!(told.contains("record"), "{told}");
    assert!(!world.path("more").exists());
    world.run(&["doctor", "--repair"]);
    world.ok(&["write", "more", "--text", "x"]);
    world.ok(&["undo", "@"]);
}

#[test]
fn the_end_and_its_witness_removed_together_are_noticed() {
    let world = World::new();
    world.ok(&["write", "one", "--text", "1"]);
    world.ok(&["write", "two", "--text", "2"]);
    let [_, log, shared] = journal(&world);
    // The end of the journal is in the log.
    for path in [log, shared, world.state().join("head")] {
        fs::remove_file(path).unwrap();
    }
    is_noticed(&world);
}

#[test]
fn an_older_journal_put_back_with_its_own_witness_is_noticed() {
    let world = World::new();
    world.ok(&["write", "one", "--text", "1"]);
    let copied: Vec<_> = journal(&world)
        .into_iter()
        .chain([world.state().join("head")])
        .map(|path| (fs::read(&path).unwrap(), path))
        .collect();
    world.ok(&["write", "two", "--text", "2"]);
    for (bytes, path) in copied {
        fs::remove_file(&path).unwrap();
        fs::write(path, bytes).unwrap();
    }
    is_noticed(&world);
}
