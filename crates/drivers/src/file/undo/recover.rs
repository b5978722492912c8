//! Settling an effect that never finished: back to before, or forward to after, without a new recipe.
//!
//! Repeatable: what is already where it belongs is left alone, and what is neither before nor after is
//! somebody else's and stays. All that is to be done is tried in one go; if that fails, one by one, so that
//! a target that cannot be settled does not hold up the others.

use backout_model::{Effect, OutcomeKind, TargetOutcome};

use super::outcomes_of;
use crate::file::error::FileError;
use crate::file::execute::{Purpose, Step, run, tidy::tidy};
use crate::file::judge::{State, judge_all};
use crate::file::recipe::{FileCompletion, FileRecipe, ParentTimes};
use crate::file::sys::Dir;
use crate::file::tools::Tools;

/// Puts the targets of an unfinished effect back as they were.
pub(crate) fn revert(tools: &Tools, effect: &Effect) -> Result<Vec<TargetOutcome>, FileError> {
    Settling::begin(tools, effect)?.settle(Aim::Before)
}

/// Finishes an unfinished effect.
pub(crate) fn finish(tools: &Tools, effect: &Effect) -> Result<Vec<TargetOutcome>, FileError> {
    Settling::begin(tools, effect)?.settle(Aim::After)
}

/// Which way an effect is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aim {
    /// Back.
    Before,
    /// Forward.
    After,
}

/// An effect being settled.
pub(super) struct Settling<'t> {
    pub(super) tools: &'t Tools,
    pub(super) recipe: FileRecipe,
    completion: FileCompletion,
    pub(super) has_completion: bool,
}

impl<'t> Settling<'t> {
    fn begin(tools: &'t Tools, effect: &Effect) -> Result<Self, FileError> {
        let recipe = FileRecipe::decode(&effect.recipe)?;
        tidy(tools, &recipe)?;
        let completion = FileCompletion::of(effect)?;
        Ok(Self {
            tools,
            recipe,
            completion,
            has_completion: effect.completion.is_some(),
        })
    }

    fn settle(&self, aim: Aim) -> Result<Vec<TargetOutcome>, FileError> {
        let states = judge_all(&self.recipe, &self.completion)?;
        let mut kinds: Vec<Option<OutcomeKind>> = vec![None; states.len()];
        let mut units: Vec<(usize, Vec<Step>)> = Vec::new();
        let mut order: Vec<usize> = (0..states.len()).collect();
        if aim == Aim::Before {
            order.reverse();
        }
        for index in order {
            let (Some(change), Some(state)) = (self.recipe.changes.get(index), states.get(index))
            else {
                continue;
            };
            let steps = self.steps(index, change, state, aim)?;
            let Some(kind) = kinds.get_mut(index) else {
                continue;
            };
            match steps {
                Ok(steps) if steps.is_empty() => *kind = Some(OutcomeKind::AlreadyGone),
                Ok(steps) => units.push((index, steps)),
                Err(outcome) => *kind = Some(outcome),
            }
        }
        let failures = self.execute(units, aim);
        for (index, why) in failures {
            if let Some(kind) = kinds.get_mut(index) {
                *kind = Some(why);
            }
        }
        self.outcomes(kinds, aim)
    }

    /// Makes all steps happen at once, or else as many as can. Gives what failed.
    fn execute(&self, units: Vec<(usize, Vec<Step>)>, aim: Aim) -> Vec<(usize, OutcomeKind)> {
        if units.is_empty() {
            return Vec::new();
        }
        let owners: Vec<usize> = units
            .iter()
            .flat_map(|(index, steps)| steps.iter().map(|_| *index))
            .collect();
        let steps: Vec<Step> = units.into_iter().flat_map(|(_, steps)| steps).collect();
        let parents = self.parents(aim);
        let id = self.recipe.operation;
        let at_once = run(self.tools, id, &steps, &parents, Purpose::Recover);
        match at_once {
            Ok(_) => return Vec::new(),
            Err(_) if self.tools.is_abandoned() => return Vec::new(),
            // A second try might be told that all is well when it is not.
            Err(error @ FileError::NotSynced { .. }) => {
                let kind = outcome_of(&error);
                return owners
                    .into_iter()
                    .map(|owner| (owner, kind.clone()))
                    .collect();
            }
            Err(_) => {}
        }
        let mut failures = Vec::new();
        let mut rest = steps.as_slice();
        let mut at = 0;
        while let Some(first) = rest.first() {
            // A new directory comes with its entries.
            let root = first.change.is_new_directory().then(|| first.change.path());
            let inside = rest
                .iter()
                .skip(1)
                .take_while(|step| root.is_some_and(|root| step.change.path().is_below(root)));
            let count = 1 + inside.count();
            let (unit, others) = rest.split_at_checked(count).unwrap_or((rest, &[]));
            if let Err(error) = run(self.tools, id, unit, &[], Purpose::Recover) {
                let kind = outcome_of(&error);
                let failed = owners.iter().skip(at).take(count);
                failures.extend(failed.map(|owner| (*owner, kind.clone())));
            }
            at += count;
            rest = others;
        }
        failures
    }

    /// Gives directories their old times where the effect told which times it left them with.
    fn parents(&self, aim: Aim) -> Vec<ParentTimes> {
        let left = self
            .completion
            .parents
            .iter()
            .copied()
            .chain(std::iter::repeat(None));
        let with = std::iter::zip(&self.recipe.parents, left).filter_map(|(parent, left)| {
            let now = Dir::open(&parent.path).ok()?.node().ok()?.times;
            let after = match aim {
                Aim::Before => (left == Some(now.mtime)).then_some(parent.before),
                Aim::After => parent.after.filter(|_| now.mtime == parent.before.mtime),
            };
            Some(ParentTimes {
                path: parent.path.clone(),
                before: now,
                after,
            })
        });
        with.collect()
    }

    /// Looks once more, and tells what became of each target.
    fn outcomes(
        &self,
        kinds: Vec<Option<OutcomeKind>>,
        aim: Aim,
    ) -> Result<Vec<TargetOutcome>, FileError> {
        let wanted = if aim == Aim::Before {
            State::Before
        } else {
            State::After
        };
        let states = judge_all(&self.recipe, &FileCompletion::default())?;
        let mut outcomes = Vec::new();
        let all = std::iter::zip(&self.recipe.changes, std::iter::zip(kinds, states));
        for (change, (kind, state)) in all {
            let kind = match (kind, state) {
                (Some(kind), _) => kind,
                (None, state) if state == wanted => OutcomeKind::Restored,
                (None, State::Other { why }) => OutcomeKind::Failed { why },
                (None, State::Before | State::After) => OutcomeKind::Failed {
                    why: "it did not change".to_owned(),
                },
            };
            outcomes.extend(outcomes_of(change, &kind));
        }
        Ok(outcomes)
    }
}

fn outcome_of(error: &FileError) -> OutcomeKind {
    match error {
        FileError::Changed { .. } | FileError::NotEmpty { .. } => OutcomeKind::Conflict {
            why: error.to_string(),
        },
        other => OutcomeKind::Failed {
            why: crate::file::error::chain(other),
        },
    }
}
