//! Judging one change: the tests that come by it run, the cheapest first, until one fails.

use std::time::Duration;

use super::list::Mutant;
use super::tests::{Came, Test, run};
use super::tree::Tree;

/// How many seconds of tests one change is given.
const BUDGET: Duration = Duration::from_secs(90);

/// The tests of one process take at most so long: behind one that fails, none is needed.
const AT_ONCE: Duration = Duration::from_secs(2);

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
pub(crate) fn judge(tree: &Tree, tests: &[Test], mutant: &Mutant) -> Result<Verdict, String> {
    let mut near: Vec<&Test> = tests
        .iter()
        .filter(|it| it.seen.contains(&mutant.id))
        .collect();
    near.sort_by_key(|test| (test.source, test.takes));
    tree.switch(mutant.id)?;
    let mut spent = Duration::ZERO;
    let mut passed = 0;
    while let Some(first) = near.get(passed).filter(|_| spent < BUDGET) {
        let mut takes = Duration::ZERO;
        let batch: Vec<&Test> = near
            .iter()
            .skip(passed)
            .take_while(|test| {
                let fits = takes.is_zero() || takes + test.takes <= AT_ONCE;
                takes += test.takes;
                fits && test.source == first.source
            })
            .copied()
            .collect();
        match run(tree, &batch)? {
            Came::Passed => {}
            Came::Endless => return Ok(Verdict::Endless),
            Came::Failed(names) => {
                let again = batch.iter().filter(|it| names.contains(&it.name));
                let again: Vec<&Test> = again.copied().take(1).collect();
                // What fails once in a while proves nothing. A process that died named nobody.
                if again.is_empty() || run(tree, &again)? != Came::Passed {
                    let name = again.first().map_or(&first.name, |test| &test.name);
                    return Ok(Verdict::Caught(name.clone()));
                }
            }
        }
        spent += batch.iter().map(|test| test.takes).sum::<Duration>();
        passed += batch.len();
    }
    Ok(Verdict::Missed(passed))
}
