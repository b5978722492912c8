//! The log of a command runs out of room, is damaged, or is lost: nothing that was not noted happens, and what cannot be
//! told is said.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::bad_days::supervisor_of;
use super::behaviour::wait_for;
use crate::disk::Disk;
use crate::world::{Tree, World, said};

/// Every kind of note, many times: contents, moves, removals, metadata.
const LINE: &str = "for i in 1 2 3 4 5 6 7 8; do echo new >> f$i; mv m$i n$i; chmod 600 f$i; rm r$i; mkdir d$i; mv s$i f$i; \
                    ln f$i l$i; done 2> /dev/null; true";

/// A world whose state is on a small disk of its own.
fn on_disks() -> (Disk, Disk, World) {
    let (work, state) = (Disk::memory(8 * 1024), Disk::memory(2 * 1024));
    let world = World::at(&work.path(), Some(&state.root().join("state")));
    for number in 1..=8 {
        world.file(&format!("f{number}"), &"x".repeat(1500 * number));
        for name in ["m", "r", "s"] {
            world.file(&format!("{name}{number}"), &format!("{name}{number}\n"));
        }
    }
    (work, state, world)
}

/// Leaves so many KiB of room.
fn leave(disk: &Disk, kib: usize) {
    disk.fill();
    let filler = fs::File::options()
        .write(true)
        .open(disk.root().join("filler"))
        .unwrap();
    let size = filler.metadata().unwrap().len();
    let room = u64::try_from(kib * 1024).unwrap();
    filler.set_len(size.saturating_sub(room)).unwrap();
}

/// Tells the story with so much room for the log, and takes it back.
fn there_and_back(room: usize, crash: Option<&str>) -> bool {
    let (_work, state, world) = on_disks();
    world.ok(&["run", "--", "sh", "-c", "touch first; rm first"]);
    let before = world.tree().without_directory_times();
    leave(&state, room);
    let mut command = world.command(&["run", "--", "bash", "-c", LINE]);
    command.env("BACKOUT_CRASH_AT", crash.unwrap_or("never"));
    let output = command.output().unwrap();
    let told = said(&output);
    state.empty();
    let recovered = world.run(&["recover"]);
    let again = said(&recovered);
    assert!(recovered.status.success(), "{room}: {told}\n{again}");
    let after = world.tree().without_directory_times();
    let is_changed = after != before;
    if is_changed {
        let undone = world.run(&["undo", "@"]);
        assert!(
            undone.status.success(),
            "{room}: {told}\n{again}\n{}\n{}",
            said(&undone),
            after.difference(&before)
        );
    }
    let now = world.tree().without_directory_times();
    assert!(
        now == before,
        "{room}: {told}\n{again}\n{}",
        now.difference(&before)
    );
    world.check_store();
    is_changed
}

#[test]
fn a_log_without_room_lets_nothing_pass_that_it_does_not_tell() {
    let changed: Vec<bool> = (0..30)
        .map(|step| there_and_back(step * 12, None))
        .collect();
    assert!(changed.contains(&true) && changed.contains(&false));
}

#[test]
fn a_watcher_that_dies_with_a_full_log_leaves_one_that_can_be_read() {
    for step in 0..12 {
        there_and_back(step * 28, Some("run.ended"));
    }
}

/// The disk is full for a while; then the command goes on, and at its end the watcher dies.
fn full_for_a_while(room: usize) {
    let (_work, state, world) = on_disks();
    world.ok(&["run", "--", "sh", "-c", "touch first; rm first"]);
    let before = world.tree().without_directory_times();
    leave(&state, room);
    let line = format!("{LINE}; echo ready; read go; {LINE}; for i in 1 2 3; do rm f$i; done");
    let mut child = world
        .command(&["run", "--", "bash", "-c", &line])
        .env("BACKOUT_CRASH_AT", "run.ended")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said_ready = [0; 6];
    let begun = child.stdout.as_mut().unwrap().read_exact(&mut said_ready);
    state.empty();
    if begun.is_ok() {
        child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    }
    let told = said(&child.wait_with_output().unwrap());
    let again = said(&world.run(&["recover"]));
    let undone = world.run(&["undo", "@"]);
    let now = world.tree().without_directory_times();
    assert!(
        now == before,
        "{room}: {told}\n{again}\n{}\n{}",
        said(&undone),
        now.difference(&before)
    );
    world.check_store();
}

#[test]
fn what_comes_after_a_note_that_could_not_be_written_is_read() {
    for step in 1..14 {
        full_for_a_while(step * 20);
    }
}

/// Runs a script until it is ready, and kills everybody: those who watch it first. Gives the log that is left.
fn abandoned(world: &World, script: &str) -> PathBuf {
    let script = format!("{script}; touch ready; sleep 600");
    let mut child = world.spawn(&["run", "--", "bash", "-c", &script]);
    wait_for(|| world.path("ready").exists());
    let front = child.id().cast_signed();
    let watcher = supervisor_of(child.id());
    let command = supervisor_of(watcher.cast_unsigned());
    kill(Pid::from_raw(front), Signal::SIGSTOP).unwrap();
    for pid in [watcher, front, command] {
        kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    }
    child.wait().unwrap();
    wait_for(|| {
        let stat = fs::read_to_string(format!("/proc/{watcher}/stat"));
        stat.is_err() || stat.is_ok_and(|stat| stat.contains(") Z"))
    });
    let logs = fs::read_dir(world.state().join("captures")).unwrap();
    let mut logs = logs.map(|entry| entry.unwrap().path());
    logs.find(|path| path.extension().is_none() && path.is_file())
        .unwrap()
}

#[test]
fn a_log_that_is_damaged_in_the_middle_is_a_doubt() {
    let world = World::new();
    world.file("a", "one\n");
    world.file("b", "two\n");
    world.file("c", "three\n");
    let log = abandoned(&world, "echo 1 > a; rm b; echo 3 > c");
    let file = fs::File::options().write(true).open(&log).unwrap();
    file.write_all_at(b"damage", 40).unwrap();
    let told = world.run(&["recover"]);
    assert_eq!(told.status.code(), Some(1), "{}", said(&told));
    let told = said(&told);
    assert!(
        told.contains("in doubt") && told.contains("damaged"),
        "{told}"
    );
    assert!(log.exists(), "what is left of it can be looked at");
    // What the rest tells can be taken back.
    world.ok(&["undo", "--force"]);
    assert_eq!(world.read("b"), "two\n");
    assert_eq!(world.read("c"), "three\n");
}

#[test]
fn what_a_lost_log_does_not_tell_is_found_in_the_depot() {
    let world = World::new();
    world.file("deep/er/gone", "kept\n");
    let before = Tree::of(&world.path("deep")).without_directory_times();
    let log = abandoned(&world, "rm -r deep");
    // As a loss of power leaves it.
    fs::write(log, "").unwrap();
    let output = world.run(&["recover"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let told = said(&output);
    assert!(
        told.contains("in doubt") && told.contains("deep/er/gone"),
        "{told}"
    );
    for sentence in [
        "its log lost the note of `",
        "had is lost; an undo makes it like the directory above",
    ] {
        assert!(told.contains(sentence), "{told}");
    }
    world.ok(&["undo", "--force"]);
    let now = Tree::of(&world.path("deep")).without_directory_times();
    assert!(now == before, "{}", now.difference(&before));
}

#[test]
fn a_command_that_ends_on_a_full_disk_ran_and_that_is_what_is_said() {
    let (_work, state, world) = on_disks();
    world.ok(&["run", "--", "sh", "-c", "touch first; rm first"]);
    let before = world.tree().without_directory_times();
    let line = "echo new > f1; rm r1; echo ready; read go";
    let mut child = world
        .command(&["run", "--", "bash", "-c", line])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said_ready = [0; 6];
    let output = child.stdout.as_mut().unwrap();
    output.read_exact(&mut said_ready).unwrap();
    state.fill();
    child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let told = said(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    for sentence in [
        "the command ran, but what it did is not recorded yet",
        "what it replaced is kept, and its log tells what it did",
        "then run `backout recover`: it settles operation ",
    ] {
        assert!(told.contains(sentence), "{told}");
    }
    for untrue in ["nothing was written", "does not happen"] {
        assert!(!told.contains(untrue), "{told}");
    }
    let after = world.tree().without_directory_times();
    assert!(after != before);
    // And so it is: with room, the recovery settles it.
    state.empty();
    world.ok(&["recover"]);
    assert!(world.tree().without_directory_times() == after);
    world.ok(&["undo", "@"]);
    let now = world.tree().without_directory_times();
    assert!(now == before, "{}", now.difference(&before));
    world.check_store();
}
