//! `undo`, `redo`: what comes back, what stays, what is in the way.

use crate::world::World;

/// A file written, then edited by somebody else.
fn drifted_world() -> World {
    let world = World::new().file("app.toml", "a = 1\nb = 2\nc = 3\n");
    world.did(["edit", "app.toml", "-s", "a = 1", "-r", "a = 9"]);
    world.put("app.toml", "a = 9\nb = 2\nc = 7\n");
    world
}

/// A file written three times, and another one in between.
fn chained_world() -> World {
    let world = World::new();
    world.did(["write", "a", "--text", "1"]);
    world.did(["write", "a", "--text", "2"]);
    world.did(["write", "b", "--text", "x"]);
    world.did(["write", "a", "--text", "3"]);
    world
}

#[test]
fn the_newest_operation_is_undone_and_redone() {
    let world = World::new().file("notes.txt", "keep me");
    world.did(["rm", "notes.txt"]);
    insta::assert_snapshot!(world.cli(["undo"]), @"
    undid 9e3779b9  remove notes.txt  (the newest below .)
      notes.txt  restored
    hint: take this back with `backout redo 3c6ef372`
    ");
    assert_eq!(world.text("notes.txt"), "keep me");
    insta::assert_snapshot!(world.cli(["redo"]), @"
    redid 9e3779b9  remove notes.txt  (by the newest undo below .)
      notes.txt  gone again
    hint: take this back with `backout undo daa66d2c`
    ");
    assert!(!world.has("notes.txt"));
    insta::assert_snapshot!(world.cli(["log"]), @r"
    ╭◇   daa66d2c  just now  committed  redo of remove notes.txt
    ├◇   3c6ef372  just now  undone     undo of remove notes.txt
    ╰●   9e3779b9  just now  committed  remove notes.txt
    ");
}

#[test]
fn a_dry_run_shows_the_plan_and_changes_nothing() {
    let world = chained_world();
    insta::assert_snapshot!(world.cli(["undo", "--dry-run", "--committed", "@-2"]), @"
    would undo 2 operations, newest first:
      78dde6e5  write a  depends on 3c6ef372: writes the same target
                a  will be as before
      3c6ef372  write a
                a  will be as before, after a step above
    1 later operation would stay:
      daa66d2c  write b  independent
    hint: do it with `backout undo 3c6ef372 --committed`
    ");
    assert_eq!(world.text("a"), "3");
}

#[test]
fn an_undo_takes_what_was_built_on_it_and_leaves_the_rest() {
    let world = chained_world();
    insta::assert_snapshot!(world.cli(["undo", "--committed", "@-2"]), @"
    undid 78dde6e5  write a
      a  taken back
    undid 3c6ef372  write a
      a  restored
    1 later operation stayed:
      daa66d2c  write b  independent
    hint: take this back with `backout redo 1715609f`
    ");
    assert_eq!((world.text("a"), world.text("b")), ("1".into(), "x".into()));
}

#[test]
fn the_chain_below_goes_too_when_asked_for() {
    let world = chained_world();
    insta::assert_snapshot!(world.cli(["undo", "--with-dependencies", "--committed", "@", "-n"]), @"
    would undo 3 operations, newest first:
      78dde6e5  write a
                a  will be as before
      3c6ef372  write a  78dde6e5 depends on it: writes the same target
                a  will be as before, after a step above
      9e3779b9  write a  3c6ef372 depends on it: writes the same target
                a  will be as before, after a step above
    hint: do it with `backout undo 78dde6e5 --with-dependencies --committed`
    ");
}

#[test]
fn several_operations_are_undone_by_name() {
    let world = chained_world();
    insta::assert_snapshot!(world.cli(["undo", "@", "@-1"]), @"
    undid 78dde6e5  write a
      a  restored
    undid daa66d2c  write b
      b  gone, as before
    hint: take this back with `backout redo 1715609f`
    ");
    assert_eq!(world.text("a"), "2");
    assert!(!world.has("b"));
}

#[test]
fn a_dry_run_tells_what_is_in_the_way_and_what_to_type() {
    insta::assert_snapshot!(drifted_world().cli(["undo", "--dry-run"]), @"
    would not undo 1 operation:  (the newest below .)
      9e3779b9  edit app.toml
                app.toml  conflict: content changed since (18 bytes)
    hint: take out only this change with `backout undo 9e3779b9 --merge`
    hint: do it anyway, keeping what is there now, with `backout undo 9e3779b9 --force`
    [exit code 1]
    ");
}

#[test]
fn a_merge_takes_out_only_the_change() {
    let world = drifted_world();
    insta::assert_snapshot!(world.cli(["undo", "--merge", "--dry-run"]), @"
    would undo 1 operation:  (the newest below .)
      9e3779b9  edit app.toml
                app.toml  merges: only this change is taken out
    hint: do it with `backout undo 9e3779b9 --merge`
    ");
    insta::assert_snapshot!(world.cli(["undo", "--merge"]), @"
    undid 9e3779b9  edit app.toml  (the newest below .)
      app.toml  merged
    hint: take this back with `backout redo b54cda58`
    ");
    assert_eq!(world.text("app.toml"), "a = 1\nb = 2\nc = 7\n");
}

#[test]
fn only_what_would_help_is_advised() {
    insta::assert_snapshot!(drifted_world().cli(["undo"]), @"
    error: nothing was undone
      why: `app.toml`: content changed since (18 bytes)
      next: see what would change back, and what others changed, with `backout undo 9e3779b9 --dry-run --diff`
      next: take out only this change with `backout undo 9e3779b9 --merge`
      next: do it anyway with `backout undo 9e3779b9 --force` (what is there now is kept)
    [exit code 1]
    ");
    let world = World::new().file("a", "1\n");
    world.did(["write", "a", "--text", "2\n"]);
    world.put("a", "3\n");
    insta::assert_snapshot!(world.cli(["undo", "--merge"]), @"
    error: nothing was undone
      why: `a`: content changed since (2 bytes); the changes overlap at line 1
      next: see what would change back, and what others changed, with `backout undo 9e3779b9 --merge --dry-run --diff`
      next: do it anyway with `backout undo 9e3779b9 --force` (what is there now is kept)
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["undo", "--merge", "--dry-run"]), @"
    would not undo 1 operation:  (the newest below .)
      9e3779b9  write a
                a  conflict: content changed since (2 bytes); the changes overlap at line 1
    hint: do it anyway, keeping what is there now, with `backout undo 9e3779b9 --force`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["undo", "--partial"]), @"
    did not undo 9e3779b9  write a  (the newest below .)
      a  conflict: content changed since (2 bytes)
    error: nothing was taken back
      why: 9e3779b9 `a`: conflict: content changed since (2 bytes)
      next: put right what stands in the way, then `backout undo 9e3779b9` again
    [exit code 1]
    ");
}

#[test]
fn a_change_that_does_not_merge_needs_a_word_and_no_merge() {
    let world = World::new().file("a", "1\n");
    world.did(["--agent", "one", "write", "a", "--text", "2\n"]);
    world.did(["--agent", "two", "write", "a", "--text", "3\n"]);
    insta::assert_snapshot!(world.cli(["--agent", "one", "undo"]), @"
    error: nothing was undone
      why: 1 operation of other agents would have to go with it
      why: 3c6ef372 write a
      next: take them back as well with `backout undo 9e3779b9 --others`
      next: see the plan with `backout undo 9e3779b9 --dry-run`
    [exit code 1]
    ");
}

#[test]
fn a_directory_is_not_to_be_merged() {
    let world = World::new();
    world.did(["mkdir", "d"]);
    world.put("d/theirs", "x");
    insta::assert_snapshot!(world.cli(["undo"]), @"
    error: nothing was undone
      why: `d`: the directory is not empty: theirs
      next: see what would change back, and what others changed, with `backout undo 9e3779b9 --dry-run --diff`
      next: do it anyway with `backout undo 9e3779b9 --force` (what is there now is kept)
    [exit code 1]
    ");
}

#[test]
fn force_restores_and_keeps_what_was_overwritten() {
    let world = drifted_world();
    insta::assert_snapshot!(world.cli(["undo", "--force"]), @"
    undid 9e3779b9  edit app.toml  (the newest below .)
      app.toml  restored over a later change: content changed since (18 bytes)
    hint: take this back with `backout redo daa66d2c`
    ");
    assert_eq!(world.text("app.toml"), "a = 1\nb = 2\nc = 3\n");
    world.did(["redo"]);
    assert_eq!(world.text("app.toml"), "a = 9\nb = 2\nc = 7\n");
}

#[test]
fn what_can_be_undone_is_undone_in_part_when_asked_for() {
    let world = World::new();
    world.did(["write", "a", "--text", "1"]);
    world.did(["write", "b", "--text", "2"]);
    world.put("b", "somebody else's");
    insta::assert_snapshot!(world.cli(["undo", "--partial", "@", "@-1"]), @"
    did not undo 3c6ef372  write b
      b  conflict: content changed since (1 -> 15 bytes)
    undid 9e3779b9  write a
      a  gone, as before
    error: 1 of 2 targets was left as it is
      why: 3c6ef372 `b`: conflict: content changed since (1 -> 15 bytes)
      next: put right what stands in the way, then `backout undo 3c6ef372` again
      next: take back what was done with `backout redo 78dde6e5`
    [exit code 1]
    ");
    assert!(!world.has("a"));
    assert_eq!(world.text("b"), "somebody else's");
}

#[test]
fn a_redo_previews_too() {
    let world = World::new();
    world.did(["write", "a", "--text", "1"]);
    world.did(["undo"]);
    insta::assert_snapshot!(world.cli(["redo", "--dry-run"]), @"
    would redo 1 operation:  (by the newest undo below .)
      9e3779b9  write a
                a  will be changed again
    hint: do it with `backout redo 3c6ef372`
    ");
}

#[test]
fn what_is_declared_to_depend_goes_too() {
    let world = World::new();
    world.did(["write", "a", "--text", "1"]);
    world.did(["--depends-on", "@", "write", "b", "--text", "2"]);
    insta::assert_snapshot!(world.cli(["undo", "-n", "--committed", "@-1"]), @"
    would undo 2 operations, newest first:
      3c6ef372  write b  depends on 9e3779b9: was declared to depend on it
                b  will be as before
      9e3779b9  write a
                a  will be as before
    hint: do it with `backout undo 9e3779b9 --committed`
    ");
}

#[test]
fn a_redo_in_conflict_says_what_to_type() {
    let world = World::new().file("a", "0");
    world.did(["write", "a", "--text", "1"]);
    world.did(["undo"]);
    world.put("a", "somebody else's");
    insta::assert_snapshot!(world.cli(["redo"]), @"
    error: nothing was redone
      why: `a`: content changed since (1 -> 15 bytes)
      next: see what would change back, and what others changed, with `backout redo 3c6ef372 --dry-run --diff`
      next: do it anyway with `backout redo 3c6ef372 --force` (what is there now is kept)
    [exit code 1]
    ");
}

#[test]
fn a_long_list_of_targets_is_abridged() {
    let world = World::new();
    world.did(["mkdir", "d"]);
    for number in 0..25 {
        world.put(&format!("d/{number:02}"), "x");
    }
    world.cli(["cp", "-r", "d", "copy"]);
    for command in [
        ["undo", "--dry-run"],
        ["show", "@"],
        ["undo", "@"],
        ["redo", "@"],
    ] {
        let shown = world.cli(command).to_string();
        assert!(
            shown.contains("(see all with `--verbose`)"),
            "{command:?}: {shown}"
        );
    }
    let shown = world.cli(["--verbose", "undo"]).to_string();
    assert!(shown.contains("copy/24"), "{shown}");
}

#[test]
fn a_redo_of_what_was_built_on_something_undone_names_that() {
    let world = World::new().file("f", "0");
    world.did(["write", "f", "--text", "1"]);
    let base = world.newest_id();
    world.did(["write", "f", "--text", "22"]);
    let later = world.newest_id();
    world.did(["undo", &base]);
    insta::assert_snapshot!(world.unmoved(["redo", &later]), @"
    error: nothing was redone
      why: `f`: content changed since (1 bytes); it was built on 9e3779b9, which is undone
      next: see what would change back, and what others changed, with `backout redo 3c6ef372 --dry-run --diff`
      next: do it anyway with `backout redo 3c6ef372 --force` (what is there now is kept)
    [exit code 1]
    ");
    world.did(["redo", &base, &later]);
    assert_eq!(world.text("f"), "22");
}

#[test]
fn a_link_that_was_written_through_is_told_with_what_it_leads_to() {
    let world = World::new().file("f", "0");
    std::os::unix::fs::symlink("f", world.path("l")).unwrap();
    world.did(["write", "l", "--text", "1"]);
    insta::assert_snapshot!(world.unmoved(["undo", "l"]), @"
    error: there is nothing to undo at `l`
      why: it is a symbolic link to `f`, and that was written
      next: take that back with `backout undo f`
    [exit code 1]
    ");
    world.did(["undo", "f"]);
    assert_eq!(world.text("f"), "0");
}

#[test]
fn a_part_of_what_was_undone_in_two_parts_comes_back_by_the_name_of_the_operation() {
    let world = World::new().file("a", "1").file("b", "1");
    world.did(["run", "-q", "--", "/bin/sh", "-c", "echo 2 >a; echo 2 >b"]);
    world.did(["undo", "9e3779b9", "--only", "a"]);
    world.did(["undo", "9e3779b9", "--only", "b"]);
    world.did(["redo", "9e3779b9", "--only", "a"]);
    assert_eq!(
        (world.text("a"), world.text("b")),
        ("2\n".into(), "1".into())
    );
    let nothing = world.cli(["redo", "9e3779b9", "--only", "c"]);
    assert_eq!(nothing.code, 1, "{nothing}");
    world.did(["redo", "9e3779b9"]);
    assert_eq!(
        (world.text("a"), world.text("b")),
        ("2\n".into(), "2\n".into())
    );
}

#[test]
fn what_had_stayed_without_it_stays_when_a_redo_is_taken_back() {
    let world = World::new().file("a", "1");
    world.did(["write", "a", "--text", "2"]);
    world.did(["--depends-on", "@", "write", "b", "--text", "2"]);
    world.did(["undo", "@-1", "--only", "a"]);
    insta::assert_snapshot!(world.cli(["redo", "--only", "a"]), @"
    redid 9e3779b9  write a  (by the newest undo below .)
      a  changed again
    hint: take this back with `backout undo 78dde6e5`
    ");
    insta::assert_snapshot!(world.cli(["undo", "78dde6e5"]), @"
    undid 9e3779b9  write a
      a  restored
    hint: take this back with `backout redo 1715609f`
    ");
    assert_eq!((world.text("a"), world.text("b")), ("1".into(), "2".into()));
    // By the name of the operation itself all that was built on it goes.
    world.did(["redo"]);
    world.did(["undo", "9e3779b9"]);
    assert!(!world.has("b"));
}

#[test]
fn nothing_older_is_undone_in_the_place_of_the_newest_that_cannot_be() {
    let world = World::new().file("a", "1").file("b", "1");
    world.did(["write", "b", "--text", "2"]);
    world.did(["write", "a", "--text", "2"]);
    world.did(["write", "a", "--text", "3"]);
    world.did(["undo"]);
    world.minutes(120);
    world.did(["gc", "--versions", "1", "--keep-at-least", "1h"]);
    insta::assert_snapshot!(world.cli(["undo"]), @"
    error: the newest operation 3c6ef372 can no longer be undone
      why: the images of 3c6ef372 are no longer kept: write a
      why: the newest that can be undone is 9e3779b9: write b
      next: undo that one with `backout undo 9e3779b9`
    [exit code 1]
    ");
    assert_eq!((world.text("a"), world.text("b")), ("2".into(), "2".into()));
    world.did(["undo", "9e3779b9"]);
    assert_eq!(world.text("b"), "1");
}

#[test]
fn a_prompt_without_a_name_is_no_prompt() {
    let world = World::new();
    let refused = world.unmoved(["rollback", "--prompt", ""]);
    assert_eq!(refused.code, 2, "{refused}");
    let said = "a prompt is named by a number, its id or a part of its text";
    assert!(refused.err.contains(said), "{refused}");
}
