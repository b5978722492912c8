//! What is said while others are at work: of several commands the one that is meant is named, and nobody else.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::{Running, json, newest};
use crate::world::{World, said};

/// A mark and a command at work, each by somebody: what a rollback to the mark says of it.
fn rolled_back(mark: &[&str], command: &[&str]) -> (World, Value) {
    let world = World::new();
    for task in ["t", "u"] {
        world.ok(&["task", "begin", task]);
    }
    world.ok(&[mark, &["checkpoint", "c"]].concat());
    let running = Running::start(&world, command, "echo 1 > f", "true");
    let told = json(&world, 1, &["rollback", "--to", "c"]);
    assert_eq!(json(&world, 1, &["rollback", "--to", "c", "-n"]), told);
    assert_eq!(world.read("f"), "1\n");
    running.go_on(&world);
    (world, told)
}

#[test]
fn a_command_at_work_is_named_where_it_would_be_rolled_back_and_nowhere_else() {
    let (t, u) = (&["--task", "t"][..], &["--task", "u"][..]);
    let (ann, bob) = (&["--agent", "ann"][..], &["--agent", "bob"][..]);
    let both = &["--task", "t", "--agent", "ann"][..];
    for (mark, command) in [(&[][..], both), (t, t), (t, both), (ann, ann), (ann, both)] {
        let (world, told) = rolled_back(mark, command);
        assert_eq!(told["code"], "at-work", "{mark:?} {command:?}: {told}");
        let run = newest(&world, "run");
        assert!(told["what"].to_string().contains(&run), "{told}");
        world.ok(&["rollback", "--to", "c"]);
        assert!(!world.path("f").exists(), "{mark:?} {command:?}");
    }
    for (mark, command) in [
        (t, u),
        (t, &[][..]),
        (t, ann),
        (ann, bob),
        (ann, &[]),
        (ann, t),
    ] {
        let (world, told) = rolled_back(mark, command);
        assert_eq!(told["code"], "nothing", "{mark:?} {command:?}: {told}");
        // When it has ended it is not rolled back either.
        assert_eq!(
            json(&world, 1, &["rollback", "--to", "c"])["code"],
            "nothing"
        );
        assert_eq!(world.read("f"), "1\n");
    }
}

#[test]
fn a_command_that_was_at_work_before_a_mark_is_not_named_for_it() {
    let world = World::new();
    let running = Running::start(&world, &[], "echo 1 > f", "true");
    world.ok(&["checkpoint", "c"]);
    let told = json(&world, 1, &["rollback", "--to", "c"]);
    assert_eq!(told["code"], "nothing", "{told}");
    running.go_on(&world);
}

#[test]
fn of_two_commands_at_work_the_one_of_the_task_is_named() {
    let world = World::new();
    for task in ["t", "u", "v"] {
        world.ok(&["task", "begin", task]);
    }
    let first = Running::start(&world, &["--task", "t"], "echo 1 > f", "true");
    let second = Running::start(&world, &["--task", "u"], "echo 1 > g", "true");
    let log = world.json(&["log", "-n", "100"]);
    for task in ["t", "u"] {
        // Both touched the mark that they are ready, so there is a part of the first, too.
        let mut operations = log["operations"].as_array().unwrap().iter();
        let is_it = |op: &&Value| op["task"] == task && op["status"] == "armed";
        let run = &operations.find(is_it).unwrap()["id"].as_str().unwrap()[..8];
        let told = json(&world, 1, &["rollback", task]);
        assert_eq!(told["code"], "at-work", "{told}");
        assert!(told["what"].to_string().contains(run), "{told}");
    }
    let told = json(&world, 0, &["rollback", "v"]);
    assert_eq!(told["steps"], serde_json::json!([]), "{told}");
    first.go_on(&world);
    second.end();
    // Both have ended, and only the one of the task goes.
    world.ok(&["rollback", "u", "--only", "g"]);
    assert_eq!(
        (world.read("f").as_str(), world.path("g").exists()),
        ("1\n", false)
    );
}

#[test]
fn who_asks_from_inside_of_a_command_is_not_told_of_that_one() {
    let world = World::new();
    world.file("f", "0\n");
    let inside = format!("{} --json undo f 2> told", env!("CARGO_BIN_EXE_backout"));
    let running = Running::start(&world, &[], &format!("echo 1 > f; {inside}"), "true");
    let told: Value = serde_json::from_str(&world.read("told")).unwrap();
    assert_eq!(told["code"], "nothing", "{told}");
    assert!(!told.to_string().contains("at work"), "{told}");
    running.go_on(&world);
    assert_eq!(world.read("f"), "1\n");
}

#[test]
fn a_write_that_waited_for_a_stopped_watcher_says_so_to_programs_and_where_it_is_to_be_quiet() {
    let world = World::new();
    let running = Running::start(&world, &[], "echo 1 > f", "true");
    let watcher = Pid::from_raw(running.watcher());
    kill(watcher, Signal::SIGSTOP).unwrap();
    let mut write = world.command(&["--quiet", "write", "f", "--text", "mine"]);
    let mut child = write.stderr(Stdio::piped()).spawn().unwrap();
    let mut told = String::new();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    stderr.read_line(&mut told).unwrap();
    assert!(told.contains(&format!("`kill -CONT {watcher}`")), "{told}");
    let reply = world.json(&["write", "g", "--text", "mine"]);
    let waited = reply["waited"].to_string();
    assert!(
        waited.contains(&format!("`kill -CONT {watcher}`")),
        "{reply}"
    );
    assert!(
        waited.contains(&format!(
            "process {watcher} did not answer, so this went on without it: "
        )),
        "{reply}"
    );
    kill(watcher, Signal::SIGCONT).unwrap();
    child.wait().unwrap();
    running.go_on(&world);
    world.check_store();
}

#[test]
fn a_write_that_waits_for_a_stopped_watcher_says_so_and_how_to_let_it_go_on() {
    let world = World::new();
    let running = Running::start(&world, &[], "echo 1 > f", "true");
    let watcher = Pid::from_raw(running.watcher());
    kill(watcher, Signal::SIGSTOP).unwrap();
    let mut write = world.command(&["write", "f", "--text", "mine"]);
    let mut child = write.stderr(Stdio::piped()).spawn().unwrap();
    let mut told = String::new();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    stderr.read_line(&mut told).unwrap();
    kill(watcher, Signal::SIGCONT).unwrap();
    assert!(
        told.contains(&format!("waiting for process {watcher}")),
        "{told}"
    );
    let way_out = format!(
        "and was stopped: let it go on with `kill -CONT {watcher}`. In ten seconds this goes on without it"
    );
    assert!(told.contains(&way_out), "{told}");
    // It was asked before the write, so its part is recorded first and goes by itself.
    assert!(child.wait().unwrap().success());
    assert!(running.go_on(&world).status.success());
    assert_eq!(world.read("f"), "mine");
    world.ok(&["undo", "f"]);
    assert_eq!(world.read("f"), "1\n");
    world.check_store();
}

#[test]
fn an_undo_without_a_name_takes_back_the_command_whose_parts_stand_by_themselves() {
    let world = World::new();
    let (program, before) = (env!("CARGO_BIN_EXE_backout"), ["1\n", "2\n"]);
    world.file("a", before[0]);
    world.file("b", before[1]);
    let lines = [
        format!("{program} rm a; {program} rm b"),
        format!("{program} run -- sh -c '{program} rm a; rm b'"),
    ];
    for line in lines {
        world.ok(&["run", "--", "sh", "-c", &line]);
        assert!(!world.path("a").exists() && !world.path("b").exists());
        let plan = said(&world.run(&["undo", "-n"]));
        assert!(plan.contains("remove a"), "{plan}");
        world.ok(&["undo"]);
        assert_eq!([world.read("a"), world.read("b")], before, "{line}");
        world.ok(&["redo"]);
        assert!(!world.path("a").exists() && !world.path("b").exists());
        world.ok(&["undo"]);
        assert_eq!([world.read("a"), world.read("b")], before, "{line}");
    }
    world.check_store();
}

#[test]
fn a_forced_undo_beside_a_command_at_work_takes_back_first_what_that_wrote_on_top() {
    for then in ["true", "echo y >> f"] {
        let world = World::new();
        world.file("f", "1\n");
        let (ann, bob) = (&["--agent", "ann"][..], &["--agent", "bob"][..]);
        world.ok(&[ann, &["write", "f", "--text", "2\n"]].concat());
        let running = Running::start(&world, bob, "echo x >> f", then);
        let undo = [ann, &["undo", "--force"]].concat();
        // It is another agent's work, and that needs a word.
        let told = json(&world, 1, &undo);
        assert_eq!(told["code"], "needs-word", "{told}");
        assert_eq!(world.read("f"), "2\nx\n");
        let told = json(&world, 0, &[&undo[..], &["--others"]].concat());
        assert_eq!(told["steps"].as_array().map(Vec::len), Some(2), "{told}");
        let act = told["act"].as_str().unwrap().to_owned();
        assert_eq!(world.read("f"), "1\n");
        running.go_on(&world);
        let left = world.read("f");
        if then == "true" {
            // The journal says what is there, so the way back needs no force.
            world.ok(&["redo", &act]);
            assert_eq!(world.read("f"), "2\nx\n");
            world.ok(&["undo"]);
        } else {
            assert_eq!(left, "1\ny\n");
            world.ok(&["undo", "f"]);
        }
        assert_eq!(world.read("f"), "1\n");
        world.check_store();
    }
}
