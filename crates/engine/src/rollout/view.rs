//! How a rollout looks from outside: what it did by the journal, and what is there by a look at each target.

use backout_model::ports::State;
use backout_model::{
    AgentId, History, Operation, OperationId, RolloutMark, RolloutPast, RolloutPlan, RolloutState,
    RolloutStep, Status, TargetPath, TaskId, Timestamp,
};
use serde::{Deserialize, Serialize};

use crate::{Engine, EngineError};

/// A rollout, as it stands.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RolloutView {
    /// By which it is gone on with or aborted.
    pub id: OperationId,
    /// The task of its writes, by which people call it.
    pub task: TaskId,
    /// Who asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// When it began.
    pub began: Timestamp,
    /// Where it stands.
    #[serde(flatten)]
    pub state: RolloutState,
    /// What became of the proposal that it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<ProposalNow>,
    /// In their order, the first with the first target.
    pub waves: Vec<WaveView>,
    /// What others had built on its writes and that went with them, and was not brought back since.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<AlsoGone>,
    /// Things worth knowing, such as a service that did not reload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What became of a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProposalNow {
    /// Nobody decided yet.
    Waits,
    /// It was let pass.
    Approved,
    /// Somebody said no.
    Rejected,
    /// Nobody decided in time.
    Expired,
    /// It was let pass, and is undone.
    Undone,
}

/// An operation that others had built on a write of a rollout, and that went with it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AlsoGone {
    /// Taken back with it; `redo` brings it back.
    pub id: OperationId,
    /// Its line for people.
    pub summary: String,
    /// The write of the rollout that it was built on: a redo of both brings both back.
    pub on: OperationId,
}

/// A wave of a rollout.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WaveView {
    /// Where it stands.
    pub standing: WaveStanding,
    /// What it writes.
    pub targets: Vec<StepView>,
}

/// Where a wave stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaveStanding {
    /// It comes later.
    Pending,
    /// Some of it is written, and it is not checked yet.
    UnderWay,
    /// It is written and passed its check.
    Passed,
    /// It failed, and some of it is there.
    Failed,
    /// It was taken back.
    Undone,
    /// It was never written, and will not be.
    Untouched,
}

/// One write of a rollout.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StepView {
    /// What is written.
    pub target: TargetPath,
    /// The operation that it has become; none if it was not asked yet, or nothing had to be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<OperationId>,
    /// Where that stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// What is there now.
    pub now: StepNow,
}

/// What a look at a target of a rollout found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepNow {
    /// The rollout has not come to it yet, and it is as the plan saw it.
    Pending,
    /// The rollout did not write it, and will not.
    Untouched,
    /// It was as asked already.
    Same,
    /// It is as the rollout wrote it.
    Written,
    /// It is as it was before.
    Undone,
    /// Somebody made something else of it.
    Changed,
    /// It cannot be looked at.
    Unknown,
}

impl RolloutView {
    pub(super) fn with_notes(mut self, notes: Vec<String>) -> Self {
        self.notes.extend(notes);
        self
    }
}

impl StepView {
    /// Tells whether something of it is there.
    fn is_there(&self) -> bool {
        match self.now {
            StepNow::Written => true,
            StepNow::Changed | StepNow::Unknown => self.status.is_some_and(Status::is_in_effect),
            StepNow::Pending | StepNow::Untouched | StepNow::Same | StepNow::Undone => false,
        }
    }

    /// Tells whether it was written once.
    fn was_written(&self) -> bool {
        self.status
            .is_some_and(|status| status.is_in_effect() || status == Status::Undone)
    }
}

impl Engine {
    /// Shows where a rollout stands.
    pub(super) fn view_rollout(&self, id: OperationId) -> Result<RolloutView, EngineError> {
        let past = self.rollout_past(id)?;
        let state = self.rollout_state(&past)?;
        let first = self.store.records_of(id)?.into_iter().next();
        let plan = &past.plan;
        let mut waves = Vec::new();
        let own = self.own_operations(plan)?;
        let mut also = Vec::new();
        for wave in 1..=plan.wave_count() {
            let mut targets = Vec::new();
            for (number, step) in plan.wave_steps(wave) {
                let operation = self.step_operation(plan, number)?;
                if let Some(operation) = &operation {
                    self.add_gone(operation, &past, &own, &mut also)?;
                }
                let now = self.step_now(&past, &state, (wave, step), operation.as_ref());
                targets.push(StepView {
                    target: step.target.clone(),
                    operation: operation.as_ref().map(|operation| operation.id),
                    status: operation.map(|operation| operation.status),
                    now,
                });
            }
            let standing = standing(&past, &state, wave, &targets);
            waves.push(WaveView { standing, targets });
        }
        let decided = if let RolloutState::Waits { proposal, .. } = &state {
            Some(self.proposal_now(*proposal)?)
        } else {
            None
        };
        Ok(RolloutView {
            id,
            task: plan.task.clone(),
            agent: plan.agent.clone(),
            began: first.map(|record| record.at).unwrap_or_default(),
            state,
            decided,
            waves,
            also,
            notes: Vec::new(),
        })
    }

    /// Tells what became of a proposal.
    fn proposal_now(&self, id: OperationId) -> Result<ProposalNow, EngineError> {
        let is_expired = |it: backout_model::Proposal| it.is_expired(self.now());
        Ok(match self.store.operation(id)?.map(|it| it.status) {
            Some(Status::Proposed) if self.store.proposal(id)?.is_some_and(is_expired) => {
                ProposalNow::Expired
            }
            None | Some(Status::Proposed) => ProposalNow::Waits,
            Some(Status::Refused) => ProposalNow::Rejected,
            Some(Status::Undone | Status::Aborted) => ProposalNow::Undone,
            Some(
                Status::Armed
                | Status::Applied
                | Status::Committed
                | Status::Interrupted
                | Status::InDoubt
                | Status::Failed,
            ) => ProposalNow::Approved,
        })
    }

    /// Looks at what a step wrote.
    fn step_now(
        &self,
        past: &RolloutPast,
        state: &RolloutState,
        (wave, step): (u32, &RolloutStep),
        operation: Option<&Operation>,
    ) -> StepNow {
        let written =
            operation.filter(|it| it.status.is_in_effect() || it.status == Status::Undone);
        let Some(operation) = written else {
            return match (is_passed(past, wave), is_over(past, state)) {
                (true, _) => StepNow::Same,
                (false, true) => StepNow::Untouched,
                (false, false) => self.pending_now(&past.plan, step),
            };
        };
        let examined = || {
            let effect = self.store.effect(operation.id)?;
            Ok::<_, EngineError>(self.driver_of(&effect)?.examine(&effect, true)?)
        };
        let Ok(examined) = examined() else {
            return StepNow::Unknown;
        };
        let all = |is_it: &dyn Fn(&State) -> bool| examined.iter().all(|it| is_it(&it.state));
        if all(&|state| *state == State::Before) {
            StepNow::Undone
        } else if all(&|state| *state == State::After) {
            StepNow::Written
        } else {
            StepNow::Changed
        }
    }

    /// Looks at a target that the rollout has not come to yet: is it what the plan saw?
    fn pending_now(&self, plan: &RolloutPlan, step: &RolloutStep) -> StepNow {
        let request = self.kept_request(plan.id, &step.request);
        let files = request.and_then(|request| self.files_of(&*request));
        let leads_there = files.map(|files| step.at.is_empty() || files == step.at);
        match (leads_there, self.digest_now(plan, step)) {
            (Ok(true), Ok(digest)) if digest == step.staged => StepNow::Pending,
            // Whoever was stopped has not looked.
            (Err(error), _) | (_, Err(error)) if error.is_stop() => StepNow::Unknown,
            // What cannot be prepared now could be when the rollout began.
            (Ok(_), Ok(_) | Err(EngineError::Driver(_))) | (Err(EngineError::Driver(_)), _) => {
                StepNow::Changed
            }
            (Err(_), _) | (_, Err(_)) => StepNow::Unknown,
        }
    }

    /// Adds what others had built on a write and that whoever carried the rollout out took back, oldest first.
    fn add_gone(
        &self,
        operation: &Operation,
        past: &RolloutPast,
        own: &[OperationId],
        also: &mut Vec<AlsoGone>,
    ) -> Result<(), EngineError> {
        let history = History::new(self.store.connected(&[operation.id])?);
        let mut above = vec![operation.id];
        let mut at = 0;
        while let Some(&on) = above.get(at) {
            let dependents = history.dependents(on).map(|(dependent, _)| dependent.id);
            let new: Vec<OperationId> = dependents.filter(|id| !above.contains(id)).collect();
            above.extend(new);
            at += 1;
        }
        let mut gone: Vec<&Operation> = above.iter().filter_map(|id| history.get(*id)).collect();
        gone.retain(|it| it.status == Status::Undone && !own.contains(&it.id));
        gone.sort_by_key(|it| it.place);
        for operation_gone in gone {
            let id = operation_gone.id;
            let is_known = also.iter().any(|it| it.id == id);
            if !is_known && self.is_taken_back_by(operation_gone, past)? {
                also.push(AlsoGone {
                    id,
                    summary: operation_gone.summary.clone(),
                    on: operation.id,
                });
            }
        }
        Ok(())
    }

    /// Tells whether whoever carried a rollout out took an operation back.
    fn is_taken_back_by(
        &self,
        operation: &Operation,
        past: &RolloutPast,
    ) -> Result<bool, EngineError> {
        for undo in operation.undos() {
            let owner = self.store.operation(undo)?.map(|undo| undo.owner);
            let mut owners = past.marks.iter().map(|(owner, _)| owner);
            if owner.is_some_and(|owner| owners.any(|it| *it == owner)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn is_passed(past: &RolloutPast, wave: u32) -> bool {
    let mut marks = past.marks.iter();
    marks.any(|(_, mark)| *mark == RolloutMark::Passed { wave })
}

/// Tells whether nothing more is written.
fn is_over(past: &RolloutPast, state: &RolloutState) -> bool {
    let gives_up =
        |mark: &RolloutMark| matches!(mark, RolloutMark::Failed { .. } | RolloutMark::Aborting);
    past.end.is_some()
        || *state == RolloutState::ByHand
        || past.marks.iter().any(|(_, mark)| gives_up(mark))
}

/// Tells where a wave stands, by what was said of it and by what became of its writes.
fn standing(
    past: &RolloutPast,
    state: &RolloutState,
    wave: u32,
    targets: &[StepView],
) -> WaveStanding {
    let is_there = targets.iter().any(StepView::is_there);
    let was_written = targets.iter().any(StepView::was_written);
    let mut marks = past.marks.iter();
    let is_failed = marks.any(
        |(_, mark)| matches!(mark, RolloutMark::Failed { wave: failed, .. } if *failed == wave),
    );
    match (is_passed(past, wave), is_failed) {
        _ if was_written && !is_there => WaveStanding::Undone,
        (true, _) => WaveStanding::Passed,
        (false, true) if is_there => WaveStanding::Failed,
        (false, false) if is_there => WaveStanding::UnderWay,
        (false, _) if is_over(past, state) => WaveStanding::Untouched,
        (false, _) => WaveStanding::Pending,
    }
}
