//! What others make of a thing that a call made: seen before it is taken away, kept if it goes all the same, and brought back.

use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;

use super::{Fault, KEY, Known, LOOKUP, VERIFY};
use crate::world::said;

/// SIGABRT.
const ABORTED: i32 = 6;

/// Names the newest operation.
fn newest(it: &Known) -> String {
    it.world.json(&["log", "-n", "1"])["operations"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn what_others_made_of_it_is_a_conflict_and_force_keeps_it_for_the_redo() {
    for more in [
        &[][..],
        &[KEY, VERIFY],
        &[LOOKUP],
        &[r#"look = { url = "$S/things/{response.id}", change = "PATCH" }"#],
    ] {
        let it = Known::with(more);
        it.makes("ann");
        it.service.put("1", "somebody's");
        let plan = it.world.run(&["undo", "--everywhere", "-n"]);
        assert_eq!(plan.status.code(), Some(1), "{}", said(&plan));
        let told = said(&it.world.run(&["undo", "--everywhere"]));
        assert!(told.contains("somebody changed it since"), "{told}");
        assert!(told.contains("`name`"), "{told}");
        assert_eq!(it.service.names(), ["somebody's"]);
        it.world.ok(&["undo", "--everywhere", "--force"]);
        assert!(it.service.names().is_empty());
        let kept = it.world.ok(&["diff", &newest(&it)]);
        assert!(kept.contains("somebody's"), "{kept}");
        it.world.ok(&["redo", "--everywhere"]);
        assert_eq!(it.service.names(), ["somebody's"], "{more:?}");
        // What was brought back is what the redo left: its undo is no conflict, and the next redo has it again.
        let told = it.world.ok(&["undo", "--everywhere"]);
        assert!(it.service.names().is_empty(), "{more:?}: {told}");
        it.world.ok(&["redo", "--everywhere"]);
        assert_eq!(it.service.names(), ["somebody's"], "{more:?}");
        it.world.check_store();
    }
}

#[test]
fn what_a_service_does_not_take_back_is_said_and_can_be_read() {
    let it = Known::with(&[]);
    it.makes("ann");
    it.service.put("1", "somebody's");
    it.world.ok(&["undo", "--everywhere", "--force"]);
    let undo = newest(&it);
    it.service.fails(&[Fault::DoneBut(201), Fault::Status(405)]);
    let told = said(&it.world.run(&["redo", "--everywhere"]));
    assert!(
        told.contains("it was made again without what others had changed in it"),
        "{told}"
    );
    assert!(
        told.contains(&format!("backout diff {}", &undo[..8])),
        "{told}"
    );
    assert_eq!(it.service.names(), ["ann"]);
    let kept = it.world.ok(&["diff", &undo]);
    assert!(kept.contains("somebody's"), "{kept}");
}

#[test]
fn a_redo_that_dies_while_it_brings_back_leaves_nothing_half() {
    for point in ["http.looked", "http.before-bring", "http.brought"] {
        let it = Known::with(&[KEY, VERIFY]);
        it.makes("ann");
        it.service.put("1", "somebody's");
        it.world.ok(&["undo", "--everywhere", "--force"]);
        let output = it
            .world
            .command(&["redo", "--everywhere"])
            .env("BACKOUT_CRASH_AT", point)
            .output()
            .unwrap();
        assert_eq!(output.status.signal(), Some(ABORTED), "{}", said(&output));
        it.world.ok(&["recover"]);
        assert!(it.service.names().is_empty(), "{point}");
        it.world.ok(&["redo", "--everywhere"]);
        assert_eq!(it.service.names(), ["somebody's"], "{point}");
        it.world.check_store();
    }
}

#[test]
fn where_nobody_can_look_that_is_said_before_anything_happens() {
    let it = Known::answered_by(
        r#"{ method = "PUT", url = "$S/things/{response.id}", json = { name = "gone" } }"#,
        &[],
    );
    let output = it.call("POST", "/things", r#"{"name": "ann"}"#);
    let told = said(&output);
    assert!(
        told.contains("what others will change in what it makes cannot be seen"),
        "{told}"
    );
    let plan = it.world.ok(&["undo", "--everywhere", "-n"]);
    assert!(
        plan.contains("what they changed in it since cannot be seen, and goes with it"),
        "{plan}"
    );
    let with_a_look = Known::with(&[]);
    with_a_look.makes("ann");
    let plan = with_a_look.world.ok(&["undo", "--everywhere", "-n"]);
    assert!(!plan.contains("cannot be seen"), "{plan}");
}

#[test]
fn that_there_is_nothing_is_no_proof_that_it_is_gone() {
    for more in [
        &[][..],
        &[r#"verify = { url = "$S/nowhere/{response.id}", interval = "10ms", limit = "1s" }"#],
    ] {
        let it = Known::answered_by(r#"{ url = "$S/nowhere/{response.id}" }"#, more);
        it.makes("ann");
        let told = said(&it.world.run(&["undo", "--everywhere"]));
        assert!(
            told.contains("nothing shows that the effect is gone"),
            "{told}"
        );
        assert_eq!(it.service.names(), ["ann"]);
        let failed = it.world.json(&["failed"]);
        assert_eq!(failed["failed"].as_array().unwrap().len(), 1, "{failed}");
    }
}

#[test]
fn an_undo_that_fails_after_a_redo_is_among_the_failed() {
    let it = Known::with(&[KEY, VERIFY]);
    it.makes("ann");
    it.world.ok(&["undo", "--everywhere"]);
    it.world.ok(&["redo", "--everywhere"]);
    it.service.fails(&[Fault::Status(403); 30]);
    it.world.fails(1, &["undo", "--everywhere"]);
    let failed = it.world.json(&["failed"]);
    assert_eq!(failed["failed"].as_array().unwrap().len(), 1, "{failed}");
    it.service.fails(&[]);
    it.world.ok(&["failed", "--retry"]);
    assert!(it.service.names().is_empty());
    let failed = it.world.json(&["failed"]);
    assert_eq!(failed["failed"].as_array().unwrap().len(), 0, "{failed}");
}

#[test]
fn what_answers_a_call_and_how_far_that_is_can_be_asked_for() {
    let it = Known::with(&[KEY, VERIFY]);
    it.makes("ann");
    let id = newest(&it);
    let answer = |status: &str| {
        let shown = it.world.json(&["show", &id]);
        let action = &shown["compensation"];
        assert_eq!(action["status"], status, "{shown}");
        assert_eq!(action["original_action"], shown["operation"]["summary"]);
        let expected = format!("DELETE {}", it.service.url("/things/1"));
        assert_eq!(action["compensation_action"], expected, "{shown}");
        action["error"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(answer("pending"), "");
    assert!(it.world.ok(&["show", &id]).contains("answered by"));
    it.service.fails(&[Fault::Status(403); 30]);
    it.world.fails(1, &["undo", "--everywhere"]);
    assert!(answer("failed").contains("403"));
    it.service.fails(&[]);
    it.world.ok(&["undo", "--everywhere"]);
    assert_eq!(answer("completed"), "");
}

#[test]
fn a_plan_and_a_diff_tell_what_is_in_it_and_no_secret() {
    let it = Known::with(&[]);
    it.makes("ann");
    let plan = it.world.ok(&["undo", "--everywhere", "-n", "--diff", "-v"]);
    assert!(plan.contains(r#""name":"ann""#), "{plan}");
    let diff = it.world.ok(&["diff", "@", "-v"]);
    assert!(
        diff.contains("(hidden)") && !diff.contains("sk_live"),
        "{diff}"
    );
    it.service.put("7", "bob");
    it.call("PUT", "/things/7", r#"{"name": "cid"}"#);
    let plan = it.world.ok(&["undo", "@", "-n", "--diff"]);
    assert!(plan.contains("bob") && plan.contains("cid"), "{plan}");
}

#[test]
fn ctrl_c_is_heard_while_a_service_hangs() {
    for (more, left) in [(&[KEY][..], 0), (&[LOOKUP], 0), (&[], 1)] {
        let it = Known::with(more);
        it.service.fails(&[Fault::Hang]);
        let url = it.service.url("/things");
        let words = [
            "http",
            "POST",
            &url,
            "--timeout",
            "600",
            "--data",
            r#"{"name": "ann"}"#,
        ];
        let mut command = it.world.command(&words);
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        while it.service.writes("POST") == 0 {
            std::thread::yield_now();
        }
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let output = child.wait_with_output().unwrap();
        // What nobody can tell is half done, and said to be.
        let code = if left == 0 { 130 } else { 1 };
        assert_eq!(output.status.code(), Some(code), "{}", said(&output));
        assert_eq!(
            it.service.names().len(),
            left,
            "{more:?}: {}",
            said(&output)
        );
        assert_eq!(it.status(), if left == 0 { "aborted" } else { "in-doubt" });
    }
}

#[test]
fn a_query_picks_a_part_of_what_is_at_the_path() {
    let it = Known::with(&[]);
    it.service.put("7", "ann");
    it.call("PUT", "/things/7", r#"{"name": "bob"}"#);
    let first = newest(&it);
    it.call("PUT", "/things/7?x=1", r#"{"name": "cid"}"#);
    // The second is built on the first, and goes with it.
    it.world.ok(&["undo", &first]);
    assert_eq!(it.service.names(), ["ann"]);
}
