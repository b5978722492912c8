//! Random stories on random trees, told to the real engine and to an oracle in memory. The store is one of SQLite;
//! `tests/model_memory` tells the same stories to an engine with a store in memory.
//!
//! After every step the whole tree is compared: an undo is exact to the bit, or a conflict that somebody else caused is
//! reported and nothing changed, or their work is merged and all there. A failing story is made short and printed
//! with its seed.
//!
//! - `BACKOUT_MODEL_STORIES=5000` tells so many stories, `BACKOUT_MODEL_FROM=100` begins at that seed;
//! - `BACKOUT_MODEL_SEED=77` tells one;
//! - `BACKOUT_MODEL_TELLINGS=0` tells a failing one so often anew to make it short;
//! - `TMPDIR` chooses the file system.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod death;
mod dice;
mod foreign;
mod foresee;
mod mixed;
mod names;
mod oracle;
mod request;
mod runner;
mod seen;
mod shelf;
mod shrink;
mod story;
mod telling;
mod tree;
mod verdict;

use shrink::{shrink, tell_safely};
use story::Story;

/// Finds a story that shows a fault, and makes it short.
fn caught(sabotage: runner::Sabotage) -> (Story, runner::Failure) {
    let failing = (0..120).find_map(|seed| {
        let story = Story::of(seed * 3);
        let failure = tell_safely(&story, Some(sabotage)).err()?;
        Some((story, failure))
    });
    let (story, failure) = failing.expect("somebody notices");
    shrink(&story, failure, Some(sabotage))
}

#[test]
fn an_undo_that_gets_one_bit_of_a_mode_wrong_is_caught_and_told_in_a_few_steps() {
    let (story, failure) = caught(|root| {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = root.metadata().unwrap().permissions().mode() ^ 0o001;
        std::fs::set_permissions(root, std::fs::Permissions::from_mode(mode)).unwrap();
    });
    assert!(failure.what.contains("must be"), "{}", failure.what);
    assert!(story.steps.len() <= 2, "{}", story.told());
    assert!(story.tree.len() <= 2, "{}", story.told());
}

#[test]
fn an_undo_that_takes_a_bystander_along_is_caught_and_told_in_a_few_steps() {
    let (story, failure) = caught(|root| {
        for entry in std::fs::read_dir(root).unwrap() {
            let path = entry.unwrap().path();
            if path.symlink_metadata().unwrap().is_file() {
                return std::fs::remove_file(path).unwrap();
            }
        }
    });
    assert!(failure.what.contains("but is  None"), "{}", failure.what);
    assert!(story.steps.len() <= 3, "{}", story.told());
    assert!(story.tree.len() <= 3, "{}", story.told());
}

#[test]
fn the_child_of_a_story() {
    death::be_a_child();
}
