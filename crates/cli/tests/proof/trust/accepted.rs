//! What died half-way and somebody accepts: what it did can be undone, and what it had not come to is not its own.

use std::collections::BTreeMap;

use crate::world::{World, said};

/// More than is kept as bytes.
const BYTES: usize = 70_000;

/// Many files, each of its own bytes.
fn with_files(size: usize) -> (World, BTreeMap<String, String>) {
    let world = World::new();
    let name = |number: usize| format!("f{number}");
    let text = |number: usize| format!("{number} ").repeat(size / 2);
    let files: BTreeMap<_, _> = (0..6).map(|it| (name(it), text(it))).collect();
    for (name, text) in &files {
        world.file(name, text);
    }
    (world, files)
}

/// Kills an act at a point, accepts what is there, and takes it back.
#[track_caller]
fn accepted_and_undone(
    (world, files): &(World, BTreeMap<String, String>),
    point: &str,
    act: &[&str],
) {
    let mut command = world.command(act);
    let died = command.env("BACKOUT_CRASH_AT", point).output().unwrap();
    assert!(!died.status.success(), "{point}: {}", said(&died));
    let log = world.json(&["log", "-n", "1"]);
    let id = log["operations"][0]["id"].as_str().unwrap();
    world.ok(&["recover", "--keep", id]);
    let names = std::fs::read_dir(world.path(".")).unwrap();
    let mut names = names.map(|it| it.unwrap().file_name().into_string().unwrap());
    assert_eq!(
        names.find(|name| name.starts_with(".backout-")),
        None,
        "{point}"
    );
    world.ok(&["verify"]);
    let kept = world.tree().without_times();
    for _ in 0..2 {
        world.ok(&["undo", id]);
        for (name, text) in files {
            assert!(world.read(name) == *text, "{point}: {name}");
        }
        world.ok(&["redo"]);
        let now = world.tree().without_times();
        assert!(now == kept, "{point}: {}", now.difference(&kept));
    }
    world.check_store();
}

#[test]
fn a_removal_that_died_and_was_accepted_is_undone() {
    for size in [8, BYTES] {
        for point in [
            "file.swapped#1",
            "file.swapped#3",
            "file.swap#4",
            "file.applied",
        ] {
            let story = with_files(size);
            accepted_and_undone(&story, point, &["rm", "f0", "f1", "f2", "f3", "f4", "f5"]);
        }
    }
}

#[test]
fn an_application_of_a_trial_that_died_and_was_accepted_is_undone() {
    for size in [8, BYTES] {
        let story = with_files(size);
        let line = "for it in f*; do echo new > $it; done";
        story.0.ok(&["try", "--", "sh", "-c", line]);
        accepted_and_undone(&story, "file.swapped#3", &["try", "--apply"]);
    }
}
