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

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::touched::Touched;
use crate::{
    AgentId, DependencyReason, History, LeftAlone, Lsn, Operation, OperationId, PlanError,
    Standing, Status, Strategy, Target, TaskId, Verb,
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
        /// What stood at that place already, and was undone and brought back since.
        unchanged: BTreeSet<OperationId>,
    },
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
    /// Which of its targets.
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
        Goal::Task(task) => Ok(in_effect(history, scope, |op| {
            op.task.as_ref() == Some(task)
        })),
        Goal::Since {
            lsn,
            task,
            agent,
            unchanged,
        } => Ok(in_effect(history, scope, |op| {
            op.place > *lsn
                && !unchanged.contains(&op.id)
                && (task.is_none() || op.task == *task)
                && (agent.is_none() || op.agent == *agent)
        })),
    }
}

/// Lists what was done within a command and is told by operations of its own.
fn parts_of(history: &History, id: OperationId) -> impl Iterator<Item = &Operation> {
    let dependents = history.dependents(id);
    let within = |(operation, reason)| (reason == DependencyReason::Within).then_some(operation);
    dependents.into_iter().filter_map(within)
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
    wanted: impl Fn(&Operation) -> bool,
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
        .filter(|op| wanted(op))
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

struct Closure<'h> {
    history: &'h History,
    scope: Option<Scope<'h>>,
    permission: &'h Permission,
    chosen: BTreeMap<OperationId, Chosen>,
    left: BTreeMap<OperationId, LeftAlone>,
}

impl<'h> Closure<'h> {
    fn take_dependencies(&mut self) {
        let mut queue: Vec<OperationId> = self.chosen.keys().copied().collect();
        while let Some(of) = queue.pop() {
            for (operation, reason) in self.history.dependencies(of) {
                let stands = operation.status.is_in_effect()
                    && scoped(operation, self.scope).next().is_some();
                if stands && !self.chosen.contains_key(&operation.id) {
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
            for (operation, reason) in self.dependents(on) {
                let id = operation.id;
                if self.chosen.contains_key(&id) {
                    continue;
                }
                let is_same_read =
                    reason == DependencyReason::Read && self.reads_same(operation, on);
                if !operation.status.is_in_effect() {
                    let status = operation.status;
                    self.left.insert(id, LeftAlone::NotInEffect { id, status });
                } else if self.permission.excused.contains(&(id, on)) {
                    self.left.insert(id, LeftAlone::Merges { id });
                } else if is_same_read {
                    let left = LeftAlone::ReadsTheSame { id, on };
                    self.left.entry(id).or_insert(left);
                } else if !operation.targets.is_empty()
                    || parts_of(self.history, id).next().is_some()
                {
                    self.chosen.insert(id, Chosen::DependsOn { on, reason });
                    queue.push(id);
                }
            }
        }
    }

    /// Tells whether all that an operation read of one that goes is the same afterwards.
    fn reads_same(&self, operation: &Operation, on: OperationId) -> bool {
        let holders = self.history.get(on).map(Operation::holders);
        let holders = holders.unwrap_or_default();
        let edges = operation.depends_on.iter();
        let mut reads = edges.filter(|edge| {
            edge.reason == DependencyReason::Read && (edge.on == on || holders.contains(&edge.on))
        });
        reads.all(|edge| {
            self.permission
                .same_reads
                .contains(&(operation.id, edge.on))
        })
    }

    /// Leaves the undos alone whose subject was built on something that goes: brought back, it would have to go with that again.
    /// Where a redo had to take something back first, both are named: it stood without that then, and does so again.
    fn leave_what_goes_again(&mut self, is_by_name: bool) {
        let undos: Vec<(OperationId, bool)> = self
            .chosen
            .iter()
            .map(|(id, chosen)| (*id, is_by_name && *chosen == Chosen::Named))
            .collect();
        for (id, is_named) in undos {
            let undo = self.history.get(id).filter(|it| it.verb == Verb::Undo);
            let undo = undo.filter(|it| !is_named || it.is_as_asked());
            let base = undo
                .and_then(|it| it.undoes)
                .and_then(|it| self.base_that_goes(it));
            if let Some(on) = base {
                self.chosen.remove(&id);
                self.left.insert(id, LeftAlone::GoesAgain { id, on });
            }
        }
    }

    /// Finds something that goes among all that an operation was built on.
    fn base_that_goes(&self, id: OperationId) -> Option<OperationId> {
        let mut seen = BTreeSet::from([id]);
        let mut queue = vec![id];
        while let Some(id) = queue.pop() {
            for (base, reason) in self.history.dependencies(id) {
                let counts = self.scope.is_none() || reason.is_of_targets();
                if !counts || !seen.insert(base.id) {
                    continue;
                }
                if self.chosen.contains_key(&base.id) && !base.verb.is_reversal() {
                    return Some(base.id);
                }
                queue.push(base.id);
            }
        }
        None
    }

    /// Lists what was built on an operation: on itself, or on the redo that brought it back.
    fn dependents(&self, on: OperationId) -> Vec<(&'h Operation, DependencyReason)> {
        let Some(base) = self.history.get(on) else {
            return Vec::new();
        };
        let mut bases = base.holders();
        if !bases.contains(&on) {
            bases.push(on);
        }
        let history = self.history;
        let all = bases.into_iter().flat_map(|on| history.dependents(on));
        let apart = self.permission.apart.get(&on).copied();
        let all = all.filter(|(dependent, reason)| {
            dependent.id != on && !(apart.is_some() && *reason == DependencyReason::Within)
        });
        // What was brought back after them lies above those that were once built on it.
        let since = apart.or_else(|| self.brought_back(base));
        let is_above = |dependent: &Operation| since.is_none_or(|since| dependent.place >= since);
        // A redo that was named brought nothing of what had stayed without it, whatever that was built on.
        let counts = |reason: DependencyReason| apart.is_none() && !reason.is_of_targets();
        let all = all.filter(|(dependent, reason)| counts(*reason) || is_above(dependent));
        // Where everything goes, the edge is proof enough. Where a part goes, only that part's dependents do.
        if self.scope.is_none() && !base.is_partly_undone() {
            return all.collect();
        }
        let goes = Touched::by(scoped(base, self.scope).map(|standing| &standing.target));
        all.filter(|(dependent, reason)| {
            let mut theirs = scoped(dependent, self.scope);
            match (reason.is_of_targets(), self.scope) {
                (true, _) => theirs.any(|standing| goes.is_touched_by(&standing.target)),
                (false, None) => true,
                (false, Some(_)) => false,
            }
        })
        .collect()
    }

    /// Gives the place in the journal where the acts begin whose redos hold all of an operation, the first of them; none if a
    /// part was there all the time. What one act brought back lies together, in whatever order it came.
    fn brought_back(&self, operation: &Operation) -> Option<Lsn> {
        let holders = operation.holders();
        let is_own = |id: &OperationId| *id == operation.id;
        if holders.iter().any(is_own) {
            return None;
        }
        let places: Option<Vec<Lsn>> = holders
            .iter()
            .map(|id| {
                let redo = self.history.get(*id)?;
                let first = redo.group.and_then(|first| self.history.get(first));
                Some(first.unwrap_or(redo).lsn)
            })
            .collect();
        places?.into_iter().min()
    }

    /// Puts steps in the order in which they go.
    fn sort_newest_first(&self, steps: &mut [UndoStep]) {
        // Each part of an operation was done when the recipe that holds it was carried out: by itself, or by a redo. What a redo
        // brought back together with somebody's text is still held by the operation's own; it lies above what a redo brought
        // back below it.
        let redone: Vec<(Lsn, Lsn)> = steps
            .iter()
            .filter(|step| step.with != step.id)
            .filter_map(|step| {
                let (of, by) = (self.history.get(step.id)?, self.history.get(step.with)?);
                Some((of.lsn, by.lsn))
            })
            .collect();
        let made = |with: &Operation| {
            let is_above = |(of, by): &(Lsn, Lsn)| *of < with.lsn && *by < with.place;
            let is_own = with.holders() == [with.id];
            if is_own && redone.iter().any(is_above) {
                with.place
            } else {
                with.lsn
            }
        };
        let done = |step: &UndoStep| {
            let with = self.history.get(step.with).map(made);
            let place = self.history.get(step.id).map(|it| it.place);
            (std::cmp::Reverse(with), std::cmp::Reverse(place))
        };
        steps.sort_by_key(done);
    }

    fn into_plan(mut self) -> Result<UndoPlan, PlanError> {
        self.leave_independent();
        let mut steps = Vec::new();
        let mut needs_committed = Vec::new();
        let mut needs_others = Vec::new();
        for (&id, chosen) in &self.chosen {
            let operation = self.history.get(id).ok_or(PlanError::Unknown { id })?;
            let for_sake_of = match chosen {
                Chosen::Named => None,
                Chosen::DependsOn { on: other, .. } | Chosen::DependencyOf { of: other, .. } => {
                    Some(*other)
                }
            };
            undoable(operation, for_sake_of)?;
            steps.extend(self.steps_of(operation, chosen));
            if for_sake_of.is_some() {
                let is_kept = operation.status == Status::Committed && operation.task.is_some();
                if is_kept && !self.permission.committed {
                    needs_committed.push(id);
                }
                // Work without a name is a person's: an agent asks first.
                let asks = self.permission.agent.as_ref();
                let is_anothers = asks.is_some() && asks != operation.agent.as_ref();
                if is_anothers && !self.permission.others {
                    needs_others.push(id);
                }
            }
        }
        let place = |id: OperationId| {
            std::cmp::Reverse(self.history.get(id).map(|operation| operation.place))
        };
        self.sort_newest_first(&mut steps);
        needs_committed.sort_by_key(|id| place(*id));
        needs_others.sort_by_key(|id| place(*id));
        let mut left_alone: Vec<_> = self.left.into_values().collect();
        left_alone.sort_by_key(|left| place(left.id()));
        Ok(UndoPlan {
            steps,
            left_alone,
            needs_committed,
            needs_others,
        })
    }

    /// Makes one step for each recipe that the operation is taken back with.
    fn steps_of(&self, operation: &Operation, chosen: &Chosen) -> Vec<UndoStep> {
        let mut held: BTreeMap<OperationId, Vec<Target>> = BTreeMap::new();
        for standing in scoped(operation, self.scope) {
            let with = standing.held_by.unwrap_or(operation.id);
            held.entry(with).or_default().push(standing.target.clone());
        }
        let step = |(with, targets)| UndoStep {
            id: operation.id,
            with,
            targets,
            strategy: operation.decision.strategy,
            chosen: chosen.clone(),
        };
        held.into_iter().map(step).collect()
    }

    /// Says of an operation that stays what it depends on by more than its targets, where a part was chosen; or that it has
    /// written or removed the whole in which that part lies.
    fn left_out(&self, id: OperationId) -> Option<LeftAlone> {
        self.scope?;
        let later = self.history.get(id)?;
        let mut dependencies = self.history.dependencies(id);
        let (on, reason) = dependencies.find(|(on, reason)| {
            let counts = !reason.is_of_targets() || self.has_the_whole(later, on);
            counts && self.chosen.contains_key(&on.id)
        })?;
        let on = on.id;
        let is_same = |operation| self.reads_same(operation, on);
        let is_same = self.history.get(id).is_some_and(is_same);
        Some(if is_same && reason == DependencyReason::Read {
            LeftAlone::ReadsTheSame { id, on }
        } else {
            LeftAlone::Depends { id, on, reason }
        })
    }

    /// Tells whether a later operation wrote or removed something of which a part is to be taken back, like the file of a key.
    fn has_the_whole(&self, later: &Operation, on: &Operation) -> bool {
        let is_part = |it: &&Standing| !it.target.key().parts().is_empty();
        let mut parts = scoped(on, self.scope).filter(is_part);
        parts.any(|part| {
            let mut theirs = later.in_effect().map(|it| &it.target);
            theirs.any(|theirs| {
                theirs.key() != part.target.key() && theirs.overlap(&part.target).is_some()
            })
        })
    }

    /// Notes the later operations that stay, so that a person sees that they do.
    fn leave_independent(&mut self) {
        self.left.retain(|id, _| !self.chosen.contains_key(id));
        let oldest = self
            .chosen
            .keys()
            .filter_map(|&id| Some(self.history.get(id)?.place))
            .min();
        for operation in self.history.iter() {
            let id = operation.id;
            let later = Some(operation.place) > oldest;
            let stands = operation.status.is_in_effect()
                && !operation.verb.is_reversal()
                && !operation.targets.is_empty();
            if later && stands && !self.chosen.contains_key(&id) {
                let left = self.left_out(id).unwrap_or(LeftAlone::Independent { id });
                self.left.entry(id).or_insert(left);
            }
        }
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
