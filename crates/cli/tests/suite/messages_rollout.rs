//! What is said of rollouts.

use crate::world::World;

/// Four files, and what is to become of them.
fn four() -> World {
    let world = World::new().file("a", "1\n").file("b", "1\n");
    world.file("c", "1\n").file("d", "1\n").file("new", "2\n")
}

#[test]
fn a_rollout_that_is_done_says_its_waves() {
    let world = four();
    insta::assert_snapshot!(world.cli(["rollout", "start", "--name", "r", "--wave", "2", "--content", "new", "a", "b", "c", "d"]), @"
    rollout r: done, 4 targets in 3 waves
      wave 1  passed  a
      wave 2  passed  b, c
      wave 3  passed  d
    hint: take all of it back with `backout rollback r`
    ");
    insta::assert_snapshot!(world.unmoved(["rollout", "list"]), @"
    r  done, 4 targets in 3 waves  just now
    ");
    insta::assert_snapshot!(world.unmoved(["rollout", "resume", "r"]), @"
    error: the rollout `r` has ended
      why: there is nothing to go on with
      next: see how it ended with `backout rollout status r`
      next: take back what it wrote with `backout rollback r`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["rollout", "resume"]), @"
    error: no rollout is open
      next: list those that have ended with `backout rollout list`
    [exit code 1]
    ");
    world.did(["rollback", "r"]);
    insta::assert_snapshot!(world.unmoved(["rollout", "status"]), @"
    rollout r: done, and rolled back since
      wave 1  undone  a
      wave 2  undone  b, c
      wave 3  undone  d
    ");
}

#[test]
fn there_are_no_rollouts() {
    insta::assert_snapshot!(World::new().unmoved(["rollout", "list"]), @"
    no rollouts
    ");
    insta::assert_snapshot!(World::new().unmoved(["rollout", "status"]), @"
    error: no rollout is open
      next: list those that have ended with `backout rollout list`
    [exit code 1]
    ");
    insta::assert_snapshot!(four().unmoved(["rollout", "status", "nosuch"]), @"
    error: there is no rollout `nosuch`
      next: list them with `backout rollout list`
    [exit code 1]
    ");
}

#[test]
fn a_wave_that_failed_says_why_and_what_stays() {
    let world = four();
    let check = "test {wave} -lt 2 || { echo it is down; exit 3; }";
    insta::assert_snapshot!(world.cli(["rollout", "start", "--name", "r", "--wave", "1", "--check", check, "--content", "new", "a", "b", "c", "d"]), @"
    rollout r: stopped, wave 2 failed and it is undone; waves 3 to 4 were never touched
      why: the check said no: `/bin/sh` ended with 3: it is down
      wave 1  passed     a
      wave 2  undone     b
      wave 3  untouched  c
      wave 4  untouched  d
    hint: take back the waves that stay with `backout rollback r`; mend the change and begin a new rollout
    [exit code 1]
    ");
    let world = four();
    insta::assert_snapshot!(world.cli(["rollout", "start", "--name", "r", "--wave", "1", "--check", check, "--on-failure", "all", "--content", "new", "a", "b", "c"]), @"
    rollout r: stopped, wave 2 failed and it and all before it are undone; wave 3 was never touched
      why: the check said no: `/bin/sh` ended with 3: it is down
      wave 1  undone     a
      wave 2  undone     b
      wave 3  untouched  c
    hint: mend the change and begin a new rollout
    [exit code 1]
    ");
    let world = four();
    insta::assert_snapshot!(world.cli(["rollout", "start", "--name", "r", "--check", "false", "--tries", "2", "--content", "new", "a"]), @"
    rollout r: stopped, wave 1 failed and it is undone
      why: the check said no: `/bin/sh` ended with 1 in 2 tries
      wave 1  undone  a
    hint: mend the change and begin a new rollout
    [exit code 1]
    ");
}

#[test]
fn a_write_that_waits_says_how_to_go_on() {
    let world = four().file("backout.toml", "[protect]\nask = ['b', 'c']\n");
    insta::assert_snapshot!(world.cli(["rollout", "start", "--name", "r", "--wave", "3", "--content", "new", "a", "b", "c", "d"]), @"
    rollout r: wave 2 of 2 waits for a decision about 6a99b4b1
      wave 1  passed   a
      wave 2  pending  b, c, d
    hint: decide with `backout approve 6a99b4b1` or `backout reject 6a99b4b1`, then go on with `backout rollout resume r`
    [exit code 1]
    ");
    let other = ["rollout", "start", "--name", "s", "--content", "new", "c"];
    assert_eq!(world.cli(other).code, 1);
    insta::assert_snapshot!(world.unmoved(["rollout", "abort"]), @"
    error: it is not clear which rollout is meant
      why: it could be `s` or `r`
      next: name one
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["rollout", "abort", "r"]), @"
    rollout r: aborted, and all of it is undone
      wave 1  undone     a
      wave 2  untouched  b, c, d
    ");
    assert_eq!(world.text("a"), "1\n");
}

#[test]
fn a_target_that_changed_holds_it_up() {
    let world = four().file("backout.toml", "[protect]\nask = ['a']\n");
    let start = [
        "rollout",
        "start",
        "--name",
        "r",
        "--content",
        "new",
        "a",
        "b",
    ];
    assert_eq!(world.cli(start).code, 1);
    world.put("a", "theirs\n");
    world.put("b", "theirs\n");
    world.put("backout.toml", "");
    let pending = world.cli(["--json", "pending"]).out;
    let pending: serde_json::Value = serde_json::from_str(&pending).unwrap();
    let proposal = pending["proposals"][0]["id"].as_str().unwrap().to_owned();
    world.did(["reject", &proposal]);
    let told = world.cli(["rollout", "resume"]).to_string();
    for part in ["stopped, wave 1 failed", "why: `a`: ", " rejected it"] {
        assert!(told.contains(part), "{told}");
    }
    let world = four();
    let check = "test {wave} -gt 1 || echo theirs > b";
    insta::assert_snapshot!(world.cli(["rollout", "start", "--name", "r", "--check", check, "--content", "new", "a", "b", "c"]), @"
    rollout r: wave 2 of 2 is held up
      why: `b` changed since the rollout began
      wave 1  passed   a
      wave 2  pending  b (changed since), c
    hint: see to it and go on with `backout rollout resume r`; with `--force` it also writes targets that changed
    [exit code 1]
    ");
}

#[test]
fn what_did_not_come_back_is_told() {
    let world = four();
    let check = "test {wave} -lt 2 || { echo theirs > b; exit 1; }";
    insta::assert_snapshot!(world.cli(["rollout", "start", "--name", "r", "--check", check, "--content", "new", "a", "b"]), @"
    rollout r: wave 2 of 2 failed, and not all of it came back
      why: `b` (f1bbcdcb): targets changed since the operation: `b` content changed since (2 -> 7 bytes)
      wave 1  passed  a
      wave 2  failed  b (changed since)
    hint: see to it, then go on with `backout rollout resume r`; `backout rollout resume r --force` also undoes what others did there
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["rollout", "abort"]), @"
    rollout r: not all of it came back
      why: `b` (f1bbcdcb): targets changed since the operation: `b` content changed since (2 -> 7 bytes)
      wave 1  undone  a
      wave 2  failed  b (changed since)
    hint: see to it, then go on with `backout rollout abort r`; `backout rollout abort r --force` also undoes what others did there
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["rollout", "abort", "--force"]), @"
    rollout r: aborted, and all of it is undone
      wave 1  undone  a
      wave 2  undone  b
    note: `b` was changed by somebody; `backout redo 36fbefaa` brings that back
    ");
    assert_eq!(world.text("a"), "1\n");
    assert_eq!(world.text("b"), "1\n");
    world.did(["redo"]);
    assert_eq!(world.text("b"), "theirs\n");
}

#[test]
fn what_cannot_be_rolled_out_is_said_before() {
    let world = four();
    insta::assert_snapshot!(world.unmoved(["rollout", "start", "--content", "new", "a", "./a"]), @"
    error: no rollout was begun
      why: `a` is named twice
      next: name each target once
    [exit code 2]
    ");
    insta::assert_snapshot!(world.unmoved(["rollout", "start", "--content", "new", "--check-http", "https://x/", "a"]), @"
    error: no rollout was begun
      why: the check cannot be carried out: https is not spoken here: use a `command` with curl
      next: mend `--check` or `--check-http`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["rollout", "start", "--content", "new"]), @"
    error: the following required arguments were not provided:
      <TARGET>...

    Usage: backout rollout start --content <FILE> <TARGET>...

    For more information, try '--help'.
    [exit code 2]
    ");
    world.put(
        "plan",
        r#"{"changes": [{"move": {"from": "a", "to": "z"}}]}"#,
    );
    insta::assert_snapshot!(world.unmoved(["rollout", "start", "--plan", "plan"]), @"
    error: no rollout was begun
      why: a change of the plan is not one of one file
      next: a plan takes write, append, edit, remove, set, unset and merge
    [exit code 2]
    ");
}

#[test]
fn a_rollout_is_a_task_of_its_own() {
    let world = four();
    insta::assert_snapshot!(world.unmoved(["--task", "t", "rollout", "start", "--content", "new", "a"]), @"
    error: `--task` does not go with `rollout`
      why: a rollout is a task of its own
      next: give it a name with `--name`
    [exit code 2]
    ");
}

#[test]
fn a_rollout_ended_by_hand_or_interrupted_says_so() {
    let world = four();
    let check = "kill -INT $PPID; for i in 1 2 3 4 5; do sleep 0.1; done";
    let mut start = world.command(&[
        "rollout",
        "start",
        "--name",
        "r",
        "--check",
        check,
        "--content",
        "new",
        "a",
        "b",
    ]);
    start.env("PATH", "/usr/bin:/bin");
    insta::assert_snapshot!(world.run(&mut start), @"
    rollout r: interrupted in wave 2 of 2
      wave 1  passed   a
      wave 2  pending  b (not looked at)
    hint: go on with `backout rollout resume r`, or take all of it back with `backout rollout abort r`
    [exit code 130]
    ");
    let status = world.unmoved(["status"]);
    let told = "rollouts that are not over:\n  r  interrupted in wave 2 of 2";
    assert!(status.out.contains(told), "{status}");
    let hint = "hint: go on with `backout rollout resume r`";
    assert!(status.err.contains(hint), "{status}");
    world.did(["rollback", "r"]);
    insta::assert_snapshot!(world.unmoved(["rollout", "status"]), @"
    rollout r: its task was ended by hand
      wave 1  undone     a
      wave 2  untouched  b
    ");
}

#[test]
fn what_others_built_on_it_stays_until_somebody_forces_it() {
    let world = four().file("backout.toml", "[protect]\nask = ['b']\n");
    let start = [
        "rollout",
        "start",
        "--name",
        "r",
        "--content",
        "new",
        "a",
        "b",
    ];
    assert_eq!(world.cli(start).code, 1);
    world.did(["write", "a", "--text", "theirs\n"]);
    insta::assert_snapshot!(world.cli(["rollout", "abort"]), @"
    rollout r: not all of it came back
      why: `a` (1715609f): others built on it: cc623af8 (write a)
      wave 1  passed     a (changed since)
      wave 2  untouched  b
    hint: see to it, then go on with `backout rollout abort r`; `backout rollout abort r --force` also undoes what others did there
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["rollout", "abort", "--force"]), @"
    rollout r: aborted, and all of it is undone
      wave 1  undone     a
      wave 2  untouched  b
      also undone: cc623af8 (write a), which was built on 1715609f
      `backout redo 1715609f cc623af8` brings that back
    ");
    assert_eq!(world.text("a"), "1\n");
    let status = world.cli(["--json", "rollout", "status"]).out;
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    let also = |name: &str| status["also"][0][name].as_str().unwrap();
    world.did(["redo", also("on"), also("id")]);
    assert_eq!(world.text("a"), "theirs\n");
    world.did(["undo", "a"]);
    insta::assert_snapshot!(world.unmoved(["rollout", "status"]), @"
    rollout r: aborted, and some of it is in effect again
      wave 1  passed     a
      wave 2  untouched  b
    ");
}

#[test]
fn what_comes_back_after_a_wave_failed_is_said() {
    let world = four();
    let check = "test {wave} -lt 2";
    let start = [
        "rollout",
        "start",
        "--name",
        "r",
        "--check",
        check,
        "--content",
        "new",
        "a",
        "b",
    ];
    assert_eq!(world.cli(start).code, 1);
    world.did(["redo"]);
    insta::assert_snapshot!(world.unmoved(["rollout", "status"]), @"
    rollout r: stopped, wave 2 failed and some of it is in effect again
      why: the check said no: `/bin/sh` ended with 1
      wave 1  passed  a
      wave 2  failed  b (in effect)
    hint: take back the waves that stay with `backout rollback r`; mend the change and begin a new rollout
    ");
}

#[test]
fn what_was_approved_and_undone_is_said() {
    let world = four().file("backout.toml", "[protect]\nask = ['a']\n");
    let start = [
        "rollout",
        "start",
        "--name",
        "r",
        "--content",
        "new",
        "a",
        "b",
    ];
    assert_eq!(world.cli(start).code, 1);
    let status = world.cli(["--json", "rollout", "status"]).out;
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    world.did(["approve", status["proposal"].as_str().unwrap()]);
    world.did(["undo", "a"]);
    insta::assert_snapshot!(world.unmoved(["rollout", "status"]), @"
    rollout r: wave 1 of 2 waited for 1715609f, which was approved, and is undone
      wave 1  undone   a
      wave 2  pending  b
    hint: go on with `backout rollout resume r`, or take all of it back with `backout rollout abort r`
    ");
}

#[test]
fn a_target_that_was_as_asked_already_is_not_called_undone() {
    let world = four().file("b", "2\n");
    world.did([
        "rollout",
        "start",
        "--name",
        "r",
        "--first",
        "2",
        "--content",
        "new",
        "a",
        "b",
    ]);
    world.did(["rollback", "r"]);
    insta::assert_snapshot!(world.unmoved(["rollout", "status"]), @"
    rollout r: done, and rolled back since
      wave 1  undone  a, b (as asked already)
    ");
}

#[test]
fn a_target_that_leads_elsewhere_holds_it_up() {
    let world = four();
    let check = "test {wave} -gt 1 || { rm b; ln -s c b; }";
    insta::assert_snapshot!(world.cli(["rollout", "start", "--name", "r", "--check", check, "--content", "new", "a", "b"]), @"
    rollout r: wave 2 of 2 is held up
      why: `b` led elsewhere when the rollout began, and leads to `c` now
      wave 1  passed   a
      wave 2  pending  b (changed since)
    hint: see to it and go on with `backout rollout resume r`; with `--force` it also writes targets that changed
    [exit code 1]
    ");
}

#[test]
fn a_batch_is_of_whole_files() {
    let world = four();
    world.put(
        "plan",
        r#"{"changes": [{"unset": {"path": "a.toml", "key": "x"}}]}"#,
    );
    insta::assert_snapshot!(world.unmoved(["batch", "plan"]), @"
    error: change 1 of the batch cannot be made in `plan`
      why: a batch changes whole files
      next: use `backout set`, `unset` or `merge`, or a plan of `backout rollout`
    [exit code 2]
    ");
    world.put(
        "plan",
        r#"{"changes": [{"set": {"path": "a.toml", "key": "x", "value": 1, "format": "xml"}}]}"#,
    );
    insta::assert_snapshot!(world.unmoved(["rollout", "start", "--plan", "plan"]), @"
    error: change 1 of the batch cannot be made: `xml` is no format
      next: a format is json, jsonc, yaml, toml, ini or env
    [exit code 2]
    ");
}
