//! Between staged and armed: what the gates say of a change, and what becomes of it then.
//!
//! Design: `docs/design/gates.md`.

use backout_crashpoint::crash_point;
use backout_model::ports::{
    Driver, Durability, Entry, NewContent, Reason, Request, Ruling, StagedChange,
};
use backout_model::{
    Digest, Event, KeptRequest, OperationId, Proposal, Refusal, Timestamp, choose,
};

use crate::lifecycle::StagedOperation;
use crate::{Context, Engine, EngineError, GateError};

/// A request that can be asked again, with how it is written down.
#[derive(Debug)]
pub(crate) struct Repeatable {
    pub(crate) request: Box<dyn Request>,
    body: NewContent,
    contents: Vec<Digest>,
}

impl Repeatable {
    /// Makes a request repeatable, for an operation.
    pub(crate) fn of(
        id: OperationId,
        driver: &dyn Driver,
        request: &dyn Request,
    ) -> Result<Self, EngineError> {
        let request = driver.repeatable(id, request)?;
        let body = NewContent::of(request.as_text()?.as_str().as_bytes().to_vec());
        let mut contents = driver.contents_of(&*request)?;
        contents.push(body.digest);
        contents.sort_unstable();
        contents.dedup();
        Ok(Self {
            request,
            body,
            contents,
        })
    }
}

impl Repeatable {
    /// Gives the request as it is written down, and the content that has its words.
    pub(crate) fn kept(self) -> (KeptRequest, NewContent) {
        let kept = KeptRequest {
            driver: self.request.driver(),
            body: self.body.digest,
            contents: self.contents,
            umask: Some(backout_files::umask()),
        };
        (kept, self.body)
    }
}

impl Engine {
    /// Tells whether a request must be made repeatable before it is prepared: because it could not be asked again afterwards,
    /// and its caller gave it a key or a gate may want that.
    pub(crate) fn is_kept_first(
        &self,
        driver: &dyn Driver,
        context: &Context,
        request: &dyn Request,
    ) -> Result<bool, EngineError> {
        let may_be_asked = context.key.is_some() || !self.settings.gates.is_empty();
        Ok(may_be_asked && !driver.is_lasting(request)?)
    }
}

impl Engine {
    /// Asks every gate about a change.
    pub(crate) fn ruling_on(&self, change: &StagedChange<'_>) -> Ruling {
        let gates = self.settings.gates.iter();
        gates.fold(Ruling::Allow, |ruling, gate| ruling.and(gate.look(change)))
    }
}

impl Engine {
    /// Prepares a write as if it were to happen, asks the gates, and lets it go: nothing is leased, recorded or changed.
    pub(crate) fn foresee(&self, request: &dyn Request) -> Result<Ruling, EngineError> {
        let context = &self.context;
        self.check_task(context)?;
        let driver = self.driver(&request.driver())?;
        let mut traits = driver.scope(request)?.traits;
        traits.preferred = context.strategy.or(traits.preferred);
        let (prepared, decision) =
            self.prepare(driver, self.next_id(), request, choose(&traits))?;
        if prepared.is_noop {
            return Ok(Ruling::Allow);
        }
        Ok(self.ruling_on(&StagedChange {
            verb: request.verb(),
            has_happened: false,
            summary: &request.summary(),
            agent: context.agent.as_ref(),
            task: context.task.as_ref(),
            targets: &prepared.targets,
            decision: &decision,
            staged: &*prepared.staged,
        }))
    }
}

impl StagedOperation<'_> {
    /// Asks the gates what they say. What changes nothing passes. Who stops them has found nothing out.
    pub(crate) fn ask_gates(&mut self) -> Result<(), EngineError> {
        if self.prepared.is_noop {
            return Ok(());
        }
        let change = StagedChange {
            verb: self.verb,
            has_happened: false,
            summary: &self.summary,
            agent: self.context.agent.as_ref(),
            task: self.context.task.as_ref(),
            targets: &self.prepared.targets,
            decision: &self.decision,
            staged: &*self.prepared.staged,
        };
        self.ruling = self.engine.ruling_on(&change);
        if self.engine.is_stopped() {
            return Err(backout_model::ports::Stopped.into());
        }
        Ok(())
    }

    /// Gives the operation on if the gates let it pass.
    pub(crate) fn pass_gates(mut self) -> Result<Self, EngineError> {
        match std::mem::take(&mut self.ruling) {
            Ruling::Allow => Ok(self),
            Ruling::Warn { reasons } => {
                self.prepared.notes.extend(Reason::told(&reasons));
                Ok(self)
            }
            // What a rule says may be a mistake, and is not for ever: the proposal goes on waiting.
            Ruling::Deny { reasons } if self.approval.is_some() => {
                let id = self.lease.id;
                Err(GateError::DeniedNow { id, reasons }.into())
            }
            Ruling::Deny { reasons } => Err(self.deny(reasons)),
            // Somebody has decided, and about exactly this.
            Ruling::Ask { .. } if self.approval.is_some() => Ok(self),
            Ruling::Ask {
                reasons,
                waits_ms_max,
            } => Err(self.propose(reasons, waits_ms_max)),
        }
    }

    /// Refuses the write for the gates' reasons, and records them.
    fn deny(self, reasons: Vec<Reason>) -> EngineError {
        let refused = self.refuse(&Reason::told(&reasons).join("; "));
        if let EngineError::Refused { id, .. } = refused {
            GateError::Denied { id, reasons }.into()
        } else {
            refused
        }
    }

    /// Makes the write a proposal.
    fn propose(mut self, reasons: Vec<Reason>, waits_ms_max: Option<u64>) -> EngineError {
        match self.proposal(reasons, waits_ms_max) {
            Ok((proposal, body)) => {
                let event = Event::Proposed(Box::new(proposal.clone()));
                let entry = Entry {
                    events: vec![event],
                    contents: vec![body],
                };
                crash_point("gate.before-proposal");
                match self.engine.store.append(&entry, Durability::Power) {
                    Ok(_) => {
                        self.lease.is_ended_by_a_record();
                        crash_point("gate.proposed");
                        let gates = self.engine.settings.gates.iter();
                        let untold = gates.flat_map(|gate| gate.waits(&proposal)).collect();
                        let proposal = Box::new(proposal);
                        GateError::Waits { proposal, untold }.into()
                    }
                    Err(error) => error.into(),
                }
            }
            Err(error) => error,
        }
    }

    fn proposal(
        &self,
        reasons: Vec<Reason>,
        waits_ms_max: Option<u64>,
    ) -> Result<(Proposal, NewContent), EngineError> {
        let (engine, id) = (self.engine, self.lease.id);
        let Some(repeatable) = &self.repeatable else {
            return Err(GateError::Denied { id, reasons }.into());
        };
        let driver = engine.driver(&self.prepared.recipe.driver)?;
        let expires = waits_ms_max.map(|wait| {
            let wait = i64::try_from(wait).unwrap_or(i64::MAX);
            Timestamp(engine.now().0.saturating_add(wait))
        });
        let targets = self.prepared.targets.clone();
        let proposal = Proposal {
            id,
            verb: self.verb,
            summary: self.summary.clone(),
            agent: self.context.agent.clone(),
            task: self.context.task.clone(),
            owner: self.engine.store.this_process(),
            depends_on: engine.depends_on(id, &self.context, &targets, &self.sources)?,
            targets,
            call: self.call.clone(),
            decision: self.decision.clone(),
            request: KeptRequest {
                driver: repeatable.request.driver(),
                body: repeatable.body.digest,
                contents: repeatable.contents.clone(),
                umask: Some(backout_files::umask()),
            },
            staged: driver.fingerprint(&self.prepared.recipe)?,
            reasons,
            expires,
        };
        Ok((proposal, repeatable.body.clone()))
    }

    /// Refuses the write and records why. Nothing was touched.
    pub fn refuse(mut self, why: &str) -> EngineError {
        let id = self.lease.id;
        let refusal = Refusal {
            id,
            verb: self.verb,
            summary: self.summary.clone(),
            agent: self.context.agent.clone(),
            targets: self.prepared.targets.clone(),
            owner: self.engine.store.this_process(),
            why: why.to_owned(),
            call: self.call.clone(),
            trigger: None,
            decided: None,
        };
        let event = Event::Refused(Box::new(refusal));
        let entry = Entry::of(vec![event]);
        match self.engine.store.append(&entry, Durability::Process) {
            Ok(_) => {
                self.lease.is_ended_by_a_record();
                let why = why.to_owned();
                EngineError::Refused { id, why }
            }
            Err(error) => error.into(),
        }
    }
}
