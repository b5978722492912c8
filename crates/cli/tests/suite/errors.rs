//! What people read when something does not work: what, why, what next.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::world::World;

fn one_write() -> World {
    let world = World::new();
    world.did(["write", "a.txt", "--text", "1"]);
    world
}

#[test]
fn an_id_that_nobody_has() {
    insta::assert_snapshot!(one_write().cli(["undo", "7f3c"]), @"");
}

#[test]
fn an_id_that_is_none() {
    insta::assert_snapshot!(one_write().cli(["show", "a.txt"]), @"");
}

#[test]
fn an_id_that_two_have() {
    let world = one_write();
    world.next_id_is(234);
    world.did(["write", "b.txt", "--text", "2"]);
    insta::assert_snapshot!(world.cli(["undo", "9e"]), @"");
}

#[test]
fn a_target_that_is_missing() {
    insta::assert_snapshot!(World::new().cli(["rm", "gone.txt"]), @"");
    insta::assert_snapshot!(World::new().cli(["edit", "gone.txt", "-s", "a", "-r", "b"]), @"");
    insta::assert_snapshot!(World::new().cli(["write", "gone/a.txt", "--text", "x"]), @"");
}

#[test]
fn a_directory_where_a_file_is_expected() {
    insta::assert_snapshot!(World::new().file("d/x", "").cli(["write", "d", "--text", "x"]), @"");
}

#[test]
fn a_file_that_must_be_new_and_exists() {
    insta::assert_snapshot!(one_write().cli(["write", "--create", "a.txt", "--text", "2"]), @"");
}

#[test]
fn a_conflict() {
    let world = one_write();
    world.put("a.txt", "somebody else's");
    insta::assert_snapshot!(world.cli(["undo"]), @"");
    assert_eq!(world.text("a.txt"), "somebody else's");
}

#[test]
fn an_operation_that_is_undone_already() {
    let world = one_write();
    world.did(["undo"]);
    insta::assert_snapshot!(world.cli(["undo", "9e37"]), @"");
}

#[test]
fn committed_operations_that_depend_on_it() {
    let world = one_write();
    world.did(["write", "a.txt", "--text", "2"]);
    insta::assert_snapshot!(world.cli(["undo", "@-1"]), @"");
}

#[test]
fn nothing_to_undo_and_nothing_to_redo() {
    let world = World::new();
    insta::assert_snapshot!(world.cli(["undo"]), @"");
    insta::assert_snapshot!(world.cli(["redo"]), @"");
}

#[test]
fn a_store_of_a_newer_version() {
    let world = one_write();
    let journal = rusqlite::Connection::open(world.place("state/journal.sqlite")).unwrap();
    journal.pragma_update(None, "user_version", 99).unwrap();
    drop(journal);
    insta::assert_snapshot!(world.cli(["log"]), @"");
}

#[test]
fn a_store_that_is_none() {
    let world = World::new();
    fs::create_dir(world.place("state")).unwrap();
    fs::write(
        world.place("state/journal.sqlite"),
        "this is not a database, but long enough",
    )
    .unwrap();
    insta::assert_snapshot!(world.cli(["log"]), @"");
}

#[test]
fn no_permission() {
    let world = World::new().file("locked/a.txt", "1");
    let nobody = |ran: &mut std::process::Command| {
        insta::assert_snapshot!(world.run(ran), @"");
    };
    fs::set_permissions(world.path("locked"), fs::Permissions::from_mode(0o555)).unwrap();
    let arguments = [
        "--state-dir",
        "../home/state",
        "write",
        "locked/a.txt",
        "--text",
        "2",
    ];
    if rustix::process::geteuid().is_root() {
        // Root may do everything, so somebody else tries, with a copy of the program that they can reach.
        let (program, root) = (world.place("backout"), world.place(""));
        fs::copy(env!("CARGO_BIN_EXE_backout"), &program).unwrap();
        for (place, mode) in [
            (root, 0o755),
            (world.place("home"), 0o777),
            (world.place("seed"), 0o777),
        ] {
            fs::set_permissions(place, fs::Permissions::from_mode(mode)).unwrap();
        }
        let mut command = world.program(
            Path::new("/usr/bin/setpriv"),
            &[
                "--reuid=65534",
                "--regid=65534",
                "--clear-groups",
                program.to_str().unwrap(),
            ],
        );
        nobody(command.args(arguments));
    } else {
        nobody(&mut world.command(&arguments));
    }
    fs::set_permissions(world.path("locked"), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn no_home_to_keep_the_state_in() {
    let world = World::new();
    let mut command = world.command(&["log"]);
    insta::assert_snapshot!(world.run(command.env_remove("HOME").env_remove("BACKOUT_STATE_DIR")), @"");
}

#[test]
fn an_environment_that_makes_no_sense() {
    let world = World::new();
    insta::assert_snapshot!(world.run(world.command(&["log"]).env("BACKOUT_AGENT", "two words")), @"");
}

#[test]
fn a_command_that_there_is_not() {
    insta::assert_snapshot!(World::new().cli(["udno"]), @"");
}
