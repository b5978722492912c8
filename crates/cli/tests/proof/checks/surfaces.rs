//! Whatever writes is checked, and says what it found in the same four words: rule, target, place, remedy.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::Value;

use super::{denied, reasons, ruled, waits};
use crate::trust::json;
use crate::world::World;

/// A world in which `c/` holds JSON that means something, and a file and a tree outside that do not.
fn checked(outcome: &str) -> World {
    let world = ruled(&format!(
        "[syntax]
skip = ['out/**']
on-failure = '{outcome}'
[[check]]
name = 'port'
paths = ['c/**']
formats = ['json']
values = [{{ key = 'port', min = 1, max = 100 }}]
on-failure = '{outcome}'
"
    ));
    world.file("c/app.json", "{\"port\": 1}\n");
    world.file("out/bad.json", "{\"port\": 1000}\n");
    world.file("out/tree/deep/bad.json", "{\"port\": 1000}\n");
    world.file(
        "../batch.json",
        r#"{"changes": [{"write": {"path": "free", "text": "x"}}, {"write": {"path": "c/new.json", "text": "{\"port\": 0}"}}]}"#,
    );
    world
}

/// Every way to bring something bad to `c/`.
const WAYS: [&[&str]; 14] = [
    &["write", "c/app.json", "--text", "{\"port\": 1000}"],
    &["write", "c/new.json", "--text", "{\"port\": 1000}"],
    &["write", "-p", "c/x/y/new.json", "--from", "out/bad.json"],
    &["write", "--append", "c/app.json", "--text", "}"],
    &["edit", "c/app.json", "--search", "1", "--replace", "1000"],
    &["set", "c/app.json", "port", "1000"],
    &["merge", "c/app.json", "{\"port\": 1000}"],
    &["cp", "out/bad.json", "c/copy.json"],
    &["cp", "-r", "out/tree", "c/tree"],
    &["mv", "out/bad.json", "c/moved.json"],
    &["mv", "out/tree", "c/tree"],
    &["mv", "out", "c/out"],
    &["ln", "out/bad.json", "c/hard.json"],
    &["batch", "../batch.json"],
];

#[test]
fn every_way_to_write_is_checked() {
    for way in WAYS {
        let world = checked("deny");
        let before = world.tree();
        let found = denied(&world, way);
        assert!(!found.is_empty(), "{way:?}");
        for reason in &found {
            let rule = reason["rule"].as_str().unwrap();
            assert!(
                rule.starts_with("check `port` in") || rule.starts_with("syntax in"),
                "{way:?}: {rule}"
            );
            let path = reason["target"]["path"].as_str().unwrap();
            assert!(path.contains("/c/"), "{way:?}: {path}");
            assert!(
                reason["found"].as_str().unwrap().len() > 5,
                "{way:?}: {reason}"
            );
        }
        assert!(
            world.tree() == before,
            "{way:?}: {}",
            world.tree().difference(&before)
        );
        world.check_store();
    }
}

#[test]
fn every_way_to_write_waits_if_it_is_asked_about_and_happens_when_approved() {
    for way in WAYS {
        let world = checked("ask");
        let before = world.tree();
        let id = waits(&world, way);
        assert!(world.tree() == before, "{way:?}");
        world.ok(&["approve", &id]);
        assert!(world.tree() != before, "{way:?}");
        world.ok(&["undo", &id]);
        assert!(
            world.tree().without_times() == before.clone().without_times(),
            "{way:?}"
        );
        world.check_store();
    }
}

#[test]
fn every_way_to_write_is_told_if_it_is_only_warned_about() {
    for way in WAYS {
        let world = checked("warn");
        let told = world.json(way);
        let notes = told["notes"].to_string();
        assert!(
            notes.contains("check `port` in") || notes.contains("syntax in"),
            "{way:?}: {told:#}"
        );
        world.ok(&["undo"]);
    }
}

#[test]
fn unset_and_values_that_are_wanted() {
    let world = ruled(
        "[[check]]\nname = 'port'\npaths = ['*.json']\nvalues = [{ key = 'port', required = true }]\n",
    );
    world.file("a.json", "{\"port\": 1, \"b\": 2}\n");
    denied(&world, &["unset", "a.json", "port"]);
    world.ok(&["unset", "a.json", "b"]);
}

#[test]
fn a_restore_is_checked_and_an_undo_is_not() {
    let world = checked("deny");
    std::fs::remove_file(world.path("backout.toml")).unwrap();
    world.ok(&["write", "c/app.json", "--text", "{\"port\": 1000}"]);
    world.ok(&["write", "c/app.json", "--text", "{\"port\": 2}"]);
    let rules = checked("deny").read("backout.toml");
    world.file("backout.toml", &rules);
    let log = world.json(&["log", "-n", "1"]);
    let last = &log["operations"][0]["id"].as_str().unwrap()[..8];
    denied(&world, &["restore", "c/app.json", "--from", last]);
    assert_eq!(world.read("c/app.json"), "{\"port\": 2}");
    world.ok(&["undo"]);
    assert_eq!(world.read("c/app.json"), "{\"port\": 1000}");
}

#[test]
fn what_was_tried_is_checked_before_it_is_applied() {
    let world = checked("deny");
    let before = world.tree();
    world.ok(&[
        "try",
        "--",
        "sh",
        "-c",
        "echo '{\"port\": 1000}' > c/app.json; echo 1 > free",
    ]);
    assert!(world.tree() == before);
    let report = json(&world, 1, &["try", "--apply"]);
    assert_eq!(report["code"], "gate", "{report}");
    assert!(
        reasons(&report).iter().any(|it| it["key"] == "port"),
        "{report}"
    );
    assert!(world.tree() == before);
    world.ok(&["try", "--discard"]);
    world.ok(&["try", "--", "sh", "-c", "echo '{\"port\": 3}' > c/app.json"]);
    world.ok(&["try", "--apply"]);
    assert_eq!(world.read("c/app.json"), "{\"port\": 3}\n");
}

#[test]
fn what_comes_by_a_pipe_is_checked() {
    let world = checked("deny");
    let mut command = world.command(&["--json", "write", "c/app.json"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"{\"port\": 200}")
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stderr).unwrap();
    let reason = &reasons(&report)[0];
    assert_eq!(reason["key"], "port");
    assert_eq!(reason["place"]["line"], 1);
    assert!(
        reason["rule"]
            .as_str()
            .unwrap()
            .starts_with("check `port` in /"),
        "{reason}"
    );
    assert!(
        reason["found"].as_str().unwrap().contains("200"),
        "{reason}"
    );
}

/// A link is another name for what is checked: what is written through it is written there.
#[test]
fn a_write_through_a_link_is_checked_where_it_lands() {
    let world = checked("deny");
    std::os::unix::fs::symlink("c/app.json", world.path("link.json")).unwrap();
    std::os::unix::fs::symlink("c", world.path("way")).unwrap();
    for name in ["link.json", "way/app.json", "way/new.json"] {
        denied(&world, &["write", name, "--text", "{\"port\": 1000}"]);
    }
    assert_eq!(world.read("c/app.json"), "{\"port\": 1}\n");
}

/// What waits is checked again when somebody approves it: the rules of that moment count.
#[test]
fn a_rule_made_meanwhile_denies_at_approval() {
    let world = checked("ask");
    let id = waits(&world, &["set", "c/app.json", "port", "1000"]);
    let rules = world.read("backout.toml").replace("'ask'", "'deny'");
    world.file("backout.toml", &rules);
    let report = json(&world, 1, &["approve", &id]);
    assert_eq!(report["code"], "gate", "{report}");
    assert_eq!(world.read("c/app.json"), "{\"port\": 1}\n");
    assert_eq!(
        world.json(&["pending"])["proposals"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    world.ok(&["reject", &id]);
    world.check_store();
}
