//! What is removed from depots and staging, whatever is in it, and what is not ours.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use backout_model::{OperationId, Retention, Slot, Status, TargetPath};

use super::{ids, slot};
use crate::StorageError;
use crate::contents::fixture::{DAY_MS, HOUR_MS, World, id, noise};
use crate::gc::tidy::operation_of;

#[test]
fn kept_inodes_go_with_their_operation() {
    let world = World::new();
    for number in 1..=2 {
        let slot = slot(&world, number, 0);
        fs::write(slot.path().as_path(), noise(number, 100_000)).unwrap();
        world.arm_with(number, &["/f"], &[], vec![slot]);
    }
    world.bring(id(1), Status::Committed);
    let stored = world.store.stored_bytes().unwrap();
    assert!((200_000..300_000).contains(&stored.slots), "{stored:?}");
    fs::write(world.path("depot/not-ours"), b"").unwrap();
    let before = stored.slots;
    world.pass(40 * DAY_MS);
    let report = world.gc(&Retention::standard());
    assert_eq!((ids(&report), report.slots), (vec![1], 1));
    assert_eq!(
        world.list("depot"),
        [slot(&world, 2, 0).name, "not-ours".to_owned()]
    );
    assert_eq!(world.store.stored_bytes().unwrap().slots * 2, before);
}

#[test]
fn a_kept_inode_counts_before_the_next_write() {
    let world = World::new();
    let retention = Retention {
        store_bytes_max: 1_000_000,
        ..Retention::standard()
    };
    let make_room = || world.store.make_room(&retention, world.now(), 0);
    let arm = |number| {
        let slot = slot(&world, number, 0);
        world.arm_with(number, &["/f"], &[], vec![slot.clone()]);
        make_room().unwrap();
        assert_eq!(
            world.count("SELECT count(*) FROM slot WHERE bytes IS NULL"),
            1
        );
        slot.path().as_path().to_path_buf()
    };
    fs::write(arm(1), noise(1, 700_000)).unwrap();
    world.bring(id(1), Status::Committed);
    make_room().unwrap();
    assert!(world.store.stored_bytes().unwrap().slots >= 700_000);
    world.pass(1);
    let tree = arm(2);
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("f"), noise(2, 700_000)).unwrap();
    world.bring(id(2), Status::Committed);
    assert!(matches!(make_room(), Err(StorageError::OverCap { .. })));
    world.counts_are_right();
    world.pass(HOUR_MS);
    make_room().unwrap();
    assert_eq!(world.list("depot"), [slot(&world, 2, 0).name]);
    // What never came counts as nothing.
    world.arm_with(3, &["/g"], &[], vec![slot(&world, 3, 0)]);
    world.bring(id(3), Status::Aborted);
    make_room().unwrap();
    assert_eq!(
        world.count("SELECT count(*) FROM slot WHERE bytes IS NULL"),
        0
    );
}

#[test]
fn the_depot_of_another_store_is_left_alone() {
    // On another file system all stores of a user have one depot.
    let shared = tempfile::tempdir().unwrap();
    fs::set_permissions(shared.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let depot = TargetPath::new(fs::canonicalize(shared.path()).unwrap()).unwrap();
    let worlds = [World::new(), World::new()];
    for (number, world) in worlds.iter().enumerate() {
        let number = number as u64;
        let slot = Slot {
            depot: depot.clone(),
            name: format!("{}-0", id(number)),
        };
        world.arm_with(number, &["/f"], &[], vec![slot.clone()]);
        world.bring(id(number), Status::Committed);
        fs::write(slot.path().as_path(), b"kept").unwrap();
    }
    let names = || fs::read_dir(shared.path()).unwrap().count();
    worlds[0].gc(&Retention::standard());
    assert_eq!(names(), 2);
    worlds[0].pass(40 * DAY_MS);
    assert_eq!(worlds[0].gc(&Retention::standard()).slots, 1);
    assert_eq!(names(), 1);
    assert!(depot.as_path().join(format!("{}-0", id(1))).exists());
}

#[test]
fn a_store_that_was_moved_keeps_its_inodes() {
    let world = World::new();
    let slot = slot(&world, 1, 0);
    fs::write(slot.path().as_path(), b"kept").unwrap();
    world.arm_with(1, &["/f"], &[], vec![slot.clone()]);
    world.bring(id(1), Status::Committed);
    let moved = tempfile::tempdir().unwrap();
    let elsewhere = moved.path().join("elsewhere");
    fs::rename(world.path(""), &elsewhere).unwrap();
    let world = World::at(&elsewhere);
    assert_eq!(world.gc(&Retention::standard()).slots, 0);
    assert!(elsewhere.join("depot").join(&slot.name).exists());
}

#[test]
fn a_parked_tree_is_measured_and_removed_whatever_is_in_it() {
    let world = World::new();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("precious"), b"not ours").unwrap();
    let slot = slot(&world, 1, 0);
    world.arm_with(1, &["/tree"], &[], vec![slot.clone()]);
    world.bring(id(1), Status::Committed);
    assert_eq!(
        world.store.stored_bytes().unwrap().slots,
        0,
        "it is parked after arming"
    );

    let top = slot.path().as_path().to_path_buf();
    fs::create_dir_all(top.join("a/b/c")).unwrap();
    fs::write(top.join("a/b/c/file"), noise(1, 500_000)).unwrap();
    fs::hard_link(top.join("a/b/c/file"), top.join("a/again")).unwrap();
    symlink(outside.path(), top.join("a/link")).unwrap();
    symlink(outside.path().join("precious"), top.join("link")).unwrap();
    fs::create_dir(top.join("empty")).unwrap();
    for closed in ["a/b/c", "a/b", "a", "empty"] {
        fs::set_permissions(top.join(closed), fs::Permissions::from_mode(0o000)).unwrap();
    }
    world.gc(&Retention::standard());
    if rustix::process::geteuid().is_root() {
        let slots = world.store.stored_bytes().unwrap().slots;
        assert!((500_000..600_000).contains(&slots), "{slots}");
    }
    world.pass(40 * DAY_MS);
    let report = world.gc(&Retention::standard());
    assert_eq!((report.slots, report.left.as_slice()), (1, [].as_slice()));
    assert_eq!(world.list("depot"), [""; 0]);
    assert!(outside.path().join("precious").exists());
    assert_eq!(world.store.stored_bytes().unwrap().total, 0);
}

#[test]
fn no_tree_is_too_deep() {
    let world = World::new();
    let depot = fs::File::open(world.path("depot")).unwrap();
    let mut at = std::os::fd::OwnedFd::from(depot);
    for level in 0..3000 {
        let name = if level == 0 {
            slot(&world, 1, 0).name
        } else {
            "directory".to_owned()
        };
        let flags = rustix::fs::OFlags::DIRECTORY;
        rustix::fs::mkdirat(&at, &name, rustix::fs::Mode::RWXU).unwrap();
        at = rustix::fs::openat(&at, &name, flags, rustix::fs::Mode::empty()).unwrap();
    }
    let report = world.gc(&Retention::standard());
    assert_eq!((report.slots, report.left.as_slice()), (1, [].as_slice()));
    assert_eq!(world.list("depot"), [""; 0]);
}

#[test]
fn a_tree_that_was_taken_out_again_counts_as_nothing() {
    let world = World::new();
    let slot = slot(&world, 1, 0);
    fs::write(slot.path().as_path(), noise(1, 50_000)).unwrap();
    world.arm_with(1, &["/f"], &[], vec![slot.clone()]);
    assert!(world.store.stored_bytes().unwrap().slots >= 50_000);
    fs::remove_file(slot.path().as_path()).unwrap();
    world.bring(id(1), Status::Undone);
    world.gc(&Retention::standard());
    assert_eq!(world.store.stored_bytes().unwrap().slots, 0);
}

#[test]
fn a_name_belongs_to_an_operation_only_if_it_begins_with_its_id() {
    let of = |name: &str| operation_of(name.as_bytes()).map(i64::cast_unsigned);
    assert_eq!(of("00000000000000ff"), Some(255));
    assert_eq!(of("00000000000000ff-1"), Some(255));
    assert_eq!(of("ffffffffffffffff-1~77"), Some(u64::MAX));
    for name in [
        "",
        "ff",
        "00000000000000ff1",
        "00000000000000fg-1",
        "lost+found",
        "0000000000000ü0-1",
    ] {
        assert_eq!(of(name), None, "{name}");
    }
    assert_eq!(OperationId::from_bits(255).to_string(), "00000000000000ff");
}

#[test]
fn an_interrupted_removal_is_found_by_the_next() {
    let world = World::new();
    let name = format!("{}-0~3", id(5));
    fs::create_dir_all(world.path("depot").join(&name).join("x")).unwrap();
    assert_eq!(world.gc(&Retention::standard()).slots, 1);
    assert_eq!(world.list("depot"), [""; 0]);
}
