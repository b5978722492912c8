//! Crashes around every step of a write of keys: the program is aborted at each, recovers in a new process, and the server is as before or as after.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;

use backout_testkit::world::RedisServer;

use crate::world::{World, said};

/// SIGABRT.
const ABORTED: i32 = 6;

/// What is in the server at first.
const FIRST: [&[&str]; 5] = [
    &["SET", "text", "one", "PXAT", "4102444800000"],
    &["RPUSH", "list", "a", "b"],
    &["HSET", "hash", "f", "1"],
    &["ZADD", "zset", "1", "m"],
    &["XADD", "stream", "1-1", "f", "v"],
];

/// What is done.
const COMMANDS: &str = "APPEND text two\nLMOVE list other LEFT RIGHT\nHINCRBY hash f 4\nDEL zset\nXADD stream 2-1 f w\nSADD new x\n";

struct Crashed {
    world: World,
    server: RedisServer,
}

type Keys = BTreeMap<String, String>;

impl Crashed {
    fn new(before: &[&[&str]]) -> Self {
        let (world, server) = (World::in_memory(), RedisServer::default());
        for words in FIRST {
            server.ask(words);
        }
        std::fs::write(world.path("commands"), COMMANDS).unwrap();
        let this = Self { world, server };
        this.world.ok(&["status"]);
        for words in before {
            this.ok(words);
        }
        this
    }

    /// Puts the server's address into words that ask for it.
    fn words(&self, words: &[&str]) -> Vec<String> {
        let url = self.server.url();
        words.iter().map(|word| word.replace("URL", &url)).collect()
    }

    fn ok(&self, words: &[&str]) {
        let words = self.words(words);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.world.ok(&words);
    }

    fn command(&self, words: &[&str]) -> std::process::Command {
        let words = self.words(words);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.world.command(&words)
    }
}

const WRITE: &[&str] = &["redis", "--url", "URL", "--file", "commands"];

fn at_every_point(before: &[&[&str]], words: &[&str]) {
    let whole = Crashed::new(before);
    let first = whole.server.snapshot();
    let log = whole.world.scratch("points");
    let output = whole
        .command(words)
        .env("BACKOUT_CRASH_LOG", &log)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let after = whole.server.snapshot();
    assert_ne!(first, after);
    let points = std::fs::read_to_string(log).unwrap();
    for needed in ["engine.armed", "redis.before-exec", "redis.exec"] {
        assert!(points.lines().any(|point| point == needed), "{points}");
    }
    for point in 1..=points.lines().count() {
        cut_once(before, words, point, &first, &after);
    }
}

fn cut_once(before: &[&[&str]], words: &[&str], point: usize, first: &Keys, after: &Keys) {
    let crashed = Crashed::new(before);
    let abort = |words: &[&str], at: usize| {
        let mut command = crashed.command(words);
        command
            .env("BACKOUT_CRASH_AT", at.to_string())
            .output()
            .unwrap()
    };
    let output = abort(words, point);
    assert_eq!(
        output.status.signal(),
        Some(ABORTED),
        "point {point}: {}",
        said(&output)
    );
    // The recovery dies, too, a bit further each time, until it comes to an end.
    for at in 1.. {
        assert!(at < 100, "point {point}: the recovery never ends");
        if abort(&["recover"], at).status.success() {
            break;
        }
    }
    crashed.ok(&["recover"]);
    let now = crashed.server.snapshot();
    assert!(
        now == *first || now == *after,
        "point {point}: neither before nor after: {now:#?}"
    );
    let status = crashed.world.json(&["status"]);
    assert_eq!(
        status["stuck"].as_array().map(Vec::len),
        Some(0),
        "point {point}: {status}"
    );
    crashed.world.check_store();
}

#[test]
fn a_write_of_keys_is_whole_or_nothing() {
    at_every_point(&[], WRITE);
}

#[test]
fn an_undo_of_keys_is_whole_or_nothing() {
    at_every_point(&[WRITE], &["undo", "@"]);
}

#[test]
fn a_redo_of_keys_is_whole_or_nothing() {
    at_every_point(&[WRITE, &["undo", "@"]], &["redo", "@"]);
}

#[test]
fn what_somebody_wrote_after_a_crash_is_left_to_a_decision() {
    let crashed = Crashed::new(&[]);
    let mut command = crashed.command(WRITE);
    let output = command
        .env("BACKOUT_CRASH_AT", "redis.exec")
        .output()
        .unwrap();
    assert_eq!(output.status.signal(), Some(ABORTED), "{}", said(&output));
    crashed.server.ask(&["SET", "text", "theirs"]);
    let theirs = crashed.server.snapshot();
    crashed.command(&["recover"]).output().unwrap();
    assert_eq!(crashed.server.snapshot(), theirs);
    let status = crashed.world.json(&["status"]);
    assert_eq!(
        status["stuck"].as_array().map(Vec::len),
        Some(1),
        "{status}"
    );
}
