//! Going back to a checkpoint, or a path to what it was at a time. What was done since goes. What stood then stays, also if
//! it was undone and brought back since; what stood then and is undone now is named, with the undo that holds it.

use std::collections::{BTreeMap, BTreeSet};

use backout_model::{
    AgentId, Checkpoint, CheckpointName, Dependency, DependencyReason, Goal, Key, LeftAlone, Lsn,
    Operation, OperationId, PlanError, Standing, Status, TaskId, Timestamp, Verb,
};
use backout_storage::Filter;

use super::goal::Aim;
use crate::{Engine, EngineError, UndoWhat};

/// What stood at a place in the journal and was undone after it, by operation.
pub(super) struct Stood(BTreeMap<OperationId, BTreeSet<Key>>);

/// A place to return to, and whose work is meant.
struct Mark {
    lsn: Lsn,
    task: Option<TaskId>,
    agent: Option<AgentId>,
    /// Only what lies at these places or below; everything if there are none.
    keys: Vec<Key>,
}

impl Stood {
    /// Tells whether something that is in effect stood then already.
    pub(super) fn has(&self, operation: OperationId, standing: &Standing) -> bool {
        let keys = self.0.get(&operation);
        keys.is_some_and(|keys| keys.contains(standing.target.key()))
    }
}

impl Engine {
    pub(super) fn aim_at_checkpoint(&self, name: &CheckpointName) -> Result<Aim, EngineError> {
        let Checkpoint {
            lsn, task, agent, ..
        } = self.found(name)?;
        self.aim_at_place(lsn, task, agent, &[])
    }

    /// Aims at all that was done since a place, but for what is `known`.
    pub(super) fn aim_at_place(
        &self,
        lsn: Lsn,
        task: Option<TaskId>,
        agent: Option<AgentId>,
        known: &[OperationId],
    ) -> Result<Aim, EngineError> {
        let stood = self.stood_at(lsn)?;
        // An operation may be older than the mark and brought back after it.
        let filter = Filter {
            task: task.clone(),
            agent: agent.clone(),
            placed_after: Some(lsn),
            ..Filter::default()
        };
        let (mut roots, mut parts, mut unchanged) = (Vec::new(), BTreeMap::new(), BTreeSet::new());
        unchanged.extend(known.iter().copied());
        for operation in self.store.operations(&filter)? {
            let id = operation.id;
            if unchanged.contains(&id) {
                continue;
            }
            let (kept, new): (Vec<_>, Vec<_>) =
                operation.in_effect().partition(|it| stood.has(id, it));
            if new.is_empty() && !kept.is_empty() {
                unchanged.insert(id);
                continue;
            }
            if !kept.is_empty() {
                let new = new.iter().map(|standing| standing.target.key().clone());
                parts.insert(id, new.collect());
            }
            roots.push(id);
        }
        Ok(Aim {
            goal: Goal::Since {
                lsn,
                task,
                agent,
                unchanged,
            },
            keys: Vec::new(),
            redos: BTreeMap::new(),
            roots,
            parts,
            named: Vec::new(),
        })
    }

    /// Lists what stood when it is to be as it was then, and is undone now, with the undo that brings it back.
    pub(crate) fn undone_since(&self, what: &UndoWhat) -> Result<Vec<LeftAlone>, EngineError> {
        let Some(mark) = self.mark_of(what)? else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for (id, keys) in self.stood_at(mark.lsn)?.0 {
            let Some(operation) = self.store.operation(id)? else {
                continue;
            };
            let is_meant = (mark.task.is_none() || operation.task == mark.task)
                && (mark.agent.is_none() || operation.agent == mark.agent);
            let is_there = |key: &Key| {
                mark.keys.is_empty() || mark.keys.iter().any(|at| key.is_at_or_below(at))
            };
            let mut gone = operation.targets.iter().filter(|standing| {
                let key = standing.target.key();
                !standing.is_in_effect() && keys.contains(key) && is_there(key)
            });
            if is_meant && let Some(by) = gone.find_map(|standing| standing.undone_by) {
                found.push(LeftAlone::UndoneSince { id, by });
            }
        }
        Ok(found)
    }

    /// Says that all that happened since is an undo, if that is why there is nothing to take back.
    pub(super) fn nothing_since(
        &self,
        what: &UndoWhat,
        error: EngineError,
    ) -> Result<EngineError, EngineError> {
        let undone = self.undone_since(what)?;
        Ok(if undone.is_empty() {
            error
        } else {
            EngineError::UndoneSince { undone }
        })
    }

    /// Says of a command that changed nothing what it had undone, if it did that.
    pub(super) fn only_called(&self, id: OperationId) -> Result<EngineError, EngineError> {
        let is_called =
            |edge: &Dependency| edge.on == id && edge.reason == DependencyReason::Within;
        let mut called = self.store.connected(&[id])?;
        called.retain(|it| it.verb == Verb::Undo && it.status.is_in_effect());
        called.retain(|it| it.depends_on.iter().any(is_called));
        let undone = called.into_iter().filter_map(|undo| {
            let (id, by) = (undo.undoes?, undo.id);
            Some(LeftAlone::UndoneSince { id, by })
        });
        let undone: Vec<_> = undone.collect();
        Ok(if undone.is_empty() {
            PlanError::ChangedNothing { id }.into()
        } else {
            EngineError::UndoneSince { undone }
        })
    }

    fn mark_of(&self, what: &UndoWhat) -> Result<Option<Mark>, EngineError> {
        Ok(match what {
            UndoWhat::ToCheckpoint(name) => {
                let Checkpoint {
                    lsn, task, agent, ..
                } = self.found(name)?;
                let keys = Vec::new();
                Some(Mark {
                    lsn,
                    task,
                    agent,
                    keys,
                })
            }
            UndoWhat::ToPlace {
                lsn, task, agent, ..
            } => Some(Mark {
                lsn: *lsn,
                task: task.clone(),
                agent: agent.clone(),
                keys: Vec::new(),
            }),
            UndoWhat::Paths {
                paths,
                since: Some(since),
            } => Some(Mark {
                lsn: self.store.place_at(*since)?,
                task: None,
                agent: None,
                keys: paths.clone(),
            }),
            UndoWhat::Paths { since: None, .. }
            | UndoWhat::Newest { .. }
            | UndoWhat::Operations(_)
            | UndoWhat::Task(_)
            | UndoWhat::Prompt(_) => None,
        })
    }

    fn found(&self, name: &CheckpointName) -> Result<Checkpoint, EngineError> {
        let found = self.store.checkpoint(name)?;
        found.ok_or_else(|| EngineError::NoCheckpoint { name: name.clone() })
    }

    /// Tells what stood at a moment although something happened to it after.
    pub(super) fn stood_when(&self, moment: Timestamp) -> Result<Stood, EngineError> {
        self.stood_at(self.store.place_at(moment)?)
    }

    /// Tells what stood at a place although something happened to it after: the first thing that happened was an undo.
    fn stood_at(&self, place: Lsn) -> Result<Stood, EngineError> {
        let filter = Filter {
            after: Some(place),
            ..Filter::default()
        };
        let mut reversals: Vec<Operation> = self.store.operations(&filter)?;
        // An undo that was redone since happened all the same.
        let happened = |status| matches!(status, Status::Committed | Status::Undone);
        reversals.retain(|op| op.undoes.is_some() && happened(op.status));
        reversals.sort_unstable_by_key(|op| op.lsn);
        let mut seen: BTreeSet<(OperationId, Key)> = BTreeSet::new();
        let mut stood: BTreeMap<OperationId, BTreeSet<Key>> = BTreeMap::new();
        for reversal in reversals {
            let takes_back = reversal.verb != Verb::Redo;
            let targets = reversal.targets.iter();
            let keys: Vec<Key> = targets.map(|it| it.target.key().clone()).collect();
            let Some(subject) = self.subject(reversal)? else {
                continue;
            };
            let is_older = |op: Operation| op.lsn <= place;
            if !self.store.operation(subject)?.is_some_and(is_older) {
                continue;
            }
            for key in keys {
                if seen.insert((subject, key.clone())) && takes_back {
                    stood.entry(subject).or_default().insert(key);
                }
            }
        }
        Ok(Stood(stood))
    }
}
