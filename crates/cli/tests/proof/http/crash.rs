//! A death at every step of a call and of the call that answers it.

use std::os::unix::process::ExitStatusExt as _;

use super::{KEY, Known, LOOKUP, VERIFY};
use crate::world::said;

/// SIGABRT.
const ABORTED: i32 = 6;

/// Runs a command that dies at a point.
fn dies_at(it: &Known, point: &str, words: &[&str]) {
    let output = it
        .world
        .command(words)
        .env("BACKOUT_CRASH_AT", point)
        .output()
        .unwrap();
    assert_eq!(
        output.status.signal(),
        Some(ABORTED),
        "{point}: {}",
        said(&output)
    );
}

/// A call is cut off at each point, and taken back by the next command: what it made is gone, however it is found.
fn a_call_cut_off(rules: &[&str]) {
    for point in [
        "engine.armed",
        "http.before-send",
        "http.sent",
        "engine.applied",
        "engine.before-commit",
    ] {
        let it = Known::with(rules);
        let url = it.service.url("/things");
        dies_at(
            &it,
            point,
            &["http", "POST", &url, "--data", r#"{"name": "ann"}"#],
        );
        it.world.ok(&["recover"]);
        assert!(it.service.names().is_empty(), "{point}");
        it.makes("bob");
        it.world.ok(&["undo", "--everywhere"]);
        assert!(it.service.names().is_empty(), "{point}");
        it.world.check_store();
    }
}

#[test]
fn a_call_with_a_key_is_cut_off_at_every_step() {
    a_call_cut_off(&[KEY, VERIFY]);
}

#[test]
fn a_call_with_a_lookup_is_cut_off_at_every_step() {
    a_call_cut_off(&[LOOKUP]);
}

#[test]
fn a_call_that_nothing_finds_is_in_doubt_after_a_death() {
    let it = Known::with(&[]);
    let url = it.service.url("/things");
    dies_at(
        &it,
        "http.sent",
        &["http", "POST", &url, "--data", r#"{"name": "ann"}"#],
    );
    it.world.run(&["recover"]);
    assert_eq!(it.status(), "in-doubt");
    assert_eq!(it.service.writes("DELETE"), 0);
}

#[test]
fn an_answer_is_cut_off_at_every_step() {
    for rules in [&[KEY, VERIFY][..], &[KEY]] {
        for point in [
            "engine.undo-prepared",
            "engine.armed",
            "http.before-answer",
            "http.answered",
            "engine.applied",
            "engine.undo-applied",
        ] {
            let it = Known::with(rules);
            it.makes("ann");
            dies_at(&it, point, &["undo", "--everywhere"]);
            it.world.ok(&["recover"]);
            // Either it is undone, or the undo can be asked for again; once is enough.
            it.world.run(&["undo", "@"]);
            let output = it.world.run(&["undo", "@-1"]);
            assert!(it.service.names().is_empty(), "{point}: {}", said(&output));
            assert_eq!(it.service.writes("POST"), 1, "{point}");
            it.world.check_store();
        }
    }
}

#[test]
fn a_change_is_cut_off_at_every_step() {
    for point in [
        "engine.armed",
        "http.before-send",
        "http.sent",
        "engine.applied",
    ] {
        let it = Known::with(&[]);
        it.service.put("7", "ann");
        let url = it.service.url("/things/7");
        dies_at(
            &it,
            point,
            &["http", "PUT", &url, "--data", r#"{"name": "bob"}"#],
        );
        it.world.ok(&["recover"]);
        assert_eq!(it.service.names(), ["ann"], "{point}");
        it.world.check_store();
    }
}
