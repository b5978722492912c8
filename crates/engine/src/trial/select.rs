//! Choosing a part of what a trial changed, such that the part can stand alone.

use std::collections::{BTreeMap, BTreeSet};

use backout_files::{Baseline, LayerEntry, LayerState};
use backout_model::TargetPath;

use super::manifest::{Manifest, TrialChange, TrialState, TrialWhat};
use crate::Selection;

/// Gives the changes that are meant, with the new directories that they lie in.
pub(super) fn chosen<'c>(
    selection: &Selection,
    changes: &'c [TrialChange],
) -> Vec<&'c TrialChange> {
    let is_meant = |change: &&TrialChange| {
        let paths = std::iter::once(&change.path).chain(change.from());
        selection.has(paths.map(TargetPath::as_path))
    };
    let mut chosen: BTreeSet<&TargetPath> = BTreeSet::new();
    for change in changes.iter().filter(is_meant) {
        chosen.insert(&change.path);
    }
    let above: BTreeSet<TargetPath> = chosen.iter().flat_map(|path| path.ancestors()).collect();
    let is_needed = |change: &&TrialChange| {
        let makes = matches!(change.what, TrialWhat::Created | TrialWhat::Changed);
        chosen.contains(&change.path) || makes && above.contains(&change.path)
    };
    changes.iter().filter(is_needed).collect()
}

/// Gives the directories of a part that was applied before and undone since which others need.
pub(super) fn homes<'c>(homes: &'c [TrialChange], chosen: &[&TrialChange]) -> Vec<&'c TrialChange> {
    let above: BTreeSet<TargetPath> = chosen
        .iter()
        .flat_map(|change| change.path.ancestors())
        .collect();
    let is_missing = |home: &&TrialChange| {
        let found = home.path.as_path().symlink_metadata();
        !found.is_ok_and(|found| found.is_dir())
    };
    let needed = homes.iter().filter(|home| above.contains(&home.path));
    needed.filter(is_missing).collect()
}

/// Forgets what was applied, but for the new directories that something which still waits lies in.
pub(super) fn keep_homes(manifest: &mut Manifest) {
    let above: BTreeSet<TargetPath> = manifest
        .changes
        .iter()
        .flat_map(|change| change.path.ancestors())
        .collect();
    let is_home = |change: &TrialChange| {
        let makes = matches!(change.what, TrialWhat::Created | TrialWhat::Changed);
        makes && above.contains(&change.path)
    };
    manifest.homes.retain(is_home);
}

/// Says to the driver what shall become real. A second name whose first is left out, or is not any more what was applied,
/// stands for itself; of the latter there is a note.
pub(super) fn entries(
    changes: &[TrialChange],
    chosen: &[&TrialChange],
    notes: &mut Vec<String>,
) -> Vec<LayerEntry> {
    let known: BTreeSet<&TargetPath> = changes.iter().map(|change| &change.path).collect();
    // Where the first name of a file of several names is after all.
    let mut firsts: BTreeMap<&TargetPath, &TargetPath> = BTreeMap::new();
    for change in chosen {
        firsts.insert(&change.path, &change.path);
    }
    let mut entries = Vec::new();
    for change in chosen {
        let path = |path: &TargetPath| path.as_path().to_path_buf();
        let becomes = match &change.becomes {
            TrialState::Nothing => LayerState::Nothing,
            TrialState::Like { source } => LayerState::Like(path(source)),
            TrialState::Linked {
                first,
                source,
                made,
            } => {
                match firsts.get(first) {
                    Some(first) => LayerState::Linked(path(first)),
                    None if made.as_ref().is_some_and(|made| !holds(made, first)) => {
                        firsts.insert(first, &change.path);
                        notes.push(format!(
                            "`{}` becomes a file of its own: `{first}` is not what was applied any more",
                            change.path
                        ));
                        LayerState::Like(path(source))
                    }
                    // The first name did not change at all.
                    None if !known.contains(first) => LayerState::Linked(path(first)),
                    None => {
                        firsts.insert(first, &change.path);
                        LayerState::Like(path(source))
                    }
                }
            }
            TrialState::Moved { from, baseline } => LayerState::Moved {
                from: path(from),
                baseline: baseline.clone(),
            },
        };
        entries.push(LayerEntry {
            path: path(&change.path),
            baseline: change.baseline.clone(),
            becomes,
        });
    }
    entries
}

fn holds(baseline: &Baseline, path: &TargetPath) -> bool {
    baseline.still_holds(path.as_path()).unwrap_or(false)
}

/// Notes of what still waits that another name of the same file has been applied: it is to be one file again.
pub(super) fn link_to_applied(applied: &[TrialChange], waiting: &mut [TrialChange]) {
    // The name that all names of a file know.
    let known = |change: &TrialChange| match &change.becomes {
        TrialState::Linked { first, .. } => first.clone(),
        TrialState::Nothing | TrialState::Like { .. } | TrialState::Moved { .. } => {
            change.path.clone()
        }
    };
    let files = applied.iter().filter(|change| change.source().is_some());
    let by_name: BTreeMap<TargetPath, &TargetPath> =
        files.map(|change| (known(change), &change.path)).collect();
    for change in waiting {
        let (Some(first), Some(source)) = (by_name.get(&known(change)), change.source()) else {
            continue;
        };
        // What cannot be looked at now is not linked to later.
        let made = Baseline::of(first.as_path(), false).unwrap_or(Baseline::Absent);
        change.becomes = TrialState::Linked {
            first: (*first).clone(),
            source: source.clone(),
            made: Some(made),
        };
    }
}
