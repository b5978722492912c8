//! A power cut while a command runs under `run`, as it is by default: the log is not synced before each call.
//!
//! Whatever the cut leaves, nothing that the command removed is gone: it is where it was, or an undo brings it back, and
//! what the log did not tell was said as a doubt.

use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use super::fuse::Served;
use super::log::{Fate, History, Recorder};
use super::story::{BTRFS, EXT4, Kind, Mounted, XFS};
use crate::random::Random;
use crate::world::{World, memory, said};

/// So many images for each file system.
const IMAGES: usize = 24;

/// So many files are removed, a few at a time; syncs of another file commit what the file system did so far.
const FILES: usize = 60;

/// Removes one file after the other for two and a half seconds, with a sync of some other file now and then.
const LINE: &str = "rm deep/er/one; echo > other; for i in $(seq 0 59); do rm f$i; [ $((i % 7)) = 0 ] && echo $i >> other && sync other; sleep 0.04; done; rm -r deep";

fn content(number: usize) -> String {
    format!("file {number} {}\n", "x".repeat(number * 10))
}

#[test]
fn ext4_when_the_power_fails_under_a_command() {
    nothing_is_gone_on(EXT4);
}

#[test]
fn xfs_when_the_power_fails_under_a_command() {
    nothing_is_gone_on(XFS);
}

#[test]
fn btrfs_when_the_power_fails_under_a_command() {
    nothing_is_gone_on(BTRFS);
}

fn nothing_is_gone_on(kind: Kind) {
    let place = tempfile::tempdir().unwrap();
    let (mut history, first, last) = recorded(kind, place.path());
    let mut random = Random::new(3);
    let mut cuts: Vec<(usize, Fate)> = (0..IMAGES)
        .map(|number| {
            let fate = [Fate::Lost, Fate::Kept, Fate::Scattered][number % 3];
            (first + random.below(last - first + 1), fate)
        })
        .collect();
    cuts.sort_by_key(|(position, _)| *position);
    let mut doubts = 0;
    for (position, fate) in cuts {
        let image = history.image(position, fate, &mut random);
        let file = tempfile::NamedTempFile::new_in(memory()).unwrap();
        image.save(file.path(), history.size());
        let mounted = Mounted::new(file.path(), kind, place.path());
        doubts += usize::from(judge(&mounted.world(), &format!("{fate:?} at {position}")));
    }
    eprintln!("{}: {doubts} of {IMAGES} in doubt", kind.0);
}

/// Runs the command on a recorded disk; gives all that reached it, and between which positions the command ran.
fn recorded(kind: Kind, place: &std::path::Path) -> (History, usize, usize) {
    let recorder = Arc::new(Recorder::new(kind.1 * 1024 * 1024));
    let served = Served::new(recorder.clone());
    let made = Command::new(format!("/sbin/mkfs.{}", kind.0))
        .arg("-q")
        .arg(served.file())
        .status();
    assert!(made.unwrap().success());
    let mounted = Mounted::new(&served.file(), kind, place);
    fs::create_dir(mounted.work()).unwrap();
    let world = mounted.world();
    for number in 0..FILES {
        world.file(&format!("f{number}"), &content(number));
    }
    for name in ["one", "two"] {
        world.file(&format!("deep/er/{name}"), &format!("{name}\n"));
    }
    rustix::fs::syncfs(fs::File::open(mounted.work()).unwrap()).unwrap();
    // What it takes to begin is another story.
    world.ok(&["run", "--", "true"]);
    let begun = || !world.path("deep/er/one").exists();
    let child = world
        .command(&["run", "--", "bash", "-c", LINE])
        .env("BACKOUT_TEST_BOOT", "before-the-power-cut")
        .spawn()
        .unwrap();
    crate::commands::wait_for(begun);
    std::thread::sleep(Duration::from_millis(100));
    let first = recorder.position();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let last = recorder.position();
    let history = recorder.to_history();
    drop(mounted);
    (history, first, last)
}

/// Recovers and takes the command back; tells whether something was in doubt.
fn judge(world: &World, when: &str) -> bool {
    let recovered = world.run(&["recover"]);
    let told = said(&recovered);
    let is_doubt = told.contains("in doubt");
    assert_eq!(recovered.status.success(), !is_doubt, "{when}: {told}");
    let log = world.json(&["log", "-n", "10"]);
    let operations = log["operations"].as_array().unwrap();
    let ours = operations
        .iter()
        .find(|op| op["summary"].as_str().unwrap().contains("seq 0 59"));
    let mut undone = String::new();
    if let Some(operation) = ours.filter(|op| op["targets"] != serde_json::json!([])) {
        let id = operation["id"].as_str().unwrap();
        let undo = world.run(&["undo", "--committed", "--force", "--partial", id]);
        undone = said(&undo);
    }
    let mut expected: Vec<(String, String)> = (0..FILES)
        .map(|number| (format!("f{number}"), content(number)))
        .collect();
    expected.extend(["one", "two"].map(|name| (format!("deep/er/{name}"), format!("{name}\n"))));
    for (name, content) in expected {
        assert!(
            world.read(&name) == content,
            "{when}: {name} is gone: {}\n{told}\n{undone}",
            world.read(&name)
        );
    }
    let verified = world.run(&["verify"]);
    assert!(verified.status.success(), "{when}: {}", said(&verified));
    is_doubt
}
