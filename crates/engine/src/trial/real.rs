//! What of a trial is real already: an application of it was left half-way, or what it had done was kept.
//!
//! It is known by what is there: a name that is as the command left it has nothing to be applied, and nobody else changed it.

use std::collections::HashSet;
use std::path::Path;

use backout_capture::overlay;
use backout_files::Baseline;
use backout_model::{Target, TargetPath};

use super::manifest::{Manifest, TrialChange, TrialState};
use crate::{Engine, EngineError};

impl Engine {
    /// Marks what somebody else changed since the command ended, and notes what is real already.
    pub(super) fn mark_changed(&self, manifest: &mut Manifest) -> Result<(), EngineError> {
        self.note_undone(manifest)?;
        let mut real = Vec::new();
        for change in &mut manifest.changes {
            if is_as_it_was(change) {
                continue;
            }
            if is_real(change) {
                real.push(Target::node(change.path.clone()));
            } else {
                change.is_conflict = true;
            }
        }
        let Some(said) = said(real.len()) else {
            return Ok(());
        };
        let armed = self.store.armed()?;
        let touches = |target: &Target| real.iter().any(|it| it.overlap(target).is_some());
        let left = armed
            .iter()
            .filter(|it| !self.store.is_alive(&it.owner))
            .find(|it| it.targets.iter().any(|it| touches(&it.target)));
        manifest.notes.push(match left {
            Some(left) => format!(
                "{said}: the process of operation {} died half-way, and `backout recover` settles that",
                left.id.short()
            ),
            None => said,
        });
        Ok(())
    }

    /// Forgets what is real already: there is nothing of it to apply. Tells how much that is.
    pub(super) fn forget_real(&self, manifest: &mut Manifest) -> Result<usize, EngineError> {
        let changes = manifest.changes.iter();
        let real = changes.filter(|it| !is_as_it_was(it) && is_real(it));
        let real: HashSet<TargetPath> = real.map(|it| it.path.clone()).collect();
        if !real.is_empty() {
            self.note_applied(manifest, &real)?;
        }
        Ok(real.len())
    }
}

/// Says how much was real already; nothing if that is nothing.
pub(super) fn said(count: usize) -> Option<String> {
    match count {
        0 => None,
        1 => Some("1 of these changes is real already".to_owned()),
        count => Some(format!("{count} of these changes are real already")),
    }
}

/// Tells whether a name is still what the command was run over, as an application would find it.
fn is_as_it_was(change: &TrialChange) -> bool {
    let holds = |path: &TargetPath, baseline: &Baseline| {
        baseline.still_holds(path.as_path()).unwrap_or(false)
    };
    let is_from = match &change.becomes {
        TrialState::Moved { from, baseline } => holds(from, baseline),
        TrialState::Nothing | TrialState::Like { .. } | TrialState::Linked { .. } => true,
    };
    is_from && holds(&change.path, &change.baseline)
}

/// Tells whether a name is what the command made of it.
fn is_real(change: &TrialChange) -> bool {
    let path = change.path.as_path();
    let is_like =
        |source: &TargetPath| overlay::is_as_in_layer(source.as_path(), path).unwrap_or(false);
    match &change.becomes {
        TrialState::Nothing => is_gone(path),
        TrialState::Like { source } => is_like(source),
        TrialState::Linked { first, source, .. } => {
            is_like(source) && is_one_file(path, first.as_path())
        }
        TrialState::Moved { from, baseline } => {
            // It is the same directory by another name.
            let is_there = baseline.put_back(path).is_ok_and(|now| now.is_some());
            is_there && is_gone(from.as_path())
        }
    }
}

fn is_gone(path: &Path) -> bool {
    matches!(Baseline::of(path, false), Ok(Baseline::Absent))
}

fn is_one_file(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let number = |path: &Path| {
        let found = path.symlink_metadata().ok();
        found.map(|found| (found.dev(), found.ino()))
    };
    number(one).is_some() && number(one) == number(other)
}
