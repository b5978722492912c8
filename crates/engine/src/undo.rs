//! Undo and redo: decide with a pure plan, look before touching anything, then take back step by step.
//!
//! - A plan with a conflict is refused whole, unless the caller asks for its independent parts.
//! - Each step is an operation of its own, armed and journalled, so that an undo survives being killed and can itself
//!   be undone.
//! - A step that fails does not stop the independent ones; what it stands on is left alone.

use std::collections::BTreeSet;
use std::time::Duration;

use backout_crashpoint::crash_point;
use backout_drivers::file::{Examined, FileError, State};
use backout_model::ports::{Driver as _, Durability, Entry, Journal as _, OnConflict};
use backout_model::{
    DependencyReason, Effect, Event, Goal, History, LeftAlone, Operation, OperationId, OutcomeKind,
    Permission, Status, Target, TargetOutcome, UndoPlan, UndoStep, Verb, plan_undo,
};
use backout_storage::{Filter, OperationRef};

use crate::lifecycle::{Head, with_causes};
use crate::{
    Engine, EngineError, PlanView, PlannedStep, PlannedTarget, RefusedTarget, TargetState,
    UndoOptions, UndoReport, UndoWhat, UndoneStep,
};

/// Pauses before a step that failed for a passing reason is tried again.
const RETRY_PAUSES_MS: [u64; 3] = [50, 200, 800];

impl Engine {
    /// Takes operations back.
    pub fn undo(&self, what: &UndoWhat, options: UndoOptions) -> Result<UndoReport, EngineError> {
        self.recover_the_dead()?;
        let (history, plan) = self.plan(what, options)?;
        self.carry_out(&history, plan, options)
    }

    /// Shows what an undo would do.
    pub fn preview_undo(
        &self,
        what: &UndoWhat,
        options: UndoOptions,
    ) -> Result<PlanView, EngineError> {
        let (history, plan) = self.plan(what, options)?;
        self.view(&history, &plan, options)
    }

    /// Takes undos back.
    pub fn redo(
        &self,
        what: Option<&OperationRef>,
        options: UndoOptions,
    ) -> Result<UndoReport, EngineError> {
        self.recover_the_dead()?;
        let (history, plan) = self.plan_redo(what, options)?;
        self.carry_out(&history, plan, options)
    }

    /// Shows what a redo would do.
    pub fn preview_redo(
        &self,
        what: Option<&OperationRef>,
        options: UndoOptions,
    ) -> Result<PlanView, EngineError> {
        let (history, plan) = self.plan_redo(what, options)?;
        self.view(&history, &plan, options)
    }

    fn plan(
        &self,
        what: &UndoWhat,
        options: UndoOptions,
    ) -> Result<(History, UndoPlan), EngineError> {
        let (goal, roots) = self.goal(what, options)?;
        self.plan_goal(&goal, &roots, options)
    }

    fn plan_goal(
        &self,
        goal: &Goal,
        roots: &[OperationId],
        options: UndoOptions,
    ) -> Result<(History, UndoPlan), EngineError> {
        let mut operations = self.store.connected(roots)?;
        if let Some(oldest) = operations
            .iter()
            .filter(|op| roots.contains(&op.id))
            .map(|op| op.lsn)
            .min()
        {
            // Later work that is not connected stays; the plan says so.
            let filter = Filter {
                after: Some(oldest),
                limit: Some(50),
                ..Filter::default()
            };
            operations.extend(self.store.operations(&filter)?);
        }
        let history = History::new(operations);
        let mut permission = Permission {
            committed: options.committed,
            ..Permission::default()
        };
        if options.on_conflict == OnConflict::Merge {
            permission.excused = self.excused(&history, roots)?;
        }
        let plan = plan_undo(&history, goal, &permission)?;
        Ok((history, plan))
    }

    /// Finds the goal and the operations it begins with.
    fn goal(
        &self,
        what: &UndoWhat,
        options: UndoOptions,
    ) -> Result<(Goal, Vec<OperationId>), EngineError> {
        let dependencies = options.with_dependencies;
        match what {
            UndoWhat::Newest => {
                let id = self.newest_in_effect()?;
                Ok((
                    Goal::Operations {
                        ids: vec![id],
                        dependencies,
                    },
                    vec![id],
                ))
            }
            UndoWhat::Operations(references) => {
                let mut ids = Vec::with_capacity(references.len());
                for reference in references {
                    ids.push(self.what_a_redo_brought_back(self.store.resolve(reference)?)?);
                }
                Ok((
                    Goal::Operations {
                        ids: ids.clone(),
                        dependencies,
                    },
                    ids,
                ))
            }
            UndoWhat::Task(task) => {
                if self.store.task(task)?.is_none() {
                    return Err(EngineError::NoTask { id: task.clone() });
                }
                let filter = Filter {
                    task: Some(task.clone()),
                    ..Filter::default()
                };
                Ok((Goal::Task(task.clone()), self.ids_of(&filter)?))
            }
            UndoWhat::ToCheckpoint(name) => {
                let checkpoint = self
                    .store
                    .checkpoint(name)?
                    .ok_or_else(|| EngineError::NoCheckpoint { name: name.clone() })?;
                let filter = Filter {
                    after: Some(checkpoint.lsn),
                    task: checkpoint.task.clone(),
                    agent: checkpoint.agent.clone(),
                    ..Filter::default()
                };
                let goal = Goal::Since {
                    lsn: checkpoint.lsn,
                    task: checkpoint.task,
                    agent: checkpoint.agent,
                };
                Ok((goal, self.ids_of(&filter)?))
            }
        }
    }

    fn ids_of(&self, filter: &Filter) -> Result<Vec<OperationId>, EngineError> {
        Ok(self
            .store
            .operations(filter)?
            .into_iter()
            .map(|operation| operation.id)
            .collect())
    }

    fn newest_in_effect(&self) -> Result<OperationId, EngineError> {
        let agent = self.settings.context.agent.clone();
        let task = self.settings.context.task.clone();
        let found = self.newest(
            &Filter {
                agent,
                task,
                ..Filter::default()
            },
            |operation| !operation.verb.is_reversal() && operation.status != Status::Armed,
        )?;
        found
            .map(|operation| operation.id)
            .ok_or(EngineError::Plan(backout_model::PlanError::Nothing))
    }

    /// Finds the newest operation in effect that `wanted` accepts, looking at a page at a time.
    fn newest(
        &self,
        filter: &Filter,
        wanted: impl Fn(&Operation) -> bool,
    ) -> Result<Option<Operation>, EngineError> {
        let mut limit = 32;
        loop {
            let page = Filter {
                limit: Some(limit),
                ..filter.clone()
            };
            let operations = self.store.operations(&page)?;
            let is_last = operations.len() < limit;
            let accepted = |op: &Operation| op.status.is_in_effect() && wanted(op);
            if let Some(found) = operations.into_iter().find(accepted) {
                return Ok(Some(found));
            }
            if is_last {
                return Ok(None);
            }
            limit *= 8;
        }
    }

    /// A redo is not undone itself: what it brought back is.
    fn what_a_redo_brought_back(&self, id: OperationId) -> Result<OperationId, EngineError> {
        let Some(operation) = self.store.operation(id)? else {
            return Ok(id);
        };
        if operation.verb != Verb::Redo {
            return Ok(id);
        }
        let undo = operation
            .undoes
            .map(|undo| self.store.operation(undo))
            .transpose()?
            .flatten();
        Ok(undo.and_then(|undo| undo.undoes).unwrap_or(id))
    }

    fn plan_redo(
        &self,
        what: Option<&OperationRef>,
        options: UndoOptions,
    ) -> Result<(History, UndoPlan), EngineError> {
        let undos = match what {
            None => self.newest_undo_group()?,
            Some(reference) => {
                let id = self.store.resolve(reference)?;
                let operation = self
                    .store
                    .operation(id)?
                    .ok_or(backout_model::PlanError::Unknown { id })?;
                match (operation.verb, operation.undone_by) {
                    (Verb::Undo, _) => vec![id],
                    (_, Some(undo)) => vec![undo],
                    _ => return Err(backout_model::PlanError::Nothing.into()),
                }
            }
        };
        let goal = Goal::Operations {
            ids: undos.clone(),
            dependencies: false,
        };
        self.plan_goal(&goal, &undos, options)
    }

    /// Finds the undos of the newest undo command that still hold.
    fn newest_undo_group(&self) -> Result<Vec<OperationId>, EngineError> {
        let newest = self
            .newest(&Filter::default(), |op| {
                op.verb == Verb::Undo && op.status == Status::Committed
            })?
            .ok_or(backout_model::PlanError::Nothing)?;
        let group = Filter {
            group: newest.group,
            ..Filter::default()
        };
        let holds = |op: &Operation| op.verb == Verb::Undo && op.status == Status::Committed;
        let members = self.store.operations(&group)?.into_iter().filter(holds);
        Ok(members.map(|op| op.id).collect())
    }

    /// Finds the later writes of the same targets that can stay because the undone change merges out.
    fn excused(
        &self,
        history: &History,
        roots: &[OperationId],
    ) -> Result<BTreeSet<(OperationId, OperationId)>, EngineError> {
        let mut excused = BTreeSet::new();
        for &root in roots {
            let Some(operation) = history.get(root) else {
                continue;
            };
            let effect = self.store.effect(operation.redone_by.unwrap_or(root))?;
            let trial = self
                .files
                .prepare_undo(self.next_id(), &effect, OnConflict::Merge)?;
            if trial
                .outcomes
                .iter()
                .all(|outcome| outcome.kind.is_settled())
            {
                let same = |reason| reason == DependencyReason::SameTarget;
                excused.extend(
                    history
                        .dependents(root)
                        .filter(|(_, reason)| same(*reason))
                        .map(|(dependent, _)| (dependent.id, root)),
                );
            }
        }
        Ok(excused)
    }

    /// Looks at every target that the plan would touch.
    fn view(
        &self,
        history: &History,
        plan: &UndoPlan,
        options: UndoOptions,
    ) -> Result<PlanView, EngineError> {
        let mut newer: Vec<&Operation> = Vec::new();
        let mut steps = Vec::with_capacity(plan.steps.len());
        for step in &plan.steps {
            let Some(operation) = history.get(step.id) else {
                continue;
            };
            let effect = self.store.effect(step.with)?;
            let mut targets = Vec::new();
            // What a newer step changes first cannot be judged yet; the state of one target may hang on another.
            let is_later = newer.iter().any(|other| overlap(other, operation));
            for examined in self.files.examine(&effect)? {
                let state = if is_later {
                    TargetState::AfterNewerStep
                } else {
                    self.state(&effect, &examined, options)?
                };
                targets.push(PlannedTarget {
                    target: examined.target,
                    state,
                });
            }
            newer.push(operation);
            steps.push(PlannedStep {
                step: step.clone(),
                summary: operation.summary.clone(),
                targets,
            });
        }
        let conflicts = |step: &PlannedStep| {
            step.targets
                .iter()
                .any(|t| matches!(t.state, TargetState::Conflict { .. }))
        };
        let is_executable =
            plan.needs_committed.is_empty() && (options.partial || !steps.iter().any(conflicts));
        Ok(PlanView {
            steps,
            left_alone: plan.left_alone.clone(),
            needs_committed: plan.needs_committed.iter().map(|step| step.id).collect(),
            is_executable,
        })
    }

    fn state(
        &self,
        effect: &Effect,
        examined: &Examined,
        options: UndoOptions,
    ) -> Result<TargetState, EngineError> {
        let why = match &examined.state {
            State::After => return Ok(TargetState::ComesBack),
            State::Before => return Ok(TargetState::AlreadyBefore),
            State::Other { why } => why.clone(),
        };
        match options.on_conflict {
            OnConflict::Refuse => Ok(TargetState::Conflict { why }),
            OnConflict::Force => Ok(TargetState::Overwritten { why }),
            OnConflict::Merge => {
                let trial = self
                    .files
                    .prepare_undo(self.next_id(), effect, OnConflict::Merge)?;
                let merges = trial
                    .outcomes
                    .iter()
                    .filter(|outcome| outcome.target == examined.target)
                    .all(|outcome| outcome.kind.is_settled());
                Ok(if merges {
                    TargetState::Merges
                } else {
                    TargetState::Conflict { why }
                })
            }
        }
    }

    /// Executes exactly the plan.
    fn carry_out(
        &self,
        history: &History,
        plan: UndoPlan,
        options: UndoOptions,
    ) -> Result<UndoReport, EngineError> {
        let view = self.view(history, &plan, options)?;
        if !view.needs_committed.is_empty() {
            return Err(EngineError::NeedsCommitted(Box::new(view)));
        }
        if !view.is_executable {
            return Err(EngineError::Conflicts {
                targets: conflicts(&view),
            });
        }
        let mut steps: Vec<UndoneStep> = Vec::with_capacity(plan.steps.len());
        let mut group = None;
        for step in &plan.steps {
            let Some(operation) = history.get(step.id) else {
                continue;
            };
            let stands_on_failed = history.dependents(step.id).any(|(dependent, _)| {
                steps
                    .iter()
                    .any(|s| s.id == dependent.id && !s.is_complete())
            });
            let undone = if stands_on_failed {
                skipped(operation)
            } else {
                self.take_back(operation, step, group, options.on_conflict)?
            };
            group = group.or(undone.by);
            steps.push(undone);
        }
        let report = UndoReport {
            steps,
            left_alone: visible(plan.left_alone),
        };
        if report.is_complete() {
            Ok(report)
        } else {
            Err(EngineError::Partial(Box::new(report)))
        }
    }

    /// Takes one operation back, trying again when the reason may pass.
    fn take_back(
        &self,
        operation: &Operation,
        step: &UndoStep,
        group: Option<OperationId>,
        on_conflict: OnConflict,
    ) -> Result<UndoneStep, EngineError> {
        let mut pauses = RETRY_PAUSES_MS.iter();
        loop {
            let error = match self.try_take_back(operation, step, group, on_conflict) {
                Ok(undone) => return Ok(undone),
                Err(error) => error,
            };
            if let Some(&pause) = pauses.next().filter(|_| may_pass(&error)) {
                std::thread::sleep(Duration::from_millis(pause));
                continue;
            }
            if let EngineError::Storage(error) = error {
                return Err(error.into());
            }
            let why = with_causes(&error);
            let outcomes = match error {
                EngineError::HalfDone { outcomes, .. } => {
                    let event = Event::UndoFailed {
                        id: step.id,
                        outcomes: outcomes.clone(),
                    };
                    self.store
                        .append(&Entry::of(vec![event]), Durability::Process)?;
                    outcomes
                }
                _ => all(operation, &OutcomeKind::Failed { why }),
            };
            return Ok(UndoneStep {
                id: step.id,
                summary: operation.summary.clone(),
                by: None,
                outcomes,
            });
        }
    }

    fn try_take_back(
        &self,
        operation: &Operation,
        step: &UndoStep,
        group: Option<OperationId>,
        on_conflict: OnConflict,
    ) -> Result<UndoneStep, EngineError> {
        let effect = self.store.effect(step.with)?;
        let mut lease = self.lease(&operation.targets)?;
        let id = lease.id;
        let undone = |by, outcomes| UndoneStep {
            id: step.id,
            summary: operation.summary.clone(),
            by,
            outcomes,
        };
        // Another process may have been faster: look again now that the targets are ours.
        let now = self.store.operation(step.id)?;
        if now.as_ref().map(|op| (op.status, op.redone_by))
            != Some((operation.status, operation.redone_by))
        {
            let why = "another process changed its status at the same moment".to_owned();
            return Ok(undone(None, all(operation, &OutcomeKind::Skipped { why })));
        }
        let ready = self.files.prepare_undo(id, &effect, on_conflict)?;
        crash_point("engine.undo-prepared");
        let is_foreseen_whole = ready
            .outcomes
            .iter()
            .all(|outcome| outcome.kind.is_settled());
        if !is_foreseen_whole && on_conflict != OnConflict::Force {
            return Ok(undone(None, ready.outcomes));
        }
        let verb = if operation.verb.is_reversal() {
            Verb::Redo
        } else {
            Verb::Undo
        };
        let head = Head {
            verb,
            summary: format!("{verb} of {}", of_what(operation)),
            decision: operation.decision.clone(),
            undoes: Some(step.id),
            group: Some(group.unwrap_or(id)),
        };
        let targets = ready.prepared.targets.clone();
        let armed = self.arm(id, head, &self.settings.context, ready.prepared)?;
        lease.is_ended_by_a_record();
        let completion = self.apply(armed, &targets)?;
        let mut events = vec![Event::Applied { id, completion }, Event::Commit { id }];
        events.extend(what_follows(operation, step, id, &ready.outcomes));
        crash_point("engine.undo-applied");
        // What was restored stays restored, also when power fails right after the answer.
        self.store.append(&Entry::of(events), Durability::Process)?;
        crash_point("engine.undone");
        Ok(undone(Some(id), ready.outcomes))
    }
}

/// What the journal says when an undo or redo has ended: who is undone, who is back.
pub(crate) fn what_follows(
    operation: &Operation,
    step: &UndoStep,
    by: OperationId,
    outcomes: &[TargetOutcome],
) -> Vec<Event> {
    let mut events = vec![Event::Undone {
        id: step.id,
        by,
        outcomes: outcomes.to_vec(),
    }];
    if step.with != step.id {
        events.push(Event::Undone {
            id: step.with,
            by,
            outcomes: Vec::new(),
        });
    }
    if let (Verb::Undo, Some(back)) = (operation.verb, operation.undoes) {
        events.push(Event::Redone { id: back, by });
    }
    events
}

fn overlap(one: &Operation, other: &Operation) -> bool {
    let touches = |target: &Target| other.targets.iter().any(|t| t.overlap(target).is_some());
    one.targets.iter().any(touches)
}

fn of_what(operation: &Operation) -> String {
    match operation.verb {
        Verb::Undo | Verb::Redo => operation.summary.trim_start_matches("undo of ").to_owned(),
        _ => operation.summary.clone(),
    }
}

fn conflicts(view: &PlanView) -> Vec<RefusedTarget> {
    let mut refused = Vec::new();
    for step in &view.steps {
        for planned in &step.targets {
            if let TargetState::Conflict { why } = &planned.state {
                let (target, why) = (planned.target.clone(), why.clone());
                refused.push(RefusedTarget {
                    id: step.step.id,
                    target,
                    why,
                });
            }
        }
    }
    refused
}

fn skipped(operation: &Operation) -> UndoneStep {
    let why = "something built on it could not be taken back".to_owned();
    UndoneStep {
        id: operation.id,
        summary: operation.summary.clone(),
        by: None,
        outcomes: all(operation, &OutcomeKind::Skipped { why }),
    }
}

fn all(operation: &Operation, kind: &OutcomeKind) -> Vec<TargetOutcome> {
    let outcome = |target: &Target| TargetOutcome::new(target.clone(), kind.clone());
    operation.targets.iter().map(outcome).collect()
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
        EngineError::Busy { .. } => true,
        EngineError::File(error) => is_passing(error),
        EngineError::TakenBack { cause, .. } => may_pass(cause),
        _ => false,
    }
}

fn is_passing(error: &FileError) -> bool {
    use std::io::ErrorKind as Kind;
    let FileError::Io { source, .. } = error else {
        return false;
    };
    matches!(
        source.kind(),
        Kind::Interrupted | Kind::WouldBlock | Kind::ResourceBusy
    )
}
