//! The ladder under real failures: read-only and full disks, damaged stores, and a death on every rung.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;

use crate::disk::Disk;
use crate::world::{World, said};

/// SIGABRT.
const ABORTED: i32 = 6;

fn tamper(world: &World, sql: &str) {
    let journal = rusqlite::Connection::open(world.state().join("journal.sqlite")).unwrap();
    journal.execute_batch(sql).unwrap();
}

fn failed(world: &World) -> Vec<serde_json::Value> {
    let failed = world.json(&["failed"]);
    failed["failed"].as_array().unwrap().clone()
}

fn ids(world: &World) -> Vec<String> {
    let log = world.json(&["log"]);
    let log = log["operations"].as_array().unwrap().iter();
    log.map(|op| op["id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_read_only_file_system_fails_one_undo_and_holds_up_no_other() {
    let disk = Disk::memory(4096);
    let world = World::new();
    world.file("here", "0");
    fs::write(disk.path().join("there"), "0").unwrap();
    let there = disk.path().join("there").display().to_string();
    world.ok(&["write", &there, "--text", "1"]);
    world.ok(&["write", "here", "--text", "1"]);
    disk.remount("ro");
    let output = world.run(&["undo", "@", "@-1"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert_eq!(world.read("here"), "0", "{}", said(&output));
    assert_eq!(failed(&world).len(), 1, "{}", said(&output));
    disk.remount("rw");
    world.ok(&["failed", "--retry"]);
    assert_eq!(fs::read_to_string(&there).unwrap(), "0");
    assert!(failed(&world).is_empty());
    world.check_store();
}

#[test]
fn a_full_disk_fails_an_undo_that_works_when_there_is_room() {
    let disk = Disk::memory(4096);
    let world = World::new();
    world.file("here", "0");
    let there = disk.path().join("there").display().to_string();
    fs::write(&there, "some text\n".repeat(3000)).unwrap();
    world.ok(&["write", &there, "--text", "1"]);
    world.ok(&["write", "here", "--text", "1"]);
    disk.fill();
    let output = world.run(&["undo", "@", "@-1"]);
    assert_eq!(world.read("here"), "0", "{}", said(&output));
    // What is kept as it is needs no room. If it did, it waits, and nothing is half done.
    let waits = !failed(&world).is_empty();
    let is_back = fs::read_to_string(&there).unwrap().len() == 30_000;
    assert!(waits != is_back, "{}", said(&output));
    disk.empty();
    if waits {
        world.ok(&["failed", "--retry"]);
    }
    assert_eq!(fs::read_to_string(&there).unwrap().len(), 30_000);
    world.check_store();
}

#[test]
fn damaged_bytes_are_taken_from_a_copy_that_a_recorded_operation_made() {
    let world = World::new().with_project();
    world.ok(&["cp", "app.toml", "app.bak"]);
    world.ok(&["write", "app.toml", "--text", "port = 1\n"]);
    tamper(
        &world,
        "UPDATE content SET form = 0, bytes = x'706f7274203d20363636360a' WHERE size = 12",
    );
    let told = world.ok(&["undo"]);
    assert_eq!(world.read("app.toml"), "port = 8080\n", "{told}");
    assert!(failed(&world).is_empty());
    world.check_store();
    world.ok(&["redo"]);
    world.ok(&["undo"]);
    assert_eq!(world.read("app.toml"), "port = 8080\n");
}

/// The points on the way up where nothing helps but the hook, and that may.
const POINTS: [&str; 8] = [
    "ladder.failed",
    "ladder.found-elsewhere",
    "ladder.fallen-back",
    "ladder.restore-began",
    "ladder.restore-ended",
    "ladder.restore-told",
    "ladder.alert-began",
    "ladder.alert-told",
];

/// A write whose old bytes are lost, and an independent one.
fn trouble() -> (World, String) {
    let world = World::new().with_project();
    fs::copy(world.path("app.toml"), world.scratch("backup")).unwrap();
    world.ok(&["write", "app.toml", "--text", "port = 1\n"]);
    world.ok(&["write", "other.txt", "--text", "1"]);
    tamper(&world, "DELETE FROM content WHERE size = 12");
    let id = ids(&world).pop().unwrap();
    (world, id)
}

/// Has a command find hooks in the user's own rules, a line for a shell each.
fn with_hooks(command: &mut Command, world: &World, restore: &str, alert: &str) {
    let shell = |line: &str| serde_json::json!(["sh", "-c", line]).to_string();
    let severities = ["low", "medium", "high", "critical"];
    let ladders = severities.map(|severity| {
        let hook = shell(restore);
        format!("[ladder.{severity}]\nrestore = {hook}\n")
    });
    let rules = format!("{}[notify]\ncommand = {}\n", ladders.concat(), shell(alert));
    let config = world.scratch("config");
    fs::create_dir_all(config.join("backout")).unwrap();
    fs::write(config.join("backout/backout.toml"), rules).unwrap();
    command.env("XDG_CONFIG_HOME", config);
}

fn called(world: &World, name: &str) -> usize {
    let log = fs::read_to_string(world.scratch(name)).unwrap_or_default();
    log.lines().count()
}

#[test]
fn a_death_on_any_rung_is_told_and_no_hook_is_called_again_unasked() {
    for point in POINTS {
        let (world, id) = trouble();
        let hook = |name: &str| format!("echo x >> {}", world.scratch(name).display());
        let mut doomed = world.command(&["undo", &id, "@"]);
        with_hooks(&mut doomed, &world, &hook("restored"), &hook("told"));
        let output = doomed.env("BACKOUT_CRASH_AT", point).output().unwrap();
        assert_eq!(
            output.status.signal(),
            Some(ABORTED),
            "{point}: {}",
            said(&output)
        );
        let before = (called(&world, "restored"), called(&world, "told"));
        // Whoever comes next does his own work, with the same hooks at hand.
        for command in [
            &["write", "third.txt", "--text", "3"][..],
            &["recover"],
            &["status"],
        ] {
            let mut next = world.command(command);
            with_hooks(&mut next, &world, &hook("restored"), &hook("told"));
            let output = next.output().unwrap();
            assert!(output.status.success(), "{point}: {}", said(&output));
        }
        let after = (called(&world, "restored"), called(&world, "told"));
        assert_eq!(before, after, "{point}: a hook was called again");
        assert_eq!(
            world.read("other.txt"),
            "<No such file or directory (os error 2)>",
            "{point}"
        );
        let waiting = failed(&world);
        assert_eq!(waiting.len(), 1, "{point}: {waiting:?}");
        assert_eq!(waiting[0]["id"], id.as_str(), "{point}");
        if point.ends_with("began") || point.ends_with("restore-ended") {
            let told = world.ok(&["failed"]);
            let said = "it began, and whoever called it died; nobody knows what came of it";
            assert!(told.contains(said), "{point}: {told}");
        }
        // Somebody asks, with a hook that helps.
        let backup = world.scratch("backup").display().to_string();
        let mut again = world.command(&["failed", "--retry"]);
        let helps = format!("cp -p {backup} {}", world.path("app.toml").display());
        with_hooks(&mut again, &world, &helps, "true");
        let output = again.output().unwrap();
        assert_eq!(
            world.read("app.toml"),
            "port = 8080\n",
            "{point}: {}",
            said(&output)
        );
        assert!(failed(&world).is_empty(), "{point}: {}", said(&output));
    }
}

#[test]
fn a_death_on_two_rungs_is_told_and_the_next_who_asks_ends_it() {
    let every = std::env::var_os("BACKOUT_EVERY_PAIR").is_some();
    let is_chosen = |point: &&str| every || point.contains("restore-");
    for first in POINTS.into_iter().filter(is_chosen) {
        for second in POINTS {
            let at = format!("{first}, then {second}");
            let (world, id) = trouble();
            let hook = |name: &str| format!("echo x >> {}", world.scratch(name).display());
            let (restored, told) = (hook("restored"), hook("told"));
            for (line, point) in [(["undo", &id], first), (["failed", "--retry"], second)] {
                let mut doomed = world.command(&line);
                with_hooks(&mut doomed, &world, &restored, &told);
                let output = doomed.env("BACKOUT_CRASH_AT", point).output().unwrap();
                let signal = output.status.signal();
                assert_eq!(signal, Some(ABORTED), "{at}: {}", said(&output));
            }
            assert!(called(&world, "restored") <= 2, "{at}");
            assert!(called(&world, "told") <= 2, "{at}");
            assert_eq!(world.read("app.toml"), "port = 1\n", "{at}");
            let waiting = failed(&world);
            assert_eq!(waiting.len(), 1, "{at}: {waiting:?}");
            // Somebody asks, with a hook that helps.
            let backup = world.scratch("backup").display().to_string();
            let helps = format!("cp -p {backup} {}", world.path("app.toml").display());
            let mut again = world.command(&["failed", "--retry"]);
            with_hooks(&mut again, &world, &helps, "true");
            let output = again.output().unwrap();
            let now = world.read("app.toml");
            assert_eq!(now, "port = 8080\n", "{at}: {}", said(&output));
            assert!(failed(&world).is_empty(), "{at}: {}", said(&output));
        }
    }
}

#[test]
fn a_death_while_somebody_accepts_leaves_it_open_or_accepted() {
    for (point, waits) in [("ladder.accepting", 1), ("ladder.accepted-by-hand", 0)] {
        let (world, id) = trouble();
        world.run(&["undo", &id]);
        assert_eq!(failed(&world).len(), 1);
        let mut doomed = world.command(&["failed", "--accept", &id, "--why", "x"]);
        let output = doomed.env("BACKOUT_CRASH_AT", point).output().unwrap();
        assert_eq!(
            output.status.signal(),
            Some(ABORTED),
            "{point}: {}",
            said(&output)
        );
        assert_eq!(failed(&world).len(), waits, "{point}");
    }
}
