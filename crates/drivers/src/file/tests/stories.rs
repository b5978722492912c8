//! What random stories have found, each told once more in a few lines.

use backout_model::ports::OnConflict;
use backout_model::{Effect, OutcomeKind, TargetOutcome};

use super::world::World;
use crate::file::FileRequest;

fn hard_link(world: &World, name: &str, to: &str) -> FileRequest {
    FileRequest::HardLink {
        path: world.path(name),
        to: world.path(to),
    }
}

fn remove(world: &World, name: &str) -> FileRequest {
    FileRequest::Remove {
        path: world.path(name),
        recursive: true,
    }
}

/// Takes an effect back, which must work.
fn taken_back(world: &World, effect: &Effect) -> Effect {
    let (undo, outcomes) = world.undo(effect, OnConflict::Refuse);
    assert!(is_taken_back(&outcomes), "{outcomes:?}");
    undo
}

fn is_taken_back(outcomes: &[TargetOutcome]) -> bool {
    outcomes.iter().all(|outcome| outcome.kind.is_taken_back())
}

/// Tries to take an effect back, which must be refused for this reason and change nothing.
fn refused(world: &World, effect: &Effect, why: &str) {
    let before = world.see();
    let undo = world.plan_undo(effect, OnConflict::Refuse);
    let kinds = undo.outcomes.iter().map(|outcome| &outcome.kind);
    let is_told = |kind: &OutcomeKind| match kind {
        OutcomeKind::Conflict { why: told } | OutcomeKind::Failed { why: told } => {
            told.contains(why)
        }
        _ => false,
    };
    assert!(kinds.clone().any(is_told), "{:?}", undo.outcomes);
    drop(undo);
    assert_eq!(world.see(), before);
}

#[test]
fn a_redone_second_name_can_be_taken_back_after_the_first_was_rewritten() {
    let world = World::new().file("first", "shared");
    let linked = world.apply(&hard_link(&world, "second", "first")).unwrap();
    let redone = taken_back(&world, &taken_back(&world, &linked));
    world
        .apply(&FileRequest::write(world.path("first"), "mine alone"))
        .unwrap();
    let undo = taken_back(&world, &redone);
    assert!(!world.path("second").exists());
    // It was the last name of the old file: only what is kept can bring it back.
    taken_back(&world, &undo);
    assert_eq!(world.read("second"), b"shared");
}

#[test]
fn a_second_name_is_not_made_again_of_another_file() {
    let world = World::new().file("first", "shared");
    let linked = world.apply(&hard_link(&world, "second", "first")).unwrap();
    let undo = taken_back(&world, &linked);
    std::fs::remove_file(world.path("first")).unwrap();
    std::os::unix::fs::symlink("elsewhere", world.path("first")).unwrap();
    // It comes back by its bytes.
    taken_back(&world, &undo);
    assert_eq!(world.read("second"), b"shared");
    let first = std::fs::read_link(world.path("first")).unwrap();
    assert_eq!(first.to_str(), Some("elsewhere"));
}

#[test]
fn a_second_name_is_made_again_of_a_file_that_was_made_anew() {
    let world = World::new().file("first", "shared");
    let linked = world.apply(&hard_link(&world, "second", "first")).unwrap();
    let undo = taken_back(&world, &linked);
    let removed = world.apply(&remove(&world, "first")).unwrap();
    taken_back(&world, &removed);
    taken_back(&world, &undo);
    assert_eq!(world.read("second"), b"shared");
}

#[test]
fn what_others_put_into_a_redone_directory_is_not_taken_away_with_it() {
    let world = World::new();
    let made = FileRequest::Batch(vec![
        FileRequest::Mkdir {
            path: world.path("d"),
            parents: false,
            mode: None,
        },
        FileRequest::write(world.path("d/mine"), "mine"),
    ]);
    let made = world.apply(&made).unwrap();
    let redone = taken_back(&world, &taken_back(&world, &made));
    std::fs::write(world.path("d/theirs"), "theirs").unwrap();
    refused(&world, &redone, "what is in it changed since");
    std::fs::remove_file(world.path("d/theirs")).unwrap();
    std::fs::write(world.path("d/mine"), "edited").unwrap();
    refused(&world, &redone, "what is in it changed since");
}

#[test]
fn what_others_put_into_a_tree_that_came_back_is_not_removed_again_with_it() {
    let world = World::new().file("d/old", "x");
    let removed = world.apply(&remove(&world, "d")).unwrap();
    let undo = taken_back(&world, &removed);
    std::fs::write(world.path("d/theirs"), "theirs").unwrap();
    refused(&world, &undo, "what is in it changed since");
}

#[test]
fn work_in_a_tree_that_was_taken_back_does_not_hinder_a_redo() {
    let world = World::new().file("d/old", "x");
    let removed = world.apply(&remove(&world, "d")).unwrap();
    let undo = taken_back(&world, &removed);
    let written = world
        .apply(&FileRequest::write(world.path("d/old"), "new"))
        .unwrap();
    taken_back(&world, &written);
    taken_back(&world, &undo);
    assert!(!world.path("d").exists());
}

#[test]
fn a_merge_takes_back_the_mode_that_came_with_the_change() {
    let world = World::new().file("f", "one\ntwo\nthree\nfour\nfive\n");
    let changed = FileRequest::Batch(vec![
        FileRequest::write(world.path("f"), "ONE\ntwo\nthree\nfour\nfive\n"),
        FileRequest::Chmod {
            path: world.path("f"),
            mode: "0600".parse().unwrap(),
            recursive: false,
        },
    ]);
    let before = std::fs::metadata(world.path("f")).unwrap().permissions();
    let effect = world.apply(&changed).unwrap();
    std::fs::write(world.path("f"), "ONE\ntwo\nthree\nfour\nFIVE\n").unwrap();
    let (_, outcomes) = world.undo(&effect, OnConflict::Merge);
    assert_eq!(outcomes[0].kind, OutcomeKind::Merged);
    assert_eq!(world.read("f"), b"one\ntwo\nthree\nfour\nFIVE\n");
    let now = std::fs::metadata(world.path("f")).unwrap().permissions();
    assert_eq!(now, before);
}

#[test]
fn what_has_no_directory_to_come_back_to_is_a_conflict() {
    let world = World::new().file("d/f", "x").file("d/other", "y");
    let removed = world.apply(&remove(&world, "d/f")).unwrap();
    std::fs::remove_dir_all(world.path("d")).unwrap();
    refused(&world, &removed, "is gone");
}

#[test]
fn a_kept_file_comes_back_with_the_mode_that_its_other_name_was_given_since() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    let world = World::new().file("a", "shared");
    std::fs::hard_link(world.path("a"), world.path("b")).unwrap();
    let removed = world.apply(&remove(&world, "a")).unwrap();
    let private = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(world.path("b"), private).unwrap();
    let undo = world.plan_undo(&removed, OnConflict::Refuse);
    let is_said = |note: &String| note.contains("its other names were given since");
    assert!(undo.prepared.notes.iter().any(is_said));
    drop(undo);
    taken_back(&world, &removed);
    let (a, b) = (world.path("a").metadata(), world.path("b").metadata());
    assert_eq!(a.unwrap().ino(), b.unwrap().ino());
}

#[test]
fn a_mode_is_not_given_again_to_what_is_another_kind_of_thing_by_now() {
    let world = World::new().file("f", "x");
    let private = FileRequest::Chmod {
        path: world.path("f"),
        mode: "0600".parse().unwrap(),
        recursive: false,
    };
    let changed = world.apply(&private).unwrap();
    let undo = taken_back(&world, &changed);
    std::fs::remove_file(world.path("f")).unwrap();
    std::fs::create_dir(world.path("f")).unwrap();
    let world = world.mode("f", 0o644);
    refused(&world, &undo, "it is a directory now, was a file");
}

#[test]
fn one_batch_takes_away_one_name_of_a_file_and_changes_its_mode_by_the_other() {
    let world = World::new().file("a", "shared");
    std::fs::hard_link(world.path("a"), world.path("b")).unwrap();
    let before = world.see();
    let batch = FileRequest::Batch(vec![
        remove(&world, "a"),
        FileRequest::Chmod {
            path: world.path("b"),
            mode: "0444".parse().unwrap(),
            recursive: false,
        },
    ]);
    let effect = world.apply(&batch).unwrap();
    taken_back(&world, &effect);
    assert_eq!(world.see(), before);
}

#[test]
fn a_tree_removed_with_the_first_name_of_a_file_comes_back_without_a_third_name_in_the_depot() {
    let world = World::new().file("d/first", vec![1; 70_000]);
    let before = world.see();
    let batch = FileRequest::Batch(vec![
        hard_link(&world, "second", "d/first"),
        remove(&world, "d"),
    ]);
    let effect = world.apply(&batch).unwrap();
    let undo = taken_back(&world, &effect);
    assert_eq!(world.see(), before);
    taken_back(&world, &undo);
    assert_eq!(world.read("second"), vec![1; 70_000]);
}

#[test]
fn a_tree_that_was_made_anew_can_be_removed_again() {
    let world = World::new();
    let made = FileRequest::Mkdir {
        path: world.path("d"),
        parents: false,
        mode: None,
    };
    let made = world.apply(&made).unwrap();
    let filled = world
        .apply(&FileRequest::write(world.path("d/f"), "x"))
        .unwrap();
    let removed = world.apply(&remove(&world, "d")).unwrap();
    let undo_removed = taken_back(&world, &removed);
    let undo_filled = taken_back(&world, &filled);
    let undo_made = taken_back(&world, &made);
    assert_eq!(world.see().len(), 1);
    // The directory has another number from here on.
    for undo in [&undo_made, &undo_filled, &undo_removed] {
        taken_back(&world, undo);
    }
    assert_eq!(world.see().len(), 1);
}

/// Makes directories in each other until no path can name the last one, and gives a path that nobody can name.
fn deep(world: &World) -> std::path::PathBuf {
    use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
    let name = "x".repeat(250);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mode = Mode::from_raw_mode(0o755);
    let mut at = openat(CWD, world.path("deep"), flags, Mode::empty()).unwrap();
    let mut path = world.path("deep");
    for _ in 0..20 {
        mkdirat(&at, name.as_str(), mode).unwrap();
        at = openat(&at, name.as_str(), flags, Mode::empty()).unwrap();
        path.push(&name);
    }
    path
}

#[test]
fn a_tree_deeper_than_any_path_is_removed_and_comes_back() {
    let world = World::new().dir("deep");
    let path = deep(&world);
    let ino = |world: &World| {
        use std::os::unix::fs::MetadataExt as _;
        world.path("deep").metadata().unwrap().ino()
    };
    let number = ino(&world);
    let removed = world.apply(&remove(&world, "deep")).unwrap();
    assert!(!world.path("deep").exists());
    taken_back(&world, &removed);
    assert_eq!(ino(&world), number);
    // What no path can name cannot be written to, and that is said before anything happens.
    let refused = world.apply(&FileRequest::write(path.join("f"), "x"));
    let refused = refused.unwrap_err();
    let told = std::error::Error::source(&refused).map(ToString::to_string);
    assert!(
        told.is_some_and(|told| told.contains("name too long")),
        "{refused}"
    );
    // The test's own cleaning cannot walk that deep by path either.
    let gone = std::process::Command::new("rm")
        .arg("-rf")
        .arg(world.path("deep"))
        .status();
    assert!(gone.unwrap().success());
}

#[test]
fn a_tree_that_went_comes_back_with_a_name_of_a_file_whose_mode_changed_by_another() {
    for is_removed_first in [true, false] {
        let world = World::new().dir("d").file("y", "one").file("d/z", "two");
        std::fs::hard_link(world.path("y"), world.path("d/x")).unwrap();
        let before = world.see();
        let chmod = FileRequest::Chmod {
            path: world.path("y"),
            mode: "600".parse().unwrap(),
            recursive: false,
        };
        let mut changes = vec![remove(&world, "d"), chmod];
        if !is_removed_first {
            changes.reverse();
        }
        let done = world.apply(&FileRequest::Batch(changes)).unwrap();
        let after = world.see();
        let undone = taken_back(&world, &done);
        assert_eq!(world.see(), before);
        let redone = taken_back(&world, &undone);
        assert_eq!(world.see(), after);
        // What somebody puts into the tree is still noticed.
        let undone = taken_back(&world, &redone);
        std::fs::write(world.path("d/theirs"), "3").unwrap();
        refused(&world, &undone, "what is in it changed since");
    }
}
