//! A storm of kills on commands that leave processes behind, serve a file system, or become another user: every command is
//! recorded, whole or interrupted, and can be taken back, and nothing hangs.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

use super::behaviour::wait_for;
use super::storm::kill_watching;
use crate::random::Random;
use crate::world::{Tree, World, said};

/// Rounds of each kind; `BACKOUT_SURVIVOR_ROUNDS=N` for more.
const ROUNDS: usize = 6;

/// Longer than this nothing may take, whatever was killed.
const HANGS: Duration = Duration::from_mins(2);

/// A process goes on for a while when its command is over.
const LEAVES: &str = "echo $RANDOM > f; mv keep kept; \
    (setsid bash -c 'for i in 1 2 3 4 5; do echo late $i >> late; mv -T kept keep$i 2> /dev/null; echo $i >> g; done' > /dev/null 2>&1 < /dev/null &); \
    rm -f old; echo x >> f";

/// A server of its own, by which the rest is done.
const SERVES: &str = "bindfs under over && { echo $RANDOM > over/f; mv over/keep over/kept; rm -f over/old; mkdir over/d; echo x >> over/d/g; }; umount over";

/// Another user does the rest.
const BECOMES: &str = "echo $RANDOM > f; setpriv --reuid=12345 --regid=12345 --clear-groups bash -c \
    'for i in 1 2 3 4; do echo $i >> keep; mv keep k$i; ln k$i l$i; rm -f old; mkdir d$i; mv k$i keep; done'; rm -f f";

#[test]
fn killed_commands_that_leave_processes_can_be_taken_back() {
    storm("leaves", LEAVES);
}

#[test]
fn killed_commands_that_serve_a_file_system_can_be_taken_back() {
    if Command::new("bindfs").arg("--version").output().is_ok() {
        storm("serves", SERVES);
    }
}

#[test]
fn killed_commands_of_another_user_can_be_taken_back() {
    storm("becomes", BECOMES);
}

fn storm(kind: &str, line: &str) {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let rounds =
        std::env::var("BACKOUT_SURVIVOR_ROUNDS").map_or(ROUNDS, |text| text.parse().unwrap());
    let world = World::in_memory();
    prepare(&world, kind);
    let mut random = Random::new(7);
    let (mut kills, mut ends) = (0, 0);
    for _ in 0..rounds {
        let before = tree(&world);
        let child = world.spawn(&["run", "--", "bash", "-c", line]);
        let front = child.id();
        let pause = u64::try_from(random.below(150)).unwrap();
        std::thread::sleep(Duration::from_millis(pause));
        if random.below(3) > 0 {
            kill_watching(front);
        }
        let output = within(child);
        if output.status.success() {
            ends += 1;
        } else {
            kills += 1;
        }
        let recovered = world.run(&["recover"]);
        assert!(recovered.status.success(), "{}", said(&recovered));
        wait_for(|| world.json(&["status"])["unfinished"] == serde_json::json!([]));
        // A server that was killed leaves a mount that nobody answers for.
        let _none = Command::new("umount")
            .args(["-l"])
            .arg(world.path("over"))
            .output();
        take_back(&world);
        let now = tree(&world);
        assert!(
            now == before,
            "{}\n{}",
            said(&output),
            now.difference(&before)
        );
    }
    eprintln!("{kind}: {kills} killed, {ends} ended");
    world.check_store();
}

/// The directory that the command works in, without what it only looks through.
fn tree(world: &World) -> Tree {
    Tree::of(&world.path("")).without_directory_times()
}

fn prepare(world: &World, kind: &str) {
    let inner = if kind == "serves" { "under/" } else { "" };
    for name in ["keep", "old"] {
        world.file(&format!("{inner}{name}"), "before\n");
        chown(
            world.path(&format!("{inner}{name}")),
            Some(12345),
            Some(12345),
        )
        .unwrap();
    }
    fs::create_dir(world.path("over")).unwrap();
    for path in [world.scratch(""), world.path("")] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    }
}

/// Waits for the end, which must come.
fn within(mut child: Child) -> Output {
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < HANGS, "it hangs");
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().unwrap()
}

/// Takes back what the command did, and what it left running, the newest first.
fn take_back(world: &World) {
    let log = world.json(&["log", "-n", "20"]);
    for operation in log["operations"].as_array().unwrap() {
        let is_in_effect = matches!(
            operation["status"].as_str(),
            Some("committed" | "interrupted")
        );
        let is_ours = matches!(operation["verb"].as_str(), Some("run"));
        if !is_in_effect || !is_ours || operation["targets"] == serde_json::json!([]) {
            continue;
        }
        let id = operation["id"].as_str().unwrap();
        let undone = world.run(&["undo", id, "--committed"]);
        let told = said(&undone);
        if !undone.status.success() && !told.contains("already undone") {
            // A process of the command lived on for a moment and wrote into a file that it had open.
            assert!(told.contains("no longer watched"), "{told}");
            world.ok(&["undo", id, "--committed", "--force"]);
        }
    }
}
