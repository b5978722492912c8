//! Judging one change: the tests that come by it run, the cheapest first, until one fails.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::time::Duration;

use super::list::Mutant;
use super::place::Place;
use super::tests::{Came, MODEL_SOURCES, PATIENCE, PROGRAM_SOURCE, Test, run};
use super::tree::Tree;

/// How long the tests of one change may take.
const BUDGET: Duration = Duration::from_mins(1);

/// The same for a change that was missed before: nearly all that come by it run.
const BUDGET_AGAIN: Duration = Duration::from_mins(3);

/// The tests of the first process take at most so long, those of each further one twice as long as before: behind one that
/// fails, none is needed.
const AT_FIRST: Duration = Duration::from_millis(500);

/// A test that takes longer is asked when the others have found nothing.
const QUICK_MAX: Duration = Duration::from_secs(2);

/// A test that takes longer is not asked: in its time a dozen others judge.
const SLOW_MAX: Duration = Duration::from_secs(45);

/// What became of a change.
#[derive(Clone, Debug)]
pub(crate) enum Verdict {
    /// A test failed.
    Caught(String),
    /// A test did not end.
    Endless,
    /// So many tests came by it, and all passed.
    Missed(usize),
}

/// Switches a change on and runs what comes by it.
pub(crate) fn judge(
    tree: &Tree,
    place: &Place,
    tests: &[Test],
    (mutant, neighbours): (&Mutant, &BTreeSet<usize>),
    is_again: bool,
) -> Result<Verdict, String> {
    let budget = if is_again { BUDGET_AGAIN } else { BUDGET };
    let mut near: Vec<&Test> = tests
        .iter()
        .filter(|it| it.seen.contains(&mutant.id) && it.takes <= SLOW_MAX)
        .collect();
    if mutant.file.starts_with("crates/model") {
        near.retain(|test| test.source < PROGRAM_SOURCE);
    }
    // Who comes by much of the same file knows it best. What takes seconds waits: stories come by everything.
    let depth = |test: &Test| test.seen.intersection(neighbours).count();
    near.sort_by_key(|test| {
        (
            test.source >= MODEL_SOURCES,
            test.takes > QUICK_MAX,
            test.source >= PROGRAM_SOURCE,
            Reverse(depth(test)),
            test.takes,
        )
    });
    place.switch(mutant.id)?;
    let mut spent = Duration::ZERO;
    let mut at_once = AT_FIRST;
    let mut passed = 0;
    while let Some(first) = near.get(passed).filter(|_| spent < budget) {
        let mut takes = Duration::ZERO;
        let batch: Vec<&Test> = near
            .iter()
            .skip(passed)
            .take_while(|test| {
                let fits = takes.is_zero() || takes + test.takes <= at_once;
                takes += test.takes;
                fits && test.source == first.source
            })
            .copied()
            .collect();
        let came = match run(tree, place, &batch, PATIENCE)? {
            // What was only slow ends if it is given more time.
            Came::Endless => run(tree, place, &batch, PATIENCE * 6)?,
            came @ (Came::Passed | Came::Failed(_)) => came,
        };
        match came {
            Came::Passed => {}
            Came::Endless => return Ok(Verdict::Endless),
            Came::Failed(names) => {
                let again = batch.iter().filter(|it| names.contains(&it.name));
                let again: Vec<&Test> = again.copied().take(1).collect();
                // What fails once in a while proves nothing. A process that died named nobody.
                let is_sure = again.is_empty() || first.source < MODEL_SOURCES;
                if is_sure || run(tree, place, &again, PATIENCE)? != Came::Passed {
                    let name = again.first().map_or(&first.name, |test| &test.name);
                    return Ok(Verdict::Caught(name.clone()));
                }
            }
        }
        spent += batch.iter().map(|test| test.takes).sum::<Duration>();
        passed += batch.len();
        at_once = (at_once * 2).min(budget);
    }
    Ok(Verdict::Missed(passed))
}
