//! `backout recover`: what it settles, what it leaves alone, and what it does when somebody decides.

use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::claims::{Waiting, is_root};
use crate::world::{Ran, World};

/// The program itself, for commands that run it.
const PROGRAM: &str = env!("CARGO_BIN_EXE_backout");

fn status(world: &World, name: &str) -> String {
    let ran = world.cli(["--json", "show", name]);
    assert!(!ran.out.is_empty(), "{ran}");
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
    insta::assert_snapshot!(world.unmoved(["recover"]), @"
    9e3779b9  run sh -c 'echo 1 > f'  now interrupted
      its watcher died; what it had done is kept. Keep it with `backout recover --keep 9e3779b9`, take it back with `backout recover --rollback 9e3779b9`
    ");
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
fn a_rollback_leaves_what_others_built_on_it_and_takes_it_along_by_force() {
    let world = World::new().file("f", "0");
    world.dies(
        "run.ended",
        ["--agent", "one", "run", "--", "sh", "-c", "echo 1 > f"],
    );
    world.cli(["recover"]);
    world.did(["task", "begin", "t"]);
    world.did(["--agent", "two", "--task", "t", "write", "f", "--text", "2"]);
    world.did(["commit", "t"]);
    let refused = world.cli(["--agent", "one", "recover", "--rollback", "9e37"]);
    assert_eq!(
        (refused.code, world.text("f").as_str()),
        (1, "2"),
        "{refused}"
    );
    let force = ["--agent", "one", "recover", "--rollback", "9e37", "--force"];
    insta::assert_snapshot!(world.cli(force), @"
    9e3779b9  run sh -c 'echo 1 > f'  now undone
      f  restored
      its watcher died, and what it had done was taken back, with what was built on it: 3c6ef372 write f; bring all of it back with `backout redo 78dde6e5`
    ");
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
    let world = World::new().file("a", "0");
    let tree = world.tree();
    let mut command = world.command(&["run", "--", "sh", "-c", "true"]);
    command.env("BACKOUT_CRASH_AT", "run.ended");
    insta::assert_snapshot!(world.run(&mut command), @"
    note: recovered 9e3779b9  run sh -c true: its process died before anything happened; nothing changed
    error: the command is no longer watched
      why: the process that watched it was ended by signal 6
      why: nothing of it was running any more
    [exit code 1]
    ");
    assert_eq!(status(&world, "9e37"), "committed");
    insta::assert_snapshot!(world.unmoved(["recover"]), @"nothing was left unfinished");
    assert_eq!(world.tree(), tree);
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

#[test]
fn a_write_that_cannot_be_taken_back_is_in_doubt_until_it_can() {
    if !is_root() {
        return;
    }
    let world = dead_write("a");
    let flag = |sign: &str| {
        let mut chattr = std::process::Command::new("chattr");
        chattr.arg(sign).arg(world.path("a")).status().unwrap()
    };
    if !flag("+i").success() {
        return;
    }
    let ran = world.cli(["recover"]);
    assert!(flag("-i").success());
    insta::assert_snapshot!(ran, @"
    9e3779b9  write a  now in-doubt
      a  conflict: `a` is immutable: nobody may change it, not even root; `chattr -i` takes that off
      it was left half-way and cannot be taken back as it stands; nothing was touched. Keep what is there with `backout recover --keep 9e3779b9`, or take it back anyway with `backout recover --rollback 9e3779b9 --force`
    [exit code 1]
    ");
    assert_eq!(status(&world, "9e37"), "in-doubt");
    world.did(["recover"]);
    assert_eq!(world.text("a"), "0");
}

/// The process that watches a command.
fn watcher(world: &World, id: &str) -> Pid {
    let status = world.cli(["--json", "status"]).out;
    let status: Value = serde_json::from_str(&status).unwrap();
    let all = status.get("unfinished").and_then(Value::as_array).unwrap();
    let is_it = |it: &&Value| {
        it.get("id")
            .is_some_and(|it| it.as_str().unwrap().starts_with(id))
    };
    let pid = all.iter().find(is_it).unwrap().pointer("/owner/pid");
    let pid = pid.unwrap().as_i64().unwrap();
    Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()
}

/// Ends a process and waits until it is dead.
fn end(pid: Pid) {
    kill_process(pid, Signal::KILL).unwrap();
    let stat = format!("/proc/{}/stat", pid.as_raw_nonzero());
    while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A world whose ids no other test has: what is left of a dead command is found by the id, wherever it is.
fn with_ids_from(number: u64) -> World {
    let world = World::new();
    world.next_id_is(number);
    world
}

/// A command that waits, and that nobody watches any more.
fn unwatched(world: &World, file: &str) -> (Waiting, String) {
    let line = format!("echo 1 > {file}; echo ready; read x");
    let waiting = world.waiting(["run", "--", "sh", "-c", &line]);
    let id = world.newest_id();
    // The process in front would recover it, and the watcher would end it if that one were gone.
    waiting.signal(Signal::STOP);
    end(watcher(world, &id));
    waiting.signal(Signal::KILL);
    (waiting, id)
}

/// Leaves out the number of the process that was ended.
fn unnumbered(ran: &Ran) -> String {
    let said = ran.to_string();
    let (begin, rest) = said.split_once("sh (").unwrap();
    let (_, end) = rest.split_once(')').unwrap();
    format!("{begin}sh (PID){end}")
}

#[test]
fn what_is_left_of_a_dead_command_is_ended_and_named() {
    let world = with_ids_from(7000);
    let (_waiting, id) = unwatched(&world, "f");
    insta::assert_snapshot!(unnumbered(&world.cli(["recover"])), @"
    3ce86830  run sh -c 'echo 1 > f; echo ready; read x'  now interrupted
      ended what was left of it, since nobody watched it any more: sh (PID)
      its watcher died; what it had done is kept. Keep it with `backout recover --keep 3ce86830`, take it back with `backout recover --rollback 3ce86830`
    ");
    assert_eq!(status(&world, &id), "interrupted");
    let shown = world.unmoved(["show", &id]).out;
    for note in [
        "its watcher died; what it had done until then is recorded",
        "nobody watched it any more, so this was ended: sh (",
    ] {
        assert!(shown.contains(note), "{shown}");
    }
    // How many ids the recovery took is left to chance.
    world.next_id_is(7050);
    let (_waiting, id) = unwatched(&world, "g");
    insta::assert_snapshot!(unnumbered(&world.cli(["recover", "--keep", &id])), @"
    23be2e6b  run sh -c 'echo 1 > g; echo ready; read x'  now committed
      ended what was left of it, since nobody watched it any more: sh (PID)
      what is there is kept; undo with `backout undo 23be2e6b`
    ");
    assert_eq!(status(&world, &id), "committed");
    assert_eq!(
        (world.text("f"), world.text("g")),
        ("1\n".into(), "1\n".into())
    );
}

#[test]
fn whoever_stands_before_a_command_recovers_that_one() {
    let world = with_ids_from(7100);
    let line = "echo 1 > f; echo ready; read x";
    let mine = world.waiting(["run", "--", "sh", "-c", line]);
    let own = world.newest_id();
    let (_theirs, other) = unwatched(&world, "g");
    end(watcher(&world, &own));
    let told = world.go_on(mine).to_string();
    assert!(told.contains(&own) && !told.contains(&other), "{told}");
    assert_eq!(
        (
            status(&world, &own).as_str(),
            status(&world, &other).as_str()
        ),
        ("interrupted", "armed")
    );
}

#[test]
fn a_log_that_is_damaged_is_a_doubt_that_is_named() {
    let world = with_ids_from(7200).file("f", "0");
    let (_waiting, id) = unwatched(&world, "f");
    let logs = std::fs::read_dir(world.place("state/captures")).unwrap();
    let log = logs
        .map(|it| it.unwrap().path())
        .find(|it| it.is_file() && it.extension().is_none());
    let log = log.unwrap();
    let mut bytes = std::fs::read(&log).unwrap();
    // In the first of its notes.
    *bytes.get_mut(48).unwrap() ^= 0xff;
    std::fs::write(&log, bytes).unwrap();
    insta::assert_snapshot!(unnumbered(&world.cli(["recover"])), @"
    d83f811c  run sh -c 'echo 1 > f; echo ready; read x'  now interrupted
      ended what was left of it, since nobody watched it any more: sh (PID)
      in doubt: its log is damaged (`$WORLD/state/captures/d83f811c0ee1cea0`, 1 times); what was noted there is lost
      its watcher died; what it had done is kept. Keep it with `backout recover --keep d83f811c`, take it back with `backout recover --rollback d83f811c`
    [exit code 1]
    ");
    assert_eq!(status(&world, &id), "interrupted");
    assert_eq!(world.text("f"), "1\n");
}

#[test]
fn of_an_act_that_died_the_steps_before_stay_and_are_named() {
    for keep in [false, true] {
        let world = World::new().file("a", "0").file("b", "0");
        world.did(["write", "a", "--text", "1"]);
        world.did(["write", "b", "--text", "1"]);
        world.dies("file.swapped#2", ["undo", "@", "@-1"]);
        assert_eq!((world.text("a"), world.text("b")), ("0".into(), "0".into()));
        let undo = &world.newest_id();
        if keep {
            insta::assert_snapshot!(world.cli(["recover", "--keep", undo]), @"
            78dde6e5  undo of write a  now committed
              a  restored
              what is there is kept; undo with `backout undo 78dde6e5`
            ");
            assert_eq!((world.text("a"), world.text("b")), ("0".into(), "0".into()));
            world.did(["redo", undo]);
            assert_eq!((world.text("a"), world.text("b")), ("1".into(), "0".into()));
        } else {
            insta::assert_snapshot!(world.cli(["recover"]), @"
            78dde6e5  undo of write a  now undone
              a  restored
              its process died half-way, and what it had done was put back; do it again with `backout undo 9e3779b9`
            the undo of 2 operations was left half-way: its process died after 1 of them. Go on with `backout undo 9e3779b9`, take it back with `backout redo daa66d2c`, or keep it so with `backout recover --keep daa66d2c`
            ");
            assert_eq!((world.text("a"), world.text("b")), ("1".into(), "0".into()));
        }
    }
}

#[test]
fn what_was_written_on_top_and_undone_since_does_not_keep_a_doubt_alive() {
    let world = World::new().file("a", "0").file("b", "0");
    world.dies("engine.before-commit", ["rm", "a", "b"]);
    // Somebody writes one of the names, so nothing is taken back.
    world.put("a", "theirs");
    assert_eq!(world.cli(["recover"]).code, 1);
    world.did(["write", "b", "--text", "2"]);
    fs::remove_file(world.path("a")).unwrap();
    insta::assert_snapshot!(world.unmoved(["recover"]), @"
    9e3779b9  remove a and 1 more  now in-doubt
      a  skipped: another target cannot be taken back, so nothing was
      b  conflict: daa66d2c was done since: write b
      it was left half-way and cannot be taken back as it stands; nothing was touched. Keep what is there with `backout recover --keep 9e3779b9`, or take it back anyway with `backout recover --rollback 9e3779b9 --force`
    [exit code 1]
    ");
    world.did(["undo", "b"]);
    assert!(!world.has("a") && !world.has("b"));
    // Only the undo stands on top of it now.
    insta::assert_snapshot!(world.cli(["recover"]), @"
    9e3779b9  remove a and 1 more  now undone
      a  restored
      b  restored
      its process died half-way, and what it had done was taken back; bring it back with `backout redo 9e3779b9`
    ");
    assert_eq!((world.text("a"), world.text("b")), ("0".into(), "0".into()));
}

#[test]
fn what_a_recovery_took_back_is_named_to_whoever_looks_for_a_redo() {
    let world = World::new().file("a", "0");
    world.dies(
        "engine.before-commit",
        ["--agent", "ann", "write", "a", "--text", "1"],
    );
    world.did(["--agent", "ann", "recover"]);
    assert_eq!(world.text("a"), "0");
    insta::assert_snapshot!(world.unmoved(["--agent", "bob", "redo"]), @"
    error: there is nothing to redo
      why: what a recovery took back comes only by name: 9e3779b9 write a
      next: bring it back with `backout redo 9e3779b9`
    [exit code 1]
    ");
    world.did(["--agent", "bob", "redo", "9e3779b9"]);
    assert_eq!(world.text("a"), "1");
}

#[test]
fn what_was_changed_after_the_watcher_died_is_told_by_the_undo() {
    let world = with_ids_from(7300).file("f", "0");
    let (_waiting, id) = unwatched(&world, "f");
    world.put("f", "theirs");
    world.did(["recover"]);
    insta::assert_snapshot!(world.unmoved(["undo", &id]), @"
    error: nothing was undone
      why: `f`: it was changed after the last moment that the command is known to have been watched
      next: see what would change back, and what others changed, with `backout undo a5eb0d91 --dry-run --diff`
      next: do it anyway with `backout undo a5eb0d91 --force` (what is there now is kept)
    [exit code 1]
    ");
    assert_eq!(world.text("f"), "theirs");
}

#[test]
fn what_a_batch_had_done_when_it_died_is_called_a_part() {
    let world = World::new().file("a", "0").file("b", "0");
    world.dies("file.swapped", ["rm", "a", "b"]);
    insta::assert_snapshot!(world.cli(["recover"]), @"
    9e3779b9  remove a and 1 more  now undone
      a  restored
      b  already as before
      its process died half-way, and the part that it had done was taken back. Do all of it again, or bring back that part with `backout redo 9e3779b9`
    ");
    assert_eq!((world.text("a"), world.text("b")), ("0".into(), "0".into()));
    // What the command brings back that is named is what is said.
    let id = world.newest_id();
    world.did(["redo", &id]);
    let mut log = vec![world.has("a"), world.has("b")];
    log.sort_unstable();
    assert_eq!(log, [false, true]);
}
