//! Random stories of agents, people and accidents, and two laws that must hold after every step.
//!
//! - *Conservation*: what an act overwrote or removed comes back by taking the act back.
//! - *Truth*: what the journal says of a target is what a look at the world finds.
//!
//! Several agents write, run commands, try them in layers, undo, redo and restore: by name, by path, in part, by force,
//! merging. In one story of four they also set and unset keys of config files, beside writes of the whole file. Somebody else edits between any two steps, also between a death and the recovery, and while a command runs.
//! Processes die, watchers are killed, undos are interrupted. The oracle knows nothing of recipes: it looks at the tree
//! before and after every act, and at which targets the journal says are in effect.
//!
//! - `BACKOUT_LAWS_STORIES=5000` tells so many stories, `BACKOUT_LAWS_FROM=100` begins at that seed;
//! - `BACKOUT_LAWS_SEED=77` tells one, step by step.
//!
//! A story that breaks a law is told as short as it can be. The others are told all the same; the test fails at the end.

#![cfg(feature = "testing")]
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test fails by panicking, and may say what it counted"
)]

mod act;
mod ending;
mod keys;
mod oracle;
#[path = "../proof/random.rs"]
mod random;
mod running;
mod scene;
mod snapshot;
mod story;

use std::panic::{AssertUnwindSafe, catch_unwind};

use scene::{Scene, Tally};
use story::{Step, imagine};

/// How many stories are told where nothing else is asked for.
const STORIES: u64 = 120;

/// A fault that a test puts in, to see that it is found.
type Sabotage = fn(&Scene);

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Tells a story to its end, or to the step that breaks a law.
fn tell(steps: &[Step], sabotage: Option<Sabotage>) -> Result<Tally, String> {
    let told = catch_unwind(AssertUnwindSafe(|| {
        let mut scene = Scene::new(sabotage);
        for (place, step) in steps.iter().enumerate() {
            if number("BACKOUT_LAWS_SEED").is_some() {
                eprintln!("{place}: {step:?}");
            }
            scene
                .play(step)
                .map_err(|why| format!("step {place}: {why}"))?;
        }
        scene.end()?;
        Ok(scene.tally)
    }));
    told.unwrap_or_else(|_| Err("it panicked".to_owned()))
}

/// Leaves steps out as long as the story still fails.
fn shorten(
    mut steps: Vec<Step>,
    mut why: String,
    sabotage: Option<Sabotage>,
) -> (Vec<Step>, String) {
    let mut place = 0;
    while place < steps.len() {
        let mut shorter = steps.clone();
        shorter.remove(place);
        match tell(&shorter, sabotage) {
            Err(now) => (steps, why) = (shorter, now),
            Ok(_) => place += 1,
        }
    }
    (steps, why)
}

fn shown(steps: &[Step]) -> String {
    let lines = steps.iter().map(|step| format!("  {step:?}"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn both_laws_hold_after_every_step_of_every_story() {
    let one = number("BACKOUT_LAWS_SEED");
    let first = one.or_else(|| number("BACKOUT_LAWS_FROM")).unwrap_or(0);
    let count = one.map_or_else(|| number("BACKOUT_LAWS_STORIES").unwrap_or(STORIES), |_| 1);
    let mut all = Tally::default();
    let mut failing = Vec::new();
    for seed in first..first + count {
        let steps = imagine(seed);
        match tell(&steps, None) {
            Ok(tally) => all.add(&tally),
            Err(why) => {
                let (short, why) = shorten(steps, why, None);
                let shown = shown(&short);
                eprintln!("seed {seed} (BACKOUT_LAWS_SEED={seed}): {why}\n{shown}");
                failing.push(seed);
            }
        }
    }
    eprintln!("{count} stories from {first}: {all:?}");
    assert!(failing.is_empty(), "these seeds do not hold: {failing:?}");
}

/// Finds a story that shows a fault, and makes it short.
fn caught(sabotage: Sabotage) -> (Vec<Step>, String) {
    let failing = (0..60).find_map(|seed| {
        let steps = imagine(seed);
        let why = tell(&steps, Some(sabotage)).err()?;
        Some((steps, why))
    });
    let (steps, why) = failing.expect("somebody notices");
    shorten(steps, why, Some(sabotage))
}

#[test]
fn a_text_that_an_act_loses_is_missed_by_the_first_law() {
    let (steps, why) = caught(Scene::lose_what_is_kept);
    assert!(steps.len() <= 4, "{why}\n{}", shown(&steps));
}

#[test]
fn a_claim_that_is_not_so_is_found_by_the_second_law() {
    let (steps, why) = caught(Scene::change_something_after_an_act);
    assert!(why.contains("is"), "{why}");
    assert!(steps.len() <= 3, "{why}\n{}", shown(&steps));
}

#[test]
fn a_key_that_is_not_as_it_is_said_is_found_too() {
    let (steps, why) = caught(Scene::change_a_key_after_an_act);
    assert!(why.contains("`k.toml:one` must be"), "{why}");
    assert!(steps.len() <= 3, "{why}\n{}", shown(&steps));
}
