//! Beginning a rollout: everything is looked at and kept before anything is written.

use std::collections::BTreeSet;

use backout_crashpoint::crash_point;
use backout_files::with_umask;
use backout_model::ports::{Driver, Durability, Entry, NewContent, Request};
use backout_model::{
    Digest, Event, OnWaveFailure, RolloutMark, RolloutPlan, RolloutStep, Target, TargetPath,
    TaskId, WaveCheck, choose,
};
use serde::{Deserialize, Serialize};

use super::{RolloutError, RolloutView};
use crate::gate::Repeatable;
use crate::{Engine, EngineError, WriteRequest};

/// A rollout that is to begin.
#[derive(Debug, Serialize, Deserialize)]
pub struct RolloutStart {
    /// Its name; none takes a new one.
    pub name: Option<TaskId>,
    /// What it writes, in this order.
    pub steps: Vec<StartStep>,
    /// How many targets the first wave has.
    pub first: u32,
    /// How many targets each later wave has; none takes all that are left.
    pub wave: Option<u32>,
    /// How long a wave has to settle before it is checked.
    pub pause_ms: u64,
    /// None if a wave is over when it is written.
    pub check: Option<WaveCheck>,
    /// What is taken back when a wave fails.
    pub on_failure: OnWaveFailure,
}

/// One write of a rollout.
#[derive(Debug, Serialize, Deserialize)]
pub struct StartStep {
    /// What is written.
    pub target: TargetPath,
    /// The write, as its driver reads it.
    pub request: WriteRequest,
}

impl Engine {
    /// Begins a rollout and carries it out, as far as that goes.
    pub(super) fn start_rollout(&self, start: RolloutStart) -> Result<RolloutView, EngineError> {
        self.recover_the_dead()?;
        self.check_start(&start)?;
        let id = self.next_id();
        let task = match start.name {
            Some(name) => name,
            None => crate::task::name(&format!("rollout-{}", id.short())),
        };
        self.check_new_task(&task)?;
        // What is kept for the rollout lives by this lease until the plan is in the journal.
        let _claim = self.claim_rollout(id, &task)?;
        let (mut steps, mut contents): (Vec<RolloutStep>, Vec<NewContent>) = Default::default();
        for StartStep { target, request } in start.steps {
            let request = self.typed(request)?;
            let driver = self.driver(&request.driver())?;
            let repeatable = Repeatable::of(id, driver, &*request)?;
            let staged = self.staged_digest(driver, &*repeatable.request)?;
            let at = self.files_of(&*repeatable.request)?;
            let (request, body) = repeatable.kept();
            contents.push(body);
            steps.push(RolloutStep {
                target,
                request,
                staged,
                at,
            });
        }
        let plan = RolloutPlan {
            id,
            task: task.clone(),
            agent: self.context.agent.clone(),
            steps,
            first: start.first.max(1),
            wave: start.wave.unwrap_or(u32::MAX).max(1),
            pause_ms: start.pause_ms,
            check: start.check,
            on_failure: start.on_failure,
        };
        let begun = Event::TaskBegin {
            task,
            agent: plan.agent.clone(),
            owner: None,
        };
        let mark = Event::RolloutAt {
            id,
            owner: self.store.this_process(),
            mark: RolloutMark::Wave { wave: 1 },
        };
        let events = vec![begun, Event::RolloutBegun(Box::new(plan)), mark];
        crash_point("rollout.before-plan");
        let entry = Entry { events, contents };
        self.store.append(&entry, Durability::Power)?;
        crash_point("rollout.begun");
        self.carry_on(id, false)
    }

    fn check_start(&self, start: &RolloutStart) -> Result<(), EngineError> {
        if start.steps.is_empty() {
            return Err(RolloutError::NoTarget.into());
        }
        let mut seen = BTreeSet::new();
        for step in &start.steps {
            if !seen.insert(&step.target) {
                let target = step.target.clone();
                return Err(RolloutError::Twice { target }.into());
            }
        }
        let Some(check) = &start.check else {
            return Ok(());
        };
        let why = match &self.settings.probe {
            Some(probe) => probe.refuses(check),
            None => Some("this program does not look at waves".to_owned()),
        };
        why.map_or(Ok(()), |why| Err(RolloutError::BadCheck { why }.into()))
    }

    /// Lists the files that a request really writes, wherever links lead.
    pub(super) fn files_of(&self, request: &dyn Request) -> Result<Vec<TargetPath>, EngineError> {
        let scope = self.driver(&request.driver())?.scope(request)?;
        let files = scope.targets.iter().filter_map(Target::file).cloned();
        let mut files: Vec<TargetPath> = files.collect();
        files.sort();
        files.dedup();
        Ok(files)
    }

    /// Gives the digest of what a request would do now: what the target is, and what it would become. How the way back would
    /// be kept depends on nothing but these.
    pub(super) fn staged_digest(
        &self,
        driver: &dyn Driver,
        request: &dyn Request,
    ) -> Result<Digest, EngineError> {
        let decision = choose(&driver.scope(request)?.traits);
        let (prepared, _) = self.prepare(driver, self.next_id(), request, decision)?;
        Ok(driver.fingerprint(&prepared.recipe)?)
    }

    /// The same, of a step that was kept, with the umask of who asked for it.
    pub(super) fn digest_now(
        &self,
        plan: &RolloutPlan,
        step: &RolloutStep,
    ) -> Result<Digest, EngineError> {
        let request = self.kept_request(plan.id, &step.request)?;
        let driver = self.driver(&step.request.driver)?;
        with_umask(step.request.umask, || self.staged_digest(driver, &*request))
    }
}
