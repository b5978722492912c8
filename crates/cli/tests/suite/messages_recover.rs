//! What is said of what is at work, of what the dead left behind, and of what waits for a decision.
//!
//! Without a test: "what is there is kept" by recovery itself (it needs a machine that was started anew; `proof/power` has
//! it), "could not be taken back" of what a task's owner left (a task whose rollback conflicts says the same as a rollback).

use rustix::process::Signal;

use crate::claims::numberless;
use crate::world::World;

/// The steps of an undo of a written file up to the moment when it is prepared.
const UNTIL_PREPARED: [&str; 4] = [
    "journal.before-commit",
    "journal.after-commit",
    "file.judged",
    "file.undo-prepared",
];

/// A write that died after it replaced the file, which somebody wrote since.
fn in_doubt() -> World {
    let world = World::new().file("a", "0");
    world.dies("file.swapped", ["write", "a", "--text", "1"]);
    world.put("a", "theirs");
    world
}

#[test]
fn what_is_at_work_is_left_alone() {
    let world = World::new();
    let line = "echo 1 > f; echo ready; read x; echo 2 > f";
    let waiting = world.waiting(["run", "--", "sh", "-c", line]);
    insta::assert_snapshot!(numberless(&world.unmoved(["recover"])), @"note: 1 operation left alone: the process that writes is alive");
    insta::assert_snapshot!(world.unmoved(["undo", "9e37"]), @"
    error: operation 9e3779b9 is not finished
      why: its process is still at work, or died and nobody recovered it yet
      next: run `backout recover` if nobody is at work
    [exit code 1]
    ");
    insta::assert_snapshot!(numberless(&world.unmoved(["recover", "--keep", "9e37"])), @"
    error: operation 9e3779b9 is still at work
      why: process PID does it
      next: wait for it, or end that process first
    [exit code 1]
    ");
    let status = numberless(&world.unmoved(["status"]));
    let status: Vec<&str> = status.lines().take(2).collect();
    insta::assert_snapshot!(status.join("\n"), @"
    at work now:
      9e3779b9  run sh -c 'echo 1 > f; echo ready; read x; echo 2 > f'  process PID, began just now
    ");
    assert_eq!(world.text("f"), "1\n");
    assert_eq!(world.go_on(waiting).code, 0);
    assert_eq!(world.text("f"), "2\n");
    world.did(["undo", "9e37"]);
    assert!(!world.has("f"));
}

#[test]
fn a_watcher_that_is_killed_leaves_what_was_done() {
    let world = World::new();
    let line = "echo 1 > f; echo ready; read x; echo 2 > f";
    let waiting = world.waiting(["run", "--", "sh", "-c", line]);
    let watcher = world.cli(["--json", "status"]).out;
    let watcher: serde_json::Value = serde_json::from_str(&watcher).unwrap();
    let watcher = watcher.pointer("/unfinished/0/owner/pid").unwrap();
    let watcher = i32::try_from(watcher.as_i64().unwrap()).unwrap();
    assert_ne!(watcher.unsigned_abs(), waiting.pid());
    let watcher = rustix::process::Pid::from_raw(watcher).unwrap();
    rustix::process::kill_process(watcher, Signal::KILL).unwrap();
    // Whether it was ended, or had ended by then, is a race.
    let told = world.go_on(waiting).to_string();
    let is_race = |line: &&str| line.contains("sh: 1:") || line.contains("of it w");
    let told: Vec<&str> = told.lines().filter(|line| !is_race(line)).collect();
    insta::assert_snapshot!(told.join("\n"), @"
    note: recovered 9e3779b9  run sh -c 'echo 1 > f; echo ready; read x; echo 2 > f': its watcher died; what it had done is kept. Keep it with `backout recover --keep 9e3779b9`, take it back with `backout recover --rollback 9e3779b9`
    error: the command is no longer watched
      why: the process that watched it was ended by signal 9
    [exit code 1]
    ");
    assert_eq!(world.text("f"), "1\n");
    assert_eq!(world.newest_status(), "interrupted");
    let status = world.unmoved(["status"]).to_string();
    let status: Vec<&str> = status.lines().take(2).collect();
    insta::assert_snapshot!(status.join("\n"), @"
    waits for your decision:
    ●  9e3779b9  just now  interrupted  run sh -c 'echo 1 > f; echo ready; read x; echo 2 > f'
    ");
    insta::assert_snapshot!(world.unmoved(["show", "9e37"]).out.lines().find(|line| line.contains("ended")).unwrap().split(" after").next().unwrap(), @"  ended        without being seen");
    insta::assert_snapshot!(world.cli(["recover", "--rollback", "9e37"]), @"
    9e3779b9  run sh -c 'echo 1 > f; echo ready; read x; echo 2 > f'  now undone
      f  gone, as before
      its watcher died, and what it had done was taken back; bring it back with `backout redo 9e3779b9`
    ");
    assert!(!world.has("f"));
}

#[test]
fn what_died_before_anything_happened() {
    let world = World::new().file("a", "0");
    world.dies("engine.armed", ["write", "a", "--text", "1"]);
    let status = world.unmoved(["status"]).to_string();
    let ends: Vec<&str> = status
        .lines()
        .take(2)
        .chain(status.lines().last())
        .collect();
    insta::assert_snapshot!(ends.join("\n"), @"
    left behind by a dead process:
    ●  9e3779b9  just now  armed  write a
    hint: settle what was left behind with `backout recover`
    ");
    let doctor = world.unmoved(["doctor"]).out;
    let said: Vec<&str> = doctor
        .lines()
        .filter(|line| line.contains("dead") || line.contains("backout recover"))
        .collect();
    insta::assert_snapshot!(said.join("\n"), @"
    bad  unfinished    1 operation was left behind by a dead process
                       next: run `backout recover`
    ");
    insta::assert_snapshot!(world.cli(["write", "b", "--text", "1"]), @"
    wrote b  (78dde6e5, undo with `backout undo 78dde6e5`)
    note: recovered 9e3779b9  write a: its process died before anything happened; nothing changed
    ");
    assert_eq!(world.text("a"), "0");
    world.dies("engine.armed", ["write", "a", "--text", "1"]);
    insta::assert_snapshot!(world.cli(["recover"]), @"
    1715609f  write a  now aborted
      a  already as before
      its process died before anything happened; nothing changed
    ");
    assert_eq!(
        (world.text("a").as_str(), world.newest_status().as_str()),
        ("0", "aborted")
    );
}

#[test]
fn what_cannot_be_taken_back_waits_for_a_decision() {
    let world = in_doubt();
    insta::assert_snapshot!(world.cli(["write", "b", "--text", "1"]), @"
    wrote b  (daa66d2c, undo with `backout undo daa66d2c`)
    note: recovered 9e3779b9  write a: it was left half-way and cannot be taken back as it stands; nothing was touched. Keep what is there with `backout recover --keep 9e3779b9`, or take it back anyway with `backout recover --rollback 9e3779b9 --force`
    ");
    assert_eq!(world.text("a"), "theirs");
    let status = world.unmoved(["status"]).to_string();
    let ends: Vec<&str> = status
        .lines()
        .take(2)
        .chain(status.lines().last())
        .collect();
    insta::assert_snapshot!(ends.join("\n"), @"
    waits for your decision:
    ✗  9e3779b9  just now  in-doubt  write a
    hint: keep what 9e3779b9 did with `backout recover --keep 9e3779b9`, or take it back with `backout recover --rollback 9e3779b9`; that needs `--force` while what stands in the way is there
    ");
    let doctor = world.unmoved(["doctor"]).out;
    let said: Vec<&str> = doctor
        .lines()
        .filter(|line| line.contains("decision"))
        .collect();
    insta::assert_snapshot!(said.join("\n"), @"bad  stuck         an operation waits for a decision: 9e3779b9, in-doubt");
    insta::assert_snapshot!(world.unmoved(["recover"]), @"
    9e3779b9  write a  now in-doubt
      a  conflict: content changed since (1 -> 6 bytes)
      it was left half-way and cannot be taken back as it stands; nothing was touched. Keep what is there with `backout recover --keep 9e3779b9`, or take it back anyway with `backout recover --rollback 9e3779b9 --force`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["recover", "--rollback", "9e37"]), @"
    9e3779b9  write a  now in-doubt
      a  conflict: content changed since (1 -> 6 bytes)
      it was left half-way and cannot be taken back as it stands; nothing was touched. Keep what is there with `backout recover --keep 9e3779b9`, or take it back anyway with `backout recover --rollback 9e3779b9 --force`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["recover", "--rollback", "9e37", "--force"]), @"
    9e3779b9  write a  now undone
      a  restored over a later change: content changed since (1 -> 6 bytes)
      its process died half-way, and what it had done was taken back; bring it back with `backout redo 9e3779b9`
    ");
    assert_eq!(world.text("a"), "0");
    world.did(["redo", "9e37"]);
    assert_eq!(world.text("a"), "theirs");
}

#[test]
fn what_a_forced_rollback_of_an_undo_overwrites_is_named() {
    let world = World::new().file("a", "0").file("b", "0");
    let line = "echo 1 > a; echo 1 > b";
    world.did(["run", "--", "sh", "-c", line]);
    world.dies("file.checked", ["undo"]);
    world.put("a", "theirs");
    world.put("b", "theirs too");
    let undo = world.newest_id();
    insta::assert_snapshot!(world.cli(["recover", "--rollback", &undo, "--force"]), @"
    3c6ef372  undo of run sh -c 'echo 1 > a; echo 1 > b'  now undone
      a  restored over a later change: content changed since (1 -> 6 bytes)
      b  restored over a later change: content changed since (1 -> 10 bytes)
      its process died half-way, and what it had done was put back; do it again with `backout undo 9e3779b9`; what was overwritten comes back with `backout restore a --from daa66d2c`, and so for 1 more
    ");
    assert_eq!(
        (world.text("a"), world.text("b")),
        ("1\n".into(), "1\n".into())
    );
    world.did(["restore", "a", "b", "--from", &world.newest_id()]);
    assert_eq!(
        (world.text("a"), world.text("b")),
        ("theirs".into(), "theirs too".into())
    );
}

#[test]
fn what_is_kept_by_hand_can_be_undone() {
    let world = in_doubt();
    world.did(["write", "b", "--text", "1"]);
    insta::assert_snapshot!(world.cli(["recover", "--keep", "9e37"]), @"
    9e3779b9  write a  now committed
      what is there is kept; undo with `backout undo 9e3779b9`
    ");
    assert_eq!(world.text("a"), "theirs");
    insta::assert_snapshot!(world.unmoved(["recover", "--keep", "9e37"]), @"
    error: there is nothing to decide about operation 9e3779b9
      why: it is committed
      next: see what waits for a decision with `backout status`
    [exit code 1]
    ");
}

#[test]
fn an_undo_that_is_interrupted_is_put_back() {
    let world = World::new().file("a", "0").file("b", "0");
    world.did(["write", "a", "--text", "1"]);
    world.did(["write", "b", "--text", "1"]);
    let waiting = world.after_steps(&UNTIL_PREPARED, &["undo", "@", "@-1"]);
    waiting.signal(Signal::INT);
    let ran = world.still(|| world.go_on(waiting));
    insta::assert_snapshot!(ran, @"
    did not undo 3c6ef372  write b
      b  failed: it was interrupted
    error: it was interrupted
      why: 3c6ef372 write b was under way; it was put back as it was
      why: nothing else was done
    [exit code 130]
    ");
    world.did(["undo", "@", "@-1"]);
    assert_eq!(
        (world.text("a").as_str(), world.text("b").as_str()),
        ("0", "0")
    );
}

#[test]
fn a_task_whose_owner_died_is_rolled_back_or_says_why_not() {
    let world = World::new();
    let begin = |name: &str| {
        // The shell that owns the task ends as soon as it has begun it.
        let line = "\"$0\" task begin --owner-pid $$ \"$1\"; \"$0\" --task \"$1\" write \"$1.txt\" --text 1; \"$0\" task list";
        let program = env!("CARGO_BIN_EXE_backout");
        world.run(&mut world.program("/bin/sh".as_ref(), &["-c", line, program, name]))
    };
    insta::assert_snapshot!(numberless(&begin("one")), @"
    began task one
    wrote one.txt  (9e3779b9 in task one, undo with `backout undo 9e3779b9`)
    one  open  just now  ends with process PID
    hint: write into it with `--task one`; keep it with `backout commit one`, or take it back with `backout rollback one`
    ");
    insta::assert_snapshot!(world.cli(["recover"]), @"rolled back task one: its owner died");
    assert!(!world.has("one.txt"));
    begin("two");
    world.put("two.txt", "theirs");
    insta::assert_snapshot!(world.unmoved(["recover"]), @"note: the owner of task two died, and it was not rolled back: targets changed since the operation; see `backout rollback two --dry-run`");
    assert_eq!(world.text("two.txt"), "theirs");
    insta::assert_snapshot!(world.unmoved(["rollback", "two", "--dry-run"]), @"
    would not roll back 1 operation:
      daa66d2c  write two.txt
                two.txt  conflict: content changed since (1 -> 6 bytes)
    hint: do it anyway, keeping what is there now, with `backout rollback two --force`
    [exit code 1]
    ");
}

#[test]
fn tasks_and_checkpoints_that_are_not_there() {
    let world = World::new();
    insta::assert_snapshot!(world.unmoved(["commit"]), @"
    error: no task is open
      next: begin one with `backout task begin NAME`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["rollback", "--to", "nowhere"]), @"
    error: there is no checkpoint `nowhere`
      next: see them with `backout checkpoint --list`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["task", "begin", "t", "--owner-pid", "4194305"]), @"
    error: there is no process 4194305
      next: give the number of a living process
    [exit code 1]
    ");
    world.did(["task", "begin", "one"]);
    world.did(["task", "begin", "two"]);
    insta::assert_snapshot!(world.unmoved(["commit"]), @"
    error: it is not clear which task is meant
      why: 2 tasks are open
      next: name one; see them with `backout task list`
    [exit code 2]
    ");
    insta::assert_snapshot!(world.cli(["rollback", "one"]), @"there was nothing to take back");
    world.did(["checkpoint", "here"]);
    insta::assert_snapshot!(world.unmoved(["rollback", "--to", "here"]), @"
    error: there is nothing to undo
      next: see the operations with `backout log`
    [exit code 1]
    ");
}
