//! Undo and redo: decide with a pure plan, look before touching anything, then take back step by step.
//!
//! - A plan with a conflict is refused whole, unless the caller asks for what can be taken back. A conflict that only shows
//!   when its turn comes brings back what the steps before took back.
//! - Each step is an operation of its own, armed and journalled, so that an undo survives being killed and can itself
//!   be undone.
//! - A step that fails does not stop the independent ones; what it stands on is left alone. What follows such a failure is in
//!   `ladder`.
//! - What is reported is what was found afterwards.

mod above;
mod after_newer;
mod already;
mod between;
mod between_values;
mod by_then;
mod carriers;
mod excused;
mod follow;
mod foretell;
mod futile;
mod goal;
mod half_way;
mod lasting;
mod named;
mod newest;
mod nothing;
mod order;
mod parts;
mod preview;
mod put_back;
mod redoing;
mod since;
mod split;
mod undecided;
mod walled;
mod work;

pub(crate) use by_then::after_moves;
pub use nothing::real_target;

use std::collections::HashSet;

use backout_crashpoint::crash_point;
use backout_model::ports::{Entry, Guarantee, OnConflict};
use backout_model::{
    ActPlan, Decision, Event, History, LeftAlone, Operation, OperationId, OutcomeKind, Target,
    TargetOutcome, Trigger, UndoPlan, UndoStep, Verb,
};

use crate::ladder::Attempt;
use crate::lifecycle::{Head, with_causes};
use crate::{
    Engine, EngineError, Forcing, PlanView, PlannedStep, RedoWhat, RefusedTarget, TakeBack,
    UndoOptions, UndoReport, UndoWhat, UndoneStep,
};
use preview::{Planned, Planner, conflicts, way_of};
pub(crate) use work::{Told, Work};

/// Why an undo keeps what it replaces.
const KEPT: &str = "what it replaces is kept, so that it can be taken back as well";

impl Engine {
    /// Takes operations back.
    pub fn undo(&self, what: &UndoWhat, options: &UndoOptions) -> Result<UndoReport, EngineError> {
        self.recover_the_dead()?;
        // What was done last is found once: what a command at work is told of in between is not meant.
        let newest = if matches!(what, UndoWhat::Newest { .. }) {
            Some(self.aim(what, options)?)
        } else {
            None
        };
        let make = |options: &UndoOptions| self.plan_aimed(what, newest.as_ref(), options);
        self.told_to_gates(self.carry_out(Verb::Undo, &make, options))
    }

    /// Takes undos back.
    pub fn redo(&self, what: &RedoWhat, options: &UndoOptions) -> Result<UndoReport, EngineError> {
        self.recover_the_dead()?;
        let make = |options: &UndoOptions| self.plan_redo(what, options);
        self.told_to_gates(self.carry_out(Verb::Redo, &make, options))
    }

    /// Executes exactly the plan of what was asked for.
    fn carry_out(
        &self,
        asked: Verb,
        make: Planner<'_>,
        options: &UndoOptions,
    ) -> Result<UndoReport, EngineError> {
        let look = || {
            // By force nobody would ask afterwards whose work it was.
            if self.context.is_inside || options.on_conflict == OnConflict::Force {
                self.cut_what_is_at_work(&make(options)?.plan)?;
            }
            self.look(make, options)
        };
        let (planned, view) = look().map_err(|error| {
            if error.is_stop() {
                EngineError::Stopped(Box::default())
            } else {
                error
            }
        })?;
        let act_plan = planned.act_plan(options);
        let Planned { history, plan, .. } = planned;
        self.check_own(&history, &plan)?;
        self.check_only(&history, &plan, options)?;
        if !view.needs_committed.is_empty() || !view.needs_others.is_empty() {
            return Err(EngineError::NeedsWord(Box::new(view)));
        }
        let is_hindered = !view.is_executable && !view.steps.iter().all(PlannedStep::is_idle);
        if is_hindered && !view.is_only_lost() {
            return Err(conflicts(&view, options.on_conflict));
        }
        let trigger = self.set_off_by(options);
        let mut report = UndoReport {
            left_alone: visible(plan.left_alone),
            ..UndoReport::default()
        };
        let act = PartOf {
            asked,
            group: None,
            plan: act_plan.as_ref(),
            trigger: &trigger,
        };
        let mut ended = self.take_steps(&history, &plan.steps, act, options, &mut report);
        report.promised(&view);
        if let Err(EngineError::Stopped(report)) = &mut ended {
            report.promised(&view);
        }
        self.tell_end(&report, act_plan.as_ref(), &ended);
        if !ended? {
            // What the plan saw tells more than what stood in the way then.
            return Err(if is_hindered {
                conflicts(&view, options.on_conflict)
            } else {
                found_late(&report, &view, options.on_conflict)
            });
        }
        if report.is_complete() {
            Ok(report)
        } else if is_hindered && report.act.is_none() {
            Err(conflicts(&view, options.on_conflict))
        } else {
            Err(EngineError::Partial(Box::new(report)))
        }
    }

    /// Has the commands at work record what they wrote so far to what a plan is about: the plan has to know that.
    fn cut_what_is_at_work(&self, plan: &UndoPlan) -> Result<(), EngineError> {
        let targets = plan.steps.iter().flat_map(|step| step.targets.clone());
        // Whose checks still run is waited for when the targets are taken.
        let _checked = self.tell_running(&targets.collect::<Vec<_>>())?;
        Ok(())
    }

    /// Makes sure that who asks from inside of a command takes back nobody else's work.
    fn check_own(&self, history: &History, plan: &UndoPlan) -> Result<(), EngineError> {
        let context = &self.context;
        if !context.is_inside {
            return Ok(());
        }
        for operation in plan.steps.iter().filter_map(|step| history.get(step.id)) {
            for operation in [operation, &self.subject_of(operation)?] {
                if operation.agent != context.agent || operation.task != context.task {
                    return Err(EngineError::NotOwn {
                        id: operation.id,
                        agent: operation.agent.clone(),
                        task: operation.task.clone(),
                    });
                }
            }
        }
        Ok(())
    }

    /// Makes sure that nothing goes but some operations, if that was asked for.
    fn check_only(
        &self,
        history: &History,
        plan: &UndoPlan,
        options: &UndoOptions,
    ) -> Result<(), EngineError> {
        let Some(only) = &options.only else {
            return Ok(());
        };
        let mut by = Vec::new();
        for operation in plan.steps.iter().filter_map(|step| history.get(step.id)) {
            let subject = self.subject_of(operation)?;
            if !only.contains(&subject.id) {
                by.push((subject.id, subject.summary));
            }
        }
        if by.is_empty() {
            return Ok(());
        }
        Err(EngineError::BuiltOn { by })
    }

    /// Tries once to take one operation back.
    pub(crate) fn attempt(
        &self,
        operation: &Operation,
        step: &UndoStep,
        part_of: PartOf<'_>,
        options: &UndoOptions,
    ) -> Result<Attempt, EngineError> {
        let error = match self.try_take_back(operation, step, part_of, options) {
            Ok(undone) => return Ok(Attempt::of(undone)),
            Err(error) => error,
        };
        if matches!(
            &error,
            EngineError::Storage(_) | EngineError::NotRecorded { .. }
        ) {
            return Err(error);
        }
        let (is_stopped, may_pass) = (error.is_stop(), may_pass(&error));
        // That the step was put back is said by its status.
        let why = if let EngineError::TakenBack { cause, .. }
        | EngineError::HalfDone { cause, .. } = &error
        {
            with_causes(cause)
        } else {
            with_causes(&error)
        };
        let mut notes = Vec::new();
        let (half_done, outcomes) = if let EngineError::HalfDone {
            id, outcomes, made, ..
        } = error
        {
            let outcomes = outcomes.into_iter();
            let stands = outcomes.map(|outcome| half_way_of(outcome, &made));
            notes.push(why);
            (Some(id), stands.collect())
        } else {
            (None, all(step, &OutcomeKind::Failed { why }))
        };
        let undone = UndoneStep {
            notes,
            is_stopped,
            half_done,
            ..self.not_done(operation, outcomes)?
        };
        Ok(Attempt {
            may_pass,
            ..Attempt::of(undone)
        })
    }

    fn try_take_back(
        &self,
        operation: &Operation,
        step: &UndoStep,
        part_of: PartOf<'_>,
        options: &UndoOptions,
    ) -> Result<UndoneStep, EngineError> {
        let lease = self.lease_told(&step.targets, || self.lease(&step.targets, &[]))?;
        // Another process may have been faster: look again now that the targets are ours.
        let now = self.store.operation(step.id)?;
        if !now
            .as_ref()
            .is_some_and(|now| stands_alike(now, operation, step))
        {
            let why = "another process undid or redid it at the same moment".to_owned();
            return self.not_done(operation, all(step, &OutcomeKind::Skipped { why }));
        }
        let work = self.work(operation, step)?;
        self.refuse_undecided(&work)?;
        let PartOf {
            asked,
            group,
            plan,
            trigger,
        } = part_of;
        let verb = match way_of(operation) {
            TakeBack::Undo => Verb::Undo,
            TakeBack::Redo => Verb::Redo,
        };
        let act = Act {
            verb,
            asked,
            group,
            plan,
            on_conflict: options.on_conflict,
            is_partial: options.partial,
            trigger,
        };
        match self.reverse(lease, &work, act)? {
            Reversed::Done {
                by,
                outcomes,
                mut notes,
            } => {
                notes.extend(self.lasting(operation)?);
                Ok(UndoneStep {
                    by: Some(by),
                    notes,
                    ..self.not_done(operation, outcomes)?
                })
            }
            Reversed::Nothing(outcomes) => self.not_done(operation, outcomes),
        }
    }

    /// Takes back what a step is about, as an operation of its own: prepares, arms, applies, looks, records.
    pub(crate) fn reverse(
        &self,
        mut lease: crate::lease::HeldLease<'_>,
        work: &Work<'_>,
        act: Act<'_>,
    ) -> Result<Reversed, EngineError> {
        let id = lease.id;
        let operation = work.operation;
        let how = work.how(act.on_conflict, act.is_partial);
        let began = self.now();
        let ready = self
            .driver_of(&work.effect)?
            .prepare_undo(id, &work.effect, how)?;
        crash_point("engine.undo-prepared");
        let mut outcomes = work.spread(&ready.outcomes);
        if act.verb == Verb::Redo {
            self.mark_left(work, &mut outcomes)?;
        }
        let is_whole = outcomes.iter().all(|outcome| outcome.kind.is_taken_back());
        // What was found to be so already is part of it, too: a redo brings its standing back.
        let is_ours = |outcome: &&TargetOutcome| {
            outcome.kind.is_taken_back() && !matches!(outcome.kind, OutcomeKind::Left { .. })
        };
        let is_done = |outcome: &TargetOutcome| outcome.kind == OutcomeKind::AlreadyGone;
        let has_something = outcomes.iter().any(|outcome| is_ours(&outcome))
            && !(act.verb == Verb::Recover && outcomes.iter().all(is_done));
        let goes_on = act.is_partial || act.on_conflict == OnConflict::Force;
        if !has_something || !is_whole && !goes_on {
            return Ok(Reversed::Nothing(outcomes));
        }
        let notes = ready.prepared.notes.clone();
        let head = Head {
            verb: act.verb,
            summary: self.summary_of(act.verb, operation)?,
            decision: Decision {
                cost: Some(self.cost_of(&ready.prepared, began)),
                ..Decision::new(ready.prepared.strategy, &[], KEPT)
            },
            undoes: Some(work.step.id),
            with: Some(work.step.with).filter(|with| *with != work.step.id),
            group: Some(act.group.unwrap_or(id)),
            asked: Some(act.asked).filter(|asked| *asked != act.verb),
            call: None,
            approval: None,
            plan: act.plan.filter(|_| act.group.is_none()).cloned(),
            trigger: Some(act.trigger.clone()),
        };
        let settled = outcomes.iter().filter(is_ours);
        let targets: Vec<_> = settled.map(|outcome| outcome.target.clone()).collect();
        let mut prepared = ready.prepared;
        prepared.targets.extend(targets);
        prepared.targets.sort();
        prepared.targets.dedup();
        let context = &self.context;
        let within = context.within_command().into_iter().collect();
        let armed = self.arm(id, head, context, prepared, within)?;
        lease.is_ended_by_a_record();
        let applied = self.apply(armed)?;
        self.look_again(work, &applied.unlike, &mut outcomes)?;
        let completion = applied.completion;
        let mut events = vec![Event::Applied { id, completion }, Event::Commit { id }];
        events.extend(self.what_follows(work, id, &outcomes)?);
        crash_point("engine.undo-applied");
        // What was restored stays restored, also when power fails right after the answer.
        let recorded = self.store.append(&Entry::of(events), applied.durability);
        if let Err(cause) = recorded {
            // It happened, and nobody in this process answers for it any more: a recovery does.
            self.abandon(id);
            return Err(EngineError::NotRecorded { id, cause });
        }
        crash_point("engine.undone");
        Ok(Reversed::Done {
            by: id,
            outcomes,
            notes,
        })
    }

    /// Says in a line what taking an operation back is.
    fn summary_of(&self, verb: Verb, operation: &Operation) -> Result<String, EngineError> {
        Ok(if verb == Verb::Recover {
            format!("recovery of {}", operation.summary)
        } else {
            format!("{verb} of {}", self.subject_of(operation)?.summary)
        })
    }

    /// Reports a step that nothing was done for.
    fn not_done(
        &self,
        operation: &Operation,
        outcomes: Vec<TargetOutcome>,
    ) -> Result<UndoneStep, EngineError> {
        let subject = self.subject_of(operation)?;
        Ok(UndoneStep {
            id: subject.id,
            way: way_of(operation),
            summary: subject.summary,
            guarantee: Guarantee::default(),
            seen_by_others: None,
            by: None,
            outcomes,
            notes: Vec::new(),
            is_stopped: false,
            half_done: None,
            tried: Vec::new(),
            is_accepted: false,
            gone: Vec::new(),
        })
    }

    pub(crate) fn skipped(
        &self,
        operation: &Operation,
        step: &UndoStep,
    ) -> Result<UndoneStep, EngineError> {
        let why = "something built on it could not be taken back".to_owned();
        self.not_done(operation, all(step, &OutcomeKind::Skipped { why }))
    }
}

pub(crate) const fn is_conflict(outcome: &TargetOutcome) -> bool {
    matches!(outcome.kind, OutcomeKind::Conflict { .. })
}

/// Says what stood in the way when a plan was carried out, and was not seen before.
fn found_late(report: &UndoReport, view: &PlanView, tried: OnConflict) -> EngineError {
    let refused = |step: &UndoneStep| {
        let id = step.id;
        let found = step.outcomes.iter().filter_map(move |outcome| {
            let OutcomeKind::Conflict { why } = &outcome.kind else {
                return None;
            };
            Some(RefusedTarget {
                id,
                target: outcome.target.clone(),
                why: why.clone(),
                is_lost: false,
                is_taken: false,
                whole_by: None,
            })
        });
        found.collect::<Vec<_>>()
    };
    let targets: Vec<RefusedTarget> = report.steps.iter().flat_map(refused).collect();
    let is_refused = |id: OperationId, target: &Target| {
        let mut refused = targets.iter();
        refused.any(|it| it.id == id && it.target == *target)
    };
    let has_rest = view.steps.iter().any(|step| {
        let mut planned = step.targets.iter();
        planned.any(|it| it.state.is_work() && !is_refused(step.id, &it.target))
    });
    EngineError::Conflicts {
        has_rest,
        is_mergeable: false,
        force: (tried != OnConflict::Force).then_some(Forcing::All),
        targets,
        named: view.named.clone(),
        tried,
    }
}

/// How something is taken back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Act<'p> {
    pub(crate) verb: Verb,
    pub(crate) asked: Verb,
    /// The first operation of the same act.
    pub(crate) group: Option<OperationId>,
    /// What the act is to do, if that is more than one step.
    pub(crate) plan: Option<&'p ActPlan>,
    pub(crate) on_conflict: OnConflict,
    pub(crate) is_partial: bool,
    /// What set it off.
    pub(crate) trigger: &'p Trigger,
}

/// The act that a step is part of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PartOf<'p> {
    pub(crate) asked: Verb,
    /// Its first operation.
    pub(crate) group: Option<OperationId>,
    pub(crate) plan: Option<&'p ActPlan>,
    /// What set it off.
    pub(crate) trigger: &'p Trigger,
}

/// What came of taking something back.
pub(crate) enum Reversed {
    /// It was done, by this operation.
    Done {
        by: OperationId,
        outcomes: Vec<TargetOutcome>,
        notes: Vec<String>,
    },
    /// Nothing was done, for these reasons.
    Nothing(Vec<TargetOutcome>),
}

/// Tells whether what a step is about stands as it did when the plan was made.
fn stands_alike(now: &Operation, then: &Operation, step: &UndoStep) -> bool {
    let meant: HashSet<&Target> = step.targets.iter().collect();
    let standing = |operation: &Operation| {
        let all = operation.targets.iter();
        let meant = all.filter(|standing| meant.contains(&standing.target));
        meant.cloned().collect::<Vec<_>>()
    };
    now.status.is_in_effect() && standing(now) == standing(then)
}

/// Tells whether a step must wait for one that was not carried out. With the targets judged one by one, the guard on each
/// target says so better.
pub(crate) fn stands_on_failed(
    history: &History,
    step: &UndoStep,
    report: &UndoReport,
    is_partial: bool,
) -> bool {
    history.dependents(step.id).any(|(dependent, reason)| {
        let mut done = report.steps.iter();
        let is_failed = |done: &UndoneStep| done.id == dependent.id && !done.is_complete();
        done.any(is_failed) && !(is_partial && reason.is_of_targets())
    })
}

fn all(step: &UndoStep, kind: &OutcomeKind) -> Vec<TargetOutcome> {
    let targets = step.targets.iter().cloned();
    targets
        .map(|target| TargetOutcome::new(target, kind.clone()))
        .collect()
}

/// Says of a target of a step that stopped half-way how it stands against what was asked for: what the step had not done,
/// or had to put back, is not taken back; what it had `made` is, and nothing says so in the journal.
fn half_way_of(outcome: TargetOutcome, made: &[Target]) -> TargetOutcome {
    let kind = if outcome.kind == OutcomeKind::AlreadyGone {
        OutcomeKind::Skipped {
            why: "it stopped half-way, and this was put back".to_owned(),
        }
    } else if made.contains(&outcome.target) {
        OutcomeKind::InDoubt {
            why: "it stopped half-way, and this was done".to_owned(),
        }
    } else {
        outcome.kind
    };
    TargetOutcome::new(outcome.target, kind)
}

/// What is undone already is no news.
fn visible(left_alone: Vec<LeftAlone>) -> Vec<LeftAlone> {
    left_alone
        .into_iter()
        .filter(|left| !matches!(left, LeftAlone::NotInEffect { .. }))
        .collect()
}

/// Tells whether the same step may work a moment later.
fn may_pass(error: &EngineError) -> bool {
    match error {
        EngineError::Busy { .. } | EngineError::BeingChecked { .. } => true,
        EngineError::Driver(error) => error.fault().may_pass(),
        EngineError::TakenBack { cause, .. } => may_pass(cause),
        _ => false,
    }
}
