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

/// A directory and a file change places.
const SWAPPED: &str = "mv src t; mv app.toml src; mv t app.toml";

/// Does something of everything.
const TRIED: &str = "echo 1 > app.toml; rm run.sh large.bin; mv src moved; mkdir -p a/b; echo x > a/b/c; ln one three; \
                     chmod 600 other; ln -sf app.toml dangling";

/// Rules by which a write is read before and looked at after.
const RULES: &str = "[syntax]\n[policy]\nsecrets = 'deny'\n[[watch]]\nname = 'w'\npaths = ['app.toml']\ncommand = ['true']\n";

/// The same, with a look afterwards that fails.
const FAILING: &str =
    "[[watch]]\nname = 'w'\npaths = ['app.toml']\ncommand = ['false']\ntries = 1\n";

/// A program of the user's own looks at the write before it happens.
const CHECKING: &str =
    "[[check]]\nname = 'c'\npaths = ['app.toml']\ncommand = ['grep', '-q', 'port', '{staged}']\n";

/// One test per workload, so that they run side by side.
macro_rules! workloads {
    ($($name:ident: $before:expr => $command:expr;)*) => {
        $(
            #[test]
            fn $name() {
                let name = stringify!($name);
                at_every_point(&Workload { name, before: $before, command: $command });
            }
        )*
    };
}

workloads! {
    write_over_a_small_file: &[] => &["write", "app.toml", "--text", "port = 1\n"];
    write_over_a_large_file: &[] => &["write", "large.bin", "--text", "small now"];
    write_that_is_logged: &[] => &["--strategy", "transaction", "write", "run.sh", "--text", "#!/bin/sh\nexit\n"];
    write_over_a_large_file_that_is_logged: &[] => &["--strategy", "transaction", "edit", "large.bin", "--search", "0123456789abcdef", "--nth", "9", "--replace", "changed"];
    undo_of_a_logged_write: &[&["--strategy", "transaction", "write", "run.sh", "--text", "#!/bin/sh\nexit\n"]] => &["undo"];
    undo_of_a_large_logged_write: &[&["--strategy", "transaction", "edit", "large.bin", "--search", "0123456789abcdef", "--nth", "9", "--replace", "changed"]] => &["undo"];
    redo_of_a_large_logged_write: &[&["--strategy", "transaction", "edit", "large.bin", "--search", "0123456789abcdef", "--nth", "9", "--replace", "changed"], &["undo"]] => &["redo"];
    restore_a_key: &[&["set", "app.toml", "port", "1"], &["set", "app.toml", "port", "2"]] => &["restore", "app.toml:port", "--from", "@-1"];
    write_over_one_of_two_names: &[] => &["write", "one", "--text", "one name"];
    write_a_new_file: &[] => &["write", "-p", "a/b/new", "--text", "new"];
    write_that_is_watched: &[&["write", "backout.toml", "--text", RULES]] => &["write", "app.toml", "--text", "port = 1\n"];
    undo_of_a_watched_write: &[&["write", "backout.toml", "--text", RULES], &["write", "app.toml", "--text", "port = 1\n"]] => &["undo"];
    write_that_a_watch_takes_back: &[&["write", "backout.toml", "--text", FAILING]] => &["write", "app.toml", "--text", "port = 1\n"];
    write_that_a_program_checks: &[&["write", "backout.toml", "--text", CHECKING]] => &["write", "app.toml", "--text", "port = 1\n"];
    run_that_is_watched: &[&["write", "backout.toml", "--text", RULES]] => &["run", "--", "sh", "-c", "echo 'port = 1' > app.toml; rm run.sh"];
    run_that_a_rule_takes_back: &[&["write", "backout.toml", "--text", RULES]] => &["run", "--", "sh", "-c", "echo '[' > app.toml; rm run.sh"];
    edit: &[] => &["edit", "app.toml", "--search", "8080", "--replace", "1"];
    set_a_key: &[] => &["set", "app.toml", "port", "1"];
    merge_keys: &[] => &["merge", "app.toml", r#"{"port": null, "web": {"tls": true}}"#];
    undo_of_a_key: &[&["set", "app.toml", "port", "1"]] => &["undo"];
    undo_of_a_key_beside_another: &[&["set", "app.toml", "port", "1"], &["set", "app.toml", "host", "a"]] => &["undo", "@-1"];
    redo_of_a_key_beside_another: &[&["set", "app.toml", "port", "1"], &["set", "app.toml", "host", "a"], &["undo", "@-1"]] => &["redo"];
    remove_a_small_file: &[] => &["rm", "run.sh"];
    remove_a_tree: &[] => &["rm", "-r", "src"];
    move_a_tree: &[] => &["mv", "src", "moved"];
    copy_a_tree: &[] => &["cp", "-r", "src", "copied"];
    remove_several_at_once: &[] => &["rm", "-r", "src", "one", "large.bin", "dangling"];
    chmod: &[] => &["chmod", "0600", "run.sh"];
    undo_of_a_write: &[&["write", "app.toml", "--text", "port = 1\n"]] => &["undo"];
    undo_of_a_large_write: &[&["write", "large.bin", "--text", "small now"]] => &["undo"];
    undo_of_a_removed_tree: &[&["rm", "-r", "src"]] => &["undo"];
    undo_of_a_chain: &[&["mkdir", "d"], &["write", "d/f", "--text", "1"], &["write", "d/f", "--text", "2"]] => &["undo", "@-2", "--committed"];
    redo: &[&["rm", "-r", "src"], &["undo"]] => &["redo"];
    apply_a_trial: &[&["try", "--", "sh", "-c", TRIED]] => &["try", "--apply"];
    try_and_apply: &[] => &["try", "--apply", "--", "sh", "-c", TRIED];
    undo_of_a_trial: &[&["try", "--apply", "--", "sh", "-c", TRIED]] => &["undo"];
    run_a_command: &[] => &["run", "--", "sh", "-c", TRIED];
    run_a_command_that_must_survive_power_loss: &[] => &["run", "--durability", "power", "--", "sh", "-c", TRIED];
    run_and_compare: &[] => &["run", "--capture", "scan", "--", "sh", "-c", "echo 1 > app.toml; rm run.sh large.bin; mv src moved; mkdir -p a/b; echo x > a/b/c"];
    undo_of_a_command: &[&["run", "--", "sh", "-c", TRIED]] => &["undo"];
    redo_of_a_command: &[&["run", "--", "sh", "-c", TRIED], &["undo"]] => &["redo"];
    undo_of_a_swap: &[&["run", "--", "sh", "-c", SWAPPED]] => &["undo"];
    redo_of_a_swap: &[&["run", "--", "sh", "-c", SWAPPED], &["undo"]] => &["redo"];
    compaction: &[
        &["write", "app.toml", "--text", "one and more of the same text\n"],
        &["write", "app.toml", "--text", "two and more of the same text\n"],
        &["write", "app.toml", "--text", "three and more of the same text\n"],
    ] => &["gc"];
    garbage_collection: &[
        &["write", "app.toml", "--text", "one\n"],
        &["write", "large.bin", "--text", "small now"],
        &["rm", "-r", "src"],
        &["undo"],
    ] => &["gc", "--keep", "0s", "--keep-at-least", "0s", "--audit", "0s"];
    commit_of_a_task: &[&["task", "begin", "t"], &["--task", "t", "write", "app.toml", "--text", "1"]] => &["commit", "t"];
    rollback_of_a_task: &[&["task", "begin", "t"], &["--task", "t", "write", "app.toml", "--text", "1"], &["--task", "t", "rm", "-r", "src"]] => &["rollback", "t"];
}

/// Each step of a plan that takes several operations back is whole in itself, so the world may also stand between.
fn is_stepwise(workload: &Workload) -> bool {
    workload.name.contains("chain") || workload.name.contains("rollback")
}

fn prepared(workload: &Workload) -> World {
    let world = World::in_memory().with_project();
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
    let is_refused = workload.name.ends_with("takes_back");
    assert!(
        output.status.success() != is_refused,
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
    // Of a command that is watched, it is the watching process that is aborted; the one in front tells.
    let is_told = said(&output).contains(&format!("ended by signal {ABORTED}"));
    assert!(
        output.status.signal() == Some(ABORTED) || is_told,
        "point {point}: {}",
        said(&output)
    );
}

/// After recovery the world is as before or as after, nothing else, and the store is whole.
fn judge(workload: &Workload, world: &World, before: &Tree, after: &Tree, at: &str) {
    world.check_store();
    let now = world.tree().without_directory_times();
    let is_before = now == *before;
    let is_after = now.clone().without_times() == *after;
    if is_before || is_after {
        return;
    }
    // What a command did whose watcher died is kept, and can be taken back.
    if let Some(id) = interrupted(world) {
        world.ok(&["undo", &id]);
        let now = world.tree().without_directory_times();
        let unlike = now.difference(before);
        assert!(now == *before, "{} at {at}:\n{unlike}", workload.name);
        world.check_store();
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

/// Names a command that waits for a decision.
fn interrupted(world: &World) -> Option<String> {
    let status = world.json(&["status"]);
    let mut stuck = status["stuck"].as_array().unwrap().iter();
    let found = stuck.find(|op| op["status"] == "interrupted")?;
    Some(found["id"].as_str().unwrap().to_owned())
}

/// Aborts at every point and recovers; then aborts the recovery of the busiest points as well, at every point of it.
fn at_every_point(workload: &Workload) {
    let (after, points) = undisturbed(workload);
    for point in 1..=points {
        let world = prepared(workload);
        let before = world.tree().without_directory_times();
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
    for point in twice(points) {
        for second in 1.. {
            let world = prepared(workload);
            let before = world.tree().without_directory_times();
            abort_at(&world, workload.command, point);
            let mut recovery = world.command(&["recover"]);
            let output = recovery
                .env("BACKOUT_CRASH_AT", second.to_string())
                .output()
                .unwrap();
            if output.status.success() {
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

/// The points after which the recovery is cut off as well: the middle of the apply, where it has most to do, or all
/// of them for `cargo xtask crash`.
fn twice(points: usize) -> Vec<usize> {
    if std::env::var_os("BACKOUT_EVERY_PAIR").is_some() {
        (1..=points).collect()
    } else {
        vec![points / 2, points * 2 / 3, points - 1]
    }
}

/// A write over a small file, for the tests of single points.
const SIMPLE: Workload = Workload {
    name: "a simple write",
    before: &[],
    command: &["write", "app.toml", "--text", "port = 1\n"],
};

#[test]
fn the_next_command_recovers_by_itself() {
    let workload = &SIMPLE;
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
    let workload = &SIMPLE;
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
