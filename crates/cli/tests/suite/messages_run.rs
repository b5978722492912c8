//! What is said of commands that were run: questions, endings, what was left running, what could not be watched.
//!
//! Without a test: "become two processes", "wait for the command" and the other short names of calls (they fail only with
//! the system), "record what it did with `backout recover`" (a store that breaks between a watcher's death and the look at
//! it). A kernel that lets nobody watch is in `proof/errno`.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::time::Duration;

use crate::world::World;

/// A program in the working directory.
fn program(world: &World, name: &str, text: &str) {
    world.put(name, text);
    fs::set_permissions(world.path(name), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_failed_command_is_undone_if_asked_for() {
    let world = World::new().file("a", "0");
    let arguments = [
        "run",
        "--on-failure",
        "rollback",
        "--",
        "sh",
        "-c",
        "echo 1 > a; exit 3",
    ];
    insta::assert_snapshot!(world.terminal(100, arguments), @"
    [2mbackout:[0m 1 changed  [2m([36m9e3779b9[0m, live capture, undo with `[36mbackout undo 9e3779b9[0m`)[0m
    [2mbackout:[0m it failed, and what it did was undone  (9e3779b9, bring it back with `[36mbackout redo 3c6ef372[0m`)
    [exit code 3]
    ");
    assert_eq!(
        (world.text("a").as_str(), world.newest_status().as_str()),
        ("0", "committed")
    );
    world.did(["redo"]);
    assert_eq!(world.text("a"), "1\n");
}

#[test]
fn a_failed_command_of_which_a_part_is_in_the_way_says_that_it_failed() {
    let world = World::new().file("a", "0").file("b", "0");
    let line = "echo 1 > a; echo 1 > b; touch begun; until test -e go; do sleep 0.01; done; exit 3";
    let mut run = world.command(&["run", "--on-failure", "rollback", "--", "sh", "-c", line]);
    let run = run.stdin(Stdio::null()).stdout(Stdio::piped());
    let run = run.stderr(Stdio::piped()).spawn().unwrap();
    while !world.path("begun").exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    world.put("a", "mine");
    world.put("go", "");
    let ran = world.ran(&run.wait_with_output().unwrap());
    insta::assert_snapshot!(ran, @"
    error: 1 of 3 targets was left as it is
      why: 9e3779b9 `a`: conflict: somebody else changed it while the command ran
      why: it was to be taken back because the command failed: it ended with code 3
      next: put right what stands in the way, then `backout undo 9e3779b9` again
      next: take back what was done with `backout redo 3c6ef372`
    [exit code 3]
    ");
    assert_eq!(world.text("a"), "mine");
    assert_eq!(world.text("b"), "0");
}

#[test]
fn a_person_is_asked_about_a_failed_command() {
    for (answer, left) in [("y\n", "0"), ("n\n", "1\n")] {
        let world = World::new().file("a", "0");
        let arguments = [
            "run",
            "--on-failure",
            "ask",
            "--",
            "sh",
            "-c",
            "echo 1 > a; exit 3",
        ];
        let ran = world.asked(answer, arguments);
        let question = ran.out.lines().find(|line| line.contains("[y/N]")).unwrap();
        insta::allow_duplicates! {
            insta::assert_snapshot!(question.split(" [y/N]").next().unwrap(), @"The command failed. Undo what it did?");
        }
        assert_eq!((world.text("a").as_str(), ran.code), (left, 3), "{ran}");
    }
}

#[test]
fn who_presses_ctrl_c_at_the_question_keeps_what_the_command_did() {
    let world = World::new().file("a", "0");
    let line = "echo 1 > a; exit 3";
    let arguments = ["run", "--on-failure", "ask", "--", "sh", "-c", line];
    let ran = world.interrupted_at("[y/N]", arguments);
    assert_eq!((world.text("a").as_str(), ran.code), ("1\n", 130), "{ran}");
    let note = ran.out.lines().find(|line| line.contains("note:")).unwrap();
    assert!(
        note.contains("it was interrupted, and what the command did is kept; undo with "),
        "{ran}"
    );
    world.did(["undo"]);
    assert_eq!(world.text("a"), "0");
}

#[test]
fn a_person_is_asked_about_a_file_that_is_too_large_to_keep() {
    for (answer, bytes) in [("y\n", 200_001), ("n\n", 200_000)] {
        let world = World::new().file("big", &"x".repeat(200_000));
        let arguments = [
            "run",
            "--limit",
            "1000",
            "--over-limit",
            "ask",
            "--",
            "sh",
            "-c",
            "printf y >> big",
        ];
        let ran = world.asked(answer, arguments);
        let question = ran.out.lines().find(|line| line.contains("[y/N]")).unwrap();
        insta::allow_duplicates! {
            insta::assert_snapshot!(question.split(" [y/N]").next().unwrap(), @"`$WORLD/work/big` is 200000 bytes, too large to be kept first. Let it be written, not undoable?");
        }
        assert_eq!(world.text("big").len(), bytes, "{ran}");
    }
}

#[test]
fn a_command_whose_time_is_up() {
    let world = World::new();
    let ran = world.cli([
        "run",
        "--timeout",
        "50ms",
        "--",
        "sh",
        "-c",
        "echo 1 > a; exec sleep 1000",
    ]);
    insta::assert_snapshot!(ran, @"
    note: its time was up, so it was ended
    [exit code 128]
    ");
    let shown = world.unmoved(["show", "9e37"]).out;
    let lines: Vec<&str> = shown
        .lines()
        .filter(|line| line.contains("ended") || line.contains("capture"))
        .collect();
    insta::assert_snapshot!(lines.join("\n").split(" after").next().unwrap(), @"
    capture      live, safe against the death of any process
    ended        by signal 15, its time was up
    ");
}

#[test]
fn what_a_command_leaves_running_is_named() {
    let world = World::new();
    let line = "(read x; echo 1 > late) > /dev/null 2>&1 < pipe & exec true";
    let made = std::process::Command::new("mkfifo")
        .arg(world.path("pipe"))
        .status();
    assert!(made.unwrap().success());
    let ran = world.cli(["run", "--", "sh", "-c", line]);
    let said = ran.to_string();
    insta::assert_snapshot!(said.split("ended: ").next().unwrap(), @"note: still running when the command");
    assert!(
        said.contains("; what they do is recorded as another operation"),
        "{said}"
    );
    fs::write(world.path("pipe"), "go\n").unwrap();
    let is_over = || world.cli(["log"]).out.matches("committed").count() == 2;
    while !is_over() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_eq!(world.text("late"), "1\n");
    let log = world.cli(["log"]).out;
    assert!(log.contains("  left running by sh -c "), "{log}");
}

#[test]
fn a_command_that_only_reads_by_its_words_and_writes() {
    let world = World::new();
    program(&world, "bin/cat", "#!/bin/sh\necho 1 > a\n");
    let mut command = world.command(&["run", "--", "cat", "x"]);
    let path = format!("{}:/usr/bin:/bin", world.path("bin").display());
    insta::assert_snapshot!(world.run(command.env("PATH", path)), @"note: drift: by its words it only reads, but it changed 1 names; see `backout classify`");
    assert_eq!(world.text("a"), "1\n");
    world.did(["undo"]);
    assert!(!world.has("a"));
}

#[test]
fn a_program_that_somebody_writes_is_not_run() {
    let world = World::new();
    fs::copy("/bin/true", world.path("tool")).unwrap();
    let _held = fs::File::options().write(true).open(world.path("tool"));
    insta::assert_snapshot!(world.unmoved(["run", "--", "./tool"]), @"
    error: `./tool` was not run
      why: Text file busy (os error 26)
      next: check the command
    [exit code 126]
    ");
}

#[test]
fn a_watcher_that_dies_when_nothing_is_left_to_watch() {
    let world = World::new().file("a", "0");
    let mut command = world.command(&["run", "--", "sh", "-c", "echo 1 > a"]);
    command.env("BACKOUT_CRASH_AT", "run.ended");
    insta::assert_snapshot!(world.run(&mut command), @"
    note: recovered 9e3779b9  run sh -c 'echo 1 > a': its watcher died; what it had done is kept. Keep it with `backout recover --keep 9e3779b9`, take it back with `backout recover --rollback 9e3779b9`
    error: the command is no longer watched
      why: the process that watched it was ended by signal 6
      why: nothing of it was running any more
    [exit code 1]
    ");
    assert_eq!(world.text("a"), "1\n");
    world.did(["recover", "--rollback", "9e37"]);
    assert_eq!(world.text("a"), "0");
}

#[test]
fn what_a_command_of_another_store_left_running_is_not_ended_although_both_have_the_same_name() {
    // Ids are counted here, so the first command of each world has the same.
    let (one, other) = (World::new(), World::new());
    let pipe = one.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let line = "(read x; echo 1 > late) > /dev/null 2>&1 < pipe & exec true";
    assert_eq!(one.cli(["run", "--", "sh", "-c", line]).code, 0);
    let mut command = other.command(&["run", "--", "sh", "-c", "echo 1 > a"]);
    command.env("BACKOUT_CRASH_AT", "run.ended");
    let ran = other.run(&mut command).to_string();
    assert!(ran.contains("its watcher died"), "{ran}");
    // Whoever waits at the pipe is there, or the file cannot be opened.
    let mut tries = 0..2000;
    let mut go = loop {
        let opened = fs::File::options()
            .write(true)
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
            .open(&pipe);
        match opened {
            Ok(file) => break file,
            Err(error) => assert!(tries.next().is_some(), "{error}"),
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    go.write_all(b"go\n").unwrap();
    drop(go);
    while !one.has("late") || one.text("late").is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_eq!(one.text("late"), "1\n");
}
