//! The life of an operation: stage, gate, arm, apply, verify, commit.
//!
//! ```text
//! request ─► stage ─► gate ─► ARM ─► apply ─► verify ─► COMMIT
//!              │        │       │       │         │
//!            release  refuse  release   back      undo
//! ```
//!
//! A [`StagedOperation`] holds the leases; dropping it gives them back and leaves no trace.

use backout_crashpoint::crash_point;
use backout_model::ports::{
    Applied, AppliedChange, Driver, Durability, Entry, Prepared, Request, Ruling, Scope, Staged,
};
use backout_model::{
    ActPlan, Armed, Asked, Completion, Decided, Decision, Dependency, DependencyReason, Effect,
    Event, Intent, OperationId, Recipe, Status, Strategy, Target, TargetOutcome, TaskId,
    TaskStatus, Timestamp, Trigger, Verb, arm, choose,
};
use backout_storage::StorageError;

pub(crate) use crate::causes::{failed_everywhere, with_causes};
use crate::gate::Repeatable;
use crate::lease::HeldLease;
use crate::once::Answer;
use crate::strategy::is_doubtful;
use crate::window::durability_of;
use crate::{Context, Engine, EngineError, Finished, GateError};

const MINUTE_MS: i64 = 60_000;

/// More writes of one file within a minute need not be told apart.
const WRITES_COUNTED_MAX: u32 = 100;

/// A write that is staged and not armed: its targets are leased and untouched.
#[derive(Debug)]
#[must_use = "apply it or drop it"]
pub struct StagedOperation<'e> {
    pub(crate) engine: &'e Engine,
    pub(crate) lease: HeldLease<'e>,
    pub(crate) verb: Verb,
    pub(crate) summary: String,
    pub(crate) context: Context,
    pub(crate) decision: Decision,
    /// What it copied.
    pub(crate) sources: Vec<Target>,
    /// What it was built on when it was proposed.
    pub(crate) built_on: Vec<Dependency>,
    /// The request, where somebody may want it again.
    pub(crate) repeatable: Option<Repeatable>,
    /// What the gates say of it.
    pub(crate) ruling: Ruling,
    /// The call that it answers, if that has a key.
    pub(crate) call: Option<Asked>,
    /// Who let it pass, if it was a proposal.
    pub(crate) approval: Option<Decided>,
    pub(crate) prepared: Prepared,
}

/// What a request has come to before anything happens.
enum Begun<'e> {
    /// The same call was answered before.
    Answered(Box<Finished>),
    /// It can be looked at and armed.
    Staged(Box<StagedOperation<'e>>),
}

/// What is said of an operation when it is armed.
pub(crate) struct Head {
    pub(crate) verb: Verb,
    pub(crate) summary: String,
    pub(crate) decision: Decision,
    pub(crate) undoes: Option<OperationId>,
    pub(crate) with: Option<OperationId>,
    pub(crate) group: Option<OperationId>,
    /// What was asked for, if that is not the verb.
    pub(crate) asked: Option<Verb>,
    /// The call that it answers, if that has a key.
    pub(crate) call: Option<Asked>,
    /// Who let it pass, if it was a proposal.
    pub(crate) approval: Option<Decided>,
    /// What the act is to do, of its first step.
    pub(crate) plan: Option<ActPlan>,
    /// What set it off, of an undo, a redo or a recovery.
    pub(crate) trigger: Option<Trigger>,
}

impl Engine {
    /// Stages, arms, applies, verifies and commits a write.
    pub fn write(&self, request: &dyn Request) -> Result<Finished, EngineError> {
        self.write_in(&self.context, request)
    }

    pub(crate) fn write_in(
        &self,
        context: &Context,
        request: &dyn Request,
    ) -> Result<Finished, EngineError> {
        match self.begin_write(context, request)? {
            Begun::Answered(finished) => Ok(*finished),
            Begun::Staged(staged) => staged.apply(),
        }
    }

    /// Stages a write: the new state exists beside the target, which is untouched. For a call that was answered before
    /// there is nothing to stage: that is an error, which has the answer.
    pub fn stage(&self, request: &dyn Request) -> Result<StagedOperation<'_>, EngineError> {
        match self.begin_write(&self.context, request)? {
            Begun::Answered(finished) => Err(GateError::Answered(finished).into()),
            Begun::Staged(staged) => Ok(*staged),
        }
    }

    fn begin_write(
        &self,
        context: &Context,
        request: &dyn Request,
    ) -> Result<Begun<'_>, EngineError> {
        self.tell_begins();
        self.recover_the_dead()?;
        let driver = self.driver(&request.driver())?;
        let is_kept_first = self.is_kept_first(driver, context, request)?;
        // What can be read only once is read when its targets are leased.
        if !is_kept_first
            && let Answer::Before(finished) = self.answered(context, driver, request)?
        {
            return Ok(Begun::Answered(finished));
        }
        match self.stage_in(context.clone(), driver, request, is_kept_first) {
            // It may be the same call, made at the same time, that left it so.
            Err(EngineError::Driver(error)) if !is_kept_first => {
                match self.answered(context, driver, request)? {
                    Answer::Before(finished) => Ok(Begun::Answered(finished)),
                    Answer::Not(_) => Err(error.into()),
                }
            }
            begun => begun,
        }
    }

    fn stage_in(
        &self,
        context: Context,
        driver: &dyn Driver,
        request: &dyn Request,
        is_kept_first: bool,
    ) -> Result<Begun<'_>, EngineError> {
        self.check_task(&context)?;
        let Scope {
            targets,
            sources,
            mut traits,
        } = driver.scope(request)?;
        let lease = self.lease_told(&targets, || self.lease(&targets, &[]))?;
        crash_point("engine.leased");
        let minute_ago = Timestamp(self.now().0 - MINUTE_MS);
        traits.writes_per_minute =
            self.store
                .writes_since(&targets, minute_ago, WRITES_COUNTED_MAX)?;
        traits.preferred = context.strategy.or(traits.preferred);
        if traits.is_copied {
            traits.free_bytes = self.free_bytes();
        }
        let decision = choose(&traits);
        let mut repeatable = None;
        if is_kept_first || is_doubtful(driver, request, &traits, &decision)? {
            repeatable = Some(Repeatable::of(lease.id, driver, request)?);
        }
        let asking = repeatable.as_ref().map_or(request, |kept| &*kept.request);
        // Of two who make the same call at once, the second has waited for the first.
        let call = match self.answered(&context, driver, asking)? {
            Answer::Before(finished) => return Ok(Begun::Answered(finished)),
            Answer::Not(call) => call,
        };
        let (mut prepared, decision) = self.prepare(driver, lease.id, asking, decision)?;
        prepared.notes.extend(call.note());
        self.lease_rest(lease.id, &targets, &prepared.targets)?;
        crash_point("engine.staged");
        let mut staged = StagedOperation {
            engine: self,
            lease,
            sources,
            verb: request.verb(),
            summary: request.summary(),
            context,
            decision,
            built_on: Vec::new(),
            repeatable,
            ruling: Ruling::Allow,
            call: call.asked,
            approval: None,
            prepared,
        };
        staged.ask_gates()?;
        if matches!(staged.ruling, Ruling::Ask { .. }) && staged.repeatable.is_none() {
            let id = staged.lease.id;
            staged.repeatable = Some(Repeatable::of(id, driver, request)?);
        }
        Ok(Begun::Staged(Box::new(staged)))
    }

    pub(crate) fn check_task(&self, context: &Context) -> Result<(), EngineError> {
        self.check_open(context.task.as_ref())
    }

    /// Makes sure that a task is open, if there is one.
    pub(crate) fn check_open(&self, task: Option<&TaskId>) -> Result<(), EngineError> {
        let Some(id) = task else {
            return Ok(());
        };
        match self.store.task(id)? {
            None => Err(EngineError::NoTask { id: id.clone() }),
            Some(task) if task.status != TaskStatus::Open => {
                Err(EngineError::TaskEnded { id: id.clone() })
            }
            Some(_) => Ok(()),
        }
    }

    /// Makes the intent durable, with everything it depends on.
    pub(crate) fn arm(
        &self,
        id: OperationId,
        head: Head,
        context: &Context,
        prepared: Prepared,
        depends_on: Vec<Dependency>,
    ) -> Result<Armed, EngineError> {
        let adding = match head.undoes {
            Some(_) => 0,
            None => Self::added_by(&prepared),
        };
        let room = self
            .store
            .make_room(&self.settings.retention, self.now(), adding);
        match (room, head.undoes) {
            // An undo needs no room that it does not give back, and no cap may keep anybody from going back.
            (Ok(()) | Err(StorageError::OverCap { .. }), Some(_)) | (Ok(()), None) => {}
            (Err(error), _) => return Err(error.into()),
        }
        let intent = Intent {
            id,
            verb: head.verb,
            summary: head.summary,
            agent: context.agent.clone(),
            task: context.task.clone().filter(|_| head.undoes.is_none()),
            prompt: context.prompt.clone().filter(|_| head.undoes.is_none()),
            owner: self.store.this_process(),
            decision: head.decision,
            targets: prepared.targets,
            depends_on,
            undoes: head.undoes,
            with: head.with,
            group: head.group,
            asked: head.asked,
            plan: head.plan,
            trigger: head.trigger,
            notes: prepared.notes,
            command: None,
            call: head.call,
            approval: head.approval,
            recipe: prepared.recipe,
        };
        crash_point("engine.before-arm");
        let armed = arm(&*self.store, intent, prepared.contents, prepared.staged)
            .map_err(EngineError::NotArmed)?;
        crash_point("engine.armed");
        Ok(armed)
    }

    /// Tells how many bytes the store holds more, at most, when something is armed and has happened. What is in a tree that
    /// goes whole is weighed afterwards: nobody walks over it before.
    pub(crate) fn added_by(prepared: &Prepared) -> u64 {
        let contents = prepared.contents.iter();
        let contents: u64 = contents.map(|content| content.bytes.len() as u64).sum();
        prepared.staged.kept_bytes() + contents
    }

    /// Finds what an operation is built on: what touched its targets, what it copied, what it says, what it is part of.
    pub(crate) fn depends_on(
        &self,
        id: OperationId,
        context: &Context,
        targets: &[Target],
        sources: &[Target],
    ) -> Result<Vec<Dependency>, EngineError> {
        let mut depends_on = self.store.dependencies(targets)?;
        let copied = self.store.dependencies(sources)?.into_iter();
        depends_on.extend(copied.map(|dependency| Dependency {
            reason: DependencyReason::Copied,
            ..dependency
        }));
        depends_on.extend(context.within_command());
        for reference in &context.depends_on {
            let on = self.store.resolve(reference)?;
            depends_on.push(Dependency {
                on,
                reason: DependencyReason::Declared,
            });
        }
        depends_on.retain(|dependency| dependency.on != id);
        Ok(depends_on)
    }

    /// Applies what is armed. On failure everything was put back; that is looked at and recorded.
    pub(crate) fn apply(&self, armed: Armed) -> Result<Applied, EngineError> {
        let (id, recipe) = (armed.id(), armed.recipe().clone());
        let applied = match self.driver(&recipe.driver) {
            Ok(driver) => driver.apply(armed).map_err(EngineError::from),
            Err(error) => Err(error),
        };
        match applied {
            Ok(applied) => {
                crash_point("engine.applied");
                Ok(applied)
            }
            Err(error) => {
                let completion = None;
                Err(self.did_not_happen(id, &Effect { recipe, completion }, error))
            }
        }
    }

    /// Records of a write that it turned out to change nothing: there is nothing to take back.
    fn changed_nothing(&self, id: OperationId) -> Result<(), EngineError> {
        let event = Event::Abort {
            id,
            why: "it changed nothing".to_owned(),
            outcomes: Vec::new(),
            trigger: None,
        };
        self.record_end(id, vec![event], Durability::Process)
    }

    /// Records how a write ended.
    fn record_end(
        &self,
        id: OperationId,
        events: Vec<Event>,
        durability: Durability,
    ) -> Result<(), EngineError> {
        if let Err(cause) = self.store.append(&Entry::of(events), durability) {
            // Without a journal nothing can be taken back either: a recovery does it.
            self.abandon(id);
            return Err(EngineError::NotRecorded { id, cause });
        }
        Ok(())
    }

    /// Says why nothing takes an effect back that has just ended, if what it told shows that.
    fn lost_at_its_end(&self, recipe: Recipe, completion: &Completion) -> Option<String> {
        let effect = Effect {
            recipe,
            completion: Some(completion.clone()),
        };
        let driver = self.driver_of(&effect).ok()?;
        driver.no_way_back(&effect).ok().flatten()
    }
}

/// Says why the way back is not kept whole, where it was to be: who undoes it may need to know.
fn said_of_fallback(decision: &Decision) -> Option<String> {
    let mut tried = decision.not_prepared.iter();
    let first = tried.find(|tried| tried.strategy == Strategy::Snapshot)?;
    Some(format!(
        "the way back is a {}, not a {}: {}",
        decision.strategy, first.strategy, first.why
    ))
}

fn said_of_unlike(outcome: &TargetOutcome) -> String {
    let target = &outcome.target;
    format!("`{target}` was written, and somebody else changed it at once")
}

impl StagedOperation<'_> {
    /// Names the operation.
    pub const fn id(&self) -> OperationId {
        self.lease.id
    }

    /// Shows what is staged, for validators.
    pub fn staged(&self) -> &dyn Staged {
        &*self.prepared.staged
    }

    /// Lists what is worth knowing before it happens, such as what only root could restore.
    pub fn notes(&self) -> &[String] {
        &self.prepared.notes
    }

    /// Tells whether the targets are already as asked.
    pub const fn is_noop(&self) -> bool {
        self.prepared.is_noop
    }

    /// What the record of its arming begins with.
    fn head(&self) -> Head {
        Head {
            verb: self.verb,
            summary: self.summary.clone(),
            decision: self.decision.clone(),
            undoes: None,
            with: None,
            group: None,
            asked: None,
            call: self.call.clone(),
            approval: self.approval.clone(),
            plan: None,
            trigger: None,
        }
    }

    /// Arms, applies and commits.
    pub fn apply(self) -> Result<Finished, EngineError> {
        self.apply_and_verify(|| Ok(()))
    }

    /// Arms, applies, asks `verify`, and commits; if it says no the write is taken back.
    pub fn apply_and_verify(
        mut self,
        verify: impl FnOnce() -> Result<(), String>,
    ) -> Result<Finished, EngineError> {
        self = self.pass_gates()?;
        let id = self.lease.id;
        self.prepared.notes.extend(said_of_fallback(&self.decision));
        let (mut notes, targets) = (self.prepared.notes.clone(), self.prepared.targets.clone());
        if self.prepared.is_noop {
            return Ok(Finished::nothing(self.summary, notes));
        }
        let engine = self.engine;
        let is_watched = engine.is_watched(self.verb, &targets);
        let head = self.head();
        let mut depends_on = engine.depends_on(id, &self.context, &targets, &self.sources)?;
        depends_on.extend(self.built_on);
        depends_on.sort_unstable();
        depends_on.dedup();
        let armed = engine.arm(id, head, &self.context, self.prepared, depends_on)?;
        let recipe = armed.recipe().clone();
        // From here on the leases end with the record that ends the operation.
        self.lease.is_ended_by_a_record();
        let Applied {
            completion,
            durability,
            unlike,
            is_idle,
        } = engine.apply(armed)?;
        if is_idle {
            engine.changed_nothing(id)?;
            return Ok(Finished::nothing(self.summary, notes));
        }
        let verified = match verify() {
            Err(why) => Err(EngineError::NotVerified { why }),
            Ok(()) if is_watched => engine.watched(&AppliedChange {
                id,
                verb: self.verb,
                summary: &self.summary,
                agent: self.context.agent.as_ref(),
                task: self.context.task.as_ref(),
                targets: &targets,
            }),
            Ok(()) => Ok(()),
        };
        if let Err(cause) = verified {
            return Err(engine.take_back_applied(id, completion, cause, None));
        }
        notes.extend(unlike.iter().map(said_of_unlike));
        let lost = engine.lost_at_its_end(recipe, &completion);
        let is_lost = lost.is_some();
        notes.extend(lost.map(|why| format!("nothing takes it back: {why}")));
        let mut events = vec![Event::Applied { id, completion }];
        let status = if self.context.task.is_some() {
            Status::Applied
        } else {
            events.push(Event::Commit { id });
            Status::Committed
        };
        crash_point("engine.before-commit");
        engine.record_end(id, events, durability_of(is_watched, durability))?;
        crash_point("engine.committed");
        Ok(Finished {
            id: Some(id),
            summary: self.summary,
            status: Some(status),
            strategy: Some(self.decision.strategy),
            decision: Some(self.decision),
            notes,
            is_lost,
            left: None,
            is_again: false,
        })
    }
}
