//! What is said of undos, redos and rollbacks that were done in part, in steps, or not to the end.

use crate::world::{Ran, World};

fn two_writes() -> World {
    let world = World::new().file("a", "0");
    world.did(["write", "a", "--text", "1"]);
    world.did(["write", "b", "--text", "2"]);
    world
}

/// One operation that wrote three files, two of which somebody changed since.
fn drifted() -> World {
    let world = World::new().file("a", "0").file("b", "0").file("c", "0");
    let changes = br#"{"changes": [{"write": {"path": "a", "text": "1"}}, {"write": {"path": "b", "text": "1"}},
        {"write": {"path": "c", "text": "1"}}]}"#;
    assert_eq!(world.piped(changes, ["batch"]).code, 0);
    world.put("a", "theirs");
    world.put("b", "theirs");
    world
}

#[test]
fn what_is_as_before_already() {
    let world = World::new().file("a", "0");
    world.did(["write", "a", "--text", "1"]);
    world.put("a", "0");
    insta::assert_snapshot!(world.unmoved(["undo", "--dry-run"]), @"
    would undo 1 operation:  (the newest below .)
      9e3779b9  write a
                a  is as before already
    hint: do it with `backout undo 9e3779b9`
    ");
    insta::assert_snapshot!(world.unmoved(["show", "@"]), @"
    9e3779b9  write a
      id        9e3779b97f4a7c15
      status    committed
      when      2027-01-15 08:00:00 UTC (just now)
      target    a  as before this operation
      strategy  snapshot  small enough to keep whole (size 1)
      cost      2 B stored
      journal   1 intent, 2 applied, 3 commit
    hint: see what it changed with `backout diff 9e3779b9`
    hint: see what an undo would do with `backout undo 9e3779b9 --dry-run`
    ");
    insta::assert_snapshot!(world.cli(["undo"]), @"
    undid 9e3779b9  write a  (the newest below .)
      a  already as before
    ");
    assert_eq!(world.text("a"), "0");
    insta::assert_snapshot!(world.unmoved(["redo", "3c6e", "--dry-run"]), @"
    would not redo 1 operation:
      9e3779b9  write a
                a  will be left as it is: it was as before already when it was undone, so nothing was kept
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["redo", "3c6e"]), @"
    did not redo 9e3779b9  write a
      a  left as it is: it was as before already when it was undone, so nothing was kept
    error: nothing was brought back
      why: 9e3779b9 `a`: left as it is: it was as before already when it was undone, so nothing was kept
      next: see how it stands with `backout show 9e3779b9`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["redo"]), @"
    error: there is nothing to redo
      next: see what was undone with `backout log`
    [exit code 1]
    ");
}

#[test]
fn an_undo_of_a_part_says_what_was_left() {
    let world = drifted();
    insta::assert_snapshot!(world.cli(["undo", "--partial"]), @"
    undid 9e3779b9  write a and 2 more  (the newest below .)
      a  conflict: content changed since (1 -> 6 bytes)
      b  conflict: content changed since (1 -> 6 bytes)
      c  restored
    error: 2 of 3 targets were left as they are
      why: 9e3779b9 `a`: conflict: content changed since (1 -> 6 bytes)
      why: 9e3779b9 `b`: conflict: content changed since (1 -> 6 bytes)
      next: put right what stands in the way, then `backout undo 9e3779b9` again
      next: take back what was done with `backout redo 3c6ef372`
    [exit code 1]
    ");
    assert_eq!(
        (world.text("a").as_str(), world.text("c").as_str()),
        ("theirs", "0")
    );
    insta::assert_snapshot!(world.unmoved(["log"]), @"
    ╭◇   3c6ef372  just now  committed  undo of write a and 2 more
    ╰●   9e3779b9  just now  committed  write a and 2 more  (in part undone)
    ");
    insta::assert_snapshot!(world.unmoved(["show", "@"]), @"
    9e3779b9  write a and 2 more
      id        9e3779b97f4a7c15
      status    committed, 1 of 3 targets taken back by 3c6ef372
      when      2027-01-15 08:00:00 UTC (just now)
      target    a  content changed since (1 -> 6 bytes)
      target    b  content changed since (1 -> 6 bytes)
      target    c  taken back by 3c6ef372
      strategy  snapshot  3 files, each kept whole
      cost      2 B stored
      journal   1 intent, 2 applied, 3 commit, 7 undone
    hint: see what it changed with `backout diff 9e3779b9`
    hint: see what an undo would do with `backout undo 9e3779b9 --dry-run`
    ");
    insta::assert_snapshot!(world.unmoved(["undo", "--partial"]), @"
    did not undo 9e3779b9  write a and 2 more  (the newest below .)
      a  conflict: content changed since (1 -> 6 bytes)
      b  conflict: content changed since (1 -> 6 bytes)
    error: nothing was taken back
      why: 9e3779b9 `a`: conflict: content changed since (1 -> 6 bytes)
      why: 9e3779b9 `b`: conflict: content changed since (1 -> 6 bytes)
      next: put right what stands in the way, then `backout undo 9e3779b9` again
    [exit code 1]
    ");
}

#[test]
fn the_rest_is_done_by_the_command_that_is_named() {
    let world = two_writes();
    world.put("b", "theirs");
    insta::assert_snapshot!(world.unmoved(["undo", "@", "@-1"]), @"
    error: nothing was undone
      why: `b`: content changed since (1 -> 6 bytes)
      next: see what would change back, and what others changed, with `backout undo 3c6ef372 9e3779b9 --dry-run --diff`
      next: do the rest with `backout undo 3c6ef372 9e3779b9 --partial`
      next: do it anyway with `backout undo 3c6ef372 9e3779b9 --force` (what is there now is kept)
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["undo", "3c6ef372", "9e3779b9", "--partial"]), @"
    did not undo 3c6ef372  write b
      b  conflict: content changed since (1 -> 6 bytes)
    undid 9e3779b9  write a
      a  restored
    error: 1 of 2 targets was left as it is
      why: 3c6ef372 `b`: conflict: content changed since (1 -> 6 bytes)
      next: put right what stands in the way, then `backout undo 3c6ef372` again
      next: take back what was done with `backout redo f1bbcdcb`
    [exit code 1]
    ");
    assert_eq!(
        (world.text("a").as_str(), world.text("b").as_str()),
        ("0", "theirs")
    );
}

#[test]
fn a_redo_that_cannot_be() {
    let world = World::new().file("a", "0").file("b", "0");
    let changes = br#"{"changes": [{"write": {"path": "a", "text": "1"}}, {"write": {"path": "b", "text": "1"}}]}"#;
    assert_eq!(world.piped(changes, ["batch"]).code, 0);
    world.did(["undo"]);
    world.put("a", "theirs");
    insta::assert_snapshot!(world.unmoved(["redo", "--dry-run"]), @"
    would not redo 1 operation:  (by the newest undo below .)
      9e3779b9  write a and 1 more
                a  conflict: content changed since (1 -> 6 bytes)
                b  will be changed again
    hint: do the rest with `backout redo 3c6ef372 --partial`
    hint: do it anyway, keeping what is there now, with `backout redo 3c6ef372 --force`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["redo", "--partial"]), @"
    redid 9e3779b9  write a and 1 more  (by the newest undo below .)
      a  conflict: content changed since (1 -> 6 bytes)
      b  changed again
    error: 1 of 2 targets was left as it is
      why: 9e3779b9 `a`: conflict: content changed since (1 -> 6 bytes)
      next: put right what stands in the way, then `backout redo 9e3779b9` again
      next: take back what was done with `backout undo b54cda58`
    [exit code 1]
    ");
    assert_eq!(
        (world.text("a").as_str(), world.text("b").as_str()),
        ("theirs", "1")
    );
    insta::assert_snapshot!(world.unmoved(["redo", "--partial"]), @"
    did not redo 9e3779b9  write a and 1 more  (by the newest undo below .)
      a  conflict: content changed since (1 -> 6 bytes)
    error: nothing was brought back
      why: 9e3779b9 `a`: conflict: content changed since (1 -> 6 bytes)
      next: put right what stands in the way, then `backout redo 9e3779b9` again
    [exit code 1]
    ");
}

#[test]
fn a_redo_of_two_goes_the_way_they_were_done() {
    let world = World::new().file("a", "0");
    world.did(["write", "a", "--text", "1"]);
    world.did(["write", "a", "--text", "2"]);
    world.did(["undo", "@-1"]);
    insta::assert_snapshot!(world.unmoved(["redo", "--dry-run"]), @"
    would redo 2 operations, in this order:  (by the newest undo below .)
      9e3779b9  write a
                a  will be changed again
      3c6ef372  write a
                a  will be changed again, after a step above
    hint: do it with `backout redo 78dde6e5 daa66d2c`
    ");
    insta::assert_snapshot!(world.cli(["redo"]), @"
    redid 9e3779b9  write a  (by the newest undo below .)
      a  brought back
    redid 3c6ef372  write a
      a  changed again
    hint: take this back with `backout undo 1715609f`
    ");
    assert_eq!(world.text("a"), "2");
    insta::assert_snapshot!(world.unmoved(["show", "@"]), @"
    3c6ef372  write a
      id        3c6ef372fe94f82a
      status    committed, brought back by b54cda58
      when      2027-01-15 08:00:00 UTC (just now)
      target    a  as this operation left it
      built on  9e3779b9  writes the same target
      strategy  snapshot  small enough to keep whole (size 1)
      cost      2 B stored
      journal   4 intent, 5 applied, 6 commit, 10 undone, 24 redone
    hint: see what it changed with `backout diff 3c6ef372`
    hint: see what an undo would do with `backout undo 3c6ef372 --dry-run`
    ");
}

#[test]
fn a_rollback_that_cannot_be_done_whole() {
    let world = World::new();
    world.did(["task", "begin", "t"]);
    world.did(["--task", "t", "write", "x", "--text", "1"]);
    world.did(["--task", "t", "write", "y", "--text", "1"]);
    world.put("x", "theirs");
    insta::assert_snapshot!(world.unmoved(["rollback", "t", "--dry-run"]), @"
    would not roll back 2 operations, newest first:
      3c6ef372  write y
                y  will be as before
      9e3779b9  write x
                x  conflict: content changed since (1 -> 6 bytes)
    hint: do the rest with `backout rollback t --partial`
    hint: do it anyway, keeping what is there now, with `backout rollback t --force`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["rollback", "t"]), @"
    error: nothing was rolled back
      why: `x`: content changed since (1 -> 6 bytes)
      next: see what would change back, and what others changed, with `backout rollback t --dry-run --diff`
      next: do the rest with `backout rollback t --partial`
      next: do it anyway with `backout rollback t --force` (what is there now is kept)
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["rollback", "t", "--partial"]), @"
    rolled back 3c6ef372  write y
      y  gone, as before
    did not roll back 9e3779b9  write x
      x  conflict: content changed since (1 -> 6 bytes)
    error: 1 of 2 targets was left as it is
      why: 9e3779b9 `x`: conflict: content changed since (1 -> 6 bytes)
      next: put right what stands in the way, then `backout undo 9e3779b9` again
      next: take back what was done with `backout redo cc623af8`
    [exit code 1]
    ");
    assert_eq!(
        (world.text("x").as_str(), world.has("y")),
        ("theirs", false)
    );
}

#[test]
fn a_redo_of_what_somebody_did_again() {
    let world = World::new().file("a", "0");
    world.did(["write", "a", "--text", "1"]);
    world.did(["undo"]);
    world.did(["write", "a", "--text", "1"]);
    insta::assert_snapshot!(world.unmoved(["redo", "9e37", "--dry-run"]), @"
    would redo 2 operations, in this order:
      daa66d2c  undo  write a  depends on 3c6ef372: writes the same target
                a  will be as before
      9e3779b9  redo  write a
                a  will be changed again, after a step above
    hint: do it with `backout redo 9e3779b9`
    ");
    insta::assert_snapshot!(world.cli(["redo", "9e37"]), @"
    undid daa66d2c  write a
      a  taken back
    redid 9e3779b9  write a
      a  changed again
    hint: take this back with `backout undo 78dde6e5`
    ");
    assert_eq!(world.text("a"), "1");
    world.did(["undo", "78dde6e5"]);
    insta::assert_snapshot!(world.unmoved(["log"]), @"
    ╭◇         53845412  just now  committed  redo of write a
    │  ╭◇      b54cda58  just now  committed  undo of write a
    │  │  ╭◇   1715609f  just now  undone     redo of write a
    ├◇ │  │    78dde6e5  just now  undone     undo of write a
    ╰●─│──┤    daa66d2c  just now  committed  write a
       ├──┴◇   3c6ef372  just now  undone     undo of write a
       ╰○      9e3779b9  just now  undone     write a
    ");
}

#[test]
fn a_redo_of_what_was_built_on_something_undone() {
    let world = World::new().file("a", "0");
    world.did(["write", "a", "--text", "1"]);
    world.did(["write", "a", "--text", "2"]);
    world.did(["undo", "@-1"]);
    world.put("a", "2");
    insta::assert_snapshot!(world.unmoved(["redo", "3c6e"]), @"
    did not redo 3c6ef372  write a
      a  left as it is: 9e3779b9, which it was built on, is undone
    error: nothing was brought back
      why: 3c6ef372 `a`: left as it is: 9e3779b9, which it was built on, is undone
      next: see how it stands with `backout show 3c6ef372`
    [exit code 1]
    ");
}

/// Undoes as many writes as there are names, newest first, and interrupts the last of these undos.
fn interrupted_at_the_last(names: &[&str]) -> (World, Ran) {
    let prepared = || {
        let world = World::new();
        for name in names {
            world.put(name, "0");
            world.did(["write", name, "--text", "1"]);
        }
        world
    };
    let newest = ["@", "@-1", "@-2"].into_iter().take(names.len());
    let undo: Vec<&str> = std::iter::once("undo").chain(newest).collect();
    // A twin tells which steps there are before the last is prepared.
    let steps = prepared().steps(&undo);
    let is_prepared = |step: &String| *step == "engine.undo-prepared";
    let last = steps.iter().rposition(is_prepared).unwrap();
    let passed: Vec<&str> = steps.iter().map(String::as_str).take(last).collect();
    let world = prepared();
    let waiting = world.after_steps(&passed, &undo);
    waiting.signal(rustix::process::Signal::INT);
    let ran = world.go_on(waiting);
    (world, ran)
}

#[test]
fn an_undo_of_several_that_is_interrupted_at_the_last() {
    let (world, ran) = interrupted_at_the_last(&["a", "b"]);
    insta::assert_snapshot!(ran, @"
    undid 3c6ef372  write b
      b  restored
    did not undo 9e3779b9  write a
      a  failed: it was interrupted
    error: it was interrupted
      why: 9e3779b9 write a was under way; it was put back as it was
      why: 1 operation before it is done, and stays so
      next: take back what was done with `backout redo daa66d2c`
    [exit code 130]
    ");
    assert_eq!(
        (world.text("a").as_str(), world.text("b").as_str()),
        ("1", "0")
    );
    world.did(["redo"]);
    assert_eq!(
        (world.text("a").as_str(), world.text("b").as_str()),
        ("1", "1")
    );
    let (world, ran) = interrupted_at_the_last(&["a", "b", "c"]);
    insta::assert_snapshot!(ran, @"
    undid daa66d2c  write c
      c  restored
    undid 3c6ef372  write b
      b  restored
    did not undo 9e3779b9  write a
      a  failed: it was interrupted
    error: it was interrupted
      why: 9e3779b9 write a was under way; it was put back as it was
      why: 2 operations before it are done, and stay so
      next: take back what was done with `backout redo 78dde6e5`
    [exit code 130]
    ");
    assert_eq!(
        (
            world.text("a").as_str(),
            world.text("b").as_str(),
            world.text("c").as_str()
        ),
        ("1", "0", "0")
    );
}

#[test]
fn an_undo_that_was_itself_taken_back_is_no_base_that_is_undone() {
    let world = World::new().file("a", "0");
    world.did(["write", "a", "--text", "1"]);
    world.did(["undo"]);
    world.did(["write", "a", "--text", "2"]);
    world.did(["undo"]);
    world.did(["redo", "3c6e"]);
    assert_eq!(world.text("a"), "1");
    world.put("a", "2");
    let told = world.unmoved(["redo", "daa6"]).to_string();
    // The first write lies above the second's undo since it was redone, and is not as it was left.
    assert!(told.contains("content changed since"), "{told}");
    assert!(!told.contains("which it was built on"), "{told}");
}
