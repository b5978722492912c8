//! Taking back a part of an effect, and effects that are not wholly ours to take back.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use backout_model::ports::{How, OnConflict, Progress};
use backout_model::{Effect, Key, OutcomeKind, TargetOutcome, Verb};

use super::world::World;
use crate::file::recipe::{FileRecipe, Image, Kind};
use crate::file::{FileError, FileRequest};

fn write(world: &World, name: &str, text: &str) -> FileRequest {
    FileRequest::write(world.path(name), text)
}

/// Carries out an undo, and says of each target, by its name, what became of it.
fn undo(world: &World, effect: &Effect, how: How<'_>) -> (Effect, Vec<String>) {
    let id = world.id();
    let undo = world.driver.prepare_undo(id, effect, how).unwrap();
    let recipe = undo.prepared.recipe.clone();
    let armed = world.journal.arm(id, Verb::Undo, undo.prepared);
    let applied = world.driver.apply(armed).unwrap();
    let effect = Effect {
        recipe,
        completion: Some(applied.completion),
    };
    (effect, told(world, &undo.outcomes))
}

fn told(world: &World, outcomes: &[TargetOutcome]) -> Vec<String> {
    let root = world.root.to_str().unwrap();
    let each = outcomes.iter().map(|outcome| {
        let name = outcome.target.to_string().replace(root, "");
        format!("{name} {}", outcome.kind)
    });
    each.collect()
}

fn only(world: &World, names: &[&str]) -> BTreeSet<Key> {
    let targets = names.iter().map(|name| world.target(name));
    targets.map(Key::from).collect()
}

const PARTLY: How<'static> = How {
    on_conflict: OnConflict::Refuse,
    is_partial: true,
    only: None,
    homes: None,
    is_unfinished: false,
    earlier: &[],
    past: &[],
};

#[test]
fn what_somebody_changed_stays_and_the_rest_goes_back() {
    let world = World::new().file("a", "a0").file("b", "b0");
    let batch = FileRequest::Batch(vec![write(&world, "a", "a1"), write(&world, "b", "b1")]);
    let effect = world.apply(&batch).unwrap();
    fs::write(world.path("a"), "somebody").unwrap();
    let (taken, outcomes) = undo(&world, &effect, PARTLY);
    assert_eq!(
        outcomes[0],
        "/a conflict: content changed since (2 -> 8 bytes)"
    );
    assert_eq!(outcomes[1], "/b restored");
    assert_eq!(world.read("a"), b"somebody");
    assert_eq!(world.read("b"), b"b0");
    let (_, outcomes) = undo(&world, &taken, How::default());
    assert_eq!(
        outcomes,
        ["/b restored"],
        "only what was done is taken back"
    );
    assert_eq!(world.read("b"), b"b1");
}

#[test]
fn a_new_directory_that_somebody_works_in_goes_as_far_as_it_can() {
    let world = World::new();
    let batch = FileRequest::Batch(vec![
        FileRequest::Mkdir {
            path: world.path("d"),
            parents: false,
            mode: None,
        },
        write(&world, "d/a", "a"),
        write(&world, "d/b", "b"),
    ]);
    let effect = world.apply(&batch).unwrap();
    fs::write(world.path("d/a"), "somebody").unwrap();
    fs::write(world.path("d/own"), "somebody").unwrap();
    let (taken, outcomes) = undo(&world, &effect, PARTLY);
    assert_eq!(
        outcomes[0],
        "/d conflict: the directory is not empty: a, own"
    );
    assert_eq!(outcomes[2], "/d/b restored");
    assert!(!world.path("d/b").exists());
    assert_eq!(world.read("d/a"), b"somebody");
    undo(&world, &taken, How::default());
    assert_eq!(world.read("d/b"), b"b");
}

#[test]
fn only_the_chosen_targets_go_back() {
    let world = World::new().file("a", "a0").file("b", "b0");
    let batch = FileRequest::Batch(vec![
        write(&world, "a", "a1"),
        write(&world, "b", "b1"),
        FileRequest::Move {
            from: world.path("a"),
            to: world.path("c"),
            replace: false,
        },
    ]);
    let effect = world.apply(&batch).unwrap();
    let chosen = only(&world, &["b"]);
    let how = How {
        only: Some(&chosen),
        ..How::default()
    };
    let (_, outcomes) = undo(&world, &effect, how);
    assert_eq!(outcomes, ["/b restored"]);
    assert!(world.path("c").exists() && !world.path("a").exists());
    let rest = only(&world, &["a", "c"]);
    let how = How {
        only: Some(&rest),
        ..How::default()
    };
    undo(&world, &effect, how);
    assert_eq!(world.read("a"), b"a0");
    assert!(!world.path("c").exists());
}

#[test]
fn a_directory_that_a_chosen_file_needs_comes_back_with_it() {
    let world = World::new().file("d/e/a", "a").file("d/e/b", "b");
    let remove = |name: &str| FileRequest::Remove {
        path: world.path(name),
        recursive: false,
    };
    let batch = FileRequest::Batch(vec![
        remove("d/e/a"),
        remove("d/e/b"),
        remove("d/e"),
        remove("d"),
    ]);
    let effect = world.apply(&batch).unwrap();
    assert!(!world.path("d").exists());
    let chosen = only(&world, &["d/e/a"]);
    let how = How {
        only: Some(&chosen),
        ..How::default()
    };
    let (_, outcomes) = undo(&world, &effect, how);
    assert_eq!(outcomes.len(), 3, "{outcomes:?}");
    assert_eq!(world.read("d/e/a"), b"a");
    assert!(!world.path("d/e/b").exists());
    undo(&world, &effect, How::default());
    assert_eq!(world.read("d/e/b"), b"b");
}

/// Makes the effect of a write one that somebody else took part in.
fn shared(world: &World) -> Effect {
    let mut effect = world.apply(&write(world, "f", "both of us\n")).unwrap();
    let mut recipe = FileRecipe::decode(&effect.recipe).unwrap();
    recipe
        .shared
        .insert(0, "somebody else wrote it as well".to_owned());
    effect.recipe = recipe.encode().unwrap();
    effect
}

#[test]
fn what_is_shared_with_somebody_is_a_conflict_and_no_merge_takes_their_part() {
    let world = World::new().file("f", "before\n");
    let effect = shared(&world);
    for (on_conflict, said) in [
        (
            OnConflict::Refuse,
            "conflict: somebody else wrote it as well",
        ),
        (
            OnConflict::Merge,
            "conflict: somebody else wrote it as well; what the command alone made of it is not known",
        ),
    ] {
        let plan = world.plan_undo(&effect, on_conflict);
        assert_eq!(told(&world, &plan.outcomes), [format!("/f {said}")]);
        assert!(plan.prepared.is_noop);
    }
    let (_, outcomes) = undo(&world, &effect, OnConflict::Force.into());
    assert_eq!(
        outcomes,
        ["/f restored over a later change: somebody else wrote it as well"]
    );
    assert_eq!(world.read("f"), b"before\n");
    let again = world.plan_undo(&effect, OnConflict::Refuse);
    assert_eq!(again.outcomes[0].kind, OutcomeKind::AlreadyGone);
}

#[test]
fn what_nobody_kept_is_said_and_the_rest_goes_back() {
    let world = World::new().file("large", "0").file("b", "b0");
    let batch = FileRequest::Batch(vec![write(&world, "large", "1"), write(&world, "b", "b1")]);
    let mut effect = world.apply(&batch).unwrap();
    let mut recipe = FileRecipe::decode(&effect.recipe).unwrap();
    if let crate::file::recipe::Change::Set { before, .. } = &mut recipe.changes[0] {
        *before = Image::Unkept {
            node: Kind::File,
            why: "it was too large".to_owned(),
        };
    }
    effect.recipe = recipe.encode().unwrap();
    let examined = world.driver.examine(&effect).unwrap();
    let lost = examined[0].lost.as_deref();
    assert_eq!(lost, Some("it was not kept: it was too large"));
    assert_eq!(examined[1].lost, None);
    let plan = world.plan_undo(&effect, OnConflict::Refuse);
    assert!(plan.prepared.is_noop);
    let (_, outcomes) = undo(&world, &effect, PARTLY);
    assert_eq!(
        outcomes,
        [
            "/large failed: it was not kept: it was too large",
            "/b restored"
        ]
    );
    assert_eq!(world.read("large"), b"1");
    assert_eq!(world.read("b"), b"b0");
}

/// The undo of an append in place puts a copy in the place of the file, with another number: the redo before it knew the
/// file by its number alone, and took the copy for somebody else's.
#[test]
fn a_large_file_that_was_made_anew_is_known_by_its_bytes() {
    let old = vec![b'o'; 100_000];
    let world = World::new().file("f", &old);
    let new = vec![b'n'; 100_000];
    let effect = world
        .apply(&FileRequest::write(world.path("f"), new.clone()))
        .unwrap();
    let (first, _) = world.undo(&effect, OnConflict::Refuse);
    let (redo, _) = world.undo(&first, OnConflict::Refuse);
    remake(&world);
    let (second, outcomes) = world.undo(&redo, OnConflict::Refuse);
    assert_eq!(outcomes[0].kind, OutcomeKind::Restored, "{outcomes:?}");
    assert_eq!(world.read("f"), old);
    remake(&world);
    let (_, outcomes) = world.undo(&second, OnConflict::Refuse);
    assert_eq!(outcomes[0].kind, OutcomeKind::Restored, "{outcomes:?}");
    assert_eq!(world.read("f"), new);
}

/// Puts an equal file with another number in the place of the file, as undoing something that came between does.
fn remake(world: &World) {
    let copied = std::process::Command::new("cp")
        .arg("-p")
        .args([world.path("f"), world.path("copy")])
        .status();
    assert!(copied.unwrap().success());
    fs::rename(world.path("copy"), world.path("f")).unwrap();
}

#[test]
fn a_large_file_with_other_bytes_is_not_taken_for_the_kept_one() {
    let world = World::new().file("f", vec![b'o'; 100_000]);
    let effect = world
        .apply(&FileRequest::write(world.path("f"), vec![b'n'; 100_000]))
        .unwrap();
    let (first, _) = world.undo(&effect, OnConflict::Refuse);
    let (redo, _) = world.undo(&first, OnConflict::Refuse);
    fs::write(world.path("g"), vec![b'x'; 100_000]).unwrap();
    fs::rename(world.path("g"), world.path("f")).unwrap();
    let plan = world.plan_undo(&redo, OnConflict::Refuse);
    assert!(
        !plan.outcomes[0].kind.is_taken_back(),
        "{:?}",
        plan.outcomes
    );
}

/// Stops the work after a number of looks at it.
#[derive(Debug)]
struct StopsAfter(AtomicU64);

impl Progress for StopsAfter {
    fn total(&self, _items: u64) {}
    fn advance(&self, _items: u64) {}

    fn is_stopped(&self) -> bool {
        let left = self.0.load(Ordering::Relaxed);
        self.0.store(left.saturating_sub(1), Ordering::Relaxed);
        left == 0
    }
}

#[test]
fn work_that_is_stopped_at_any_step_leaves_everything_as_it_was() {
    for after in 0.. {
        let mut world = World::new().file("a", "a0").file("d/b", "b0");
        let batch = FileRequest::Batch(vec![
            write(&world, "a", "a1"),
            write(&world, "d/new", "n"),
            FileRequest::Remove {
                path: world.path("d/b"),
                recursive: false,
            },
        ]);
        let effect = world.apply(&batch).unwrap();
        let before = world.see();
        let id = world.id();
        let stops = Arc::new(StopsAfter(AtomicU64::new(after)));
        world.driver = world.driver.with_progress(stops);
        let undo = world.driver.prepare_undo(id, &effect, How::default());
        let stopped = undo.and_then(|undo| {
            let armed = world.journal.arm(id, Verb::Undo, undo.prepared);
            world.driver.apply(armed)
        });
        match stopped {
            Err(FileError::Stopped) => assert_eq!(world.see(), before, "after {after} looks"),
            Err(error) => panic!("{error}"),
            Ok(_) => {
                assert!(after > 10, "only {after} looks");
                return;
            }
        }
    }
}
