//! What is foreseen of a target that newer steps change first: what they leave in its way.

use std::collections::BTreeSet;

use backout_files::{FileChange, Was};
use backout_model::ports::{Examined, OnConflict};
use backout_model::{Key, Reach, TargetPath};

use super::futile::has_work_without;
use super::preview::Planned;
use super::work::Work;
use crate::{Engine, EngineError, PlannedStep, TargetState, UndoOptions};

/// Says why what others wrote as well does not merge, as the undo says it.
const NOT_ALONE: &str = "what the command alone made of it is not known";

/// Says why what is no file does not merge, as the undo says it.
const NO_TEXT: &str = "what is there now is not a text that could be merged";

/// What stands in the way of a target when its turn comes.
pub(super) struct InTheWay {
    pub(super) why: String,
    pub(super) past: Past,
}

impl InTheWay {
    pub(super) const fn new(why: String, past: Past) -> Self {
        Self { why, past }
    }
}

/// What gets past it.
pub(super) enum Past {
    /// A merge may, and force does.
    Merge,
    /// Force does: one of the texts is not there to be merged.
    Force,
    /// Nothing does: somebody else has done it, and it could not be taken back.
    Nothing,
}

/// Says what is foreseen of a target that newer steps change first, and what they leave in the way.
pub(super) fn after_newer(
    it: Option<InTheWay>,
    on_conflict: OnConflict,
    found: &Examined,
) -> TargetState {
    let Some(InTheWay { why, past }) = it else {
        return TargetState::AfterNewerStep;
    };
    match (past, on_conflict) {
        (Past::Nothing, _) | (Past::Merge | Past::Force, OnConflict::Refuse) => {
            TargetState::Conflict { why }
        }
        (Past::Merge | Past::Force, OnConflict::Force) => TargetState::Overwritten { why },
        (Past::Merge | Past::Force, OnConflict::Merge) if found.shared.is_some() => {
            TargetState::Conflict {
                why: format!("{why}; {NOT_ALONE}"),
            }
        }
        (Past::Force, OnConflict::Merge) => TargetState::Conflict { why },
        // What is no text does not merge.
        (Past::Merge, OnConflict::Merge) if found.goes && found.target.reach() == Reach::Tree => {
            TargetState::Conflict {
                why: format!("{why}; {NO_TEXT}"),
            }
        }
        // Whether it merges is seen when its turn comes.
        (Past::Merge, OnConflict::Merge) => TargetState::AfterNewerStep,
    }
}

/// Tells whether a newer step leaves a name as it is: something stands in the way of that.
pub(super) fn is_stuck(steps: &[PlannedStep], newer: &Work<'_>, path: &TargetPath) -> bool {
    let is_it = |step: &&PlannedStep| step.with == newer.step.with;
    let mut planned = steps.iter().filter(is_it).flat_map(|step| &step.targets);
    planned.any(|it| it.target.file() == Some(path) && it.state.hindrance().is_some())
}

impl Engine {
    /// Tells whether there is anything that `--partial` would do.
    pub(super) fn has_rest(
        &self,
        planned: &Planned,
        futile: &BTreeSet<usize>,
        options: &UndoOptions,
    ) -> Result<bool, EngineError> {
        let partial = UndoOptions {
            partial: true,
            diff: false,
            ..options.clone()
        };
        Ok(has_work_without(&self.view(planned, &partial)?, futile))
    }

    /// Says why a redo that finds a name gone when its turn comes leaves it so: nobody could take that back.
    pub(super) fn gone_for_good(
        &self,
        work: &Work<'_>,
        path: &TargetPath,
        is_homeless: bool,
    ) -> Result<Option<String>, EngineError> {
        if is_homeless && self.was_clean(work, &Key::from(path.clone()))? {
            return Ok(path.parent().map(|home| said_of_home(&home)));
        }
        let Some(effect) = self.effect_before(work)? else {
            return Ok(None);
        };
        // What stands there now goes before; what was kept is there or not.
        let examined = self.driver_of(&effect)?.examine(&effect, false)?;
        let mut of_it = examined.into_iter();
        let of_it = of_it.find(|it| it.target.file() == Some(path));
        Ok(of_it.and_then(|it| it.lost))
    }
}

/// Says that the directory of something is not there.
pub(super) fn said_of_home(home: &TargetPath) -> String {
    format!("its directory `{home}` is gone")
}

/// Tells whether a step would take a name away that is gone by then.
pub(super) fn is_gone_again(change: &FileChange, found: Option<&Was>) -> bool {
    change.before.is_none() && change.after.is_some() && found.is_none() && !change.is_as_now
}
