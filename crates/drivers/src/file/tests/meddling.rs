//! Somebody else writes while a list of changes happens: what they wrote stays, whatever becomes of the rest.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use backout_model::ports::{Applied, How, OnConflict, Progress};
use backout_model::{Effect, Strategy, Verb};

use super::world::World;
use crate::file::{FileDriver, FileError, FileRequest};

const LARGE: usize = 300_000;

/// Does something once so many changes have happened, and then wants the work to stop, or not.
struct Meddler {
    after: u64,
    seen: AtomicU64,
    stops: bool,
    is_stopped: AtomicBool,
    act: Box<dyn Fn() + Send + Sync>,
}

impl std::fmt::Debug for Meddler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Meddler")
    }
}

impl Progress for Meddler {
    fn total(&self, _items: u64) {}

    fn advance(&self, items: u64) {
        let before = self.seen.fetch_add(items, Ordering::Relaxed);
        if before < self.after && self.after <= before + items {
            (self.act)();
            self.is_stopped.store(self.stops, Ordering::Relaxed);
        }
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }
}

/// What is to happen, and what somebody does meanwhile.
struct Story<'w> {
    world: &'w World,
    /// After so many changes were made visible.
    after: u64,
    stops: bool,
    act: fn(&Path),
}

impl Story<'_> {
    fn driver(&self, already: u64) -> FileDriver {
        let (root, act) = (self.world.root.clone(), self.act);
        let contents = &self.world.contents;
        let meddler = Meddler {
            after: already + self.after,
            seen: AtomicU64::new(0),
            stops: self.stops,
            is_stopped: AtomicBool::new(false),
            act: Box::new(move || act(&root)),
        };
        FileDriver::new(
            contents.clone(),
            contents.clone(),
            self.world.depots.clone(),
        )
        .with_progress(Arc::new(meddler))
    }

    /// Carries a request out. Making what is new counts each change once, before any can be seen.
    fn apply(&self, request: &FileRequest, changes: u64) -> (Effect, Result<Applied, FileError>) {
        let id = self.world.id();
        let driver = self.driver(changes);
        let prepared = driver.prepare(id, request, Strategy::Snapshot).unwrap();
        let recipe = prepared.recipe.clone();
        let armed = self.world.journal.arm(id, request.verb(), prepared);
        let applied = driver.apply(armed);
        let completion = applied.as_ref().ok().map(|it| it.completion.clone());
        (Effect { recipe, completion }, applied)
    }

    /// Takes an effect back. Judging it counts each change once, too.
    fn undo(&self, effect: &Effect, changes: u64) -> (Effect, Result<Applied, FileError>) {
        let id = self.world.id();
        let driver = self.driver(2 * changes);
        let undo = driver.prepare_undo(id, effect, How::default()).unwrap();
        let recipe = undo.prepared.recipe.clone();
        let armed = self.world.journal.arm(id, Verb::Undo, undo.prepared);
        let applied = driver.apply(armed);
        let completion = applied.as_ref().ok().map(|it| it.completion.clone());
        (Effect { recipe, completion }, applied)
    }
}

fn batch(world: &World, names: &[&str]) -> FileRequest {
    let write = |name: &&str| FileRequest::write(world.path(name), format!("{name}1"));
    FileRequest::Batch(names.iter().map(write).collect())
}

/// What was replaced can still be had, and so can what somebody else wrote.
fn both_come_back(world: &World, effect: &Effect, name: &str, before: &[u8], theirs: &[u8]) {
    let id = world.id();
    let how = How {
        on_conflict: OnConflict::Force,
        is_unfinished: true,
        ..How::default()
    };
    let undo = world.driver.prepare_undo(id, effect, how).unwrap();
    let recipe = undo.prepared.recipe.clone();
    let armed = world.journal.arm(id, Verb::Recover, undo.prepared);
    let applied = world.driver.apply(armed).unwrap();
    assert_eq!(world.read(name), before);
    let recovery = Effect {
        recipe,
        completion: Some(applied.completion),
    };
    world.undo(&recovery, OnConflict::Refuse);
    assert_eq!(world.read(name), theirs);
}

#[test]
fn what_somebody_wrote_meanwhile_is_not_taken_back_with_the_rest() {
    for large in [false, true] {
        let old = if large {
            "o".repeat(LARGE)
        } else {
            "a0".to_owned()
        };
        let world = World::new().file("a", &old).file("b", "b0").file("c", "c0");
        let story = Story {
            world: &world,
            after: 1,
            stops: true,
            act: |root| fs::write(root.join("a"), "somebody").unwrap(),
        };
        let (effect, applied) = story.apply(&batch(&world, &["a", "b", "c"]), 3);
        let error = applied.unwrap_err();
        assert!(matches!(error, FileError::HalfDone { .. }), "{error}");
        assert_eq!(world.read("a"), b"somebody");
        assert_eq!(
            (world.read("b"), world.read("c")),
            (b"b0".into(), b"c0".into())
        );
        assert_eq!(fs::read_dir(&world.root).unwrap().count(), 3);
        both_come_back(&world, &effect, "a", old.as_bytes(), b"somebody");
    }
}

#[test]
fn what_somebody_wrote_into_a_restored_file_is_not_taken_back_with_the_undo() {
    for large in [false, true] {
        let old = if large {
            "o".repeat(LARGE)
        } else {
            "a0".to_owned()
        };
        let world = World::new().file("a", &old).file("b", "b0").file("c", "c0");
        let done = world.apply(&batch(&world, &["a", "b", "c"])).unwrap();
        let story = Story {
            world: &world,
            after: 3,
            stops: true,
            act: |root| fs::write(root.join("a"), "somebody").unwrap(),
        };
        let (effect, applied) = story.undo(&done, 3);
        let error = applied.unwrap_err();
        assert!(matches!(error, FileError::HalfDone { .. }), "{error}");
        assert_eq!(world.read("a"), b"somebody");
        assert_eq!(
            (world.read("b"), world.read("c")),
            (b"b1".into(), b"c1".into())
        );
        assert_eq!(fs::read_dir(&world.root).unwrap().count(), 3);
        both_come_back(&world, &effect, "a", b"a1", b"somebody");
    }
}

#[test]
fn what_somebody_changed_at_once_is_told_and_nothing_goes_back() {
    let world = World::new().file("a", "a0").file("b", "b0");
    let story = Story {
        world: &world,
        after: 2,
        stops: false,
        act: |root| fs::write(root.join("a"), "somebody").unwrap(),
    };
    let (effect, applied) = story.apply(&batch(&world, &["a", "b"]), 2);
    let unlike = applied.unwrap().unlike;
    assert_eq!(unlike.len(), 1, "{unlike:?}");
    assert_eq!(unlike[0].target.file(), Some(&world.target("a")));
    assert_eq!(
        (world.read("a"), world.read("b")),
        (b"somebody".into(), b"b1".into())
    );
    fs::write(world.path("a"), "a1").unwrap();
    let (_, applied) = story.undo(&effect, 2);
    assert_eq!(applied.unwrap().unlike.len(), 1);
    assert_eq!(
        (world.read("a"), world.read("b")),
        (b"somebody".into(), b"b0".into())
    );
}

#[test]
fn a_new_directory_in_which_somebody_wrote_stays() {
    for act in [
        |root: &Path| fs::write(root.join("d/theirs"), "somebody").unwrap(),
        |root: &Path| fs::write(root.join("d/a"), "somebody").unwrap(),
        |root: &Path| fs::remove_file(root.join("d/a")).unwrap(),
    ] {
        let world = World::new().file("b", "b0");
        let make = FileRequest::Mkdir {
            path: world.path("d"),
            parents: false,
            mode: None,
        };
        let write = |name: &str| FileRequest::write(world.path(name), format!("{name}1"));
        let request = FileRequest::Batch(vec![make, write("d/a"), write("b")]);
        let story = Story {
            world: &world,
            after: 1,
            stops: true,
            act,
        };
        let (_, applied) = story.apply(&request, 3);
        let error = applied.unwrap_err();
        assert!(matches!(error, FileError::HalfDone { .. }), "{error}");
        assert!(world.path("d").is_dir());
        assert_eq!(world.read("b"), b"b0");
        assert_eq!(fs::read_dir(&world.root).unwrap().count(), 2);
    }
}

#[test]
fn a_name_that_somebody_took_stays_theirs() {
    for large in [false, true] {
        let old = if large {
            "o".repeat(LARGE)
        } else {
            "a0".to_owned()
        };
        let world = World::new().file("a", &old).file("b", "b0");
        let remove = FileRequest::Remove {
            path: world.path("a"),
            recursive: false,
        };
        let write = FileRequest::write(world.path("b"), "b1");
        let story = Story {
            world: &world,
            after: 1,
            stops: true,
            act: |root| fs::write(root.join("a"), "somebody").unwrap(),
        };
        let (effect, applied) = story.apply(&FileRequest::Batch(vec![remove, write]), 2);
        let error = applied.unwrap_err();
        assert!(matches!(error, FileError::HalfDone { .. }), "{error}");
        assert_eq!(
            (world.read("a"), world.read("b")),
            (b"somebody".into(), b"b0".into())
        );
        assert_eq!(fs::read_dir(&world.root).unwrap().count(), 2);
        both_come_back(&world, &effect, "a", old.as_bytes(), b"somebody");
    }
}
