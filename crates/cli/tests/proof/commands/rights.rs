//! An ordinary user in directories that are not his own, or that were closed before.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};

use super::wait_for;
use crate::world::{World, said};

const USER: u32 = 12345;

/// A world in a directory like `/tmp`: everybody may write it, and nobody owns it.
fn in_anybodys_directory() -> World {
    let world = World::new().of_user(USER);
    world.file("mine", "before\n");
    chown(world.path("mine"), Some(USER), Some(USER)).unwrap();
    chown(world.path(""), Some(0), Some(0)).unwrap();
    fs::set_permissions(world.path(""), Permissions::from_mode(0o1777)).unwrap();
    world
}

#[test]
fn times_of_a_directory_that_are_not_ours_to_set_are_left() {
    let world = in_anybodys_directory();
    let before = world.tree().without_directory_times();
    world.ok(&["run", "--", "sh", "-c", "echo new > new; rm mine"]);
    let output = world.run(&["undo"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("times"), "{}", said(&output));
    assert!(world.tree().without_directory_times() == before);
    world.ok(&["redo"]);
    assert!(!world.path("mine").exists() && world.path("new").exists());
    world.ok(&["undo"]);
    world.fails(
        3,
        &[
            "run",
            "--on-failure",
            "rollback",
            "--",
            "sh",
            "-c",
            "echo new > new; rm mine; exit 3",
        ],
    );
    assert!(world.tree().without_directory_times() == before);
    world.ok(&["write", "new", "--text", "x"]);
    world.ok(&["undo"]);
    assert!(world.tree().without_directory_times() == before);
    world.check_store();
}

#[test]
fn a_directory_that_was_closed_before_is_closed_again() {
    let world = World::new().of_user(USER);
    for line in [
        "chmod 755 e; echo n > e/n",
        "chmod 755 e; rm e/old",
        "chmod 755 e; mv e/old e/other; echo more >> e/other",
        "chmod 755 e; mv e/old .",
        "chmod 755 e e/f; echo n > e/f/n",
    ] {
        for directory in ["e/f", "e"] {
            fs::create_dir_all(world.path(directory)).unwrap();
        }
        world.file("e/old", "old\n");
        for name in ["e", "e/f", "e/old"] {
            chown(world.path(name), Some(USER), Some(USER)).unwrap();
        }
        for directory in ["e/f", "e"] {
            fs::set_permissions(world.path(directory), Permissions::from_mode(0o555)).unwrap();
        }
        super::there_and_back(&world, line);
        fs::remove_dir_all(world.path("e")).unwrap();
    }
}

/// What its own user may not read any more is his all the same: it is settled, taken back and brought again.
#[test]
fn what_a_command_closes_to_its_own_user_goes_there_and_back() {
    for line in [
        "chmod 000 f",
        "chmod 200 f",
        "chmod 000 f big d/in",
        "echo more >> f; chmod 000 f",
        "chmod 200 f; echo more >> f",
        "echo more >> big; chmod 000 big",
        "chmod 200 big; echo more >> big",
        "echo x > new; chmod 000 new",
        "umask 777; echo x > new; mkdir newer",
        "head -c 2000000 /dev/zero > new; chmod 000 new",
        "setfattr -n user.n -v 2 f; chmod 000 f",
        "setfattr -x user.n f; chmod 000 f",
        "mv f g; chmod 000 g",
        "ln f g; echo more >> g; chmod 000 f",
        "echo more >> d/one; chmod 000 d/two",
        "chmod 000 d",
        "chmod 300 d",
        "echo x > d/new; chmod 000 d",
        "echo x >> d/in; rm d/gone; chmod 000 d",
        "mkdir e; echo x > e/f; ln -s f e/link; chmod 000 e",
        "mkdir e; echo x > e/f; chmod 555 e",
        "mkdir -p e/e; echo x > e/e/f; chmod 000 e/e e",
        "mkdir e; mv d e/d; chmod 000 e/d e",
        "mv d e; chmod 000 e",
        "chmod 000 d; chmod 755 d; rm -r d",
    ] {
        let world = World::new().of_user(USER);
        fs::create_dir(world.path("d")).unwrap();
        world.file("f", "before\n");
        world.file("big", &"big\n".repeat(50_000));
        for name in ["d/in", "d/gone", "d/one"] {
            world.file(name, "within\n");
        }
        fs::hard_link(world.path("d/one"), world.path("d/two")).unwrap();
        for name in ["d", "f", "big", "d/in", "d/gone", "d/one"] {
            chown(world.path(name), Some(USER), Some(USER)).unwrap();
        }
        rustix::fs::setxattr(
            world.path("f"),
            "user.n",
            b"1",
            rustix::fs::XattrFlags::empty(),
        )
        .unwrap();
        super::there_and_back(&world, line);
    }
}

/// A file that somebody took from its user while the command ran cannot be looked at: other work goes on, and what the
/// command did is not forgotten.
#[test]
fn what_was_taken_from_a_commands_user_keeps_nobody_else_waiting() {
    let world = World::new().of_user(USER);
    let line = "echo x > new; echo > made; until [ -e go ]; do sleep 0.01; done";
    let child = world.command(&["run", "--", "sh", "-c", line]).spawn();
    let mut child = child.unwrap();
    wait_for(|| world.path("made").exists());
    chown(world.path("new"), Some(0), Some(0)).unwrap();
    fs::set_permissions(world.path("new"), Permissions::from_mode(0o600)).unwrap();
    fs::write(world.path("go"), "").unwrap();
    assert!(!child.wait().unwrap().success());
    world.ok(&["write", "other", "--text", "x"]);
    world.ok(&["undo"]);
    assert!(!world.path("other").exists());
    chown(world.path("new"), Some(USER), Some(USER)).unwrap();
    world.ok(&["recover"]);
    world.ok(&["undo", "--force"]);
    assert!(!world.path("new").exists());
    world.check_store();
}
