//! Drift as the journal has it: what is open, what was accepted, what is ignored; and noting what a look found.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use backout_crashpoint::crash_point;
use backout_model::drift::{
    Drift, DriftNote, HowResolved, News, OpenDrift, reconcile, subject_of_pattern,
};
use backout_model::ports::{Durability, Entry};
use backout_model::{Digest, Event, Glob, Key, Lsn, Note, NoteFilter, OperationId, Target, Topic};

use super::DriftError;
use crate::{Engine, EngineError};

/// How all drift stands.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    /// What is open, by subject.
    pub(super) open: BTreeMap<String, OpenDrift>,
    /// What somebody accepted without an operation, by subject: as long as it looks so it is no drift.
    pub(super) accepted: BTreeMap<String, (Digest, Lsn)>,
    /// What is left alone.
    pub(super) ignored: Vec<Ignored>,
}

/// A pattern, and what it matches.
#[derive(Debug)]
pub(super) struct Ignored {
    pub(super) pattern: String,
    glob: Glob,
}

impl Ignored {
    pub(super) fn of(pattern: &str) -> Self {
        Self {
            pattern: pattern.to_owned(),
            glob: Glob::new(pattern, Path::new("/")),
        }
    }

    pub(super) fn matches(&self, key: &Key) -> bool {
        match key.file() {
            Some(path) => self.glob.matches(path.as_path()),
            None => self.glob.matches(Path::new(&key.plainly())),
        }
    }
}

/// Operations that ended drift by writing, with what that was of.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// All of them.
    pub(super) all: HashMap<OperationId, Vec<Key>>,
    /// Those that made the record true again.
    pub(super) restored: HashMap<OperationId, Vec<Key>>,
}

impl Standing {
    /// Gives the pattern that a target is left alone by.
    pub(super) fn ignored_by(&self, key: &Key) -> Option<&Ignored> {
        self.ignored.iter().find(|it| it.matches(key))
    }

    /// Lists the directories that are one drift.
    pub(super) fn several(&self) -> BTreeSet<Key> {
        let open = self.open.values().filter(|it| it.drift.count > 1);
        open.map(|it| it.drift.target.key().clone()).collect()
    }
}

impl Engine {
    /// Tells how all drift stands.
    pub(super) fn drift_standing(&self) -> Result<Standing, EngineError> {
        let mut standing = Standing::default();
        for note in self.store.notes(&NoteFilter::newest(Topic::Drift))? {
            let (subject, lsn) = (note.subject, note.lsn);
            // What a newer program noted is not ours to judge.
            let Ok(body) = serde_json::from_value::<DriftNote>(note.body) else {
                continue;
            };
            match body {
                DriftNote::Detected(drift) => {
                    let drift = *drift;
                    standing.open.insert(subject, OpenDrift { drift, lsn });
                }
                DriftNote::Resolved(end) => {
                    if let (HowResolved::Accepted { by: None }, Some(mark)) = (&end.how, end.mark) {
                        standing.accepted.insert(subject, (mark, lsn));
                    }
                }
                DriftNote::Ignoring { pattern } => standing.ignored.push(Ignored::of(&pattern)),
                DriftNote::Heeding { .. } => {}
            }
        }
        Ok(standing)
    }

    /// Lists the operations that ended drift by writing, with what that was of. If one is taken back, so is the end of the drift.
    pub(super) fn drift_ended_by(&self) -> Result<Ended, EngineError> {
        let mut ended = Ended::default();
        for note in self.store.notes(&NoteFilter::all(Topic::Drift))? {
            let Ok(DriftNote::Resolved(end)) = serde_json::from_value(note.body) else {
                continue;
            };
            let by = match &end.how {
                HowResolved::Restored { by } | HowResolved::Merged { by } => *by,
                HowResolved::Recorded { by } => Some(*by),
                HowResolved::Accepted { .. }
                | HowResolved::Ignored { .. }
                | HowResolved::WentAway
                | HowResolved::Joined { .. } => None,
            };
            let Some(by) = by else {
                continue;
            };
            let key = end.target.key().clone();
            if let HowResolved::Restored { .. } = end.how {
                ended.restored.entry(by).or_default().push(key.clone());
            }
            ended.all.entry(by).or_default().push(key);
        }
        Ok(ended)
    }

    /// Notes what a look found, and what it did not find any more. Gives what was noted.
    pub(super) fn note_drift(
        &self,
        standing: &Standing,
        found: Vec<Drift>,
        is_looked_at: &dyn Fn(&Target) -> bool,
    ) -> Result<Vec<News>, EngineError> {
        let written_since = |key: &Key, place: Lsn| self.written_since(key, place);
        let news = reconcile(&standing.open, found, is_looked_at, &written_since);
        self.append_drift(&news)?;
        Ok(news)
    }

    /// Appends notes, all of them or none. They ride with the next sync: a look tells the same again.
    pub(super) fn append_drift(&self, news: &[News]) -> Result<(), EngineError> {
        if news.is_empty() {
            return Ok(());
        }
        let mut events = Vec::with_capacity(news.len());
        for it in news {
            let body = serde_json::to_value(&it.note)
                .map_err(|cause| backout_storage::StorageError::inconsistent("a note", &cause))?;
            let (agent, task) = (self.context.agent.clone(), self.context.task.clone());
            events.push(Event::Noted(Box::new(Note {
                topic: Topic::Drift,
                subject: it.subject.clone(),
                lsn: Lsn::default(),
                at: backout_model::Timestamp::default(),
                agent,
                task,
                body,
            })));
        }
        crash_point("drift.noting");
        self.store.append(&Entry::of(events), Durability::Process)?;
        crash_point("drift.noted");
        Ok(())
    }

    /// Names the operation that wrote a target, or something in it, after a place.
    pub(super) fn written_since(&self, key: &Key, place: Lsn) -> Option<OperationId> {
        let filter = backout_storage::Filter {
            at: Some(key.clone()),
            after: Some(place),
            limit: Some(1),
            ..backout_storage::Filter::default()
        };
        let found = self.store.operations(&filter).unwrap_or_default();
        found.first().map(|operation| operation.id)
    }

    /// Leaves alone what a pattern matches, and says so of what is open.
    pub(super) fn ignore_drift(&self, pattern: &str) -> Result<Vec<News>, EngineError> {
        check_pattern(pattern)?;
        let standing = self.drift_standing()?;
        let ignored = Ignored::of(pattern);
        let mut news = Vec::new();
        if !standing.ignored.iter().any(|it| it.pattern == pattern) {
            news.push(News {
                subject: subject_of_pattern(pattern),
                note: DriftNote::Ignoring {
                    pattern: pattern.to_owned(),
                },
            });
        }
        for (subject, known) in &standing.open {
            let target = &known.drift.target;
            if ignored.matches(target.key()) {
                let how = HowResolved::Ignored {
                    pattern: pattern.to_owned(),
                };
                news.push(ended(subject, known, how, None));
            }
        }
        self.append_drift(&news)?;
        Ok(news)
    }

    /// Looks again at what a pattern matches.
    pub(super) fn heed_drift(&self, pattern: &str) -> Result<Vec<News>, EngineError> {
        let standing = self.drift_standing()?;
        if !standing.ignored.iter().any(|it| it.pattern == pattern) {
            let pattern = pattern.to_owned();
            return Err(DriftError::NotIgnored { pattern }.into());
        }
        let news = vec![News {
            subject: subject_of_pattern(pattern),
            note: DriftNote::Heeding {
                pattern: pattern.to_owned(),
            },
        }];
        self.append_drift(&news)?;
        Ok(news)
    }
}

/// Says no to what would match nothing: a pattern is read from the root, by whoever asks for it.
fn check_pattern(pattern: &str) -> Result<(), DriftError> {
    let unfit = |why: String| DriftError::Pattern {
        pattern: pattern.to_owned(),
        why,
    };
    Glob::read(pattern, Path::new("/")).map_err(|error| unfit(error.to_string()))?;
    if !pattern.starts_with('/') {
        return Err(unfit("it does not begin with a `/`".to_owned()));
    }
    Ok(())
}

/// Says how a drift ended.
pub(super) fn ended(
    subject: &str,
    known: &OpenDrift,
    how: HowResolved,
    mark: Option<Digest>,
) -> News {
    News {
        subject: subject.to_owned(),
        note: DriftNote::Resolved(Box::new(backout_model::drift::Resolved {
            target: known.drift.target.clone(),
            detected: known.lsn,
            how,
            mark,
        })),
    }
}
