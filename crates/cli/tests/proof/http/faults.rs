//! What a service can do to a call: refuse it, lose it, do it and not say so, say so and do it later.

use super::{Fault, KEY, Known, LOOKUP, VERIFY};
use crate::world::said;

#[test]
fn a_refused_call_did_not_happen() {
    let it = Known::with(&[KEY]);
    it.service.fails(&[Fault::Status(422)]);
    let output = it.call("POST", "/things", r#"{"name": "ann"}"#);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("422"), "{}", said(&output));
    assert_eq!(it.status(), "aborted");
    assert!(it.service.names().is_empty());
}

#[test]
fn a_busy_service_is_asked_again() {
    let it = Known::with(&[]);
    it.service.fails(&[Fault::Busy, Fault::Busy]);
    it.makes("ann");
    assert_eq!(it.service.names(), ["ann"]);
    it.service.fails(&[Fault::Busy, Fault::Status(503)]);
    it.world.ok(&["undo", "--everywhere"]);
    assert!(it.service.names().is_empty());
}

#[test]
fn a_lost_answer_is_asked_for_under_the_same_key() {
    for fault in [
        Fault::Cut,
        Fault::Drop,
        Fault::Hang,
        Fault::Status(500),
        Fault::DoneBut(502),
    ] {
        let it = Known::with(&[KEY, VERIFY]);
        it.service.fails(&[fault]);
        it.makes("ann");
        assert_eq!(it.service.names(), ["ann"], "{fault:?}");
        assert_eq!(it.service.writes("POST"), 2, "{fault:?}");
        it.world.ok(&["undo", "--everywhere"]);
        assert!(it.service.names().is_empty(), "{fault:?}");
    }
}

#[test]
fn a_lost_answer_is_found_by_a_look() {
    let it = Known::with(&[LOOKUP]);
    it.service.fails(&[Fault::Cut]);
    it.makes("ann");
    assert_eq!(
        (it.service.names(), it.service.writes("POST")),
        (vec!["ann".to_owned()], 1)
    );
    it.world.ok(&["undo", "--everywhere"]);
    assert!(it.service.names().is_empty());
    it.service.fails(&[Fault::Drop]);
    let output = it.call("POST", "/things", r#"{"name": "bob"}"#);
    assert!(
        said(&output).contains("a look finds no effect of it"),
        "{}",
        said(&output)
    );
    assert_eq!(it.status(), "aborted");
}

#[test]
fn where_nothing_can_tell_it_is_in_doubt_until_somebody_decides() {
    let it = Known::with(&[]);
    it.service.fails(&[Fault::Cut]);
    let output = it.call("POST", "/things", r#"{"name": "ann"}"#);
    assert!(
        said(&output).contains("it is not known whether"),
        "{}",
        said(&output)
    );
    assert_eq!(it.status(), "in-doubt");
    it.world.run(&["recover"]);
    assert_eq!(
        (it.status(), it.service.writes("DELETE")),
        ("in-doubt".to_owned(), 0)
    );
    it.world.ok(&["recover", "--keep", "@"]);
    assert_eq!(it.status(), "committed");
    assert_eq!(
        (it.service.names(), it.service.writes("POST")),
        (vec!["ann".to_owned()], 1)
    );
}

#[test]
fn a_window_that_is_over_is_no_way_to_find_out() {
    let it = Known::with(&[r#"idempotency = { window = "0s" }"#]);
    it.service.fails(&[Fault::Cut]);
    it.call("POST", "/things", r#"{"name": "ann"}"#);
    assert_eq!(
        (it.status(), it.service.writes("POST")),
        ("in-doubt".to_owned(), 1)
    );
}

#[test]
fn a_lost_change_of_a_thing_is_seen_by_a_look() {
    let it = Known::with(&[]);
    it.service.put("7", "ann");
    it.service.fails(&[Fault::Cut]);
    let output = it.call("PUT", "/things/7", r#"{"name": "bob"}"#);
    assert!(output.status.success(), "{}", said(&output));
    it.world.ok(&["undo", "--everywhere"]);
    assert_eq!(it.service.names(), ["ann"]);
    it.service.fails(&[Fault::Drop]);
    let output = it.call("DELETE", "/things/7", "");
    assert!(
        said(&output).contains("was sent, and a look finds no effect of it"),
        "{}",
        said(&output)
    );
    assert!(!said(&output).contains("not sent"), "{}", said(&output));
    assert_eq!(it.service.names(), ["ann"]);
}

#[test]
fn an_undo_waits_until_the_effect_is_gone() {
    let it = Known::with(&[VERIFY]);
    it.makes("ann");
    it.service.fails(&[Fault::Later]);
    it.world.ok(&["undo", "--everywhere"]);
    assert!(it.service.names().is_empty());
}

#[test]
fn an_undo_that_fails_for_ever_is_kept_to_be_tried_again() {
    let it = Known::with(&[KEY, VERIFY]);
    it.makes("ann");
    it.service.fails(&[Fault::Status(403); 30]);
    let output = it.world.run(&["undo", "--everywhere"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert_eq!(it.service.names(), ["ann"]);
    let failed = it.world.json(&["failed"]);
    assert_eq!(failed["failed"].as_array().unwrap().len(), 1, "{failed}");
    it.service.fails(&[]);
    it.world.ok(&["failed", "--retry"]);
    assert!(it.service.names().is_empty());
}

#[test]
fn what_somebody_else_took_away_needs_no_answer() {
    let it = Known::with(&[VERIFY]);
    it.makes("ann");
    it.service.held().things.clear();
    it.world.ok(&["undo", "--everywhere"]);
    assert_eq!(it.service.writes("DELETE"), 0);
}

#[test]
fn what_was_there_before_a_lost_call_is_not_taken_for_its_effect() {
    let it = Known::with(&[LOOKUP]);
    it.service.put("9", "dup");
    it.service.fails(&[Fault::Status(500)]);
    let output = it.call("POST", "/things", r#"{"name": "dup"}"#);
    assert!(!output.status.success(), "{}", said(&output));
    assert_eq!(it.status(), "in-doubt");
    it.world.run(&["undo", "@"]);
    it.world.run(&["recover", "--rollback", "@"]);
    assert_eq!(it.service.names(), ["dup"]);
}

#[test]
fn a_yes_to_an_undo_is_not_believed_while_the_thing_is_still_there() {
    for more in [&[][..], &[LOOKUP]] {
        let it = Known::with(more);
        it.makes("ann");
        it.service.fails(&[Fault::Ignore; 30]);
        let told = it.world.fails(1, &["undo", "--everywhere"]);
        assert!(told.contains("the effect is still there after"), "{told}");
        assert_eq!(it.service.names(), ["ann"], "{more:?}");
        let failed = it.world.json(&["failed"]);
        assert_eq!(failed["failed"].as_array().unwrap().len(), 1, "{failed}");
        it.service.fails(&[]);
        it.world.ok(&["failed", "--retry"]);
        assert!(it.service.names().is_empty(), "{more:?}");
    }
}

#[test]
fn a_service_that_deletes_a_moment_later_is_waited_for_without_a_rule_to_verify() {
    let it = Known::with(&[]);
    it.makes("ann");
    it.service.fails(&[Fault::Later]);
    let undone = it.world.json(&["undo", "--everywhere"]);
    assert!(undone.to_string().contains("compensated"), "{undone}");
    assert!(it.service.names().is_empty());
    assert_eq!(it.service.writes("DELETE"), 1);
}

#[test]
fn an_undo_that_put_nothing_back_leaves_the_operation_in_effect() {
    for (method, body, now) in [
        ("PUT", r#"{"name": "bob"}"#, vec!["bob"]),
        ("DELETE", "", vec![]),
    ] {
        let it = Known::with(&[]);
        it.service.put("7", "ann");
        let output = it.call(method, "/things/7", body);
        assert!(output.status.success(), "{method}: {}", said(&output));
        it.service.fails(&[Fault::Ignore; 30]);
        let told = it.world.fails(1, &["undo", "--everywhere"]);
        assert!(told.contains("and changed nothing in"), "{method}: {told}");
        assert!(!told.contains("it is again what it was"), "{told}");
        assert_eq!(it.service.names(), now, "{method}");
        let operations = it.world.operations();
        let stands = operations.iter().any(|it| it.1 == "committed");
        assert!(stands, "{method}: {operations:?}");
        let failed = it.world.json(&["failed"]);
        assert_eq!(failed["failed"].as_array().unwrap().len(), 1, "{failed}");
        it.service.fails(&[]);
        it.world.ok(&["failed", "--retry"]);
        assert_eq!(it.service.names(), ["ann"], "{method}");
    }
}

#[test]
fn a_call_whose_answer_lacks_what_its_inverse_needs_says_at_once_that_nothing_takes_it_back() {
    let it = Known::with(&[]);
    it.world.file("notes.txt", "one\n");
    it.world.ok(&["write", "notes.txt", "--text", "two\n"]);
    it.service.fails(&[Fault::Mute]);
    let output = it.call("POST", "/things", r#"{"name": "ann"}"#);
    let told = said(&output);
    assert!(output.status.success(), "{told}");
    let why = "its inverse needs `response.id`, and the service did not answer with that";
    let note = format!("nothing takes it back: {why}");
    assert!(told.contains(&note), "{told}");
    assert!(!told.contains("undo with"), "{told}");
    let id = it.world.json(&["log", "-n", "1"])["operations"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    for words in [
        &["undo", &id, "-n"][..],
        &["undo", &id],
        &["undo", &id, "--force"],
    ] {
        let output = it.world.run(words);
        let told = said(&output);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {told}");
        assert!(told.contains(why), "{words:?}: {told}");
        assert!(!told.contains("--force"), "{words:?}: {told}");
    }
    // What can be undone is named, and that works.
    let told = it.world.fails(1, &["undo", "--everywhere"]);
    assert!(
        told.contains("nothing takes back the newest operation"),
        "{told}"
    );
    assert!(told.contains("the newest that can be undone is"), "{told}");
    let (_, typed) = told.split_once("undo that one with `backout ").unwrap();
    let words: Vec<&str> = typed.split_once('`').unwrap().0.split(' ').collect();
    it.world.ok(&words);
    assert_eq!(it.world.read("notes.txt"), "one\n");
    assert_eq!(it.service.names(), ["ann"]);
    it.world.check_store();
}

#[test]
fn a_lost_call_that_nothing_takes_back_is_closed_by_keeping_it() {
    let it = Known::with(&[]);
    it.service.fails(&[Fault::Cut]);
    let told = said(&it.call("POST", "/things", r#"{"name": "ann"}"#));
    let why = "its inverse needs `response.id`, and nobody knows the answer";
    assert!(
        told.contains(
            "look yourself, and take it back by hand if it is to go; then close it with `backout"
        ),
        "{told}"
    );
    assert!(told.contains(why) && !told.contains("--rollback"), "{told}");
    for words in [
        &["recover"][..],
        &["recover", "--rollback", "@"],
        &["recover", "--rollback", "@", "--force"],
    ] {
        let told = said(&it.world.run(words));
        assert!(told.contains(why), "{words:?}: {told}");
        assert!(
            told.contains("it is not known whether it happened, and nothing takes it back: its"),
            "{words:?}: {told}"
        );
        assert!(!told.contains("--force"), "{words:?}: {told}");
    }
    let told = it.world.ok(&["recover", "--keep", "@"]);
    let kept = "what is there is kept; nothing takes it back: its inverse";
    assert!(told.contains(kept), "{told}");
    assert!(!told.contains("undo with"), "{told}");
    assert_eq!(it.status(), "committed");
    let status = it.world.json(&["status"]);
    assert_eq!(
        status["stuck"].as_array().map(Vec::len),
        Some(0),
        "{status}"
    );
    let told = it.world.ok(&["status"]);
    assert!(!told.contains("not as recorded"), "{told}");
    let told = it.world.fails(1, &["undo", "@"]);
    assert!(told.contains(why) && !told.contains("--force"), "{told}");
    assert_eq!(it.service.writes("DELETE"), 0);
}
