//! What people decide about drift, bound to what was told of it.

use backout_model::drift::{HowResolved, News, OpenDrift, Seen, subject_of};
use backout_model::{Digest, Key, OperationId, Target};

use super::notes::ended;
use super::sweep::{Candidate, Extent};
use super::{DriftDecided, DriftError, looked_at_by};
use crate::{Engine, EngineError};

/// A drift that somebody decides about, as another look found it.
#[derive(Clone)]
pub(super) struct Decided {
    pub(super) subject: String,
    pub(super) known: OpenDrift,
    /// What differs.
    pub(super) members: Vec<Candidate>,
    /// The part of it that is meant, if it is not all.
    pub(super) part: Option<Key>,
}

/// What was done about drift, and what was not.
#[derive(Default)]
pub(super) struct Done {
    news: Vec<News>,
    pub(super) notes: Vec<String>,
    left: Vec<EngineError>,
    is_any: bool,
    /// Drift of which a part was decided: the rest is another finding.
    parted: Vec<Key>,
}

impl Done {
    /// Notes what became of one drift. Tells whether to go on with the others.
    pub(super) fn take(
        &mut self,
        decided: &Decided,
        how: Result<HowResolved, EngineError>,
    ) -> bool {
        let how = match how {
            Ok(how) => how,
            Err(error) => {
                let goes_on = !error.is_stop();
                self.left.push(error);
                return goes_on;
            }
        };
        self.is_any = true;
        let drift = &decided.known.drift;
        let (by, said) = match &how {
            HowResolved::Accepted { by } => (*by, "accepted as it is"),
            HowResolved::Merged { by } => (*by, "merged with what was recorded"),
            HowResolved::Restored { by } => (*by, "made what was recorded"),
            HowResolved::Ignored { .. }
            | HowResolved::WentAway
            | HowResolved::Recorded { .. }
            | HowResolved::Joined { .. } => (None, "settled"),
        };
        if let Some(part) = &decided.part {
            let by = by
                .map(|by| format!(" by {}", by.short()))
                .unwrap_or_default();
            let whole = &drift.target;
            self.notes.push(format!(
                "`{part}` was {said}{by}; `{whole}` holds more that has drifted"
            ));
            self.parted.push(whole.key().clone());
            if let HowResolved::Restored { by: Some(_) } = how {
                for it in &decided.members {
                    self.part_ended(decided, it, how.clone(), None);
                }
            }
            return true;
        }
        let mark = by.is_none().then_some(drift.found.mark);
        self.news
            .push(ended(&decided.subject, &decided.known, how, mark));
        true
    }

    /// Notes that one of several is accepted as long as it stays so.
    pub(super) fn accepted(&mut self, decided: &Decided, it: &Candidate) {
        let how = HowResolved::Accepted { by: None };
        self.part_ended(decided, it, how, Some(it.differing.mark));
    }

    fn part_ended(
        &mut self,
        decided: &Decided,
        it: &Candidate,
        how: HowResolved,
        mark: Option<Digest>,
    ) {
        let target = &it.differing.target;
        let mut known = decided.known.clone();
        known.drift.target = target.clone();
        self.news
            .push(ended(&subject_of(target), &known, how, mark));
    }

    /// Names one more operation that a decision took.
    pub(super) fn also(&mut self, target: &Target, by: OperationId) {
        let by = by.short();
        self.notes.push(format!(
            "`{target}` took {by} as well, which is undone by itself"
        ));
    }
}

impl Engine {
    /// Finds the drift that is meant, and looks at it again: what changed since it was told is not decided about.
    pub(super) fn decided_drift(&self, targets: &[Key]) -> Result<Vec<Decided>, EngineError> {
        let standing = self.drift_standing()?;
        let mut meant: Vec<(String, OpenDrift, Option<Key>)> = Vec::new();
        for key in targets {
            let before = meant.len();
            for (subject, known) in &standing.open {
                let own = known.drift.target.key();
                let part = match (own.is_at_or_below(key), key.is_at_or_below(own)) {
                    (true, _) => None,
                    (false, true) if known.drift.count > 1 => Some(key.clone()),
                    (false, _) => continue,
                };
                if meant.iter().all(|(other, ..)| other != subject) {
                    meant.push((subject.clone(), known.clone(), part));
                }
            }
            if meant.len() == before {
                let what = key.to_string();
                return Err(DriftError::Unknown { what }.into());
            }
        }
        let below: Vec<Key> = meant
            .iter()
            .map(|(_, known, _)| looked_at_by(&known.drift))
            .collect();
        let extent = Extent {
            below: &below,
            ..Extent::default()
        };
        let swept = self.sweep(&extent, &standing)?;
        let told = self.told_drift(&swept, &standing, (Seen::Active, None))?;
        let mut decided = Vec::new();
        for (subject, known, part) in meant {
            let target = known.drift.target.key().clone();
            let now = told
                .iter()
                .find(|it| subject_of(&it.drift.target) == subject);
            let Some(now) = now.filter(|now| now.drift.found.mark == known.drift.found.mark) else {
                // The next who asks is told what it is now.
                self.look_for_drift(&extent, Seen::Active)?;
                return Err(DriftError::Changed { target }.into());
            };
            let mut members = now.members.clone();
            if let Some(part) = &part {
                members.retain(|it| it.differing.target.key().is_at_or_below(part));
                if members.is_empty() {
                    let what = part.to_string();
                    return Err(DriftError::Unknown { what }.into());
                }
            }
            decided.push(Decided {
                subject,
                known,
                members,
                part,
            });
        }
        Ok(decided)
    }

    /// Notes what was done; what was not is the error, with all that was.
    pub(super) fn done_about_drift(&self, mut done: Done) -> Result<DriftDecided, EngineError> {
        if let Err(error) = self.append_drift(&done.news) {
            done.left.push(error);
        }
        if !done.parted.is_empty() {
            let extent = Extent {
                below: &done.parted,
                ..Extent::default()
            };
            // Whoever decides about the rest looks again in any case.
            let _told = self.look_for_drift(&extent, Seen::Active);
        }
        let decided = DriftDecided {
            notes: done.notes,
            ..DriftDecided::of(done.news)
        };
        match done.left.len() {
            0 => Ok(decided),
            1 if !done.is_any => Err(done.left.remove(0)),
            _ => Err(DriftError::Partly {
                done: Box::new(decided),
                left: done.left,
            }
            .into()),
        }
    }
}
