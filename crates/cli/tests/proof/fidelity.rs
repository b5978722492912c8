//! Everything about a file comes back, not only its bytes: as root, and as an ordinary user, who is told what only root
//! could restore.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};

use crate::disk::Disk;
use crate::world::{World, said};
use crate::zoo::{FILES, set};

/// An ordinary user.
const USER: u32 = 12_345;

/// Does something, takes it back, does it again and takes it back again: each time every bit is as it was.
fn there_and_back(world: &World, arguments: &[&str]) {
    let before = world.tree();
    world.ok(arguments);
    let after = world.tree();
    assert_ne!(after, before, "{arguments:?}");
    for (command, wanted) in [("undo", &before), ("redo", &after), ("undo", &before)] {
        world.ok(&[command]);
        let now = world.tree();
        let difference = now.difference(wanted);
        assert!(now == *wanted, "{arguments:?}, {command}:\n{difference}");
    }
}

/// Does everything to the zoo that can be done to it.
fn there_and_back_with_all(world: &World) {
    for name in FILES {
        let path = format!("zoo/{name}");
        there_and_back(world, &["write", &path, "--text", "new"]);
        there_and_back(world, &["rm", &path]);
        there_and_back(world, &["mv", &path, "zoo/inner/moved"]);
    }
    for name in ["link", "dangling", "pipe"] {
        there_and_back(world, &["rm", &format!("zoo/{name}")]);
    }
    there_and_back(world, &["mv", "--force", "zoo/noted", "zoo/acl"]);
    there_and_back(world, &["rm", "-r", "zoo/inner/empty"]);
    there_and_back(world, &["rm", "-r", "zoo"]);
    there_and_back(world, &["mv", "zoo", "moved"]);
    there_and_back(world, &["cp", "-r", "zoo", "copied"]);
    there_and_back(world, &["mkdir", "zoo/inner/new"]);
    there_and_back(world, &["write", "zoo/inner/new", "--text", "inherits"]);
    there_and_back(world, &["chmod", "0700", "zoo/suid"]);
    there_and_back(world, &["chmod", "-R", "g-w,o+x", "zoo/inner"]);
    world.check_store();
}

#[test]
fn root_gets_everything_back_on_ext4() {
    let disk = Disk::of_kind("ext4", 64);
    there_and_back_as_root(&disk);
}

#[test]
fn root_gets_everything_back_on_xfs() {
    let disk = Disk::of_kind("xfs", 320);
    there_and_back_as_root(&disk);
}

#[test]
fn root_gets_everything_back_on_btrfs() {
    let disk = Disk::of_kind("btrfs", 320);
    there_and_back_as_root(&disk);
}

#[test]
fn the_doctor_tells_whether_copies_share_their_blocks() {
    for (kind, told) in [
        (
            "ext4",
            "not on this file system: large files are kept by link",
        ),
        ("btrfs", "copies share their blocks"),
    ] {
        let disk = Disk::of_kind(kind, 320);
        let world = World::at(&disk.path(), None);
        let found = world.ok(&["doctor"]);
        assert!(found.contains(told), "{kind}: {found}");
        // What it says holds for a copy that somebody makes.
        world.file("a", &"x".repeat(100_000));
        let mut copy = std::process::Command::new("cp");
        copy.args(["--reflink=always", "a", "b"]);
        let copied = copy.current_dir(world.path("")).output().unwrap();
        assert_eq!(copied.status.success(), kind == "btrfs", "{kind}");
    }
}

fn there_and_back_as_root(disk: &Disk) {
    let world = World::at(&disk.path(), None).with_zoo(USER);
    set(&world.path("zoo/noted"), "trusted.note", b"for root only");
    set(&world.path("zoo/inner"), "trusted.note", b"of a directory");
    there_and_back_with_all(&world);
    there_and_back(&world, &["chown", "-R", "1:2", "zoo"]);
}

#[test]
fn an_ordinary_user_gets_everything_back_that_the_state_directory_can_keep() {
    let disk = Disk::of_kind("ext4", 64);
    let state = disk.root().join("state");
    let world = World::at(&disk.path(), Some(&state))
        .of_user(USER)
        .with_zoo(USER);
    // What is somebody else's, in a directory that is ours.
    let theirs = world.path("zoo/theirs");
    fs::write(&theirs, "this is not ours\n").unwrap();
    fs::set_permissions(&theirs, fs::Permissions::from_mode(0o4755)).unwrap();
    there_and_back(&world, &["write", "zoo/theirs", "--text", "new"]);
    there_and_back(&world, &["rm", "zoo/theirs"]);
    fs::create_dir(world.path("zoo/their-directory")).unwrap();
    there_and_back(&world, &["mv", "zoo/their-directory", "zoo/renamed"]);
    // A file that its owner may not read can be removed, but not looked into.
    fs::set_permissions(world.path("zoo/none"), fs::Permissions::from_mode(0o400)).unwrap();
    there_and_back_with_all(&world);
}

#[test]
fn an_ordinary_user_is_told_what_a_new_file_cannot_be_given() {
    let disk = Disk::of_kind("ext4", 64);
    let state = disk.root().join("state");
    let world = World::at(&disk.path(), Some(&state))
        .of_user(USER)
        .with_zoo(USER);
    for (name, what) in [
        ("capable", "loses its attribute security.capability"),
        ("grouped", "now has the group 12345, not 54321"),
    ] {
        let output = world.run(&["write", &format!("zoo/{name}"), "--text", "new"]);
        assert!(
            output.status.success() && said(&output).contains(what),
            "{}",
            said(&output)
        );
    }
    chown(world.path("zoo/noted"), Some(0), Some(0)).unwrap();
    let output = world.run(&["write", "zoo/noted", "--text", "new"]);
    assert!(
        said(&output).contains("now belongs to 12345, not to 0"),
        "{}",
        said(&output)
    );
}

/// With the state on another file system, whose root is not the user's to write to, there is no depot: files are kept
/// by their bytes, and only root could give them the rest.
#[test]
fn without_a_depot_an_ordinary_user_is_told_before_and_after_what_only_root_can_restore() {
    let disk = Disk::of_kind("ext4", 64);
    let world = World::at(&disk.path(), None).of_user(USER).with_zoo(USER);
    for (name, what) in [
        ("capable", "attribute security.capability"),
        ("grouped", "owner 12345:54321"),
        ("nodump", "inode flags"),
    ] {
        let path = format!("zoo/{name}");
        let before = world.read(&path);
        let output = world.run(&["write", &path, "--text", "new"]);
        let told = format!("not its {what}");
        assert!(said(&output).contains(&told), "{}", said(&output));
        if name == "nodump" {
            let told = world.ok(&["undo"]);
            assert!(
                told.contains("comes back without its inode flags"),
                "{told}"
            );
            assert_eq!(world.read(&path), before);
            continue;
        }
        let told = world.fails(1, &["undo"]);
        assert!(told.contains("can only be restored by root"), "{told}");
        assert_eq!(world.read(&path), "new", "a refused undo changes nothing");
        let told = world.fails(1, &["undo", "--force"]);
        assert!(told.contains(what) && told.contains("by root"), "{told}");
        assert_eq!(
            world.read(&path),
            before,
            "the content comes back all the same"
        );
    }
}
