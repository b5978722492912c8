//! Undos that fail: what is said of them, and what somebody can do.

#![expect(
    clippy::indexing_slicing,
    reason = "a field that is not there fails the test"
)]

use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::world::{Ran, World};

fn tamper(world: &World, sql: &str) {
    let journal = rusqlite::Connection::open(world.place("state/journal.sqlite")).unwrap();
    journal.execute_batch(sql).unwrap();
}

/// A file whose old bytes are lost, and one whose are not.
fn trouble() -> World {
    let world = World::new()
        .file("app.toml", "port = 8080\n")
        .file("b", "0");
    world.did(["write", "app.toml", "--text", "port = 1\n"]);
    world.did(["write", "b", "--text", "1"]);
    tamper(&world, "DELETE FROM content WHERE size = 12");
    world
}

fn has(ran: &Ran, parts: &[&str]) {
    let said = format!("{}{}", ran.out, ran.err);
    for part in parts {
        assert!(said.contains(part), "`{part}` is missing: {ran}");
    }
}

/// Shows the newest operation, undos among them.
fn newest(world: &World) -> Ran {
    let log = world.cli(["--json", "log", "-n", "1"]);
    let log: serde_json::Value = serde_json::from_str(&log.out).unwrap();
    let id = log["operations"][0]["id"].as_str().unwrap();
    world.cli(["show", id])
}

/// Has a command find hooks in the user's own rules, a line for a shell each.
fn with_hooks(command: &mut Command, config: &Path, restore: &str, alert: &str) {
    let shell = |line: &str| serde_json::json!(["sh", "-c", line]).to_string();
    let mut rules = Vec::new();
    if !restore.is_empty() {
        for severity in ["low", "medium", "high", "critical"] {
            let hook = shell(restore);
            rules.push(format!(
                "[ladder.{severity}]\nrestore = {hook}\ntimeout = '2s'\n"
            ));
        }
    }
    if !alert.is_empty() {
        let hook = shell(alert);
        rules.push(format!("[notify]\ncommand = {hook}\ntimeout = '2s'\n"));
    }
    std::fs::create_dir_all(config.join("backout")).unwrap();
    std::fs::write(config.join("backout/backout.toml"), rules.concat()).unwrap();
    command.env("XDG_CONFIG_HOME", config);
}

/// Runs a command with hooks.
fn hooked<const N: usize>(world: &World, restore: &str, alert: &str, arguments: [&str; N]) -> Ran {
    let own = tempfile::tempdir().unwrap();
    let mut command = world.command(&arguments);
    with_hooks(&mut command, own.path(), restore, alert);
    world.run(&mut command)
}

#[test]
fn nothing_is_listed_where_nothing_failed() {
    let world = World::new().file("a", "0");
    has(&world.cli(["failed"]), &["no undo waits for a person"]);
    world.did(["write", "a", "--text", "1"]);
    let ran = world.cli(["failed", "--accept", "@", "--why", "x"]);
    has(
        &ran,
        &[
            "no undo of operation",
            "waits for a person",
            "it did not fail, or that was solved or accepted since",
            "see what does wait with `backout failed`",
        ],
    );
    assert_eq!(ran.code, 1);
    assert_eq!(world.cli(["failed", "--retry", "@"]).code, 1);
    let ran = world.cli(["doctor"]);
    has(&ran, &["failed undos", "none waits for a person"]);
}

#[test]
fn what_failed_is_listed_with_what_was_tried_and_what_to_do() {
    let world = trouble();
    let ran = world.cli(["undo", "@", "@-1"]);
    assert_eq!((ran.code, world.text("b").as_str()), (1, "0"), "{ran}");
    let ran = world.cli(["failed"]);
    has(
        &ran,
        &[
            "the undo failed",
            "by snapshot; set off: user-request by a person, medium",
            "tried: the same again: not possible: its reason does not pass by itself",
            "tried: the same bytes from elsewhere: not possible: what it was (",
            ") is gone or damaged in the store, and nothing else has the same bytes",
            "tried: the hook that restores the environment: not possible",
            "not possible: there is no hook that restores the environment",
            "tried: telling a person: not possible: there is no way to tell a person",
            "  last ",
            "next: put right what stands in the way, then `backout undo ",
            "`, or climb again with `backout failed --retry ",
            "next: see which other versions there are with `backout log ",
            "next: or leave it as it is with `backout failed --accept ",
            "--why TEXT`",
        ],
    );
    has(
        &world.cli(["status"]),
        &[
            "undos that failed and wait for a person",
            "see why, and what to do about it, with `backout failed`",
        ],
    );
    has(
        &world.cli(["doctor"]),
        &[
            "1 undo failed and waits for a person",
            "see them with `backout failed`",
        ],
    );
    let shown = world.cli(["show", "@-1"]);
    has(&shown, &["undo failed", "failed: its content"]);
}

#[test]
fn two_that_failed_are_counted() {
    let world = trouble();
    world.put("c", "port = 8080\n");
    world.did(["write", "c", "--text", "2"]);
    tamper(&world, "DELETE FROM content WHERE size = 12");
    world.cli(["undo", "@", "@-2"]);
    has(
        &world.cli(["doctor"]),
        &["2 undos failed and wait for a person"],
    );
}

#[test]
fn somebody_else_accepts_what_is_left_and_that_is_shown() {
    let world = World::new().file("app.toml", "port = 8080\n");
    world.did([
        "--agent",
        "robin",
        "write",
        "app.toml",
        "--text",
        "port = 1\n",
    ]);
    tamper(&world, "DELETE FROM content WHERE size = 12");
    assert_eq!(world.cli(["--agent", "robin", "undo", "@"]).code, 1);
    let ran = world.cli(["--agent", "robin", "failed", "--accept", "@"]);
    has(
        &ran,
        &[
            "what is left of operation",
            "was not accepted",
            "whose work it is cannot accept it, nor can a command under `run`",
            "ask a person, or another agent, to decide",
        ],
    );
    assert_eq!(ran.code, 1);
    let ran = world.cli(["failed", "--accept", "@", "--why", "it is old"]);
    has(
        &ran,
        &[
            "what is left of",
            "stays as it is",
            "see who accepted it with `backout show",
        ],
    );
    has(
        &world.cli(["show", "@"]),
        &["accepting what is left: done, by ", "it is old"],
    );
    has(&world.cli(["failed"]), &["no undo waits for a person"]);
    assert!(!world.cli(["status"]).out.contains("undos that failed"));
}

#[test]
fn a_hook_that_lies_is_told_and_one_that_restores_is_looked_at() {
    let world = trouble();
    let alert = format!("cat > {}", world.place("alert").display());
    let ran = hooked(&world, "true", &alert, ["undo", "@-1"]);
    has(&ran, &["missing from the store"]);
    let ran = world.cli(["failed"]);
    has(
        &ran,
        &[
            "did not help: the hook ended well, and did not help:",
            "telling a person: done",
        ],
    );
    let told = std::fs::read(world.place("alert")).unwrap();
    let told: serde_json::Value = serde_json::from_slice(&told).unwrap();
    assert_eq!(told["verb"], json!("write"));
    assert_eq!(told["strategy"], json!("snapshot"));
    assert_eq!(told["trigger"]["kind"], json!("user-request"));
    assert_eq!(told["tried"].as_array().unwrap().len(), 3, "{told}");
    let why = told["targets"][0]["why"].as_str().unwrap();
    assert!(why.contains("missing from the store"), "{told}");
    // The right bytes, with the mode and the time that the file had, are what it was.
    let file = world.path("app.toml");
    let restore = format!("printf 'port = 8080\\n' > {}", file.display());
    let ran = hooked(&world, &restore, "", ["failed", "--retry"]);
    let is_solved = world.cli(["failed"]).out.contains("no undo waits");
    assert_eq!(world.text("app.toml"), "port = 8080\n", "{ran}");
    assert_eq!(ran.code == 0, is_solved, "{ran}");
}

#[test]
fn a_hook_that_fails_or_hangs_is_told() {
    let world = trouble();
    hooked(&world, "echo no image >&2; exit 3", "", ["undo", "@-1"]);
    has(&world.cli(["failed"]), &["no image", "` ended with 3"]);
    hooked(&world, "sleep 600", "", ["undo", "@-1"]);
    has(&world.cli(["failed"]), &["` took longer than 2s"]);
}

#[test]
fn what_set_an_undo_off_is_in_the_log() {
    let world = World::new().file("a", "0");
    world.did(["write", "a", "--text", "1"]);
    let ran = world.cli([
        "undo",
        "--trigger",
        "plan-failure",
        "--severity",
        "low",
        "--why",
        "step 3 broke",
    ]);
    assert_eq!(ran.code, 0, "{ran}");
    has(&world.cli(["log"]), &["(plan-failure)"]);
    has(
        &newest(&world),
        &["set off", "plan-failure by a person, low: step 3 broke"],
    );
    world.did(["redo"]);
    has(&newest(&world), &["user-request by a person, medium"]);
    world.did(["--agent", "robin", "undo", "--others", "@"]);
    has(
        &newest(&world),
        &["user-request by the agent robin, medium"],
    );
    has(
        &world.cli(["export"]),
        &[r#""trigger":{"kind":"user-request","source":"agent","agent":"robin""#],
    );
    let ran = world.cli(["undo", "--trigger", "boredom"]);
    assert_eq!(ran.code, 2, "{ran}");
}

#[test]
fn a_command_that_failed_or_was_stopped_says_so_when_it_is_taken_back() {
    let world = World::new();
    for (line, said) in [
        (
            "touch x; exit 7",
            "plan-failure by a command that failed, high: it ended with code 7",
        ),
        (
            "touch x; kill -9 $$",
            "plan-failure by a command that failed, high: it was ended by signal 9",
        ),
        ("touch x; kill -INT $$", "manual-abort by a person, medium"),
    ] {
        world.cli(["run", "--on-failure", "rollback", "--", "sh", "-c", line]);
        assert!(!world.has("x"), "{line}");
        has(&newest(&world), &[said]);
    }
    world.cli([
        "run",
        "--on-failure",
        "rollback",
        "--timeout",
        "1",
        "--",
        "sh",
        "-c",
        "touch x; sleep 60",
    ]);
    has(&newest(&world), &["high: its time was up"]);
}

#[test]
fn a_redo_that_failed_is_listed_as_one() {
    let world = World::new().file("a", "0");
    world.did(["write", "a", "--text", "new bytes"]);
    world.did(["undo"]);
    tamper(&world, "DELETE FROM content WHERE size = 9");
    assert_eq!(world.cli(["redo"]).code, 1);
    has(
        &world.cli(["failed"]),
        &["the redo failed", "then `backout redo "],
    );
}

#[test]
fn what_was_never_kept_or_is_whole_has_no_second_way() {
    let world = World::new().file("big", &"x".repeat(200_000));
    let line = "printf z >> big";
    world.did([
        "run",
        "--limit",
        "1000",
        "--over-limit",
        "mark",
        "--",
        "sh",
        "-c",
        line,
    ]);
    world.cli(["undo"]);
    has(
        &world.cli(["failed"]),
        &["what `big` was is not kept, and was not from the beginning"],
    );
}
