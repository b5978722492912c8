//! Ctrl-C in the window of a watch, by the real program: what was being watched goes back, that is told as what it is, and a
//! rollout goes on from there.

use std::os::unix::process::CommandExt as _;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::rollout::{config, servers, signal, start, state, until, words, writes};
use crate::ruled::ruled;
use crate::world::{World, said};

/// A watch that takes long and looks by touching a file beside the world.
fn watch(paths: &str) -> String {
    format!(
        "[[watch]]\nname = 'up'\npaths = ['{paths}']\nwindow = '1h'\npause = '50ms'\ncommand = ['sh', '-c', 'touch ../looked']\n"
    )
}

fn until_watched(world: &World) {
    let looked = world.path("../looked");
    until("it is watched", || looked.exists());
}

/// What set the newest undo off.
fn trigger(world: &World) -> String {
    let log = world.json(&["log"]);
    let operations = log["operations"].as_array().unwrap();
    let undo = operations.iter().find(|it| it["verb"] == "undo").unwrap();
    undo["trigger"]["kind"].as_str().unwrap().to_owned()
}

#[test]
fn a_rollout_goes_on_after_ctrl_c_in_the_window_of_a_watch() {
    let world = servers(3);
    world.file("backout.toml", &watch("s02/*"));
    let child = world.spawn(&words(&start(3, &["--wave", "2"])));
    until_watched(&world);
    signal(&child, Signal::INT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    assert_eq!(state(&world), "interrupted");
    assert_eq!(world.read(&config(2)), "old 2\n");
    assert_eq!(trigger(&world), "manual-abort");
    world.file("backout.toml", "");
    world.ok(&["rollout", "resume"]);
    assert_eq!(state(&world), "done");
    assert_eq!(world.read(&config(2)), "new\n");
    assert_eq!(writes(&world), (3, 4));
    world.check_store();
}

#[test]
fn a_write_that_ctrl_c_ends_in_its_window_was_aborted_by_hand() {
    let world = ruled(&watch("a"));
    world.file("a", "old\n");
    let child = world.spawn(&["write", "a", "--text", "new\n"]);
    until_watched(&world);
    signal(&child, Signal::INT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    assert_eq!(world.read("a"), "old\n");
    assert_eq!(trigger(&world), "manual-abort");
}

#[test]
fn ctrl_c_in_the_window_of_a_watch_takes_a_command_back() {
    for is_group in [false, true] {
        let world = ruled(&watch("a"));
        world.file("a", "old\n");
        let mut command = world.command(&["run", "--", "sh", "-c", "echo new > a"]);
        command.process_group(0);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        until_watched(&world);
        let pid = Pid::from_child(&child);
        if is_group {
            kill_process_group(pid, Signal::INT).unwrap();
        } else {
            kill_process(pid, Signal::INT).unwrap();
        }
        let output = child.wait_with_output().unwrap();
        let told = said(&output);
        assert_eq!(output.status.code(), Some(130), "{told}");
        assert_eq!(world.read("a"), "old\n", "{told}");
        assert!(
            told.contains("somebody stopped it before the watch was over"),
            "{told}"
        );
        assert_eq!(trigger(&world), "manual-abort");
        world.check_store();
    }
}
