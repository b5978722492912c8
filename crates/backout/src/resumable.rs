//! A task that outlives its process: what an agent needs to go on where it was.
//!
//! - The next start of the same agent goes on at the step where the last one was. What that had half done is taken back first.
//! - The agent's state is data of its own, kept as JSON with each checkpoint. It must be true between two operations.
//! - Nothing is kept behind the agent's back: it says when. [`Resumable::bracket`] does it around a step.
//! - Dropping it, or the death of its process, leaves the task open. Whoever wants it gone rolls it back.

use backout_engine::{
    Context, EngineError, MarkRequest, Marked, Report, ResumeError, ResumeWhat, Resumed,
    UndoOptions, UndoWhat,
};
use backout_model::{
    Checkpoint, CheckpointName, MarkReason, OperationId, PlanError, Source, StepAt, TaskId,
    Trigger, TriggerKind,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Backout, Failure, usage};

/// An open task that the next start of the same agent goes on with.
#[derive(Debug)]
#[must_use = "commit it, or it stays open"]
pub struct Resumable {
    backout: Backout,
    id: TaskId,
    resumed: Option<Resumed>,
    step: Option<StepAt>,
    decisions: Vec<String>,
}

/// Says why a step was not done.
#[derive(Debug, thiserror::Error)]
pub enum StepError<E> {
    /// The step failed. What it had written is taken back.
    #[error("{0}")]
    Step(E),
    /// The step failed, and what it had written is not taken back, or not all of it.
    #[error("{step}; and it was not taken back: {failure}")]
    NotTakenBack {
        /// Why the step failed.
        step: E,
        /// Why its writes are still there.
        failure: Failure,
    },
    /// A checkpoint could not be taken. What the step wrote stays, and is taken back when the agent starts again.
    #[error(transparent)]
    Checkpoint(Failure),
}

impl Resumable {
    pub(crate) fn begin(backout: &Backout, name: &str) -> Result<Self, Failure> {
        let id: TaskId = name.parse().map_err(|error| usage(&error))?;
        let what = ResumeWhat {
            task: Some(id.clone()),
            ..ResumeWhat::default()
        };
        let resumed = match backout.engine.resume(&what) {
            Ok(resumed) if resumed.waits => return Err(undecided(&id)),
            Ok(resumed) => Some(resumed),
            Err(EngineError::NoTask { .. }) => {
                backout.engine.begin(Some(id.clone()), None)?;
                None
            }
            Err(EngineError::Resume(ResumeError::NoCheckpoint { skipped, .. }))
                if skipped.is_empty() =>
            {
                None
            }
            Err(error) => return Err(error.into()),
        };
        let context = Context {
            task: Some(id.clone()),
            ..backout.engine.context().clone()
        };
        let point = resumed.as_ref();
        let point = point.and_then(|it| it.checkpoint.resume.as_deref());
        let begun = Self {
            backout: backout.for_caller(context),
            id,
            step: point.and_then(|point| point.step),
            decisions: point.map_or_else(Vec::new, |point| point.decisions.clone()),
            resumed,
        };
        if begun.resumed.is_none() {
            // Whoever dies before the first step is done goes on from here.
            begun.take(Value::Null, MarkReason::Asked)?;
        }
        Ok(begun)
    }

    /// Gives the handle through which the task's writes go.
    pub const fn backout(&self) -> &Backout {
        &self.backout
    }

    /// Says where an earlier start was, and what became of what it had begun. None at the first start.
    pub const fn resumed(&self) -> Option<&Resumed> {
        self.resumed.as_ref()
    }

    /// Numbers the step to go on with, from 1. None if all are done.
    pub fn next_step(&self) -> Option<u32> {
        self.step.map_or(Some(1), StepAt::next)
    }

    /// Gives the agent's state as the checkpoint has it that it goes on from. None at the first start.
    pub fn state<S: DeserializeOwned>(&self) -> Result<Option<S>, Failure> {
        let state = self.resumed.as_ref().map(|it| &it.checkpoint.state);
        let state = state.filter(|state| !state.is_null()).cloned();
        let state = state.map(serde_json::from_value).transpose();
        state.map_err(|error| usage(&format_args!("the state is not what is asked for: {error}")))
    }

    /// Takes a checkpoint with the state as it is now.
    pub fn mark(&self, state: &impl Serialize, reason: MarkReason) -> Result<Checkpoint, Failure> {
        self.take(json(state)?, reason)
    }

    /// Takes one if so many operations were done since the last, as `backout.toml` says or ten.
    pub fn mark_if_due(&self, state: &impl Serialize) -> Result<Option<Checkpoint>, Failure> {
        let request = MarkRequest {
            if_due: true,
            directory: std::env::current_dir().ok(),
            ..self.request(MarkReason::Interval)
        };
        self.ask(json(state)?, &request)
    }

    /// Does one step inside of the recovery bracket: a checkpoint before it is decided, and one when it is written.
    ///
    /// If the step fails, what it wrote is taken back and the state is what it was. If the process dies in it, the next start
    /// takes it back. What was decided is told by every later checkpoint, the first first.
    pub fn bracket<S, T, E>(
        &mut self,
        step: StepAt,
        decision: Option<&str>,
        state: &mut S,
        work: impl FnOnce(&Backout, &mut S) -> Result<T, E>,
    ) -> Result<T, StepError<E>>
    where
        S: Serialize + Clone,
        E: std::fmt::Display,
    {
        let of = step.of;
        self.step = Some(StepAt {
            done: step.done.saturating_sub(1),
            of,
        });
        let before = self.mark(state, MarkReason::BeforeDecision);
        let before = before.map_err(StepError::Checkpoint)?;
        let as_before = state.clone();
        match work(&self.backout, state) {
            Ok(done) => {
                self.step = Some(step);
                self.decisions.extend(decision.map(str::to_owned));
                self.mark(state, MarkReason::AfterCommit)
                    .map_err(StepError::Checkpoint)?;
                Ok(done)
            }
            Err(error) => {
                *state = as_before;
                match self.take_back(before.name, &error.to_string()) {
                    Ok(()) => Err(StepError::Step(error)),
                    Err(failure) => Err(StepError::NotTakenBack {
                        step: error,
                        failure,
                    }),
                }
            }
        }
    }

    /// Keeps everything the task wrote, durably.
    pub fn commit(self) -> Result<Vec<OperationId>, Failure> {
        Ok(self.backout.engine.commit(&self.id)?)
    }

    fn take_back(&self, to: CheckpointName, why: &str) -> Result<(), Failure> {
        let options = UndoOptions {
            trigger: Some(Trigger::new(TriggerKind::PlanFailure, Source::Program).because(why)),
            ..UndoOptions::default()
        };
        let what = UndoWhat::ToCheckpoint(to);
        match self.backout.engine.rollback(&what, &options, why) {
            Ok(report) if report.is_complete() => Ok(()),
            Ok(_) => Err(Failure(
                Report::refused("a part of what the step wrote is still there")
                    .next("see what, and why, with `log` and `show`; the next start takes it back"),
            )),
            Err(EngineError::Plan(PlanError::Nothing) | EngineError::UndoneSince { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn take(&self, state: Value, reason: MarkReason) -> Result<Checkpoint, Failure> {
        let taken = self.ask(state, &self.request(reason))?;
        Ok(taken.expect("one that nobody asks to be due is taken"))
    }

    fn ask(&self, state: Value, request: &MarkRequest) -> Result<Option<Checkpoint>, Failure> {
        Ok(
            match self.backout.engine.mark_state(None, state, request)? {
                Marked::Taken(checkpoint) => Some(checkpoint),
                Marked::NotDue(_) => None,
            },
        )
    }

    fn request(&self, reason: MarkReason) -> MarkRequest {
        MarkRequest {
            reason,
            step: self.step,
            decisions: self.decisions.clone(),
            pid: Some(std::process::id()),
            ..MarkRequest::default()
        }
    }
}

fn undecided(task: &TaskId) -> Failure {
    let report = Report::refused(format!("the task `{task}` does not go on")).because(
        "what it had in flight waits for a decision: `[triggers]` in backout.toml says `ask`",
    );
    let report = report.next(format!("take it back with `resume {task} --rollback`"));
    Failure(report.next(format!("leave it with `resume {task} --keep`")))
}

fn json(state: &impl Serialize) -> Result<Value, Failure> {
    let state = serde_json::to_value(state);
    state.map_err(|error| {
        usage(&format_args!(
            "the state cannot be written as JSON: {error}"
        ))
    })
}
