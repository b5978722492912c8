//! Rollouts, by the real program: a wave that fails is undone and the rest is never touched, and whatever dies, going on ends in
//! the world of an unbroken run.

use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Child;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::trust::json;
use crate::world::{World, said};

const SERVERS: usize = 14;

/// Waits for a file, but not for ever.
const UNTIL_GO: &str = "for i in $(seq 1200); do test -e go && exit 0; sleep 0.05; done; exit 1";

/// SIGABRT.
const ABORTED: i32 = 6;

pub(crate) fn config(number: usize) -> String {
    format!("s{number:02}/nginx.conf")
}

/// A world of servers, each with a config of its own.
pub(crate) fn servers(count: usize) -> World {
    let world = World::in_memory();
    for number in 1..=count {
        world.file(&config(number), &format!("old {number}\n"));
    }
    world.file("new.conf", "new\n");
    world
}

/// A rollout to all servers, in waves of one and then five.
pub(crate) fn start(count: usize, options: &[&str]) -> Vec<String> {
    let mut line: Vec<String> = "rollout start --name r --content new.conf"
        .split(' ')
        .map(str::to_owned)
        .collect();
    line.extend(options.iter().map(|option| (*option).to_owned()));
    line.extend((1..=count).map(config));
    line
}

pub(crate) fn words(line: &[String]) -> Vec<&str> {
    line.iter().map(String::as_str).collect()
}

/// What would tell that somebody touched a file.
pub(crate) fn look(world: &World, number: usize) -> (u64, i64, i64, i64, i64) {
    let found = std::fs::symlink_metadata(world.path(&config(number))).unwrap();
    let modified = (found.mtime(), found.mtime_nsec());
    let changed = (found.ctime(), found.ctime_nsec());
    (found.ino(), modified.0, modified.1, changed.0, changed.1)
}

pub(crate) fn state(world: &World) -> String {
    let status = world.json(&["rollout", "status", "r"]);
    status["state"].as_str().unwrap().to_owned()
}

/// How many writes are in effect, and how many there were.
pub(crate) fn writes(world: &World) -> (usize, usize) {
    let operations = world.operations();
    let writes = operations.iter().filter(|(verb, _)| verb == "write");
    let all: Vec<&String> = writes.map(|(_, status)| status).collect();
    let kept = all
        .iter()
        .filter(|it| *it == &"committed" || *it == &"applied");
    (kept.count(), all.len())
}

/// Looks again and again until something holds, but not for ever.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if holds() {
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("never: {what}");
}

pub(crate) fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// Begins a rollout whose check waits for the file `go`, and kills it there.
pub(crate) fn killed_in_the_check(world: &World, count: usize, options: &[&str]) {
    let options = [&["--check", UNTIL_GO, "--timeout", "1h"], options].concat();
    let line = start(count, &options);
    let mut child = world.spawn(&words(&line));
    // The file is there before the journal says that it stays.
    until("the first write", || writes(world).0 > 0);
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    assert_eq!(state(world), "died");
}

pub(crate) fn go(world: &World) {
    world.file("go", "");
}

#[test]
fn a_canary_that_fails_is_restored_and_nothing_else_is_touched() {
    let world = servers(SERVERS);
    let before = world.tree();
    let looks: Vec<_> = (2..=SERVERS).map(|number| look(&world, number)).collect();
    let line = start(SERVERS, &["--wave", "5", "--check", "grep -q old {target}"]);
    let reply = json(&world, 1, &words(&line));
    assert_eq!(
        (&reply["state"], &reply["wave"]),
        (&"stopped".into(), &1.into())
    );
    assert!(world.tree() == before, "{reply}");
    let after: Vec<_> = (2..=SERVERS).map(|number| look(&world, number)).collect();
    assert_eq!(looks, after);
    assert_eq!(writes(&world), (0, 1));
    assert!(world.ok(&["export"]).contains("its rollout was stopped"));
    world.check_store();
}

#[test]
fn a_wave_that_fails_is_undone_and_the_rest_is_never_touched() {
    let world = servers(SERVERS);
    let looks: Vec<_> = (12..=SERVERS).map(|number| look(&world, number)).collect();
    let check = "case {target} in */s08/*) echo is down; exit 7;; esac";
    let line = start(SERVERS, &["--wave", "5", "--check", check]);
    let reply = json(&world, 1, &words(&line));
    assert_eq!(
        (&reply["state"], &reply["wave"]),
        (&"stopped".into(), &3.into())
    );
    let why = reply["why"].as_str().unwrap();
    assert!(
        why.contains("s08/nginx.conf`: `/bin/sh` ended with 7: is down"),
        "{why}"
    );
    let standings: Vec<&Value> = reply["waves"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["standing"])
        .collect();
    assert_eq!(standings, ["passed", "passed", "undone", "untouched"]);
    for number in 1..=SERVERS {
        let is_new = number <= 6;
        let expected = if is_new {
            "new\n".to_owned()
        } else {
            format!("old {number}\n")
        };
        assert_eq!(world.read(&config(number)), expected);
    }
    let after: Vec<_> = (12..=SERVERS).map(|number| look(&world, number)).collect();
    assert_eq!(looks, after);
    assert_eq!(writes(&world), (6, 11));
    world.check_store();
    // What stays goes by the name of the rollout, and comes back.
    world.ok(&["rollback", "r"]);
    for number in 1..=SERVERS {
        assert_eq!(world.read(&config(number)), format!("old {number}\n"));
    }
}

#[test]
fn all_of_it_is_undone_if_that_was_asked_for() {
    let world = servers(5);
    let before = world.tree();
    let check = "test {wave} -lt 3";
    let line = start(5, &["--wave", "2", "--check", check, "--on-failure", "all"]);
    let reply = json(&world, 1, &words(&line));
    assert_eq!(
        (&reply["state"], &reply["back"]),
        (&"stopped".into(), &"all".into())
    );
    assert!(world.tree() == before);
    assert_eq!(writes(&world), (0, 5));
    world.check_store();
}

#[test]
fn a_check_may_stumble_as_often_as_it_may_be_tried() {
    let world = servers(1);
    let check = "echo >> count; test $(wc -l < count) -ge 3";
    world.fails(1, &words(&start(1, &["--tries", "2", "--check", check])));
    std::fs::remove_file(world.path("count")).unwrap();
    let mut line = start(1, &["--tries", "3", "--check", check]);
    line[3] = "again".to_owned();
    world.ok(&words(&line));
    assert_eq!(world.read(&config(1)), "new\n");
}

#[test]
fn each_target_has_content_of_its_own_by_a_plan() {
    let world = servers(3);
    let plan = r#"{"changes": [
        {"write": {"path": "s01/nginx.conf", "text": "one\n"}},
        {"edit": {"path": "s02/nginx.conf", "search": "old", "replace": "two"}},
        {"remove": {"path": "s03/nginx.conf"}}]}"#;
    world.file("plan", plan);
    let before = world.tree();
    world.ok(&[
        "rollout", "start", "--name", "r", "--wave", "1", "--plan", "plan",
    ]);
    assert_eq!(world.read(&config(1)), "one\n");
    assert_eq!(world.read(&config(2)), "two 2\n");
    assert!(!world.path(&config(3)).exists());
    world.ok(&["rollback", "r"]);
    assert!(world.tree() == before);
}

/// Where the record of the end may be in the journal already.
const AT_THE_END: [&str; 2] = ["rollout.ended", "journal.after-commit"];

/// Tells whether a rollout is to die at a point. What happens inside of a write is tried for single writes (`crash`), unless
/// somebody wants all of it.
fn is_tried(name: &str) -> bool {
    let is_ours = ["rollout.", "engine.", "journal.after"];
    std::env::var_os("BACKOUT_EVERY_PAIR").is_some()
        || is_ours.iter().any(|begin| name.starts_with(begin))
}

/// Lets a rollout die at every point that it passes, and goes on.
fn at_every_point(options: &[&str], code: i32) {
    const COUNT: usize = 3;
    let line = start(COUNT, options);
    let line = words(&line);
    let unbroken = servers(COUNT);
    let log = unbroken.scratch("points");
    let output = unbroken
        .command(&line)
        .env("BACKOUT_CRASH_LOG", &log)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(code), "{}", said(&output));
    let points = std::fs::read_to_string(log).unwrap();
    let names: Vec<&str> = points.lines().collect();
    for name in [
        "rollout.before-plan",
        "rollout.begun",
        "rollout.wave",
        "rollout.written",
        "rollout.settled",
        "rollout.marked",
        "rollout.before-end",
        "rollout.ended",
    ] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    let (expected, kept) = (unbroken.tree().without_times(), writes(&unbroken).0);
    let tried = names.iter().zip(1..).filter(|(name, _)| is_tried(name));
    for (name, point) in tried {
        let world = servers(COUNT);
        let at = format!("point {point}, {name}");
        let output = world
            .command(&line)
            .env("BACKOUT_CRASH_AT", point.to_string())
            .output()
            .unwrap();
        assert_eq!(
            output.status.signal(),
            Some(ABORTED),
            "{at}: {}",
            said(&output)
        );
        let rollouts = world.json(&["rollout", "list"]);
        let ended = match rollouts["rollouts"].as_array().unwrap().first() {
            None => world.run(&line),
            Some(view) if view["state"] == "died" => world.run(&["rollout", "resume"]),
            // It died after its end.
            Some(view) => {
                assert!(AT_THE_END.contains(name), "{at}: {view}");
                world.run(&["rollout", "resume", "r"])
            }
        };
        let is_over = said(&ended).contains("has ended");
        if !is_over {
            assert_eq!(ended.status.code(), Some(code), "{at}: {}", said(&ended));
        }
        assert!(
            world.tree().without_times() == expected,
            "{at}: {}",
            said(&ended)
        );
        // Nothing is in effect twice.
        assert_eq!(writes(&world).0, kept, "{at}");
        world.check_store();
    }
}

#[test]
fn it_is_gone_on_with_after_a_crash_at_every_point() {
    at_every_point(&["--wave", "2", "--check", "true"], 0);
}

#[test]
fn the_undo_of_a_wave_is_gone_on_with_after_a_crash_at_every_point() {
    at_every_point(&["--wave", "2", "--check", "test {wave} -lt 2"], 1);
}

#[test]
fn who_is_killed_in_a_pause_is_told_as_dead_and_can_be_taken_back() {
    let world = servers(3);
    let before = world.tree();
    let line = start(3, &["--pause", "1h"]);
    let mut child = world.spawn(&words(&line));
    until("the first write", || world.read(&config(1)) == "new\n");
    until("it is under way", || state(&world) == "running");
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    let told = world.ok(&["rollout", "status"]);
    assert!(told.contains("its process died in wave 1 of 2"), "{told}");
    world.ok(&["rollout", "abort"]);
    assert_eq!(state(&world), "aborted");
    assert!(world.ok(&["export"]).contains("its rollout was aborted"));
    assert!(world.tree() == before);
    world.check_store();
}

#[test]
fn who_is_interrupted_in_a_pause_stops_there_and_can_go_on() {
    let world = servers(3);
    let line = start(3, &["--pause", "1h"]);
    for _ in 0..2 {
        let is_first = world.read(&config(1)) != "new\n";
        let child = if is_first {
            world.spawn(&words(&line))
        } else {
            world.spawn(&["rollout", "resume"])
        };
        until("it is under way", || {
            world.read(&config(1)) == "new\n" && state(&world) == "running"
        });
        signal(&child, Signal::INT);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{}", said(&output));
        assert_eq!(state(&world), "interrupted");
        assert_eq!(writes(&world), (1, 1));
    }
    assert_eq!(world.read(&config(2)), "old 2\n");
    world.ok(&["rollout", "abort"]);
    assert_eq!(world.read(&config(1)), "old 1\n");
    world.check_store();
}

#[test]
fn of_two_who_go_on_one_is_told() {
    let world = servers(4);
    killed_in_the_check(&world, 4, &["--wave", "2"]);
    let first = world.spawn(&["rollout", "resume"]);
    until("it is under way", || state(&world) == "running");
    for word in ["resume", "abort"] {
        let report = json(&world, 1, &["rollout", word, "r"]);
        assert_eq!(report["code"], "rollout-at-work", "{report}");
        for part in [
            "nothing was done about the rollout `r`",
            "carries it out",
            "watch it with",
            "to stop it, interrupt that process; it can be gone on with later",
        ] {
            assert!(report.to_string().contains(part), "{report}");
        }
        let pid = first.id().to_string();
        assert!(report["why"].to_string().contains(&pid), "{report}");
    }
    go(&world);
    let output = first.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(state(&world), "done");
    // What was written before it died was not written again.
    assert_eq!(writes(&world), (4, 4));
    world.check_store();
}

#[test]
fn many_who_go_on_at_once_write_each_target_once() {
    let world = servers(6);
    killed_in_the_check(&world, 6, &["--wave", "2"]);
    go(&world);
    let outputs = world.at_once(6, &["--json", "rollout", "resume", "r"]);
    let done = outputs.iter().filter(|output| output.status.success());
    assert!(done.count() >= 1);
    for output in outputs.iter().filter(|output| !output.status.success()) {
        let told = said(output);
        let is_told = told.contains("rollout-at-work") || told.contains("rollout-ended");
        assert!(is_told, "{told}");
    }
    assert_eq!(state(&world), "done");
    assert_eq!(writes(&world), (6, 6));
    world.check_store();
}

#[test]
fn a_target_that_somebody_changed_holds_its_wave_up() {
    let world = servers(5);
    killed_in_the_check(&world, 5, &["--wave", "2"]);
    go(&world);
    world.file(&config(3), "theirs\n");
    let looked = look(&world, 2);
    let reply = json(&world, 1, &["rollout", "resume"]);
    assert_eq!(
        (&reply["state"], &reply["wave"]),
        (&"held".into(), &2.into())
    );
    let why = reply["why"].as_str().unwrap();
    assert!(
        why.contains("s03/nginx.conf` changed since the rollout began"),
        "{why}"
    );
    // Nothing of the wave was written, not even what stands before it.
    assert_eq!(look(&world, 2), looked);
    assert_eq!(world.read(&config(3)), "theirs\n");
    assert_eq!(writes(&world), (1, 1));
    world.ok(&["rollout", "resume", "--force"]);
    assert_eq!(world.read(&config(3)), "new\n");
    assert_eq!(writes(&world), (5, 5));
    world.ok(&["rollback", "r"]);
    assert_eq!(world.read(&config(3)), "theirs\n");
    assert_eq!(world.read(&config(2)), "old 2\n");
    world.check_store();
}

#[test]
fn a_write_that_has_to_be_approved_is_waited_for() {
    for is_approved in [true, false] {
        let world = servers(4);
        world.file("backout.toml", "[protect]\nask = ['s03']\n");
        let before = world.tree();
        let line = start(4, &["--wave", "2", "--on-failure", "all"]);
        let reply = json(&world, 1, &words(&line));
        assert_eq!(
            (&reply["state"], &reply["wave"]),
            (&"waits".into(), &2.into())
        );
        let proposal = reply["proposal"].as_str().unwrap();
        assert_eq!(world.read(&config(3)), "old 3\n");
        // Going on before anybody decided waits for the same decision.
        let again = json(&world, 1, &["rollout", "resume"]);
        assert_eq!(again["proposal"], proposal);
        if is_approved {
            world.ok(&["approve", proposal]);
            world.ok(&["rollout", "resume"]);
            assert_eq!(writes(&world), (4, 4));
            assert_eq!(world.read(&config(3)), "new\n");
        } else {
            world.ok(&["reject", proposal, "--why", "not now"]);
            let reply = json(&world, 1, &["rollout", "resume"]);
            assert_eq!(reply["state"], "stopped");
            assert!(
                reply["why"].as_str().unwrap().contains("not now"),
                "{reply}"
            );
            assert!(world.tree() == before);
        }
        world.check_store();
    }
}

#[test]
fn what_a_gate_denies_or_a_watch_takes_back_fails_its_wave() {
    let denied = "[protect]\ndeny = ['s03']\n";
    let watched = "[[watch]]\nname = 'up'\npaths = ['s03/*']\ncommand = ['false']\n";
    for rules in [denied, watched] {
        let world = servers(5);
        world.file("backout.toml", rules);
        let reply = json(&world, 1, &words(&start(5, &["--wave", "2"])));
        assert_eq!(
            (&reply["state"], &reply["wave"]),
            (&"stopped".into(), &2.into()),
            "{reply}"
        );
        assert!(reply["why"].as_str().unwrap().contains("s03"), "{reply}");
        assert_eq!(world.read(&config(1)), "new\n");
        for number in 2..=5 {
            assert_eq!(world.read(&config(number)), format!("old {number}\n"));
        }
        world.check_store();
    }
}

#[test]
fn what_an_open_rollout_needs_is_kept() {
    let world = servers(3);
    killed_in_the_check(&world, 3, &["--wave", "1"]);
    go(&world);
    std::fs::remove_file(world.path("new.conf")).unwrap();
    let all = [
        "gc",
        "--keep",
        "0s",
        "--keep-at-least",
        "0s",
        "--audit",
        "0s",
    ];
    world.ok(&all);
    world.check_store();
    world.ok(&["rollout", "resume"]);
    assert_eq!(world.read(&config(3)), "new\n");
    world.ok(&all);
    world.check_store();
    world.ok(&["rollout", "list"]);
}

#[test]
fn a_rollout_whose_task_was_ended_by_hand_is_over() {
    let world = servers(3);
    let before = world.tree();
    killed_in_the_check(&world, 3, &["--wave", "1"]);
    world.ok(&["rollback", "r"]);
    assert!(world.tree() == before);
    assert_eq!(state(&world), "by-hand");
    for word in ["resume", "abort"] {
        let reply = json(&world, 1, &["rollout", word, "r"]);
        assert_eq!(reply["code"], "rollout-ended", "{reply}");
        assert!(world.tree() == before);
    }
    go(&world);
}

#[test]
fn what_cannot_be_taken_back_is_told_and_gone_on_with() {
    let world = servers(4);
    // The check spoils what the wave wrote, so that the undo is a conflict.
    let check = "test {wave} -lt 2 || { echo theirs > s03/nginx.conf; exit 1; }";
    let reply = json(
        &world,
        1,
        &words(&start(4, &["--wave", "2", "--check", check])),
    );
    assert_eq!(
        (&reply["state"], &reply["wave"]),
        (&"left".into(), &2.into()),
        "{reply}"
    );
    // The other one of the wave is not kept up by it.
    assert_eq!(world.read(&config(2)), "old 2\n");
    assert_eq!(world.read(&config(3)), "theirs\n");
    let left = &reply["waves"][1]["targets"][1]["operation"];
    world.ok(&["undo", "--force", left.as_str().unwrap()]);
    let reply = json(&world, 1, &["rollout", "resume"]);
    assert_eq!(
        (&reply["state"], &reply["wave"]),
        (&"stopped".into(), &2.into())
    );
    assert_eq!(world.read(&config(3)), "old 3\n");
    assert_eq!(world.read(&config(4)), "old 4\n");
    world.check_store();
}
