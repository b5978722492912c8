//! Rollouts among other people, by the real program: what the rollout did not write is never taken back without a word, what it says
//! of a target is what is there, and rules count from the moment that they hold.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::process::Child;

use rustix::process::Signal;
use serde_json::Value;

use crate::rollout::{
    config, go, killed_in_the_check, servers, signal, start, state, until, words, writes,
};
use crate::trust::json;
use crate::world::{World, said};

/// Passes in the first wave, and then waits for `go` and fails; but not for ever.
const FAILS_AT_GO: &str = "test {wave} -lt 2 && exit 0; for i in $(seq 1200); do test -e go && break; sleep 0.05; done; exit 1";

/// The same, and passes.
const PASSES_AT_GO: &str =
    "for i in $(seq 1200); do test -e go && exit 0; sleep 0.05; done; exit 1";

/// Begins a rollout whose second wave is written and waits for `go`.
fn in_the_second_wave(world: &World, count: usize, options: &[&str]) -> Child {
    let options = [
        &["--wave", "2", "--check", FAILS_AT_GO, "--timeout", "1h"],
        options,
    ]
    .concat();
    let child = world.spawn(&words(&start(count, &options)));
    until("the second wave", || world.read(&config(3)) == "new\n");
    until("it settled", || writes(world) == (3, 3));
    child
}

/// Somebody without a name writes a target again. Gives his operation.
fn theirs(world: &World, number: usize) -> String {
    let reply = world.json(&["write", &config(number), "--text", "theirs\n"]);
    reply["id"].as_str().unwrap().to_owned()
}

fn status_of(world: &World, id: &str) -> String {
    let shown = world.json(&["show", id]);
    shown["operation"]["status"].as_str().unwrap().to_owned()
}

/// What is said of each target of a wave, counted from 1.
fn nows(reply: &Value, wave: usize) -> Vec<String> {
    let targets = reply["waves"][wave - 1]["targets"].as_array().unwrap();
    let now = |it: &Value| it["now"].as_str().unwrap_or("<none>").to_owned();
    targets.iter().map(now).collect()
}

fn ended(child: Child) -> std::process::Output {
    child.wait_with_output().unwrap()
}

#[test]
fn a_wave_that_fails_leaves_what_others_built_on_it() {
    let world = servers(4);
    let child = in_the_second_wave(&world, 4, &[]);
    let other = theirs(&world, 3);
    go(&world);
    let output = ended(child);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert_eq!(world.read(&config(3)), "theirs\n", "{}", said(&output));
    assert_eq!(
        world.read(&config(2)),
        "old 2\n",
        "the rest of the wave goes"
    );
    assert_eq!(status_of(&world, &other), "committed");
    let status = world.json(&["rollout", "status"]);
    assert_eq!(status["state"], "left", "{status}");
    let why = status["why"].as_str().unwrap();
    for part in ["s03/nginx.conf", &other[..8]] {
        assert!(why.contains(part), "{part}: {why}");
    }
    assert!(
        said(&output).contains("resume r --force"),
        "{}",
        said(&output)
    );
    // Without force it stays, however often somebody asks.
    json(&world, 1, &["rollout", "resume"]);
    assert_eq!(world.read(&config(3)), "theirs\n");
    // With force it goes, is listed, and comes back.
    let reply = json(&world, 1, &["rollout", "resume", "--force"]);
    assert_eq!(reply["state"], "stopped", "{reply}");
    assert_eq!(world.read(&config(3)), "old 3\n");
    let also = reply["also"].as_array().unwrap();
    assert_eq!(also.len(), 1, "{reply}");
    assert_eq!(also[0]["id"], other.as_str(), "{reply}");
    let told = world.ok(&["rollout", "status"]);
    let on = also[0]["on"].as_str().unwrap();
    let redo = format!("backout redo {} {}", &on[..8], &other[..8]);
    assert!(told.contains(&redo), "{told}");
    world.ok(&["redo", on, &other]);
    assert_eq!(world.read(&config(3)), "theirs\n");
    assert_eq!(world.json(&["rollout", "status"])["also"], Value::Null);
    world.check_store();
}

#[test]
fn an_abort_leaves_what_others_built_on_it() {
    let world = servers(4);
    let options = ["--first", "2", "--check", PASSES_AT_GO, "--timeout", "1h"];
    let mut child = world.spawn(&words(&start(4, &options)));
    until("the first wave", || world.read(&config(2)) == "new\n");
    until("it settled", || writes(&world) == (2, 2));
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    let other = theirs(&world, 2);
    let reply = json(&world, 1, &["rollout", "abort"]);
    assert_eq!(reply["state"], "left", "{reply}");
    assert_eq!(world.read(&config(1)), "old 1\n");
    assert_eq!(world.read(&config(2)), "theirs\n");
    assert!(
        reply["why"].as_str().unwrap().contains(&other[..8]),
        "{reply}"
    );
    let told = world.fails(1, &["rollout", "abort"]);
    assert!(told.contains("rollout abort r --force"), "{told}");
    let reply = json(&world, 0, &["rollout", "abort", "--force"]);
    assert_eq!(reply["state"], "aborted", "{reply}");
    assert_eq!(reply["also"][0]["id"], other.as_str(), "{reply}");
    assert_eq!(world.read(&config(2)), "old 2\n");
    let on = reply["also"][0]["on"].as_str().unwrap();
    world.ok(&["redo", on, &other]);
    assert_eq!(world.read(&config(2)), "theirs\n");
    world.check_store();
}

#[test]
fn a_full_store_holds_a_wave_up_and_says_what_was_written() {
    let world = servers(4);
    let noise: String = (0..300_000_u64)
        .map(|at| char::from(b'!' + (at.wrapping_mul(2_654_435_761) >> 13).to_le_bytes()[0] % 90))
        .collect();
    for number in 1..=4 {
        world.file(&config(number), &format!("{number}{noise}"));
    }
    let mut line = vec!["--cap", "700KB"];
    let rest = start(4, &["--wave", "3"]);
    line.extend(words(&rest));
    let output = world.run(&line);
    let told = said(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert_eq!(world.read(&config(1)), "new\n", "{told}");
    assert!(!told.contains("nothing was written"), "{told}");
    assert!(told.contains("is held up"), "{told}");
    assert!(told.contains("passed"), "{told}");
    assert_eq!(state(&world), "held");
    world.ok(&["rollout", "resume"]);
    assert_eq!(writes(&world), (4, 4));
    world.check_store();
}

#[test]
fn rules_that_change_on_the_way_count() {
    let world = servers(4);
    let options = ["--wave", "3", "--check", PASSES_AT_GO, "--timeout", "1h"];
    let child = world.spawn(&words(&start(4, &options)));
    until("the first write", || world.read(&config(1)) == "new\n");
    until("it settled", || writes(&world) == (1, 1));
    world.file("backout.toml", "[protect]\ndeny = ['s03']\n");
    go(&world);
    let output = ended(child);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let status = world.json(&["rollout", "status"]);
    assert_eq!(status["state"], "stopped", "{status}");
    assert!(status["why"].as_str().unwrap().contains("s03"), "{status}");
    for number in 2..=4 {
        assert_eq!(world.read(&config(number)), format!("old {number}\n"));
    }
}

#[test]
fn a_check_gets_names_as_they_are() {
    let world = World::in_memory();
    world.file("new.conf", "new\n");
    let odd = OsStr::from_bytes(b"a\xff{wave}{target}.conf");
    std::fs::write(world.path("x").with_file_name(odd), "old\n").unwrap();
    let check = "test -f {target} && test -f \"$BACKOUT_TARGET\" && grep -q new {target}";
    let line = ["rollout", "start", "--name", "r", "--content", "new.conf"];
    let mut command = world.command(&[&line[..], &["--check", check]].concat());
    let output = command.arg(odd).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let content = std::fs::read(world.path("x").with_file_name(odd)).unwrap();
    assert_eq!(content, b"new\n");
}

#[test]
fn a_program_of_a_check_gets_names_as_they_are() {
    let world = World::in_memory();
    let rules = "[[check]]\nname = 'n'\npaths = ['*.conf']\ncommand = ['sh', '-c', 'grep -q new \"$1\" && test \"$2\" = \"$(printf %s \"$2\")\" && case \"$2\" in */a?*.conf) ;; *) exit 1;; esac', 'sh', '{staged}', '{target}']\n";
    world.file("backout.toml", rules);
    for odd in [&b"a\xff.conf"[..], b"a{target}.conf", b"a{staged}.conf"] {
        let mut command = world.command(&["write", "--text", "new\n"]);
        let output = command.arg(OsStr::from_bytes(odd)).output().unwrap();
        assert!(output.status.success(), "{odd:?}: {}", said(&output));
    }
}

#[test]
fn status_says_what_is_there_and_not_what_was() {
    let world = servers(6);
    let check = "test {wave} -lt 3";
    let line = start(6, &["--wave", "2", "--check", check]);
    let reply = json(&world, 1, &words(&line));
    assert_eq!(nows(&reply, 1), ["written"]);
    assert_eq!(nows(&reply, 2), ["written", "written"]);
    assert_eq!(nows(&reply, 3), ["undone", "undone"]);
    assert_eq!(nows(&reply, 4), ["untouched"]);
    let id = |wave: usize, at: usize| {
        let it = &reply["waves"][wave - 1]["targets"][at]["operation"];
        it.as_str().unwrap().to_owned()
    };
    // Somebody undoes, somebody edits, somebody brings back.
    world.ok(&["undo", &id(2, 0)]);
    world.file(&config(3), "theirs\n");
    world.ok(&["redo", &id(3, 1)]);
    world.file(&config(4), "theirs\n");
    let status = world.json(&["rollout", "status"]);
    assert_eq!(nows(&status, 2), ["undone", "changed"], "{status}");
    assert_eq!(nows(&status, 3), ["changed", "written"], "{status}");
    assert_eq!(status["waves"][2]["standing"], "failed", "{status}");
    let told = world.ok(&["rollout", "status"]);
    assert!(!told.contains("failed and it is undone"), "{told}");
    for part in [
        "s02/nginx.conf (undone)",
        "s03/nginx.conf (changed since)",
        "s04/nginx.conf (changed since)",
        "s05/nginx.conf (in effect)",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
fn status_looks_at_targets_whose_turn_has_not_come() {
    let world = servers(6);
    killed_in_the_check(&world, 6, &["--wave", "2"]);
    let status = world.json(&["rollout", "status"]);
    assert_eq!(nows(&status, 2), ["pending", "pending"], "{status}");
    world.file(&config(2), "theirs\n");
    std::fs::remove_file(world.path(&config(3))).unwrap();
    symlink(world.path(&config(6)), world.path(&config(3))).unwrap();
    std::fs::remove_file(world.path(&config(4))).unwrap();
    std::fs::create_dir(world.path(&config(4))).unwrap();
    std::fs::remove_file(world.path(&config(5))).unwrap();
    let before = world.tree();
    let status = world.json(&["rollout", "status"]);
    assert_eq!(nows(&status, 2), ["changed", "changed"], "{status}");
    assert_eq!(nows(&status, 3), ["changed", "changed"], "{status}");
    assert_eq!(nows(&status, 4), ["pending"], "{status}");
    assert_eq!(status["waves"][1]["standing"], "pending", "{status}");
    assert!(world.tree() == before);
    let told = world.ok(&["rollout", "status"]);
    assert!(told.contains("s02/nginx.conf (changed since)"), "{told}");
}

#[test]
fn what_a_failed_wave_never_came_to_is_untouched() {
    let world = servers(4);
    world.file("backout.toml", "[protect]\ndeny = ['s03']\n");
    let reply = json(&world, 1, &words(&start(4, &["--wave", "3"])));
    assert_eq!(
        nows(&reply, 2),
        ["undone", "untouched", "untouched"],
        "{reply}"
    );
    let told = world.ok(&["rollout", "status"]);
    assert!(told.contains("s03/nginx.conf (untouched)"), "{told}");
    let world = servers(1);
    world.file("backout.toml", "[protect]\ndeny = ['s01']\n");
    let reply = json(&world, 1, &words(&start(1, &[])));
    assert_eq!(reply["waves"][0]["standing"], "untouched", "{reply}");
    let told = world.ok(&["rollout", "status"]);
    assert!(told.contains("nothing of it was written"), "{told}");
}

#[test]
fn status_knows_a_decision_before_anybody_goes_on() {
    for (verb, decided) in [("approve", "approved"), ("reject", "rejected")] {
        let world = servers(3);
        world.file("backout.toml", "[protect]\nask = ['s02']\n");
        let reply = json(&world, 1, &words(&start(3, &["--wave", "2"])));
        assert_eq!(reply["decided"], "waits", "{reply}");
        world.ok(&[verb, reply["proposal"].as_str().unwrap()]);
        let status = world.json(&["rollout", "status"]);
        assert_eq!(status["decided"], decided, "{status}");
        let told = world.ok(&["rollout", "status"]);
        assert!(told.contains(decided), "{told}");
        assert!(!told.contains("waits for a decision"), "{told}");
        assert!(!told.contains("decide with"), "{told}");
    }
}

#[test]
fn force_does_not_write_through_a_link() {
    let world = servers(3);
    killed_in_the_check(&world, 3, &["--wave", "2"]);
    go(&world);
    world.file("precious", "mine\n");
    std::fs::remove_file(world.path(&config(2))).unwrap();
    symlink("../precious", world.path(&config(2))).unwrap();
    for options in [&[][..], &["--force"]] {
        let reply = json(&world, 1, &[&["rollout", "resume"], options].concat());
        assert_eq!(reply["state"], "held", "{reply}");
        assert!(
            reply["why"].as_str().unwrap().contains("s02/nginx.conf"),
            "{reply}"
        );
        assert_eq!(world.read("precious"), "mine\n", "{reply}");
        assert_eq!(world.read(&config(3)), "old 3\n", "{reply}");
    }
    // A target that was a link from the beginning is written through it.
    let world = servers(2);
    world.file("real", "old\n");
    std::fs::remove_file(world.path(&config(2))).unwrap();
    symlink("../real", world.path(&config(2))).unwrap();
    world.ok(&words(&start(2, &[])));
    assert_eq!(world.read("real"), "new\n");
}

#[test]
fn what_a_target_became_in_kind_holds_its_wave_up() {
    for is_parent in [false, true] {
        for options in [&[][..], &["--force"]] {
            let world = servers(3);
            killed_in_the_check(&world, 3, &["--wave", "2"]);
            go(&world);
            std::fs::remove_file(world.path(&config(3))).unwrap();
            if is_parent {
                std::fs::remove_dir(world.path("s03")).unwrap();
            } else {
                std::fs::create_dir(world.path(&config(3))).unwrap();
            }
            let reply = json(&world, 1, &[&["rollout", "resume"], options].concat());
            assert_eq!(reply["state"], "held", "{reply}");
            assert!(
                reply["why"].as_str().unwrap().contains("s03/nginx.conf"),
                "{reply}"
            );
            assert_eq!(world.read(&config(1)), "new\n", "the wave before stays");
            // When it is mended it goes on.
            if !is_parent {
                std::fs::remove_dir(world.path(&config(3))).unwrap();
            }
            world.file(&config(3), "old 3\n");
            world.ok(&["rollout", "resume", "--force"]);
            assert_eq!(world.read(&config(3)), "new\n");
        }
    }
}

#[test]
fn a_plan_takes_keys() {
    let world = World::in_memory();
    for name in ["a.toml", "b.toml"] {
        world.file(name, "# mine\nport = 80\nold = true\n");
    }
    world.file("c.json", "{\"port\": 80}\n");
    let plan = r#"{"changes": [
        {"set": {"path": "a.toml", "key": "port", "value": 81}},
        {"unset": {"path": "b.toml", "key": "old"}},
        {"merge": {"path": "c.json", "patch": {"port": 82, "tls": {"on": true}}}}]}"#;
    world.file("plan", plan);
    world.ok(&[
        "rollout", "start", "--name", "r", "--wave", "1", "--plan", "plan",
    ]);
    assert_eq!(world.read("a.toml"), "# mine\nport = 81\nold = true\n");
    assert_eq!(world.read("b.toml"), "# mine\nport = 80\n");
    assert!(
        world.read("c.json").contains("\"tls\""),
        "{}",
        world.read("c.json")
    );
    assert_eq!(nows(&world.json(&["rollout", "status"]), 1), ["written"]);
    std::fs::remove_file(world.path("plan")).unwrap();
    // Other keys of the file are other people's, and stay.
    world.ok(&["set", "a.toml", "name", "theirs"]);
    let told = world.run(&["rollback", "r"]);
    assert!(told.status.success(), "{}", said(&told));
    assert!(world.read("a.toml").contains("port = 80"));
    assert!(world.read("a.toml").contains("name = \"theirs\""));
    // A batch is of whole files.
    world.file(
        "plan",
        r#"{"changes": [{"unset": {"path": "a.toml", "key": "port"}}]}"#,
    );
    let told = world.fails(2, &["batch", "plan"]);
    assert!(told.contains("a batch changes whole files"), "{told}");
}

#[test]
fn a_key_that_somebody_changed_holds_its_wave_up_and_other_keys_do_not_go() {
    let world = World::in_memory();
    for name in ["a.toml", "b.toml"] {
        world.file(name, "port = 80\n");
    }
    let plan = r#"{"changes": [
        {"set": {"path": "a.toml", "key": "port", "value": 81}},
        {"set": {"path": "b.toml", "key": "port", "value": 81}}]}"#;
    world.file("plan", plan);
    let check = "test {wave} -lt 2 || { echo 'name = 1' >> b.toml; exit 1; }";
    let line = [
        "rollout", "start", "--name", "r", "--plan", "plan", "--check", check,
    ];
    let reply = json(&world, 1, &line);
    assert_eq!(reply["state"], "stopped", "{reply}");
    assert_eq!(world.read("b.toml"), "port = 80\nname = 1\n");
    assert_eq!(world.read("a.toml"), "port = 81\n");
}

#[test]
fn two_rollouts_on_the_same_targets_do_not_take_each_other_back() {
    let world = servers(4);
    world.file("other.conf", "other\n");
    let child = in_the_second_wave(&world, 4, &[]);
    // The second one is begun on what the first one wrote.
    let mut line = vec![
        "rollout",
        "start",
        "--name",
        "second",
        "--content",
        "other.conf",
    ];
    let (two, three) = (config(2), config(3));
    line.extend([two.as_str(), &three]);
    world.ok(&line);
    go(&world);
    let output = ended(child);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    for number in [2, 3] {
        assert_eq!(world.read(&config(number)), "other\n", "{}", said(&output));
    }
    assert_eq!(state(&world), "left");
    // When the second one is gone, the first one goes.
    world.ok(&["rollback", "second"]);
    json(&world, 1, &["rollout", "resume", "r"]);
    assert_eq!(state(&world), "stopped");
    assert_eq!(world.read(&config(3)), "old 3\n");
    world.check_store();
}

/// What goes along is in the answer, wherever a process died on the way.
#[test]
fn what_goes_along_is_told_after_a_crash_at_every_point() {
    let prepared = || {
        let world = servers(3);
        let child = in_the_second_wave(&world, 3, &[]);
        let other = theirs(&world, 3);
        go(&world);
        ended(child);
        assert_eq!(state(&world), "left");
        (world, other)
    };
    let force = ["rollout", "resume", "r", "--force"];
    let (unbroken, _) = prepared();
    let log = unbroken.scratch("points");
    let mut command = unbroken.command(&force);
    command.env("BACKOUT_CRASH_LOG", &log).output().unwrap();
    let points = std::fs::read_to_string(log).unwrap();
    let is_tried = |name: &str| {
        let ours = ["rollout.", "engine.", "journal.after"];
        ours.iter().any(|begin| name.starts_with(begin))
    };
    let tried = points.lines().zip(1..).filter(|(name, _)| is_tried(name));
    let tried: Vec<(&str, usize)> = tried.collect();
    assert!(tried.iter().any(|(name, _)| *name == "engine.undone"));
    for (name, point) in tried {
        let (world, other) = prepared();
        let mut command = world.command(&force);
        command.env("BACKOUT_CRASH_AT", point.to_string());
        command.output().unwrap();
        let again = world.run(&force);
        let at = format!("point {point}, {name}: {}", said(&again));
        let status = world.json(&["rollout", "status", "r"]);
        assert_eq!(status["state"], "stopped", "{at}");
        assert_eq!(status["also"][0]["id"], other.as_str(), "{at} {status}");
        assert_eq!(world.read(&config(3)), "old 3\n", "{at}");
        let on = status["also"][0]["on"].as_str().unwrap();
        world.ok(&["redo", on, &other]);
        assert_eq!(world.read(&config(3)), "theirs\n", "{at}");
        world.check_store();
    }
}

#[test]
fn what_others_did_in_its_task_is_not_the_rollouts() {
    let world = servers(4);
    let child = in_the_second_wave(&world, 4, &[]);
    let write = ["--task", "r", "write", &config(3), "--text", "theirs\n"];
    let other = world.json(&write)["id"].as_str().unwrap().to_owned();
    world.ok(&["--task", "r", "write", "apart", "--text", "theirs\n"]);
    go(&world);
    let output = ended(child);
    assert_eq!(world.read(&config(3)), "theirs\n", "{}", said(&output));
    let status = world.json(&["rollout", "status"]);
    assert_eq!(status["state"], "left", "{status}");
    assert!(
        status["why"].as_str().unwrap().contains(&other[..8]),
        "{status}"
    );
    world.ok(&["undo", &other]);
    let reply = json(&world, 1, &["rollout", "abort"]);
    assert_eq!(reply["state"], "left", "{reply}");
    assert!(
        reply["why"]
            .as_str()
            .unwrap()
            .contains("others worked in its task: "),
        "{reply}"
    );
    assert_eq!(world.read("apart"), "theirs\n");
    let reply = json(&world, 0, &["rollout", "abort", "--force"]);
    assert_eq!(reply["state"], "aborted", "{reply}");
    let notes = reply["notes"].to_string();
    assert!(
        notes.contains("is undone with its task; `backout redo"),
        "{reply}"
    );
    assert!(!world.path("apart").exists());
    world.ok(&["redo"]);
    assert_eq!(world.read("apart"), "theirs\n");
    world.check_store();
}

#[test]
fn who_begins_a_rollout_is_told_if_somebody_ends_its_task() {
    let world = servers(4);
    let child = in_the_second_wave(&world, 4, &[]);
    world.ok(&["commit", "r"]);
    go(&world);
    assert_eq!(ended(child).status.code(), Some(1));
    assert_eq!(state(&world), "by-hand");
}
