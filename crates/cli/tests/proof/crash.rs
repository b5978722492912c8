//! Crash points, enumerated: count what a workload passes, then abort a real child at each, recover in a new process and
//! compare the whole world.

use std::os::unix::process::ExitStatusExt as _;

use crate::world::{Tree, World, said};

/// SIGABRT.
const ABORTED: i32 = 6;

/// What is done before, and the command that is cut off.
struct Workload {
    name: &'static str,
    before: &'static [&'static [&'static str]],
    command: &'static [&'static str],
}

const WORKLOADS: &[Workload] = &[
    Workload {
        name: "write over a small file",
        before: &[],
        command: &["write", "app.toml", "--text", "port = 1\n"],
    },
    Workload {
        name: "write over a large file",
        before: &[],
        command: &["write", "large.bin", "--text", "small now"],
    },
    Workload {
        name: "write over one of two names",
        before: &[],
        command: &["write", "one", "--text", "one name"],
    },
    Workload {
        name: "write a new file",
        before: &[],
        command: &["write", "-p", "a/b/new", "--text", "new"],
    },
    Workload {
        name: "edit",
        before: &[],
        command: &["edit", "app.toml", "--search", "8080", "--replace", "1"],
    },
    Workload {
        name: "remove a small file",
        before: &[],
        command: &["rm", "run.sh"],
    },
    Workload {
        name: "remove a tree",
        before: &[],
        command: &["rm", "-r", "src"],
    },
    Workload {
        name: "move a tree",
        before: &[],
        command: &["mv", "src", "moved"],
    },
    Workload {
        name: "copy a tree",
        before: &[],
        command: &["cp", "-r", "src", "copied"],
    },
    Workload {
        name: "remove several at once",
        before: &[],
        command: &["rm", "-r", "src", "one", "large.bin", "dangling"],
    },
    Workload {
        name: "chmod",
        before: &[],
        command: &["chmod", "0600", "run.sh"],
    },
    Workload {
        name: "undo of a write",
        before: &[&["write", "app.toml", "--text", "port = 1\n"]],
        command: &["undo"],
    },
    Workload {
        name: "undo of a large write",
        before: &[&["write", "large.bin", "--text", "small now"]],
        command: &["undo"],
    },
    Workload {
        name: "undo of a removed tree",
        before: &[&["rm", "-r", "src"]],
        command: &["undo"],
    },
    Workload {
        name: "undo of a chain",
        before: &[
            &["mkdir", "d"],
            &["write", "d/f", "--text", "1"],
            &["write", "d/f", "--text", "2"],
        ],
        command: &["undo", "@-2", "--committed"],
    },
    Workload {
        name: "redo",
        before: &[&["rm", "-r", "src"], &["undo"]],
        command: &["redo"],
    },
    Workload {
        name: "commit of a task",
        before: &[
            &["task", "begin", "t"],
            &["--task", "t", "write", "app.toml", "--text", "1"],
        ],
        command: &["commit", "t"],
    },
    Workload {
        name: "rollback of a task",
        before: &[
            &["task", "begin", "t"],
            &["--task", "t", "write", "app.toml", "--text", "1"],
            &["--task", "t", "rm", "-r", "src"],
        ],
        command: &["rollback", "t"],
    },
];

/// Each step of a plan that takes several operations back is whole in itself, so the world may also stand between.
fn is_stepwise(workload: &Workload) -> bool {
    workload.name.contains("chain") || workload.name.contains("rollback")
}

fn prepared(workload: &Workload) -> World {
    let world = World::new().with_project();
    for command in workload.before {
        world.ok(command);
    }
    world.ok(&["status"]); // the store is made even where nothing was done before
    world
}

/// Runs the workload undisturbed: the world afterwards, and the number of points it passed.
fn undisturbed(workload: &Workload) -> (Tree, usize) {
    let world = prepared(workload);
    let log = world.scratch("points");
    let output = world
        .command(workload.command)
        .env("BACKOUT_CRASH_LOG", &log)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}: {}",
        workload.name,
        said(&output)
    );
    let points = std::fs::read_to_string(log).unwrap().lines().count();
    assert!(points >= 3, "{}: only {points} points", workload.name);
    world.check_store();
    (world.tree().without_times(), points)
}

fn abort_at(world: &World, command: &[&str], point: usize) {
    let output = world
        .command(command)
        .env("BACKOUT_CRASH_AT", point.to_string())
        .output()
        .unwrap();
    assert_eq!(
        output.status.signal(),
        Some(ABORTED),
        "point {point}: {}",
        said(&output)
    );
}

/// After recovery the world is as before or as after, nothing else, and the store is whole.
fn judge(workload: &Workload, world: &World, before: &Tree, after: &Tree, at: &str) {
    world.check_store();
    let now = world.tree();
    let is_before = now == *before;
    let is_after = now.clone().without_times() == *after;
    if is_before || is_after {
        return;
    }
    if is_stepwise(workload) {
        // Asked again, it ends where it would have ended.
        world.run(workload.command);
        let ended = world.tree().without_times();
        assert_eq!(
            ended,
            *after,
            "{} at {at}:\n{}",
            workload.name,
            ended.difference(after)
        );
        return;
    }
    panic!(
        "{} at {at}: neither before nor after:\n{}",
        workload.name,
        now.difference(before)
    );
}

#[test]
fn a_crash_at_any_point_leaves_before_or_after() {
    for workload in WORKLOADS {
        let (after, points) = undisturbed(workload);
        for point in 1..=points {
            let world = prepared(workload);
            let before = world.tree();
            abort_at(&world, workload.command, point);
            world.ok(&["recover"]);
            judge(
                workload,
                &world,
                &before,
                &after,
                &format!("point {point} of {points}"),
            );
        }
    }
}

#[test]
fn a_crash_of_the_recovery_itself_changes_nothing_of_that() {
    for workload in WORKLOADS {
        let (after, points) = undisturbed(workload);
        // The middle of the apply is where recovery has most to do.
        for point in [points / 2, points * 2 / 3, points - 1] {
            for second in 1.. {
                let world = prepared(workload);
                let before = world.tree();
                abort_at(&world, workload.command, point);
                let recovery = world
                    .command(&["recover"])
                    .env("BACKOUT_CRASH_AT", second.to_string())
                    .output();
                if recovery.unwrap().status.success() {
                    break;
                }
                world.ok(&["recover"]);
                judge(
                    workload,
                    &world,
                    &before,
                    &after,
                    &format!("points {point} and {second}"),
                );
            }
        }
    }
}

#[test]
fn the_next_command_recovers_by_itself() {
    let workload = &WORKLOADS[0];
    let (_, points) = undisturbed(workload);
    let world = prepared(workload);
    abort_at(&world, workload.command, points * 2 / 3);
    world.ok(&["write", "other.txt", "--text", "next"]);
    assert_eq!(world.read("app.toml"), "port = 8080\n");
    world.check_store();
}

#[test]
fn an_acknowledged_write_survives_the_loss_of_its_commit_record() {
    // Power fails right after the answer: the arm is on the disk, the commit record is not. The machine starts
    // again, so the boot differs, and everything is in place.
    let workload = &WORKLOADS[0];
    let world = prepared(workload);
    let output = world
        .command(workload.command)
        .env("BACKOUT_TEST_BOOT", "the-boot-before")
        .env("BACKOUT_CRASH_AT", "engine.before-commit")
        .output()
        .unwrap();
    assert_eq!(output.status.signal(), Some(ABORTED), "{}", said(&output));
    world.ok(&["recover"]);
    assert_eq!(world.read("app.toml"), "port = 1\n");
    assert_eq!(
        world.operations(),
        [("write".to_owned(), "committed".to_owned())]
    );
    world.ok(&["undo"]);
    assert_eq!(world.read("app.toml"), "port = 8080\n");
}
