//! What people are told of drift, in words.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use crate::world::{World, texts};

fn said(world: &World, words: &[&str]) -> String {
    let (out, err) = texts(&world.run(words));
    out + &err
}

/// A world in which a command made a directory of ten files, and somebody made them anew.
fn rebuilt() -> World {
    let world = World::new();
    let build = "mkdir out && for n in 0 1 2 3 4 5 6 7 8 9; do echo $n > out/$n; done";
    world.does(&["run", "--", "sh", "-c", build]);
    for number in 0..10 {
        world.put(&format!("out/{number}"), "rebuilt\n");
    }
    assert_eq!(world.sweep().len(), 1);
    world
}

#[test]
fn what_has_drifted_is_told_with_what_was_expected_and_what_to_do() {
    let world = rebuilt();
    let listed = said(&world, &["drift"]);
    for words in [
        "out  several, 10 names  medium",
        "recorded: what was recorded in it",
        "found:    10 names that differ",
        "last right ",
        "; to decide: accept, ignore",
    ] {
        assert!(listed.contains(words), "{words}: {listed}");
    }
    let status = said(&world, &["status"]);
    assert!(status.contains("not as recorded any more"), "{status}");
    assert!(
        status.contains("10 targets; see `backout drift`"),
        "{status}"
    );
    let part = said(&world, &["drift", "accept", "out/3"]);
    assert!(part.contains("holds more that has drifted"), "{part}");
    fs::remove_dir_all(world.path("out")).unwrap();
    let gone = said(&world, &["watch", "--once"]);
    assert!(gone.contains("out"), "{gone}");
}

#[test]
fn the_history_tells_how_each_drift_ended() {
    let world = World::new();
    world.write("a", "1");
    world.put("a", "2");
    world.sweep();
    world.write("a", "3");
    world.sweep();
    let listed = said(&world, &["drift", "--all"]);
    assert!(listed.contains("noted before:"), "{listed}");
    assert!(listed.contains("written since ("), "{listed}");
    world.write("b/c", "1");
    world.does(&["chmod", "600", "b/c"]);
    fs::set_permissions(
        world.path("b/c"),
        std::os::unix::fs::PermissionsExt::from_mode(0o644),
    )
    .unwrap();
    let listed = said(&world, &["watch", "--once"]);
    assert!(
        listed.contains("recorded: its mode, owner and attributes"),
        "{listed}"
    );
}

#[test]
fn what_cannot_be_merged_says_why() {
    let world = World::new();
    world.write("a", "one\n");
    world.put("a", "two\n");
    world.put("app.toml", "port = 1\n");
    world.does(&["set", "app.toml", "port", "2"]);
    world.put("app.toml", "port = 3\n");
    world.sweep();
    let both = world.refuses(&["drift", "merge", "a"]);
    assert!(both.contains("both changed the same lines"), "{both}");
    let key = world.refuses(&["drift", "merge", "app.toml:port"]);
    assert!(key.contains("only what is in files can be merged"), "{key}");
    assert!(key.contains("decide for one side with"), "{key}");
}

#[test]
fn what_is_recorded_of_a_decision_can_be_read() {
    let world = World::new();
    world.does(&["mkdir", "d"]);
    world.put("d/new", "theirs");
    world.put("m", "one\ntwo\nthree\n");
    world.write("m", "one\ntwo\nTHREE\n");
    world.put("m", "ONE\ntwo\nthree\n");
    world.does(&["run", "--", "sh", "-c", "echo ran > r"]);
    world.put("r", "theirs\n");
    world.sweep();
    world.does(&["drift", "restore", "d/new"]);
    world.does(&["drift", "merge", "m"]);
    world.does(&["drift", "accept", "r"]);
    let log = said(&world, &["log"]);
    assert!(log.contains("remove what others added at d/new"), "{log}");
    assert!(
        log.contains("merge what others made of m with what was recorded"),
        "{log}"
    );
    assert!(log.contains("accept what others made of r"), "{log}");
    let accepted = world.newest();
    let kept = said(&world, &["--json", "show", &accepted]);
    let why = "nobody had it when somebody else replaced it";
    assert!(kept.contains(why), "{kept}");
    let why = "what was recorded is kept where anybody has it, and what is accepted is kept";
    assert!(kept.contains(why), "{kept}");
}

#[test]
fn what_is_asked_wrongly_is_said() {
    let world = World::new();
    world.write("a", "1");
    let none = said(&world, &["drift", "ignore", ""]);
    assert!(none.contains("cannot be ignored"), "{none}");
    assert!(
        none.contains("give a pattern such as `target/**` or `*.log`"),
        "{none}"
    );
    let off = world.refuses(&["drift", "ignore", "--off", "x"]);
    assert!(off.contains("` is not ignored\n"), "{off}");
    let unknown = world.refuses(&["drift", "restore", "a"]);
    assert!(
        unknown.contains("look at it with `backout drift a`"),
        "{unknown}"
    );
    let program = env!("CARGO_BIN_EXE_backout");
    let inside = said(&world, &["run", "--", program, "watch"]);
    assert!(inside.contains("a watch outlives the command"), "{inside}");
}

#[test]
fn a_watch_says_what_it_watches_and_what_it_cannot_hear() {
    let world = World::new();
    world.write("a", "1");
    let mut child = world
        .command(&["watch", "--interval", "1"])
        .env("BACKOUT_TEST_WATCHES_MAX", "0")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    assert!(
        first.contains("watching 1 recorded targets in 0 directories"),
        "{first}"
    );
    let second = lines.next().unwrap().unwrap();
    let blind = "some changes are only seen once in an interval: there are too many directories to listen to";
    assert!(second.contains(blind), "{second}");
    world.put("a", "2");
    let mut told = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(told.next().unwrap().unwrap(), "a  changed  medium");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_command_under_way_is_said() {
    let world = World::new();
    world.write("a", "1");
    let script = "echo 2 > a; touch started; while [ ! -e go ]; do sleep 0.05; done";
    let mut running = world
        .command(&["run", "--", "sh", "-c", script])
        .spawn()
        .unwrap();
    while !world.path("started").exists() {
        std::thread::yield_now();
    }
    let listed = said(&world, &["watch", "--once"]);
    let words = "1 name may be the work of a command that is under way";
    assert!(listed.contains(words), "{listed}");
    world.put("go", "");
    running.wait().unwrap();
}
