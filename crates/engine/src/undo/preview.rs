//! Looking at every target that a plan would touch, before anything is touched.

use std::collections::{HashMap, HashSet};

use backout_drivers::file::{Examined, FileChange, FileError, State, Was};
use backout_model::ports::{Driver as _, OnConflict};
use backout_model::{
    Chosen, History, Key, Operation, OperationId, OutcomeKind, Target, TargetOutcome, UndoPlan,
    UndoStep, Verb,
};

use super::work::Work;
use crate::lifecycle::with_causes;
use crate::{
    Engine, EngineError, Forcing, PlanView, PlannedStep, PlannedTarget, RefusedTarget, TakeBack,
    TargetState, UndoOptions,
};

/// Makes the plan of what was asked for, with these options.
pub(super) type Planner<'p> = &'p dyn Fn(&UndoOptions) -> Result<(History, UndoPlan), EngineError>;

/// What preparing a step foresees of each target, or what stopped it.
type Tried = Result<Vec<TargetOutcome>, String>;

impl Engine {
    /// Makes the plan, and looks whether it can be executed: as it is, or else with a merge.
    pub(super) fn look(
        &self,
        planner: Planner<'_>,
        options: &UndoOptions,
    ) -> Result<(History, UndoPlan, PlanView), EngineError> {
        let (history, plan) = planner(options)?;
        let mut view = self.view(&history, &plan, options)?;
        if !view.is_executable && options.on_conflict == OnConflict::Refuse {
            let merging = UndoOptions {
                on_conflict: OnConflict::Merge,
                diff: false,
                ..options.clone()
            };
            let merged = planner(&merging).and_then(|(h, p)| self.view(&h, &p, &merging));
            view.is_mergeable =
                merged.is_ok_and(|merged| merged.is_executable && is_foreseen(&view, &merged));
        }
        if !view.is_executable && options.on_conflict != OnConflict::Force {
            let forcing = UndoOptions {
                on_conflict: OnConflict::Force,
                diff: false,
                ..options.clone()
            };
            let forced = planner(&forcing).and_then(|(h, p)| self.view(&h, &p, &forcing));
            view.force = forced.ok().and_then(|forced| forcing_past(&view, &forced));
        }
        Ok((history, plan, view))
    }

    /// Looks at every target that the plan would touch.
    fn view(
        &self,
        history: &History,
        plan: &UndoPlan,
        options: &UndoOptions,
    ) -> Result<PlanView, EngineError> {
        let mut works: Vec<Work<'_>> = Vec::new();
        let mut steps = Vec::with_capacity(plan.steps.len());
        for step in &plan.steps {
            let Some(operation) = history.get(step.id) else {
                continue;
            };
            let work = self.work(operation, step)?;
            let subject = self.subject_of(operation)?;
            steps.push(PlannedStep {
                id: subject.id,
                way: way_of(operation),
                with: work.step.with,
                strategy: step.strategy,
                chosen: step.chosen.clone(),
                summary: subject.summary,
                targets: self.planned_targets(&work, &works, options)?,
            });
            works.push(work);
        }
        let diff = if options.diff {
            Some(self.plan_diff(&works, &steps)?)
        } else {
            None
        };
        let is_in_the_way = |step: &PlannedStep| {
            let mut targets = step.targets.iter();
            targets.any(|target| target.state.hindrance().is_some())
        };
        let is_free = options.partial || !steps.iter().any(is_in_the_way);
        let is_named = |step: &&UndoStep| step.chosen == Chosen::Named;
        let mut named: Vec<_> = plan
            .steps
            .iter()
            .filter(is_named)
            .map(|step| step.id)
            .collect();
        if named.is_empty() {
            named = commands_behind(&plan.steps);
        }
        named.dedup();
        Ok(PlanView {
            named,
            is_executable: plan.needs_committed.is_empty()
                && plan.needs_others.is_empty()
                && is_free,
            is_mergeable: false,
            force: None,
            steps,
            diff,
            left_alone: plan.left_alone.clone(),
            needs_committed: plan.needs_committed.clone(),
            needs_others: plan.needs_others.clone(),
        })
    }

    fn planned_targets(
        &self,
        work: &Work<'_>,
        newer: &[Work<'_>],
        options: &UndoOptions,
    ) -> Result<Vec<PlannedTarget>, EngineError> {
        let examined = self.files.examine(&work.effect)?;
        let tried = self.tried(work, &examined, options.on_conflict)?;
        // What a newer step changes first cannot be judged yet.
        let is_later = |target: &Target| newer.iter().any(|newer| touches(&newer.step, target));
        let later = examined.iter().filter(|it| is_later(&it.target));
        let later: HashSet<usize> = later.map(|it| it.change).collect();
        // A newer step may open the directory.
        let is_barred = |found: &Examined| {
            let directory = found.barred.as_ref()?;
            let is_it = |target: &Target| target.file() == Some(directory);
            let mut steps = newer.iter().flat_map(|newer| &newer.step.targets);
            (!steps.any(is_it)).then(|| Examined::said_of_barred(directory))
        };
        let mut between = self.between(work, newer, !later.is_empty())?;
        let planned = work.examined(&examined).into_iter();
        let planned = planned.map(|(target, found)| {
            let state = match found {
                Some(found) if later.contains(&found.change) => {
                    match (between.remove(target.key()), options.on_conflict) {
                        (Some(why), OnConflict::Refuse) => TargetState::Conflict { why },
                        (Some(why), OnConflict::Force) => TargetState::Overwritten { why },
                        // Whether it merges is seen when its turn comes.
                        (Some(_), OnConflict::Merge) | (None, _) => TargetState::AfterNewerStep,
                    }
                }
                Some(found) => match (&tried, is_barred(found)) {
                    (_, Some(why)) => TargetState::Conflict { why },
                    (Some(tried), None) => found_out(tried, &target, found),
                    (None, None) => foreseen(found),
                },
                None => TargetState::AlreadyBefore,
            };
            PlannedTarget { target, state }
        });
        Ok(planned.collect())
    }

    /// Prepares a merge or a forced restore, where there is something to merge or to force, to see what would come of it. An
    /// error is what the undo would meet.
    fn tried(
        &self,
        work: &Work<'_>,
        examined: &[Examined],
        on_conflict: OnConflict,
    ) -> Result<Option<Tried>, EngineError> {
        let is_other = |it: &Examined| matches!(it.state, State::Other { .. }) || it.lost.is_some();
        if on_conflict == OnConflict::Refuse || !examined.iter().any(is_other) {
            return Ok(None);
        }
        let how = work.how(on_conflict, true);
        let tried = self.files.prepare_undo(self.next_id(), &work.effect, how);
        match tried {
            Ok(ready) => Ok(Some(Ok(work.spread(&ready.outcomes)))),
            Err(error @ FileError::Stopped) => Err(error.into()),
            Err(error) => Ok(Some(Err(with_causes(&error)))),
        }
    }

    /// Finds the targets that will not be what an operation left when its turn comes: somebody else wrote between it and
    /// the newer step that is taken back first, which brings back what that somebody wrote.
    fn between(
        &self,
        work: &Work<'_>,
        newer: &[Work<'_>],
        is_asked: bool,
    ) -> Result<HashMap<Key, String>, EngineError> {
        let mut between = HashMap::new();
        // What an undo or a redo put there is not always what somebody else would have to have changed: such steps are
        // judged when their turn comes.
        let is_plain =
            |it: &Work<'_>| !it.operation.verb.is_reversal() && it.step.with == it.operation.id;
        if !is_asked || !is_plain(work) || !newer.iter().all(is_plain) {
            return Ok(between);
        }
        let mut left = HashMap::new();
        let is_in_place = |change: &FileChange| change.from.is_none();
        for change in self
            .files
            .sides(&work.effect)?
            .into_iter()
            .filter(is_in_place)
        {
            left.insert(change.path, change.after);
        }
        // The nearest step is the last to write before this one's turn.
        for newer in newer.iter().rev() {
            for change in self
                .files
                .sides(&newer.effect)?
                .into_iter()
                .filter(is_in_place)
            {
                let is_meant = |target: &Target| target.file() == Some(&change.path);
                if !newer.step.targets.iter().any(is_meant) {
                    continue;
                }
                let Some(left) = left.remove(&change.path) else {
                    continue;
                };
                if let Some(what) = unlike(left.as_ref(), change.before.as_ref()) {
                    let why = format!("{what} before {}", newer.operation.id.short());
                    between.insert(change.path.into(), why);
                }
            }
        }
        Ok(between)
    }

    /// Finds the operation that a step is about: for an undo or a redo, the one that it took or brought back.
    pub(super) fn subject_of(&self, operation: &Operation) -> Result<Operation, EngineError> {
        let found = match operation.undoes {
            Some(_) => self.subject(operation.clone())?,
            None => None,
        };
        let found = found.map(|id| self.store.operation(id)).transpose()?;
        Ok(found.flatten().unwrap_or_else(|| operation.clone()))
    }
}

/// Tells which way taking an operation back goes.
pub(super) const fn way_of(operation: &Operation) -> TakeBack {
    match operation.verb {
        Verb::Undo | Verb::Recover => TakeBack::Redo,
        _ => TakeBack::Undo,
    }
}

/// Says what somebody did to a name that was left as the first and found as the second, as far as both are known.
fn unlike(left: Option<&Was>, found: Option<&Was>) -> Option<&'static str> {
    let differ = |one: Option<u64>, other: Option<u64>| match (one, other) {
        (Some(one), Some(other)) => one != other,
        _ => false,
    };
    match (left, found) {
        (None, None) => None,
        (Some(_), None) => Some("somebody else removed it"),
        (None, Some(_)) => Some("somebody else made it"),
        (Some(left), Some(found)) => {
            let is_other = left.word() != found.word()
                || differ(left.size(), found.size())
                || left
                    .digest()
                    .zip(found.digest())
                    .is_some_and(|(l, f)| l != f);
            is_other.then_some("somebody else changed it")
        }
    }
}

/// Tells whether a merge is known to get past everything that stands in the way of a plan.
fn is_foreseen(plan: &PlanView, merged: &PlanView) -> bool {
    let unforeseen = merged.steps.iter().flat_map(|step| &step.targets);
    let unforeseen = unforeseen.filter(|it| it.state == TargetState::AfterNewerStep);
    let unforeseen: HashSet<&Target> = unforeseen.map(|it| &it.target).collect();
    let mut planned = plan.steps.iter().flat_map(|step| &step.targets);
    !planned.any(|it| it.state.hindrance().is_some() && unforeseen.contains(&it.target))
}

fn touches(step: &UndoStep, target: &Target) -> bool {
    let mut theirs = step.targets.iter();
    theirs.any(|other| other.overlap(target).is_some())
}

/// Says what a look at a target foresees.
fn foreseen(found: &Examined) -> TargetState {
    match (&found.lost, &found.state) {
        (Some(why), _) => TargetState::CannotComeBack { why: why.clone() },
        (None, State::After) => TargetState::ComesBack,
        (None, State::Before) => TargetState::AlreadyBefore,
        (None, State::Other { why }) => TargetState::Conflict { why: why.clone() },
    }
}

/// Says what preparing it foresees of a target.
fn found_out(tried: &Tried, target: &Target, found: &Examined) -> TargetState {
    let outcomes = match tried {
        Ok(outcomes) => outcomes,
        Err(_) if found.state == State::Before => return TargetState::AlreadyBefore,
        Err(why) => return TargetState::Conflict { why: why.clone() },
    };
    let outcome = outcomes.iter().find(|outcome| outcome.target == *target);
    let Some(outcome) = outcome else {
        return foreseen(found);
    };
    match outcome.kind.clone() {
        OutcomeKind::Restored | OutcomeKind::Compensated => TargetState::ComesBack,
        OutcomeKind::AlreadyGone => TargetState::AlreadyBefore,
        OutcomeKind::Merged => TargetState::Merges,
        OutcomeKind::Overwritten { why } => TargetState::Overwritten { why },
        OutcomeKind::Incomplete { why } => TargetState::Incomplete { why },
        OutcomeKind::Failed { why } => TargetState::CannotComeBack { why },
        OutcomeKind::Conflict { why }
        | OutcomeKind::Skipped { why }
        | OutcomeKind::Left { why }
        | OutcomeKind::InDoubt { why } => TargetState::Conflict { why },
    }
}

/// Tells how much of what stands in the way of a plan does not stand in the way of a forced one.
fn forcing_past(plan: &PlanView, forced: &PlanView) -> Option<Forcing> {
    let (hindered, stuck) = (hindered(plan), hindered(forced));
    match (hindered.is_subset(&stuck), stuck.is_empty()) {
        (true, _) => None,
        (false, true) => Some(Forcing::All),
        (false, false) => Some(Forcing::Part),
    }
}

/// Lists the targets that stand in the way of a plan, each with its step.
fn hindered(view: &PlanView) -> HashSet<(OperationId, &Target)> {
    let steps = view.steps.iter();
    let each = steps.flat_map(|step| step.targets.iter().map(|it| (step.id, it)));
    each.filter(|(_, it)| it.state.hindrance().is_some())
        .map(|(id, it)| (id, &it.target))
        .collect()
}

/// Says what stands in the way of a plan.
pub(super) fn conflicts(view: &PlanView, tried: OnConflict) -> EngineError {
    let mut planned = view.steps.iter().flat_map(|step| &step.targets);
    EngineError::Conflicts {
        has_rest: planned.any(|planned| planned.state.is_work()),
        is_mergeable: view.is_mergeable,
        force: view.force,
        targets: refused(view),
        named: view.named.clone(),
        tried,
    }
}

fn refused(view: &PlanView) -> Vec<RefusedTarget> {
    let mut refused = Vec::new();
    for step in &view.steps {
        for planned in &step.targets {
            if let Some(why) = planned.state.hindrance() {
                let (target, why) = (planned.target.clone(), why.clone());
                refused.push(RefusedTarget {
                    id: step.id,
                    target,
                    why,
                    is_lost: matches!(planned.state, TargetState::CannotComeBack { .. }),
                });
            }
        }
    }
    refused
}

/// Names the commands that were asked for and did nothing themselves: only what was done within them goes.
fn commands_behind(steps: &[UndoStep]) -> Vec<OperationId> {
    let is_step = |id: OperationId| steps.iter().any(|step| step.id == id);
    let behind = |step: &UndoStep| match step.chosen {
        Chosen::DependsOn { on, .. } if !is_step(on) => Some(on),
        Chosen::Named | Chosen::DependsOn { .. } | Chosen::DependencyOf { .. } => None,
    };
    steps.iter().filter_map(behind).collect()
}
