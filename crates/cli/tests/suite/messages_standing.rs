//! Why something does not come back, in the words of the driver of files: what is there is not what an operation left. Each
//! time the world is looked at.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use crate::claims::{Disk, is_root};
use crate::world::{Ran, World};

/// More than rides with a record: such a file is kept as the inode it is.
pub(crate) fn large(byte: &str) -> String {
    byte.repeat(100_000)
}

/// Asserts that an undo or a redo did nothing, and says why of one target.
#[track_caller]
pub(crate) fn stays(world: &World, asked: &[&str], why: &str) {
    let ran = world.still(|| world.run(&mut world.command(asked)));
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.err.contains(&format!("  why: {why}\n")), "{ran}");
}

/// Asserts what an undo or a redo that went through says beside the outcomes.
#[track_caller]
pub(crate) fn notes(ran: &Ran, note: &str) {
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.out.contains(&format!("note: {note}\n")), "{ran}");
}

pub(crate) fn shell(world: &World, line: &str) {
    let done = Command::new("sh")
        .args(["-c", line])
        .current_dir(world.path(""))
        .status();
    assert!(done.unwrap().success(), "{line}");
}

#[test]
fn what_was_moved_and_is_another_thing_now_says_which() {
    let world = World::new().file("a", "1").file("d/f", "1");
    world.did(["mv", "a", "b"]);
    shell(&world, "echo more >c && mv c b");
    stays(&world, &["undo"], "`b`: `b` is now another file");
    world.did(["mv", "d", "e"]);
    shell(&world, "mv e elsewhere && echo 1 >e");
    let why = "`e`: `e`: it is a file now, was a directory";
    stays(&world, &["undo"], why);
    stays(&world, &["undo", "--force"], why);
    shell(&world, "rm e");
    stays(&world, &["undo", "--force"], "`e`: `e` is gone");
}

#[test]
fn what_is_another_file_or_device_or_has_another_time_stays() {
    let world = World::new().file("a", "1");
    world.did(["ln", "a", "b"]);
    shell(&world, "cp b c && mv c b");
    stays(&world, &["undo"], "`b`: it is another file now");
    world.did(["run", "--", "touch", "-d", "2001-01-01", "a"]);
    shell(&world, "touch -d 2002-02-02 a");
    stays(&world, &["undo"], "`a`: its time changed");
    if !is_root() {
        return;
    }
    world.did(["run", "--", "mknod", "n", "c", "1", "3"]);
    shell(&world, "rm n && mknod n c 1 5");
    stays(&world, &["undo"], "`n`: it is another device");
}

#[test]
fn what_has_other_flags_than_the_operation_gave_it_stays() {
    let world = World::new().file("f", "1").file("probe", "1");
    let mut probe = Command::new("chattr");
    let probed = probe.arg("+d").arg(world.path("probe")).status();
    // Not every file system has flags.
    if !probed.is_ok_and(|status| status.success()) {
        return;
    }
    world.did(["run", "--", "chattr", "+d", "f"]);
    shell(&world, "chattr -d +A f");
    stays(&world, &["undo"], "`f`: its inode flags changed");
}

#[test]
fn what_a_redo_would_remove_and_is_another_thing_now_stays_and_no_restore_is_advised() {
    let world = World::new().file("x", &large("x")).file("d/f", "1");
    world.did(["rm", "x"]);
    world.did(["undo"]);
    shell(&world, "tr x y <x >z && mv z x");
    stays(&world, &["redo"], "`x`: it is another file now");
    world.did(["rm", "-r", "d"]);
    world.did(["undo"]);
    shell(&world, "mv d old && mkdir d && echo mine >d/mine");
    insta::assert_snapshot!(world.unmoved(["redo"]), @r"
    error: nothing was redone
      why: `d`: it is another directory now
      next: see what would change back, and what others changed, with `backout redo 53845412 --dry-run --diff`
      next: do it anyway with `backout redo 53845412 --force` (what is there now is kept)
    [exit code 1]
    ");
}

#[test]
fn a_name_whose_directory_is_something_else_now_says_what_has_its_place() {
    let world = World::new().file("d/f", "1");
    world.did(["rm", "d/f"]);
    shell(&world, "rmdir d && echo 1 >d");
    let why =
        "`d/f`: `d` is not a directory any more: move it away, and the directory can be made again";
    stays(&world, &["undo"], why);
    stays(&world, &["undo", "--force"], why);
    fs::remove_file(world.path("d")).unwrap();
    symlink("/tmp", world.path("d")).unwrap();
    let why =
        "`d/f`: `d` is a symbolic link now: move it away, and the directory can be made again";
    stays(&world, &["undo"], why);
    fs::remove_file(world.path("d")).unwrap();
    stays(&world, &["undo"], "`d/f`: its directory `d` is gone");
    let ran = world.cli(["undo", "--force"]);
    notes(&ran, "the directory `d` was gone and is made again");
    assert_eq!(world.text("d/f"), "1");
    world.did(["redo"]);
    assert!(!world.has("d"));
}

#[test]
fn what_comes_back_with_its_directory_waits_for_it() {
    let world = World::new();
    world.did(["write", "-p", "d/f", "--text", "1"]);
    world.did(["undo"]);
    world.put("d", "mine");
    insta::assert_snapshot!(world.unmoved(["redo"]), @r"
    error: nothing was redone
      why: `d`: it exists: a file
      why: `d/f`: it comes back with `d`: it exists: a file
      next: see what would change back, and what others changed, with `backout redo 3c6ef372 --dry-run --diff`
      next: do it anyway with `backout redo 3c6ef372 --force` (what is there now is kept)
    [exit code 1]
    ");
}

#[test]
fn what_cannot_be_merged_says_why() {
    let world = World::new()
        .file("f", "a\n")
        .file("n", "\0")
        .file("g", &large("g\n"))
        .file("new", &large("h\n"));
    for name in ["f", "n"] {
        world.did(["write", name, "--text", "b\n"]);
    }
    world.did(["write", "g", "--from", "new"]);
    let merged = |name: &str, change: &str, why: &str| {
        shell(&world, change);
        let ran = world.still(|| world.cli(["undo", name, "--merge"]));
        assert_eq!(ran.code, 1, "{ran}");
        assert!(ran.err.contains(&format!("; {why}\n")), "{ran}");
    };
    let link = "what is there now is not a text that could be merged";
    merged("f", "rm f && ln -s x f", link);
    merged("n", "echo c >n", "it is not text");
    merged(
        "g",
        "echo c >g",
        "the texts before and after are not both at hand",
    );
}

#[test]
fn a_directory_that_a_redo_had_to_make_goes_with_it() {
    let world = World::new().file("d/x", "1");
    world.did(["write", "d/f", "--text", "1"]);
    world.did(["undo"]);
    shell(&world, "rm -r d");
    stays(&world, &["redo"], "`d/f`: its directory `d` is gone");
    let ran = world.cli(["redo", "--force"]);
    notes(&ran, "the directory `d` was gone and is made again");
    assert_eq!(world.text("d/f"), "1");
    let ran = world.cli(["undo"]);
    notes(
        &ran,
        "the directory `d`, which was made for it, is gone again",
    );
    assert!(!world.has("d"));
}

#[test]
fn two_targets_of_one_name_stand_in_the_way_for_one_reason() {
    let world = World::new().file("d/x", "1").file("y", "2");
    world.did(["run", "--", "sh", "-c", "rm -r d; mv y d"]);
    shell(&world, "rm d");
    insta::assert_snapshot!(world.unmoved(["undo"]), @r"
    error: nothing was undone
      why: `d`: `d` is gone
      why: `y`: `d` is gone
      next: see what would change back, and what others changed, with `backout undo 9e3779b9 --dry-run --diff`
      next: do the rest with `backout undo 9e3779b9 --partial`
      next: put right what stands in the way, then `backout undo 9e3779b9` again
    [exit code 1]
    ");
}

#[test]
fn a_write_says_where_it_went_and_what_it_left_out() {
    let world = World::new().file("a", "1").file("d/f", "1");
    symlink("a", world.path("l")).unwrap();
    insta::assert_snapshot!(world.cli(["write", "l", "--text", "2"]), @r"
    wrote l  (9e3779b9, undo with `backout undo 9e3779b9`)
    note: followed the link `l` to `a`
    ");
    assert_eq!(world.text("a"), "2");
    insta::assert_snapshot!(world.unmoved(["chmod", "zz", "a"]), @r"
    error: invalid value 'zz' for '<MODE>': `zz` is not a mode (like 644, u+x, go-w or a=rX)

    For more information, try '--help'.
    [exit code 2]
    ");
}

#[test]
fn what_moves_to_another_file_system_is_copied_and_what_is_ours_is_left_out() {
    let world = World::new().file("a", "1").file("d/f", "1");
    let Some(_disk) = Disk::at(world.path("disk"), 1024) else {
        return;
    };
    let ran = world.cli(["mv", "a", "disk/a"]);
    assert!(
        ran.err
            .contains("note: `a` was copied to another file system\n"),
        "{ran}"
    );
    assert_eq!(
        (world.has("a"), world.text("disk/a")),
        (false, "1".to_owned())
    );
    let mut command = world.command(&["cp", "-r", "d", "e"]);
    let ran = world.run(command.env("BACKOUT_STATE_DIR", world.path("d/state")));
    let note = "note: `d/state` was left out: Backout keeps there what it replaced\n";
    assert!(ran.err.contains(note), "{ran}");
    assert_eq!(
        (world.text("e/f"), world.has("e/state")),
        ("1".to_owned(), false)
    );
}

#[test]
fn nobody_removes_the_directory_they_stand_in() {
    let world = World::new().file("d/f", "1");
    let mut command = world.command(&["rm", "-r", "../d"]);
    let ran = world.still(|| world.run(command.current_dir(world.path("d"))));
    insta::assert_snapshot!(ran, @r"
    error: `.` is the current directory, or above it
      why: what is removed is kept, and you would stand, and write, in what is kept
      next: leave it first, with `cd`
    [exit code 1]
    ");
}

#[test]
fn a_batch_that_contradicts_itself_says_what_to_leave_out() {
    let world = World::new().file("f", "x");
    let said = |change: &str| {
        let json = format!("{{\"changes\": [{change}]}}");
        world.still(|| world.piped(json.as_bytes(), ["batch"]))
    };
    insta::assert_snapshot!(said(""), @r"
    error: the batch is empty
      next: put something into `changes`
    [exit code 2]
    ");
    insta::assert_snapshot!(said(r#"{"write": {"path": "g", "text": "1", "create": true, "existing": true}}"#), @r"
    error: change 1 of the batch cannot be made: `create` and `existing` contradict each other
      next: leave one of them out
    [exit code 2]
    ");
    insta::assert_snapshot!(said(r#"{"edit": {"path": "f", "search": "x", "replace": "y", "all": true, "nth": 2}}"#), @r"
    error: change 1 of the batch cannot be made: `all` and `nth` contradict each other
      next: leave one of them out
    [exit code 2]
    ");
    insta::assert_snapshot!(said(r#"{"write": {"path": "g"}}"#), @r"
    error: change 1 of the batch cannot be made: it is not clear what to write
      next: give exactly one of `text`, `base64` and `from`
    [exit code 2]
    ");
    insta::assert_snapshot!(said(r#"{"write": {"path": "g", "text": "1", "mode": "rwx"}}"#), @r#"
    error: change 1 of the batch cannot be made: `rwx` is not a mode
      next: give octal digits, like "0644"
    [exit code 2]
    "#);
}
