//! `--force` does what it is advised for, and is not advised where it could not.

use std::fs;
use std::os::unix::fs::symlink;

use super::batches::batch;
use super::{json, newest, to_and_fro};
use crate::disk::Disk;
use crate::world::{World, said};

/// Makes sure that what an undo is refused for has `--force` among its advice, that force does it, and that the command it
/// names brings back what was there.
fn forced_and_back(world: &World) {
    let theirs = world.tree().without_times();
    let refused = world.fails(1, &["undo"]);
    assert!(refused.contains(" --force` (what"), "{refused}");
    let plan = world.json(&["undo", "-n", "--force"]);
    assert_eq!(plan["is_executable"], true, "{plan}");
    let done = world.json(&["undo", "--force"]);
    let act = done["act"].as_str().unwrap();
    world.ok(&["redo", act]);
    let now = world.tree().without_times();
    assert!(now == theirs, "{}", now.difference(&theirs));
    world.ok(&["undo", "--force"]);
    world.check_store();
}

/// Makes sure that an undo is refused without a word of `--force`, that force is refused as well, and that both say this.
fn beyond_force(world: &World, wanted: &str) {
    let before = world.tree();
    for arguments in [&["undo"][..], &["undo", "--force"]] {
        let refused = world.fails(1, arguments);
        assert!(refused.contains(wanted), "{refused}");
        assert!(!refused.contains("do it anyway"), "{refused}");
        let now = world.tree();
        assert!(now == before, "{}", now.difference(&before));
    }
    for arguments in [&["undo", "-n"][..], &["undo", "-n", "--force"]] {
        let output = world.run(arguments);
        let told = said(&output);
        assert!(told.contains(wanted), "{told}");
        assert!(!told.contains("do it anyway"), "{told}");
    }
}

#[test]
fn a_directory_at_the_old_name_of_a_move_makes_room_and_comes_back() {
    for moved in ["f", "d"] {
        let world = World::new();
        world.file("f", "1\n");
        world.file("d/x", "1\n");
        let before = world.tree().without_times();
        world.ok(&["run", "--", "mv", moved, "new"]);
        world.file(&format!("{moved}/theirs"), "2\n");
        forced_and_back(&world);
        let now = world.tree().without_times();
        assert!(now == before, "{}", now.difference(&before));
    }
}

#[test]
fn a_file_that_is_gone_by_all_of_its_names_is_made_anew() {
    for line in ["echo 2 >> f", "truncate -s 300000 f; echo 2 >> f"] {
        let world = World::new();
        world.file("f", "1\n");
        for name in ["g", "h"] {
            fs::hard_link(world.path("f"), world.path(name)).unwrap();
        }
        world.ok(&["run", "--", "sh", "-c", line]);
        for name in ["f", "g", "h"] {
            fs::remove_file(world.path(name)).unwrap();
        }
        forced_and_back(&world);
        assert_eq!(world.read("f"), "1\n", "{line}");
    }
}

#[test]
fn a_directory_that_stands_where_such_a_file_was_is_kept() {
    let world = World::new();
    world.file("f", "1\n");
    fs::hard_link(world.path("f"), world.path("g")).unwrap();
    world.ok(&["run", "--", "sh", "-c", "echo 2 >> f"]);
    for name in ["f", "g"] {
        fs::remove_file(world.path(name)).unwrap();
    }
    world.file("f/theirs", "3\n");
    forced_and_back(&world);
    assert_eq!(world.read("f"), "1\n");
}

#[test]
fn where_a_directory_above_is_something_else_the_words_name_what_helps() {
    for is_link in [true, false] {
        let world = World::new();
        world.file("a/b/f", "1\n");
        world.file("other/x", "2\n");
        world.ok(&["rm", "a/b/f"]);
        fs::remove_dir_all(world.path("a")).unwrap();
        if is_link {
            symlink("other", world.path("a")).unwrap();
        } else {
            world.file("a", "theirs\n");
        }
        beyond_force(&world, "move it away");
        fs::rename(world.path("a"), world.path("away")).unwrap();
        world.ok(&["undo", "--force"]);
        assert_eq!(world.read("a/b/f"), "1\n");
        to_and_fro_by_name(&world);
    }
}

/// The directories that force made go and come with what it brought back.
fn to_and_fro_by_name(world: &World) {
    let there = world.tree().without_times();
    world.ok(&["redo"]);
    assert!(!world.path("a").exists());
    world.ok(&["undo"]);
    let now = world.tree().without_times();
    assert!(now == there, "{}", now.difference(&there));
    world.check_store();
}

#[test]
fn a_locked_file_is_not_forced_and_the_flag_is_named() {
    let disk = Disk::of_kind("ext4", 32);
    let world = World::at(&disk.path(), None);
    for flag in ["i", "a"] {
        world.file("f", "1\n");
        world.ok(&["write", "f", "--text", "2\n"]);
        let chattr = |sign: &str| {
            let status = std::process::Command::new("chattr")
                .arg(format!("{sign}{flag}"))
                .arg(world.path("f"))
                .status();
            assert!(status.unwrap().success());
        };
        chattr("+");
        beyond_force(&world, &format!("`chattr -{flag}` takes that off"));
        chattr("-");
        world.ok(&["undo"]);
        assert_eq!(world.read("f"), "1\n");
    }
    world.check_store();
}

#[test]
fn a_kept_file_that_a_process_wrote_into_meanwhile_is_foreseen() {
    use std::io::Write as _;
    let world = World::new();
    world.file("f", &"x".repeat(200_000));
    let mut open = fs::File::options()
        .append(true)
        .open(world.path("f"))
        .unwrap();
    world.ok(&["write", "f", "--text", "new\n"]);
    open.write_all(b"late\n").unwrap();
    let why = "was changed since by a process that had it open";
    let plan = world.run(&["undo", "-n"]);
    assert!(said(&plan).contains(why), "{}", said(&plan));
    let refused = json(&world, 1, &["undo"]);
    assert!(refused["why"].to_string().contains(why), "{refused}");
    assert_eq!(world.read("f"), "new\n");
    let before = world.tree().without_times();
    world.ok(&["undo", "--force"]);
    assert!(world.read("f").ends_with("xlate\n"));
    let after = world.tree().without_times();
    world.ok(&["redo"]);
    assert!(world.tree().without_times() == before);
    to_and_fro(&world, &after);
}

/// A user who owns a file of a group that is not his.
const USER: u32 = 1000;
const GROUP: u32 = 54321;

#[test]
fn a_group_that_the_user_cannot_give_back_is_foreseen() {
    use std::os::unix::fs::{MetadataExt as _, chown};
    let only_root = "owner 1000:54321 can only be restored by root";
    let of_group = |world: &World, name: &str| {
        world.file(name, "1\n");
        chown(world.path(name), Some(USER), Some(GROUP)).unwrap();
    };
    // Only the group was changed: there is no rest to restore.
    let world = World::new().of_user(USER);
    of_group(&world, "f");
    world.ok(&["run", "--", "chgrp", "1000", "f"]);
    beyond_force(&world, only_root);
    // Bytes of a file with several names: all but the group comes back.
    let world = World::new().of_user(USER);
    of_group(&world, "g");
    fs::hard_link(world.path("g"), world.path("h")).unwrap();
    world.ok(&["run", "--", "sh", "-c", "chgrp 1000 g; echo 2 >> g"]);
    assert_eq!(all_but(&world, only_root), 1);
    assert_eq!(world.read("h"), "1\n");
    // No depot: a file and a directory are made anew.
    let disk = Disk::of_kind("ext4", 32);
    let world = World::at(&disk.path(), None).of_user(USER);
    of_group(&world, "f");
    of_group(&world, "d/in");
    chown(world.path("d"), Some(USER), Some(GROUP)).unwrap();
    world.ok(&["rm", "-r", "f", "d"]);
    assert_eq!(all_but(&world, only_root), 3);
    assert_eq!(world.read("d/in"), "1\n");
    let gid = |name: &str| fs::metadata(world.path(name)).unwrap().gid();
    assert_eq!((gid("f"), gid("d"), gid("d/in")), (USER, USER, USER));
}

/// Undoes what comes back but for one thing: the plan says so, the undo refuses, and force does the rest. Gives for how many
/// targets that is so.
fn all_but(world: &World, what: &str) -> usize {
    let before = world.tree();
    let plan = said(&world.run(&["undo", "-n"]));
    assert!(plan.contains(&format!("conflict: {what}")), "{plan}");
    let refused = world.fails(1, &["undo"]);
    assert!(refused.contains(what), "{refused}");
    assert!(world.tree() == before);
    let plan = said(&world.run(&["undo", "-n", "--force"]));
    assert!(
        plan.contains(&format!("will be as before, but {what}")),
        "{plan}"
    );
    let output = world.run(&["undo", "--force"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("not all of it is as it was"), "{error}");
    world.check_store();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    told.matches(&format!("restored but for one thing: {what}"))
        .count()
}

#[test]
fn a_user_takes_back_a_command_that_made_a_read_only_directory_whole_and_in_part() {
    let world = World::new().of_user(USER);
    let before = world.tree().without_times();
    let line = "mkdir m; echo 1 > m/f; echo 2 > m/g; chmod 555 m";
    world.ok(&["run", "--", "sh", "-c", line]);
    let after = world.tree().without_times();
    world.ok(&["undo", "--only", "m/f"]);
    let names = world.tree().names();
    assert_eq!(names, ["", "m", "m/g"]);
    assert_eq!(world.tree().mode_of("m"), Some(0o555));
    world.ok(&["redo"]);
    assert!(world.tree().without_times() == after);
    world.ok(&["undo", &newest(&world, "run")]);
    world.ok(&["redo"]);
    to_and_fro(&world, &before);
}

#[test]
fn a_directory_that_was_closed_since_is_foreseen_and_stays_closed() {
    let world = World::new().of_user(USER);
    world.ok(&["mkdir", "m"]);
    world.ok(&["write", "m/f", "--text", "1\n"]);
    world.ok(&["chmod", "555", "m"]);
    let why = "not permitted to change what is in `m`";
    for arguments in [&["undo", "@-1"][..], &["undo", "@-1", "--force"]] {
        let plan = world.run(&[arguments, &["-n"]].concat());
        assert_eq!(plan.status.code(), Some(1));
        assert!(said(&plan).contains(why), "{}", said(&plan));
        let refused = world.fails(1, arguments);
        assert!(refused.contains(why), "{refused}");
        assert!(!refused.contains("do it anyway"), "{refused}");
        assert_eq!(world.read("m/f"), "1\n");
    }
    // With the change of its mode it is open when its turn comes.
    world.ok(&["undo", "@-2"]);
    assert!(!world.path("m").exists());
    world.check_store();
}

#[test]
fn what_was_forced_redone_and_forced_again_goes_in_the_order_in_which_it_came() {
    let world = World::new();
    world.file("b", "b\n");
    world.file("d/x", "x\n");
    let first = [
        serde_json::json!({"write": {"path": "b", "text": "b\nmore\n"}}),
        serde_json::json!({"write": {"path": "d/x", "text": "x\nmore\n"}}),
    ];
    let second = [
        serde_json::json!({"remove": {"path": "d/x"}}),
        serde_json::json!({"write": {"path": "d/y", "text": "y\n"}}),
    ];
    for changes in [&first, &second] {
        assert!(batch(&world, changes).status.success());
    }
    fs::create_dir(world.path("d/x")).unwrap();
    for _ in 0..3 {
        let undone = world.json(&["undo", "@-1", "--force"]);
        assert_eq!(world.read("d/x"), "x\n", "{undone}");
        assert_eq!(world.read("b"), "b\n");
        assert!(!world.path("d/y").exists());
        world.ok(&["redo", undone["act"].as_str().unwrap()]);
        assert!(world.path("d/x").is_dir());
    }
    world.check_store();
}

#[test]
fn a_redo_knows_that_a_directory_which_it_moves_takes_its_files_along() {
    let world = World::new();
    world.file("c", "c\n");
    world.file("d/x", "x\n");
    world.file("d/y", "y\n");
    world.ok(&["run", "--", "sh", "-c", "echo more >> d/x"]);
    fs::remove_file(world.path("c")).unwrap();
    let changes = [
        serde_json::json!({"move": {"from": "d", "to": "c"}}),
        serde_json::json!({"mkdir": {"path": "d/y", "parents": true}}),
    ];
    assert!(batch(&world, &changes).status.success());
    let after = world.tree().without_times();
    let undone = world.json(&["undo", "@-1", "--force"]);
    assert_eq!(world.read("d/x"), "x\n");
    let act = undone["act"].as_str().unwrap();
    let plan = world.json(&["redo", act, "-n"]);
    assert_eq!(plan["is_executable"], true, "{plan}");
    world.ok(&["redo", act]);
    let now = world.tree().without_times();
    assert!(now == after, "{}", now.difference(&after));
    world.check_store();
}
