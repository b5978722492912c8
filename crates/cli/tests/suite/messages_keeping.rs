//! What is said where images are copied into the store: there is no room, or somebody reads there without end.

use std::fs;
use std::os::unix::fs::chown;

use rustix::fs::{FlockOperation, flock};

use crate::claims::Disk;
use crate::world::{Ran, World};

/// An ordinary user. On a file system whose root is not his he can keep a large file only by a copy.
const NOBODY: u32 = 65_534;

fn give(world: &World, names: &[&str]) {
    for name in names {
        chown(world.place(name), Some(NOBODY), Some(NOBODY)).unwrap();
    }
}

/// Nothing that could be packed into much less.
fn noise() -> String {
    let numbers = (0..60_000_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let words: Vec<String> = numbers.map(|n| format!("{n:016x}")).collect();
    words.concat()
}

/// An ordinary user's write of a large file where only a copy can keep it, with so many KiB for the state.
fn copied_to(kib: u32) -> Option<Ran> {
    let world = World::new();
    let _state = Disk::at(world.place("home/state"), kib)?;
    let _work = Disk::at(world.path("m"), 2000)?;
    world.put("m/mine/big", &noise());
    give(&world, &["work/m/mine", "work/m/mine/big", "home/state"]);
    let write = ["write", "m/mine/big", "--text", "2"];
    Some(world.still(|| world.run(&mut world.as_nobody(&write).unwrap())))
}

#[test]
fn what_cannot_be_kept_is_not_changed() {
    let (Some(unrecorded), Some(uncopied)) = (copied_to(752), copied_to(320)) else {
        return;
    };
    insta::assert_snapshot!(unrecorded, @"
    error: nothing was written: the undo could not be recorded
      why: no space left for the journal in `$WORLD/home/state`
      why: a write whose undo cannot be kept does not happen
      next: make room on that disk; then `backout gc` can let old images go
    [exit code 1]
    ");
    insta::assert_snapshot!(uncopied, @"
    error: no way to keep what `m/mine/big` is now: it cannot move into a depot, and the store of contents could not be used: no space left for the journal in `$WORLD/home/state/contents/1.pack`
      why: a write whose undo cannot be kept does not happen
      next: make room, or put the state directory on that file system with `--state-dir`
    [exit code 1]
    ");
}

/// Little of it changes, so it needs no copy: how much room there is decides that before anything is copied.
#[test]
fn what_there_is_no_room_to_copy_is_logged_with_the_reason() {
    let world = World::new();
    let Some(state) = Disk::at(world.place("home/state"), 752) else {
        return;
    };
    let Some(_work) = Disk::at(world.path("m"), 4000) else {
        return;
    };
    let before = noise();
    world.put("m/mine/big", &before);
    give(&world, &["work/m/mine", "work/m/mine/big", "home/state"]);
    let nobody = |arguments: &[&str]| world.run(&mut world.as_nobody(arguments).unwrap());
    let zero = "0".repeat(16);
    let edit = ["edit", "m/mine/big", "--search", &zero, "--replace", "x"];
    let ran = nobody(&edit);
    assert_eq!(ran.code, 0, "{ran}");
    let why = "the way back is a transaction, not a snapshot: no room for a copy: ";
    assert!(ran.err.contains(why), "{ran}");
    assert!(!world.place("home/state/contents/1.pack").exists());
    let shown: serde_json::Value = serde_json::from_str(&nobody(&["show", "--json"]).out).unwrap();
    let decision = &shown["operation"]["decision"];
    assert_eq!(decision["asked"], "snapshot", "{shown}");
    assert_eq!(decision["strategy"], "transaction", "{shown}");
    let tried = &decision["not_prepared"][0];
    assert!(
        tried["why"].to_string().contains("bytes are free"),
        "{shown}"
    );
    assert!(
        decision["cost"]["stored_bytes"].as_u64().unwrap() < 1000,
        "{shown}"
    );
    // An undo keeps what it replaces, and that is a copy too: it says so and changes nothing.
    let ran = nobody(&["undo"]);
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.err.contains("nothing was taken back"), "{ran}");
    state.resize(8000);
    let ran = nobody(&["undo"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(fs::read_to_string(world.path("m/mine/big")).unwrap() == before);
}

#[test]
fn packs_that_somebody_reads_without_end_are_left_as_they_are() {
    let world = World::new();
    let Some(_work) = Disk::at(world.path("m"), 4000) else {
        return;
    };
    world.put("m/mine/big", &"0123456789abcdef\n".repeat(60_000));
    fs::create_dir_all(world.place("home/state")).unwrap();
    give(&world, &["work/m/mine", "work/m/mine/big", "home/state"]);
    let nobody = |arguments: &[&str]| world.run(&mut world.as_nobody(arguments).unwrap());
    assert_eq!(nobody(&["rm", "m/mine/big"]).code, 0);
    let contents = world.place("home/state/contents");
    let packs = || fs::read_dir(&contents).unwrap().count();
    let reader = fs::File::open(&contents).unwrap();
    flock(&reader, FlockOperation::LockShared).unwrap();
    let count = packs();
    let gc = ["gc", "--keep", "0s", "--keep-at-least", "0s"];
    insta::assert_snapshot!(nobody(&gc), @"
    let the images of 1 operation go: they can no longer be undone
      1 operation  past the retention window
      store        held 533 B, holds now 404 B
    note: somebody reads or writes packs without end; they were left as they are
    ");
    assert_eq!(packs(), count);
    drop(reader);
    insta::assert_snapshot!(nobody(&gc), @"
    no image is past its retention
      store  held 404 B, holds now 0 B
    ");
    assert!(packs() < count);
}
