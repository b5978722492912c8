//! Bytes that changed in place in a file with several names: back and forth, failures, crashes, drift.
//!
//! Only commands write in place, so the recipes are made by hand here, in every shape that settling one can give.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};

use backout_files::Files as _;
use backout_model::ports::{Driver as _, NewContent, OnConflict};
use backout_model::{Digest, Effect, OperationId, OutcomeKind, Recipe, Slot, TargetOutcome, Verb};

use super::world::{World, snapshot};
use crate::file::FileError;
use crate::file::before_image::meta_of;
use crate::file::recipe::{Change, FileRecipe, Image, Kind, Written};
use crate::file::sys::{Dir, Node, bytes};
use backout_testkit::world::Tree;

const FIRST: OperationId = OperationId::from_bits(0xa1);
const UNDO: OperationId = OperationId::from_bits(0xa2);

/// What else happened to the name that was written by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Nothing; few bytes.
    Plain,
    /// Nothing; many bytes with holes, kept in a slot.
    Large,
    /// It went.
    Gone,
    /// It became another.
    Moved,
    /// Another file took it.
    Replaced,
}

const SHAPES: [Shape; 5] = [
    Shape::Plain,
    Shape::Large,
    Shape::Gone,
    Shape::Moved,
    Shape::Replaced,
];

struct Story {
    world: World,
    effect: Effect,
    before: Tree,
    after: Tree,
}

impl Story {
    fn see(&self) -> Tree {
        look(&self.world)
    }
}

fn settled(outcomes: &[TargetOutcome]) {
    let is_taken_back = outcomes.iter().all(|outcome| outcome.kind.is_taken_back());
    assert!(is_taken_back, "{outcomes:?}");
}

fn node(world: &World, name: &str) -> Node {
    let place = Dir::of(&world.target(name)).unwrap();
    place.node().unwrap().unwrap()
}

fn written(world: &World, name: &str) -> Written {
    let place = Dir::of(&world.target(name)).unwrap();
    let content = world.read(name);
    Written {
        digest: Digest::of(&content),
        size: content.len() as u64,
        stored: false,
        slot: None,
        holes: bytes::holes(&place.read().unwrap(), content.len() as u64),
        meta: meta_of(&place, &place.node().unwrap().unwrap()).unwrap(),
    }
}

fn slot(world: &World, number: usize) -> Slot {
    Slot {
        depot: world.depots.depot(),
        name: format!("{FIRST}-{number}"),
    }
}

fn kept(world: &World, name: &str, slot: Slot) -> Image {
    let place = Dir::of(&world.target(name)).unwrap();
    let node = place.node().unwrap().unwrap();
    Image::Kept {
        slot,
        node: node.kind,
        identity: node.identity,
        meta: meta_of(&place, &node).unwrap(),
        copy: None,
        entries: None,
        digest: None,
    }
}

/// Makes a world with a file of two names, and does to it what a command would.
fn story(shape: Shape) -> Story {
    let world = World::new().dir("d").file("x", "another");
    let path = world.path("a");
    if shape == Shape::Large {
        let file = fs::File::create(&path).unwrap();
        file.set_len(1 << 20).unwrap();
        file.write_all_at(b"middle", 1 << 19).unwrap();
    } else {
        fs::write(&path, "old bytes").unwrap();
    }
    let world = world.mode("a", 0o640);
    fs::hard_link(&path, world.path("d/b")).unwrap();
    let before = look(&world);
    let mut old = written(&world, "a");
    if shape == Shape::Large {
        let to = slot(&world, 0);
        fs::copy(&path, to.path().as_path()).unwrap();
        old.slot = Some(to);
    } else {
        world.contents.put(&[NewContent::of(world.read("a"))]);
        old.stored = true;
    }
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.write_all_at(b"new", 4).unwrap();
    file.set_len(if shape == Shape::Plain { 5 } else { 70_000 })
        .unwrap();
    drop(file);
    let world = world.mode("d/b", 0o600);
    let changes = changes(&world, shape, old);
    let recipe = FileRecipe {
        shared: BTreeMap::default(),
        opened: std::collections::BTreeSet::new(),
        inside: BTreeMap::default(),
        mounts: Vec::new(),
        operation: FIRST,
        changes,
        parents: Vec::new(),
    };
    let effect = Effect {
        recipe: recipe.encode().unwrap(),
        completion: None,
    };
    let after = look(&world);
    Story {
        world,
        effect,
        before,
        after,
    }
}

fn changes(world: &World, shape: Shape, old: Written) -> Vec<Change> {
    let a = world.target("a");
    let rewrite = Change::Rewrite {
        path: a.clone(),
        ino: node(world, "a").identity.ino,
        before: old,
        after: written(world, "a"),
    };
    let mut changes = vec![rewrite];
    let home = slot(world, 1);
    match shape {
        Shape::Plain | Shape::Large => {}
        Shape::Gone => {
            changes.push(Change::Set {
                path: a.clone(),
                before: kept(world, "a", home.clone()),
                after: Image::Absent,
            });
            fs::rename(a.as_path(), home.path().as_path()).unwrap();
        }
        Shape::Moved => {
            let to = world.target("d/c");
            changes.push(Change::Move {
                from: a.clone(),
                to: to.clone(),
                node: Kind::File,
                identity: node(world, "a").identity,
                replaced: Image::Absent,
                meta: None,
            });
            fs::rename(a.as_path(), to.as_path()).unwrap();
        }
        Shape::Replaced => {
            let from = world.target("x");
            changes.push(Change::Move {
                from: from.clone(),
                to: a.clone(),
                node: Kind::File,
                identity: node(world, "x").identity,
                replaced: kept(world, "a", home.clone()),
                meta: None,
            });
            fs::rename(a.as_path(), home.path().as_path()).unwrap();
            fs::rename(from.as_path(), a.as_path()).unwrap();
        }
    }
    changes
}

#[test]
fn it_goes_back_and_forth_in_the_same_inode() {
    for shape in SHAPES {
        let story = story(shape);
        let world = &story.world;
        let number = node(world, "d/b").identity.ino;
        assert!(world.driver.is_in_place(&story.effect).unwrap());
        let mut effect = story.effect.clone();
        for wanted in [&story.before, &story.after, &story.before, &story.after] {
            let (undo, outcomes) = world.undo(&effect, OnConflict::Refuse);
            settled(&outcomes);
            assert_eq!(story.see(), *wanted, "{shape:?}");
            assert_eq!(node(world, "d/b").identity.ino, number, "{shape:?}");
            let twice = world.plan_undo(&effect, OnConflict::Refuse);
            assert!(twice.prepared.is_noop, "{shape:?}: {:?}", twice.outcomes);
            effect = undo;
        }
        assert!(world.driver.is_in_place(&story.effect).unwrap());
    }
}

#[test]
fn a_failing_step_leaves_it_as_it_was() {
    for shape in SHAPES {
        for at in 0.. {
            let story = story(shape);
            let driver = &story.world.driver;
            let id = UNDO;
            let undo = driver.prepare_undo(id, &story.effect, OnConflict::Refuse.into());
            let armed = story
                .world
                .journal
                .arm(id, Verb::Undo, undo.unwrap().prepared);
            driver.fail_at_step(Some(at), false);
            let applied = driver.apply(armed);
            driver.fail_at_step(None, false);
            let Err(error) = applied else {
                assert!(at > 5, "{shape:?}: there were {at} steps only");
                break;
            };
            assert!(
                !matches!(error, FileError::HalfDone { .. }),
                "{shape:?} {at}: {error}"
            );
            assert_eq!(story.see(), story.after, "{shape:?}: step {at}");
        }
    }
}

#[test]
fn after_a_crash_it_is_taken_back() {
    for shape in SHAPES {
        for at in 0.. {
            let story = story(shape);
            let Some(recipe) = crashed(&story, at) else {
                break;
            };
            let effect = Effect {
                recipe,
                completion: None,
            };
            let world = &story.world;
            let torn = story.see();
            let (recovery, outcomes) = world.recover(&effect);
            settled(&outcomes);
            assert_eq!(story.see(), story.after, "{shape:?}: step {at}");
            let (again, outcomes) = world.recover(&effect);
            settled(&outcomes);
            assert_eq!(story.see(), story.after, "{shape:?}: step {at}, twice");
            drop(again);
            // What the recovery replaced, half-written bytes included, can be had again.
            let (_, outcomes) = world.undo(&recovery, OnConflict::Refuse);
            settled(&outcomes);
            let (now, torn) = (names(&story.see()), names(&torn));
            assert_eq!(now, torn, "{shape:?}: step {at}");
        }
    }
}

/// Looks at everything, holes included.
fn look(world: &World) -> Tree {
    snapshot(&world.root, false)
}

/// What a crash left, without our own temporary names, which recovery clears.
fn names(seen: &Tree) -> Vec<String> {
    let is_ours = |name: &&std::path::PathBuf| name.to_string_lossy().contains(".backout-");
    let names = seen.keys().filter(|name| !is_ours(name));
    names.map(|name| name.display().to_string()).collect()
}

/// Crashes the undo at a step of applying it, and gives its recipe; none if it has no such step.
fn crashed(story: &Story, at: usize) -> Option<Recipe> {
    let driver = &story.world.driver;
    let undo = driver.prepare_undo(UNDO, &story.effect, OnConflict::Refuse.into());
    let undo = undo.unwrap().prepared;
    let recipe = undo.recipe.clone();
    let armed = story.world.journal.arm(UNDO, Verb::Undo, undo);
    driver.fail_at_step(Some(at), true);
    let is_crashed = driver.apply(armed).is_err();
    driver.fail_at_step(None, false);
    is_crashed.then_some(recipe)
}

#[test]
fn what_somebody_else_wrote_since_is_left_alone() {
    for shape in [Shape::Plain, Shape::Large, Shape::Gone] {
        let story = story(shape);
        fs::write(story.world.path("d/b"), "mine").unwrap();
        let drifted = story.see();
        for on_conflict in [OnConflict::Refuse, OnConflict::Merge] {
            let undo = story.world.plan_undo(&story.effect, on_conflict);
            let is_conflict =
                |outcome: &TargetOutcome| matches!(outcome.kind, OutcomeKind::Conflict { .. });
            assert!(undo.outcomes.iter().any(is_conflict), "{:?}", undo.outcomes);
            assert!(undo.prepared.is_noop);
        }
        let (undo, outcomes) = story.world.undo(&story.effect, OnConflict::Force);
        settled(&outcomes);
        assert_eq!(story.see(), story.before, "{shape:?}");
        let (_, outcomes) = story.world.undo(&undo, OnConflict::Refuse);
        settled(&outcomes);
        assert_eq!(story.see(), drifted, "{shape:?}");
    }
}

#[test]
fn both_sides_can_be_shown_and_a_lost_one_is_told() {
    let plain = story(Shape::Plain);
    let shown = plain.world.driver.changes(&plain.effect).unwrap();
    assert_eq!(plain.world.bytes(shown[0].before.as_ref()), b"old bytes");
    assert_eq!(plain.world.bytes(shown[0].after.as_ref()), b"old n");

    let large = story(Shape::Large);
    let (driver, slot) = (&large.world.driver, slot(&large.world, 0));
    let look = || {
        let found = driver.check_kept(&large.effect, &|_| true).unwrap();
        let (looked_at, finding) = found.into_iter().next().unwrap();
        assert_eq!(looked_at, slot);
        finding
    };
    assert_eq!(look(), None);
    fs::write(slot.path().as_path(), "hurt").unwrap();
    assert!(look().is_some());
    let undo = large.world.plan_undo(&large.effect, OnConflict::Refuse);
    assert!(matches!(undo.outcomes[0].kind, OutcomeKind::Failed { .. }));
    assert!(undo.prepared.is_noop);
    assert_eq!(large.see(), large.after);
}

#[test]
fn a_recipe_of_version_1_still_rewrites() {
    let world = World::new().file("a", "after").mode("a", 0o644);
    fs::hard_link(world.path("a"), world.path("b")).unwrap();
    world.contents.put(&[NewContent::of(b"before".to_vec())]);
    let found = world.path("a").metadata().unwrap();
    let golden = include_str!("../golden/v1-rewrite.json")
        .replace("@ROOT@", world.root.to_str().unwrap())
        .replace("\"@INO@\"", &found.ino().to_string())
        .replace("\"@UID@\"", &found.uid().to_string())
        .replace("\"@GID@\"", &found.gid().to_string());
    let effect = Effect {
        recipe: serde_json::from_str(&golden).unwrap(),
        completion: None,
    };
    assert!(world.driver.is_in_place(&effect).unwrap());
    let (_, outcomes) = world.undo(&effect, OnConflict::Refuse);
    settled(&outcomes);
    assert_eq!(world.read("b"), b"before");
    let now = world.path("b").metadata().unwrap();
    assert_eq!((now.ino(), now.mode() & 0o7777), (found.ino(), 0o600));
    assert_eq!(now.mtime(), 1_600_000_000);
}
