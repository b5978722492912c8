//! Calls that nothing takes back: they wait for a person, or for their task.

use std::os::unix::process::ExitStatusExt as _;

use super::{Fault, Known};
use crate::world::said;

/// SIGABRT.
const ABORTED: i32 = 6;

fn mails(it: &Known, words: &[&str], to: &str) {
    let (url, data) = (it.service.url("/mail"), format!(r#"{{"to": "{to}"}}"#));
    let words = [
        words,
        &["http", "POST", &url, "--irreversible", "--data", &data],
    ]
    .concat();
    let output = it.world.run(&words);
    assert_ne!(output.status.code(), Some(0), "{}", said(&output));
    assert!(it.service.held().mails.is_empty(), "{}", said(&output));
}

#[test]
fn a_call_that_nothing_takes_back_waits_for_a_person() {
    let it = Known::with(&[]);
    mails(&it, &[], "ann");
    assert!(it.world.ok(&["pending"]).contains("/mail"));
    let pending = it.world.json(&["pending"]);
    let id = pending["proposals"][0]["id"].as_str().unwrap();
    it.world.ok(&["approve", id]);
    assert_eq!(it.service.held().mails, ["\"ann\""]);
    let said = it.world.fails(1, &["undo", "--everywhere"]);
    assert!(said.contains("is irreversible"), "{said}");
}

#[test]
fn what_a_task_holds_back_leaves_in_order_when_it_is_committed() {
    let it = Known::with(&[]);
    it.world.ok(&["task", "begin", "t"]);
    it.world.ok(&["--task", "t", "write", "a", "--text", "1"]);
    mails(&it, &["--task", "t"], "ann");
    mails(&it, &["--task", "t"], "bob");
    it.world.ok(&["commit", "--task", "t"]);
    assert_eq!(it.service.held().mails, ["\"ann\"", "\"bob\""]);
    assert_eq!(it.world.read("a"), "1");
    assert!(it.world.ok(&["export"]).contains("the commit of t"));
    it.world.check_store();
}

#[test]
fn what_a_task_holds_back_is_dropped_when_it_is_rolled_back() {
    let it = Known::with(&[]);
    it.world.ok(&["task", "begin", "t"]);
    it.world.ok(&["--task", "t", "write", "a", "--text", "1"]);
    mails(&it, &["--task", "t"], "ann");
    it.world.ok(&["rollback", "--task", "t"]);
    assert!(it.service.held().mails.is_empty());
    assert_eq!(it.status(), "refused");
    assert!(!it.world.ok(&["pending"]).contains("/mail"));
}

#[test]
fn a_commit_that_dies_sends_the_rest_when_it_is_asked_for_again() {
    for (point, sent) in [
        ("outbox.committed", 0),
        ("outbox.next", 0),
        ("outbox.next#2", 1),
    ] {
        let it = Known::with(&[]);
        it.world.ok(&["task", "begin", "t"]);
        mails(&it, &["--task", "t"], "ann");
        mails(&it, &["--task", "t"], "bob");
        let output = it
            .world
            .command(&["commit", "--task", "t"])
            .env("BACKOUT_CRASH_AT", point)
            .output()
            .unwrap();
        assert_eq!(
            output.status.signal(),
            Some(ABORTED),
            "{point}: {}",
            said(&output)
        );
        assert_eq!(it.service.held().mails.len(), sent, "{point}");
        it.world.ok(&["commit", "--task", "t"]);
        assert_eq!(it.service.held().mails, ["\"ann\"", "\"bob\""], "{point}");
    }
}

#[test]
fn a_call_that_nothing_takes_back_is_sent_once_under_its_key_whenever_it_was_cut_off() {
    for point in [
        "engine.armed",
        "http.before-send",
        "http.sent",
        "engine.applied",
    ] {
        let it = Known::with(&[]);
        let rules = it.world.read("backout.toml");
        let keyed = rules.replace(
            "reversibility = \"irreversible\"",
            "reversibility = \"irreversible\"\nidempotency = { window = \"1h\" }",
        );
        it.world.file("backout.toml", &keyed);
        it.world.ok(&["task", "begin", "t"]);
        mails(&it, &["--task", "t"], "ann");
        let output = it
            .world
            .command(&["commit", "--task", "t"])
            .env("BACKOUT_CRASH_AT", point)
            .output()
            .unwrap();
        assert_eq!(
            output.status.signal(),
            Some(ABORTED),
            "{point}: {}",
            said(&output)
        );
        it.world.ok(&["recover"]);
        assert_eq!(it.service.held().mails, ["\"ann\""], "{point}");
        assert_eq!(it.status(), "committed", "{point}");
        it.world.ok(&["recover"]);
        assert_eq!(it.service.held().mails.len(), 1, "{point}");
        it.world.check_store();
    }
}

#[test]
fn a_commit_that_is_asked_for_again_names_all_that_it_kept() {
    let it = Known::with(&[]);
    it.world.ok(&["task", "begin", "t"]);
    it.world.ok(&["--task", "t", "write", "a", "--text", "1"]);
    it.world.ok(&["--task", "t", "write", "b", "--text", "1"]);
    mails(&it, &["--task", "t"], "ann");
    mails(&it, &["--task", "t"], "bob");
    let output = it
        .world
        .command(&["commit", "--task", "t"])
        .env("BACKOUT_CRASH_AT", "outbox.next#2")
        .output()
        .unwrap();
    assert_eq!(output.status.signal(), Some(ABORTED), "{}", said(&output));
    let again = it.world.json(&["commit", "--task", "t"]);
    assert!(
        again["operations"].as_array().unwrap().len() >= 3,
        "{again}"
    );
    assert_eq!(it.service.held().mails.len(), 2);
}

#[test]
fn a_rollback_names_what_it_drops() {
    let it = Known::with(&[]);
    it.world.ok(&["task", "begin", "t"]);
    it.world.ok(&["--task", "t", "write", "a", "--text", "1"]);
    mails(&it, &["--task", "t"], "ann");
    let told = it.world.ok(&["rollback", "--task", "t"]);
    let wanted = "was held back, and is dropped: it was never sent";
    assert!(told.contains(wanted) && told.contains("/mail"), "{told}");
}

#[test]
fn a_call_that_nothing_takes_back_and_that_is_in_doubt_is_closed_by_keeping_it() {
    let it = Known::with(&[]);
    it.world.ok(&["task", "begin", "t"]);
    mails(&it, &["--task", "t"], "ann");
    it.service.fails(&[Fault::Status(500); 10]);
    let told = said(&it.world.run(&["commit", "--task", "t"]));
    assert!(
        told.contains("nothing takes it back: no rule says what answers it"),
        "{told}"
    );
    assert!(!told.contains("--rollback"), "{told}");
    let (_, typed) = told.split_once("then close it with `backout ").unwrap();
    let words: Vec<&str> = typed.split_once('`').unwrap().0.split(' ').collect();
    it.world.ok(&words);
    let status = it.world.json(&["status"]);
    assert_eq!(
        status["stuck"].as_array().map(Vec::len),
        Some(0),
        "{status}"
    );
    it.world.check_store();
}
