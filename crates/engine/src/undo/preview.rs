//! Looking at every target that a plan would touch, before anything is touched.

use std::collections::{HashMap, HashSet};

use backout_files::said::said_of_barred;
use backout_model::ports::{Examined, Guarantee, OnConflict, State};
use backout_model::{
    History, Key, Operation, OperationId, OutcomeKind, Reach, Target, TargetOutcome, TaskId,
    UndoPlan, UndoStep,
};

use super::after_newer::after_newer;
use super::futile::{futile_steps, has_work_without, leave_out};
use super::named::{name_whole_writers, names_of};
use super::walled::{is_walled_off, made_way};
use super::work::Work;
use crate::lifecycle::with_causes;
use crate::{
    Engine, EngineError, Forcing, PlanView, PlannedStep, PlannedTarget, RefusedTarget, TakeBack,
    TargetState, UndoOptions,
};

/// A plan, before anybody has looked at the world.
pub(super) struct Planned {
    pub(super) history: History,
    pub(super) plan: UndoPlan,
    /// What was asked for, if it was by name. A step's id is no name for it: the id of an undo may stand for a whole act.
    pub(super) named: Vec<OperationId>,
    /// The task that is meant.
    pub(super) task: Option<TaskId>,
}

/// Makes the plan of what was asked for, with these options.
pub(super) type Planner<'p> = &'p dyn Fn(&UndoOptions) -> Result<Planned, EngineError>;

/// What preparing a step foresees of each target, or what stopped it.
type Tried = Result<Vec<TargetOutcome>, String>;

impl Engine {
    /// Makes the plan, and looks whether it can be executed: as it is, or else with a merge.
    pub(super) fn look(
        &self,
        make: Planner<'_>,
        options: &UndoOptions,
    ) -> Result<(Planned, PlanView), EngineError> {
        let make = |options: &UndoOptions| {
            let planned = make(options)?;
            let plan = self.joined(&planned.history, planned.plan, options.on_conflict)?;
            Ok::<_, EngineError>(Planned { plan, ..planned })
        };
        let mut planned = make(options)?;
        let mut view = self.view(&planned, options)?;
        let futile = futile_steps(&planned, &view);
        view.has_rest = has_work_without(&view, &futile);
        if options.partial && !futile.is_empty() {
            leave_out(&futile, &mut planned.plan);
            let has_rest = view.has_rest;
            view = PlanView {
                has_rest,
                ..self.view(&planned, options)?
            };
        } else if view.has_rest && !view.is_executable && view.steps.len() > 1 {
            view.has_rest = self.has_rest(&planned, &futile, options)?;
        }
        if !view.is_executable && options.on_conflict == OnConflict::Refuse {
            let merging = UndoOptions {
                on_conflict: OnConflict::Merge,
                diff: false,
                ..options.clone()
            };
            let merged = make(&merging).and_then(|planned| self.view(&planned, &merging));
            view.is_mergeable =
                merged.is_ok_and(|merged| merged.is_executable && is_foreseen(&view, &merged));
        }
        if !view.is_executable && options.on_conflict != OnConflict::Force {
            let forcing = UndoOptions {
                on_conflict: OnConflict::Force,
                diff: false,
                ..options.clone()
            };
            let forced = make(&forcing).and_then(|planned| self.view(&planned, &forcing));
            view.force = forced.ok().and_then(|forced| forcing_past(&view, &forced));
        }
        Ok((planned, view))
    }

    /// Joins the steps of an operation that the same recipe carries out: where a redo brought back as one what goes in parts,
    /// that is the operation's own. By force it is the redo's, if that speaks of all.
    fn joined(
        &self,
        history: &History,
        plan: UndoPlan,
        on_conflict: OnConflict,
    ) -> Result<UndoPlan, EngineError> {
        let mut ids = HashSet::new();
        if plan.steps.iter().all(|step| ids.insert(step.id)) {
            return Ok(plan);
        }
        let mut steps: Vec<UndoStep> = Vec::with_capacity(plan.steps.len());
        for step in plan.steps {
            // A redo that was named takes back all that it brought, whoever holds it.
            let is_one = |it: &UndoStep| it.with == step.with || on_conflict == OnConflict::Force;
            let before = steps.iter().position(|it| it.id == step.id && is_one(it));
            let united = match before.and_then(|at| Some((at, steps.get(at)?))) {
                Some((at, before)) => self.united(before, &step)?.map(|united| (at, united)),
                None => None,
            };
            match united {
                Some((at, united)) => put_joined(&mut steps, at, united, &step),
                None => steps.push(step),
            }
        }
        let mut joined: Vec<UndoStep> = Vec::with_capacity(steps.len());
        for step in steps {
            let with = match history.get(step.id) {
                Some(operation) => self.work(operation, &step)?.step.with,
                None => step.with,
            };
            let is_same = |it: &UndoStep| it.id == step.id && it.with == with;
            let same = joined.iter().position(is_same);
            match same.and_then(|at| Some((at, joined.get(at)?.clone()))) {
                Some((at, mut same)) => {
                    same.targets.extend(step.targets.iter().cloned());
                    same.targets
                        .sort_by(|one, other| one.key().cmp(other.key()));
                    put_joined(&mut joined, at, same, &step);
                }
                None => joined.push(UndoStep { with, ..step }),
            }
        }
        Ok(UndoPlan {
            steps: joined,
            ..plan
        })
    }

    /// Looks at every target that the plan would touch.
    pub(super) fn view<'h>(
        &self,
        planned: &'h Planned,
        options: &UndoOptions,
    ) -> Result<PlanView, EngineError> {
        let (history, plan) = (&planned.history, &planned.plan);
        let mut works: Vec<Work<'h>> = Vec::new();
        let mut steps = Vec::with_capacity(plan.steps.len());
        // Those of the steps whose driver is there and answers.
        let mut answered = Vec::new();
        let mut nobody = None;
        for step in &plan.steps {
            let Some(operation) = history.get(step.id) else {
                continue;
            };
            let subject = self.subject_of(operation)?;
            let look = |work: Work<'h>| {
                self.refuse_undecided(&work)?;
                let targets = self.planned_targets(&work, (&works, &steps), options)?;
                Ok((work, targets))
            };
            let (work, mut targets) = match self.work(operation, step).and_then(look) {
                Ok(found) => found,
                // A server that does not answer holds up what is elsewhere no more than a driver that is not there.
                Err(error) if error.is_unanswered(step.targets.iter()) => {
                    steps.push(of_nobody(operation, subject, step, &error));
                    nobody = nobody.or(Some(error));
                    continue;
                }
                Err(error) => return Err(error),
            };
            if way_of(operation) == TakeBack::Redo {
                let comes = |id: OperationId| steps.iter().any(|it: &PlannedStep| it.id == id);
                self.name_undone_base(&subject, &comes, &mut targets)?;
                self.keep_what_it_made(&subject, &mut targets)?;
            } else {
                self.refuse_lost_in_tree(operation, &targets)?;
                name_whole_writers(planned, step.id, &mut targets);
            }
            steps.push(PlannedStep {
                id: subject.id,
                way: way_of(operation),
                with: work.step.with,
                strategy: step.strategy,
                chosen: step.chosen.clone(),
                summary: subject.summary,
                guarantee: work.guarantee,
                seen_by_others: work.seen_by_others.clone(),
                targets,
            });
            works.push(work);
            answered.extend(steps.last().cloned());
        }
        if let Some(error) = nobody.filter(|_| works.is_empty()) {
            return Err(error);
        }
        let diff = if options.diff {
            Some(self.plan_diff(&works, &answered)?)
        } else {
            None
        };
        Ok(PlanView {
            named: names_of(planned),
            is_executable: plan.needs_committed.is_empty()
                && plan.needs_others.is_empty()
                && (options.partial || is_free(&steps))
                && (steps.is_empty() || !steps.iter().all(PlannedStep::is_idle)),
            is_mergeable: false,
            has_rest: false,
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
        (newer, steps): (&[Work<'_>], &[PlannedStep]),
        options: &UndoOptions,
    ) -> Result<Vec<PlannedTarget>, EngineError> {
        let driver = self.driver_of(&work.effect)?;
        let examined = driver.examine(&work.effect, false)?;
        // What newer steps take away first may be what stands in the way.
        let is_tried = newer.is_empty()
            && (driver.foresees_by_trying() || is_walled_off(work) || has_stuck_home(&examined));
        let tried = self.tried(work, &examined, options, is_tried)?;
        // What a newer step changes first cannot be judged yet.
        let is_later = |target: &Target| newer.iter().any(|newer| is_before(newer, work, target));
        let come = driver.outline(&work.effect)?.come;
        let stays =
            |found: &Examined| !come.contains(found.target.key()) && stays_there(newer, found);
        // What has no directory yet has one after the step that brings it.
        let is_homed = |found: &Examined| {
            let home = found.home.clone().map(Target::node);
            home.is_some_and(|home| newer.iter().any(|newer| touches(&newer.step, &home)))
        };
        let later = examined
            .iter()
            .filter(|it| is_homed(it) || is_later(&it.target) && !stays(it));
        let later: HashSet<usize> = later.map(|it| it.change).collect();
        let mut between = if later.is_empty() {
            HashMap::new()
        } else {
            self.between(work, (newer, steps), &examined, options.partial)?
        };
        // A newer step may open the directory.
        let is_barred = |found: &Examined| {
            let directory = found.barred.as_ref()?;
            let is_it = |target: &Target| target.file() == Some(directory);
            let mut steps = newer.iter().flat_map(|newer| &newer.step.targets);
            (!steps.any(is_it)).then(|| said_of_barred(directory))
        };
        let planned = work.examined(&examined).into_iter();
        let planned = planned.map(|(target, found)| {
            let lost = found.and_then(|found| lost_with(steps, &target, found));
            let state = match (found, lost) {
                (_, Some(why)) => TargetState::CannotComeBack { why },
                (Some(found), None) if later.contains(&found.change) => {
                    let why = between.remove(target.key());
                    after_newer(why, options.on_conflict, found)
                }
                (Some(found), None) => match (&tried, is_barred(found)) {
                    (_, Some(why)) => TargetState::Conflict { why },
                    (Some(tried), None) => found_out(tried, &target, found),
                    (None, None) => as_part(work, &target, found, foreseen(found)),
                },
                (None, None) => TargetState::AlreadyBefore,
            };
            PlannedTarget {
                goes: state.is_work() && found.is_some_and(|found| found.goes),
                comes: found.is_some_and(|found| !found.goes),
                whole_by: None,
                target,
                state,
            }
        });
        let mut planned: Vec<_> = planned.collect();
        if let Some(Ok(outcomes)) = &tried {
            planned.extend(made_way(outcomes, &planned));
        }
        self.foresee_whole(work, newer, options.on_conflict, &mut planned)?;
        self.foresee_merged(work, options.on_conflict, &mut planned)?;
        if way_of(work.operation) == TakeBack::Redo {
            self.foresee_left(work, &mut planned)?;
        }
        Ok(planned)
    }

    /// Says of what a redo will find as it would make it whether that is left as it is.
    fn foresee_left(
        &self,
        work: &Work<'_>,
        planned: &mut [PlannedTarget],
    ) -> Result<(), EngineError> {
        let is_found = |it: &PlannedTarget| it.state == TargetState::AlreadyBefore;
        let found = planned.iter().filter(|it| is_found(it));
        let so =
            |it: &PlannedTarget| TargetOutcome::new(it.target.clone(), OutcomeKind::AlreadyGone);
        let mut outcomes: Vec<TargetOutcome> = found.map(so).collect();
        self.mark_left(work, &mut outcomes)?;
        let found = planned.iter_mut().filter(|it| is_found(it));
        for (it, outcome) in std::iter::zip(found, outcomes) {
            if let OutcomeKind::Left { why } = outcome.kind {
                it.state = TargetState::Left { why };
            }
        }
        Ok(())
    }

    /// Prepares a merge, a forced restore or a part, where something stands in the way, to see what would come of it. An
    /// error is what the undo would meet.
    fn tried(
        &self,
        work: &Work<'_>,
        examined: &[Examined],
        options: &UndoOptions,
        is_tried: bool,
    ) -> Result<Option<Tried>, EngineError> {
        let is_other = |it: &Examined| matches!(it.state, State::Other { .. }) || it.lost.is_some();
        let on_conflict = options.on_conflict;
        // Where only a part is done, what is to go may have to stay: what belongs in its place does not come.
        let stuck = examined.iter().filter(|it| is_other(it));
        let stuck: HashSet<usize> = stuck.map(|it| it.change).collect();
        let is_stuck = |it: &&Examined| stuck.contains(&it.change);
        let (held, free): (Vec<_>, Vec<_>) = examined.iter().partition(is_stuck);
        let held: HashSet<_> = held.iter().map(|it| it.target.key()).collect();
        let is_part = options.partial && free.iter().any(|it| held.contains(it.target.key()));
        let is_asked = on_conflict != OnConflict::Refuse || is_part;
        if !is_tried && (!is_asked || !examined.iter().any(is_other)) {
            return Ok(None);
        }
        let how = work.how(on_conflict, true);
        let driver = self.driver_of(&work.effect)?;
        match driver.prepare_undo(self.next_id(), &work.effect, how) {
            Ok(ready) => Ok(Some(Ok(work.spread(&ready.outcomes)))),
            Err(error) if error.fault().is_stop() => Err(error.into()),
            Err(error) => Ok(Some(Err(with_causes(&error)))),
        }
    }

    /// Finds the operation that a step is about: for an undo or a redo, the one that it took or brought back.
    pub(crate) fn subject_of(&self, operation: &Operation) -> Result<Operation, EngineError> {
        let found = match operation.undoes {
            Some(_) => self.subject(operation.clone())?,
            None => None,
        };
        let found = found.map(|id| self.store.operation(id)).transpose()?;
        Ok(found.flatten().unwrap_or_else(|| operation.clone()))
    }
}

/// Tells whether steps can be taken as they are. What is lost does not hold up the steps that are not.
fn is_free(steps: &[PlannedStep]) -> bool {
    let is_in_the_way = |step: &PlannedStep| {
        let mut targets = step.targets.iter();
        targets.any(|target| target.state.hindrance().is_some())
    };
    let is_work = |step: &PlannedStep| {
        !is_in_the_way(step) && step.targets.iter().any(|it| it.state.is_work())
    };
    let has_conflict = |step: &PlannedStep| {
        let mut targets = step.targets.iter();
        targets.any(|it| matches!(it.state, TargetState::Conflict { .. }))
    };
    !steps.iter().any(is_in_the_way) || !steps.iter().any(has_conflict) && steps.iter().any(is_work)
}

/// Says of a step that nobody here can take it.
fn of_nobody(
    operation: &Operation,
    subject: Operation,
    step: &UndoStep,
    error: &EngineError,
) -> PlannedStep {
    let targets = step.targets.iter().map(|target| PlannedTarget {
        target: target.clone(),
        state: TargetState::CannotComeBack {
            why: with_causes(error),
        },
        goes: false,
        comes: false,
        whole_by: None,
    });
    PlannedStep {
        id: subject.id,
        way: way_of(operation),
        with: step.with,
        strategy: step.strategy,
        chosen: step.chosen.clone(),
        summary: subject.summary,
        guarantee: Guarantee::default(),
        seen_by_others: None,
        targets: targets.collect(),
    }
}

/// Tells which way taking an operation back goes.
pub(super) const fn way_of(operation: &Operation) -> TakeBack {
    if operation.verb.is_redoable() {
        TakeBack::Redo
    } else {
        TakeBack::Undo
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

/// Puts a step that was joined with another in the place of the first, or of the other, if something between them lies above that.
fn put_joined(steps: &mut Vec<UndoStep>, at: usize, joined: UndoStep, other: &UndoStep) {
    let mut between = steps.iter().skip(at + 1);
    let is_below = between.any(|it| other.targets.iter().any(|target| touches(it, target)));
    steps.remove(at);
    steps.insert(if is_below { steps.len() } else { at }, joined);
}

pub(super) fn touches(step: &UndoStep, target: &Target) -> bool {
    let mut theirs = step.targets.iter();
    theirs.any(|other| other.overlap(target).is_some())
}

/// Tells whether a step changes a target before the turn of `work` comes. Another step of the same operation does that to a
/// directory, or where both are about the same: all else is as both left it.
fn is_before(newer: &Work<'_>, work: &Work<'_>, target: &Target) -> bool {
    let is_of_both = || {
        let mut theirs = newer.step.targets.iter();
        target.reach() == Reach::Tree || theirs.any(|it| it.key() == target.key())
    };
    touches(&newer.step, target) && (newer.step.id != work.step.id || is_of_both())
}

/// Tells whether what is where a tree is to come back to stays there: newer steps only take things out of it. A directory that
/// only has strangers in it is the one that is to go.
fn stays_there(newer: &[Work<'_>], found: &Examined) -> bool {
    // Whoever changes a part of anything else changes it.
    let is_tree = found.target.reach() == Reach::Tree && found.target.file().is_some();
    if !is_tree || !found.strangers.is_empty() {
        return false;
    }
    let is_taken = |target: &Target| found.target.key().is_at_or_below(target.key());
    let mut taken = newer.iter().flat_map(|newer| &newer.step.targets);
    let is_there = !found.goes && matches!(found.state, State::Other { .. });
    is_there && !taken.any(is_taken)
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

/// Says why a target cannot come back although newer steps come first: what it would be made from does not come back with them.
fn lost_with(newer: &[PlannedStep], target: &Target, found: &Examined) -> Option<String> {
    let is_lost = |it: &PlannedTarget| {
        matches!(it.state, TargetState::CannotComeBack { .. })
            && it.target.overlap(target).is_some()
    };
    let mut planned = newer.iter().flat_map(|step| &step.targets);
    found.lost.clone().filter(|_| planned.any(is_lost))
}

/// Says of what only comes with its tree that it does, where something stands in the way of that.
fn as_part(work: &Work<'_>, target: &Target, found: &Examined, state: TargetState) -> TargetState {
    if let TargetState::Conflict { why } = &state
        && found.target.key() != target.key()
    {
        TargetState::Conflict {
            why: work.said_of_part(&found.target, why),
        }
    } else {
        state
    }
}

/// Tells whether a directory is to go in which something stays.
fn has_stuck_home(examined: &[Examined]) -> bool {
    let is_stuck = |it: &&Examined| matches!(it.state, State::Other { .. }) || it.lost.is_some();
    let stuck = examined.iter().filter(is_stuck);
    let homes: HashSet<Key> = stuck.flat_map(|it| it.target.key().ancestors()).collect();
    let mut going = examined.iter().filter(|it| it.goes && !is_stuck(it));
    going.any(|it| homes.contains(it.target.key()))
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
        | OutcomeKind::Overtaken { why }
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
    EngineError::Conflicts {
        has_rest: view.has_rest,
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
                    is_taken: step.way == TakeBack::Redo
                        && planned.comes
                        && is_directory(&planned.target),
                    whole_by: planned.whole_by,
                });
            }
        }
    }
    refused
}

/// Tells whether somebody has a directory where a tree would come back to.
fn is_directory(tree: &Target) -> bool {
    let path = tree.file().filter(|_| tree.reach() == Reach::Tree);
    path.is_some_and(|path| {
        let found = path.as_path().symlink_metadata();
        found.is_ok_and(|found| found.is_dir())
    })
}
