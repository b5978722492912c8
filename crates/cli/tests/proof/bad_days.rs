//! The bad days: each leaves a clear report, nothing lost, nothing half-done.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use crate::disk::Disk;
use crate::world::World;

#[test]
fn a_full_disk_while_staging_changes_nothing() {
    let disk = Disk::memory(2048);
    let world = World::at(&disk.path(), None);
    world.file("a.txt", "keep me");
    disk.fill();
    let before = world.tree();
    let big = world.scratch("big");
    fs::write(&big, vec![b'x'; 512 * 1024]).unwrap();
    let told = world.fails(1, &["write", "a.txt", "--from", big.to_str().unwrap()]);
    assert!(told.contains("no space left"), "{told}");
    assert_eq!(world.tree(), before);
    world.check_store();
}

#[test]
fn a_full_disk_while_arming_refuses_the_write() {
    let disk = Disk::memory(4096);
    let state = disk.root().join("state");
    let elsewhere = tempfile::tempdir().unwrap();
    let world = World::at(elsewhere.path(), Some(&state));
    world.file("a.txt", &"keep me".repeat(8000));
    world.ok(&["status"]);
    disk.fill();
    let before = world.tree();
    let told = world.fails(1, &["write", "a.txt", "--text", "new"]);
    assert!(told.contains("no space left"), "{told}");
    assert!(
        told.contains("does not happen") || told.contains("nothing was written"),
        "{told}"
    );
    assert_eq!(world.tree(), before);
    disk.empty();
    world.ok(&["write", "a.txt", "--text", "new"]);
    world.check_store();
}

#[test]
fn a_full_disk_while_restoring_keeps_what_is_there_and_can_be_tried_again() {
    let disk = Disk::memory(4096);
    let world = World::at(&disk.path(), None);
    world.file("a.txt", &"0123456789abcdef".repeat(2000));
    world.ok(&["write", "a.txt", "--text", "short"]);
    disk.fill();
    let told = world.fails(1, &["undo"]);
    assert!(told.contains("no space left"), "{told}");
    assert_eq!(world.read("a.txt"), "short");
    disk.empty();
    world.ok(&["undo"]);
    assert_eq!(world.read("a.txt").len(), 32_000);
    world.check_store();
}

#[test]
fn a_read_only_file_system_is_named() {
    let disk = Disk::memory(1024);
    let world = World::at(&disk.path(), None);
    world.file("a.txt", "keep me");
    disk.remount("ro");
    let told = world.fails(1, &["write", "a.txt", "--text", "new"]);
    assert!(told.contains("read-only file system"), "{told}");
    assert_eq!(world.read("a.txt"), "keep me");
    disk.remount("rw");
    world.ok(&["write", "a.txt", "--text", "new"]);
    world.check_store();
}

#[test]
fn a_read_only_state_directory_refuses_the_write() {
    let disk = Disk::memory(4096);
    let state = disk.root().join("state");
    let elsewhere = tempfile::tempdir().unwrap();
    let world = World::at(elsewhere.path(), Some(&state));
    world.file("a.txt", "keep me");
    world.ok(&["status"]);
    disk.remount("ro");
    let told = world.fails(1, &["write", "a.txt", "--text", "new"]);
    assert!(told.contains("read-only"), "{told}");
    assert_eq!(world.read("a.txt"), "keep me");
}

#[test]
fn a_missing_content_is_named_and_the_target_left_alone() {
    let world = World::new().with_project();
    world.ok(&["write", "app.toml", "--text", "port = 1\n"]);
    world.ok(&["write", "run.sh", "--text", "good"]);
    let raw = rusqlite::Connection::open(world.state().join("journal.sqlite")).unwrap();
    raw.execute("DELETE FROM content WHERE size = 12", [])
        .unwrap(); // "port = 8080\n"
    drop(raw);
    let told = world.fails(1, &["undo", "@-1"]);
    assert!(told.contains("missing from the store"), "{told}");
    assert_eq!(world.read("app.toml"), "port = 1\n");
    let output = world.run(&["--json", "verify"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["findings"][0]["what"], "content");
    world.ok(&["undo", "@"]); // the other one is not touched by the damage
    assert_eq!(world.read("run.sh"), "#!/bin/sh\n");
}

#[test]
fn a_corrupted_content_is_never_restored() {
    let world = World::new().with_project();
    world.ok(&["write", "app.toml", "--text", "port = 1\n"]);
    let raw = rusqlite::Connection::open(world.state().join("journal.sqlite")).unwrap();
    raw.execute(
        "UPDATE content SET form = 0, bytes = x'706f7274203d20363636360a' WHERE size = 12",
        [],
    )
    .unwrap();
    drop(raw);
    let told = world.fails(1, &["undo"]);
    assert!(told.contains("damaged"), "{told}");
    assert_eq!(world.read("app.toml"), "port = 1\n");
}

#[test]
fn a_changed_kept_inode_is_never_restored_as_if_it_were_the_old_one() {
    let world = World::new().with_project();
    world.ok(&["write", "large.bin", "--text", "small now"]);
    let slot = fs::read_dir(world.state().join("depot"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    fs::write(&slot, "not what it was").unwrap();
    let told = world.fails(1, &["undo"]);
    assert!(!told.is_empty());
    assert_eq!(world.read("large.bin"), "small now");
}

#[test]
fn a_deleted_state_directory_begins_anew_and_says_what_it_no_longer_knows() {
    let world = World::new().with_project();
    world.ok(&["write", "app.toml", "--text", "port = 1\n"]);
    fs::remove_dir_all(world.state()).unwrap();
    let told = world.fails(1, &["undo"]);
    assert!(told.contains("nothing to undo"), "{told}");
    world.ok(&["write", "app.toml", "--text", "port = 2\n"]);
    world.ok(&["undo"]);
    assert_eq!(world.read("app.toml"), "port = 1\n");
}

#[test]
fn the_store_is_full_and_the_next_write_is_refused_loudly() {
    let world = World::new().with_project();
    world.ok(&["task", "begin", "t"]);
    world.ok(&["--task", "t", "write", "large.bin", "--text", "small now"]);
    let output = world
        .command(&["write", "app.toml", "--text", "x"])
        .env("BACKOUT_CAP_BYTES", "1000")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("the store is full"), "{told}");
    assert_eq!(world.read("app.toml"), "port = 8080\n");
    world.ok(&["rollback", "t"]);
    assert_eq!(world.read("large.bin").len(), 128 * 1024);
}

#[test]
fn other_file_systems_get_a_depot_of_their_own() {
    for kind in ["ext4", "btrfs", "xfs"] {
        let disk = Disk::of_kind(kind, if kind == "ext4" { 64 } else { 320 });
        let world = World::at(&disk.path(), None).with_project();
        let before = world.tree();
        let inode = fs::metadata(world.path("large.bin")).unwrap().ino();
        world.ok(&["write", "large.bin", "--text", "small now"]);
        world.ok(&["rm", "-r", "src"]);
        world.ok(&["mv", "run.sh", "moved.sh"]);
        assert!(disk.root().join(".backout-0").is_dir(), "{kind}");
        for _ in 0..3 {
            world.ok(&["undo"]);
        }
        let now = world.tree();
        assert_eq!(now, before, "{kind}:\n{}", now.difference(&before));
        assert_eq!(
            fs::metadata(world.path("large.bin")).unwrap().ino(),
            inode,
            "{kind}: the very inode"
        );
        world.check_store();
    }
}

#[test]
fn a_full_disk_with_small_blocks_ends_no_command_without_a_word() {
    // So small an ext4 has blocks of 1 KiB: four to a page of what is mapped. A btrfs finds room for what is mapped only when it
    // is written out.
    for (kind, mib) in [("ext4", 9), ("ext4", 12), ("btrfs", 128)] {
        let disk = Disk::of_kind(kind, mib);
        let elsewhere = tempfile::tempdir().unwrap();
        let world = World::at(elsewhere.path(), Some(&disk.root().join("state")));
        world.file("a.txt", "1");
        world.ok(&["write", "a.txt", "--text", "2"]);
        disk.fill();
        for arguments in [
            &["write", "a.txt", "--text", "3"][..],
            &["undo"],
            &["redo"],
            &["run", "--", "true"],
        ] {
            let code = world.run(arguments).status.code();
            assert!(
                matches!(code, Some(0 | 1 | 3)),
                "{kind}: {arguments:?}: {code:?}"
            );
        }
        for look in ["log", "status"] {
            world.ok(&[look]);
        }
        disk.empty();
        world.ok(&["recover"]);
        while world.run(&["undo"]).status.success() {}
        assert_eq!(world.read("a.txt"), "1");
        world.check_store();
    }
}
