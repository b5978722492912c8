//! Deciding about what waits: list, look, approve, reject.
//!
//! - Approving stages the request again, and arms it only if that gives exactly what was proposed.
//! - Of two who decide at once, the second is told: whoever decides claims the operation first.
//! - A proposal whose time is up is refused by whoever looks at it next.
//!
//! Design: `docs/design/gates.md`.

mod view;

use backout_crashpoint::crash_point;
use backout_files::with_umask;
use backout_model::ports::{Durability, Entry, Prepared, Request, Ruling, Scope};
use backout_model::{
    AgentId, Decided, Decision, Event, JsonText, KeptRequest, OperationId, Owner, PlanError,
    Proposal, Refusal, Status, TaskId, TaskStatus, Trigger, TriggerKind, Verb, choose,
};
use backout_storage::{OperationRef, StorageError, untold};
use serde::{Deserialize, Serialize};

use crate::ladder::asker;
use crate::lease::HeldLease;
use crate::lifecycle::StagedOperation;
use crate::{Context, Engine, EngineError, Finished, GateError, Recovered, RecoveredAs, Reply};

pub use view::{Inside, ProposalView};

/// What to do with proposals.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProposalCommand {
    /// List those that wait.
    List,
    /// Show one, with what it would change.
    Show(OperationRef),
    /// Let one happen.
    Approve {
        /// The proposal, by its id or a part of it.
        proposal: OperationRef,
        /// Who says so, and why.
        decided: Decided,
    },
    /// Refuse one.
    Reject {
        /// The proposal, by its id or a part of it.
        proposal: OperationRef,
        /// Who says so, and why.
        decided: Decided,
    },
}

/// A proposal that was staged again.
struct Restaged<'e> {
    lease: HeldLease<'e>,
    prepared: Prepared,
    decision: Decision,
}

impl Engine {
    pub(crate) fn proposals(&self, command: ProposalCommand) -> Result<Reply, EngineError> {
        match command {
            ProposalCommand::List => {
                let proposals = self.waiting()?;
                let mut untold = untold(&self.settings.state_dir)?;
                untold.retain(|id, _| proposals.iter().any(|it| it.id == *id));
                Ok(Reply::Pending {
                    proposals,
                    trials: self.pending_trials()?,
                    untold,
                    now: self.now(),
                })
            }
            ProposalCommand::Show(which) => {
                let view = self.show_proposal(&which)?;
                Ok(Reply::Proposal(Box::new(view)))
            }
            ProposalCommand::Approve { proposal, decided } => {
                self.approve(&proposal, decided).map(Reply::Finished)
            }
            ProposalCommand::Reject { proposal, decided } => self
                .reject(&proposal, decided)
                .map(|proposal| Reply::Rejected { proposal }),
        }
    }

    /// Lists what waits for a decision. What has waited too long is refused on the way.
    pub(crate) fn waiting(&self) -> Result<Vec<Proposal>, EngineError> {
        let mut waiting = Vec::new();
        for proposal in self.store.proposals()? {
            if proposal.is_expired(self.now()) {
                match self.expire(&proposal) {
                    // Whoever comes when there is room writes it down.
                    Ok(()) | Err(EngineError::Storage(StorageError::DiskFull { .. })) => {}
                    Err(error) => return Err(error),
                }
            } else {
                waiting.push(proposal);
            }
        }
        Ok(waiting)
    }

    /// Lets a proposal happen: exactly what was proposed, or nothing.
    pub fn approve(
        &self,
        reference: &OperationRef,
        decided: Decided,
    ) -> Result<Finished, EngineError> {
        self.recover_the_dead()?;
        let proposal = self.undecided(reference)?;
        let id = proposal.id;
        if self.is_own(proposal.agent.as_ref())? {
            return Err(GateError::Own { id }.into());
        }
        let mut context = context_of(&proposal);
        if proposal.is_held() && self.is_committed(&proposal)? {
            context.task = None;
        }
        self.check_task(&context)?;
        self.let_happen(proposal, context, decided)
    }

    /// Tells whether whoever asks must not decide about an agent's work: he has its name, or is inside of a command, or
    /// descends from a process of which that holds.
    pub(crate) fn is_own(&self, agent: Option<&AgentId>) -> Result<bool, EngineError> {
        let asker = &self.context;
        let is_it = |named: Option<&AgentId>| named.is_some() && named == agent;
        let is_named = asker.is_inside || asker.within.is_some() || is_it(asker.agent.as_ref());
        let mut above = asker.forebears.iter();
        if is_named || above.any(|it| it.within.is_some() || is_it(it.agent.as_ref())) {
            return Ok(true);
        }
        // Whose parents have died is a child of the watcher.
        let mut at_work = self.store.armed()?.into_iter();
        let is_above = |owner: &Owner| asker.forebears.iter().any(|it| it.process == *owner);
        Ok(at_work.any(|run| run.verb == Verb::Run && is_above(&run.owner)))
    }

    /// Tells whether the task of a proposal was committed.
    fn is_committed(&self, proposal: &Proposal) -> Result<bool, EngineError> {
        let Some(task) = &proposal.task else {
            return Ok(false);
        };
        let task = self.store.task(task)?;
        Ok(task.is_some_and(|task| task.status == TaskStatus::Committed))
    }

    /// Sends what a task that is committed has held back, in the order in which it was asked for. What fails stays held, and
    /// what comes after it.
    pub(crate) fn release(&self, task: &TaskId) -> Result<Vec<OperationId>, EngineError> {
        let mut sent = Vec::new();
        for proposal in self.held_by(task)? {
            crash_point("outbox.next");
            let context = Context {
                task: None,
                ..context_of(&proposal)
            };
            let decided = Decided {
                by: format!("the commit of {task}"),
                why: None,
            };
            sent.extend(self.let_happen(proposal, context, decided)?.id);
        }
        Ok(sent)
    }

    /// Lists what a task holds back, the first first.
    pub(crate) fn held_by(&self, task: &TaskId) -> Result<Vec<Proposal>, EngineError> {
        let mut held = self.store.proposals()?;
        held.retain(|proposal| proposal.is_held() && proposal.task.as_ref() == Some(task));
        let mut ordered = Vec::new();
        for proposal in held {
            let asked = self.store.operation(proposal.id)?;
            ordered.push((asked.map(|asked| asked.lsn), proposal));
        }
        ordered.sort_by_key(|(lsn, _)| *lsn);
        Ok(ordered.into_iter().map(|(_, held)| held).collect())
    }

    fn let_happen(
        &self,
        proposal: Proposal,
        context: Context,
        decided: Decided,
    ) -> Result<Finished, EngineError> {
        let id = proposal.id;
        self.claim_proposal(&proposal)?;
        crash_point("proposal.claimed");
        let restaged = self.restage(&proposal)?;
        self.check_as_proposed(&proposal, &restaged.prepared)?;
        crash_point("proposal.compared");
        let mut staged = StagedOperation {
            engine: self,
            lease: restaged.lease,
            verb: proposal.verb,
            summary: proposal.summary.clone(),
            context,
            decision: restaged.decision,
            sources: Vec::new(),
            built_on: proposal.depends_on.clone(),
            repeatable: None,
            ruling: Ruling::Allow,
            call: proposal.call.clone(),
            approval: Some(decided),
            prepared: restaged.prepared,
        };
        staged.ask_gates()?;
        match staged.apply() {
            Err(error @ EngineError::TakenBack { .. }) => Err(self.propose_again(proposal, error)),
            Ok(mut finished) => {
                // The write happened, whatever becomes of the layers that it came from.
                finished.left = self.settle_trial(id).unwrap_or_default();
                Ok(finished)
            }
            Err(error) => Err(error),
        }
    }

    /// Refuses a proposal.
    pub fn reject(
        &self,
        reference: &OperationRef,
        decided: Decided,
    ) -> Result<OperationId, EngineError> {
        let proposal = self.undecided(reference)?;
        self.claim_proposal(&proposal)?;
        let why = match &decided.why {
            Some(why) => format!("{} rejected it: {why}", decided.by),
            None => format!("{} rejected it", decided.by),
        };
        self.end_proposal(&proposal, why, Some(decided))?;
        Ok(proposal.id)
    }

    /// Finds a proposal that waits for a decision.
    fn undecided(&self, reference: &OperationRef) -> Result<Proposal, EngineError> {
        let id = self.store.resolve(reference)?;
        let operation = self.store.operation(id)?;
        let operation = operation.ok_or(PlanError::Unknown { id })?;
        let proposal = self.store.proposal(id)?;
        let proposal = proposal.filter(|_| operation.status == Status::Proposed);
        let proposal = proposal.ok_or(GateError::NotProposed {
            id,
            status: operation.status,
        })?;
        if proposal.is_expired(self.now()) {
            self.expire(&proposal)?;
            return Err(GateError::Expired { id }.into());
        }
        Ok(proposal)
    }

    /// Says that this process decides about a proposal, unless another one does.
    fn claim_proposal(&self, proposal: &Proposal) -> Result<(), EngineError> {
        let (id, me) = (proposal.id, self.store.this_process());
        let operation = self.store.operation(id)?;
        let operation = operation.ok_or(PlanError::Unknown { id })?;
        if operation.status != Status::Proposed {
            let status = operation.status;
            return Err(GateError::NotProposed { id, status }.into());
        }
        let is_free = operation.owner == proposal.owner || !self.store.is_alive(&operation.owner);
        if operation.owner == me || (is_free && self.store.claim(&operation, &me)?) {
            return Ok(());
        }
        Err(GateError::BeingDecided { id }.into())
    }

    /// Stages what was proposed once more, under its own id.
    fn restage(&self, proposal: &Proposal) -> Result<Restaged<'_>, EngineError> {
        let id = proposal.id;
        let request = self.request_of(proposal)?;
        let driver = self.driver(&proposal.request.driver)?;
        // Who is interrupted has found nothing out.
        let stale = |error: EngineError| {
            if matches!(&error, EngineError::Driver(error) if error.fault().is_stop()) {
                return error;
            }
            let why = crate::lifecycle::with_causes(&error);
            GateError::Stale { id, why }.into()
        };
        let scope = driver.scope(&*request);
        let scope = scope.map_err(|error| stale(error.into()))?;
        let Scope {
            targets, traits, ..
        } = scope;
        let lease = self.lease_told(&targets, || self.lease_as(id, &targets))?;
        // What an older program decided was told, and not carried out.
        let decision = match proposal.decision.asked {
            Some(_) => proposal.decision.clone(),
            None => choose(&traits),
        };
        let prepared = with_umask(proposal.request.umask, || {
            self.prepare(driver, id, &*request, decision)
        });
        let (prepared, decision) = prepared.map_err(stale)?;
        self.lease_rest(id, &targets, &prepared.targets)?;
        Ok(Restaged {
            lease,
            prepared,
            decision,
        })
    }

    fn request_of(&self, proposal: &Proposal) -> Result<Box<dyn Request>, EngineError> {
        self.kept_request(proposal.id, &proposal.request)
    }

    /// Reads a request that was kept for somebody.
    pub(crate) fn kept_request(
        &self,
        id: OperationId,
        request: &KeptRequest,
    ) -> Result<Box<dyn Request>, EngineError> {
        let driver = self.driver(&request.driver)?;
        let stale = |why: String| GateError::Stale { id, why };
        let body = self.store.read(&request.body);
        let body = body.map_err(|error| stale(error.to_string()))?;
        let body = JsonText::from_slice(&body).map_err(|error| stale(error.to_string()))?;
        Ok(driver.read_request(&body)?)
    }

    /// Makes sure that what is staged now is what was proposed.
    fn check_as_proposed(
        &self,
        proposal: &Proposal,
        prepared: &Prepared,
    ) -> Result<(), EngineError> {
        let driver = self.driver(&prepared.recipe.driver)?;
        if driver.fingerprint(&prepared.recipe)? == proposal.staged {
            return Ok(());
        }
        let why = if prepared.is_noop {
            "the targets are already as proposed"
        } else {
            "a target, or what it would become, is not what it was when the change was proposed"
        };
        let (id, why) = (proposal.id, why.to_owned());
        Err(GateError::Stale { id, why }.into())
    }

    /// Refuses all proposals of a kind that nobody else decides about at this moment.
    pub(crate) fn withdraw(
        &self,
        is_meant: impl Fn(&Proposal) -> bool,
        why: &str,
    ) -> Result<(), EngineError> {
        for proposal in self.store.proposals()?.iter().filter(|it| is_meant(it)) {
            match self.claim_proposal(proposal) {
                Ok(()) => self.end_proposal(proposal, why.to_owned(), None)?,
                Err(EngineError::Gate(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Proposes again what was approved and put back: an operation that did not come to pass is over, and the wish is not.
    fn propose_again(&self, proposal: Proposal, cause: EngineError) -> EngineError {
        match self.wait_again(proposal) {
            Ok(again) => {
                let cause = Box::new(cause);
                GateError::WaitsAgain { again, cause }.into()
            }
            Err(_) => cause,
        }
    }

    fn wait_again(&self, proposal: Proposal) -> Result<OperationId, EngineError> {
        let (id, again) = (proposal.id, self.next_id());
        let proposal = Proposal {
            id: again,
            owner: self.store.this_process(),
            ..proposal
        };
        let entry = Entry::of(vec![Event::Proposed(Box::new(proposal))]);
        self.store.append(&entry, Durability::Power)?;
        // Without it, who discards the trial has to reject the proposal himself.
        let _known = self.rename_proposal(id, again);
        Ok(again)
    }

    /// Proposes again what somebody had approved, if a recovery found that nothing of it is there.
    pub(crate) fn waiting_again(&self, recovered: Recovered) -> Result<Recovered, EngineError> {
        let is_gone = match recovered.became {
            RecoveredAs::TakenBack | RecoveredAs::NothingHappened => true,
            RecoveredAs::Kept | RecoveredAs::Interrupted | RecoveredAs::InDoubt => false,
        };
        let proposal = if is_gone {
            self.store.proposal(recovered.id)?
        } else {
            None
        };
        let again = proposal.map(|proposal| self.wait_again(proposal));
        Ok(Recovered {
            again: again.transpose()?,
            ..recovered
        })
    }

    pub(crate) fn expire(&self, proposal: &Proposal) -> Result<(), EngineError> {
        let why = "nobody decided in time".to_owned();
        self.end_proposal(proposal, why, None)
    }

    fn end_proposal(
        &self,
        proposal: &Proposal,
        why: String,
        decided: Option<Decided>,
    ) -> Result<(), EngineError> {
        // Nothing has happened that could be taken back; what set the refusal off is recorded all the same.
        let trigger = decided.as_ref().map(|decided| {
            let by = asker(self.context.agent.as_ref());
            let trigger = Trigger::new(TriggerKind::UserRejection, by);
            match &decided.why {
                Some(why) => trigger.because(why.clone()),
                None => trigger,
            }
        });
        let refusal = Refusal {
            id: proposal.id,
            verb: proposal.verb,
            summary: proposal.summary.clone(),
            agent: proposal.agent.clone(),
            targets: proposal.targets.clone(),
            owner: self.store.this_process(),
            why,
            call: proposal.call.clone(),
            trigger,
            decided,
        };
        let entry = Entry::of(vec![Event::Refused(Box::new(refusal))]);
        self.store.append(&entry, Durability::Power)?;
        Ok(())
    }
}

/// Who asked for a proposal, and in what connection. What he built on is in the proposal.
fn context_of(proposal: &Proposal) -> Context {
    Context {
        agent: proposal.agent.clone(),
        task: proposal.task.clone(),
        ..Context::default()
    }
}
