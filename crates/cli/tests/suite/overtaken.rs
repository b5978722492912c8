//! Undos and redos that somebody else overtakes: what was put in place is changed before it is looked at for the last time. It
//! has happened all the same, so the journal says so, and every later undo and redo goes on from there.

use crate::claims::{Waiting, stopped_before};
use crate::world::World;

const BOTH: &str = "{\"a\": 0, \"b\": 0}\n";

/// An undo of a key that has put the file in place, and has looked at it for the first time.
fn undoing_a_key() -> (World, Waiting) {
    let prepared = || {
        let world = World::new().file("f.json", BOTH);
        world.did(["set", "f.json", "a", "31"]);
        world
    };
    stopped_before("file.checked", prepared, &["undo"])
}

/// The same for a whole file.
fn undoing_a_file() -> (World, Waiting) {
    let prepared = || {
        let world = World::new().file("a", "0");
        world.did(["write", "a", "--text", "1"]);
        world
    };
    stopped_before("file.checked", prepared, &["undo"])
}

#[test]
fn a_key_is_restored_although_somebody_changed_another_one_at_that_moment() {
    let (world, waiting) = undoing_a_key();
    world.put("f.json", "{\"a\": 0, \"b\": 1}\n");
    insta::assert_snapshot!(world.go_on(waiting), @"
    undid 9e3779b9  set a in f.json  (the newest below .)
      f.json:a  restored
    hint: take this back with `backout redo 3c6ef372`
    ");
    insta::assert_snapshot!(world.cli(["log"]), @"
    ╭◇   3c6ef372  just now  committed  undo of set a in f.json
    ╰○   9e3779b9  just now  undone     set a in f.json
    ");
    insta::assert_snapshot!(world.cli(["undo"]), @"
    error: there is nothing to undo below `.`
      next: see the operations with `backout log`
    [exit code 1]
    ");
    for _ in 0..2 {
        world.did(["redo"]);
        assert_eq!(world.text("f.json"), "{\"a\": 31, \"b\": 1}\n");
        let redo = world.newest_id();
        world.did(["undo", &redo]);
        assert_eq!(world.text("f.json"), "{\"a\": 0, \"b\": 1}\n");
    }
}

#[test]
fn a_key_that_somebody_put_back_at_that_moment_comes_by_redo_and_goes_by_undo() {
    let (world, waiting) = undoing_a_key();
    world.put("f.json", "{\"a\": 31, \"b\": 1}\n");
    insta::assert_snapshot!(world.go_on(waiting), @"
    undid 9e3779b9  set a in f.json  (the newest below .)
      f.json:a  overtaken: it was put in place, and somebody else changed it at once: it is again what it was
    error: not all of it is as it was
      why: 9e3779b9 `f.json:a`: overtaken: it was put in place, and somebody else changed it at once: it is again what it was
      next: take it back with `backout redo 3c6ef372 --force`, which keeps what somebody else wrote
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["undo"]), @"
    error: there is nothing to undo below `.`
      next: see the operations with `backout log`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["redo", "3c6ef372", "--force"]), @"
    redid 9e3779b9  set a in f.json
      f.json:a  already so
    ");
    insta::assert_snapshot!(world.cli(["log"]), @"
    ╭◇   78dde6e5  just now  committed  redo of set a in f.json
    ├◇   3c6ef372  just now  undone     undo of set a in f.json
    ╰●   9e3779b9  just now  committed  set a in f.json
    ");
    world.did(["undo"]);
    assert_eq!(world.text("f.json"), "{\"a\": 0, \"b\": 1}\n");
    insta::assert_snapshot!(world.cli(["redo"]), @"
    redid 9e3779b9  set a in f.json  (by the newest undo below .)
      f.json:a  changed again
    hint: take this back with `backout undo f1bbcdcb`
    ");
    assert_eq!(world.text("f.json"), "{\"a\": 31, \"b\": 1}\n");
}

#[test]
fn a_file_that_somebody_wrote_at_that_moment_is_theirs_and_the_operation_undone() {
    let (world, waiting) = undoing_a_file();
    world.put("a", "theirs");
    insta::assert_snapshot!(world.go_on(waiting), @"
    undid 9e3779b9  write a  (the newest below .)
      a  overtaken: it was put in place, and somebody else changed it at once
    error: not all of it is as it was
      why: 9e3779b9 `a`: overtaken: it was put in place, and somebody else changed it at once
      next: take it back with `backout redo 3c6ef372 --force`, which keeps what somebody else wrote
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["log"]), @"
    ╭◇   3c6ef372  just now  committed  undo of write a
    ╰○   9e3779b9  just now  undone     write a
    ");
    insta::assert_snapshot!(world.cli(["redo"]), @"
    error: nothing was redone
      why: `a`: content changed since (1 -> 6 bytes)
      next: see what would change back, and what others changed, with `backout redo 3c6ef372 --dry-run --diff`
      next: do it anyway with `backout redo 3c6ef372 --force` (what is there now is kept)
    [exit code 1]
    ");
    world.did(["redo", "3c6ef372", "--force"]);
    assert_eq!(world.text("a"), "1");
    world.did(["undo"]);
    assert_eq!(world.text("a"), "theirs");
}

#[test]
fn a_redo_that_somebody_overtakes_is_in_effect_and_its_undo_a_conflict() {
    let prepared = || {
        let world = World::new().file("a", "0");
        world.did(["write", "a", "--text", "1"]);
        world.did(["undo"]);
        world
    };
    let (world, waiting) = stopped_before("file.checked", prepared, &["redo"]);
    world.put("a", "theirs");
    insta::assert_snapshot!(world.go_on(waiting), @"
    redid 9e3779b9  write a  (by the newest undo below .)
      a  overtaken: it was put in place, and somebody else changed it at once
    error: not all of it is as it was
      why: 9e3779b9 `a`: overtaken: it was put in place, and somebody else changed it at once
      next: take it back with `backout undo daa66d2c --force`, which keeps what somebody else wrote
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["log"]), @"
    ╭◇   daa66d2c  just now  committed  redo of write a
    ├◇   3c6ef372  just now  undone     undo of write a
    ╰●   9e3779b9  just now  committed  write a
    ");
    insta::assert_snapshot!(world.cli(["undo"]), @"
    error: nothing was undone
      why: `a`: content changed since (1 -> 6 bytes)
      next: see what would change back, and what others changed, with `backout undo 9e3779b9 --dry-run --diff`
      next: do it anyway with `backout undo 9e3779b9 --force` (what is there now is kept)
    [exit code 1]
    ");
    world.did(["undo", "daa66d2c", "--force"]);
    assert_eq!(world.text("a"), "0");
    world.did(["redo"]);
    assert_eq!(world.text("a"), "theirs");
}

#[test]
fn a_conflict_of_the_only_target_that_shows_late_names_no_rest() {
    let world = World::new().file("a", "0");
    world.did(["write", "a", "--text", "1"]);
    world.did(["undo"]);
    let waiting = world.after_steps(&["journal.before-commit"], &["redo"]);
    world.put("a", "theirs");
    insta::assert_snapshot!(world.go_on(waiting), @"
    error: nothing was redone
      why: `a`: content changed since (1 -> 6 bytes)
      next: see what would change back, and what others changed, with `backout redo 3c6ef372 --dry-run --diff`
      next: do it anyway with `backout redo 3c6ef372 --force` (what is there now is kept)
    [exit code 1]
    ");
    assert_eq!(world.text("a"), "theirs");
}
