//! Undos that meet somebody else at the same moment, or something that does not let itself be undone. What is said then is
//! held against the world.

use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use crate::claims::stopped_before;
use crate::world::{Ran, World};

/// The steps of an undo of a written file up to the moment when it is prepared.
const UNTIL_PREPARED: [&str; 4] = [
    "journal.before-commit",
    "journal.after-commit",
    "file.judged",
    "file.undo-prepared",
];

/// The steps of an undo of a written file up to the moment when the old content is there and was not looked at again.
const UNTIL_SWAPPED: [&str; 14] = [
    "journal.before-commit",
    "journal.after-commit",
    "file.judged",
    "file.undo-prepared",
    "engine.undo-prepared",
    "engine.before-arm",
    "journal.contents-put",
    "journal.before-commit",
    "journal.after-commit",
    "engine.armed",
    "file.made",
    "file.synced",
    "file.swap",
    "file.swapped",
];

/// The steps of a write of a file up to the moment when the new content is there.
const WRITTEN: [&str; 15] = [
    "journal.before-commit",
    "journal.after-commit",
    "engine.leased",
    "file.staged",
    "file.prepared",
    "engine.staged",
    "engine.before-arm",
    "journal.contents-put",
    "journal.before-commit",
    "journal.after-commit",
    "engine.armed",
    "file.made",
    "file.synced",
    "file.swap",
    "file.swapped",
];

/// Starts a command that has to wait for its turn, and comes back when it has asked for it.
fn waits_for_its_turn(world: &World, arguments: &[&str]) -> Child {
    let log = world.place("log");
    let mut command = world.command(arguments);
    command.env("BACKOUT_CRASH_LOG", &log).stdin(Stdio::null());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = child.spawn().unwrap();
    // Its first step is to ask.
    while !log.exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    child
}

#[test]
fn of_two_undos_at_the_same_moment_the_second_finds_nothing_to_do() {
    let world = World::new().file("a", "0");
    world.did(["write", "a", "--text", "1"]);
    let first = world.after_steps(&UNTIL_PREPARED, &["undo", "9e37"]);
    let second = waits_for_its_turn(&world, &["undo", "9e37"]);
    assert_eq!(world.go_on(first).code, 0);
    let ran = world.ran(&second.wait_with_output().unwrap());
    insta::assert_snapshot!(ran, @"
    did not undo 9e3779b9  write a
      a  skipped: another process undid or redid it at the same moment
    error: nothing was taken back
      why: 9e3779b9 `a`: skipped: another process undid or redid it at the same moment
      next: see how it stands with `backout show 9e3779b9`
    [exit code 1]
    ");
    assert_eq!(world.text("a"), "0");
    let log = world.cli(["log"]).out;
    assert_eq!(log.lines().count(), 2, "{log}");
}

#[test]
fn what_somebody_wrote_while_it_was_undone_is_not_called_restored() {
    let world = World::new().file("a", "0").file("b", "0");
    let both = br#"{"changes": [{"write": {"path": "a", "text": "1"}}, {"write": {"path": "b", "text": "1"}}]}"#;
    assert_eq!(world.piped(both, ["batch"]).code, 0);
    world.did(["undo", "b"]);
    let waiting = world.after_steps(&UNTIL_SWAPPED, &["undo", "a"]);
    world.put("a", "theirs");
    insta::assert_snapshot!(world.go_on(waiting), @"
    undid 9e3779b9  write a and 1 more
      a  overtaken: it was put in place, and somebody else changed it at once
    error: not all of it is as it was
      why: 9e3779b9 `a`: overtaken: it was put in place, and somebody else changed it at once
      next: take it back with `backout redo daa66d2c --force`, which keeps what somebody else wrote
    [exit code 1]
    ");
    assert_eq!(world.text("a"), "theirs");
}

#[test]
fn what_something_stands_on_that_cannot_go_stays() {
    let world = World::new();
    world.did(["mkdir", "d"]);
    world.did(["write", "d/f", "--text", "1"]);
    let waiting = world.after_steps(&UNTIL_PREPARED, &["undo", "9e37"]);
    world.put("d/f", "theirs");
    insta::assert_snapshot!(world.still(|| world.go_on(waiting)), @"
    did not undo 3c6ef372  write d/f
      d/f  failed: `d/f` changed while the operation was being prepared
    did not undo 9e3779b9  make directory d
      d  skipped: something built on it could not be taken back
    error: nothing was taken back
      why: 3c6ef372 `d/f`: failed: `d/f` changed while the operation was being prepared
      why: 9e3779b9 `d`: skipped: something built on it could not be taken back
      next: put right what stands in the way, then `backout undo 3c6ef372` again
    [exit code 1]
    ");
    assert_eq!(world.text("d/f"), "theirs");
}

#[test]
fn a_write_that_waits_for_one_that_dies_takes_that_back_first() {
    let world = World::new().file("a", "0");
    let first = world.after_steps(&WRITTEN, &["write", "a", "--text", "1"]);
    let second = waits_for_its_turn(&world, &["write", "a", "--text", "2"]);
    first.signal(Signal::KILL);
    drop(first);
    let ran = world.ran(&second.wait_with_output().unwrap());
    insta::assert_snapshot!(ran, @"
    wrote a  (3c6ef372, undo with `backout undo 3c6ef372`)
    note: recovered 9e3779b9  write a: its process died half-way, and what it had done was taken back; bring it back with `backout redo 9e3779b9`
    ");
    assert_eq!(world.text("a"), "2");
    world.did(["undo"]);
    assert_eq!(world.text("a"), "0");
}

/// Undoes three writes; after the last of them was taken back, somebody writes these files. What is said is held against the
/// files then.
fn met_half_way(theirs: &[&str], undo: &[&str]) -> (World, Ran) {
    let prepared = || {
        let world = World::new().file("a", "0").file("b", "0").file("c", "0");
        for name in ["a", "b", "c"] {
            world.did(["write", name, "--text", "1"]);
        }
        world
    };
    let (world, waiting) = stopped_before("engine.undone", prepared, undo);
    assert_eq!(contents(&world), ["1", "1", "0"]);
    for name in theirs {
        world.put(name, "theirs");
    }
    let ran = world.go_on(waiting);
    (world, ran)
}

fn contents(world: &World) -> [String; 3] {
    ["a", "b", "c"].map(|name| world.text(name))
}

#[test]
fn a_conflict_that_shows_only_when_its_turn_comes_brings_back_what_was_taken() {
    let (world, ran) = met_half_way(&["a"], &["undo", "@", "@-1", "@-2"]);
    insta::assert_snapshot!(ran, @"
    error: nothing was undone
      why: `a`: content changed since (1 -> 6 bytes)
      next: see what would change back, and what others changed, with `backout undo daa66d2c 3c6ef372 9e3779b9 --dry-run --diff`
      next: do the rest with `backout undo daa66d2c 3c6ef372 9e3779b9 --partial`
      next: do it anyway with `backout undo daa66d2c 3c6ef372 9e3779b9 --force` (what is there now is kept)
    [exit code 1]
    ");
    assert_eq!(contents(&world), ["theirs", "1", "1"]);
    // What is advised works.
    world.did(["undo", "daa66d2c", "3c6ef372", "9e3779b9", "--force"]);
    assert_eq!(contents(&world), ["0", "0", "0"]);
    world.did(["redo"]);
    assert_eq!(contents(&world), ["theirs", "1", "1"]);
}

#[test]
fn a_conflict_that_shows_late_in_an_undo_of_what_can_be_stops_nothing() {
    let (world, ran) = met_half_way(&["b"], &["undo", "@", "@-1", "@-2", "--partial"]);
    insta::assert_snapshot!(ran, @"
    undid daa66d2c  write c
      c  restored
    did not undo 3c6ef372  write b
      b  conflict: content changed since (1 -> 6 bytes)
    undid 9e3779b9  write a
      a  restored
    error: 1 of 3 targets was left as it is
      why: 3c6ef372 `b`: conflict: content changed since (1 -> 6 bytes)
      next: put right what stands in the way, then `backout undo 3c6ef372` again
      next: take back what was done with `backout redo 78dde6e5`
    [exit code 1]
    ");
    assert_eq!(contents(&world), ["0", "theirs", "0"]);
}

#[test]
fn what_somebody_wrote_where_it_was_taken_back_is_not_replaced_to_bring_it_again() {
    let (world, ran) = met_half_way(&["a", "c"], &["undo", "@", "@-1", "@-2"]);
    insta::assert_snapshot!(ran, @"
    undid daa66d2c  write c
      c  restored
    did not undo 3c6ef372  write b
      b  skipped: it was put back, since not all could be taken back
    did not undo 9e3779b9  write a
      a  conflict: content changed since (1 -> 6 bytes)
    error: 2 of 3 targets were left as they are
      why: 3c6ef372 `b`: skipped: it was put back, since not all could be taken back
      why: 9e3779b9 `a`: conflict: content changed since (1 -> 6 bytes)
      next: put right what stands in the way, then `backout undo 3c6ef372` again
      next: take back what was done with `backout redo 78dde6e5`
    [exit code 1]
    ");
    assert_eq!(contents(&world), ["theirs", "1", "theirs"]);
}

#[test]
fn a_plan_foresees_what_others_did_in_a_tree_that_was_removed_since() {
    let world = World::new().file("d/f", "1").file("d/g", "1");
    world.did(["write", "d/f", "--text", "2"]);
    world.put("d/f", "theirs");
    world.did(["rm", "-r", "d"]);
    insta::assert_snapshot!(world.unmoved(["undo", "-n", "9e3779b9"]), @"
    would not undo 2 operations, newest first:
      3c6ef372  remove d and all below  depends on 9e3779b9: moves or removes its directory
                d  will be as before
      9e3779b9  write d/f
                d/f  conflict: somebody else changed it before 3c6ef372
    hint: do the rest with `backout undo 9e3779b9 --partial`
    hint: do it anyway, keeping what is there now, with `backout undo 9e3779b9 --force`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["undo", "9e3779b9"]), @"
    error: nothing was undone
      why: `d/f`: somebody else changed it before 3c6ef372
      next: see what would change back, and what others changed, with `backout undo 9e3779b9 --dry-run --diff`
      next: do the rest with `backout undo 9e3779b9 --partial`
      next: do it anyway with `backout undo 9e3779b9 --force` (what is there now is kept)
    [exit code 1]
    ");
    // By force it is done, and what they wrote is kept.
    world.did(["undo", "9e3779b9", "--force"]);
    assert_eq!(
        (world.text("d/f"), world.text("d/g")),
        ("1".into(), "1".into())
    );
    world.did(["redo"]);
    assert!(!world.has("d"));
    world.did(["undo", "@"]);
    assert_eq!(world.text("d/f"), "theirs");
}
