//! Carrying a rollout out: write a wave, let it settle, check it, go on.
//!
//! Whoever takes it up does the same: what was written before answers by its key.

use std::time::{Duration, Instant};

use backout_crashpoint::crash_point;
use backout_files::with_umask;
use backout_model::ports::{Reason, WaveLook};
use backout_model::{
    GoOn, OperationId, RolloutEnd, RolloutMark, RolloutPast, RolloutPlan, RolloutStep, Status,
    TargetPath,
};

use super::{RolloutError, RolloutView, key_of};
use crate::lifecycle::with_causes;
use crate::{Context, Engine, EngineError, GateError};

/// How often somebody who waits looks whether he is to stop.
const LOOK: Duration = Duration::from_millis(20);

/// How long to wait before a check that failed is tried again.
const BETWEEN_TRIES: Duration = Duration::from_millis(500);

/// Why a wave is not over.
enum Obstacle {
    /// A check or a write says no, in these words.
    Failed(String),
    /// A write waits for a decision.
    Waits(OperationId),
    /// Something stands in the way, and nothing failed.
    Held(String),
    /// Somebody stopped it.
    Interrupted,
    /// The journal cannot be asked.
    Broken(EngineError),
}

impl From<EngineError> for Obstacle {
    fn from(error: EngineError) -> Self {
        Self::Broken(error)
    }
}

impl Engine {
    /// Goes on with a rollout that this process has claimed, as far as that goes. Whatever breaks, some of it may be written.
    pub(super) fn carry_on(
        &self,
        id: OperationId,
        force: bool,
    ) -> Result<RolloutView, EngineError> {
        let task = self.rollout_past(id)?.plan.task;
        self.go_on(id, force).map_err(|error| {
            let cause = Box::new(error);
            RolloutError::Broken { task, cause }.into()
        })
    }

    fn go_on(&self, id: OperationId, force: bool) -> Result<RolloutView, EngineError> {
        loop {
            let past = self.rollout_past(id)?;
            let plan = &past.plan;
            if past.end.is_some() {
                return self.view_rollout(id);
            }
            match past.goes_on() {
                GoOn::Abort => {
                    self.say_who(&past, RolloutMark::Aborting)?;
                    return self.take_all_back(plan, force);
                }
                GoOn::TakeBack { wave, why } => {
                    let failed = RolloutMark::Failed {
                        wave,
                        why: why.clone(),
                    };
                    self.say_who(&past, failed)?;
                    return self.take_wave_back(plan, wave, &why, force);
                }
                GoOn::Wave(wave) if wave > plan.wave_count() => {
                    return self.close(plan, RolloutEnd::Done);
                }
                GoOn::Wave(wave) => {
                    let (mark, is_over) = match self.carry_out_wave(plan, wave, force) {
                        Ok(()) => (RolloutMark::Passed { wave }, false),
                        Err(Obstacle::Failed(why)) => (RolloutMark::Failed { wave, why }, false),
                        Err(Obstacle::Waits(proposal)) => {
                            (RolloutMark::Waits { wave, proposal }, true)
                        }
                        Err(Obstacle::Held(why)) => (RolloutMark::Held { wave, why }, true),
                        Err(Obstacle::Interrupted) => (RolloutMark::Interrupted { wave }, true),
                        Err(Obstacle::Broken(error)) => {
                            let why = with_causes(&error);
                            let mark = RolloutMark::Held { wave, why };
                            // A store that takes the mark is there: it has no room, or was busy.
                            self.mark_rollout(id, mark).map_err(|_| error)?;
                            return self.view_rollout(id);
                        }
                    };
                    self.mark_rollout(id, mark)?;
                    crash_point("rollout.marked");
                    if is_over {
                        return self.view_rollout(id);
                    }
                }
            }
        }
    }

    /// Says in the journal that this process takes back, if another one began: what it takes along is known by that.
    fn say_who(&self, past: &RolloutPast, mark: RolloutMark) -> Result<(), EngineError> {
        let this = self.store.this_process();
        match past.marks.last() {
            Some((owner, last)) if *owner == this && *last == mark => Ok(()),
            _ => self.mark_rollout(past.plan.id, mark),
        }
    }

    fn carry_out_wave(&self, plan: &RolloutPlan, wave: u32, force: bool) -> Result<(), Obstacle> {
        self.mark_rollout(plan.id, RolloutMark::Wave { wave })?;
        crash_point("rollout.wave");
        // Before the first of them is written.
        for (number, step) in plan.wave_steps(wave) {
            if !self.is_answered(plan, number)? {
                self.check_leads_there(plan, step)?;
                if !force {
                    self.check_unchanged(plan, step)?;
                }
            }
        }
        for (number, step) in plan.wave_steps(wave) {
            if self.is_stopped() {
                return Err(Obstacle::Interrupted);
            }
            self.write_step(plan, number, step, force)?;
            crash_point("rollout.written");
        }
        self.pause(Duration::from_millis(plan.pause_ms))?;
        crash_point("rollout.settled");
        self.check_wave(plan, wave)?;
        crash_point("rollout.checked");
        Ok(())
    }

    /// Tells whether a write was asked before, and nobody put it back since.
    fn is_answered(&self, plan: &RolloutPlan, number: usize) -> Result<bool, EngineError> {
        let status = self.step_operation(plan, number)?.map(|found| found.status);
        Ok(!matches!(
            status,
            None | Some(Status::Aborted | Status::Undone)
        ))
    }

    fn check_unchanged(&self, plan: &RolloutPlan, step: &RolloutStep) -> Result<(), Obstacle> {
        match self.digest_now(plan, step) {
            Ok(digest) if digest == step.staged => Ok(()),
            Ok(_) => Err(Obstacle::Held(format!(
                "`{}` changed since the rollout began",
                step.target
            ))),
            Err(error) => Err(before(&step.target, error)),
        }
    }

    /// Makes sure that a target leads where it did: nobody asked for what a new link leads to.
    fn check_leads_there(&self, plan: &RolloutPlan, step: &RolloutStep) -> Result<(), Obstacle> {
        let found = self
            .kept_request(plan.id, &step.request)
            .and_then(|request| self.files_of(&*request));
        let found = found.map_err(|error| before(&step.target, error))?;
        if step.at.is_empty() || step.at == found {
            return Ok(());
        }
        let target = &step.target;
        let now: Vec<String> = found.iter().map(|path| format!("`{path}`")).collect();
        let now = now.join(", ");
        Err(Obstacle::Held(format!(
            "`{target}` led elsewhere when the rollout began, and leads to {now} now"
        )))
    }

    /// Makes one write, if it was not made before.
    fn write_step(
        &self,
        plan: &RolloutPlan,
        number: usize,
        step: &RolloutStep,
        force: bool,
    ) -> Result<(), Obstacle> {
        // What was read for the write before may not hold any more.
        self.tell_begins();
        let engine = self.for_caller(Context {
            agent: plan.agent.clone(),
            task: Some(plan.task.clone()),
            key: Some(key_of(plan, number)),
            strategy: self.context.strategy,
            within: self.context.within,
            is_inside: self.context.is_inside,
            ..Context::default()
        });
        let of_step = |error| obstacle(&step.target, error);
        let not_staged = |error| before(&step.target, error);
        let request = engine
            .kept_request(plan.id, &step.request)
            .map_err(not_staged)?;
        let staged = with_umask(step.request.umask, || engine.stage(&*request));
        let staged = match staged {
            Err(EngineError::Gate(GateError::Answered(_))) => return Ok(()),
            staged => staged.map_err(not_staged)?,
        };
        // Its targets are leased now: nobody else writes them through this program.
        self.check_leads_there(plan, step)?;
        if !force {
            self.check_unchanged(plan, step)?;
        }
        staged.apply().map(drop).map_err(of_step)
    }

    /// Looks whether a wave does well.
    fn check_wave(&self, plan: &RolloutPlan, wave: u32) -> Result<(), Obstacle> {
        let (Some(check), Some(probe)) = (&plan.check, &self.settings.probe) else {
            return match plan.check {
                None => Ok(()),
                Some(_) => Err(Obstacle::Held(
                    "this program does not look at waves".to_owned(),
                )),
            };
        };
        let targets: Vec<&TargetPath> = plan
            .wave_steps(wave)
            .map(|(_, step)| &step.target)
            .collect();
        let look = WaveLook {
            check,
            task: &plan.task,
            wave,
            targets: &targets,
        };
        let mut tries = 0;
        loop {
            if self.is_stopped() {
                return Err(Obstacle::Interrupted);
            }
            let Some(found) = probe.look(&look) else {
                return Ok(());
            };
            // Who stops the program stops the check as well, and that says nothing.
            if self.is_stopped() {
                return Err(Obstacle::Interrupted);
            }
            tries += 1;
            if tries >= check.tries {
                let told = if tries == 1 {
                    found
                } else {
                    format!("{found} in {tries} tries")
                };
                return Err(Obstacle::Failed(format!("the check said no: {told}")));
            }
            self.pause(BETWEEN_TRIES)?;
        }
    }

    /// Waits, unless somebody wants to stop.
    fn pause(&self, time: Duration) -> Result<(), Obstacle> {
        let end = Instant::now() + time;
        loop {
            if self.is_stopped() {
                return Err(Obstacle::Interrupted);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(LOOK));
        }
    }
}

/// Says what an error means for a wave that comes before anything of a write happened. It could be made when the rollout began:
/// what became of the target since is somebody's to see to.
fn before(target: &TargetPath, error: EngineError) -> Obstacle {
    if matches!(error, EngineError::Driver(_)) && !error.is_stop() {
        Obstacle::Held(format!("`{target}`: {}", with_causes(&error)))
    } else {
        obstacle(target, error)
    }
}

/// Says what an error of a write means for its wave.
fn obstacle(target: &TargetPath, error: EngineError) -> Obstacle {
    if error.is_stop() {
        return Obstacle::Interrupted;
    }
    let told = |why: String| format!("`{target}`: {why}");
    match error {
        EngineError::Gate(GateError::Waits { proposal, .. }) => Obstacle::Waits(proposal.id),
        EngineError::Gate(GateError::Denied { reasons, .. } | GateError::Failed { reasons }) => {
            Obstacle::Failed(told(Reason::told(&reasons).join("; ")))
        }
        EngineError::Gate(GateError::RefusedBefore { why, .. }) => Obstacle::Failed(told(why)),
        EngineError::Gate(error @ GateError::Expired { .. }) => {
            Obstacle::Failed(told(error.to_string()))
        }
        EngineError::Gate(GateError::UndoneSince { id, .. }) => Obstacle::Held(told(format!(
            "its write {} was undone by hand; bring it back first, or abort",
            id.short()
        ))),
        EngineError::TakenBack { cause, .. } => obstacle(target, *cause),
        EngineError::Refused { why, .. } | EngineError::NotVerified { why } => {
            Obstacle::Failed(told(why))
        }
        error @ (EngineError::Driver(_)
        | EngineError::HalfDone { .. }
        | EngineError::Stays { .. }) => Obstacle::Failed(told(with_causes(&error))),
        error @ (EngineError::Storage(_) | EngineError::NotRecorded { .. }) => {
            Obstacle::Broken(error)
        }
        error => Obstacle::Held(told(with_causes(&error))),
    }
}
