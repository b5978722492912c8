//! Rollouts: one change of several targets, wave by wave, each checked before the next.
//!
//! - The plan is a record, and so is each mark on the way: any process can go on where another one died.
//! - Each write is an ordinary operation of the rollout's task, asked under a key of its own: so it is never made twice.
//! - Who carries a rollout out holds a lease on its name; another one is told.
//!
//! Design: `docs/design/rollout.md`.

mod back;
mod carry;
mod error;
mod start;
mod view;

use backout_model::ports::{Durability, Entry};
use backout_model::{
    CallKey, Event, GoOn, Key, OperationId, Reach, RolloutEnd, RolloutMark, RolloutPast,
    RolloutPlan, RolloutState, Target, TaskId, TaskStatus,
};
use serde::{Deserialize, Serialize};

use crate::lease::HeldLease;
use crate::{Engine, EngineError, Reply};

pub use error::RolloutError;
pub use start::{RolloutStart, StartStep};
pub use view::{AlsoGone, ProposalNow, RolloutView, StepNow, StepView, WaveStanding, WaveView};

/// The space of names in which whoever carries a rollout out holds its name.
const SPACE: &str = "rollout";

/// What to do with rollouts.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RolloutCommand {
    /// Begin one and carry it out.
    Start(Box<RolloutStart>),
    /// Show where one stands.
    Status {
        /// Which, by its task or its id; none takes the only open one, or else the newest.
        which: Option<String>,
    },
    /// Go on with one.
    Resume {
        /// Which; none takes the only open one.
        which: Option<String>,
        /// Also write targets that somebody changed since it began, and take back what others built on a wave that failed.
        force: bool,
    },
    /// Take all of it back.
    Abort {
        /// Which; none takes the only open one.
        which: Option<String>,
        /// Also what others built on it since, and what somebody changed.
        #[serde(default)]
        force: bool,
    },
    /// List them.
    List,
}

impl Engine {
    pub(crate) fn rollout(&self, command: RolloutCommand) -> Result<Reply, EngineError> {
        let one = |view: RolloutView| Reply::Rollout(Box::new(view));
        match command {
            RolloutCommand::Start(start) => self.start_rollout(*start).map(one),
            RolloutCommand::Status { which } => {
                let id = self.find_rollout(which, true)?;
                self.view_rollout(id).map(one)
            }
            RolloutCommand::Resume { which, force } => {
                let id = self.find_rollout(which, false)?;
                self.resume_rollout(id, force).map(one)
            }
            RolloutCommand::Abort { which, force } => {
                let id = self.find_rollout(which, false)?;
                self.abort_rollout(id, force).map(one)
            }
            RolloutCommand::List => {
                let ids = self.store.rollouts()?.into_iter();
                let rollouts = ids.map(|id| self.view_rollout(id));
                let rollouts = rollouts.collect::<Result<_, _>>()?;
                Ok(Reply::Rollouts { rollouts })
            }
        }
    }

    /// Goes on with a rollout where it was left.
    fn resume_rollout(&self, id: OperationId, force: bool) -> Result<RolloutView, EngineError> {
        self.recover_the_dead()?;
        let past = self.rollout_past(id)?;
        let _claim = self.claim_rollout(self.next_id(), &past.plan.task)?;
        self.settle_by_hand(id)?;
        self.carry_on(id, force)
    }

    /// Takes all that a rollout wrote back.
    fn abort_rollout(&self, id: OperationId, force: bool) -> Result<RolloutView, EngineError> {
        self.recover_the_dead()?;
        let past = self.rollout_past(id)?;
        let _claim = self.claim_rollout(self.next_id(), &past.plan.task)?;
        self.settle_by_hand(id)?;
        if self.rollout_past(id)?.end.is_none() {
            self.mark_rollout(id, RolloutMark::Aborting)?;
        }
        self.carry_on(id, force)
    }

    /// Ends a rollout whose task somebody ended. Complains of one that ended before.
    fn settle_by_hand(&self, id: OperationId) -> Result<(), EngineError> {
        let past = self.rollout_past(id)?;
        let task = past.plan.task.clone();
        if past.end.is_some() {
            return Err(RolloutError::Ended { task }.into());
        }
        match self.store.task(&task)?.map(|task| task.status) {
            None | Some(TaskStatus::Open) => Ok(()),
            Some(TaskStatus::RolledBack) if past.goes_on() == GoOn::Abort => {
                self.end_rollout(id, RolloutEnd::Aborted)
            }
            Some(TaskStatus::RolledBack | TaskStatus::Committed) => {
                self.end_rollout(id, RolloutEnd::ByHand)
            }
        }
    }

    fn end_rollout(&self, id: OperationId, end: RolloutEnd) -> Result<(), EngineError> {
        let entry = Entry::of(vec![Event::RolloutEnded { id, end }]);
        self.store.append(&entry, Durability::Power)?;
        Ok(())
    }

    /// Says in the journal where a rollout has come to.
    fn mark_rollout(&self, id: OperationId, mark: RolloutMark) -> Result<(), EngineError> {
        let owner = self.store.this_process();
        let entry = Entry::of(vec![Event::RolloutAt { id, owner, mark }]);
        self.store.append(&entry, Durability::Power)?;
        Ok(())
    }

    fn rollout_past(&self, id: OperationId) -> Result<RolloutPast, EngineError> {
        let name = Some(id.short());
        let past = RolloutPast::of(self.store.records_of(id)?);
        past.ok_or_else(|| RolloutError::Unknown { name }.into())
    }

    /// Takes the name of a rollout, for as long as the answer lives.
    fn claim_rollout(&self, by: OperationId, task: &TaskId) -> Result<HeldLease<'_>, EngineError> {
        let name = Target::new(name_of(task), Reach::Node);
        self.lease_now(by, name).map_err(|error| {
            if let EngineError::Busy { owner, .. } = error {
                let task = task.clone();
                RolloutError::AtWork { task, owner }.into()
            } else {
                error
            }
        })
    }

    /// Finds the rollout that is meant.
    fn find_rollout(
        &self,
        which: Option<String>,
        is_look: bool,
    ) -> Result<OperationId, EngineError> {
        let mut all = Vec::new();
        for id in self.store.rollouts()? {
            all.push((id, self.rollout_past(id)?));
        }
        let is_meant = |(id, past): &&(OperationId, RolloutPast)| match &which {
            Some(name) => past.plan.task.as_str() == name || is_prefix(name, *id),
            None => past.end.is_none(),
        };
        let meant: Vec<_> = all.iter().filter(is_meant).collect();
        // A whole name is that name, whatever begins like it.
        let exact = meant
            .iter()
            .find(|(_, past)| Some(past.plan.task.as_str()) == which.as_deref());
        match (meant.as_slice(), exact) {
            (_, Some((id, _))) | ([(id, _)], None) => Ok(*id),
            ([], None) if is_look && which.is_none() => match all.first() {
                Some((id, _)) => Ok(*id),
                None => Err(RolloutError::Unknown { name: which }.into()),
            },
            ([], None) => Err(RolloutError::Unknown { name: which }.into()),
            (several, None) => {
                let tasks = several.iter().map(|(_, past)| past.plan.task.clone());
                let tasks = tasks.collect();
                Err(RolloutError::Which { tasks }.into())
            }
        }
    }

    /// Tells where a rollout stands.
    fn rollout_state(&self, past: &RolloutPast) -> Result<RolloutState, EngineError> {
        let task = self.store.task(&past.plan.task)?;
        let status = task.map(|task| task.status);
        Ok(past.state(status, |owner| self.store.is_alive(owner)))
    }
}

/// The key under which a write of a rollout is asked.
fn key_of(plan: &RolloutPlan, number: usize) -> CallKey {
    crate::task::name(&format!("rollout-{}-{number}", plan.id))
}

/// The name that is leased.
fn name_of(task: &TaskId) -> Key {
    match Key::in_space(SPACE, &[task.as_str()]) {
        Ok(key) => key,
        Err(_) => unreachable!("a task has a name that is not empty"),
    }
}

/// How many characters of an id are enough to mean it.
const PREFIX_MIN: usize = 4;

fn is_prefix(name: &str, id: OperationId) -> bool {
    name.len() >= PREFIX_MIN && id.to_string().starts_with(name)
}
