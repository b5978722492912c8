//! Two machines and one state directory. A machine is what `BACKOUT_TEST_HOST` says, with a boot of its own.

use std::fs;
use std::process::{Command, Output};

use crate::world::{World, said};

/// The same command, on a machine of that name.
fn on(host: &str, mut command: Command) -> Command {
    command.env("BACKOUT_TEST_HOST", host);
    command.env("BACKOUT_TEST_BOOT", format!("the-boot-of-{host}"));
    command
}

fn shared(world: &World, host: &str, arguments: &[&str]) -> Output {
    let mut command = on(host, world.command(arguments));
    command.env("BACKOUT_TEST_SHARED", "1").output().unwrap()
}

fn local(world: &World, host: &str, arguments: &[&str]) -> Output {
    on(host, world.command(arguments)).output().unwrap()
}

fn worked(output: &Output) {
    assert!(output.status.success(), "{}", said(output));
}

#[test]
fn two_hosts_with_one_state_directory_on_a_shared_file_system_are_refused_with_the_reason() {
    let world = World::new();
    world.file("a", "old");
    worked(&shared(&world, "alpha", &["write", "a", "--text", "new"]));
    let refused = shared(
        &world,
        "beta",
        &["--json", "write", "a", "--text", "theirs"],
    );
    assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
    let told: serde_json::Value = serde_json::from_slice(&refused.stderr).unwrap();
    assert_eq!(told["code"], "another-host");
    let text = told.to_string();
    assert!(text.contains("is used by the host `alpha`"), "{text}");
    assert!(
        text.contains("file system that several machines share"),
        "{text}"
    );
    assert_eq!(world.read("a"), "new");
    let also_refused = shared(&world, "beta", &["log"]);
    assert_eq!(
        also_refused.status.code(),
        Some(1),
        "{}",
        said(&also_refused)
    );
    // The first one goes on, however long it said nothing.
    worked(&shared(&world, "alpha", &["write", "b", "--text", "more"]));
    be_silent(&world);
    assert_eq!(shared(&world, "beta", &["log"]).status.code(), Some(1));
    // Somebody who knows says that the first one is done with it.
    fs::remove_file(world.state().join("host")).unwrap();
    worked(&shared(
        &world,
        "beta",
        &["undo", "--everywhere", "--committed"],
    ));
    worked(&shared(&world, "beta", &["undo", "a", "--committed"]));
    assert_eq!(world.read("a"), "old");
    assert_eq!(shared(&world, "alpha", &["log"]).status.code(), Some(1));
}

/// Makes the heartbeat of the host an old one.
fn be_silent(world: &World) {
    let path = world.state().join("host");
    let mut noted: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    noted["at"] = (noted["at"].as_u64().unwrap() - 300_000).into();
    fs::write(path, noted.to_string()).unwrap();
}

#[test]
fn a_disk_that_moved_to_another_machine_is_taken_over_but_not_from_one_that_is_at_work() {
    let world = World::new();
    world.file("a", "old");
    let mut doomed = on("alpha", world.command(&["write", "a", "--text", "new"]));
    let died = doomed
        .env("BACKOUT_CRASH_AT", "engine.armed")
        .output()
        .unwrap();
    assert_eq!(died.status.code(), None, "{}", said(&died));
    let refused = local(&world, "beta", &["write", "b", "--text", "1"]);
    assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
    assert!(
        said(&refused).contains("less than a minute ago"),
        "{}",
        said(&refused)
    );
    assert!(!world.path("b").exists());
    be_silent(&world);
    // What the other left is recovered here: nobody else can be at work with it.
    let took = local(&world, "beta", &["write", "b", "--text", "1"]);
    worked(&took);
    assert!(
        said(&took).contains("recovered") || said(&took).contains("did not happen"),
        "{}",
        said(&took)
    );
    assert_eq!(
        (world.read("a").as_str(), world.read("b").as_str()),
        ("old", "1")
    );
    worked(&local(&world, "beta", &["verify"]));
}

#[test]
fn a_machine_that_was_started_anew_is_the_same_machine() {
    let world = World::new();
    worked(&shared(&world, "alpha", &["write", "a", "--text", "1"]));
    let mut again = on("alpha", world.command(&["write", "a", "--text", "2"]));
    again.env("BACKOUT_TEST_BOOT", "the-next-boot");
    worked(&again.env("BACKOUT_TEST_SHARED", "1").output().unwrap());
    assert_eq!(world.read("a"), "2");
}
