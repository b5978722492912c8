//! What to note after a look: what is new or another one now, and what is over.

use std::collections::{BTreeMap, BTreeSet};

use super::{Drift, DriftNote, HowResolved, Resolved, subject_of};
use crate::{Digest, Key, Lsn, OperationId, Target};

/// A drift that is open, or one that was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenDrift {
    /// What was noted.
    pub drift: Drift,
    /// Where in the journal.
    pub lsn: Lsn,
}

/// Something to note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    /// What it is noted under.
    pub subject: String,
    /// What is said.
    pub note: DriftNote,
}

/// Decides what to note. `open` is what is open, by subject; `found` is what a look found; `is_looked_at` tells whether the look was
/// wide enough to know that what it did not find is not there; `written_since` names an operation that wrote a target after a place.
pub fn reconcile(
    open: &BTreeMap<String, OpenDrift>,
    found: Vec<Drift>,
    is_looked_at: &dyn Fn(&Target) -> bool,
    written_since: &dyn Fn(&Key, Lsn) -> Option<OperationId>,
) -> Vec<News> {
    let mut news = Vec::new();
    let mut still: BTreeMap<String, Digest> = BTreeMap::new();
    let homes: Vec<Key> = found
        .iter()
        .filter(|drift| drift.count > 1)
        .map(|drift| drift.target.key().clone())
        .collect();
    let told: BTreeSet<String> = found.iter().map(|it| subject_of(&it.target)).collect();
    let stays = |subject: &str, known: &OpenDrift| {
        told.contains(subject) || !is_looked_at(&known.drift.target)
    };
    for mut drift in found {
        let subject = subject_of(&drift.target);
        still.insert(subject.clone(), drift.found.mark);
        match open.get(&subject) {
            Some(known) if known.drift.found.mark == drift.found.mark => continue,
            // Since when it is not as recorded does not change by another change.
            Some(known) if known.drift.expected.by == drift.expected.by => {
                drift.since.right = known.drift.since.right;
                drift.since.seen = known.drift.since.seen;
            }
            // It is told with its directory, and whoever looks at all of that tells it anew.
            None if is_covered(open, &drift, &stays) => continue,
            Some(_) | None => {}
        }
        news.push(News {
            subject,
            note: DriftNote::Detected(Box::new(drift)),
        });
    }
    for (subject, known) in open {
        let target = &known.drift.target;
        if still.contains_key(subject) || !is_looked_at(target) {
            continue;
        }
        let home = homes
            .iter()
            .find(|home| target.key().is_at_or_below(home) && *home != target.key());
        let how = match (home, written_since(target.key(), known.lsn)) {
            (Some(into), _) => HowResolved::Joined { into: into.clone() },
            (None, Some(by)) => HowResolved::Recorded { by },
            (None, None) => HowResolved::WentAway,
        };
        news.push(News {
            subject: subject.clone(),
            note: DriftNote::Resolved(Box::new(Resolved {
                target: target.clone(),
                detected: known.lsn,
                how,
                mark: None,
            })),
        });
    }
    news
}

/// Tells whether a directory that is open as one drift, and stays so, holds it.
fn is_covered(
    open: &BTreeMap<String, OpenDrift>,
    drift: &Drift,
    stays: &dyn Fn(&str, &OpenDrift) -> bool,
) -> bool {
    let is_home = |(subject, known): (&String, &OpenDrift)| {
        known.drift.count > 1
            && drift.target.key().is_at_or_below(known.drift.target.key())
            && stays(subject, known)
    };
    drift.count == 1 && open.iter().any(is_home)
}

#[cfg(test)]
#[path = "reconcile_tests.rs"]
mod tests;
