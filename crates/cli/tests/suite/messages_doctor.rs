//! What the doctor finds, and what it says of machines that cannot do all that others can. Copies that share their blocks need
//! a file system that has them: `proof/fidelity.rs`.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use crate::claims::{is_root, stopped_before};
use crate::world::{Ran, World};

/// The lines of a reply that speak of something.
fn about(ran: &Ran, word: &str) -> String {
    let mut lines = ran.out.lines().skip_while(|line| !line.contains(word));
    let first = lines.next().unwrap();
    let more = lines.take_while(|line| line.starts_with("      "));
    std::iter::once(first)
        .chain(more)
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn a_state_directory_that_was_opened_to_others_is_closed_again() {
    let world = World::new();
    world.did(["write", "a", "--text", "1"]);
    let state = world.place("state");
    fs::set_permissions(&state, fs::Permissions::from_mode(0o755)).unwrap();
    insta::assert_snapshot!(about(&world.unmoved(["doctor"]), "privacy"), @"ok  privacy       the state directory is closed to others");
    let mode = fs::metadata(&state).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn what_two_dead_processes_left() {
    let write = ["write", "a", "--text", "1"];
    let (world, waiting) = stopped_before("file.swap", World::new, &write);
    // It lives while the second dies, so nobody recovers it on the way.
    world.dies("engine.armed", ["write", "b", "--text", "1"]);
    drop(waiting);
    insta::assert_snapshot!(about(&world.unmoved(["doctor"]), "unfinished"), @"
    bad  unfinished    2 operations were left behind by dead processes
                       next: run `backout recover`
    ");
    world.did(["recover"]);
    insta::assert_snapshot!(about(&world.unmoved(["doctor"]), "unfinished"), @"ok  unfinished    0 operations under way, none abandoned");
    assert!(!world.has("a") && !world.has("b"));
}

#[test]
fn what_waits_for_several_decisions() {
    let world = World::new().file("a", "0").file("b", "0");
    for name in ["a", "b"] {
        world.dies("engine.before-commit", ["write", name, "--text", "1"]);
        world.put(name, "theirs");
        assert_eq!(world.cli(["recover"]).code, 1);
    }
    insta::assert_snapshot!(about(&world.unmoved(["doctor"]), "stuck"), @"
    bad  stuck         2 operations wait for a decision; the newest is daa66d2c, in-doubt
                       next: keep what is there with `backout recover --keep daa66d2c`, or take it back with `backout recover --rollback daa66d2c`; that needs `--force` where something was done on top of it
    ");
}

#[test]
fn a_directory_that_is_not_there() {
    let world = World::new();
    world.did(["write", "a", "--text", "1"]);
    let ran = world.unmoved(["doctor", "nowhere"]);
    insta::assert_snapshot!(about(&ran, "file system"), @"
    bad  file system   `nowhere` cannot be looked at: No such file or directory (os error 2)
                       next: name a directory that is there and open to you
    ");
    assert_eq!(ran.code, 1, "{ran}");
    // What was not looked at is not called good.
    assert!(!ran.out.contains("openat2"), "{ran}");
}

#[test]
fn a_machine_that_gives_no_namespaces_has_no_layers() {
    if !is_root() {
        return;
    }
    let world = World::new();
    let line = format!(
        "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all {} doctor",
        env!("CARGO_BIN_EXE_backout")
    );
    let words = ["-r", "sh", "-c", &line];
    let ran = world.run(&mut world.program(std::path::Path::new("/usr/bin/unshare"), &words));
    insta::assert_snapshot!(about(&ran, "layers"), @"
    bad  layers        `try` does not work here: the layers could not be set up: cannot make a user namespace: No space left on device (os error 28)
                       next: use `backout run`, or allow user namespaces and overlays to this user (inside of a container: to the container)
    ");
}

#[test]
fn where_somebody_watches_already_nobody_else_can() {
    let world = World::new();
    symlink(env!("CARGO_BIN_EXE_backout"), world.place("program")).unwrap();
    let alone = "env -u BACKOUT_RELAY -u BACKOUT_RUN BACKOUT_STATE_DIR=$PWD/state ../program";
    let line = format!("{alone} doctor");
    let ran = world.cli(["run", "--", "sh", "-c", &line]);
    insta::assert_snapshot!(about(&ran, "live capture"), @"
    bad  live capture  `run` cannot watch commands here: the kernel gives no listener (seccomp): Device or resource busy (os error 16)
                       next: it needs seccomp user notification (Linux 5.9 or newer, and a container that allows it), and no other watcher; `backout run --roots DIR` compares directories instead
    ");
    // Directories that are named are compared instead, and that is said.
    let line = format!("mkdir d; {alone} run --roots d -- sh -c 'echo 1 > d/f'; {alone} undo");
    let ran = world.cli(["run", "--", "sh", "-c", &line]);
    insta::assert_snapshot!(ran, @"
    undid 78dde6e5  run sh -c 'echo 1 > d/f'  (the newest below .)
      d/f  gone, as before
    note: it could not be watched, so directories were compared: the kernel gives no listener (seccomp): Device or resource busy (os error 16)
    hint: take this back with `backout redo 1715609f`
    ");
    assert!(world.has("d") && !world.has("d/f"));
}
