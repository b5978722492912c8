//! What is said of undos, redos and rollbacks that cannot be, or only in part, and what previews say of them.
//!
//! Without a test: "there is no operation" by its whole id (a name is looked up first). What no driver does yet, something
//! irreversible, is in `engine/tests`; undos that meet others are in `meeting.rs`.

use crate::world::World;

fn two_writes() -> World {
    let world = World::new().file("a", "0");
    world.did(["write", "a", "--text", "1"]);
    world.did(["write", "b", "--text", "2"]);
    world
}

#[test]
fn nothing_to_redo_in_what_is_not_undone() {
    insta::assert_snapshot!(two_writes().unmoved(["redo", "@"]), @"
    error: operation 3c6ef372 is not undone
      why: only what was undone can be redone
      next: see where it stands with `backout show 3c6ef372`
    [exit code 1]
    ");
}

#[test]
fn an_undo_that_was_taken_back_names_the_one_that_holds_now() {
    let world = World::new().file("a", "0");
    let undone = || {
        let ran = world.cli(["undo"]);
        let name = ran.err.split("backout redo ").nth(1).unwrap();
        name.split('`').next().unwrap().to_owned()
    };
    world.did(["write", "a", "--text", "1"]);
    let undo = undone();
    world.did(["redo"]);
    insta::assert_snapshot!(world.unmoved(["redo", &undo]), @"
    error: operation 3c6ef372 was taken back before
      why: what it undid was brought back then, by daa66d2c
      next: take that back with `backout undo daa66d2c`
    [exit code 1]
    ");
    let again = undone();
    insta::assert_snapshot!(world.unmoved(["redo", &undo]), @"
    error: operation 3c6ef372 was taken back before
      why: what it undid was brought back then, and was undone again by 78dde6e5
      next: bring it back with `backout redo 78dde6e5`
    [exit code 1]
    ");
    world.did(["redo", &again]);
    assert_eq!(world.text("a"), "1");
    insta::assert_snapshot!(world.unmoved(["redo", &undo]), @"
    error: operation 3c6ef372 was taken back before
      why: what it undid was brought back then
      next: see where it stands with `backout show 3c6ef372`
    [exit code 1]
    ");
}

#[test]
fn a_path_that_the_operation_did_not_touch() {
    insta::assert_snapshot!(two_writes().unmoved(["restore", "a", "--from", "@"]), @"
    error: `a` was not restored
      why: operation 3c6ef372 did not touch it
      next: see which operations did with `backout log a`
    [exit code 1]
    ");
}

#[test]
fn a_path_to_which_nothing_was_done() {
    let world = two_writes().file("c", "0");
    insta::assert_snapshot!(world.unmoved(["undo", "c"]), @"
    error: there is nothing to undo at `c`
      next: see what was done to it with `backout log c`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["log", "c"]), @"no operations");
}

#[test]
fn nothing_below_this_directory_but_elsewhere() {
    let world = two_writes().file("e/x", "0");
    let mut command = world.command(&["undo"]);
    let ran = world.still(|| world.run(command.current_dir(world.path("e"))));
    insta::assert_snapshot!(ran, @"
    error: there is nothing to undo below `.`
      why: the newest operation elsewhere is 3c6ef372: write $WORLD/work/b
      next: undo it with `backout undo 3c6ef372`
      next: or undo the newest wherever it is with `backout undo --everywhere`
    [exit code 1]
    ");
    let mut command = world.command(&["undo", "--everywhere"]);
    insta::assert_snapshot!(world.run(command.current_dir(world.path("e"))), @"
    undid 3c6ef372  write $WORLD/work/b  (the newest)
      $WORLD/work/b  gone, as before
    hint: take this back with `backout redo daa66d2c`
    ");
    assert!(!world.has("b"));
}

#[test]
fn a_part_that_nothing_matches() {
    let world = two_writes();
    insta::assert_snapshot!(world.unmoved(["undo", "--only", "c"]), @"
    error: nothing was undone
      why: nothing that operation 3c6ef372 did and that is in effect matches what was chosen
      next: see what it did with `backout show 3c6ef372`
    [exit code 1]
    ");
    world.did(["undo"]);
    insta::assert_snapshot!(world.unmoved(["redo", "--only", "c"]), @"
    error: nothing was redone
      why: nothing that operation daa66d2c did and that is in effect matches what was chosen
      next: see what it did with `backout show daa66d2c`
    [exit code 1]
    ");
}

#[test]
fn one_file_of_a_tree_that_went_as_a_whole() {
    let world = World::new().file("t/f", "1").file("t/g", "2");
    world.did(["rm", "-r", "t"]);
    insta::assert_snapshot!(world.unmoved(["undo", "t/f"]), @"
    error: there is nothing to undo at `t/f`
      why: operation 9e3779b9 wrote a whole tree that it lies in
      next: bring back only this with `backout restore t/f --from 9e3779b9`
      next: or take back the whole tree with `backout undo 9e3779b9`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["restore", "t/f", "--from", "9e3779b9"]), @"restored t/f to what it was before 9e3779b9  (3c6ef372, undo with `backout undo 3c6ef372`)");
    assert_eq!((world.text("t/f").as_str(), world.has("t/g")), ("1", false));
}

#[test]
fn what_never_happened_and_what_changed_nothing() {
    let world = World::new();
    world.dies("engine.armed", ["write", "a", "--text", "1"]);
    world.did(["recover"]);
    insta::assert_snapshot!(world.unmoved(["undo", "9e37"]), @"
    error: there is nothing to undo in operation 9e3779b9
      why: it was aborted, so it changed nothing
    [exit code 1]
    ");
    world.did(["run", "--", "true"]);
    insta::assert_snapshot!(world.unmoved(["undo", "3c6e"]), @"
    error: there is no operation `3c6e`
      next: see the operations with `backout log`
    [exit code 1]
    ");
}

#[test]
fn an_undo_that_died_is_not_redone() {
    let world = World::new().file("a", "0");
    world.did(["write", "a", "--text", "1"]);
    world.dies("file.swapped", ["undo"]);
    assert_eq!(world.text("a"), "0");
    insta::assert_snapshot!(world.cli(["recover"]), @"
    3c6ef372  undo of write a  now undone
      a  restored
      its process died half-way, and what it had done was put back; do it again with `backout undo 9e3779b9`
    ");
    assert_eq!(world.text("a"), "1");
    insta::assert_snapshot!(world.unmoved(["redo", "3c6e"]), @"
    error: operation 3c6ef372 died and was put back
      why: there is no half of it to bring back
      next: do it again with `backout undo 9e3779b9`
    [exit code 1]
    ");
    world.did(["undo", "9e3779b9"]);
    assert_eq!(world.text("a"), "0");
}

#[test]
fn a_preview_shows_what_would_change_back_and_what_others_changed() {
    let world = World::new().file("a", "0\n");
    world.did(["write", "a", "--text", "1\n"]);
    world.put("a", "theirs\n");
    insta::assert_snapshot!(world.unmoved(["undo", "--dry-run", "--diff"]), @"
    would not undo 1 operation:  (the newest below .)
      9e3779b9  write a
                a  conflict: content changed since (2 -> 7 bytes)

    would change back:
    changed a
    --- a/a
    +++ b/a
    @@ -1 +1 @@
    -theirs
    +0

    somebody else changed since:
    changed a
    --- a/a
    +++ b/a
    @@ -1 +1 @@
    -1
    +theirs
    hint: do it anyway, keeping what is there now, with `backout undo 9e3779b9 --force`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["undo", "--dry-run", "--force"]), @"
    would undo 1 operation:  (the newest below .)
      9e3779b9  write a
                a  will be overwritten: content changed since (2 -> 7 bytes)
    hint: do it with `backout undo 9e3779b9 --force`
    ");
    world.did(["undo", "--force"]);
    assert_eq!(world.text("a"), "0\n");
}

#[test]
fn what_needs_two_words_is_asked_for_both() {
    let world = World::new();
    world.did(["task", "begin", "t"]);
    world.did(["--agent", "one", "write", "a", "--text", "1"]);
    world.did(["--agent", "two", "--task", "t", "write", "a", "--text", "2"]);
    world.did(["commit", "t"]);
    insta::assert_snapshot!(world.unmoved(["--agent", "one", "undo", "@-1", "--dry-run"]), @"
    would not undo 2 operations, newest first:
      3c6ef372  write a  depends on 9e3779b9: writes the same target  of a committed task: needs --committed  another agent's: needs --others
                a  will be as before
      9e3779b9  write a
                a  will be as before, after a step above
    hint: take them back as well with `backout undo 9e3779b9 --committed --others`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["--agent", "one", "undo", "@-1"]), @"
    error: nothing was undone
      why: 1 operation of committed tasks would have to go with it
      why: 3c6ef372 write a
      why: 1 operation of other agents would have to go with it
      why: 3c6ef372 write a
      next: take them back as well with `backout undo 9e3779b9 --committed --others`
      next: see the plan with `backout undo 9e3779b9 --dry-run`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["--agent", "one", "undo", "@-1", "--committed"]), @"
    error: nothing was undone
      why: 1 operation of other agents would have to go with it
      why: 3c6ef372 write a
      next: take them back as well with `backout undo 9e3779b9 --committed --others`
      next: see the plan with `backout undo 9e3779b9 --committed --dry-run`
    [exit code 1]
    ");
    world.did([
        "--agent",
        "one",
        "undo",
        "9e3779b9",
        "--committed",
        "--others",
    ]);
    assert!(!world.has("a"));
}

#[test]
fn a_long_list_names_the_flag_that_shows_all() {
    let world = World::new();
    world.did([
        "run",
        "--",
        "sh",
        "-c",
        "for n in $(seq 10 21); do : > f$n; done",
    ]);
    let said = world.unmoved(["undo", "--dry-run"]).to_string();
    let more = said.lines().rev().nth(1).unwrap();
    insta::assert_snapshot!(more.trim(), @"and 2 more (see all with `--verbose`)");
}

#[test]
fn what_a_later_operation_was_built_on_cannot_go_when_its_images_went() {
    let world = World::new().file("a", "0");
    world.did(["task", "begin", "t"]);
    world.did(["--task", "t", "write", "a", "--text", "1"]);
    world.did(["write", "a", "--text", "2"]);
    // The images of an open task stay.
    world.minutes(5);
    world.did(["gc", "--keep", "1m", "--keep-at-least", "0s"]);
    insta::assert_snapshot!(world.unmoved(["undo", "@-1"]), @"
    error: operation 9e3779b9 cannot be undone
      why: operation 3c6ef372 was built on it
      why: the images of 3c6ef372 are no longer kept
      next: see what the journal still knows with `backout show 3c6ef372`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["rollback", "t"]), @"
    error: operation 9e3779b9 cannot be undone
      why: operation 3c6ef372 was built on it
      why: the images of 3c6ef372 are no longer kept
      next: see what the journal still knows with `backout show 3c6ef372`
    [exit code 1]
    ");
    assert_eq!(world.text("a"), "2");
}

#[test]
fn a_part_of_a_directory_that_an_undo_took_away_as_one() {
    let world = World::new();
    world.did([
        "run",
        "--",
        "sh",
        "-c",
        "mkdir d; echo 1 > d/x; echo 2 > d/y",
    ]);
    world.did(["undo"]);
    insta::assert_snapshot!(world.unmoved(["redo", "--only", "d/x"]), @"
    error: operation 3c6ef372 was not redone
      why: `d` is only brought back as one, with all that is in it and by all of its names
      next: all of it is brought back with `backout redo 3c6ef372`
      next: or bring back one path with `backout restore PATH --from 3c6ef372`
    [exit code 1]
    ");
    let undo = world.newest_id();
    world.did(["restore", "d/x", "--from", &undo]);
    assert_eq!(
        (world.text("d/x").as_str(), world.has("d/y")),
        ("1\n", false)
    );
    world.did(["undo"]);
    world.did(["redo", &undo]);
    assert_eq!(
        (world.text("d/x"), world.text("d/y")),
        ("1\n".into(), "2\n".into())
    );
}

#[test]
fn a_write_that_never_happened_is_not_named_by_another_name() {
    let world = World::new().file("a", "0");
    std::fs::hard_link(world.path("a"), world.path("b")).unwrap();
    world.dies("engine.armed", ["write", "a", "--text", "1"]);
    world.did(["recover"]);
    insta::assert_snapshot!(world.unmoved(["undo", "b"]), @"
    error: there is nothing to undo at `b`
      next: see what was done to it with `backout log b`
    [exit code 1]
    ");
}

#[test]
fn a_write_at_work_is_no_command_that_may_have_changed_something() {
    let prepared = || World::new().file("a", "0").file("b", "0");
    let write = ["write", "a", "--text", "1"];
    let (world, waiting) = crate::claims::stopped_before("file.swap", prepared, &write);
    insta::assert_snapshot!(world.unmoved(["undo", "b"]), @"
    error: there is nothing to undo at `b`
      next: see what was done to it with `backout log b`
    [exit code 1]
    ");
    assert_eq!(world.go_on(waiting).code, 0);
    assert_eq!(world.text("a"), "1");
}

#[test]
fn the_write_of_a_file_does_not_bring_back_the_directory_that_went_later() {
    let world = World::new().file("d/x", "0").file("d/y", "0");
    world.did(["write", "d/x", "--text", "1"]);
    world.did(["rm", "-r", "d"]);
    insta::assert_snapshot!(world.unmoved(["undo", "d/x", "-n"]), @"
    would not undo 1 operation:
      9e3779b9  write d/x
                d/x  conflict: it is gone
    1 later operation would stay:
      3c6ef372  remove d and all below  independent
    hint: do it anyway, keeping what is there now, with `backout undo 9e3779b9 --only 'd/x' --force`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["undo", "d/x"]), @"
    error: nothing was undone
      why: `d/x`: it is gone
      next: see what would change back, and what others changed, with `backout undo 9e3779b9 --only 'd/x' --dry-run --diff`
      next: do it anyway with `backout undo 9e3779b9 --only 'd/x' --force` (what is there now is kept)
    [exit code 1]
    ");
    world.did(["undo", "9e3779b9", "--only", "d/x", "--force"]);
    assert_eq!((world.text("d/x").as_str(), world.has("d/y")), ("0", false));
}

#[test]
fn a_directory_that_a_newer_step_opens_stands_in_nobodys_way() {
    let world = World::new();
    let Some(mut first) = world.as_nobody(&["write", "d/f", "--text", "1"]) else {
        return;
    };
    std::fs::create_dir(world.path("d")).unwrap();
    std::os::unix::fs::chown(world.path("d"), Some(65_534), Some(65_534)).unwrap();
    assert_eq!(world.run(&mut first).code, 0);
    let asked = |words: &[&str]| world.run(&mut world.as_nobody(words).unwrap());
    assert_eq!(asked(&["run", "--", "chmod", "500", "d"]).code, 0);
    let tree = world.tree();
    insta::assert_snapshot!(asked(&["undo", "9e37", "-n"]), @"
    would not undo 1 operation:
      9e3779b9  write d/f
                d/f  conflict: not permitted to change what is in `d`
    1 later operation would stay:
      3c6ef372  run chmod 500 d  independent
    [exit code 1]
    ");
    insta::assert_snapshot!(asked(&["undo", "@", "@-1", "-n"]), @"
    would undo 2 operations, newest first:
      3c6ef372  run chmod 500 d
                d  will be as before
      9e3779b9  write d/f
                d/f  will be as before
    hint: do it with `backout undo 3c6ef372 9e3779b9`
    ");
    assert_eq!(world.tree(), tree);
    insta::assert_snapshot!(asked(&["undo", "@", "@-1"]), @"
    undid 3c6ef372  run chmod 500 d
      d  restored
    undid 9e3779b9  write d/f
      d/f  gone, as before
    hint: take this back with `backout redo 78dde6e5`
    ");
    assert!(world.has("d") && !world.has("d/f"));
}

#[test]
fn what_somebody_made_between_two_operations_stands_in_the_way_of_the_first() {
    let world = World::new().file("a", "0");
    world.did(["rm", "a"]);
    world.put("a", "theirs");
    world.did(["write", "a", "--text", "2"]);
    insta::assert_snapshot!(world.unmoved(["undo", "9e37", "-n"]), @"
    would not undo 2 operations, newest first:
      3c6ef372  write a  depends on 9e3779b9: writes the same target
                a  will be as before
      9e3779b9  remove a
                a  conflict: somebody else made it before 3c6ef372
    hint: do the rest with `backout undo 9e3779b9 --partial`
    hint: do it anyway, keeping what is there now, with `backout undo 9e3779b9 --force`
    [exit code 1]
    ");
    assert_eq!(world.unmoved(["undo", "9e37"]).code, 1);
    world.did(["undo"]);
    assert_eq!(world.text("a"), "theirs");
}

#[test]
fn what_stood_at_a_checkpoint_and_was_undone_since_is_named() {
    let world = World::new().file("a", "0");
    world.did(["write", "a", "--text", "1"]);
    world.did(["checkpoint", "c"]);
    world.did(["undo"]);
    insta::assert_snapshot!(world.unmoved(["rollback", "--to", "c"]), @"
    error: there is nothing to undo
      why: all that happened since is that what stood then was undone
      next: bring it back with `backout redo 3c6ef372`
    [exit code 1]
    ");
    world.did(["write", "b", "--text", "1"]);
    insta::assert_snapshot!(world.cli(["rollback", "--to", "c"]), @"
    rolled back daa66d2c  write b
      b  gone, as before
    1 older operation stayed undone:
      9e3779b9  write a  undone since by 3c6ef372
    hint: take this back with `backout redo 78dde6e5`
    hint: bring back what was undone since with `backout redo 3c6ef372`
    ");
    assert_eq!((world.text("a").as_str(), world.has("b")), ("0", false));
}

#[test]
fn what_was_undone_since_a_checkpoint_is_named_to_its_owner_only() {
    let (t, ann) = (&["--task", "t"][..], &["--agent", "ann"][..]);
    let both = &["--task", "t", "--agent", "ann"][..];
    let all = [&[][..], t, ann, both];
    for (mark, writer) in all
        .iter()
        .flat_map(|mark| all.map(|writer| (*mark, writer)))
    {
        let world = World::new().file("a", "0");
        world.did(["task", "begin", "t"]);
        let did = |whose: &[&str], words: &[&str]| {
            let ran = world.run(&mut world.command(&[whose, words].concat()));
            assert_eq!(ran.code, 0, "{ran}");
        };
        did(writer, &["write", "a", "--text", "1"]);
        did(mark, &["checkpoint", "c"]);
        did(writer, &["undo"]);
        let told = world.unmoved(["rollback", "--to", "c"]).to_string();
        let is_named = told.contains("what stood then was undone");
        let is_theirs = mark
            .chunks(2)
            .all(|word| writer.chunks(2).any(|it| it == word));
        assert_eq!(is_named, is_theirs, "{mark:?} {writer:?}: {told}");
    }
}

#[test]
fn of_what_was_undone_only_what_went_since_a_checkpoint_is_named() {
    let world = World::new().file("a", "0").file("b", "0");
    let both = br#"{"changes": [{"write": {"path": "a", "text": "1"}}, {"write": {"path": "b", "text": "1"}}]}"#;
    assert_eq!(world.piped(both, ["batch"]).code, 0);
    world.did(["undo", "a"]);
    world.did(["checkpoint", "c"]);
    world.did(["undo", "b"]);
    insta::assert_snapshot!(world.unmoved(["rollback", "--to", "c"]), @"
    error: there is nothing to undo
      why: all that happened since is that what stood then was undone
      next: bring it back with `backout redo daa66d2c`
    [exit code 1]
    ");
}
