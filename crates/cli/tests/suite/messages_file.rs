//! What is said when a file cannot be written. Nothing was changed then, and the world is looked at to be sure.
//!
//! Without a test, since no situation brings them about without a failing system call or a program of the future, both of
//! which the proofs have (`proof/errno`, `engine/tests`): a failed sync, a half-done swap that cannot be put back, a
//! recipe of a newer version or one that cannot be read, a content that is not what its digest says.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::process::Command;

use crate::claims::{Disk, is_root};
use crate::world::{Ran, World};

fn batch(world: &World, changes: &str) -> Ran {
    let json = format!("{{\"changes\": [{changes}]}}");
    world.piped(json.as_bytes(), ["batch"])
}

#[test]
fn what_has_no_content_is_not_written() {
    let world = World::new();
    let made = Command::new("mkfifo").arg(world.path("pipe")).status();
    assert!(made.unwrap().success());
    insta::assert_snapshot!(world.unmoved(["write", "pipe", "--text", "x"]), @"
    error: `pipe` is not a regular file
      next: only regular files have content to write
    [exit code 1]
    ");
}

#[test]
fn a_directory_does_not_go_into_itself() {
    let world = World::new().file("d/f", "1");
    insta::assert_snapshot!(world.unmoved(["mv", "d", "d/e"]), @"
    error: `d/e` lies inside `d`
      next: choose a place outside of it
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["cp", "-r", "d", "d/e"]), @"
    error: `d/e` lies inside `d`
      next: choose a place outside of it
    [exit code 1]
    ");
}

#[test]
fn a_path_that_cannot_be() {
    let world = World::new().file("f", "1");
    insta::assert_snapshot!(world.unmoved(["write", "f/x", "--text", "1"]), @"
    error: `f` is not a directory
      next: check the path
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["write", "/", "--text", "1"]), @"
    error: `/` cannot be written to
      next: check the path
    [exit code 1]
    ");
    symlink("two", world.path("one")).unwrap();
    symlink("one", world.path("two")).unwrap();
    insta::assert_snapshot!(world.unmoved(["write", "one/x", "--text", "1"]), @"
    error: the symbolic link `one` leads to itself
      why: it, or a link that it leads to, never comes to a file; nothing was changed
      next: remove the link, or name the file
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["write", "one", "--text", "1"]), @"
    error: the symbolic link `one` leads to itself
      why: it, or a link that it leads to, never comes to a file; nothing was changed
      next: remove the link, or name the file
    [exit code 1]
    ");
}

#[test]
fn a_patch_does_not_leave_its_directory() {
    let world = World::new().file("d/f", "1\n");
    let patch = b"--- a/../../f\n+++ b/../../f\n@@ -1 +1 @@\n-1\n+2\n";
    insta::assert_snapshot!(world.still(|| world.piped(patch, ["edit", "--patch", "-", "--base", "d"])), @"
    error: `../../f` leads out of its directory, to `d/../../f`
      why: a batch and a patch stay in their directory; nothing was changed
      next: run it in a directory that holds everything it writes
    [exit code 1]
    ");
}

#[test]
fn changes_of_one_batch_that_meddle_with_each_other() {
    let world = World::new().file("d/f", "1");
    let twice = r#"{"move": {"from": "d", "to": "e"}}, {"move": {"from": "e", "to": "g"}}"#;
    insta::assert_snapshot!(world.still(|| batch(&world, twice)), @"
    error: `e` is touched by an earlier change of the same batch
      why: one operation cannot say both of them at once
      next: do it in two operations
    [exit code 1]
    ");
    let copied = r#"{"write": {"path": "d/new", "text": "1"}}, {"copy": {"from": "d", "to": "g", "recursive": true}}"#;
    insta::assert_snapshot!(world.still(|| batch(&world, copied)), @"
    error: `d` is touched by an earlier change of the same batch
      why: one operation cannot say both of them at once
      next: do it in two operations
    [exit code 1]
    ");
}

#[test]
fn a_batch_has_advice_in_its_own_words() {
    let world = World::new().file("d/f", "1").file("f", "1");
    let full = r#"{"write": {"path": "n", "text": "1"}}, {"remove": {"path": "d"}}"#;
    insta::assert_snapshot!(world.still(|| batch(&world, full)), @r#"
    error: the directory `d` is not empty
      next: take it with all that is in it with `"recursive": true`
    [exit code 1]
    "#);
    let missing = r#"{"remove": {"path": "f"}}, {"write": {"path": "no/n", "text": "1"}}"#;
    insta::assert_snapshot!(world.still(|| batch(&world, missing)), @r#"
    error: `no` does not exist
      next: check the name; `"parents": true` makes missing directories too
    [exit code 1]
    "#);
    for gone in [
        r#"{"remove": {"path": "gone"}}"#,
        r#"{"write": {"path": "n", "text": "1"}}, {"remove": {"path": "gone"}}"#,
    ] {
        let said = world.still(|| batch(&world, gone)).to_string();
        assert!(
            said.ends_with("next: check the name\n[exit code 1]"),
            "{said}"
        );
    }
    let taken = r#"{"write": {"path": "n", "text": "1"}}, {"move": {"from": "f", "to": "d/f"}}"#;
    insta::assert_snapshot!(world.still(|| batch(&world, taken)), @r#"
    error: `d/f` already exists
      next: choose another name, or replace it with `"replace": true`
    [exit code 1]
    "#);
}

#[test]
fn a_disk_that_is_full() {
    let world = World::new();
    let Some(disk) = Disk::at(world.path("m"), 64) else {
        return;
    };
    world.put("m/f", "hi");
    world.did(["rm", "m/f"]);
    disk.fill();
    insta::assert_snapshot!(world.unmoved(["write", "m/g", "--text", "new"]), @"
    error: no space left to stage in `m`
      why: nothing was changed
      next: make room on that file system
    [exit code 1]
    ");
    // Where the removed file waits there is no room to bring it back; it stays kept.
    insta::assert_snapshot!(world.unmoved(["undo"]), @"
    did not undo 9e3779b9  remove m/f  (the newest below .)
      m/f  failed: no space left to stage in `m`
    error: nothing was taken back
      why: 9e3779b9 `m/f`: failed: no space left to stage in `m`
      next: put right what stands in the way, then `backout undo 9e3779b9` again
    [exit code 1]
    ");
    let waits = world.cli(["failed"]).out;
    let said = "what is kept for it is whole, and there is nothing else to take it from";
    assert!(waits.contains(said), "{waits}");
    fs::remove_file(world.path("m/filler")).unwrap();
    world.did(["undo"]);
    assert_eq!(world.text("m/f"), "hi");
}

#[test]
fn a_disk_that_is_read_only() {
    let world = World::new();
    let Some(disk) = Disk::at(world.path("m"), 64) else {
        return;
    };
    world.put("m/f", "hi");
    disk.lock();
    insta::assert_snapshot!(world.unmoved(["write", "m/f", "--text", "new"]), @"
    error: `m` is on a read-only file system
      next: mount the file system writable
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["rm", "m/f"]), @"
    error: `m/f` is on a read-only file system
      why: operation 3c6ef372 was put back: nothing of it stays
      next: mount the file system writable
    [exit code 1]
    ");
}

/// Takes the flags off again, so that the world can be cleared away.
struct Locked(std::path::PathBuf);

impl Locked {
    fn with(world: &World, name: &str, flag: &str) -> Option<Self> {
        let path = world.path(name);
        let locked = Command::new("chattr").arg(flag).arg(&path).output();
        let is_locked = is_root() && locked.unwrap().status.success();
        is_locked.then_some(Self(path))
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        let _freed = Command::new("chattr").arg("-ia").arg(&self.0).status();
    }
}

#[test]
fn a_file_that_nobody_may_change() {
    let world = World::new().file("a", "1");
    world.did(["write", "a", "--text", "2"]);
    let Some(locked) = Locked::with(&world, "a", "+i") else {
        return;
    };
    insta::assert_snapshot!(world.unmoved(["write", "a", "--text", "3"]), @"
    error: `a` is immutable: nobody may change it, not even root
      why: nothing was changed
      next: if it is meant to change, take the flag off first: `chattr -i` or `chattr -a`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["undo", "--dry-run"]), @"
    would not undo 1 operation:  (the newest below .)
      9e3779b9  write a
                a  conflict: `a` is immutable: nobody may change it, not even root; `chattr -i` takes that off
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["undo"]), @"
    error: nothing was undone
      why: `a`: `a` is immutable: nobody may change it, not even root; `chattr -i` takes that off
      next: see what would change back, and what others changed, with `backout undo 9e3779b9 --dry-run --diff`
      next: put right what stands in the way, then `backout undo 9e3779b9` again
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["show", "@"]), @"
    9e3779b9  write a
      id        9e3779b97f4a7c15
      status    committed
      when      2027-01-15 08:00:00 UTC (just now)
      target    a  `a` is immutable: nobody may change it, not even root; `chattr -i` takes that off
      strategy  snapshot  small enough to keep whole (size 1)
      cost      2 B stored
      journal   1 intent, 2 applied, 3 commit
    hint: see what it changed with `backout diff 9e3779b9`
    hint: see what an undo would do with `backout undo 9e3779b9 --dry-run`
    ");
    drop(locked);
    let Some(_locked) = Locked::with(&world, "a", "+a") else {
        return;
    };
    insta::assert_snapshot!(world.unmoved(["write", "--append", "a", "--text", "3"]), @"
    error: `a` is append-only: nobody may change it, not even root
      why: nothing was changed
      next: if it is meant to change, take the flag off first: `chattr -i` or `chattr -a`
    [exit code 1]
    ");
}

#[test]
fn a_file_that_was_too_large_to_keep() {
    let world = World::new().file("big", &"x".repeat(200_000));
    let run = |options: &[&str], line: &str| {
        let mut command = world.command(&["run", "--limit", "1000"]);
        world.run(command.args(options).args(["--", "sh", "-c", line]))
    };
    let tree = world.tree();
    insta::assert_snapshot!(run(&[], "printf y >> big"), @"
    sh: 1: cannot create big: File too large
    note: writing `big` was refused: it is 200000 bytes, more than may be copied first
    [exit code 2]
    ");
    assert_eq!(world.tree(), tree);
    insta::assert_snapshot!(run(&["--over-limit", "mark"], "printf z >> big; printf s > small"), @"note: `big` cannot be brought back: it was 200000 bytes, more than may be copied first");
    assert_eq!(
        (world.text("big").len(), world.text("small").as_str()),
        (200_001, "s")
    );
    insta::assert_snapshot!(world.unmoved(["undo"]), @"
    error: nothing was undone
      why: `big`: it was not kept: it was 200000 bytes, more than may be copied first
      next: do the rest with `backout undo 3c6ef372 --partial`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["undo", "--dry-run"]), @"
    would not undo 1 operation:  (the newest below .)
      3c6ef372  run sh -c 'printf z >> big; printf s > small'
                big    cannot be brought back: it was not kept: it was 200000 bytes, more than may be copied first
                small  will be as before
    hint: do the rest with `backout undo 3c6ef372 --partial`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["restore", "big", "--from", "@"]), @"
    error: `big` cannot be restored
      why: it was not kept: it was 200000 bytes, more than may be copied first
      next: see which operations wrote it with `backout log big`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["undo", "--partial"]), @"
    undid 3c6ef372  run sh -c 'printf z >> big; printf s > small'  (the newest below .)
      big    failed: it was not kept: it was 200000 bytes, more than may be copied first
      small  gone, as before
    error: 1 of 2 targets was left as it is
      why: 3c6ef372 `big`: failed: it was not kept: it was 200000 bytes, more than may be copied first
      next: put right what stands in the way, then `backout undo 3c6ef372` again
      next: take back what was done with `backout redo cc623af8`
    [exit code 1]
    ");
    assert_eq!(
        (world.text("big").len(), world.has("small")),
        (200_001, false)
    );
}

#[test]
fn an_owner_that_changed_is_named_and_comes_back() {
    let world = World::new().file("a", "1");
    if !is_root() {
        return;
    }
    let before = world.tree();
    insta::assert_snapshot!(world.cli(["chown", "65534:65534", "a"]), @"changed the owner of a  (9e3779b9, undo with `backout undo 9e3779b9`)");
    assert_eq!(world.path("a").metadata().unwrap().uid(), 65_534);
    world.did(["undo"]);
    assert_eq!(world.tree(), before);
}

#[test]
fn a_new_value_of_an_attribute_is_no_difference_of_text() {
    let world = World::new().file("a", "1");
    let set = |value: &[u8]| {
        let flags = rustix::fs::XattrFlags::empty();
        rustix::fs::setxattr(world.path("a"), "user.k", value, flags)
    };
    // Not every file system keeps attributes.
    if set(b"old").is_err() {
        return;
    }
    world.did(["run", "--", "setfattr", "-n", "user.k", "-v", "new", "a"]);
    insta::assert_snapshot!(world.unmoved(["diff", "@"]), @"
    changed a
      the value of an attribute changed
    ");
    world.did(["undo"]);
    let mut value = [0; 8];
    let length = rustix::fs::getxattr(world.path("a"), "user.k", &mut value).unwrap();
    assert_eq!(value.get(..length), Some(b"old".as_slice()));
}

#[test]
fn a_name_with_a_newline_is_one_line_of_a_message() {
    let world = World::new();
    world.did(["write", "a\nb", "--text", "1"]);
    world.put("a\nb", "22");
    insta::assert_snapshot!(world.unmoved(["undo"]), @r"
    error: nothing was undone
      why: `a\nb`: content changed since (1 -> 2 bytes)
      next: see what would change back, and what others changed, with `backout undo 9e3779b9 --dry-run --diff`
      next: do it anyway with `backout undo 9e3779b9 --force` (what is there now is kept)
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["rm", "x\ny"]), @r"
    error: `x\ny` does not exist
      next: check the name; `--force` does not mind what is not there
    [exit code 1]
    ");
}
