//! What somebody found who tried to get around checks and watches, or to stop them.

use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{denied_once, ruled};
use crate::world::said;

/// A check that only lets good content pass.
const GOOD: &str = "[[check]]\nname = 'good'\npaths = ['app.conf']\ncommand = ['grep', '-q', 'good', '{staged}']\n";

#[test]
fn ctrl_c_during_a_watch_takes_the_write_back() {
    let world = ruled(
        "[[watch]]\nname = 'up'\npaths = ['a']\ncommand = ['sh', '-c', 'touch ../looked; grep -q good a']\ntries = 1000\npause = '50ms'\n",
    );
    world.file("a", "good\n");
    let looked = world.path("../looked");
    let mut command = world.command(&["write", "a", "--text", "bad\n"]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let child = child.unwrap();
    let deadline = Instant::now() + Duration::from_mins(1);
    while !looked.exists() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    assert_eq!(output.status.signal(), None);
    assert_eq!(world.read("a"), "good\n", "{}", said(&output));
    world.check_store();
}

#[test]
fn a_link_is_checked_by_what_it_leads_to() {
    let world = ruled(GOOD);
    world.file("evil", "bad\n");
    world.file("fine", "good\n");
    let found = denied_once(&world, &["ln", "-s", "evil", "app.conf"]);
    assert!(found.contains("`grep`"), "{found}");
    let output = world.run(&["run", "--", "ln", "-s", "evil", "app.conf"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(world.path("app.conf").symlink_metadata().is_err());
    world.ok(&["ln", "-s", "fine", "app.conf"]);
    world.ok(&["rm", "app.conf"]);
    std::fs::create_dir(world.path("d")).unwrap();
    world.ok(&["ln", "-s", "d", "app.conf"]);
}

#[test]
fn a_schema_that_is_a_pipe_or_a_device_is_not_opened() {
    let world = ruled("[[check]]\nname = 's'\npaths = ['a.json']\nschema = 's.json'\n");
    let made = std::process::Command::new("mkfifo")
        .arg(world.path("s.json"))
        .status();
    assert!(made.unwrap().success());
    let found = denied_once(&world, &["write", "a.json", "--text", "{}\n"]);
    assert!(found.contains("it is not a file"), "{found}");
    std::fs::remove_file(world.path("s.json")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", world.path("s.json")).unwrap();
    let found = denied_once(&world, &["write", "a.json", "--text", "{}\n"]);
    assert!(found.contains("it is not a file"), "{found}");
}

#[test]
fn a_reload_that_writes_what_is_watched_comes_to_an_end() {
    let program = env!("CARGO_BIN_EXE_backout");
    let world = ruled(&format!(
        "[[watch]]\nname = 'r'\npaths = ['*.rec']\nreload = ['{program}', 'write', 'inner.rec', '--text', '1']\ntimeout = '30s'\n"
    ));
    let output = world.run(&["write", "outer.rec", "--text", "1"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let told = said(&output);
    assert!(
        told.contains("a watch writes what is watched, and would go on for ever"),
        "{told}"
    );
    assert!(
        told.contains("let the reload write only what no watch is for"),
        "{told}"
    );
    assert!(
        world.path("outer.rec").symlink_metadata().is_err(),
        "{told}"
    );
}

#[test]
fn a_rule_that_takes_a_command_back_is_what_set_that_off() {
    let world = ruled("[syntax]\n");
    let output = world.run(&["run", "--", "sh", "-c", "echo '{' > b.json"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let log = world.json(&["log"]);
    let undo = &log["operations"][0];
    assert_eq!(undo["verb"], "undo", "{log}");
    assert_eq!(undo["trigger"]["kind"], "policy-violation", "{log}");
    assert_eq!(undo["trigger"]["severity"], "critical", "{log}");
}
