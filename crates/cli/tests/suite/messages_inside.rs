//! What is said to those who ask from inside of a command: what they may not ask for, and where nobody answers.
//!
//! Without a test: that it took too long to ask, and that the program could not be started outside (the program asks at
//! once, and is there); `proof/commands/relay.rs` has the first by hand.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;

use crate::world::{Ran, World};

const PROGRAM: &str = env!("CARGO_BIN_EXE_backout");

fn world() -> World {
    let world = World::new().file("a", "0");
    symlink(PROGRAM, world.place("program")).unwrap();
    world
}

/// Has a line run under `run` that asks for something and gets nothing.
#[track_caller]
fn refused(world: &World, line: &str) -> Ran {
    let ran = world.idle(line);
    assert_ne!(ran.code, 0, "{ran}");
    ran
}

#[test]
fn what_is_not_for_those_inside_is_refused_with_its_reason() {
    let world = world();
    insta::assert_snapshot!(refused(&world, "../program rollback t"), @"
    error: this cannot be asked from inside of a command
      why: whether the work is kept is decided outside
      next: have it done outside of the command, by whoever started it
    [exit code 1]
    ");
    let mut told = String::new();
    for asked in [
        "--state-dir ../elsewhere log",
        "--agent other log",
        "--task other log",
        "--cap 1G log",
        "undo --others",
        "try -- true",
        "commit t",
        "recover --keep 9e37",
        "gc",
        "doctor --repair",
        "export --output ../export",
        "man --dir ../pages",
        "run --capture scan -- true",
        "run --over-limit mark -- true",
    ] {
        let ran = refused(&world, &format!("../program {asked}"));
        let why = ran.err.lines().find(|line| line.starts_with("  why: "));
        writeln!(told, "{asked}: {}", why.unwrap_or(&ran.err).trim()).unwrap();
    }
    insta::assert_snapshot!(told, @"
    --state-dir ../elsewhere log: why: the store is that of the command
    --agent other log: why: the agent is that of the command
    --task other log: why: the task is that of the command
    --cap 1G log: why: how much is kept is decided outside
    undo --others: why: the work of others is theirs, or for those outside to take back
    try -- true: why: what is tried is not watched, and somebody outside decides about it
    commit t: why: whether the work is kept is decided outside
    recover --keep 9e37: why: whether the work is kept is decided outside
    gc: why: what is let go cannot be undone any more
    doctor --repair: why: the store is repaired from outside
    export --output ../export: why: it would write files that are not recorded
    man --dir ../pages: why: it would write files that are not recorded
    run --capture scan -- true: why: `--capture scan` would let the command go unwatched
    run --over-limit mark -- true: why: `--over-limit mark` would let it lose what was not kept
    ");
    assert!(!world.place("elsewhere").exists() && !world.place("export").exists());
}

#[test]
fn who_has_other_rights_than_the_command_is_not_served() {
    if !crate::claims::is_root() {
        return;
    }
    let ran = refused(&world(), "unshare -m ../program write b --text 1");
    insta::assert_snapshot!(ran, @"
    error: nothing was done
      why: this process has other rights, another root or other mounts than the command that it is part of
      why: what it may not do is not done for it outside either
      next: ask from a process of the command that is in no sandbox of its own
    [exit code 1]
    ");
}

#[test]
fn who_asks_from_a_directory_that_is_gone_is_not_served() {
    let world = world();
    let line = format!("mkdir d; cd d; rmdir ../d; {PROGRAM} write b --text 1");
    let ran = world.cli(["run", "--", "sh", "-c", &line]);
    insta::assert_snapshot!(ran, @"
    error: nothing was done
      why: what was asked could not be read
      next: ask from a directory that is there, with the same program that started the command
    [exit code 1]
    ");
    assert!(!world.has("b") && !world.has("d"));
}

#[test]
fn where_there_is_no_door_the_state_is_closed() {
    let ran = refused(&world(), "env -u BACKOUT_RELAY ../program write b --text 1");
    insta::assert_snapshot!(ran, @"
    error: could not create `$WORLD/state`
      why: Operation not permitted (os error 1)
      why: this is inside of a command that `backout run` watches, and there is no relay to ask
      why: the process in front of the command has ended, or sockets are forbidden here
      next: do it outside of the command
    note: writing our own state was refused; nothing of it may change here
    [exit code 1]
    ");
}

#[test]
fn whoever_is_not_answered_is_told_that_nobody_knows() {
    let world = world();
    // What was asked for is at work outside when the command ends; its caller is one of those that stay.
    let line = "mkfifo pipe; (../program write asked-late < pipe > /dev/null 2> told; touch end) > /dev/null 2>&1 & exec 3> pipe; \
         (read go < wait; echo x >&3; touch over) > /dev/null 2>&1 & \
         until [ $(grep -lsz '^asked-late$' /proc/[0-9]*/cmdline | wc -l) -ge 2 ]; do sleep 0.02; done";
    let made = std::process::Command::new("mkfifo")
        .arg(world.path("wait"))
        .status();
    assert!(made.unwrap().success());
    assert_eq!(world.cli(["run", "--", "sh", "-c", line]).code, 0);
    fs::write(world.path("wait"), "go\n").unwrap();
    while !world.has("end") || !world.has("over") {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    insta::assert_snapshot!(world.text("told"), @"
    error: it is not known what became of it
      why: the command that this is part of ended before it was answered
      next: see whether it was done with `backout log`, outside of the command
    ");
    // It was done or not; when nobody is at work any more, the journal knows.
    let mut log = world.cli(["log"]).out;
    while log.contains("  armed  ") {
        std::thread::sleep(std::time::Duration::from_millis(5));
        log = world.cli(["log"]).out;
    }
    assert_eq!(
        world.has("asked-late"),
        log.contains("write asked-late"),
        "{log}"
    );
}
