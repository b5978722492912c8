//! What the work had left at a checkpoint, and is not as it was: a second look, after everything that was to go is gone.

use std::collections::{BTreeMap, BTreeSet};

use backout_model::drift::DriftKind;
use backout_model::{AgentId, Key, Operation, OperationId, ResumePoint, Target};
use backout_storage::Filter;
use serde::{Deserialize, Serialize};

use super::choose::Scope;
use crate::{Engine, EngineError};

/// So many targets are looked at, the newest first: a resume is bounded by what is in flight, not by all that a task ever did.
const LOOKED_AT_MAX: usize = 1_000;

/// A target that is not as it was at the checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Differs {
    /// What was looked at.
    pub target: Target,
    /// And by whom, if that is known.
    #[serde(flatten)]
    pub why: DiffersWhy,
}

/// Why a target is not as it was at the checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "differs", rename_all = "kebab-case")]
pub enum DiffersWhy {
    /// Somebody changed it past us.
    World {
        /// What a comparison found.
        kind: DriftKind,
    },
    /// An operation that is no part of the work wrote it since.
    Written {
        /// The one that wrote it.
        by: OperationId,
        /// Its agent, if it has a name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentId>,
    },
    /// Nobody could look at it.
    Unseen {
        /// Why not.
        why: String,
    },
}

impl DiffersWhy {
    /// Says it in words.
    pub fn as_words(&self) -> String {
        match self {
            Self::World { kind } => {
                let what = match kind {
                    DriftKind::Gone => "it is gone",
                    DriftKind::Added => "something is there that was not",
                    DriftKind::Replaced => "something else is there",
                    DriftKind::Looks => "its mode, owner or attributes changed",
                    DriftKind::Changed | DriftKind::Several => "it changed",
                };
                format!("{what}, and no operation did that")
            }
            Self::Written { by, agent } => match agent {
                Some(agent) => format!("operation {} of {agent} wrote it since", by.short()),
                None => format!("operation {} wrote it since", by.short()),
            },
            Self::Unseen { why } => format!("nobody could look at it: {why}"),
        }
    }
}

impl Engine {
    /// Looks at what some work had left at a checkpoint, and says what is not so now, and whether there is more than was looked at.
    pub(super) fn differs_since(
        &self,
        scope: &Scope,
        point: &ResumePoint,
    ) -> Result<(Vec<Differs>, bool), EngineError> {
        let mut then = self.store.operations(&Filter {
            limit: Some(LOOKED_AT_MAX),
            ..scope.filter()
        })?;
        let mut is_more = then.len() == LOOKED_AT_MAX;
        then.retain(|it| scope.has(it) && stood(it, point) && counts(it));
        let mut left: BTreeMap<Key, Target> = BTreeMap::new();
        for standing in then.iter().flat_map(Operation::in_effect) {
            if left.len() == LOOKED_AT_MAX {
                is_more = true;
                break;
            }
            let target = &standing.target;
            left.insert(target.key().clone(), target.clone());
        }
        if left.is_empty() {
            return Ok((Vec::new(), is_more));
        }
        let mut differs = self.written_by_others(scope, point, &mut left)?;
        let keys: BTreeSet<Key> = left.keys().cloned().collect();
        let found = self.not_as_recorded(&keys)?;
        for (target, kind) in found.differing {
            let why = DiffersWhy::World { kind };
            differs.push(Differs { target, why });
        }
        for (id, why) in found.unanswered {
            let operation = then.iter().find(|it| it.id == id);
            let targets = operation.into_iter().flat_map(Operation::in_effect);
            differs.extend(targets.map(|standing| Differs {
                target: standing.target.clone(),
                why: DiffersWhy::Unseen { why: why.clone() },
            }));
        }
        Ok((differs, is_more))
    }

    /// Finds what operations of others wrote since, and takes it out of what is left to look at.
    fn written_by_others(
        &self,
        scope: &Scope,
        point: &ResumePoint,
        left: &mut BTreeMap<Key, Target>,
    ) -> Result<Vec<Differs>, EngineError> {
        let mut since = self.store.operations(&Filter {
            placed_after: Some(point.position),
            ..Filter::default()
        })?;
        since.retain(|it| !scope.has(it) && counts(it));
        let mut written = Vec::new();
        for operation in &since {
            for standing in operation.in_effect() {
                let theirs = &standing.target;
                let is_hit = |target: &Target| target.overlap(theirs).is_some();
                let hit: Vec<Key> = left
                    .iter()
                    .filter(|(_, target)| is_hit(target))
                    .map(|(key, _)| key.clone())
                    .collect();
                for target in hit.iter().filter_map(|key| left.remove(key)) {
                    let (by, agent) = (operation.id, operation.agent.clone());
                    let why = DiffersWhy::Written { by, agent };
                    written.push(Differs { target, why });
                }
            }
        }
        Ok(written)
    }
}

/// Tells whether an operation had been done when a checkpoint was taken, wherever a redo has put it since.
pub(super) fn stood(operation: &Operation, point: &ResumePoint) -> bool {
    operation.lsn <= point.position || point.known.contains(&operation.id)
}

fn counts(operation: &Operation) -> bool {
    operation.status.is_in_effect() && !operation.verb.is_reversal()
}
