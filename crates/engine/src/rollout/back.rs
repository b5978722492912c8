//! Taking back what a rollout wrote, and ending it.
//!
//! Nothing goes but what the rollout wrote. Where others built on a write of it, that write stays and says so, until somebody asks
//! for force; then what goes along is told with how to bring it back.

use backout_crashpoint::crash_point;
use backout_model::ports::{Durability, Entry, OnConflict};
use backout_model::{
    Event, OnWaveFailure, Operation, OperationId, RolloutEnd, RolloutMark, RolloutPlan,
    RolloutStep, Source, Trigger, TriggerKind,
};
use backout_storage::OperationRef;

use super::{RolloutView, key_of};
use crate::error::named;
use crate::ladder::asker;
use crate::lifecycle::with_causes;
use crate::{Engine, EngineError, UndoOptions, UndoWhat};

/// Why a proposal of a rollout that failed is refused.
const STOPPED: &str = "its rollout was stopped";

/// Why a task of a rollout that was aborted is rolled back.
const ABORTED: &str = "its rollout was aborted";

/// What came of taking writes back.
#[derive(Default)]
struct Back {
    /// What stays, and why.
    left: Vec<String>,
    /// Things worth knowing, such as a service that did not reload.
    notes: Vec<String>,
}

impl Engine {
    /// Takes a wave back that failed, newest write first, and those before it if that was asked for. Then the rollout is over.
    pub(super) fn take_wave_back(
        &self,
        plan: &RolloutPlan,
        wave: u32,
        why: &str,
        force: bool,
    ) -> Result<RolloutView, EngineError> {
        let first = match plan.on_failure {
            OnWaveFailure::Wave => wave,
            OnWaveFailure::All => 1,
        };
        self.withdraw(|it| it.task.as_ref() == Some(&plan.task), STOPPED)?;
        let trigger = Trigger::new(TriggerKind::PlanFailure, Source::Command);
        let options = self.options(plan, trigger, force)?;
        let back = self.take_steps_back(plan, first, wave, &options)?;
        if !back.left.is_empty() {
            return self.left(plan.id, back);
        }
        let (why, whole) = (why.to_owned(), plan.on_failure);
        let end = RolloutEnd::Stopped {
            wave,
            why,
            back: whole,
        };
        Ok(self.close(plan, end)?.with_notes(back.notes))
    }

    /// Takes all of a rollout back because somebody wants that.
    pub(super) fn take_all_back(
        &self,
        plan: &RolloutPlan,
        force: bool,
    ) -> Result<RolloutView, EngineError> {
        let asker = asker(self.context.agent.as_ref());
        let trigger = Trigger::new(TriggerKind::ManualAbort, asker);
        let options = self.options(plan, trigger, force)?;
        let mut back = self.take_steps_back(plan, 1, plan.wave_count(), &options)?;
        if !back.left.is_empty() {
            return self.left(plan.id, back);
        }
        // Others may have worked in its task: that is not the rollout's either.
        let what = UndoWhat::Task(plan.task.clone());
        match self.rollback(&what, &options, ABORTED) {
            Ok(report) => {
                let also = report.steps.iter().map(|it| {
                    let id = it.id.short();
                    let line = &it.summary;
                    format!(
                        "{id} ({line}) is undone with its task; `backout redo {id}` brings it back"
                    )
                });
                back.notes.extend(also);
                back.notes.extend(report.notes);
                crash_point("rollout.rolled-back");
                self.end_rollout(plan.id, RolloutEnd::Aborted)?;
                Ok(self.view_rollout(plan.id)?.with_notes(back.notes))
            }
            Err(EngineError::Storage(error)) => Err(error.into()),
            Err(EngineError::BuiltOn { by }) => {
                let by = named(&by);
                back.left.push(format!("others worked in its task: {by}"));
                self.left(plan.id, back)
            }
            Err(error) => {
                back.left.push(told(&error));
                self.left(plan.id, back)
            }
        }
    }

    /// Takes the writes of some waves back, newest first. One that stays does not keep the others.
    fn take_steps_back(
        &self,
        plan: &RolloutPlan,
        first: u32,
        last: u32,
        options: &UndoOptions,
    ) -> Result<Back, EngineError> {
        // What uses the targets reloads by the rules that hold now.
        self.tell_begins();
        let mut back = Back::default();
        let steps = (first..=last).flat_map(|wave| plan.wave_steps(wave));
        for (number, step) in steps.rev() {
            let Some(operation) = self.step_operation(plan, number)? else {
                continue;
            };
            if operation.status.is_in_effect() {
                match self.take_step_back(step, operation.id, options) {
                    Ok(notes) => back.notes.extend(notes),
                    Err(error) => back.left.push(left_of(step, operation.id, &error)),
                }
            }
            crash_point("rollout.step-undone");
        }
        Ok(back)
    }

    /// Takes one write back, with force only where there is no other way. Gives what is worth knowing.
    fn take_step_back(
        &self,
        step: &RolloutStep,
        id: OperationId,
        options: &UndoOptions,
    ) -> Result<Vec<String>, EngineError> {
        let what = UndoWhat::Operations(vec![OperationRef::Prefix(id.to_string())]);
        let gently = UndoOptions {
            on_conflict: OnConflict::default(),
            ..options.clone()
        };
        let is_forced = options.on_conflict == OnConflict::Force;
        match self.undo(&what, &gently) {
            Err(EngineError::Conflicts { .. }) if is_forced => {
                let report = self.undo(&what, options)?;
                let mut notes = report.notes;
                if let Some(act) = report.act {
                    let target = &step.target;
                    let act = act.short();
                    notes.push(format!(
                        "`{target}` was changed by somebody; `backout redo {act}` brings that back"
                    ));
                }
                Ok(notes)
            }
            undone => undone.map(|report| report.notes),
        }
    }

    fn left(&self, id: OperationId, back: Back) -> Result<RolloutView, EngineError> {
        let why = back.left.join("; ");
        self.mark_rollout(id, RolloutMark::Left { why })?;
        Ok(self.view_rollout(id)?.with_notes(back.notes))
    }

    /// Ends a rollout and its task at the same moment: what is in effect stays.
    pub(super) fn close(
        &self,
        plan: &RolloutPlan,
        end: RolloutEnd,
    ) -> Result<RolloutView, EngineError> {
        let id = plan.id;
        let mut is_something_kept = end == RolloutEnd::Done;
        for number in 0..plan.steps.len() {
            let operation = self.step_operation(plan, number)?;
            is_something_kept |= operation.is_some_and(|found| found.status.has_happened());
        }
        let task = plan.task.clone();
        let ended = Event::RolloutEnded { id, end };
        crash_point("rollout.before-end");
        if is_something_kept {
            match self.commit_with(&task, vec![ended]) {
                Ok(_) => {}
                Err(EngineError::Storage(error)) => return Err(error.into()),
                Err(error) => {
                    let left = vec![with_causes(&error)];
                    let back = Back {
                        left,
                        notes: Vec::new(),
                    };
                    return self.left(id, back);
                }
            }
        } else {
            let why = STOPPED.to_owned();
            let entry = Entry::of(vec![Event::TaskRollback { task, why }, ended]);
            self.store.append(&entry, Durability::Power)?;
        }
        crash_point("rollout.ended");
        self.view_rollout(id)
    }

    /// Says how writes of a rollout are taken back: without force, nothing else goes with them.
    fn options(
        &self,
        plan: &RolloutPlan,
        trigger: Trigger,
        force: bool,
    ) -> Result<UndoOptions, EngineError> {
        let own = self.own_operations(plan)?;
        Ok(UndoOptions {
            trigger: Some(trigger),
            only: (!force).then_some(own),
            on_conflict: if force {
                OnConflict::Force
            } else {
                OnConflict::default()
            },
            committed: force,
            others: force,
            ..UndoOptions::default()
        })
    }

    /// Lists what the steps of a rollout have become.
    pub(super) fn own_operations(
        &self,
        plan: &RolloutPlan,
    ) -> Result<Vec<OperationId>, EngineError> {
        let mut own = Vec::new();
        for number in 0..plan.steps.len() {
            own.extend(self.step_operation(plan, number)?.map(|it| it.id));
        }
        Ok(own)
    }

    /// Finds the operation that a step has become.
    pub(super) fn step_operation(
        &self,
        plan: &RolloutPlan,
        number: usize,
    ) -> Result<Option<Operation>, EngineError> {
        match self.store.answer_to(&key_of(plan, number))? {
            Some((id, _)) => Ok(self.store.operation(id)?),
            None => Ok(None),
        }
    }
}

/// Says why a write stays.
fn left_of(step: &RolloutStep, id: OperationId, error: &EngineError) -> String {
    format!("`{}` ({}): {}", step.target, id.short(), told(error))
}

/// Says an error with the places that it is about.
fn told(error: &EngineError) -> String {
    let mut text = with_causes(error);
    if let EngineError::Conflicts { targets, .. } = error {
        let each = targets
            .iter()
            .map(|it| format!("`{}` {}", it.target, it.why));
        let each: Vec<String> = each.collect();
        text = format!("{text}: {}", each.join(", "));
    }
    text
}
