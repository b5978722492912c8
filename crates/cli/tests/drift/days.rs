//! Bad days: deaths while something is noted, a clock that goes back, a store that nobody can write, commands under way.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::world::World;

#[test]
fn a_death_while_it_notes_leaves_all_of_it_or_nothing() {
    for (point, noted) in [("drift.noting", 0), ("drift.noted", 1)] {
        let world = World::new();
        world.write("a", "1");
        world.put("a", "2");
        let mut command = world.command(&["watch", "--once"]);
        let output = command.env("BACKOUT_CRASH_AT", point).output().unwrap();
        assert!(!output.status.success(), "{point}");
        assert_eq!(world.notes(), noted, "{point}");
        assert_eq!(world.sweep().len(), 1);
        assert_eq!(world.notes(), 1);
        world.does(&["verify"]);
    }
}

#[test]
fn a_death_while_it_accepts_leaves_the_drift_open_or_recorded() {
    for point in ["drift.accepting", "drift.accepted"] {
        let world = World::new();
        world.write("a", "1");
        world.put("a", "2");
        world.sweep();
        let mut command = world.command(&["drift", "accept", "a"]);
        let output = command.env("BACKOUT_CRASH_AT", point).output().unwrap();
        assert!(!output.status.success(), "{point}");
        assert_eq!(fs::read_to_string(world.path("a")).unwrap(), "2");
        let open = world.sweep();
        if point == "drift.accepting" {
            assert_eq!(open.len(), 1);
            world.does(&["drift", "accept", "a"]);
        }
        assert_eq!(world.sweep(), []);
        world.does(&["verify"]);
    }
}

#[test]
fn a_killed_watch_is_followed_by_another_that_tells_nothing_twice() {
    let world = World::new();
    world.write("a", "1");
    let mut watching = world.watch(&["--interval", "1"], &[]);
    world.put("a", "2");
    assert_eq!(watching.next()["drift"], "detected");
    watching.end(nix::sys::signal::Signal::SIGKILL);
    assert_eq!(world.sweep().len(), 1);
    assert_eq!(world.notes(), 1);
}

#[test]
fn a_file_with_a_clock_that_was_set_back_is_compared_by_its_bytes() {
    let world = World::new();
    world.write("a", "one");
    let mut watching = world.watch(&["--interval", "1"], &[]);
    let times = fs::metadata(world.path("a")).unwrap();
    world.put("a", "two");
    let file = fs::File::options()
        .write(true)
        .open(world.path("a"))
        .unwrap();
    file.set_modified(times.modified().unwrap()).unwrap();
    assert_eq!(watching.next()["drift"], "detected");
}

#[test]
fn a_read_of_a_store_that_cannot_be_written_is_a_read() {
    if rustix::process::geteuid().is_root() {
        return;
    }
    let world = World::new();
    world.write("a", "1");
    let id = world.newest();
    world.put("a", "2");
    fs::set_permissions(&world.state, fs::Permissions::from_mode(0o500)).unwrap();
    let output = world.run(&["show", &id]);
    fs::set_permissions(&world.state, fs::Permissions::from_mode(0o700)).unwrap();
    assert!(output.status.success());
    assert_eq!(world.notes(), 0);
}

#[test]
fn a_read_waits_for_nobody() {
    let world = World::new();
    world.write("a", "1");
    let id = world.newest();
    world.put("a", "2");
    let script = "import sqlite3,sys\nc=sqlite3.connect(sys.argv[1],isolation_level=None)\nc.execute('BEGIN IMMEDIATE')\nprint('locked',flush=True)\nsys.stdin.read()\nc.execute('ROLLBACK')";
    let mut locker = std::process::Command::new("python3")
        .args(["-c", script])
        .arg(world.state.join("journal.sqlite"))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let out = locker.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).unwrap();
    let began = std::time::Instant::now();
    assert!(world.run(&["show", &id]).status.success());
    assert!(began.elapsed() < std::time::Duration::from_secs(20));
    drop(locker.stdin.take());
    locker.wait().unwrap();
    assert_eq!(world.notes(), 0);
    world.does(&["show", &id]);
    assert_eq!(world.notes(), 1);
}

#[test]
fn what_a_command_under_way_writes_is_not_taken_for_somebody_elses() {
    let world = World::new();
    world.write("a", "1");
    let script = "echo 2 > a; touch started; while [ ! -e go ]; do sleep 0.05; done";
    let mut running = world
        .command(&["run", "--", "sh", "-c", script])
        .spawn()
        .unwrap();
    while !world.path("started").exists() {
        std::thread::yield_now();
    }
    let report = world.json(&["watch", "--once"]);
    assert_eq!(report["open"].as_array().map(Vec::len), Some(0), "{report}");
    assert_eq!(report["deferred"], 1, "{report}");
    world.put("go", "");
    assert!(running.wait().unwrap().success());
    assert_eq!(world.sweep(), []);
}
