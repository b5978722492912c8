//! A verdict is carried out whole, whoever is in the way: what a command left running, another agent, Ctrl-C, a death.

use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::Value;

use super::{json, ruled, script, waits};
use crate::world::{World, said};

/// Tells whether a process runs that was started with this word.
fn is_running(word: &str) -> bool {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let mut lines = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.any(|line| {
        line.split(|byte| *byte == 0)
            .any(|it| it == word.as_bytes())
    })
}

/// Waits until a process runs that was started with this word.
fn until_running(word: &str) {
    for _ in 0..3000 {
        if is_running(word) {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{word} never ran");
}

/// A world with a check of `f` that takes so many seconds and says no. Gives a word by which it is known.
fn slow_check(seconds: &str, operation: &str) -> (World, String) {
    let world = ruled("");
    let program = world.scratch("slow").display().to_string();
    script(&world, "slow", &format!("sleep {seconds}; exit 1"));
    world.file(
        "backout.toml",
        &format!("[[check]]\nname = 'slow'\npaths = ['f']\noperations = ['{operation}']\ncommand = ['{program}']\ntimeout = '1m'\n"),
    );
    (world, program)
}

const BOB: [&str; 6] = ["--agent", "bob", "write", "f", "--text", "bob's\n"];

/// A command that breaks a rule and leaves somebody running who writes what he has open.
const LEAVING: &str = "echo '{' > a.json; \
    (exec >> log 2> /dev/null < /dev/null; while :; do echo more; sleep 0.01; done) & \
    until grep -q more log; do sleep 0.01; done";

#[test]
fn a_death_between_the_end_of_what_was_left_and_the_way_back_loses_nothing() {
    let world = ruled("[syntax]\n");
    world.file("log", "0\n");
    let before = world.tree();
    let mut run = world.command(&["run", "--", "sh", "-c", LEAVING]);
    let run = run.env("BACKOUT_CRASH_AT", "run.rest-ended");
    let died = run.output().unwrap();
    assert!(!died.status.success(), "{}", said(&died));
    world.run(&["recover"]);
    let log = world.json(&["log", "-n", "10"])["operations"].clone();
    let log = log.as_array().unwrap().iter();
    let stuck: Vec<&str> = log
        .filter(|it| it["status"] == "interrupted")
        .map(|it| it["id"].as_str().unwrap())
        .collect();
    assert!(!stuck.is_empty());
    for id in stuck {
        world.ok(&["recover", "--rollback", id]);
    }
    assert!(world.tree().without_times() == before.without_times());
    world.check_store();
}

#[test]
fn what_a_refused_command_left_running_is_ended_first_and_nothing_is_unrecorded() {
    let world = ruled("[syntax]\n");
    world.file("log", "0\n");
    let before = world.tree();
    let output = world.run(&["--json", "run", "--", "sh", "-c", LEAVING]);
    let ran: Value =
        serde_json::from_slice(output.stderr.split(|it| *it == b'\n').next().unwrap()).unwrap();
    assert_eq!(ran["status"], "undone", "{ran}");
    let notes = ran["notes"].to_string();
    assert!(
        notes.contains("what it left running was ended before it was taken back: sh"),
        "{ran}"
    );
    assert!(world.tree().without_times() == before.clone().without_times());
    // Nobody is at work any more, and nothing is written by anybody.
    let survivors = ran["end"]["survivors"].as_array().unwrap();
    let shell = survivors[0].as_str().unwrap();
    let pid = shell.trim_start_matches("sh (").trim_end_matches(')');
    let is_ended = |pid: &str| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"));
        status.is_err() || status.is_ok_and(|it| it.contains("State:\tZ"))
    };
    assert!(is_ended(pid), "{ran}");
    let act = ran["undone"]["act"].as_str().unwrap();
    world.ok(&["redo", &act[..8]]);
    assert_eq!(world.read("a.json"), "{\n");
    assert!(world.read("log").starts_with("0\nmore\n"));
    let log = world.read("log");
    world.ok(&["undo"]);
    assert!(world.tree().without_times() == before.without_times());
    assert!(!log.is_empty());
    world.check_store();
}

#[test]
fn another_agent_waits_for_the_verdict_on_what_it_is_about_to_write() {
    let (world, program) = slow_check("2", "run");
    let mut run = world.command(&["--json", "run", "--", "sh", "-c", "echo 1 > f; echo 1 > g"]);
    let run = run.stderr(Stdio::piped()).spawn().unwrap();
    until_running(&program);
    // What the command did not touch waits for nobody.
    world.ok(&["--agent", "bob", "write", "h", "--text", "x"]);
    assert!(is_running(&program));
    let bob = world.run(&BOB);
    assert!(bob.status.success(), "{}", said(&bob));
    assert!(
        said(&bob).contains("waiting for the checks of "),
        "{}",
        said(&bob)
    );
    let output = run.wait_with_output().unwrap();
    let ran: Value =
        serde_json::from_slice(output.stderr.split(|it| *it == b'\n').next().unwrap()).unwrap();
    assert_eq!(ran["status"], "undone", "{ran}");
    assert_eq!(world.read("f"), "bob's\n");
    assert!(!world.path("g").exists(), "{ran}");
    world.ok(&["undo", "f"]);
    assert!(!world.path("f").exists());
    world.check_store();
}

#[test]
fn who_waits_too_long_for_a_verdict_is_told_why_and_the_verdict_is_whole() {
    let (world, program) = slow_check("13", "run");
    let mut run = world.command(&["--json", "run", "--", "sh", "-c", "echo 1 > f; echo 1 > g"]);
    let run = run.stderr(Stdio::piped()).spawn().unwrap();
    until_running(&program);
    let told = json(&world, 1, &BOB);
    assert_eq!(told["code"], "busy", "{told}");
    let why = told["why"].to_string();
    assert!(
        why.contains(") wrote it, and its checks still run: what they say comes first"),
        "{told}"
    );
    assert!(
        told["next"]
            .to_string()
            .contains("try again when they are over; "),
        "{told}"
    );
    let output = run.wait_with_output().unwrap();
    let ran: Value =
        serde_json::from_slice(output.stderr.split(|it| *it == b'\n').next().unwrap()).unwrap();
    assert_eq!(ran["status"], "undone", "{ran}");
    assert!(!world.path("f").exists() && !world.path("g").exists());
    world.ok(&BOB);
    world.check_store();
}

#[test]
fn ctrl_c_while_a_program_checks_is_no_finding_of_that_program() {
    let (world, program) = slow_check("2", "write");
    world.file("f", "old\n");
    let mut write = world.command(&["write", "f", "--text", "new"]);
    let write = write
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let write = write.spawn().unwrap();
    until_running(&program);
    killpg(
        Pid::from_raw(write.id().try_into().unwrap()),
        Signal::SIGINT,
    )
    .unwrap();
    let output = write.wait_with_output().unwrap();
    let told = said(&output);
    assert_eq!(output.status.code(), Some(130), "{told}");
    assert!(!told.contains("check `slow`"), "{told}");
    assert_eq!(world.read("f"), "old\n");
    assert_eq!(world.operations(), []);
    world.check_store();
}

#[test]
fn what_was_approved_and_died_in_its_watch_waits_again() {
    for point in ["engine.armed", "engine.watching"] {
        let world = ruled(
            "[protect]\nask = ['f']\n[[watch]]\nname = 'w'\npaths = ['f']\ncommand = ['true']\n",
        );
        world.file("f", "old\n");
        let id = waits(&world, &BOB);
        let mut approve = world.command(&["approve", &id]);
        let died = approve.env("BACKOUT_CRASH_AT", point).output().unwrap();
        assert!(died.status.signal().is_some(), "{point}: {}", said(&died));
        let told = world.run(&["recover"]);
        assert!(
            said(&told).contains("nothing of it is there; it waits for a decision again as "),
            "{point}: {}",
            said(&told)
        );
        assert_eq!(world.read("f"), "old\n", "{point}");
        let waiting = world.json(&["pending"])["proposals"].clone();
        let again = waiting[0]["id"].as_str().unwrap().to_owned();
        assert_ne!(again[..8], id, "{waiting}");
        assert_eq!(waiting[0]["agent"], "bob");
        world.ok(&["approve", &again]);
        assert_eq!(world.read("f"), "bob's\n");
        world.check_store();
    }
}

#[test]
fn ctrl_c_while_a_program_checks_what_a_command_wrote_takes_the_command_back() {
    let (world, program) = slow_check("20", "run");
    world.file("f", "old\n");
    let mut run = world.command(&["run", "--", "sh", "-c", "echo new > f"]);
    let run = run
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let run = run.spawn().unwrap();
    until_running(&program);
    killpg(Pid::from_raw(run.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    let output = run.wait_with_output().unwrap();
    let told = said(&output);
    assert_eq!(output.status.code(), Some(130), "{told}");
    assert!(
        told.contains("somebody stopped it before the checks were over"),
        "{told}"
    );
    assert!(!told.contains("check `slow`"), "{told}");
    assert_eq!(world.read("f"), "old\n");
    let log = world.json(&["log"]);
    let undo = &log["operations"][0];
    assert_eq!(undo["trigger"]["kind"], "manual-abort", "{log}");
    world.check_store();
}

#[test]
fn ctrl_c_that_ends_a_command_is_not_meant_for_its_checks() {
    let (world, program) = slow_check("0", "run");
    script(&world, "slow", "exit 0");
    let mut run = world.command(&["run", "--", "sh", "-c", "echo new > f; exec sleep 1000.25"]);
    let run = run
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let run = run.spawn().unwrap();
    until_running("1000.25");
    killpg(Pid::from_raw(run.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    let output = run.wait_with_output().unwrap();
    assert!(!is_running(&program));
    assert_eq!(world.read("f"), "new\n", "{}", said(&output));
    let log = world.json(&["log"]);
    assert_eq!(log["operations"][0]["status"], "committed", "{log}");
    world.check_store();
}

#[test]
fn another_agent_waits_for_the_watch_of_what_it_is_about_to_write() {
    let world = ruled("");
    let program = world.scratch("watching").display().to_string();
    script(&world, "watching", "sleep 2; exit 1");
    world.file(
        "backout.toml",
        &format!("[[watch]]\nname = 'slow'\npaths = ['f']\noperations = ['run']\ncommand = ['{program}']\ntries = 1\ntimeout = '1m'\n"),
    );
    let mut run = world.command(&["--json", "run", "--", "sh", "-c", "echo 1 > f; echo 1 > g"]);
    let run = run.stderr(Stdio::piped()).spawn().unwrap();
    until_running(&program);
    // What is not watched waits for nobody.
    world.ok(&["--agent", "bob", "write", "h", "--text", "x"]);
    assert!(is_running(&program));
    world.ok(&BOB);
    assert!(!is_running(&program));
    let output = run.wait_with_output().unwrap();
    let ran: Value =
        serde_json::from_slice(output.stderr.split(|it| *it == b'\n').next().unwrap()).unwrap();
    assert_eq!(ran["status"], "undone", "{ran}");
    assert_eq!(world.read("f"), "bob's\n");
    assert!(!world.path("g").exists(), "{ran}");
    world.ok(&["undo", "f"]);
    assert!(!world.path("f").exists());
    world.check_store();
}

#[test]
fn an_agents_redo_of_what_was_refused_does_not_take_anothers_write_along() {
    let world = ruled("[syntax]\n");
    world.file("f", "old\n");
    let line = "echo '{' > a.json; echo alice > f";
    world.fails(1, &["--agent", "alice", "run", "--", "sh", "-c", line]);
    world.ok(&BOB);
    let before = world.tree();
    let foreseen = world.run(&["--agent", "alice", "redo", "-n"]);
    assert!(said(&foreseen).contains("another agent's: needs --others"));
    let told = world.fails(1, &["--agent", "alice", "redo"]);
    assert!(
        told.contains("1 operation of other agents would have to go with it"),
        "{told}"
    );
    assert!(world.tree() == before);
    // Who wants it says so, and can have bob's again.
    world.ok(&["--agent", "alice", "redo", "--others"]);
    assert_eq!(world.read("f"), "alice\n");
    world.ok(&["undo"]);
    assert!(world.tree().without_times() == before.without_times());
}
