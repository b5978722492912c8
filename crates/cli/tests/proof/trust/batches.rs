//! A batch does what its changes do one by one, or it is refused and does nothing.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use super::Running;
use crate::world::{World, said};

/// How many random batches are compared; more with this variable set.
const BATCHES: u64 = 40;
const BATCHES_ENV: &str = "BACKOUT_RANDOM_BATCHES";

pub(super) fn batch(world: &World, changes: &[Value]) -> Output {
    send(&mut world.command(&["batch"]), changes)
}

fn send(command: &mut Command, changes: &[Value]) -> Output {
    let command = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let text = json!({ "changes": changes }).to_string();
    let mut input = child.stdin.take().unwrap();
    // A batch that is refused at once may not have read it.
    let _sent = input.write_all(text.as_bytes());
    drop(input);
    child.wait_with_output().unwrap()
}

/// The world of these stories: files, a directory in a directory, links to a file and to a directory, a second name.
fn world() -> World {
    let world = World::in_memory();
    for (name, content) in [("a", "0\n"), ("b", "1\n"), ("d/q", "0\n"), ("d/e/z", "1\n")] {
        world.file(name, content);
    }
    symlink("a", world.path("s")).unwrap();
    symlink("d", world.path("t")).unwrap();
    fs::hard_link(world.path("d/q"), world.path("h")).unwrap();
    world
}

/// Makes the changes one by one and as a batch, and tells whether the batch was made. If it was, the worlds are alike, and
/// its undo and redo are exact. If not, nothing changed, and the reason is that the changes touch each other.
fn compare(changes: &[Value]) -> bool {
    let (single, whole) = (world(), world());
    for change in changes {
        let done = batch(&single, std::slice::from_ref(change));
        assert!(done.status.success(), "{change}: {}", said(&done));
    }
    compare_with(&single, &whole, changes)
}

fn compare_with(single: &World, whole: &World, changes: &[Value]) -> bool {
    let story = json!(changes);
    let see = |world: &World| world.tree().without_times().counting_own_names();
    let before = see(whole);
    let same = |wanted: &crate::world::Tree, what: &str| {
        let now = see(whole);
        assert!(now == *wanted, "{what} {story}: {}", now.difference(wanted));
    };
    let done = batch(whole, changes);
    if !done.status.success() {
        let told = said(&done);
        assert!(told.contains("of the same batch"), "{story}: {told}");
        same(&before, "refused");
        return false;
    }
    let after = see(single);
    same(&after, "batch");
    if whole.operations().is_empty() {
        return true;
    }
    whole.ok(&["undo"]);
    same(&before, "undo");
    whole.ok(&["redo"]);
    same(&after, "redo");
    whole.ok(&["undo"]);
    same(&before, "second undo");
    whole.check_store();
    true
}

#[test]
fn what_is_written_anew_where_an_earlier_change_took_it_away_is_written() {
    let write = |path: &str, text: &str| json!({"write": {"path": path, "text": text}});
    let remove = json!({"remove": {"path": "d", "recursive": true}});
    let away = json!({"move": {"from": "d", "to": "k"}});
    let mkdir = json!({"mkdir": {"path": "d"}});
    let parents = json!({"write": {"path": "d/e/z", "text": "1\n", "parents": true}});
    let closed = json!({"write": {"path": "d/q", "text": "0\n", "mode": "0600"}});
    let append = json!({"append": {"path": "d/q", "text": "r\n"}});
    let stories = [
        vec![remove.clone(), mkdir.clone(), write("d/q", "0\n")],
        vec![remove.clone(), parents.clone()],
        vec![away.clone(), mkdir.clone(), write("d/q", "0\n")],
        vec![away, parents],
        vec![json!({"move": {"from": "a", "to": "c"}}), write("a", "0\n")],
        vec![remove, mkdir, closed, append],
    ];
    for story in stories {
        assert!(compare(&story), "{story:?}");
    }
}

#[test]
fn a_link_that_an_earlier_change_took_away_is_not_followed_and_one_that_it_made_is() {
    let write = |path: &str, text: &str| json!({"write": {"path": path, "text": text}});
    let remove = |path: &str| json!({"remove": {"path": path}});
    let stories = [
        vec![remove("s"), write("s", "2\n")],
        vec![remove("s"), write("s", "0\n")],
        vec![
            json!({"move": {"from": "b", "to": "s", "replace": true}}),
            json!({"chmod": {"path": "s", "mode": "0777"}}),
        ],
        vec![
            json!({"symlink": {"path": "k", "to": "b"}}),
            json!({"chmod": {"path": "k", "mode": "0640"}}),
            json!({"append": {"path": "k", "text": "2\n"}}),
        ],
        vec![
            json!({"symlink": {"path": "k", "to": "d/e"}}),
            write("k/new", "2\n"),
        ],
        vec![
            remove("t"),
            json!({"mkdir": {"path": "t"}}),
            write("t/q", "0\n"),
        ],
        vec![
            json!({"link": {"path": "k", "to": "a"}}),
            json!({"append": {"path": "k", "text": "2\n"}}),
        ],
        vec![
            write("a", "2\n"),
            json!({"write": {"path": "c", "from": "s"}}),
        ],
    ];
    for story in stories {
        assert!(compare(&story), "{story:?}");
    }
}

#[test]
fn a_copy_has_what_an_earlier_change_put_there_or_is_refused() {
    let copy = json!({"copy": {"from": "d", "to": "c", "recursive": true}});
    let moved = json!({"move": {"from": "b", "to": "d/e/z", "replace": true}});
    assert!(!compare(&[moved, copy.clone()]));
    assert!(!compare(&[
        json!({"write": {"path": "d/e/z", "text": "2\n"}}),
        copy
    ]));
}

#[test]
fn a_mode_that_an_earlier_change_set_goes_with_the_move_and_the_copy() {
    let chmod = |path: &str, mode: &str| json!({"chmod": {"path": path, "mode": mode}});
    let moved = |from: &str, to: &str| json!({"move": {"from": from, "to": to, "replace": true}});
    let stories = [
        vec![chmod("a", "0600"), moved("a", "c")],
        vec![chmod("a", "0600"), moved("a", "b")],
        vec![moved("a", "c"), chmod("c", "0600")],
        vec![moved("a", "b"), chmod("b", "0600"), chmod("b", "0640")],
        vec![
            chmod("a", "0600"),
            json!({"copy": {"from": "a", "to": "c"}}),
        ],
        vec![
            chmod("d/e/z", "0600"),
            json!({"copy": {"from": "d", "to": "c", "recursive": true}}),
        ],
        vec![
            chmod("a", "0600"),
            json!({"write": {"path": "a", "text": "0\n", "mode": "0644"}}),
        ],
        vec![chmod("h", "0600"), chmod("d/q", "0644")],
        vec![
            json!({"write": {"path": "d/new", "text": "0\n"}}),
            json!({"chmod": {"path": "d", "mode": "go-r", "recursive": true}}),
        ],
    ];
    for story in stories {
        assert!(compare(&story), "{story:?}");
    }
    let moved = json!({"move": {"from": "d", "to": "k"}});
    assert!(!compare(&[chmod("d", "0700"), moved]));
}

#[test]
fn a_batch_does_not_leave_its_directory_through_a_link() {
    let world = world();
    world.file("out/f", "theirs\n");
    fs::create_dir(world.path("in")).unwrap();
    symlink("../out", world.path("in/up")).unwrap();
    let batch_in = |changes: &[Value]| {
        let mut command = world.command(&["batch"]);
        let command = command.current_dir(world.path("in"));
        send(command, changes)
    };
    let through = json!({"write": {"path": "up/f", "text": "ours\n"}});
    let own = json!({"symlink": {"path": "mine", "to": "../out/f"}});
    let through_own = json!({"append": {"path": "mine", "text": "ours\n"}});
    let moved = json!({"move": {"from": "up/f", "to": "f"}});
    for changes in [vec![through.clone()], vec![own, through_own], vec![moved]] {
        let done = batch_in(&changes);
        assert_eq!(done.status.code(), Some(1), "{}", said(&done));
        assert!(said(&done).contains("leads out of its directory"));
        assert_eq!(world.read("out/f"), "theirs\n");
        assert!(!world.path("in/mine").exists() && !world.path("in/f").exists());
    }
    // Where the link goes first, the name means the directory that is made there.
    let gone = json!({"remove": {"path": "up"}});
    let made = json!({"mkdir": {"path": "up"}});
    let done = batch_in(&[gone, made, through]);
    assert!(done.status.success(), "{}", said(&done));
    assert_eq!(world.read("in/up/f"), "ours\n");
    assert_eq!(world.read("out/f"), "theirs\n");
    world.ok(&["undo"]);
    let link = fs::read_link(world.path("in/up")).unwrap();
    assert_eq!(link.to_str(), Some("../out"));
}

/// What a link leads to that the batch itself makes is taken like any other target: a running command hears of it.
#[test]
fn a_batch_through_its_own_link_is_ordered_with_a_running_command() {
    let world = world();
    world.file("f", "old\n");
    let running = Running::start(&world, &[], "echo first >> f", "echo last >> f");
    let link = json!({"symlink": {"path": "mine", "to": "f"}});
    let through = json!({"append": {"path": "mine", "text": "batch\n"}});
    let written = batch(&world, &[link, through]);
    assert!(written.status.success(), "{}", said(&written));
    assert!(running.go_on(&world).status.success());
    assert_eq!(world.read("f"), "old\nfirst\nbatch\nlast\n");
    let log = world.ok(&["log"]);
    assert!(log.contains("part of"), "{log}");
    // The three lie over each other, so they go together.
    world.ok(&["undo"]);
    assert_eq!(world.read("f"), "old\n");
    assert!(!world.path("mine").exists());
}

/// A small generator of numbers; the same seed gives the same story.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }

    fn one_of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.roll(words.len())]
    }

    fn change(&mut self) -> Value {
        const NAMES: [&str; 12] = [
            "a", "b", "c", "d", "d/q", "d/e", "d/e/z", "k", "k/q", "s", "t", "t/q",
        ];
        let (path, to) = (self.one_of(&NAMES), self.one_of(&NAMES));
        let text = self.one_of(&["0\n", "1\n", "2\n"]);
        let mode = self.one_of(&["0600", "0755", "go-r"]);
        let yes = self.roll(2) == 0;
        match self.roll(12) {
            0 | 1 => json!({"write": {"path": path, "text": text, "parents": yes}}),
            2 => json!({"append": {"path": path, "text": text}}),
            3 => json!({"remove": {"path": path, "recursive": true}}),
            4 => json!({"move": {"from": path, "to": to, "replace": yes}}),
            5 => json!({"copy": {"from": path, "to": to, "recursive": true, "replace": yes}}),
            6 => json!({"mkdir": {"path": path}}),
            7 => json!({"symlink": {"path": path, "to": to}}),
            8 => json!({"link": {"path": path, "to": to}}),
            9 => json!({"chmod": {"path": path, "mode": mode, "recursive": yes}}),
            10 => json!({"edit": {"path": path, "search": "0", "replace": "1", "all": true}}),
            _ => json!({"write": {"path": path, "from": to}}),
        }
    }
}

#[test]
fn a_random_batch_does_what_its_changes_do_one_by_one() {
    let count = std::env::var(BATCHES_ENV).map_or(BATCHES, |count| count.parse().unwrap());
    let mut made = 0;
    for seed in 0..count {
        let mut dice = Dice(seed);
        let (single, whole) = (world(), world());
        let mut changes = Vec::new();
        let wanted = 2 + dice.roll(3);
        // What cannot be done at its place is left out.
        for _ in 0..12 {
            let change = dice.change();
            let done = batch(&single, std::slice::from_ref(&change));
            if done.status.success() {
                changes.push(change);
            }
            if changes.len() == wanted {
                break;
            }
        }
        if changes.is_empty() || compare_with(&single, &whole, &changes) {
            made += 1;
        }
    }
    assert!(made * 10 >= count * 7, "{made} of {count} were made");
}
