//! Processes that a command leaves, and watchers that a command outlives: what they write is recorded, or they are ended.

use std::fs::{self, File};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use super::bad_days::supervisor_of;
use super::behaviour::wait_for;
use crate::world::{World, said};

/// Runs a command that leaves something running, lets that go on when the command is over, and waits until it is recorded.
fn left_running(world: &World, script: &str) -> usize {
    let output = world.run(&["run", "--", "bash", "-c", script]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("still running"), "{}", said(&output));
    fs::write(world.scratch("go"), "").unwrap();
    wait_for(|| world.json(&["status"])["unfinished"] == serde_json::json!([]));
    let done = world.operations();
    done.iter()
        .filter(|(_, status)| status == "committed")
        .count()
}

#[test]
fn what_is_written_by_a_file_that_was_open_is_recorded() {
    let world = World::new();
    world.file("log", "before\n");
    let script = "exec 3>> log; echo in time >&3
        (while [ ! -e ../go ]; do sleep 0.02; done; echo late >&3) > /dev/null 2>&1 &";
    assert_eq!(left_running(&world, script), 2);
    assert_eq!(world.read("log"), "before\nin time\nlate\n");
    world.ok(&["undo", "@"]);
    assert_eq!(world.read("log"), "before\nin time\n");
    world.ok(&["undo"]);
    assert_eq!(world.read("log"), "before\n");
    world.check_store();
}

#[test]
fn what_is_written_through_memory_is_recorded() {
    let world = World::new();
    world.file("map", &"a".repeat(8192));
    let script = "python3 -c \"
import mmap, os, time
f = open('map', 'r+b'); m = mmap.mmap(f.fileno(), 0); f.close()
if os.fork() == 0:
    null = os.open('/dev/null', os.O_RDWR)
    for number in (0, 1, 2): os.dup2(null, number)
    while not os.path.exists('../go'): time.sleep(0.02)
    m[0:5] = b'later'; m.flush()
\"";
    assert_eq!(left_running(&world, script), 2);
    assert!(world.read("map").starts_with("latera"));
    world.ok(&["undo", "@"]);
    assert_eq!(world.read("map"), "a".repeat(8192));
}

#[test]
fn what_stays_and_writes_nothing_is_no_operation() {
    let world = World::new();
    world.file("log", "before\n");
    let script = "exec 3>> log; echo in time >&3
        (while [ ! -e ../go ]; do sleep 0.02; done) > /dev/null 2>&1 &";
    assert_eq!(left_running(&world, script), 1);
    world.ok(&["undo"]);
    assert_eq!(world.read("log"), "before\n");
}

#[test]
fn a_command_does_not_outlive_its_watcher() {
    let world = World::new();
    world.file("log", "before\n");
    // The one that leaves its session says itself that it is there, and then waits without another call that is asked about.
    let script = "exec 3>> log; mkfifo pipe; (setsid sh -c 'touch ready; read x < pipe' &)
        while true; do echo on and on >&3; sleep 0.01; done";
    let child = world.spawn(&["run", "--", "bash", "-c", script]);
    wait_for(|| world.path("ready").exists());
    kill(Pid::from_raw(supervisor_of(child.id())), Signal::SIGKILL).unwrap();
    let output = child.wait_with_output().unwrap();
    let told = said(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(
        told.contains("what was left of it was ended: ") && told.contains("bash ("),
        "{told}"
    );
    assert!(told.contains(" sh ("), "{told}");
    let log = world.read("log");
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(world.read("log"), log, "nobody writes any more");
    world.ok(&["undo"]);
    assert_eq!(world.read("log"), "before\n");
    world.check_store();
}

/// A file system that never answers.
struct Mute {
    at: std::path::PathBuf,
    device: Option<File>,
}

impl Mute {
    fn new(at: std::path::PathBuf) -> Self {
        fs::create_dir(&at).unwrap();
        let device = File::options()
            .read(true)
            .write(true)
            .open("/dev/fuse")
            .unwrap();
        let number = device.as_raw_fd();
        let options = format!("fd={number},rootmode=40000,user_id=0,group_id=0\0");
        let options = std::ffi::CStr::from_bytes_with_nul(options.as_bytes()).unwrap();
        mount("mute", &at, "fuse.mute", MountFlags::empty(), Some(options)).unwrap();
        let device = Some(device);
        Self { at, device }
    }
}

impl Drop for Mute {
    fn drop(&mut self) {
        drop(self.device.take());
        let _gone = unmount(&self.at, UnmountFlags::DETACH);
    }
}

/// A command that changes a file and then waits for a file system that does not answer, and its watcher with it.
fn stuck(world: &World, options: &[&str]) -> (std::process::Child, Mute) {
    let mute = Mute::new(world.scratch("mute"));
    world.file("a", "before\n");
    let mut arguments = vec!["run"];
    arguments.extend(options);
    arguments.extend(["--", "bash", "-c", "echo after > a; echo x > ../mute/file"]);
    let mut command = world.command(&arguments);
    let child = command.stdin(Stdio::null()).spawn().unwrap();
    (child, mute)
}

fn judge_stuck(world: &World, child: std::process::Child) {
    let began = Instant::now();
    let output = child.wait_with_output().unwrap();
    let told = said(&output);
    assert!(began.elapsed() < Duration::from_secs(40), "{told}");
    assert!(
        told.contains("did not answer any more, and was ended"),
        "{told}"
    );
    world.ok(&["undo"]);
    assert_eq!(world.read("a"), "before\n");
}

#[test]
fn time_that_is_up_ends_a_watcher_that_is_stuck() {
    let world = World::new();
    let (child, mute) = stuck(&world, &["--timeout", "1s"]);
    judge_stuck(&world, child);
    drop(mute);
}

#[test]
fn a_signal_ends_a_watcher_that_is_stuck() {
    let world = World::new();
    let (child, mute) = stuck(&world, &[]);
    wait_for(|| world.read("a") == "after\n");
    std::thread::sleep(Duration::from_millis(500));
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    judge_stuck(&world, child);
    drop(mute);
}

/// Between the filter and the program a new process waits for nobody who is dead.
#[test]
fn a_watcher_that_dies_while_the_command_begins_leaves_nobody_waiting() {
    let world = World::new().of_user(12345);
    for _ in 0..3 {
        let mut child = world
            .command(&["run", "--", "sleep", "0.1"])
            .env("BACKOUT_CRASH_AT", "run.launched")
            .spawn()
            .unwrap();
        let began = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            assert!(began.elapsed() < Duration::from_secs(20), "it hangs");
            std::thread::sleep(Duration::from_millis(20));
        };
        assert!(
            status.code().is_some() || status.signal().is_some(),
            "{status}"
        );
        let told = said(&child.wait_with_output().unwrap());
        assert!(told.contains("no longer watched"), "{told}");
    }
}
