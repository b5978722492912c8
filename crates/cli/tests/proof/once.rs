//! Calls with a key, by the real program: at most once in effect, the first answer again, and never "done" for what is not
//! there.

use crate::ruled::code;
use crate::trust::json;
use crate::world::World;

#[test]
fn a_call_whose_process_died_is_carried_out_by_the_next_one_exactly_once() {
    let call = [
        "--once", "k", "write", "--append", "log", "--text", "line\n",
    ];
    let points = {
        let world = World::in_memory();
        world.file("log", "first\n");
        let log = world.scratch("points");
        let mut command = world.command(&call);
        command.env("BACKOUT_CRASH_LOG", &log).output().unwrap();
        std::fs::read_to_string(log).unwrap().lines().count()
    };
    assert!(points >= 8, "{points}");
    let mut again = 0;
    for point in 1..=points {
        let world = World::in_memory();
        world.file("log", "first\n");
        let mut command = world.command(&call);
        let output = command.env("BACKOUT_CRASH_AT", point.to_string()).output();
        assert!(output.unwrap().status.code().is_none(), "point {point}");
        let reply = world.json(&call);
        assert_eq!(world.read("log"), "first\nline\n", "point {point}: {reply}");
        assert_eq!(reply["status"], "committed", "point {point}");
        again += usize::from(reply["notes"].to_string().contains("did not come to pass"));
        // From now on it is answered.
        let third = world.json(&call);
        assert_eq!(third["id"], reply["id"]);
        assert_eq!(third["is_again"], true);
        assert_eq!(world.read("log"), "first\nline\n");
        world.check_store();
    }
    assert!(again > 0, "no point between arm and commit");
}

#[test]
fn every_kind_of_write_that_was_done_is_answered_again() {
    for call in [
        &["rm", "f"][..],
        &["rm", "-f", "f", "no-such"],
        &["rm", "-r", "s"],
        &["mv", "f", "moved"],
        &["mv", "f", "s"],
        &["mv", "f", "g", "s"],
        &["cp", "f", "copy"],
        &["cp", "-r", "s", "copy"],
        &["mkdir", "m"],
        &["mkdir", "-p", "m/n"],
        &["ln", "-s", "f", "link"],
        &["ln", "-s", "f", "s"],
        &["ln", "f", "second"],
        &["chmod", "0600", "f"],
        &["edit", "f", "--search", "one", "--replace", "two"],
        &["write", "--create", "new", "--text", "x"],
        &["write", "new", "--from", "f"],
        &["write", "--append", "f", "--text", "x"],
        &["set", "c.toml", "k", "2"],
        &["unset", "c.toml", "k"],
        &["merge", "c.toml", r#"{"k": 3}"#],
        &["batch", "changes.json"],
        &["edit", "--patch", "a.patch"],
        &["restore", "g", "--from", "@"],
    ] {
        let world = World::in_memory();
        world.file("f", "one\n");
        world.file("g", "1\n");
        world.file("s/a", "a\n");
        world.file("c.toml", "k = 1\n");
        world.file("a.patch", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-one\n+two\n");
        world.file(
            "changes.json",
            r#"{"changes": [{"remove": {"path": "f"}}, {"write": {"path": "n", "text": "n", "create": true}}]}"#,
        );
        world.ok(&["write", "g", "--text", "2\n"]);
        let call = [&["--once", "k"][..], call].concat();
        let first = world.json(&call);
        // What a source was then does not matter now.
        if call.contains(&"--from") && call.contains(&"new") {
            std::fs::remove_file(world.path("f")).unwrap();
        }
        let after = world.tree();
        let again = world.json(&call);
        assert_eq!(again["id"], first["id"], "{call:?}");
        assert!(world.tree() == after, "{call:?}");
        let words = world.ok(&call);
        assert!(words.contains("done before: "), "{words}");
        let other = ["--once", "k", "write", "else", "--text", "x"];
        assert_eq!(code(&world, &other), "key-taken", "{call:?}");
        assert!(world.tree() == after, "{call:?}");
        world.check_store();
    }
}

#[test]
fn what_was_undone_since_is_not_called_done() {
    let world = World::in_memory();
    let call = ["--once", "k", "write", "f", "--text", "1"];
    world.ok(&call);
    world.ok(&["undo"]);
    let report = json(&world, 1, &call);
    assert_eq!(report["code"], "undone-since", "{report}");
    assert!(!world.path("f").exists());
    world.ok(&["redo"]);
    assert_eq!(world.json(&call)["is_again"], true);
    assert_eq!(world.read("f"), "1");
}

#[test]
fn a_proposal_that_was_approved_is_answered_again_although_its_target_is_gone() {
    let world = World::in_memory();
    world.file("d/a", "one\n");
    world.file("backout.toml", "[protect]\nask = ['d']\n");
    let call = ["--once", "k", "rm", "d/a"];
    let waits = json(&world, 1, &call);
    assert_eq!(waits["code"], "waits");
    assert_eq!(json(&world, 1, &call)["operation"], waits["operation"]);
    world.ok(&["approve", waits["operation"].as_str().unwrap()]);
    assert_eq!(world.json(&call)["id"], waits["operation"]);
}

#[test]
fn a_task_that_ended_does_not_take_the_answer_away() {
    let world = World::in_memory();
    world.ok(&["task", "begin", "t"]);
    let call = ["--once", "k", "--task", "t", "write", "f", "--text", "1"];
    let first = world.json(&call);
    world.ok(&["commit", "t"]);
    assert_eq!(world.json(&call)["id"], first["id"]);
}

#[test]
fn the_same_removal_by_many_at_once_is_one_operation() {
    for _ in 0..3 {
        let world = World::in_memory();
        world.file("f", "0\n");
        world.is_one_operation(&["rm", "f"]);
    }
}

#[test]
fn the_same_write_by_many_at_once_is_one_operation() {
    let world = World::in_memory();
    world.file("f", "0\n");
    world.is_one_operation(&["write", "f", "--text", "1\n"]);
    assert_eq!(world.read("f"), "1\n");
}

#[test]
fn what_cannot_know_its_calls_again_takes_no_key() {
    let world = World::in_memory();
    world.ok(&["write", "f", "--text", "1"]);
    let before = world.tree();
    for call in [
        &["run", "--", "sh", "-c", "echo r >> f"][..],
        &["try", "--apply", "--", "sh", "-c", "echo r >> f"],
        &["undo"],
        &["redo"],
        &["rollback", "t"],
        &["approve", "@"],
        &["log"],
    ] {
        let call = [&["--once", "k"][..], call].concat();
        let report = json(&world, 2, &call);
        assert_eq!(report["code"], "usage", "{report}");
        assert!(world.tree() == before, "{call:?}");
    }
}
