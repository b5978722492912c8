//! What an undo *would* do, computed before anything is touched.
//!
//! [`plan_undo`] is a pure function: the same history, goal and permission give the same plan. `--dry-run`
//! prints the plan, execution runs exactly it.
//!
//! - Forward closure, always: what was built on an undone operation goes too, newest first (LIFO).
//! - Backward closure, when asked (`dependencies`): also the chain the operation was built on.
//! - Each target stands by itself: a plan may be restricted to some of them, and an operation whose targets were brought
//!   back by different redos is taken back in several steps, each where its recipe stands in the journal.
//! - Operations of committed tasks, and other agents' work, go only when named or permitted; a plan that needs more says
//!   which. A lone write needs no such word.

mod closure;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{
    AgentId, DependencyReason, History, LeftAlone, Lsn, Operation, OperationId, PlanError,
    Standing, Status, Strategy, Target, TaskId,
};
use closure::Closure;

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
    /// Whatever of it is in effect.
    Task(TaskId),
    /// Everything after a place in the journal.
    Since {
        /// The place to return to.
        lsn: Lsn,
        /// Only this task's work.
        task: Option<TaskId>,
        /// Only this agent's work.
        agent: Option<AgentId>,
        /// What stood at that place already, and was undone and brought back since.
        unchanged: BTreeSet<OperationId>,
    },
}

impl Goal {
    /// Tells whether an operation is meant, be it in effect or not.
    fn means(&self, operation: &Operation) -> bool {
        match self {
            Self::Operations { ids, .. } => ids.contains(&operation.id),
            Self::Task(task) => operation.task.as_ref() == Some(task),
            Self::Since {
                lsn,
                task,
                agent,
                unchanged,
            } => {
                operation.place > *lsn
                    && !unchanged.contains(&operation.id)
                    && (task.is_none() || operation.task == *task)
                    && (agent.is_none() || operation.agent == *agent)
            }
        }
    }
}

/// Restricts a plan to some targets.
pub type Scope<'s> = &'s dyn Fn(&Target) -> bool;

/// What a plan may do beyond what was named.
#[derive(Debug, Clone, Default)]
pub struct Permission {
    /// Operations of committed tasks that nobody named may be undone as well.
    pub committed: bool,
    /// Who asks: an agent does not take other agents' work along by itself.
    pub agent: Option<AgentId>,
    /// Other agents' operations may be undone as well.
    pub others: bool,
    /// Edges (dependent, on) that do not count, because the dependent's change merges cleanly.
    pub excused: BTreeSet<(OperationId, OperationId)>,
    /// Reads (who read, and what had written it) that do not count, because what was read is the same afterwards.
    pub same_reads: BTreeSet<(OperationId, OperationId)>,
    /// Operations that go because a redo of them is taken back, each with the place where that began: without what was
    /// done while a command ran, and without what was there before the redo. It did not bring either.
    pub apart: BTreeMap<OperationId, Lsn>,
}

/// Why an operation is part of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "chosen", rename_all = "kebab-case")]
pub enum Chosen {
    /// It was asked for.
    Named,
    /// It was built on one that goes.
    DependsOn {
        /// The operation that goes.
        on: OperationId,
        /// What connects the two.
        reason: DependencyReason,
    },
    /// One that goes was built on it, and the chain was asked for.
    DependencyOf {
        /// The operation that goes.
        of: OperationId,
        /// What connects the two.
        reason: DependencyReason,
    },
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoStep {
    /// The operation to take back.
    pub id: OperationId,
    /// The operation whose recipe does it: itself, or the redo that last brought it back.
    pub with: OperationId,
    /// Those that go; others of the operation stay.
    pub targets: Vec<Target>,
    /// How it will be taken back.
    pub strategy: Strategy,
    /// Why it is part of the plan.
    #[serde(flatten)]
    pub chosen: Chosen,
}

/// What an undo would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoPlan {
    /// The operations that go, newest first.
    pub steps: Vec<UndoStep>,
    /// Later operations that stay, newest first.
    pub left_alone: Vec<LeftAlone>,
    /// Operations of committed tasks that would have to go and that nobody named. The plan must not be executed
    /// while there are any.
    pub needs_committed: Vec<OperationId>,
    /// Other agents' operations that would have to go and that nobody named. Likewise.
    pub needs_others: Vec<OperationId>,
}

/// Computes what taking back `goal` means, restricted to the targets in `scope`.
pub fn plan_undo(
    history: &History,
    goal: &Goal,
    scope: Option<Scope<'_>>,
    permission: &Permission,
) -> Result<UndoPlan, PlanError> {
    let mut closure = Closure {
        history,
        scope,
        permission,
        chosen: BTreeMap::new(),
        left: BTreeMap::new(),
    };
    for operation in named(history, goal, scope)? {
        closure.chosen.insert(operation.id, Chosen::Named);
    }
    if closure.chosen.is_empty() {
        return Err(PlanError::Nothing);
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
    closure.leave_what_goes_again(matches!(goal, Goal::Operations { .. }));
    closure.forget_what_would_go(goal);
    closure.into_plan()
}

fn named<'h>(
    history: &'h History,
    goal: &Goal,
    scope: Option<Scope<'_>>,
) -> Result<Vec<&'h Operation>, PlanError> {
    match goal {
        Goal::Operations { ids, .. } => ids
            .iter()
            .map(|&id| {
                let operation = history.get(id).ok_or(PlanError::Unknown { id })?;
                undoable(operation, None)?;
                if operation.targets.is_empty() {
                    has_parts(history, id)?;
                    return match scope {
                        None => Ok(operation),
                        Some(_) => Err(PlanError::NothingChosen { id }),
                    };
                }
                match scoped(operation, scope).next() {
                    Some(_) => Ok(operation),
                    None => Err(PlanError::NothingChosen { id }),
                }
            })
            .collect(),
        Goal::Task(_) | Goal::Since { .. } => Ok(in_effect(history, scope, goal)),
    }
}

/// Lists what was done within a command and is told by operations of its own. The undos and redos that it called are none of
/// that: they stay.
fn parts_of(history: &History, id: OperationId) -> impl Iterator<Item = &Operation> {
    let dependents = history.dependents(id);
    let within = dependents.filter(|(_, reason)| *reason == DependencyReason::Within);
    let within = within.map(|(operation, _)| operation);
    within.filter(|operation| !operation.verb.is_reversal())
}

/// Says so if a command that changed nothing itself has nothing that could go with it.
fn has_parts(history: &History, id: OperationId) -> Result<(), PlanError> {
    if parts_of(history, id).any(|part| part.status.is_in_effect()) {
        return Ok(());
    }
    let undone = parts_of(history, id).find(|part| part.status == Status::Undone);
    Err(match undone {
        Some(part) => PlanError::AlreadyUndone {
            id,
            by: part.undos().last().copied(),
        },
        None => PlanError::ChangedNothing { id },
    })
}

fn in_effect<'h>(
    history: &'h History,
    scope: Option<Scope<'_>>,
    goal: &Goal,
) -> Vec<&'h Operation> {
    let stands = |op: &&Operation| {
        op.status.is_in_effect()
            && op.status != Status::Armed
            && !op.verb.is_reversal()
            && scoped(op, scope).next().is_some()
    };
    history
        .iter()
        .filter(stands)
        .filter(|op| goal.means(op))
        .collect()
}

/// Lists the targets of an operation that a plan could take back.
fn scoped<'o>(
    operation: &'o Operation,
    scope: Option<Scope<'o>>,
) -> impl Iterator<Item = &'o Standing> {
    let is_meant = move |target: &Target| scope.is_none_or(|scope| scope(target));
    operation
        .in_effect()
        .filter(move |standing| is_meant(&standing.target))
}

fn undoable(operation: &Operation, for_sake_of: Option<OperationId>) -> Result<(), PlanError> {
    let id = operation.id;
    match operation.status {
        Status::Undone => {
            return Err(PlanError::AlreadyUndone {
                id,
                by: operation.undos().last().copied(),
            });
        }
        Status::Proposed | Status::Refused | Status::Aborted => {
            return Err(PlanError::NeverHappened {
                id,
                status: operation.status,
            });
        }
        Status::Armed => return Err(PlanError::Unfinished { id }),
        Status::Applied
        | Status::Committed
        | Status::Interrupted
        | Status::InDoubt
        | Status::Failed => {}
    }
    if operation.decision.strategy == Strategy::Irreversible {
        return Err(PlanError::Irreversible { id });
    }
    if !operation.retained {
        return Err(PlanError::Expired { id, for_sake_of });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
