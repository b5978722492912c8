//! What an undo or a redo would do, and what it did.

use backout_model::ports::Guarantee;
use backout_model::{
    Chosen, LeftAlone, OperationId, OutcomeKind, Strategy, Target, TargetOutcome, Tried,
};
use serde::{Deserialize, Serialize};

use super::PlanDiff;

/// How a target stands against what an undo expects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum TargetState {
    /// As the operation left it: it comes back.
    ComesBack,
    /// There is nothing to do.
    AlreadyBefore,
    /// As a redo would make it, but not by us: it stays as it is, and is not taken back later.
    Left {
        /// Why not.
        why: String,
    },
    /// Changed since.
    Conflict {
        /// What differs.
        why: String,
    },
    /// What it was is not kept, or not any more.
    CannotComeBack {
        /// The reason, for people.
        why: String,
    },
    /// A newer step of the same plan writes it first.
    AfterNewerStep,
    /// It changed since, and the change can be taken out by a merge.
    Merges,
    /// It changed since and is restored anyway; what is there now is kept.
    Overwritten {
        /// What differs.
        why: String,
    },
    /// It is restored, but for one thing that only somebody else could put back.
    Incomplete {
        /// The reason, for people.
        why: String,
    },
}

impl TargetState {
    /// Says what stands in the way of taking it back, if something does.
    pub const fn hindrance(&self) -> Option<&String> {
        match self {
            Self::Conflict { why } | Self::CannotComeBack { why } => Some(why),
            Self::ComesBack
            | Self::AlreadyBefore
            | Self::Left { .. }
            | Self::AfterNewerStep
            | Self::Merges
            | Self::Overwritten { .. }
            | Self::Incomplete { .. } => None,
        }
    }

    /// Tells whether an undo would do something with it.
    pub const fn is_work(&self) -> bool {
        self.hindrance().is_none() && !matches!(self, Self::AlreadyBefore | Self::Left { .. })
    }
}

/// How far force would get with what stands in the way of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Forcing {
    /// Past all of it.
    All,
    /// Past some of it.
    Part,
}

/// One target of a planned step.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PlannedTarget {
    /// As the operation named it.
    pub target: Target,
    /// How it stands.
    #[serde(flatten)]
    pub state: TargetState,
    /// Whether nothing will be there any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub goes: bool,
    /// Whether something would be there if nothing stood in the way.
    #[serde(skip)]
    pub comes: bool,
    /// The operation that wrote the whole since, of which this is a part.
    #[serde(skip)]
    pub whole_by: Option<OperationId>,
}

/// Which way a step goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TakeBack {
    /// It takes an operation back.
    Undo,
    /// It takes an undo back.
    Redo,
}

/// One step of a plan, as people see it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PlannedStep {
    /// The operation that goes or comes back.
    pub id: OperationId,
    /// Whether it undoes or redoes.
    pub way: TakeBack,
    /// The operation whose recipe does it.
    pub with: OperationId,
    /// How it will be done.
    pub strategy: Strategy,
    /// Why it is part of the plan.
    #[serde(flatten)]
    pub chosen: Chosen,
    /// The operation's line for people.
    pub summary: String,
    /// Whether it restores what was, or answers one effect by another.
    #[serde(default)]
    pub guarantee: Guarantee,
    /// Who may have seen what it takes back, if anybody could.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_by_others: Option<String>,
    /// How each target stands.
    pub targets: Vec<PlannedTarget>,
}

impl PlannedStep {
    /// Tells whether there is nothing to do for it, because all is so already and not by us.
    pub fn is_idle(&self) -> bool {
        let is_left = |it: &PlannedTarget| matches!(it.state, TargetState::Left { .. });
        !self.targets.is_empty() && self.targets.iter().all(is_left)
    }
}

/// What an undo would do.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct PlanView {
    /// The operations, undos or redos that were asked for, by name.
    pub named: Vec<OperationId>,
    /// The operations that go, newest first.
    pub steps: Vec<PlannedStep>,
    /// Later operations that stay.
    pub left_alone: Vec<LeftAlone>,
    /// Operations of committed tasks that would have to go and that nobody named.
    pub needs_committed: Vec<OperationId>,
    /// Other agents' operations that would have to go and that nobody named.
    pub needs_others: Vec<OperationId>,
    /// Whether the plan can be executed as it is.
    pub is_executable: bool,
    /// Whether it could be executed with a merge, if not as it is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_mergeable: bool,
    /// Whether a part of it could be executed, if not the whole.
    #[serde(skip)]
    pub has_rest: bool,
    /// How far it could be executed with force, if not as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub force: Option<Forcing>,
    /// What would change, name by name, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<PlanDiff>,
}

impl PlanView {
    /// Lists what stands in the way, and why.
    pub(crate) fn hindrances(&self) -> impl Iterator<Item = (&Target, &String)> {
        let targets = self.steps.iter().flat_map(|step| &step.targets);
        targets.filter_map(|it| Some((&it.target, it.state.hindrance()?)))
    }

    /// Tells whether all that stands in the way is that what was kept is gone. Such a step does not hold up the others, and
    /// there may be another way to it.
    pub(crate) fn is_only_lost(&self) -> bool {
        let needs_word = !self.needs_committed.is_empty() || !self.needs_others.is_empty();
        let targets = || self.steps.iter().flat_map(|step| &step.targets);
        let is_lost = |it: &PlannedTarget| matches!(it.state, TargetState::CannotComeBack { .. });
        let is_other = |it: &PlannedTarget| it.state.hindrance().is_some() && !is_lost(it);
        !needs_word && targets().any(is_lost) && !targets().any(is_other)
    }

    /// Tells whether all that was asked for would be done.
    pub fn is_whole(&self) -> bool {
        let mut targets = self.steps.iter().flat_map(|step| &step.targets);
        let is_left = |target: &PlannedTarget| match target.state {
            TargetState::Conflict { .. }
            | TargetState::CannotComeBack { .. }
            | TargetState::Incomplete { .. } => true,
            TargetState::ComesBack
            | TargetState::AlreadyBefore
            | TargetState::Left { .. }
            | TargetState::AfterNewerStep
            | TargetState::Merges
            | TargetState::Overwritten { .. } => false,
        };
        self.is_executable && !targets.any(is_left) && !self.steps.iter().any(PlannedStep::is_idle)
    }
}

/// One operation that was to be taken or brought back.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct UndoneStep {
    /// Which one of the plan.
    pub id: OperationId,
    /// Whether it undoes or redoes.
    pub way: TakeBack,
    /// Its line for people.
    pub summary: String,
    /// Whether it restores what was, or answers one effect by another.
    #[serde(default)]
    pub guarantee: Guarantee,
    /// Who may have seen what it takes back, if anybody could.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_by_others: Option<String>,
    /// The operation that did it; none if nothing was done.
    pub by: Option<OperationId>,
    /// What became of each target.
    pub outcomes: Vec<TargetOutcome>,
    /// Things worth knowing, such as what could not come back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Whether somebody stopped it: then nothing of it was done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_stopped: bool,
    /// The operation that was to do it, if that stopped half-way and could not be put back: it is in doubt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_done: Option<OperationId>,
    /// What was done about it when it failed, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<Tried>,
    /// Whether what could not be taken back was accepted, as the settings say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_accepted: bool,
    /// What is not there any more, of what lies in something: a key, a row.
    #[serde(skip)]
    pub gone: Vec<Target>,
}

impl UndoneStep {
    /// Tells whether every target came back.
    pub fn is_complete(&self) -> bool {
        self.by.is_some()
            && self
                .outcomes
                .iter()
                .all(|outcome| outcome.kind.is_complete())
    }
}

/// What an undo did.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct UndoReport {
    /// The name under which all of it can be taken back; none if nothing was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub act: Option<OperationId>,
    /// Newest first, as executed.
    pub steps: Vec<UndoneStep>,
    /// Later operations that stayed.
    pub left_alone: Vec<LeftAlone>,
    /// Things worth knowing, such as a service that did not reload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl UndoReport {
    /// Takes over from the plan what each step can promise, and who may have seen what it takes back.
    pub(crate) fn promised(&mut self, view: &PlanView) {
        for step in &mut self.steps {
            let mut planned = view.steps.iter();
            if let Some(planned) = planned.find(|it| (it.id, it.way) == (step.id, step.way)) {
                step.guarantee = planned.guarantee;
                step.seen_by_others.clone_from(&planned.seen_by_others);
                let gone = planned.targets.iter().filter(|it| it.goes);
                step.gone = gone.map(|it| it.target.clone()).collect();
            }
        }
    }

    /// Lists the targets that others had changed, and that came back over that.
    pub(crate) fn overwritten(&self) -> impl Iterator<Item = &TargetOutcome> {
        let outcomes = self.steps.iter().flat_map(|step| &step.outcomes);
        outcomes.filter(|it| matches!(it.kind, OutcomeKind::Overwritten { .. }))
    }

    /// Tells whether everything came back.
    pub fn is_complete(&self) -> bool {
        self.steps.iter().all(UndoneStep::is_complete)
    }

    /// Tells whether all that did not come back was accepted.
    pub fn is_accepted(&self) -> bool {
        let mut steps = self.steps.iter();
        steps.all(|step| step.is_complete() || step.is_accepted)
    }
}

/// A target whose conflict stopped an undo.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RefusedTarget {
    /// Whose target it is.
    pub id: OperationId,
    /// It is as it was found.
    pub target: Target,
    /// What differs.
    pub why: String,
    /// Whether no word can bring it back: what it was is not kept.
    pub is_lost: bool,
    /// Whether it is a tree that would come back, and there is a directory already: what is in it can be restored beside
    /// what is there.
    pub is_taken: bool,
    /// The operation that wrote the whole since, of which this is a part.
    pub whole_by: Option<OperationId>,
}
