//! What is said when the place is out of reach where something is kept: the state directory was moved or copied, or a file
//! system is not mounted. Nothing happens then, and once it is back, the undo goes through.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::claims::Disk;
use crate::world::{Ran, World};

/// Runs the command with another state directory.
fn with(world: &World, state: &Path, words: &[&str]) -> Ran {
    world.run(world.command(words).env("BACKOUT_STATE_DIR", state))
}

/// Asserts that an undo does nothing, and why.
#[track_caller]
fn stays(world: &World, state: &Path, why: &str) {
    let tree = world.tree();
    let ran = with(world, state, &["undo", "--everywhere"]);
    assert_eq!(world.tree(), tree, "{ran}");
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.err.contains(&format!("  why: {why}\n")), "{ran}");
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status();
    assert!(copied.unwrap().success());
}

#[test]
fn a_state_directory_that_was_moved_says_where_it_has_to_be() {
    let world = World::new().file("d/f", "1");
    world.did(["rm", "-r", "d"]);
    let (first, moved) = (world.place("state"), world.place("moved"));
    fs::rename(&first, &moved).unwrap();
    let why = "`d`: it is kept in `$WORLD/state`, and the state directory is `$WORLD/moved` now: move that back to `$WORLD/state`";
    stays(&world, &moved, why);
    fs::rename(&moved, &first).unwrap();
    world.did(["undo"]);
    assert_eq!(world.text("d/f"), "1");
}

#[test]
fn a_copy_of_the_state_directory_says_whose_copy_it_is() {
    let world = World::new().file("d/f", "1").file("x", "1");
    fs::hard_link(world.path("x"), world.path("y")).unwrap();
    world.did(["rm", "-r", "d"]);
    let (first, copied) = (world.place("state"), world.place("copied"));
    copy(&first, &copied);
    let why = "`d`: it is kept by the store in `$WORLD/state`, of which this one is a copy: take it back there, with `--state-dir $WORLD/state`";
    stays(&world, &copied, why);
    fs::rename(&first, world.place("away")).unwrap();
    let why = "`d`: it is kept for the store in `$WORLD/state`, and that is not there any more: if the one in use is that one, move it back to `$WORLD/state`";
    stays(&world, &copied, why);
    fs::rename(world.place("away"), &first).unwrap();
    world.did(["--state-dir", &first.display().to_string(), "undo"]);
    assert_eq!(world.text("d/f"), "1");
}

#[test]
fn a_name_of_a_file_comes_back_by_its_bytes_where_its_inode_is_out_of_reach() {
    let world = World::new().file("x", "1");
    fs::hard_link(world.path("x"), world.path("y")).unwrap();
    world.did(["rm", "x"]);
    let copied = world.place("copied");
    copy(&world.place("state"), &copied);
    let ran = with(&world, &copied, &["undo"]);
    let note =
        "note: `x` comes back as a file of its own: the inode that was kept is out of reach\n";
    assert!(ran.out.contains(note), "{ran}");
    assert_eq!(world.text("x"), "1");
}

#[test]
fn a_file_system_that_is_not_mounted_is_named() {
    let world = World::new();
    let state = world.place("state");
    let disk = world.path("disk");
    let Some(first) = Disk::at(disk.clone(), 1024) else {
        return;
    };
    world.put("disk/d/f", "1");
    world.did(["rm", "-r", "disk/d"]);
    let other = Disk::at(disk.clone(), 1024).unwrap();
    let why = "`disk/d`: what is mounted at `disk` is not the file system that it is kept on: mount that one there";
    stays(&world, &state, why);
    drop(other);
    let copied = world.place("copied");
    copy(&state, &copied);
    fs::write(copied.join("home"), "garbage").unwrap();
    let why = "`disk/d`: it may be kept by another store: the file `home` in `$WORLD/copied` cannot be read; if `$WORLD/copied` is no copy, remove that file";
    stays(&world, &copied, why);
    world.did(["undo", "--everywhere"]);
    assert_eq!(world.text("disk/d/f"), "1");
    world.did(["rm", "-r", "disk/d"]);
    drop(first);
    let why = "`disk/d`: it is kept on the file system of `disk`, which is not mounted: mount it";
    stays(&world, &state, why);
}

#[test]
fn what_is_kept_on_another_file_system_now_comes_back_as_a_copy() {
    let large = "x".repeat(100_000);
    let world = World::new().file("x", &large);
    world.did(["rm", "x"]);
    let state = world.place("state");
    copy(&state, &world.place("copied"));
    let Some(_disk) = Disk::at(state.clone(), 8192) else {
        return;
    };
    copy(&world.place("copied/."), &state);
    let ran = world.cli(["undo"]);
    let note = "note: `x` comes back as a copy: the state directory was copied or moved to another file system\n";
    assert!(ran.out.contains(note), "{ran}");
    assert_eq!(world.text("x"), large);
}
