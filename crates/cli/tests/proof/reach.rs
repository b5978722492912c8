//! What is kept but out of reach: by a copy of the store, on a file system that is not mounted, in a state directory that
//! was moved. Nothing of it is given up, used by the wrong one, or waited for.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::commands::{kill_both, wait_for};
use crate::disk::Disk;
use crate::world::{World, said};

/// Lets everything expire that may.
const EMPTY: [&str; 5] = ["gc", "--keep", "0s", "--keep-at-least", "0s"];

/// A file system that can be taken away and brought back: one in memory, seen through a second mount.
struct Drive {
    disk: Disk,
    at: PathBuf,
}

impl Drive {
    /// Mounts it at a name in the world.
    fn in_world(world: &World, name: &str) -> Self {
        let (disk, at) = (Disk::memory(1024), world.path(name));
        fs::create_dir(&at).unwrap();
        let drive = Self { disk, at };
        drive.mount();
        drive
    }

    fn mount(&self) {
        let mut mount = Command::new("mount");
        mount.arg("--bind").arg(self.disk.root()).arg(&self.at);
        assert!(mount.status().unwrap().success());
    }

    fn unmount(&self) {
        let mut unmount = Command::new("umount");
        unmount.arg("-l").arg(&self.at);
        assert!(unmount.status().unwrap().success());
    }
}

impl Drop for Drive {
    fn drop(&mut self) {
        let _gone = Command::new("umount").arg("-l").arg(&self.at).output();
    }
}

/// Copies the state directory and gives the place of the copy.
fn copied(world: &World) -> PathBuf {
    let copy = world.scratch("copy");
    let mut copying = Command::new("cp");
    copying.arg("-a").arg(world.state()).arg(&copy);
    assert!(copying.status().unwrap().success());
    copy
}

fn in_copy(world: &World, copy: &std::path::Path, arguments: &[&str]) -> String {
    let mut command = world.command(arguments);
    command.env("BACKOUT_STATE_DIR", copy);
    said(&command.output().unwrap())
}

/// Gives all that is said by what ends with 1.
fn refused(world: &World, arguments: &[&str]) -> String {
    let output = world.run(arguments);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    said(&output)
}

#[test]
fn a_copy_of_the_store_neither_uses_nor_removes_what_the_first_one_keeps() {
    let world = World::new();
    let _drive = Drive::in_world(&world, "m");
    for name in ["d/x", "m/e/x"] {
        world.file(name, "kept\n");
    }
    world.ok(&["rm", "-r", "d"]);
    world.ok(&["rm", "-r", "m/e"]);
    let copy = copied(&world);
    for step in ["@", "@-1"] {
        let told = in_copy(&world, &copy, &["undo", step]);
        assert!(told.contains("of which this one is a copy"), "{told}");
        assert!(!told.contains("status: 0"), "{told}");
    }
    let told = in_copy(&world, &copy, &["doctor", "--repair"]);
    let away = "2 kept inodes out of reach; nothing is given up";
    assert!(told.contains(away), "{told}");
    in_copy(&world, &copy, &EMPTY);
    // What the copy keeps itself is its own, there too.
    world.file("m/own/x", "own\n");
    in_copy(&world, &copy, &["rm", "-r", "m/own"]);
    in_copy(&world, &copy, &["undo"]);
    assert_eq!(world.read("m/own/x"), "own\n");
    world.ok(&["undo", "@"]);
    world.ok(&["undo", "@-1"]);
    assert_eq!(world.read("d/x"), "kept\n");
    assert_eq!(world.read("m/e/x"), "kept\n");
}

#[test]
fn what_is_kept_on_a_file_system_that_is_not_mounted_is_not_given_up() {
    let world = World::new();
    let drive = Drive::in_world(&world, "m");
    world.file("m/d/x", "precious\n");
    world.ok(&["rm", "-r", "m/d"]);
    drive.unmount();
    for arguments in [&["undo"][..], &["verify"], &["doctor", "--repair"]] {
        let told = refused(&world, arguments);
        assert!(told.contains("is not mounted: mount it"), "{told}");
        assert!(!told.contains("moved"), "{told}");
    }
    drive.mount();
    world.ok(&["verify"]);
    world.ok(&["undo"]);
    assert_eq!(world.read("m/d/x"), "precious\n");
}

#[test]
fn what_is_kept_in_a_state_directory_that_was_moved_is_not_given_up() {
    let world = World::new();
    world.file("d/x", "precious\n");
    world.ok(&["rm", "-r", "d"]);
    let moved = world.scratch("moved");
    fs::rename(world.state(), &moved).unwrap();
    for arguments in [&["undo"][..], &["verify"], &["doctor", "--repair"]] {
        let told = in_copy(&world, &moved, arguments);
        assert!(told.contains("move that back to"), "{told}");
        assert!(!told.contains("copy"), "{told}");
    }
    // It is the same store, and writes as such.
    let told = in_copy(&world, &moved, &["write", "other", "--text", "1\n"]);
    assert!(told.contains("wrote"), "{told}");
    fs::rename(&moved, world.state()).unwrap();
    world.ok(&["undo", "@-1"]);
    assert_eq!(world.read("d/x"), "precious\n");
    world.check_store();
}

#[test]
fn a_dead_command_whose_file_system_is_gone_holds_up_nobody_and_can_be_ended() {
    for decision in [&["--keep"][..], &["--rollback"]] {
        let world = World::new();
        let drive = Drive::in_world(&world, "m");
        world.file("m/g", "0\n");
        world.file("z", "0\n");
        let line = "rm m/g; echo 1 > z; touch ready; sleep 60";
        let mut child = world.spawn(&["run", "--", "bash", "-c", line]);
        wait_for(|| world.path("ready").exists());
        kill_both(&mut child);
        drive.unmount();
        world.ok(&["write", "other", "--text", "1\n"]);
        let told = refused(&world, &["recover"]);
        assert!(told.contains("not mounted: mount it"), "{told}");
        assert!(!told.contains("--parents"), "{told}");
        // It is said of the command, and the recovery goes on.
        assert!(told.contains("run bash -c"), "{told}");
        let id = newest_run(&world);
        let arguments = [&["recover"], decision, &[&id]].concat();
        let told = said(&world.run(&arguments));
        let unseen = "` was is out of reach, and nobody looked what became of the files there: ";
        assert!(told.contains(unseen), "{told}");
        if decision == ["--rollback"] {
            let told = said(&world.run(&["recover", "--rollback", &id, "--force"]));
            let way = "its watcher died, and not all of it could be taken back. Put right what stands in the way and type";
            assert!(told.contains(way), "{told}");
            assert!(told.contains("recover --keep"), "{told}");
            assert!(!told.contains("--force"), "{told}");
            assert_eq!(world.read("z"), "0\n");
            world.ok(&["recover", "--keep", &id]);
        } else {
            assert_eq!(world.read("z"), "1\n");
        }
        assert_eq!(world.json(&["status"])["stuck"], serde_json::json!([]));
        // What was out of reach is back with its file system.
        drive.mount();
        world.ok(&["undo", &id, "--force"]);
        assert_eq!(world.read("m/g"), "0\n");
    }
}

fn newest_run(world: &World) -> String {
    let log = world.json(&["log"]);
    let operations = log["operations"].as_array().unwrap();
    let run = operations.iter().find(|op| op["verb"] == "run").unwrap();
    run["id"].as_str().unwrap().to_owned()
}
