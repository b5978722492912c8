//! What an undo *would* do, computed before anything is touched.
//!
//! [`plan_undo`] is a pure function: the same history, goal and permission give the same plan. `--dry-run`
//! prints the plan, execution runs exactly it.
//!
//! - Forward closure, always: what was built on an undone operation goes too, newest first (LIFO).
//! - Backward closure, when asked (`dependencies`): also the chain the operation was built on.
//! - Committed operations go only when named or permitted; a plan that needs more says which.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use crate::{
    AgentId, DependencyReason, History, Lsn, Operation, OperationId, Status, Strategy, TaskId,
};

/// What somebody wants taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Goal {
    /// These operations, and what was built on them.
    Operations {
        /// The operations, by name.
        ids: Vec<OperationId>,
        /// Whether the chain they were built on goes too.
        dependencies: bool,
    },
    /// All of a task.
    Task(TaskId),
    /// Everything after a place in the journal.
    Since {
        /// The place to return to.
        lsn: Lsn,
        /// Only this task's work.
        task: Option<TaskId>,
        /// Only this agent's work.
        agent: Option<AgentId>,
    },
}

/// What a plan may do beyond what was named.
#[derive(Debug, Clone, Default)]
pub struct Permission {
    /// Committed operations that nobody named may be undone as well.
    pub committed: bool,
    /// Edges (dependent, on) that do not count, because the dependent's change merges cleanly.
    pub excused: BTreeSet<(OperationId, OperationId)>,
}

/// Why an operation is part of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "chosen", rename_all = "kebab-case")]
pub enum Chosen {
    /// It was asked for.
    Named,
    /// It was built on one that goes.
    DependsOn {
        /// That one.
        on: OperationId,
        /// How.
        reason: DependencyReason,
    },
    /// One that goes was built on it, and the chain was asked for.
    DependencyOf {
        /// That one.
        of: OperationId,
        /// How.
        reason: DependencyReason,
    },
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UndoStep {
    /// The operation to take back.
    pub id: OperationId,
    /// The operation whose recipe does it: itself, or the redo that last brought it back.
    pub with: OperationId,
    /// How it will be taken back.
    pub strategy: Strategy,
    /// Why it is part of the plan.
    #[serde(flatten)]
    pub chosen: Chosen,
}

/// An operation that the plan does not touch although it came up, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum LeftAlone {
    /// It came later and does not depend on anything that goes.
    Independent {
        /// The operation.
        id: OperationId,
    },
    /// Its later change to the same target merges cleanly.
    Merges {
        /// The operation.
        id: OperationId,
    },
    /// It is not in effect any more.
    NotInEffect {
        /// The operation.
        id: OperationId,
        /// What it is instead.
        status: Status,
    },
}

impl LeftAlone {
    /// Names the operation.
    pub const fn id(&self) -> OperationId {
        match self {
            Self::Independent { id } | Self::Merges { id } | Self::NotInEffect { id, .. } => *id,
        }
    }
}

impl fmt::Display for LeftAlone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Independent { .. } => f.write_str("independent"),
            Self::Merges { .. } => f.write_str("its change merges cleanly"),
            Self::NotInEffect { status, .. } => write!(f, "already {status}"),
        }
    }
}

/// What an undo would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UndoPlan {
    /// The operations that go, newest first.
    pub steps: Vec<UndoStep>,
    /// Later operations that stay, newest first.
    pub left_alone: Vec<LeftAlone>,
    /// Committed operations that would have to go and that nobody named. The plan must not be executed
    /// while there are any.
    pub needs_committed: Vec<UndoStep>,
}

/// Says why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The history holds no such operation.
    #[error("there is no operation {id}")]
    Unknown {
        /// The id that was named.
        id: OperationId,
    },
    /// It was taken back before.
    #[error("operation {id} is already undone")]
    AlreadyUndone {
        /// The operation.
        id: OperationId,
        /// The undo.
        by: Option<OperationId>,
    },
    /// It never came to pass.
    #[error("operation {id} was {status}: there is nothing to undo")]
    NeverHappened {
        /// The operation.
        id: OperationId,
        /// What became of it.
        status: Status,
    },
    /// It is being applied right now, or its owner died and nobody recovered it yet.
    #[error("operation {id} is not finished")]
    Unfinished {
        /// The operation.
        id: OperationId,
    },
    /// Its images were let go.
    #[error("operation {id} can no longer be undone: its images have expired")]
    Expired {
        /// The operation.
        id: OperationId,
        /// The named operation for whose sake it would have to go.
        for_sake_of: Option<OperationId>,
    },
    /// It was declared irreversible.
    #[error("operation {id} is irreversible")]
    Irreversible {
        /// The operation.
        id: OperationId,
    },
    /// Nothing fits the goal.
    #[error("there is nothing to undo")]
    Nothing,
}

/// Computes what taking back `goal` means.
pub fn plan_undo(
    history: &History,
    goal: &Goal,
    permission: &Permission,
) -> Result<UndoPlan, PlanError> {
    let named = named(history, goal)?;
    if named.is_empty() {
        return Err(PlanError::Nothing);
    }
    let mut closure = Closure {
        history,
        permission,
        chosen: BTreeMap::new(),
        left: BTreeMap::new(),
    };
    for operation in &named {
        closure.chosen.insert(operation.id, Chosen::Named);
    }
    if matches!(
        goal,
        Goal::Operations {
            dependencies: true,
            ..
        }
    ) {
        closure.take_dependencies();
    }
    closure.take_dependents();
    closure.into_plan()
}

fn named<'h>(history: &'h History, goal: &Goal) -> Result<Vec<&'h Operation>, PlanError> {
    match goal {
        Goal::Operations { ids, .. } => ids
            .iter()
            .map(|&id| {
                let operation = history.get(id).ok_or(PlanError::Unknown { id })?;
                undoable(operation, None)?;
                Ok(operation)
            })
            .collect(),
        Goal::Task(task) => Ok(in_effect(history, |op| op.task.as_ref() == Some(task))),
        Goal::Since { lsn, task, agent } => Ok(in_effect(history, |op| {
            op.lsn > *lsn
                && (task.is_none() || op.task == *task)
                && (agent.is_none() || op.agent == *agent)
        })),
    }
}

fn in_effect(history: &History, wanted: impl Fn(&Operation) -> bool) -> Vec<&Operation> {
    let stands = |op: &&Operation| {
        op.status.is_in_effect() && op.status != Status::Armed && !op.verb.is_reversal()
    };
    history
        .iter()
        .filter(stands)
        .filter(|op| wanted(op))
        .collect()
}

fn undoable(operation: &Operation, for_sake_of: Option<OperationId>) -> Result<(), PlanError> {
    let id = operation.id;
    match operation.status {
        Status::Undone => {
            return Err(PlanError::AlreadyUndone {
                id,
                by: operation.undone_by,
            });
        }
        Status::Staged | Status::Refused | Status::Aborted => {
            return Err(PlanError::NeverHappened {
                id,
                status: operation.status,
            });
        }
        Status::Armed => return Err(PlanError::Unfinished { id }),
        Status::Applied | Status::Committed | Status::InDoubt | Status::Failed => {}
    }
    if operation.decision.strategy == Strategy::Irreversible {
        return Err(PlanError::Irreversible { id });
    }
    if !operation.retained {
        return Err(PlanError::Expired { id, for_sake_of });
    }
    Ok(())
}

struct Closure<'h> {
    history: &'h History,
    permission: &'h Permission,
    chosen: BTreeMap<OperationId, Chosen>,
    left: BTreeMap<OperationId, LeftAlone>,
}

impl Closure<'_> {
    fn take_dependencies(&mut self) {
        let mut queue: Vec<OperationId> = self.chosen.keys().copied().collect();
        while let Some(of) = queue.pop() {
            for (operation, reason) in self.history.dependencies(of) {
                if operation.status.is_in_effect() && !self.chosen.contains_key(&operation.id) {
                    self.chosen
                        .insert(operation.id, Chosen::DependencyOf { of, reason });
                    queue.push(operation.id);
                }
            }
        }
    }

    fn take_dependents(&mut self) {
        let mut queue: Vec<OperationId> = self.chosen.keys().copied().collect();
        while let Some(on) = queue.pop() {
            for (operation, reason) in self.history.dependents(on) {
                let id = operation.id;
                if self.chosen.contains_key(&id) {
                    continue;
                }
                if !operation.status.is_in_effect() {
                    let status = operation.status;
                    self.left.insert(id, LeftAlone::NotInEffect { id, status });
                } else if self.permission.excused.contains(&(id, on)) {
                    self.left.insert(id, LeftAlone::Merges { id });
                } else {
                    self.chosen.insert(id, Chosen::DependsOn { on, reason });
                    queue.push(id);
                }
            }
        }
    }

    fn into_plan(mut self) -> Result<UndoPlan, PlanError> {
        self.leave_independent();
        let mut steps = Vec::new();
        let mut needs_committed = Vec::new();
        for (&id, chosen) in &self.chosen {
            let operation = self.history.get(id).ok_or(PlanError::Unknown { id })?;
            let for_sake_of = match chosen {
                Chosen::Named => None,
                Chosen::DependsOn { on: other, .. } | Chosen::DependencyOf { of: other, .. } => {
                    Some(*other)
                }
            };
            undoable(operation, for_sake_of)?;
            let step = UndoStep {
                id,
                with: operation.redone_by.unwrap_or(id),
                strategy: operation.decision.strategy,
                chosen: chosen.clone(),
            };
            let unasked = for_sake_of.is_some() && operation.status == Status::Committed;
            if unasked && !self.permission.committed {
                needs_committed.push(step.clone());
            }
            steps.push(step);
        }
        let newest_first =
            |id: OperationId| std::cmp::Reverse(self.history.get(id).map(|op| op.lsn));
        steps.sort_by_key(|step| newest_first(step.id));
        needs_committed.sort_by_key(|step| newest_first(step.id));
        let mut left_alone: Vec<_> = self.left.into_values().collect();
        left_alone.sort_by_key(|left| newest_first(left.id()));
        Ok(UndoPlan {
            steps,
            left_alone,
            needs_committed,
        })
    }

    /// Notes the later operations that stay, so that a person sees that they do.
    fn leave_independent(&mut self) {
        self.left.retain(|id, _| !self.chosen.contains_key(id));
        let oldest = self
            .chosen
            .keys()
            .filter_map(|&id| Some(self.history.get(id)?.lsn))
            .min();
        for operation in self.history.iter() {
            let id = operation.id;
            let later = Some(operation.lsn) > oldest;
            let stands = operation.status.is_in_effect() && !operation.verb.is_reversal();
            if later && stands && !self.chosen.contains_key(&id) {
                self.left.entry(id).or_insert(LeftAlone::Independent { id });
            }
        }
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
