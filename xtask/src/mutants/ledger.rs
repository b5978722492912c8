//! What became of each change, in a file, so that a round that was cut goes on where it was.
//!
//! A line holds as long as the function that was changed is the same. What was missed is made again when somebody asks for
//! it: tests may have come since.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use super::judge::Verdict;
use super::list::Mutant;

/// How a line goes on after the name of a change that no test noticed.
const MISSED: &str = "  MISSED  ";

/// The outcomes so far.
pub(crate) struct Ledger {
    path: PathBuf,
    /// By what was changed: where that is, and what became of it.
    lines: BTreeMap<String, (String, String)>,
}

impl Ledger {
    /// Reads what is known of some changes.
    pub(crate) fn open(path: PathBuf, mutants: &[Mutant]) -> Self {
        let text = fs::read_to_string(&path).unwrap_or_default();
        let known: BTreeMap<&str, &str> = text.lines().filter_map(read).collect();
        let lines = mutants.iter().filter_map(|mutant| {
            let became = known.get(mutant.key.as_str())?;
            Some((
                mutant.key.clone(),
                (mutant.name.clone(), (*became).to_owned()),
            ))
        });
        let lines = lines.collect();
        Self { path, lines }
    }

    /// Tells whether a change need not be made: it was caught, or missed and nobody asks again.
    pub(crate) fn is_known(&self, mutant: &Mutant, is_again: bool) -> bool {
        let line = self.lines.get(&mutant.key);
        line.is_some_and(|(_, became)| !is_again || !became.starts_with(MISSED))
    }

    /// Notes what became of a change.
    pub(crate) fn note(&mut self, mutant: &Mutant, verdict: &Verdict) -> Result<(), String> {
        let became = match verdict {
            Verdict::Caught(test) => format!("  caught  by {test}"),
            Verdict::Endless => "  endless  ".to_owned(),
            Verdict::Missed(count) => format!("{MISSED}by {count} tests"),
        };
        let line = (mutant.name.clone(), became);
        self.lines.insert(mutant.key.clone(), line);
        let lines = self.lines.iter();
        let all = lines.map(|(key, (name, became))| format!("{key} {name}{became}\n"));
        fs::write(&self.path, all.collect::<String>()).map_err(|error| error.to_string())
    }

    /// Counts the changes of a folder that were caught, and names those that were missed.
    pub(crate) fn count(&self, folder: &str) -> (usize, Vec<&str>) {
        let there = self.lines.values().filter(|it| it.0.starts_with(folder));
        let (missed, caught): (Vec<_>, Vec<_>) = there.partition(|it| it.1.starts_with(MISSED));
        let mut missed: Vec<&str> = missed.into_iter().map(|it| it.0.as_str()).collect();
        missed.sort_unstable();
        (caught.len(), missed)
    }
}

/// The key of a line and what became of it.
fn read(line: &str) -> Option<(&str, &str)> {
    let (key, rest) = line.split_once(' ')?;
    let at = ["  caught  ", "  endless  ", MISSED].map(|it| rest.rfind(it));
    let at = at.into_iter().flatten().max()?;
    Some((key, rest.get(at..)?))
}
