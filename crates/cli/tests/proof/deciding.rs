//! Who asks does not decide: not by another name, not without one, not from a process that left everything behind.

use std::process::Command;

use crate::ruled::{ruled, waits};
use crate::world::{World, said};

/// Something of bob's that waits.
fn waiting() -> (World, String) {
    let world = ruled("[protect]\nask = ['f']\n");
    world.file("f", "old\n");
    let id = waits(&world, &["--agent", "bob", "write", "f", "--text", "new\n"]);
    (world, id)
}

fn program() -> &'static str {
    env!("CARGO_BIN_EXE_backout")
}

/// Has a shell run a line as bob's process would.
fn as_bob(world: &World, line: &str) -> std::process::Output {
    let mut shell = Command::new("sh");
    let shell = shell.args(["-c", line]).current_dir(world.path(""));
    let shell = shell.env("BACKOUT_AGENT", "bob");
    shell
        .env("BACKOUT_STATE_DIR", world.state())
        .output()
        .unwrap()
}

#[test]
fn a_child_of_an_agent_cannot_approve_without_its_name() {
    let (world, id) = waiting();
    let state = world.state().display();
    for line in [
        format!("{} approve {id}", program()),
        format!("env -u BACKOUT_AGENT {} approve {id}; exit $?", program()),
        format!(
            "env -i BACKOUT_STATE_DIR={state} setsid -w {} approve {id}; exit $?",
            program()
        ),
        format!("{} --agent alice approve {id}; exit $?", program()),
    ] {
        let output = as_bob(&world, &line);
        assert_eq!(output.status.code(), Some(1), "{line}: {}", said(&output));
        assert!(
            said(&output).contains("who proposed a change cannot approve it"),
            "{line}: {}",
            said(&output)
        );
    }
    assert_eq!(world.read("f"), "old\n");
    // Somebody else can, and so can another agent.
    world.ok(&["--agent", "alice", "approve", &id]);
    assert_eq!(world.read("f"), "new\n");
}

#[test]
fn what_runs_inside_of_a_command_cannot_approve_however_it_leaves() {
    for capture in ["live", "scan"] {
        let (world, id) = waiting();
        let (state, told) = (world.state().display(), world.scratch("told"));
        let told = told.display();
        let approve = format!(
            "env -i PATH=$PATH BACKOUT_STATE_DIR={state} {} approve {id}",
            program()
        );
        // Nobody above it is left but the watcher.
        let orphan = format!(
            "(env -i PATH=$PATH setsid sh -c '{approve} > {told} 2>&1; echo over >> {told}' &)"
        );
        let wait = format!("until grep -q over {told}; do sleep 0.01; done; cat {told}");
        let lines = [approve.clone(), format!("{orphan}; {wait}")];
        for line in lines {
            let _gone = std::fs::remove_file(world.scratch("told"));
            let output = world.run(&["run", "--capture", capture, "--", "sh", "-c", &line]);
            let said = said(&output);
            assert_eq!(world.read("f"), "old\n", "{capture}: {line}: {said}");
            let waits = world.json(&["pending"])["proposals"].clone();
            assert_eq!(waits.as_array().unwrap().len(), 1, "{capture}: {said}");
        }
        world.ok(&["approve", &id]);
        assert_eq!(world.read("f"), "new\n");
    }
}

#[test]
fn a_rejection_is_recorded_with_what_set_it_off() {
    let (world, id) = waiting();
    world.ok(&["reject", &id, "--why", "not on a Friday"]);
    let log = world.json(&["log"]);
    let refused = &log["operations"][0];
    assert_eq!(refused["status"], "refused", "{log}");
    assert_eq!(refused["trigger"]["kind"], "user-rejection", "{log}");
    assert_eq!(refused["trigger"]["severity"], "medium", "{log}");
    assert_eq!(refused["trigger"]["why"], "not on a Friday", "{log}");
    let told = world.ok(&["log"]);
    assert!(told.contains("(user-rejection)"), "{told}");
    world.check_store();
    // What a rule refuses was rejected by nobody.
    world.file("backout.toml", "[protect]\ndeny = ['f']\n");
    world.run(&["write", "f", "--text", "x"]);
    let log = world.json(&["log"]);
    assert!(log["operations"][0]["trigger"].is_null(), "{log}");
}
