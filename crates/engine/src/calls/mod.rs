//! Calls of an agent's own tools: somebody tells us of each before it writes, and again when it has.
//!
//! ```text
//! before ─► look at the names it will write ─► ARM ─► the tool writes ─► after ─► look again ─► CAPTURED, applied, COMMIT
//!                                                        │
//!                         no word comes ─► settled by looking: as before = abandoned, else kept as found
//! ```
//!
//! - The operation belongs to the agent's process while it is armed: nobody recovers it as long as that lives.
//! - A call is known by its key: told twice, it is one operation. Where the agent gives calls no name, the word after joins the
//!   oldest armed call of the same tool with the same input.
//! - The next call of the same caller on the same file settles the one before, of which nobody said that it is over.
//! - What the journal has of others since is not the call's doing (`since.rs`).
//! - Nothing is leased while the tool writes: the agent may ask its user first, for hours.
//!
//! Design: `docs/design/agents.md`.

mod end;
mod prompts;
mod since;
mod view;

use std::path::PathBuf;

use backout_crashpoint::crash_point;
use backout_files::Looked;
use backout_model::ports::{Durability, Entry, StorageError};
use backout_model::{
    Asked, CallKey, Decision, Digest, DriverName, Event, Intent, JsonText, OperationId, Owner,
    Recipe, Refusal, Status, Strategy, Target, TargetPath, Verb, arm,
};
use serde::{Deserialize, Serialize};

use crate::run::Unsettled;
use crate::{Engine, EngineError};
pub use end::CallEnded;
pub use prompts::{NewPrompt, notice_free};
pub(crate) use view::is_to_go;
pub use view::{PromptFilter, PromptView};

/// The version of the body of the recipe.
const RECIPE_VERSION: u16 = 1;

/// Whose call it is, in the agent's own names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// The conversation.
    pub session: String,
    /// The sub-agent, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
}

/// A call of a tool that is about to write files.
#[derive(Debug, Clone)]
pub struct ToolCall {
    /// The agent's name for the call; none if it gives none.
    pub key: Option<CallKey>,
    /// Whose it is.
    pub caller: Caller,
    /// The tool, as the agent calls it.
    pub tool: String,
    /// The digest of what the tool was given.
    pub input: Digest,
    /// What kind of write it is.
    pub verb: Verb,
    /// One line for people.
    pub summary: String,
    /// The paths that it will write, from the root.
    pub paths: Vec<PathBuf>,
    /// The agent's process, which outlives the call; none if nobody knows.
    pub owner: Option<u32>,
    /// Things worth knowing about it.
    pub notes: Vec<String>,
}

/// What is kept of a call while it is armed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ArmedCall {
    #[serde(flatten)]
    pub(crate) caller: Caller,
    pub(crate) tool: String,
    pub(crate) input: Digest,
    /// What stood at the names, for the driver of commands.
    pub(crate) found: JsonText,
}

/// What came of the word that a call is about to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallBegun {
    /// What it will write is kept.
    Armed(OperationId),
    /// It was told before.
    Again(OperationId),
    /// A rule says no.
    Refused {
        /// The refusal, as it is in the journal.
        id: OperationId,
        /// The reason, for people.
        why: String,
    },
}

impl Engine {
    /// Keeps what a tool is about to write.
    pub fn begin_call(&self, call: &ToolCall) -> Result<CallBegun, EngineError> {
        self.tell_begins();
        self.store.check_end()?;
        self.recover_the_dead()?;
        if let Some(id) = self.call_known(call.key.as_ref())? {
            return Ok(CallBegun::Again(id));
        }
        let mut names: Vec<TargetPath> = Vec::new();
        for path in &call.paths {
            names.extend(self.commands.names(path)?);
        }
        let targets: Vec<Target> = names.iter().cloned().map(Target::node).collect();
        if let Some(why) = self.forbidden(&names) {
            return self.refuse_call(call, targets, why);
        }
        self.settle_earlier(&call.caller, &names)?;
        // Who writes them at this moment ends first, and running commands hear of it.
        let lease = self.lease_told(&targets, || self.lease(&targets, &[]))?;
        let id = self.next_id();
        let looked = self.commands.look(id, &names)?;
        crash_point("call.looked");
        let armed = self.arm_call(id, call, looked);
        drop(lease);
        match armed {
            Ok(()) => {
                crash_point("call.armed");
                Ok(CallBegun::Armed(id))
            }
            // Told twice at the same moment: one of the two was first.
            Err(error) => match self.call_known(call.key.as_ref())? {
                Some(id) => Ok(CallBegun::Again(id)),
                None => Err(EngineError::NotArmed(error)),
            },
        }
    }

    /// Finds the operation of a call that was told before. One that came to nothing is told anew.
    fn call_known(&self, key: Option<&CallKey>) -> Result<Option<OperationId>, EngineError> {
        let Some(key) = key else {
            return Ok(None);
        };
        let Some((id, _)) = self.store.answer_to(key)? else {
            return Ok(None);
        };
        let operation = self.store.operation(id)?;
        let is_over = operation.is_some_and(|operation| operation.status == Status::Aborted);
        Ok(Some(id).filter(|_| !is_over))
    }

    /// Says which rule forbids to write one of these names, if one does.
    fn forbidden(&self, names: &[TargetPath]) -> Option<String> {
        let agent = self.context.agent.as_ref();
        let mut gates = self.settings.gates.iter();
        gates.find_map(|gate| {
            let mut names = names.iter();
            let reason = names.find_map(|name| gate.forbids(agent, name.as_path(), None));
            reason.map(|reason| reason.to_string())
        })
    }

    fn refuse_call(
        &self,
        call: &ToolCall,
        targets: Vec<Target>,
        why: String,
    ) -> Result<CallBegun, EngineError> {
        let id = self.next_id();
        let refusal = Refusal {
            id,
            verb: call.verb,
            summary: call.summary.clone(),
            agent: self.context.agent.clone(),
            targets,
            owner: self.store.this_process(),
            why: why.clone(),
            call: None,
            decided: None,
            trigger: None,
        };
        let event = Event::Refused(Box::new(refusal));
        self.store
            .append(&Entry::of(vec![event]), Durability::Process)?;
        Ok(CallBegun::Refused { id, why })
    }

    fn arm_call(
        &self,
        id: OperationId,
        call: &ToolCall,
        looked: Looked,
    ) -> Result<(), StorageError> {
        let riding: u64 = looked.contents.iter().map(|it| it.bytes.len() as u64).sum();
        self.store
            .make_room(&self.settings.retention, self.now(), riding)?;
        let body = Unsettled {
            log: PathBuf::new(),
            of: None,
            call: Some(ArmedCall {
                caller: call.caller.clone(),
                tool: call.tool.clone(),
                input: call.input,
                found: looked.found,
            }),
        };
        let body = JsonText::of(&body)
            .map_err(|error| StorageError::inconsistent("a recipe".to_owned(), &error))?;
        let recipe = Recipe {
            driver: DriverName::COMMAND,
            version: RECIPE_VERSION,
            contents: looked.digests,
            slots: Vec::new(),
            body,
        };
        let asked = call.key.clone().map(|key| Asked::new(key, call.input));
        let intent = Intent {
            verb: call.verb,
            owner: self.owner_of(call),
            decision: decision(),
            notes: call.notes.clone(),
            call: asked,
            ..self.intent_of_a_run(id, call.summary.clone(), recipe)
        };
        // The tool applies it, and not we.
        let _armed = arm(&*self.store, intent, looked.contents, ())?;
        Ok(())
    }

    /// Gives who answers for a call while its tool writes: the agent, if it is known.
    fn owner_of(&self, call: &ToolCall) -> Owner {
        let agent = call.owner.and_then(|pid| self.store.process(pid));
        agent.unwrap_or_else(|| self.store.this_process())
    }

    /// Lists the calls that are armed, oldest first.
    fn armed_calls(&self) -> Result<Vec<(OperationId, ArmedCall)>, EngineError> {
        let mut calls = Vec::new();
        for operation in self.store.armed()? {
            if operation.status == Status::Armed
                && let Some(call) = self.armed_call(operation.id)?
            {
                calls.push((operation.id, call));
            }
        }
        calls.reverse();
        Ok(calls)
    }

    /// Reads what is kept of an armed call; none if it is something else.
    pub(crate) fn armed_call(&self, id: OperationId) -> Result<Option<ArmedCall>, EngineError> {
        let recipe = self.store.effect(id)?.recipe;
        if recipe.driver != DriverName::COMMAND {
            return Ok(None);
        }
        Ok(call_in(&recipe))
    }
}

/// Reads the call out of the recipe of something that is not settled.
pub(crate) fn call_in(recipe: &Recipe) -> Option<ArmedCall> {
    let body: Unsettled = recipe.body.read().ok()?;
    body.call
}

/// How what a tool writes can be undone, and why so.
fn decision() -> Decision {
    Decision::new(
        Strategy::Snapshot,
        &[],
        "what the names are that the tool will write is kept before it does",
    )
}
