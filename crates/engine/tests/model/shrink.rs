//! Makes a failing story short: leaves out steps and entries of the tree as long as it still fails.

use crate::runner::{Failure, Sabotage, Tally, tell};
use crate::story::Story;

/// How often a story is told anew at most while it is made shorter.
const TELLINGS_MAX: usize = 600;

/// Tells a story; a panic is a failure like any other.
pub(crate) fn tell_safely(story: &Story, sabotage: Option<Sabotage>) -> Result<Tally, Failure> {
    let told = std::panic::catch_unwind(|| tell(story, sabotage));
    told.unwrap_or_else(|_| {
        Err(Failure {
            step: usize::MAX,
            what: "it panicked".to_owned(),
        })
    })
}

/// Gives the shortest story found that still fails, and how it fails.
pub(crate) fn shrink(
    story: &Story,
    failure: Failure,
    sabotage: Option<Sabotage>,
) -> (Story, Failure) {
    let mut best = (story.clone(), failure);
    let told = crate::telling::number("BACKOUT_MODEL_TELLINGS");
    let mut left = told.map_or(TELLINGS_MAX, |told| usize::try_from(told).unwrap());
    let mut is_shorter = true;
    while is_shorter && left > 0 {
        is_shorter = shorten(&mut best, sabotage, &mut left, |story| &mut story.steps);
        is_shorter |= shorten(&mut best, sabotage, &mut left, |story| &mut story.tree);
    }
    best
}

/// Leaves out halves, quarters and so on down to single parts. Tells whether anything could be left out.
fn shorten<T>(
    best: &mut (Story, Failure),
    sabotage: Option<Sabotage>,
    left: &mut usize,
    parts: impl Fn(&mut Story) -> &mut Vec<T>,
) -> bool {
    let mut is_shorter = false;
    let mut size = parts(&mut best.0).len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        while at < parts(&mut best.0).len() && *left > 0 {
            let mut story = best.0.clone();
            let list = parts(&mut story);
            let end = (at + size).min(list.len());
            list.drain(at..end);
            *left -= 1;
            match tell_safely(&story, sabotage) {
                Err(failure) => {
                    *best = (story, failure);
                    is_shorter = true;
                }
                Ok(_) => at += size,
            }
        }
        size /= 2;
    }
    is_shorter
}
