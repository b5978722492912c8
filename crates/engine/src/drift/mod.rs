//! Drift: finding it, telling it, and what people decide about it.
//!
//! ```text
//! a read or a plan ─┐                              ┌─► accept   the world is right: an operation keeps it
//! drift             ├─► sweep ─► tell ─► notes ────┼─► restore  the record is right: a write like any other
//! watch ────────────┘  (look)   (group)  (journal) ├─► merge    both are
//!                                                  └─► ignore   a pattern
//! ```
//!
//! - A look changes nothing but notes, and a read that would have to wait for somebody notes nothing.
//! - What is decided is bound to what was told: if the target changed again, nothing happens.
//!
//! Design: `docs/design/drift.md`.

mod accept;
mod asking;
mod claims;
mod error;
mod hints;
mod index;
mod merge;
mod moves;
mod notes;
mod now;
mod passive;
mod recorded;
mod resolve;
mod restore;
mod sweep;
mod tell;
mod watcher;

use backout_model::drift::{Drift, DriftKind, DriftNote, News, Resolved, Seen};
use backout_model::{Key, Lsn, NoteFilter, OperationId, Target, TargetPath, Timestamp, Topic};
use serde::{Deserialize, Serialize};

use crate::{Engine, EngineError, Reply};

pub use error::DriftError;
use sweep::{Extent, Swept};
pub use watcher::{Round, Watched, Watcher};

/// How many lines of history are told.
const HISTORY_MAX: usize = 1_000;

/// What to do about drift.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DriftCommand {
    /// List what is open, after another look at it and at what is named.
    List {
        /// Only at or below these; none means everything.
        #[serde(default)]
        below: Vec<Key>,
        /// Also what was noted before, newest first.
        #[serde(default)]
        all: bool,
    },
    /// Look at all that was recorded.
    Look {
        /// Only at or below these; none means everything.
        #[serde(default)]
        below: Vec<Key>,
    },
    /// The world is right.
    Accept {
        /// What has drifted, with all below.
        targets: Vec<Key>,
    },
    /// The record is right.
    Restore {
        /// What has drifted, with all below.
        targets: Vec<Key>,
    },
    /// Both are right, as far as they do not meet.
    Merge {
        /// What has drifted, with all below.
        targets: Vec<Key>,
    },
    /// Leave alone what a pattern matches.
    Ignore {
        /// The pattern, from the root.
        pattern: String,
    },
    /// Look again at what a pattern matches.
    Heed {
        /// The pattern, from the root.
        pattern: String,
    },
}

impl DriftCommand {
    /// Tells whether it only looks.
    pub const fn only_looks(&self) -> bool {
        matches!(self, Self::List { .. } | Self::Look { .. })
    }
}

impl DriftCommand {
    /// Tells whether it is a decision about nothing.
    const fn names_nothing(&self) -> bool {
        match self {
            Self::Accept { targets } | Self::Restore { targets } | Self::Merge { targets } => {
                targets.is_empty()
            }
            Self::List { .. } | Self::Look { .. } | Self::Ignore { .. } | Self::Heed { .. } => {
                false
            }
        }
    }
}

/// Open drift, and how a look at it went.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct DriftReport {
    /// What is open, by name.
    pub open: Vec<DriftView>,
    /// What was noted, newest first, if that was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<DriftHistory>,
    /// Patterns of what is left alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
    /// How many targets were compared.
    pub targets: usize,
    /// How many differ, and may be the work of a command under way: they are looked at again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub deferred: usize,
    /// What could not be looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unanswered: Vec<Unanswered>,
    /// The present moment, to tell ages by.
    pub now: Timestamp,
}

/// One open drift.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DriftView {
    /// What it is noted under.
    pub subject: String,
    /// Where in the journal.
    pub lsn: Lsn,
    /// As the journal has it.
    #[serde(flatten)]
    pub drift: Drift,
}

/// One line of the history of drift.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DriftHistory {
    /// What it was noted under.
    pub subject: String,
    /// Where in the journal.
    pub lsn: Lsn,
    /// When it was noted.
    pub at: Timestamp,
    /// As it stands in the journal.
    #[serde(flatten)]
    pub note: DriftNote,
}

/// An operation whose targets could not be looked at.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Unanswered {
    /// It may have drifted.
    pub operation: OperationId,
    /// Why not.
    pub why: String,
}

/// What became of drift that somebody decided about.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct DriftDecided {
    /// Drift that is over.
    pub resolved: Vec<Resolved>,
    /// A pattern that is left alone from here on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignoring: Option<String>,
    /// A pattern that is looked at again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heeding: Option<String>,
    /// Things worth knowing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Engine {
    /// Carries out a command about drift.
    pub(crate) fn drift(&self, command: DriftCommand) -> Result<Reply, EngineError> {
        if !command.only_looks() {
            self.check_decides_drift()?;
        }
        if command.names_nothing() {
            return Err(DriftError::NoTarget.into());
        }
        match command {
            DriftCommand::List { below, all } => self.list_drift(&below, all).map(Reply::Drift),
            DriftCommand::Look { below } => {
                let extent = Extent {
                    below: &below,
                    ..Extent::default()
                };
                let (swept, _) = self.look_for_drift(&extent, Seen::Active)?;
                let mut report = self.open_drift(&below)?;
                report.take(swept);
                Ok(Reply::Drift(report))
            }
            DriftCommand::Accept { targets } => self.accept_drift(&targets).map(decided),
            DriftCommand::Restore { targets } => self.restore_drift(&targets).map(decided),
            DriftCommand::Merge { targets } => self.merge_drift(&targets).map(decided),
            DriftCommand::Ignore { pattern } => {
                let news = self.ignore_drift(&pattern)?;
                Ok(decided(DriftDecided {
                    ignoring: Some(pattern),
                    ..DriftDecided::of(news)
                }))
            }
            DriftCommand::Heed { pattern } => {
                self.heed_drift(&pattern)?;
                Ok(decided(DriftDecided {
                    heeding: Some(pattern),
                    ..DriftDecided::default()
                }))
            }
        }
    }

    /// Looks, and notes what it found. Gives what was noted.
    fn look_for_drift(
        &self,
        extent: &Extent<'_>,
        seen: Seen,
    ) -> Result<(Swept, Vec<News>), EngineError> {
        let standing = self.drift_standing()?;
        let swept = self.sweep(extent, &standing)?;
        let told = self.told_drift(&swept, &standing, (seen, extent.witness))?;
        let found: Vec<Drift> = told.into_iter().map(|it| it.drift).collect();
        let is_looked_at = |target: &Target| {
            let key = target.key();
            let known = standing.open.values().find(|it| it.drift.target == *target);
            let is_unanswered = known.is_some_and(|known| {
                let by = known.drift.expected.by;
                swept.unanswered.iter().any(|(id, _)| *id == by)
            });
            let mut deferred = swept.deferred.iter();
            extent.holds(key) && !is_unanswered && !deferred.any(|it| it.is_at_or_below(key))
        };
        let news = self.note_drift(&standing, found, &is_looked_at)?;
        Ok((swept, news))
    }

    fn list_drift(&self, below: &[Key], all: bool) -> Result<DriftReport, EngineError> {
        let standing = self.drift_standing()?;
        let is_meant =
            |key: &Key| below.is_empty() || below.iter().any(|it| key.is_at_or_below(it));
        let known = standing.open.values().map(|it| &it.drift);
        let meant = known.filter(|drift| is_meant(drift.target.key()));
        let mut open: Vec<Key> = meant.map(looked_at_by).collect();
        open.extend_from_slice(below);
        let mut swept = None;
        // What is told is what another look finds; who cannot note that says what was noted.
        if !open.is_empty() && self.store.is_free() {
            let extent = Extent {
                below: &open,
                ..Extent::default()
            };
            swept = self
                .look_for_drift(&extent, Seen::Passive)
                .map(|(swept, _)| swept)
                .ok();
        }
        let mut report = self.open_drift(below)?;
        if let Some(swept) = swept {
            report.take(swept);
        }
        if all {
            let filter = NoteFilter {
                limit: Some(HISTORY_MAX),
                ..NoteFilter::all(Topic::Drift)
            };
            for note in self.store.notes(&filter)? {
                if let Ok(body) = serde_json::from_value(note.body) {
                    report.history.push(DriftHistory {
                        subject: note.subject,
                        lsn: note.lsn,
                        at: note.at,
                        note: body,
                    });
                }
            }
        }
        Ok(report)
    }

    /// Lists what is open, as it was noted.
    pub(crate) fn open_drift(&self, below: &[Key]) -> Result<DriftReport, EngineError> {
        let standing = self.drift_standing()?;
        let is_meant =
            |key: &Key| below.is_empty() || below.iter().any(|it| key.is_at_or_below(it));
        // An agent that is one of several is told of its own work.
        let agent = self
            .context
            .agent
            .as_ref()
            .filter(|_| self.context.is_inside);
        let is_own = |drift: &Drift| agent.is_none() || drift.expected.agent.as_ref() == agent;
        let open = standing.open.into_iter();
        let open = open.filter(|(_, it)| is_meant(it.drift.target.key()) && is_own(&it.drift));
        let view = |(subject, it): (String, backout_model::drift::OpenDrift)| DriftView {
            subject,
            lsn: it.lsn,
            drift: it.drift,
        };
        Ok(DriftReport {
            open: open.map(view).collect(),
            ignored: standing.ignored.into_iter().map(|it| it.pattern).collect(),
            now: self.now(),
            ..DriftReport::default()
        })
    }

    /// Tells whether something, or anything in it, or something that holds it, is open drift.
    pub fn is_open_drift(&self, key: &Key) -> Result<bool, EngineError> {
        let standing = self.drift_standing()?;
        let mut open = standing.open.values().map(|it| it.drift.target.key());
        Ok(open.any(|own| own.is_at_or_below(key) || key.is_at_or_below(own)))
    }

    /// Counts the targets that have drifted, as far as was noted. What was written since is looked at again: that may have ended it.
    pub(crate) fn drifted(&self) -> Result<u64, EngineError> {
        let standing = self.drift_standing()?;
        let open = standing.open.values();
        let written = open.filter(|it| {
            let key = it.drift.target.key();
            self.written_since(key, it.lsn).is_some()
        });
        let below: Vec<Key> = written.map(|it| looked_at_by(&it.drift)).collect();
        if !below.is_empty() && self.store.is_free() {
            let extent = Extent {
                below: &below,
                ..Extent::default()
            };
            // Whoever cannot note it counts what was noted.
            let _looked = self.look_for_drift(&extent, Seen::Passive);
        }
        let open = self.open_drift(&[])?.open;
        Ok(open.iter().map(|it| it.drift.count).sum())
    }

    /// Says no to an agent: it may read drift, and a person decides.
    fn check_decides_drift(&self) -> Result<(), EngineError> {
        let context = &self.context;
        let is_agents = context.agent.is_some()
            || context.is_inside
            || context.within.is_some()
            || context
                .forebears
                .iter()
                .any(|it| it.agent.is_some() || it.within.is_some());
        if is_agents {
            return Err(DriftError::NotYours.into());
        }
        Ok(())
    }
}

impl DriftReport {
    fn take(&mut self, swept: Swept) {
        self.targets = swept.targets;
        self.deferred = swept.deferred.len();
        let unanswered = swept.unanswered.into_iter();
        let unanswered = unanswered.map(|(operation, why)| Unanswered { operation, why });
        self.unanswered = unanswered.collect();
    }
}

impl DriftDecided {
    fn of(news: Vec<News>) -> Self {
        let ended = news.into_iter().filter_map(|it| match it.note {
            DriftNote::Resolved(end) => Some(*end),
            DriftNote::Detected(_) | DriftNote::Ignoring { .. } | DriftNote::Heeding { .. } => None,
        });
        Self {
            resolved: ended.collect(),
            ..Self::default()
        }
    }
}

/// Gives where to look for a drift again: what is new is seen by a look at its directory.
fn looked_at_by(drift: &Drift) -> Key {
    let key = drift.target.key();
    let parent = key.file().and_then(TargetPath::parent);
    match parent.filter(|_| drift.kind == DriftKind::Added) {
        Some(parent) => parent.into(),
        None => key.clone(),
    }
}

fn decided(decided: DriftDecided) -> Reply {
    Reply::DriftDecided(decided)
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands a reference over"
)]
const fn is_zero(count: &usize) -> bool {
    *count == 0
}
