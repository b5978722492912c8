//! Tells one story after the other.

use crate::runner::Tally;
use crate::shrink::{shrink, tell_safely};
use crate::story::Story;

/// How many stories are told where nothing else is asked for.
const STORIES: u64 = 200;

pub(crate) fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Stories that did not hold once.
const RETOLD: [u64; 15] = [
    280, 295, 351, 580, 581, 739, 1220, 1418, 1729, 1939, 2074, 2354, 2722, 4408, 4624,
];

#[test]
fn stories_that_did_not_hold_once_hold() {
    for seed in RETOLD {
        if let Err(failure) = tell_safely(&Story::of(seed), None) {
            panic!("seed {seed}, at step {}: {}", failure.step, failure.what);
        }
    }
}

#[test]
fn every_story_ends_exact_or_with_a_conflict_that_somebody_caused() {
    let one = number("BACKOUT_MODEL_SEED");
    let first = one.or_else(|| number("BACKOUT_MODEL_FROM")).unwrap_or(0);
    let count = one.map_or_else(|| number("BACKOUT_MODEL_STORIES").unwrap_or(STORIES), |_| 1);
    let mut all = Tally::default();
    for seed in first..first + count {
        let story = Story::of(seed);
        match tell_safely(&story, None) {
            Ok(tally) => all.add(&tally),
            Err(failure) => {
                let (short, failure) = shrink(&story, failure, None);
                panic!(
                    "seed {seed} (BACKOUT_MODEL_SEED={seed}), at step {}: {}\n{}",
                    failure.step,
                    failure.what,
                    short.told()
                );
            }
        }
    }
    eprintln!("{count} stories: {all:?}");
}
