//! A part of an operation that lies in a directory whose place something else has now.

use backout_model::{OutcomeKind, Target, TargetOutcome, TargetPath};

use super::work::Work;
use crate::{PlannedTarget, TargetState};

/// Tells whether a part is chosen in a directory that is something else now. Whether that gives way to the directory depends on
/// what else the operation did.
pub(super) fn is_walled_off(work: &Work<'_>) -> bool {
    let is_wall = |path: &TargetPath| {
        let found = path.as_path().symlink_metadata();
        found.is_ok_and(|found| !found.is_dir())
    };
    let mut files = work.step.targets.iter().filter_map(Target::file);
    work.is_part() && files.any(|file| file.ancestors().any(|above| is_wall(&above)))
}

/// Lists what a part that was tried takes along: what gives way to its directories.
pub(super) fn made_way(
    outcomes: &[TargetOutcome],
    planned: &[PlannedTarget],
) -> Vec<PlannedTarget> {
    let is_new = |it: &&TargetOutcome| {
        let is_known = planned.iter().any(|known| known.target == it.target);
        it.kind == OutcomeKind::Restored && !is_known
    };
    let along = outcomes.iter().filter(is_new);
    let along = along.map(|it| PlannedTarget {
        target: it.target.clone(),
        state: TargetState::ComesBack,
        goes: false,
        comes: true,
        whole_by: None,
    });
    along.collect()
}
