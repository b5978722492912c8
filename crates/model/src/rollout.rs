//! A rollout: one change of several targets, wave by wave, each checked before the next.
//!
//! The plan is a record, and so is each mark on the way. Where a rollout stands, and what whoever takes it up has to do
//! next, follows from these by pure functions. Design: `docs/design/rollout.md`.

use std::ops::Range;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{
    AgentId, Digest, Event, KeptRequest, OperationId, Owner, Record, TargetPath, TaskId,
    TaskStatus, any_path,
};

/// What a rollout is to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RolloutPlan {
    /// Its name.
    pub id: OperationId,
    /// The task that its writes belong to, which people call it by.
    pub task: TaskId,
    /// Who asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// What it writes, in this order.
    pub steps: Vec<RolloutStep>,
    /// How many targets the first wave has.
    pub first: u32,
    /// How many targets each later wave has.
    pub wave: u32,
    /// How long a wave has to settle before it is checked.
    pub pause_ms: u64,
    /// How a wave is checked; none goes by the gates alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<WaveCheck>,
    /// What is taken back when a wave fails.
    #[serde(default)]
    pub on_failure: OnWaveFailure,
}

/// One write of a rollout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RolloutStep {
    /// What is written.
    pub target: TargetPath,
    /// What is asked.
    pub request: KeptRequest,
    /// The digest of what was staged when the rollout began: what the target was, and what it is to become.
    pub staged: Digest,
    /// The files that it really wrote to then, wherever links led; none if that was not noted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<TargetPath>,
}

/// What must hold after a wave before the next one begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaveCheck {
    /// A line for the shell. With `{target}` in it, it is for each target of the wave; otherwise once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// An address that has to answer with 200.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
    /// Where the line runs.
    #[serde(with = "any_path")]
    pub directory: PathBuf,
    /// How often it may fail in a row.
    pub tries: u32,
    /// How long one look may take.
    pub timeout_ms: u64,
}

/// What is taken back when a wave fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnWaveFailure {
    /// Those before it stay.
    #[default]
    Wave,
    /// That wave and all before it.
    All,
}

/// Where a rollout has come to, as whoever carries it out says. Waves count from 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "mark", rename_all = "kebab-case")]
pub enum RolloutMark {
    /// A wave is being written and checked.
    Wave {
        /// The number of the wave, from 1.
        wave: u32,
    },
    /// A wave is written and passed its check.
    Passed {
        /// The number of the wave, from 1.
        wave: u32,
    },
    /// A gate wants somebody to decide about a write of the wave.
    Waits {
        /// The number of the wave, from 1.
        wave: u32,
        /// What waits.
        proposal: OperationId,
    },
    /// Something stands in the way of the wave, and nothing of it failed.
    Held {
        /// The number of the wave, from 1.
        wave: u32,
        /// What was found.
        why: String,
    },
    /// Somebody stopped it.
    Interrupted {
        /// It had begun.
        wave: u32,
    },
    /// The wave failed: from here on it is only taken back.
    Failed {
        /// The number of the wave, from 1.
        wave: u32,
        /// The reason, for people.
        why: String,
    },
    /// Somebody wants all of it taken back.
    Aborting,
    /// What was to be taken back did not all come back.
    Left {
        /// Why not.
        why: String,
    },
}

/// What is in the world when a rollout is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "kebab-case")]
pub enum RolloutEnd {
    /// Every wave is written and passed.
    Done,
    /// A wave failed and was taken back; later ones were never touched.
    Stopped {
        /// The number of the wave, from 1.
        wave: u32,
        /// The reason, for people.
        why: String,
        /// What was taken back.
        back: OnWaveFailure,
    },
    /// All of it was taken back because somebody wanted that.
    Aborted,
    /// Somebody ended its task by hand.
    ByHand,
}

/// Where a rollout stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum RolloutState {
    /// Its process is at work.
    Running {
        /// It is being written or checked.
        wave: u32,
    },
    /// Its process died.
    Died {
        /// It had begun.
        wave: u32,
    },
    /// It waits for a decision.
    Waits {
        /// It is written, and the next has not begun.
        wave: u32,
        /// About what.
        proposal: OperationId,
    },
    /// Something stands in its way.
    Held {
        /// Before or in which wave.
        wave: u32,
        /// What was found.
        why: String,
    },
    /// Somebody stopped it.
    Interrupted {
        /// It had begun.
        wave: u32,
    },
    /// What was to be taken back did not all come back.
    Left {
        /// The wave that failed; none if all was to be taken back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wave: Option<u32>,
        /// Why not.
        why: String,
    },
    /// A wave failed and was taken back.
    Stopped {
        /// The number of the wave, from 1.
        wave: u32,
        /// The reason, for people.
        why: String,
        /// What was taken back.
        back: OnWaveFailure,
    },
    /// Every wave is written and passed.
    Done,
    /// Every wave passed, and all of it was rolled back since.
    RolledBack,
    /// All of it was taken back.
    Aborted,
    /// Its task was ended by hand.
    ByHand,
}

/// What whoever takes a rollout up has to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GoOn {
    /// Write and check this wave. One after the last ends it.
    Wave(u32),
    /// Take back what failed.
    TakeBack {
        /// The number of the wave, from 1.
        wave: u32,
        /// The reason, for people.
        why: String,
    },
    /// Take back all of it.
    Abort,
}

/// The records of one rollout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolloutPast {
    /// What it is to do.
    pub plan: RolloutPlan,
    /// What was said on the way, and by whom, oldest first.
    pub marks: Vec<(Owner, RolloutMark)>,
    /// How it ended, if it did.
    pub end: Option<RolloutEnd>,
}

impl RolloutPlan {
    /// Lists the waves, each as a range of steps.
    pub fn waves(&self) -> Vec<Range<usize>> {
        let size = |number: u32| usize::try_from(number.max(1)).unwrap_or(usize::MAX);
        let mut waves = Vec::new();
        let (mut begin, mut length) = (0, size(self.first));
        while begin < self.steps.len() {
            let end = begin.saturating_add(length).min(self.steps.len());
            waves.push(begin..end);
            (begin, length) = (end, size(self.wave));
        }
        waves
    }

    /// Gives the steps of a wave, with their numbers; none if there is no such wave.
    pub fn wave_steps(&self, wave: u32) -> impl DoubleEndedIterator<Item = (usize, &RolloutStep)> {
        let index = usize::try_from(wave).unwrap_or(usize::MAX).checked_sub(1);
        let range = index.and_then(|index| self.waves().get(index).cloned());
        let range = range.unwrap_or_default();
        let first = range.start;
        let steps = self.steps.get(range).unwrap_or_default();
        steps
            .iter()
            .enumerate()
            .map(move |(at, step)| (first + at, step))
    }

    /// Tells how many waves there are.
    pub fn wave_count(&self) -> u32 {
        u32::try_from(self.waves().len()).unwrap_or(u32::MAX)
    }

    /// Lists the contents that its requests need.
    pub fn contents(&self) -> impl Iterator<Item = &Digest> {
        self.steps.iter().flat_map(|step| &step.request.contents)
    }
}

impl RolloutPast {
    /// Reads the records of a rollout, oldest first; none if its plan is not among them.
    pub fn of(records: Vec<Record>) -> Option<Self> {
        let mut past: Option<Self> = None;
        for record in records {
            match (record.event, &mut past) {
                (Event::RolloutBegun(plan), None) => {
                    past = Some(Self {
                        plan: *plan,
                        marks: Vec::new(),
                        end: None,
                    });
                }
                (Event::RolloutAt { owner, mark, .. }, Some(past)) => {
                    past.marks.push((owner, mark));
                }
                (Event::RolloutEnded { end, .. }, Some(past)) => past.end = Some(end),
                _ => {}
            }
        }
        past
    }

    /// Tells what is to be done next, by the marks.
    pub fn goes_on(&self) -> GoOn {
        let mut next = GoOn::Wave(1);
        for (_, mark) in &self.marks {
            next = match (next, mark) {
                (_, RolloutMark::Aborting) => GoOn::Abort,
                (GoOn::Wave(_), RolloutMark::Passed { wave }) => GoOn::Wave(wave.saturating_add(1)),
                (GoOn::Wave(_), RolloutMark::Failed { wave, why }) => GoOn::TakeBack {
                    wave: *wave,
                    why: why.clone(),
                },
                (next, _) => next,
            };
        }
        next
    }

    /// Tells where it stands: by its end, by its last mark, and by who is alive.
    pub fn state(
        &self,
        task: Option<TaskStatus>,
        is_alive: impl FnOnce(&Owner) -> bool,
    ) -> RolloutState {
        match &self.end {
            Some(RolloutEnd::Done) if task == Some(TaskStatus::RolledBack) => {
                return RolloutState::RolledBack;
            }
            Some(RolloutEnd::Done) => return RolloutState::Done,
            Some(RolloutEnd::Stopped { wave, why, back }) => {
                let (wave, why, back) = (*wave, why.clone(), *back);
                return RolloutState::Stopped { wave, why, back };
            }
            Some(RolloutEnd::Aborted) => return RolloutState::Aborted,
            Some(RolloutEnd::ByHand) => return RolloutState::ByHand,
            None => {}
        }
        let last = self.wave();
        match self.marks.last() {
            Some((owner, _)) if self.is_at_work() => {
                if is_alive(owner) {
                    RolloutState::Running { wave: last }
                } else if matches!(task, Some(TaskStatus::RolledBack | TaskStatus::Committed)) {
                    RolloutState::ByHand
                } else {
                    RolloutState::Died { wave: last }
                }
            }
            // Its own end comes with the end of its task, in one record.
            _ if matches!(task, Some(TaskStatus::RolledBack | TaskStatus::Committed)) => {
                RolloutState::ByHand
            }
            Some((_, RolloutMark::Waits { wave, proposal })) => RolloutState::Waits {
                wave: *wave,
                proposal: *proposal,
            },
            Some((_, RolloutMark::Held { wave, why })) => RolloutState::Held {
                wave: *wave,
                why: why.clone(),
            },
            Some((_, RolloutMark::Left { why })) => RolloutState::Left {
                wave: match self.goes_on() {
                    GoOn::TakeBack { wave, .. } => Some(wave),
                    GoOn::Wave(_) | GoOn::Abort => None,
                },
                why: why.clone(),
            },
            Some(_) => RolloutState::Interrupted { wave: last },
            None => RolloutState::Died { wave: last },
        }
    }

    /// Tells whether the last mark is one after which somebody is still at work.
    fn is_at_work(&self) -> bool {
        self.marks.last().is_some_and(|(_, mark)| match mark {
            RolloutMark::Wave { .. }
            | RolloutMark::Passed { .. }
            | RolloutMark::Failed { .. }
            | RolloutMark::Aborting => true,
            RolloutMark::Waits { .. }
            | RolloutMark::Held { .. }
            | RolloutMark::Interrupted { .. }
            | RolloutMark::Left { .. } => false,
        })
    }

    /// Gives the wave that it has come to.
    fn wave(&self) -> u32 {
        let mut newest_first = self.marks.iter().rev().filter_map(|(_, mark)| match mark {
            RolloutMark::Wave { wave }
            | RolloutMark::Passed { wave }
            | RolloutMark::Waits { wave, .. }
            | RolloutMark::Held { wave, .. }
            | RolloutMark::Interrupted { wave }
            | RolloutMark::Failed { wave, .. } => Some(*wave),
            RolloutMark::Aborting | RolloutMark::Left { .. } => None,
        });
        newest_first.next().unwrap_or(1)
    }
}

#[cfg(test)]
#[path = "rollout_tests.rs"]
mod tests;
