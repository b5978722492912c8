//! What is said of what was kept and is not as it was: a process had it open, other names of it changed, somebody copied it.
//! Each time the world is looked at.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use crate::claims::is_root;
use crate::messages_standing::{large, notes, shell, stays};
use crate::world::World;

/// Lists what is kept as inodes.
fn slots(world: &World) -> Vec<PathBuf> {
    let depot = fs::read_dir(world.place("state/depot")).unwrap();
    depot.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_file_of_several_names_that_is_gone_by_all_is_made_anew() {
    let world = World::new().file("a", "1");
    shell(&world, "ln a b");
    world.did(["run", "--", "sh", "-c", "echo 2 >a"]);
    shell(&world, "rm a b");
    stays(&world, &["undo"], "`a`: it is gone");
    let ran = world.cli(["undo", "--force"]);
    notes(&ran, "`a` was gone and is made anew, as a file of its own");
    assert_eq!((world.text("a"), world.has("b")), ("1".to_owned(), false));
    let world = World::new().file("a", "1");
    shell(&world, "ln a b");
    world.did(["run", "--", "sh", "-c", "echo 2 >a"]);
    shell(&world, "rm a b && mkdir a && echo mine >a/mine");
    let ran = world.cli(["undo", "--force"]);
    let note = "`a` was not the file any more and is made anew, as a file of its own";
    notes(&ran, note);
    assert_eq!(world.text("a"), "1");
    world.did(["redo", "--force"]);
    assert_eq!(world.text("a/mine"), "mine\n");
}

#[test]
fn what_a_process_had_open_comes_back_as_it_is_only_with_force() {
    let world = World::new().file("x", &large("x")).file("d/e/f", "1");
    let mut open = fs::File::options()
        .append(true)
        .open(world.path("x"))
        .unwrap();
    world.did(["rm", "x"]);
    open.write_all(b"late").unwrap();
    let why = "what was kept was changed since by a process that had it open";
    stays(&world, &["undo"], &format!("`x`: {why}"));
    let ran = world.cli(["undo", "--force"]);
    notes(&ran, &format!("`x` comes back as it is now: {why}"));
    assert!(world.text("x").ends_with("late"));

    let mut open = fs::File::options()
        .append(true)
        .open(world.path("d/e/f"))
        .unwrap();
    world.did(["rm", "-r", "d"]);
    open.write_all(b"late").unwrap();
    let why = "what was kept was changed since, at `e/f`";
    stays(&world, &["undo"], &format!("`d`: {why}"));
    notes(
        &world.cli(["undo", "--force"]),
        &format!("`d` comes back as it is now: {why}"),
    );
    assert_eq!(world.text("d/e/f"), "1late");

    let inside = fs::File::open(world.path("d")).unwrap();
    world.did(["rm", "-r", "d"]);
    let fd = std::os::fd::AsRawFd::as_raw_fd(&inside);
    fs::rename(format!("/proc/self/fd/{fd}/e"), world.path("taken")).unwrap();
    let why = "what was kept was changed since, and something in it is gone";
    stays(&world, &["undo"], &format!("`d`: {why}"));
}

#[test]
fn one_of_several_names_comes_back_as_a_file_of_its_own_where_the_others_changed() {
    let world = World::new().file("x", "1").file("v", "1");
    shell(&world, "ln x y && ln v w");
    world.did(["rm", "x"]);
    shell(&world, "echo more >>y");
    let ran = world.cli(["undo"]);
    notes(
        &ran,
        "`x` comes back as a file of its own: its other names changed since",
    );
    assert_eq!(
        (world.text("x"), world.text("y")),
        ("1".to_owned(), "1more\n".to_owned())
    );

    world.did(["rm", "v"]);
    shell(&world, "chmod 600 w");
    let ran = world.cli(["undo"]);
    notes(
        &ran,
        "`v` has the mode and owner that its other names were given since",
    );
    let number = |name: &str| fs::metadata(world.path(name)).unwrap().ino();
    assert_eq!(number("v"), number("w"));

    world.did(["rm", "v"]);
    for kept in slots(&world) {
        fs::remove_file(kept).unwrap();
    }
    let ran = world.cli(["undo"]);
    notes(
        &ran,
        "`v` comes back as a file of its own: the inode that was kept is gone",
    );
    assert_eq!(world.text("v"), "1");
    assert_ne!(number("v"), number("w"));
}

#[test]
fn what_somebody_copied_in_its_place_is_not_believed() {
    let world = World::new().file("x", &large("x"));
    world.did(["rm", "x"]);
    for kept in slots(&world) {
        fs::copy(&kept, world.place("copy")).unwrap();
        fs::rename(world.place("copy"), &kept).unwrap();
    }
    let why = "what was kept was copied or moved since, and may have changed on the way";
    stays(&world, &["undo"], &format!("`x`: {why}"));
    let ran = world.cli(["undo", "--force"]);
    notes(&ran, &format!("`x` comes back as it is now: {why}"));
    assert_eq!(world.text("x"), large("x"));
}

#[test]
fn a_second_name_of_a_file_that_is_gone_comes_back_as_a_file_of_its_own() {
    let world = World::new().file("a", "1");
    world.did(["ln", "a", "b"]);
    world.did(["undo"]);
    shell(&world, "cp a c && mv c a");
    let ran = world.cli(["redo"]);
    notes(
        &ran,
        "`b` comes back as a file of its own: `a` is not the file any more that had both names",
    );
    assert_eq!(world.text("b"), "1");
    let world = World::new().file("a", "1");
    world.did(["ln", "a", "b"]);
    shell(&world, "rm a b");
    insta::assert_snapshot!(world.unmoved(["restore", "b", "--from", "@", "--after"]), @r"
    error: `b` cannot be restored
      why: what was in the file that it was a name of is not kept
      next: see which operations wrote it with `backout log b`
    [exit code 1]
    ");
}

#[test]
fn a_restore_of_what_was_not_kept_says_what_was() {
    let world = World::new().file("a", "1").file("b", "1");
    world.did(["chmod", "600", "a"]);
    shell(&world, "rm a");
    insta::assert_snapshot!(world.unmoved(["restore", "a", "--from", "@"]), @r"
    error: `a` cannot be restored
      why: only its mode, owner or attributes were changed, and the rest of it is not kept
      next: see which operations wrote it with `backout log a`
    [exit code 1]
    ");
    world.did(["mv", "b", "c"]);
    shell(&world, "rm c");
    insta::assert_snapshot!(world.unmoved(["restore", "b", "--from", "@"]), @r"
    error: `b` cannot be restored
      why: only its name was changed, and the file is not where it was left
      next: take the whole operation back with `backout undo daa66d2c`
    [exit code 1]
    ");
}

#[test]
fn a_tree_that_is_kept_on_another_mount_is_not_brought_back_by_name() {
    let world = World::new().file("a/d/f", "1").file("b/x", "1");
    if !is_root() {
        return;
    }
    world.did(["rm", "-r", "a/d"]);
    shell(&world, "mount --bind b a");
    let ran = world.cli(["undo"]);
    let restored = world.cli(["restore", "a/d", "--from", "@"]);
    let text = world.text("a/d/f");
    shell(&world, "umount a");
    insta::assert_snapshot!(ran, @r"
    error: nothing was undone
      why: `a/d`: it is kept on another mount than `a/d`, and a directory cannot move from one to another; `backout restore` copies it
      next: see what the journal still knows with `backout show 9e3779b9`
    [exit code 1]
    ");
    assert_eq!((restored.code, text.as_str()), (0, "1"), "{restored}");
}
