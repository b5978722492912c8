//! What is said when a call fails, held against the world.

use std::collections::BTreeSet;

use nix::errno::Errno;

use super::calls::{changes, syncs};
use super::tracer::{Fault, run};
use super::{BATCH_COMMAND, LARGE, SMALL, TREE, Workload, prepared};
use crate::world::World;

const EIO: Fault = Fault::Fails(Errno::EIO);

/// How many looks at files are let fail, from the last on.
const LOOKS: usize = 24;

/// A workload that begins with nothing.
const fn only(command: &'static [&'static str]) -> Workload {
    Workload {
        before: &[],
        cut_off: None,
        command,
    }
}

/// Lets the calls of some names fail, the last first, until a sentence is said. Gives all that was said, and the world.
fn said(
    workload: &Workload,
    fault: Fault,
    is_meant: fn(&str) -> bool,
    sentence: &str,
) -> (String, World) {
    let quiet = run(
        &prepared(workload).command(workload.command),
        is_meant,
        None,
    );
    let mut other = BTreeSet::new();
    for number in (1..=quiet.calls).rev() {
        let world = prepared(workload);
        let command = world.command(workload.command);
        let ran = run(&command, is_meant, Some((number, fault)));
        if ran.hit.is_none() {
            continue;
        }
        let text = plain(&ran.said, &world);
        if text.contains(sentence) {
            return (text, world);
        }
        other.insert(text);
    }
    panic!("nobody says `{sentence}`, but: {other:#?}");
}

/// Leaves out what is different in each run: ids and where the world is.
fn plain(text: &str, world: &World) -> String {
    let home = world.path("");
    let home = home.parent().unwrap().parent().unwrap_or(&home);
    let text = text.replace(&home.display().to_string(), "$WORLD");
    let is_id = |word: &str| word.len() == 8 && word.chars().all(|c| c.is_ascii_hexdigit());
    let mut shown = String::new();
    let mut letters = String::new();
    for letter in text.chars().chain([' ']) {
        if letter.is_ascii_alphanumeric() {
            letters.push(letter);
            continue;
        }
        shown.push_str(if is_id(&letters) { "ID" } else { &letters });
        shown.push(letter);
        letters.clear();
    }
    shown.trim_end().to_owned()
}

/// Sees that all of these lines are said. The others tell which call it was, and that differs from run to run.
#[track_caller]
fn says(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.lines().any(|it| it == *line), "{line}\n{text}");
    }
}

/// Leaves out the number in a name of ours.
fn numberless(text: &str) -> String {
    let (begin, rest) = text.split_once(".backout-").unwrap();
    let (_, end) = rest.split_once('`').unwrap();
    format!("{begin}.backout-N`{end}")
}

#[test]
fn after_a_failed_sync_nothing_is_done_and_nobody_knows_what_the_disk_has() {
    let before = prepared(&only(SMALL)).tree().without_times();
    let (text, world) = said(&only(SMALL), EIO, syncs, "after a failed sync nobody knows");
    says(
        &text,
        &[
            "  why: after a failed sync nobody knows what the disk has",
            "  why: operation ID was put back: nothing of it stays",
            "  next: check the disk and its file system, then try again",
        ],
    );
    assert_eq!(world.tree().without_times(), before);
}

#[test]
fn what_happened_and_could_not_be_recorded_is_taken_back_by_a_recovery() {
    let before = prepared(&only(SMALL)).tree().without_times();
    let is_write = |name: &str| name == "pwrite64";
    let sentence = "happened, but could not be recorded";
    let (text, world) = said(&only(SMALL), EIO, is_write, sentence);
    says(
        &text,
        &[
            "error: operation ID happened, but could not be recorded",
            "  why: the journal could not be used",
            "  next: then run `backout recover`: it takes the operation back",
        ],
    );
    assert_eq!(world.read("app.toml"), "port = 1\n");
    world.ok(&["recover"]);
    assert_eq!(world.tree().without_times(), before);
}

#[test]
fn a_disk_that_dies_leaves_half_of_it_and_it_is_said() {
    let is_rename = |name: &str| name.starts_with("rename");
    let workload = only(BATCH_COMMAND);
    let before = prepared(&workload).tree().without_times();
    let (text, world) = said(&workload, Fault::DiskDies, is_rename, "is half done");
    says(
        &text,
        &[
            "error: operation ID is half done",
            "  why: `app.toml`: failed: it is as the operation made it",
            "  why: `batch/one`: failed: it is as the operation made it",
            "  next: see what is kept with `backout show ID`",
        ],
    );
    assert_eq!(world.read("app.toml"), "port = 5\n");
    assert_eq!(world.read("batch/one"), "1");
    world.ok(&["recover"]);
    assert_eq!(world.tree().without_times(), before);
}

#[test]
fn what_cannot_be_removed_is_named() {
    let workload = Workload {
        before: &[
            SMALL,
            &["write", "app.toml", "--text", "port = 2\n"],
            LARGE,
            TREE,
            &["undo"],
        ],
        cut_off: None,
        command: &[
            "gc",
            "--keep",
            "0s",
            "--keep-at-least",
            "0s",
            "--audit",
            "0s",
        ],
    };
    let is_removal = |name: &str| ["unlinkat", "unlink", "rmdir"].contains(&name);
    let (text, world) = said(&workload, EIO, is_removal, "could not be removed");
    let note = text
        .lines()
        .find(|line| line.starts_with("note: "))
        .unwrap();
    let (begin, end) = (note.find("depot/").unwrap(), note.find("` could").unwrap());
    assert!(world.state().join(&note[begin..end]).exists(), "{text}");
    let why = "could not be removed: Input/output error (os error 5)";
    assert!(note.ends_with(why), "{text}");
}

#[test]
fn a_name_that_a_dead_disk_keeps_is_not_called_taken_back() {
    let workload = only(BATCH_COMMAND);
    let before = prepared(&workload).tree();
    let sentence = "something of ours is left";
    let (text, world) = said(&workload, Fault::DiskDies, changes, sentence);
    says(
        &numberless(&text),
        &[
            "  why: operation ID was taken back: every target is as it was before",
            "  why: but something of ours is left: could not remove `.backout-N`",
        ],
    );
    let (before, now) = (before.names(), world.tree().names());
    let more: Vec<_> = now.iter().filter(|name| !before.contains(name)).collect();
    assert!(
        more.iter().all(|name| name.contains(".backout-")),
        "{more:?}"
    );
    assert!(!more.is_empty(), "{text}");
    world.ok(&["recover"]);
    assert_eq!(world.tree().names(), before);
}

#[test]
fn a_command_that_cannot_be_watched_is_not_started() {
    let workload = only(&["run", "--", "rm", "large.bin"]);
    let before = prepared(&workload).tree().without_times();
    let is_watching = |name: &str| name == "seccomp";
    let sentence = "the command was not started";
    let none = Fault::Fails(Errno::ENOSYS);
    let (text, world) = said(&workload, none, is_watching, sentence);
    says(
        &text,
        &[
            "error: the command was not started: it cannot be watched here",
            "  next: see which ways of watching work with `backout doctor`",
        ],
    );
    assert_eq!(world.tree().without_times(), before);
    world.ok(&["run", "--", "rm", "large.bin"]);
    assert!(!world.path("large.bin").exists());
}

#[test]
fn after_a_commit_that_failed_the_journal_takes_no_more_writes() {
    let workload = Workload {
        before: &[SMALL, LARGE],
        cut_off: None,
        command: &["undo", "app.toml", "large.bin"],
    };
    let before = prepared(&workload).tree().without_times();
    let first = prepared(&only(SMALL)).tree().without_times();
    let is_rename = |name: &str| name.starts_with("rename");
    let sentence = "the journal takes no more writes";
    let (text, world) = said(&workload, Fault::DiskDies, is_rename, sentence);
    says(
        &text,
        &[
            "error: the journal takes no more writes in this process",
            "  why: a sync failed, so what is on the disk is unknown until it is opened again",
            "  next: check the disk (`dmesg`), then start again and run `backout recover`",
        ],
    );
    world.ok(&["recover"]);
    assert_eq!(world.tree().without_times(), before);
    world.ok(workload.command);
    assert_eq!(world.tree().without_times(), first);
}

#[test]
fn that_nobody_could_look_is_not_called_a_change() {
    let is_look = |name: &str| matches!(name, "fstat" | "newfstatat" | "statx");
    for workload in [only(SMALL), only(LARGE), only(TREE)] {
        let quiet = run(
            &prepared(&workload).command(workload.command),
            is_look,
            None,
        );
        // The last of them are those around the swap.
        for number in (1..=quiet.calls).rev().take(LOOKS) {
            let world = prepared(&workload);
            let command = world.command(workload.command);
            let ran = run(&command, is_look, Some((number, EIO)));
            assert!(
                !ran.said
                    .contains("changed while the operation was being prepared"),
                "call {number}: {}",
                ran.said
            );
        }
    }
}

#[test]
fn an_undo_that_a_dying_disk_stops_half_way_names_what_it_did_and_what_not() {
    let workload = Workload {
        before: &[BATCH_COMMAND],
        cut_off: None,
        command: &["undo"],
    };
    let before = prepared(&workload).tree().without_times();
    let is_change = |name: &str| name.starts_with("rename") || name.starts_with("unlink");
    let sentence = "it stopped half-way, and this was put back";
    let (text, world) = said(&workload, Fault::DiskDies, is_change, sentence);
    says(
        &text,
        &[
            "  app.toml     in doubt: it stopped half-way, and this was done",
            "  batch        skipped: it stopped half-way, and this was put back",
            "error: it stopped half-way, and could not be put back",
            "  next: put right what stands in the way, then `backout recover`: it puts back what was done",
            "  next: or keep what is there with `backout recover --keep ID`",
        ],
    );
    assert!(text.starts_with("undid a part of "), "{text}");
    // Why it stopped is said, whatever it was.
    assert!(text.contains("  note: `"), "{text}");
    assert_eq!(world.read("app.toml"), "port = 8080\n");
    assert!(world.path("batch").is_dir());
    world.ok(&["recover"]);
    assert_eq!(world.tree().without_times(), before);
}
