//! How a rollout looks from outside.

use backout_model::{
    AgentId, Operation, OperationId, RolloutMark, RolloutPast, RolloutState, Status, TargetPath,
    TaskId, Timestamp,
};
use serde::{Deserialize, Serialize};

use super::back::is_in_effect;
use crate::{Engine, EngineError};

/// A rollout, as it stands.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RolloutView {
    /// Its id.
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
    /// Its waves.
    pub waves: Vec<WaveView>,
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
    /// It failed, and some of it is still there.
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
}

impl Engine {
    /// Shows where a rollout stands.
    pub(super) fn view_rollout(&self, id: OperationId) -> Result<RolloutView, EngineError> {
        let past = self.rollout_past(id)?;
        let state = self.rollout_state(&past)?;
        let first = self.store.records_of(id)?.into_iter().next();
        let plan = &past.plan;
        let mut waves = Vec::new();
        for wave in 1..=plan.wave_count() {
            let mut targets = Vec::new();
            for (number, step) in plan.wave_steps(wave) {
                let operation = self.step_operation(plan, number)?;
                targets.push(step_view(step.target.clone(), operation.as_ref()));
            }
            let standing = standing(&past, wave, &targets);
            waves.push(WaveView { standing, targets });
        }
        Ok(RolloutView {
            id,
            task: plan.task.clone(),
            agent: plan.agent.clone(),
            began: first.map(|record| record.at).unwrap_or_default(),
            state,
            waves,
        })
    }
}

fn step_view(target: TargetPath, operation: Option<&Operation>) -> StepView {
    StepView {
        target,
        operation: operation.map(|operation| operation.id),
        status: operation.map(|operation| operation.status),
    }
}

/// Tells where a wave stands, by what was said of it and by what became of its writes.
fn standing(past: &RolloutPast, wave: u32, targets: &[StepView]) -> WaveStanding {
    let has = |is_it: &dyn Fn(Status) -> bool| targets.iter().filter_map(|it| it.status).any(is_it);
    let said =
        |is_it: &dyn Fn(&RolloutMark) -> bool| past.marks.iter().any(|(_, mark)| is_it(mark));
    let is_there = has(&is_in_effect)
        || has(&|status| matches!(status, Status::Armed | Status::InDoubt | Status::Failed));
    let has_gone = !is_there && has(&|status| status == Status::Undone);
    let is_passed = said(&|mark| *mark == RolloutMark::Passed { wave });
    let is_failed =
        said(&|mark| matches!(mark, RolloutMark::Failed { wave: failed, .. } if *failed == wave));
    match (is_passed, is_failed) {
        _ if has_gone => WaveStanding::Undone,
        (true, _) => WaveStanding::Passed,
        (false, true) if is_there => WaveStanding::Failed,
        // Nothing of it was written: it failed before.
        (false, true) => WaveStanding::Undone,
        (false, false) if is_there => WaveStanding::UnderWay,
        (false, false) if past.end.is_some() => WaveStanding::Untouched,
        (false, false) => WaveStanding::Pending,
    }
}
