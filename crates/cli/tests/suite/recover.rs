//! `backout recover`: what it settles, what it leaves alone, and what it does when somebody decides.

use rustix::process::Signal;
use serde_json::Value;

use crate::world::World;

/// The program itself, for commands that run it.
const PROGRAM: &str = env!("CARGO_BIN_EXE_backout");

fn status(world: &World, name: &str) -> String {
    let ran = world.cli(["--json", "show", name]);
    let shown: Value = serde_json::from_str(&ran.out).unwrap();
    let status = shown.pointer("/operation/status").or(shown.get("status"));
    status.and_then(Value::as_str).unwrap().to_owned()
}

/// A write that died after it replaced the file.
fn dead_write(name: &str) -> World {
    let world = World::new().file(name, "0");
    world.dies("file.swapped", ["write", name, "--text", "1"]);
    world
}

#[test]
fn only_what_came_after_a_record_is_looked_at() {
    let world = dead_write("a");
    world.did(["recover", "--from", "1"]);
    assert_eq!(
        (world.text("a").as_str(), status(&world, "9e37").as_str()),
        ("1", "armed")
    );
    world.put("a", "theirs");
    world.cli(["recover"]);
    assert_eq!(status(&world, "9e37"), "in-doubt");
    world.put("a", "1");
    world.did(["recover", "--from", "1"]);
    assert_eq!(status(&world, "9e37"), "in-doubt");
    world.did(["recover", "--from", "0"]);
    assert_eq!(
        (world.text("a").as_str(), status(&world, "9e37").as_str()),
        ("0", "undone")
    );
}

#[test]
fn what_waits_for_a_decision_is_not_settled_by_itself() {
    let world = World::new();
    world.dies("run.ended", ["run", "--", "sh", "-c", "echo 1 > f"]);
    world.cli(["recover"]);
    insta::assert_snapshot!(world.unmoved(["recover"]), @"nothing was left unfinished");
    assert_eq!(status(&world, "9e37"), "interrupted");
}

#[test]
fn what_is_kept_in_a_task_belongs_to_it() {
    let world = World::new().file("a", "0");
    world.did(["task", "begin", "t"]);
    world.dies(
        "engine.before-commit",
        ["--task", "t", "write", "a", "--text", "1"],
    );
    world.did(["recover", "--keep", "9e37"]);
    assert_eq!(status(&world, "9e37"), "applied");
    world.did(["rollback", "t"]);
    assert_eq!(world.text("a"), "0");
    world.did(["task", "begin", "u"]);
    world.dies(
        "engine.before-commit",
        ["--task", "u", "write", "a", "--text", "2"],
    );
    let id = world.newest_id();
    world.did(["rollback", "u"]);
    assert_eq!(
        (world.text("a").as_str(), status(&world, &id).as_str()),
        ("0", "undone")
    );
}

#[test]
fn a_run_that_is_kept_in_a_task_belongs_to_it_and_is_undone_exactly() {
    let world = World::new()
        .file("large", &"x".repeat(300_000))
        .file("a", "0");
    world.did(["task", "begin", "t"]);
    let before = world.tree();
    let line = "echo 1 > large; ln a b; mkdir d; echo 2 > d/e";
    world.dies("run.ended", ["--task", "t", "run", "--", "sh", "-c", line]);
    world.cli(["recover"]);
    assert_eq!(status(&world, "9e37"), "interrupted");
    world.did(["recover", "--keep", "9e37"]);
    assert_eq!(status(&world, "9e37"), "applied");
    world.did(["rollback", "t"]);
    assert_eq!(world.tree(), before);
}

#[test]
fn an_undo_that_is_kept_half_done_leaves_the_rest_in_effect() {
    let world = World::new().file("a", "0").file("b", "0");
    let both = br#"{"changes": [{"write": {"path": "a", "text": "1"}}, {"write": {"path": "b", "text": "1"}}]}"#;
    assert_eq!(world.piped(both, ["batch"]).code, 0);
    world.dies("file.swapped", ["undo", "9e37"]);
    let undo = world.newest_id();
    insta::assert_snapshot!(world.cli(["recover", "--keep", &undo]), @"
    3c6ef372  undo of write a and 1 more  now committed
      a  skipped: the undo had not come to it
      b  restored
      what is there is kept; undo with `backout undo 3c6ef372`
    ");
    let rest = [("a", world.text("a")), ("b", world.text("b"))];
    let (gone, stays): (Vec<_>, Vec<_>) = rest.iter().partition(|(_, text)| text == "0");
    let (gone, stays) = (gone[0].0, stays[0].0);
    assert_ne!(gone, stays);
    assert_eq!(world.unmoved(["undo", gone]).code, 1);
    world.did(["undo", stays]);
    assert_eq!(status(&world, "9e37"), "undone");
    assert_eq!((world.text("a"), world.text("b")), ("0".into(), "0".into()));
}

#[test]
fn a_rollback_takes_along_what_others_built_on_it() {
    let world = World::new().file("f", "0");
    world.dies(
        "run.ended",
        ["--agent", "one", "run", "--", "sh", "-c", "echo 1 > f"],
    );
    world.cli(["recover"]);
    world.did(["task", "begin", "t"]);
    world.did(["--agent", "two", "--task", "t", "write", "f", "--text", "2"]);
    world.did(["commit", "t"]);
    world.did(["--agent", "one", "recover", "--rollback", "9e37"]);
    assert_eq!(world.text("f"), "0");
    assert_eq!(status(&world, "9e37"), "undone");
}

/// A command that did nothing itself but run a line with the program in it, and whose watcher died at the end.
fn dead_command_around(line: &str) -> World {
    let world = World::new().file("a", "0");
    std::os::unix::fs::symlink(PROGRAM, world.place("program")).unwrap();
    world.dies("run.ended", ["run", "--", "sh", "-c", line]);
    world.cli(["recover"]);
    assert_eq!(status(&world, "9e37"), "interrupted");
    world
}

#[test]
fn a_dead_command_that_only_had_things_done_is_rolled_back_with_them() {
    let world = dead_command_around("../program write a --text 1");
    assert_eq!(world.text("a"), "1");
    insta::assert_snapshot!(world.cli(["recover", "--rollback", "9e37"]), @"
    9e3779b9  run sh -c '../program write a --text 1'  now committed
      a  restored
      its watcher died, and what it had done was taken back; bring it back with `backout redo daa66d2c`
    ");
    assert_eq!(world.text("a"), "0");
    assert_eq!(status(&world, "9e37"), "committed");
    let undo = world.newest_id();
    world.did(["redo", &undo]);
    assert_eq!(world.text("a"), "1");
}

#[test]
fn a_dead_command_whose_doings_somebody_changed_waits_on() {
    let world = dead_command_around("../program write a --text 1");
    world.put("a", "theirs");
    insta::assert_snapshot!(world.unmoved(["recover", "--rollback", "9e37"]), @"
    9e3779b9  run sh -c '../program write a --text 1'  now interrupted
      a  conflict: content changed since (1 -> 6 bytes)
      its watcher died, and it was not taken back. Keep what is there with `backout recover --keep 9e3779b9`, or take it back anyway with `backout recover --rollback 9e3779b9 --force`
    [exit code 1]
    ");
    assert_eq!(status(&world, "9e37"), "interrupted");
    insta::assert_snapshot!(world.unmoved(["undo", "9e37"]), @"
    error: nothing was undone
      why: `a`: content changed since (1 -> 6 bytes)
      next: see what would change back, and what others changed, with `backout undo 9e3779b9 --dry-run --diff`
      next: do it anyway with `backout undo 9e3779b9 --force` (what is there now is kept)
    [exit code 1]
    ");
    world.did(["recover", "--rollback", "9e37", "--force"]);
    assert_eq!(world.text("a"), "0");
}

#[test]
fn a_dead_command_that_did_nothing_is_nothing() {
    let world = dead_command_around("true");
    insta::assert_snapshot!(world.cli(["recover", "--rollback", "9e37"]), @"
    9e3779b9  run sh -c true  now committed
      its process died before anything happened; nothing changed
    ");
    assert_eq!(status(&world, "9e37"), "committed");
}

/// The steps of a recovery up to the moment when it looks.
const UNTIL_CLAIMED: [&str; 3] = [
    "journal.before-commit",
    "journal.after-commit",
    "recover.claimed",
];

#[test]
fn a_recovery_that_is_interrupted_ends_there() {
    let world = dead_write("a");
    let waiting = world.after_steps(&UNTIL_CLAIMED, &["recover"]);
    waiting.signal(Signal::INT);
    insta::assert_snapshot!(world.go_on(waiting), @"
    error: it was interrupted
    [exit code 130]
    ");
    assert_eq!(
        (world.text("a").as_str(), status(&world, "9e37").as_str()),
        ("1", "armed")
    );
    world.did(["recover"]);
    assert_eq!(world.text("a"), "0");
}

#[test]
fn a_write_that_is_interrupted_while_it_recovers_ends_there() {
    let world = dead_write("a");
    let waiting = world.after_steps(&UNTIL_CLAIMED, &["write", "b", "--text", "1"]);
    waiting.signal(Signal::INT);
    insta::assert_snapshot!(world.go_on(waiting), @"
    error: it was interrupted
    [exit code 130]
    ");
    assert!(!world.has("b"));
    assert_eq!(
        (world.text("a").as_str(), status(&world, "9e37").as_str()),
        ("1", "armed")
    );
    world.did(["write", "b", "--text", "1"]);
    assert_eq!(
        (world.text("a").as_str(), world.text("b").as_str()),
        ("0", "1")
    );
}
