//! `desktop = true`, with the real `notify-send` and a daemon that owns the name on a bus of its own.

use std::fs;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::{json, ruled};
use crate::rollout::until;
use crate::world::{World, said};

const RULES: &str = "[protect]\nask = ['d']\n[notify]\ndesktop = true\n";

/// A bus of its own, with a daemon for notices or without one. Ends with the test.
struct Desktop {
    address: String,
    processes: Vec<Child>,
}

impl Desktop {
    fn new(world: &World, has_daemon: bool) -> Self {
        let socket = world.scratch("bus");
        let address = format!("unix:path={}", socket.display());
        // Nothing is started on demand: a real desktop would be told of the test.
        let config = world.scratch("bus.conf");
        let policy = "<policy context=\"default\"><allow send_destination=\"*\" eavesdrop=\"true\"/>\
                      <allow eavesdrop=\"true\"/><allow own=\"*\"/></policy>";
        let text = format!(
            "<busconfig><type>session</type><listen>{address}</listen><auth>EXTERNAL</auth>{policy}</busconfig>"
        );
        fs::write(&config, text).unwrap();
        let bus = Command::new("dbus-daemon")
            .args(["--nofork", "--nopidfile", "--nosyslog", "--config-file"])
            .arg(&config)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut desktop = Self {
            address,
            processes: vec![bus],
        };
        until("the bus is there", || socket.exists());
        if has_daemon {
            let program = world.scratch("notifications.py");
            fs::write(&program, include_str!("../fixtures/notifications.py")).unwrap();
            // The one that sees the packages of the system.
            let daemon = Command::new("/usr/bin/python3")
                .arg(program)
                .arg(world.scratch("notices"))
                .env("DBUS_SESSION_BUS_ADDRESS", &desktop.address)
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            desktop.processes.push(daemon);
            until("somebody shows notices", || {
                world.scratch("notices").exists()
            });
        }
        desktop
    }

    fn command(&self, world: &World, line: &[&str]) -> Command {
        let mut command = world.command(line);
        command.env("DBUS_SESSION_BUS_ADDRESS", &self.address);
        command
    }
}

impl Drop for Desktop {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _gone = process.kill();
            let _reaped = process.wait();
        }
    }
}

fn notices(world: &World) -> Vec<Value> {
    let text = fs::read_to_string(world.scratch("notices")).unwrap_or_default();
    let lines = text.lines().map(serde_json::from_str);
    lines.map(Result::unwrap).collect()
}

#[test]
fn a_desktop_shows_what_waits_and_takes_no_name_for_markup() {
    let world = ruled(RULES);
    world.file("d/<b>a&b", "old\n");
    let desktop = Desktop::new(&world, true);
    let write = ["--agent", "bob", "write", "d/<b>a&b", "--text", "new\n"];
    let output = desktop.command(&world, &write).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(!said(&output).contains("was not told"), "{}", said(&output));
    let notices = notices(&world);
    let [notice] = notices.as_slice() else {
        panic!("{notices:?}");
    };
    assert_eq!(notice["summary"], "Backout");
    let body = notice["body"].as_str().unwrap();
    assert!(
        body.starts_with("backout: waits for a decision: write "),
        "{body}"
    );
    assert!(body.contains("&lt;b&gt;a&amp;b"), "{body}");
}

#[test]
fn a_desktop_shows_an_undo_that_failed() {
    let world = ruled(RULES);
    world.file("a", "old and only here\n");
    let desktop = Desktop::new(&world, true);
    let id = json(&world, 0, &["write", "a", "--text", "new\n"])["id"].clone();
    let journal = rusqlite::Connection::open(world.state().join("journal.sqlite")).unwrap();
    journal
        .execute_batch("DELETE FROM content WHERE size = 18")
        .unwrap();
    drop(journal);
    let undo = ["undo", id.as_str().unwrap()];
    let output = desktop.command(&world, &undo).output().unwrap();
    assert!(!output.status.success(), "{}", said(&output));
    let notices = notices(&world);
    let [notice] = notices.as_slice() else {
        panic!("{notices:?} {}", said(&output));
    };
    let body = notice["body"].as_str().unwrap();
    assert!(
        body.starts_with("backout: an undo failed: write "),
        "{body}"
    );
}

#[test]
fn a_desktop_without_a_daemon_is_told_of_with_the_answer() {
    let world = ruled(RULES);
    world.file("d/a", "old\n");
    let desktop = Desktop::new(&world, false);
    let write = ["write", "d/a", "--text", "new\n"];
    let output = desktop.command(&world, &write).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(
        said(&output).contains("the desktop was not told: "),
        "{}",
        said(&output)
    );
    assert_eq!(
        world.json(&["pending"])["proposals"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}
