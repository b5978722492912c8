//! What is kept is kept: by processes that go on writing in it, by repairs, by `gc`, and across mounts.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{json, newest};
use crate::disk::Disk;
use crate::world::{World, said};

/// Opens a file as a process does that logs into it.
fn logging_into(path: &Path) -> fs::File {
    fs::File::options().append(true).open(path).unwrap()
}

/// Makes sure that everybody says the same of what was changed in its slot: it is there, and comes back by force.
fn changed_in_its_slot(world: &World, at: &str) {
    let verified = json(world, 1, &["verify"]);
    assert_eq!(verified["findings"].as_array().unwrap().len(), 0);
    assert_eq!(verified["not_undoable"].as_array().unwrap().len(), 0);
    assert_eq!(verified["undoable"].as_array().unwrap().len(), 1);
    assert!(verified["changed"][0]["why"].to_string().contains(at));
    let there =
        "changed after being kept; nothing is given up: with `--force` it comes back as it is now";
    let next = "nothing is given up: it comes back as it is now with `--force`; see which with `backout verify`";
    for (arguments, words) in [
        (&["verify"][..], there),
        (&["doctor"], next),
        (&["doctor", "--repair"], there),
    ] {
        let told = said(&world.run(arguments));
        assert!(told.contains(words), "{told}");
        assert!(!told.contains("save what can be saved"), "{told}");
    }
    let before = world.tree();
    for arguments in [&["undo", "-n"][..], &["undo"]] {
        let told = said(&world.run(arguments));
        assert!(told.contains(at), "{told}");
        assert!(told.contains("--force`"), "{told}");
    }
    assert!(world.tree() == before);
    let told = world.ok(&["undo", "--force"]);
    assert!(told.contains("comes back as it is now"), "{told}");
    assert!(told.contains(at), "{told}");
    world.check_store();
}

#[test]
fn a_line_that_was_logged_into_a_removed_tree_costs_nothing_of_it() {
    let world = World::new();
    world.file("d/precious", "1\n");
    world.file("d/log", "1\n");
    let mut log = logging_into(&world.path("d/log"));
    world.ok(&["rm", "-r", "d"]);
    world.check_store();
    log.write_all(b"2\n").unwrap();
    changed_in_its_slot(&world, "at `log`");
    assert_eq!(world.read("d/precious"), "1\n");
    assert_eq!(world.read("d/log"), "1\n2\n");
    world.ok(&["redo"]);
    world.ok(&["undo"]);
}

#[test]
fn a_line_that_was_logged_into_a_replaced_file_is_no_damage() {
    let world = World::new();
    world.file("log", &"1".repeat(200_000));
    let mut log = logging_into(&world.path("log"));
    world.ok(&["run", "--", "rm", "log"]);
    log.write_all(b"2\n").unwrap();
    changed_in_its_slot(&world, "by a process that had it open");
    assert!(world.read("log").ends_with("12\n"));
}

#[test]
fn what_somebody_made_in_a_removed_tree_is_not_called_restored() {
    for line in ["echo evil > d/x; echo > d/fresh", "rm d/x", "rm d/sub/y"] {
        let world = World::new();
        world.file("d/x", "1\n");
        world.file("d/sub/y", "1\n");
        world.ok(&["rm", "-r", "d"]);
        let depot = world.state().join("depot");
        let slot = fs::read_dir(depot).unwrap().next().unwrap().unwrap().path();
        // As a process does whose current directory is in it.
        let line = line.replace("d/", &format!("{}/", slot.display()));
        let done = Command::new("sh").args(["-c", &line]).status();
        assert!(done.unwrap().success());
        changed_in_its_slot(&world, "what was kept was changed since");
        assert!(world.path("d/sub").exists());
    }
}

#[test]
fn files_with_odd_times_and_other_names_are_no_change_of_a_tree() {
    let world = World::new();
    world.file("d/sub/future", "1\n");
    world.file("d/two", "2\n");
    fs::hard_link(world.path("d/two"), world.path("other")).unwrap();
    let future = std::time::SystemTime::now() + std::time::Duration::from_secs(1_000_000);
    let file = logging_into(&world.path("d/sub/future"));
    file.set_modified(future).unwrap();
    world.ok(&["rm", "-r", "d"]);
    fs::remove_file(world.path("other")).unwrap();
    world.check_store();
    world.ok(&["undo"]);
    assert_eq!(world.read("d/two"), "2\n");
}

#[test]
fn nobody_removes_the_directory_that_he_stands_in() {
    let world = World::new();
    world.file("a/b/x", "1\n");
    let before = world.tree();
    let why = "what is removed is kept, and you would stand, and write, in what is kept";
    for name in [".", "../b", "../../a"] {
        let mut command = world.command(&["rm", "-r", name]);
        let output = command.current_dir(world.path("a/b")).output().unwrap();
        let told = said(&output);
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains(why), "{told}");
        assert!(told.contains("leave it first, with `cd`"), "{told}");
    }
    assert!(world.tree() == before);
    world.ok(&["rm", "-r", "a"]);
}

#[test]
fn an_undone_operation_and_its_undo_are_let_go_together() {
    let world = World::new();
    world.file("f", "precious\n");
    world.file("d/x", "1\n");
    for arguments in [&["write", "f", "--text", "1"][..], &["mv", "d", "e"]] {
        let before = world.tree();
        world.ok(arguments);
        world.ok(&["undo"]);
        world.ok(&["gc", "--versions", "1", "--keep-at-least", "0s"]);
        world.ok(&["redo"]);
        world.ok(&["undo", &newest(&world, "redo")]);
        let now = world.tree();
        assert!(now == before, "{}", now.difference(&before));
    }
    world.check_store();
}

/// The same directory, seen through a second mount of its file system.
struct Bound {
    at: PathBuf,
}

impl Bound {
    fn new(of: &Path, at: &Path) -> Self {
        fs::create_dir_all(at).unwrap();
        let mut mount = Command::new("mount");
        mount.arg("--bind").args([of, at]);
        assert!(mount.status().unwrap().success());
        Self { at: at.to_owned() }
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        let _gone = Command::new("umount").arg("-l").arg(&self.at).output();
    }
}

#[test]
fn what_is_kept_on_another_mount_of_the_file_system_is_copied() {
    let root = World::new();
    let bound = Bound::new(&root.path(""), &root.scratch("bound"));
    let world = World::at(&bound.at, Some(root.state()));
    world.file("big", &"1".repeat(300_000));
    let before = world.tree();
    for line in ["rm big", "echo x > big", "echo x > small; mv small big"] {
        world.ok(&["run", "--", "sh", "-c", line]);
        world.ok(&["undo", "-n"]);
        world.ok(&["undo"]);
        let now = world.tree();
        assert!(now == before, "{line}: {}", now.difference(&before));
        world.ok(&["redo"]);
        world.ok(&["undo"]);
        let now = world.tree();
        assert!(now == before, "{line}: {}", now.difference(&before));
    }
    world.check_store();
}

#[test]
fn a_tree_that_is_kept_on_another_mount_is_foreseen_and_copied_by_a_restore() {
    let world = World::new();
    world.file("w/d/x", "1\n");
    world.ok(&["rm", "-r", "w/d"]);
    let id = newest(&world, "remove");
    let _bound = Bound::new(&world.path("w"), &world.path("w"));
    for arguments in [&["undo", "-n"][..], &["undo"]] {
        let output = world.run(arguments);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(said(&output).contains("another mount"), "{}", said(&output));
    }
    world.ok(&["verify"]);
    world.ok(&["restore", "w/d", "--from", &id]);
    assert_eq!(world.read("w/d/x"), "1\n");
}

#[test]
fn a_removed_directory_that_comes_back_in_parts_has_its_time_again() {
    let world = World::new();
    world.file("d/a", "1\n");
    world.file("d/b", "2\n");
    world.file("d/c", "3\n");
    let time = |name: &str| fs::metadata(world.path(name)).unwrap().mtime_nsec();
    let before = time("d");
    world.ok(&["run", "--", "rm", "-r", "d"]);
    for name in ["d/a", "d/b"] {
        world.ok(&["undo", name]);
    }
    world.ok(&["undo"]);
    assert_eq!(time("d"), before);
    world.check_store();
}

#[test]
fn a_collection_makes_room_on_a_full_disk() {
    let disk = Disk::memory(100 * 1024);
    let world = World::at(&disk.path(), Some(&disk.root().join("state")));
    std::fs::write(world.path("large"), vec![b'x'; 16 * 1024 * 1024]).unwrap();
    world.ok(&["rm", "large"]);
    disk.fill();
    assert!(!world.run(&["write", "f", "--text", "1"]).status.success());
    world.ok(&["gc", "--keep", "0s", "--keep-at-least", "0s"]);
    world.ok(&["write", "f", "--text", "1"]);
    assert_eq!(world.read("f"), "1");
    world.check_store();
}
