//! Stories that the official Python client tells (`client.py`).

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use backout_testkit::python_with;

use crate::world::World;

/// The client, with the version that was measured.
const PACKAGE: &str = "mcp==2.3.0";

/// Installs it once, below the target directory.
fn python() -> PathBuf {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mcp-client");
    python_with(&home, &[PACKAGE]).join("python")
}

/// Tells a story, in one of the protocol's ways. Gives what the client printed.
fn tell(world: &World, story: &str, mode: &str, variables: &[(&str, &str)]) -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/client.py");
    let mut command = world.command(python());
    command
        .arg(script)
        .args([story, env!("CARGO_BIN_EXE_backout")])
        .args([world.work(), world.state()])
        .arg(mode)
        .envs(variables.iter().copied());
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(output.status.success(), "{story}: {said}");
    said
}

#[test]
fn every_tool_does_what_it_says_and_answers_by_its_schema() {
    tell(&World::new(), "every_tool", "legacy", &[]);
}

#[test]
fn the_newest_protocol_has_the_same_tools() {
    tell(&World::new(), "every_tool", "auto", &[]);
}

#[test]
fn what_leaves_the_roots_or_is_not_for_an_agent_is_refused() {
    let world = World::new();
    let outside = world.root().join("outside");
    std::fs::write(outside.join("secret"), "secret\n").unwrap();
    std::fs::write(outside.join("a.json"), "{\"a\": 1}\n").unwrap();
    let database = rusqlite::Connection::open(outside.join("o.db")).unwrap();
    database.execute("CREATE TABLE t(a)", []).unwrap();
    drop(database);
    tell(&world, "refused", "legacy", &[]);
}

#[test]
fn a_write_that_a_rule_asks_about_waits_for_a_person() {
    let world = World::new();
    let said = tell(&world, "waits", "legacy", &[]);
    let name = said.lines().next().unwrap().trim();
    assert!(!world.work().join("deploy/a.yaml").exists());
    world.backout(&["approve", name]);
    let text = std::fs::read_to_string(world.work().join("deploy/a.yaml")).unwrap();
    assert_eq!(text, "a: 1\n");
}

#[test]
fn a_command_tells_how_far_it_is_and_ends_when_it_is_cancelled() {
    tell(&World::new(), "progress", "legacy", &[]);
}

#[test]
fn the_roots_of_the_client_hold_and_change_with_it() {
    tell(&World::new(), "roots", "legacy", &[]);
}

#[test]
fn two_clients_work_at_once() {
    tell(&World::new(), "together", "legacy", &[]);
}

#[test]
fn calls_of_services_are_sent_or_wait() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let _read = stream.read(&mut request);
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nthings";
            let _written = stream.write_all(answer);
        }
    });
    tell(&World::new(), "http", "legacy", &[("SERVICE", &url)]);
}
