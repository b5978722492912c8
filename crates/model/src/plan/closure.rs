//! What goes with what was named: the closures of a plan, and the order of its steps.

use std::collections::{BTreeMap, BTreeSet};

use super::{Chosen, Goal, Permission, Scope, UndoPlan, UndoStep, parts_of, scoped, undoable};
use crate::touched::Touched;
use crate::{
    DependencyReason, History, LeftAlone, Lsn, Operation, OperationId, PlanError, Standing, Status,
    Target, Verb,
};

/// The operations that go, and those that are left alone although they were built on one that goes.
pub(super) struct Closure<'h> {
    pub(super) history: &'h History,
    pub(super) scope: Option<Scope<'h>>,
    pub(super) permission: &'h Permission,
    pub(super) chosen: BTreeMap<OperationId, Chosen>,
    pub(super) left: BTreeMap<OperationId, LeftAlone>,
}

impl<'h> Closure<'h> {
    pub(super) fn take_dependencies(&mut self) {
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

    pub(super) fn take_dependents(&mut self) {
        let mut queue: Vec<OperationId> = self.chosen.keys().copied().collect();
        while let Some(on) = queue.pop() {
            for (operation, reason) in self.dependents(on) {
                let id = operation.id;
                if self.chosen.contains_key(&id) {
                    continue;
                }
                if reason == DependencyReason::Within && operation.verb.is_reversal() {
                    self.leave_called(operation, on);
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

    /// Leaves an undo or a redo as it is that a command called which goes, and says so.
    fn leave_called(&mut self, reversal: &Operation, on: OperationId) {
        let is_asked_for = reversal.verb != Verb::Recover && reversal.status.is_in_effect();
        if !is_asked_for || scoped(reversal, self.scope).next().is_none() {
            return;
        }
        let (id, reason) = (reversal.id, DependencyReason::Within);
        let left = match reversal.undoes {
            Some(about) if reversal.verb == Verb::Undo => {
                LeftAlone::UndoneSince { id: about, by: id }
            }
            _ => LeftAlone::Depends { id, on, reason },
        };
        self.left.entry(left.id()).or_insert(left);
    }

    /// Says nothing of an undo that a command called where what it took back is to go as well.
    pub(super) fn forget_what_would_go(&mut self, goal: &Goal) {
        let left = std::mem::take(&mut self.left).into_iter();
        let stays = |id: OperationId| {
            let is_meant = |operation: &Operation| goal.means(operation);
            !self.history.get(id).is_some_and(is_meant) && self.base_that_goes(id).is_none()
        };
        self.left = left
            .filter(|(_, left)| {
                if let LeftAlone::UndoneSince { id, .. } = left {
                    stays(*id)
                } else {
                    true
                }
            })
            .collect();
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
    pub(super) fn leave_what_goes_again(&mut self, is_by_name: bool) {
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
        // brought back together with somebody's work is still held by an older recipe; it lies above what a redo brought back
        // below it, and above what an undo took before.
        let redone: Vec<(Lsn, Lsn)> = steps
            .iter()
            .filter_map(|step| {
                let (of, by) = (self.history.get(step.id)?, self.history.get(step.with)?);
                let is_undo = of.verb == Verb::Undo;
                let of_lsn = if is_undo { Lsn(0) } else { of.lsn };
                (is_undo || of.id != by.id).then_some((of_lsn, by.lsn))
            })
            .collect();
        let made = |step: &UndoStep| {
            let with = self.history.get(step.with)?.lsn;
            let brought = self.brought(step).filter(|brought| {
                let is_above = |(of, by): &(Lsn, Lsn)| *of < with && by < brought;
                redone.iter().any(is_above)
            });
            Some(brought.unwrap_or(with))
        };
        let done = |step: &UndoStep| {
            let place = self.history.get(step.id).map(|it| it.place);
            (std::cmp::Reverse(made(step)), std::cmp::Reverse(place))
        };
        steps.sort_by_cached_key(done);
    }

    /// Finds the last redo that brought back something of what a step takes back.
    fn brought(&self, step: &UndoStep) -> Option<Lsn> {
        let operation = self.history.get(step.id)?;
        if operation.place == operation.lsn {
            return None;
        }
        let is_redo = |it: &&Operation| {
            let undo = it.undoes.and_then(|undo| self.history.get(undo));
            undo.is_some_and(|undo| undo.undoes == Some(step.id))
        };
        let is_of_it = |redo: &&Operation| {
            let mut theirs = redo.in_effect();
            theirs.any(|standing| step.targets.contains(&standing.target))
        };
        let redos = self.history.iter().filter(is_redo).filter(is_of_it);
        redos.map(|redo| redo.lsn).max()
    }

    pub(super) fn into_plan(mut self) -> Result<UndoPlan, PlanError> {
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
