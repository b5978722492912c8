//! Branches of a sandbox that were set aside, forks, and what an owner leaves who was killed or had no room.

use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::disk::Disk;
use crate::world::{World, said};

/// Runs a line in the only sandbox and gives what it said.
fn line(world: &World, text: &str) -> String {
    world.ok(&["sandbox", "exec", "-c", text])
}

#[test]
fn what_was_set_aside_keeps_all_that_it_stands_on() {
    let world = World::new();
    world.file("old", "real\n");
    world.ok(&["sandbox", "start", "--keep", "2"]);
    line(&world, "echo one > one; rm old");
    line(&world, "echo two > two");
    world.ok(&["sandbox", "rollback", "1"]);
    let told = said(&world.run(&["sandbox", "exec", "-c", "echo three > three"]));
    assert!(!told.contains("cannot be gone back to"), "{told}");
    let told = said(&world.run(&["sandbox", "prune", "--keep", "2"]));
    assert!(
        told.contains("set aside and not applied, so they stay: 2"),
        "{told}"
    );
    for (checkpoint, names) in [("2", "one\ntwo\n"), ("3", "one\nthree\n")] {
        world.ok(&["sandbox", "rollback", checkpoint]);
        let seen = world.run(&["sandbox", "exec", "-c", "ls; false"]);
        assert_eq!(String::from_utf8_lossy(&seen.stdout), names);
    }
    world.ok(&["sandbox", "rollback", "2"]);
    world.ok(&["sandbox", "apply"]);
    assert_eq!(
        (world.read("one"), world.read("two")),
        ("one\n".to_owned(), "two\n".to_owned())
    );
    assert!(!world.path("old").exists() && !world.path("three").exists());
}

#[test]
fn a_command_that_fills_the_disk_of_the_state_is_dropped_and_the_sandbox_goes_on() {
    let disk = Disk::memory(12 * 1024);
    let world = World::new();
    let state = disk.root().join("state");
    let run = |arguments: &[&str]| {
        let mut command = world.command(arguments);
        command.env("BACKOUT_STATE_DIR", &state).output().unwrap()
    };
    run(&["sandbox", "start"]);
    run(&["sandbox", "exec", "-c", "echo precious > work"]);
    let fill = "head -c 30M /dev/zero | tr '\\0' x > big";
    let filled = run(&["sandbox", "exec", "-c", &format!("{fill}; sync; false")]);
    assert_eq!(filled.status.code(), Some(1), "{}", said(&filled));
    let seen = run(&["sandbox", "exec", "-c", "ls"]);
    assert_eq!(String::from_utf8_lossy(&seen.stdout), "work\n");
    let applied = run(&["sandbox", "apply"]);
    assert!(applied.status.success(), "{}", said(&applied));
    assert_eq!(world.read("work"), "precious\n");
}

#[test]
fn what_was_applied_is_seen_at_older_checkpoints_and_that_is_said() {
    let world = World::new();
    world.file("f", "zero\n");
    world.ok(&["sandbox", "start"]);
    line(&world, "echo one > f");
    line(&world, "echo two > f; echo n > new");
    world.ok(&["sandbox", "apply"]);
    let told = said(&world.run(&["sandbox", "rollback", "1"]));
    assert!(
        told.contains("what was applied since is real, and is seen here too: `")
            && told.contains("new`; an undo of the application takes it back"),
        "{told}"
    );
    let told = said(&world.run(&["sandbox", "rollback", "2"]));
    assert!(!told.contains("is real"), "{told}");
    world.ok(&["undo"]);
    let told = said(&world.run(&["sandbox", "rollback", "1"]));
    assert!(!told.contains("is real"), "{told}");
    assert_eq!(line(&world, "ls; cat f"), "f\none\n");
}

#[test]
fn a_command_that_changed_nothing_leaves_nothing_to_apply() {
    let world = World::new();
    world.ok(&["sandbox", "start"]);
    line(&world, "echo 1 > x");
    line(&world, "echo 2 > y");
    world.ok(&["sandbox", "apply"]);
    world.ok(&["sandbox", "rollback", "1"]);
    line(&world, "cat x y");
    let list = world.ok(&["sandbox", "list"]);
    assert!(!list.contains("not applied"), "{list}");
    world.ok(&["sandbox", "end"]);
}

#[test]
fn what_one_fork_applied_and_took_back_is_no_conflict_for_the_other() {
    let world = World::new();
    world.file("f", "one\n");
    world.file("g", "keep\n");
    world.ok(&["sandbox", "start", "p"]);
    world.ok(&["sandbox", "exec", "p", "-c", "echo two > f"]);
    world.ok(&["sandbox", "fork", "p", "q"]);
    world.ok(&["sandbox", "exec", "q", "-c", "echo three > g"]);
    world.ok(&["sandbox", "apply", "p"]);
    world.ok(&["undo"]);
    world.ok(&["sandbox", "apply", "q"]);
    assert_eq!(
        (world.read("f"), world.read("g")),
        ("two\n".to_owned(), "three\n".to_owned())
    );
    // What somebody writes after the undo is one.
    world.ok(&["undo"]);
    world.file("f", "theirs\n");
    let told = world.fails(1, &["sandbox", "apply", "p"]);
    assert!(told.contains("changed since the command began"), "{told}");
    assert_eq!(world.read("f"), "theirs\n");
}

#[test]
fn a_command_begins_above_a_directory_that_is_gone_and_says_so() {
    let world = World::new();
    world.ok(&["sandbox", "start"]);
    line(&world, "mkdir -p build/deep; cd build/deep");
    line(&world, "rm -rf ../../build");
    let ran = world.run(&["sandbox", "exec", "-c", "echo back > here"]);
    let told = said(&ran);
    assert!(ran.status.success(), "{told}");
    assert!(
        told.contains("is gone in the sandbox; the command began in `"),
        "{told}"
    );
    world.ok(&["sandbox", "apply"]);
    assert_eq!(world.read("here"), "back\n");
}

#[test]
fn an_application_that_was_killed_leaves_nothing_that_waits() {
    let world = World::new();
    for number in 0..200 {
        world.file(&format!("d/{number}"), "old\n");
    }
    world.ok(&["sandbox", "start"]);
    line(&world, "for it in d/*; do echo new > $it; done");
    let mut child = world.spawn(&["sandbox", "apply"]);
    let trials = world.state().join("trials");
    let begun = Instant::now();
    let is_there = || std::fs::read_dir(&trials).is_ok_and(|mut it| it.next().is_some());
    while !is_there() && begun.elapsed() < Duration::from_mins(1) {
        sleep(Duration::from_millis(2));
    }
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    let _sent = kill_process(pid, Signal::KILL);
    child.wait().unwrap();
    world.ok(&["recover"]);
    let list = world.ok(&["try", "--list"]);
    assert!(!list.contains("sandbox"), "{list}");
    world.run(&["sandbox", "apply"]);
    assert_eq!(world.read("d/7"), "new\n");
    let list = world.ok(&["try", "--list"]);
    assert!(!list.contains("sandbox"), "{list}");
}

/// Applies and dies at a point. What was there before is there again once that is settled.
fn dies_in_apply(world: &World, point: &str, arguments: &[&str]) {
    let before = world.tree().without_directory_times();
    let mut command = world.command(arguments);
    let output = command.env("BACKOUT_CRASH_AT", point).output().unwrap();
    assert!(!output.status.success(), "{point}: {}", said(&output));
    world.ok(&["recover"]);
    let now = world.tree().without_directory_times();
    assert!(now == before, "{point}: {}", now.difference(&before));
}

/// A sandbox that changed files of every size, removed a directory and made one.
fn changed() -> World {
    let world = World::new();
    world.file("a", "a0\n");
    // Too large to be known by its bytes.
    world.file("big", &"x".repeat(200_000));
    world.file("d/x", "x0\n");
    std::os::unix::fs::symlink("a", world.path("l")).unwrap();
    world.ok(&["sandbox", "start"]);
    line(&world, "echo a1 > a; printf y >> big; rm -r d; ln -sf d l");
    line(&world, "mkdir n; echo n > n/n; echo a2 >> a");
    world
}

const POINTS: [&str; 4] = [
    "file.swapped",
    "file.swapped#3",
    "file.swapped#5",
    "engine.before-commit",
];

#[test]
fn an_application_that_died_is_put_back_and_can_be_done_again() {
    let world = changed();
    for point in POINTS {
        dies_in_apply(&world, point, &["sandbox", "apply"]);
        world.ok(&["sandbox", "rollback", "0"]);
        world.ok(&["sandbox", "rollback", "2"]);
    }
    // A fork stands on the same, and a part can be had first.
    world.ok(&["sandbox", "fork", "sandbox", "other"]);
    let part = ["sandbox", "apply", "other", "--only", "big"];
    dies_in_apply(&world, "engine.before-commit", &part);
    world.ok(&part);
    assert_eq!(world.read("big").len(), 200_001);
    world.ok(&["undo"]);
    world.ok(&["sandbox", "apply", "sandbox"]);
    assert_eq!(
        (world.read("a").as_str(), world.read("n/n").as_str()),
        ("a1\na2\n", "n\n")
    );
    assert_eq!(
        (world.read("big").len(), world.path("d").exists()),
        (200_001, false)
    );
    world.ok(&["sandbox", "end", "sandbox"]);
    world.ok(&["undo"]);
    assert_eq!(world.read("d/x"), "x0\n");
    world.check_store();
}

#[test]
fn what_somebody_wrote_after_an_application_died_is_a_conflict() {
    let world = changed();
    dies_in_apply(&world, "engine.before-commit", &["sandbox", "apply"]);
    world.ok(&["write", "a", "--text", "theirs\n"]);
    let told = world.fails(1, &["sandbox", "apply"]);
    assert!(
        told.contains("`a` changed since the command began"),
        "{told}"
    );
    assert_eq!(told.matches("changed since").count(), 1, "{told}");
    // What was taken back is as it was.
    world.ok(&["undo"]);
    std::fs::write(world.path("a"), "a person's\n").unwrap();
    world.fails(1, &["sandbox", "apply"]);
    world.ok(&["sandbox", "apply", "--exclude", "a"]);
    assert_eq!(world.read("a"), "a person's\n");
    assert_eq!(world.read("n/n"), "n\n");
}

#[test]
fn an_application_after_one_that_died_is_all_of_it() {
    let world = changed();
    let mut command = world.command(&["sandbox", "apply"]);
    let output = command.env("BACKOUT_CRASH_AT", "file.swapped#3").output();
    assert!(!output.unwrap().status.success());
    // Nobody settled it in between.
    let told = said(&world.run(&["sandbox", "apply"]));
    assert!(told.contains("recovered"), "{told}");
    let list = world.ok(&["sandbox", "list"]);
    assert!(!list.contains("not applied"), "{list}");
    assert_eq!(
        (world.read("a").as_str(), world.read("n/n").as_str()),
        ("a1\na2\n", "n\n")
    );
    assert_eq!(
        (world.read("big").len(), world.path("d").exists()),
        (200_001, false)
    );
    // One undo takes all of it back.
    world.ok(&["undo"]);
    assert_eq!(
        (world.read("a").as_str(), world.read("d/x").as_str()),
        ("a0\n", "x0\n")
    );
    assert!(!world.path("n").exists());
    world.check_store();
}

#[test]
fn the_log_tells_parts_and_how_long_an_interrupted_command_ran() {
    let world = World::new();
    world.ok(&["sandbox", "start"]);
    line(&world, "echo A > a; echo B > b");
    world.ok(&["sandbox", "apply", "--only", "a"]);
    let log = world.ok(&["sandbox", "checkpoints"]);
    assert!(log.contains("applied in part"), "{log}");
    let mut child = world.spawn(&["sandbox", "exec", "-c", "echo c > c; sleep 60"]);
    sleep(Duration::from_secs(1));
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    let _sent = kill_process(pid, Signal::KILL);
    child.wait().unwrap();
    // Who asks for what is not there settles nothing, so the note is the next one's.
    world.fails(1, &["sandbox", "rollback", "77"]);
    let told = said(&world.run(&["sandbox", "exec", "-c", "true"]));
    assert!(
        told.contains("died: what it wrote in the sandbox was dropped"),
        "{told}"
    );
    // Nobody counted what was dropped, and that is what is said.
    let log = world.ok(&["sandbox", "checkpoints"]);
    assert!(
        log.contains("interrupted  changes not counted, reverted"),
        "{log}"
    );
    let log = world.json(&["sandbox", "checkpoints"]);
    let entries = log["log"].as_array().unwrap().iter();
    let mut dropped = entries.filter(|it| it["verdict"] == "interrupted");
    assert!(dropped.all(|it| it.get("changes").is_none()), "{log}");
    let took = log.to_string().split("\"interrupted\"").count();
    assert!(took > 1, "{log}");
}

#[test]
fn a_command_whose_time_was_up_is_exported_with_its_time() {
    let world = World::new();
    world.ok(&["sandbox", "start"]);
    let keep = ["sandbox", "exec", "--on-failure", "keep", "--timeout", "1s"];
    let slow = "echo t > timed; sleep 30; echo never > never";
    let ran = world.run(&[&keep[..], &["-c", slow]].concat());
    assert!(!ran.status.success(), "{}", said(&ran));
    let output = world.run(&["sandbox", "export", "--script"]);
    let script = String::from_utf8(output.stdout).unwrap();
    assert!(script.contains("timeout -s KILL 1."), "{script}");
    let path = world.scratch("made.sh");
    std::fs::write(&path, script).unwrap();
    let made = std::process::Command::new("bash").arg(&path).output();
    assert!(made.unwrap().status.success());
    assert!(world.path("timed").exists() && !world.path("never").exists());
}

#[test]
fn what_is_real_already_is_nothing_to_apply_and_holds_up_no_end() {
    let world = World::new();
    world.file("a", "1\n");
    world.ok(&["sandbox", "start", "s"]);
    world.ok(&["sandbox", "exec", "s", "-c", "echo 2 > a"]);
    world.fails(1, &["sandbox", "end", "s"]);
    // Somebody does the same.
    world.file("a", "2\n");
    let told = world.fails(1, &["sandbox", "apply", "s"]);
    for part in [
        "there is nothing left to apply",
        "all that the sandbox `s` changed is real already",
        "let it go with `backout sandbox end s`",
    ] {
        assert!(told.contains(part), "{told}");
    }
    world.ok(&["sandbox", "end", "s"]);
    assert_eq!(world.read("a"), "2\n");
}
