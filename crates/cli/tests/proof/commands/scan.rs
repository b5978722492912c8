//! Where nothing can be watched, directories are compared before and after.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::disk::Disk;
use crate::world::{World, said};

#[test]
fn a_scan_takes_back_what_nobody_watched() {
    let world = World::new().with_project();
    let before = world.tree();
    for line in [
        "rm -rf src; echo x >> app.toml; mv run.sh moved; mkdir -p a/b; echo y > a/b/c; chmod 600 large.bin",
        "echo same > app.toml; rm large.bin; ln -s x y",
        "rm dangling; touch -d 2001-01-01 app.toml",
    ] {
        let output = world.run(&["run", "--capture", "scan", "--", "sh", "-c", line]);
        assert!(output.status.success(), "{}", said(&output));
        assert!(world.tree() != before);
        world.ok(&["undo"]);
        let now = world.tree();
        assert!(now == before, "{line}\n{}", now.difference(&before));
    }
    let shown = world.json(&["show", "@"]);
    assert!(
        shown.to_string().contains("\"mode\":\"scan\""),
        "the record says how"
    );
    world.check_store();
}

#[test]
fn roots_catch_what_passes_the_watch_by() {
    let world = World::new().with_project();
    let before = world.tree();
    // Somebody else writes for the command: a process that was there before it.
    let there = world.path("");
    let daemon = "while [ ! -e ../asked ]; do sleep 0.02; done; echo by daemon > app.toml; rm run.sh; touch ../done";
    let mut daemon = Command::new("sh")
        .args(["-c", daemon])
        .current_dir(&there)
        .spawn()
        .unwrap();
    let line = "echo own > own; touch ../asked; while [ ! -e ../done ]; do sleep 0.02; done";
    let output = world.run(&["run", "--roots", ".", "--", "sh", "-c", line]);
    assert!(output.status.success(), "{}", said(&output));
    daemon.wait().unwrap();
    assert_eq!(world.read("app.toml"), "by daemon\n");
    world.ok(&["undo"]);
    let now = world.tree();
    assert!(now == before, "{}", now.difference(&before));
}

/// A scan keeps bytes and not inodes, and says so of what it tears apart.
#[test]
fn names_of_one_file_that_a_scan_takes_apart_are_told() {
    let world = World::new();
    for number in 0..12 {
        let (name, other) = (format!("f{number:02}"), format!("g{number:02}"));
        world.file(&name, "0\n");
        std::fs::hard_link(world.path(&name), world.path(&other)).unwrap();
    }
    let before = world.tree();
    let output = world.run(&["run", "--capture", "scan", "--", "sh", "-c", "rm f00"]);
    let told = "`f00` had other names; an undo brings back what was in it, as a file of its own";
    assert!(said(&output).contains(told), "{}", said(&output));
    assert!(!said(&output).contains("f01"), "{}", said(&output));
    world.ok(&["undo"]);
    let now = world.tree();
    let apart = before.taken_apart(&["f00".to_owned(), "g00".to_owned()]);
    assert!(now == apart, "{}", now.difference(&apart));
    let output = world.run(&["run", "--capture", "scan", "--", "sh", "-c", "rm f*"]);
    let more = "and 1 more files that had other names";
    assert!(said(&output).contains(more), "{}", said(&output));
}

/// So does a watch where nothing can be kept as an inode.
#[test]
fn names_of_one_file_that_cannot_be_kept_as_an_inode_are_told() {
    const USER: u32 = 12345;
    let disk = Disk::memory(16 * 1024);
    let closed = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(disk.root(), closed).unwrap();
    let world = World::at(&disk.path(), None).of_user(USER);
    world.file("a", "0\n");
    std::fs::hard_link(world.path("a"), world.path("b")).unwrap();
    std::os::unix::fs::chown(world.path("a"), Some(USER), Some(USER)).unwrap();
    let output = world.run(&["run", "--", "rm", "a"]);
    let told = "`a` had other names; an undo brings back what was in it, as a file of its own";
    assert!(said(&output).contains(told), "{}", said(&output));
    world.ok(&["undo"]);
    assert_eq!(
        (world.read("a"), world.read("b")),
        ("0\n".to_owned(), "0\n".to_owned())
    );
}

/// Only files that changed since the last scan are read.
#[test]
fn the_index_spares_reading() {
    let world = World::new();
    for number in 0..20 {
        world.file(
            &format!("f{number}"),
            &format!("content {number}\n").repeat(10_000),
        );
    }
    let opened = |world: &World| {
        let trace = world.scratch("trace");
        let mut command = Command::new("strace");
        command
            .args(["-f", "-e", "trace=openat", "-o"])
            .arg(&trace)
            .arg(env!("CARGO_BIN_EXE_backout"))
            .args(["run", "--capture", "scan", "--", "true"])
            .current_dir(world.path(""))
            .env("BACKOUT_STATE_DIR", world.state());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        let text = std::fs::read_to_string(trace).unwrap();
        let names = text
            .lines()
            .filter(|line| line.contains("\"f") && !line.contains("O_PATH"));
        names.count()
    };
    assert_eq!(opened(&world), 20, "all, the first time");
    assert_eq!(opened(&world), 0, "none, when nothing changed");
    world.file("f7", "changed\n");
    assert_eq!(opened(&world), 1);
}
