//! Settling an effect that never finished: back to before, or forward to after, without a new recipe.
//!
//! Repeatable: what is already where it belongs is left alone, and what is neither before nor after is
//! somebody else's and stays. All that is to be done is tried in one go; if that fails, one by one, so that
//! a target that cannot be settled does not hold up the others.

use backout_model::{Effect, OutcomeKind, TargetOutcome, TargetPath};

use super::obtain::obtain;
use super::{outcomes_of, put_back_changed};
use crate::file::compare::{Current, State, judge_all};
use crate::file::error::FileError;
use crate::file::execute::{Purpose, Seen, Step, run, tidy::tidy};
use crate::file::keep::meta_of;
use crate::file::recipe::{Change, FileCompletion, FileRecipe, Image, ParentTimes};
use crate::file::stage::Material;
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Aim {
    Before,
    After,
}

struct Settling<'t> {
    tools: &'t Tools,
    recipe: FileRecipe,
    completion: FileCompletion,
    has_completion: bool,
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

    /// Gives the steps that settle one change: none if it is settled, or the outcome if it cannot be.
    fn steps(
        &self,
        index: usize,
        change: &Change,
        state: &State,
        aim: Aim,
    ) -> Result<Result<Vec<Step>, OutcomeKind>, FileError> {
        match (state, aim) {
            (State::Before, Aim::Before) | (State::After, Aim::After) => return Ok(Ok(Vec::new())),
            (State::Other { why }, _) if !self.is_torn(change)? => {
                return Ok(Err(OutcomeKind::Conflict { why: why.clone() }));
            }
            (State::Before | State::After | State::Other { .. }, _) => {}
        }
        let failed = |why: String| Ok(Err(OutcomeKind::Failed { why }));
        match change {
            Change::Set {
                path,
                before,
                after,
            } => {
                let (now, wanted) = if aim == Aim::Before {
                    (after, before)
                } else {
                    (before, after)
                };
                let obtained = match obtain(self.tools, path, wanted, true)? {
                    Ok(obtained) => obtained,
                    Err(why) => return failed(why),
                };
                // In an old tree that is about to go, or in a directory about to come, nothing is met.
                let node = Current::at(path)?.node.filter(|_| !now.is_absent());
                let now = if node.is_some() {
                    now.clone()
                } else {
                    Image::Absent
                };
                let change = Change::Set {
                    path: path.clone(),
                    before: now,
                    after: obtained.image,
                };
                let seen = node.map_or(Seen::Absent, Seen::There);
                Ok(Ok(vec![Step {
                    seen,
                    ..Step::new(index, change, obtained.material)
                }]))
            }
            Change::Move {
                from, to, replaced, ..
            } => {
                let (from, to) = if aim == Aim::Before {
                    (to, from)
                } else {
                    (from, to)
                };
                self.move_steps(index, (from, to), replaced, aim)
            }
            Change::Retouch {
                path,
                before,
                after,
            } => {
                let (was, wanted) = if aim == Aim::Before {
                    (after, before)
                } else {
                    (before, after)
                };
                let current = Current::at(path)?;
                let (Some(place), Some(node)) = (&current.place, current.node) else {
                    return failed("it is gone".to_owned());
                };
                let mut now = meta_of(place, &node)?;
                now.times = None;
                let wanted = put_back_changed(&now, wanted, was);
                let change = Change::Retouch {
                    path: path.clone(),
                    before: now,
                    after: wanted,
                };
                let step = Step::new(index, change, Material::Image);
                Ok(Ok(vec![Step {
                    seen: Seen::There(node),
                    ..step
                }]))
            }
        }
    }

    fn move_steps(
        &self,
        index: usize,
        (from, to): (&TargetPath, &TargetPath),
        replaced: &Image,
        aim: Aim,
    ) -> Result<Result<Vec<Step>, OutcomeKind>, FileError> {
        let (at_from, at_to) = (Current::at(from)?, Current::at(to)?);
        let Some(node) = at_from.node else {
            // Torn, and already back under its old name: only what it had replaced is missing.
            return self
                .replaced_step(index, from, replaced)
                .map(|step| step.map(|step| vec![step]));
        };
        if aim == Aim::Before && at_to.node.is_some() && !replaced.is_absent() {
            // An exchange that was cut short: exchanging once more is all there is to do.
            crate::file::execute::exchange(&Dir::of(from)?, &Dir::of(to)?)?;
            for path in [from, to] {
                self.tools.syncs.dir(&Dir::of(path)?.dir, "undo.dir")?;
            }
            return Ok(Ok(Vec::new()));
        }
        let there = match at_to.node {
            Some(_) if aim == Aim::After => replaced.clone(),
            Some(_) | None => Image::Absent,
        };
        let change = Change::Move {
            from: from.clone(),
            to: to.clone(),
            node: node.kind,
            identity: node.identity,
            replaced: there,
        };
        let met = at_to
            .node
            .filter(|_| aim == Aim::After && !replaced.is_absent());
        let seen_at_new = met.map_or(Seen::Absent, Seen::There);
        let step = Step::new(index, change, Material::Image);
        let mut steps = vec![Step {
            seen: Seen::There(node),
            seen_at_new,
            ..step
        }];
        if aim == Aim::Before && !replaced.is_absent() {
            match self.replaced_step(index, from, replaced)? {
                Ok(step) => steps.push(step),
                Err(kind) => return Ok(Err(kind)),
            }
        }
        Ok(Ok(steps))
    }

    /// Gives the step that brings back what a move had replaced.
    fn replaced_step(
        &self,
        index: usize,
        path: &TargetPath,
        replaced: &Image,
    ) -> Result<Result<Step, OutcomeKind>, FileError> {
        Ok(match obtain(self.tools, path, replaced, true)? {
            Ok(obtained) => {
                let (before, after) = (Image::Absent, obtained.image);
                let change = Change::Set {
                    path: path.clone(),
                    before,
                    after,
                };
                Ok(Step::new(index, change, obtained.material))
            }
            Err(why) => Err(OutcomeKind::Failed { why }),
        })
    }

    /// Tells whether a name is free only because a change of two steps was cut short between them: a
    /// swap on a file system that cannot exchange names, or a move that had replaced something.
    fn is_torn(&self, change: &Change) -> Result<bool, FileError> {
        match change {
            Change::Set {
                path,
                before,
                after,
            } => {
                let is_free = Current::at(path)?.node.is_none();
                let is_swap = !before.is_absent() && !after.is_absent();
                Ok(!self.has_completion && is_free && is_swap)
            }
            Change::Move {
                from,
                to,
                node,
                identity,
                replaced,
            } => {
                let is_free = Current::at(to)?.node.is_none();
                let old = Current::at(from)?.node;
                let is_there = old.is_some_and(|old| old.is_kept(*node, identity));
                Ok(is_free && is_there && !replaced.is_absent())
            }
            Change::Retouch { .. } => Ok(false),
        }
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
        if run(self.tools, id, &steps, &parents, Purpose::Recover).is_ok()
            || self.tools.is_abandoned()
        {
            return Vec::new();
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
