//! Random operations on a small tree, taken back one by one: every stage looks exactly as it did.
//!
//! Some operations are batches, some fail, some are cut short by a crash and reverted. A failing seed
//! replays exactly.

use std::path::PathBuf;

use backout_model::ports::OnConflict;
use backout_model::{Effect, Strategy};

use super::world::{World, snapshot};
use crate::file::{Expect, FileRequest, Source};
use backout_testkit::world::Tree;

const SEEDS: u64 = 200;
const OPERATIONS: usize = 14;

const NAMES: [&str; 7] = ["a", "b", "d", "d/a", "d/e", "d/e/b", "link"];

/// A small generator of numbers; the same seed gives the same story.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn name(&mut self, world: &World) -> PathBuf {
        let index = usize::try_from(self.roll(NAMES.len() as u64)).unwrap();
        world.path(NAMES[index])
    }

    fn request(&mut self, world: &World, can_nest: bool) -> FileRequest {
        let path = self.name(world);
        let recursive = self.roll(2) == 0;
        let replace = self.roll(2) == 0;
        match self.roll(if can_nest { 12 } else { 10 }) {
            0..=2 => FileRequest::Write {
                path,
                source: Source::Bytes(self.content()),
                expect: Expect::Anything,
                parents: recursive,
                mode: replace.then_some(0o600),
            },
            3 => FileRequest::Remove {
                path,
                recursive: true,
            },
            4 => FileRequest::Move {
                from: path,
                to: self.name(world),
                replace,
            },
            5 => FileRequest::Copy {
                from: path,
                to: self.name(world),
                recursive,
                replace,
            },
            6 => FileRequest::Mkdir {
                path,
                parents: recursive,
                mode: None,
            },
            7 => FileRequest::Symlink {
                path,
                to: "d/a".into(),
                replace,
            },
            8 => FileRequest::HardLink {
                path,
                to: self.name(world),
            },
            9 => FileRequest::Chmod {
                path,
                mode: "u+x,go-r".parse().unwrap(),
                recursive,
            },
            _ => {
                let count = 2 + self.roll(3);
                FileRequest::Batch((0..count).map(|_| self.request(world, false)).collect())
            }
        }
    }

    fn content(&mut self) -> Vec<u8> {
        let size = if self.roll(4) == 0 { 70_000 } else { 20 };
        vec![u8::try_from(self.roll(256)).unwrap(); size]
    }
}

/// Compares two looks at the world, and shows only what differs.
fn same(now: &Tree, wanted: &Tree, story: &[String]) {
    let differs = |one: &Tree, other: &Tree| -> Vec<String> {
        let odd = one
            .iter()
            .filter(|(path, seen)| other.get(*path) != Some(seen));
        odd.map(|entry| format!("{entry:?}")).collect()
    };
    let (is, was) = (differs(now, wanted), differs(wanted, now));
    assert!(
        is.is_empty() && was.is_empty(),
        "is {is:#?}, was {was:#?} of {story:#?}"
    );
}

/// Does one random operation; a crashed one is reverted and leaves nothing.
fn operate(
    world: &World,
    dice: &mut Dice,
    crashes: bool,
    story: &mut Vec<String>,
) -> Option<Effect> {
    let request = dice.request(world, true);
    story.push(format!("{request:?}"));
    let id = world.id();
    let before = snapshot(&world.root, false);
    let prepared = world
        .driver
        .prepare(id, &request, Strategy::Snapshot)
        .ok()?;
    if prepared.is_noop {
        return None;
    }
    let recipe = prepared.recipe.clone();
    let armed = world.journal.arm(id, request.verb(), prepared);
    let crash_at = (crashes && dice.roll(4) == 0).then(|| usize::try_from(dice.roll(12)).unwrap());
    world.driver.fail_at_step(crash_at, true);
    let applied = world.driver.apply(armed);
    world.driver.fail_at_step(None, false);
    match applied {
        Ok(applied) => Some(Effect {
            recipe,
            completion: Some(applied.completion),
        }),
        Err(error) => {
            let (_, outcomes) = world.recover(&Effect {
                recipe,
                completion: None,
            });
            let is_taken_back = outcomes.iter().all(|outcome| outcome.kind.is_taken_back());
            assert!(is_taken_back, "{outcomes:?} after {error:?} of {story:#?}");
            same(&snapshot(&world.root, false), &before, story);
            None
        }
    }
}

#[test]
fn every_sequence_of_operations_is_taken_back_step_by_step() {
    for seed in 0..SEEDS {
        // A crash tells nobody which times it left directories with, so only without one are they exact.
        let crashes = seed % 2 == 1;
        let see = |world: &World| snapshot(&world.root, !crashes);
        let mut dice = Dice(seed);
        let world = World::new()
            .file("a", "1")
            .file("d/a", "2")
            .file("d/e/b", vec![3; 70_000]);
        let mut story = vec![format!("seed {seed}")];
        let mut past: Vec<(Tree, Effect)> = Vec::new();
        for _ in 0..OPERATIONS {
            let before = see(&world);
            if let Some(effect) = operate(&world, &mut dice, crashes, &mut story) {
                past.push((before, effect));
            }
        }
        let mut undone = Vec::new();
        for (before, effect) in past.into_iter().rev() {
            let after = see(&world);
            let (undo, outcomes) = world.undo(&effect, OnConflict::Refuse);
            let is_taken_back = outcomes.iter().all(|outcome| outcome.kind.is_taken_back());
            assert!(is_taken_back, "{outcomes:?} of {story:#?}");
            same(&see(&world), &before, &story);
            undone.push((after, undo));
        }
        for (after, undo) in undone.into_iter().rev() {
            let (_, outcomes) = world.undo(&undo, OnConflict::Refuse);
            let is_taken_back = outcomes.iter().all(|outcome| outcome.kind.is_taken_back());
            assert!(is_taken_back, "{outcomes:?} of {story:#?}");
            same(&see(&world), &after, &story);
        }
    }
}
