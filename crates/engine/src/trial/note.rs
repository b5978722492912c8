//! Writing down what a command did, and what the real files were.

use std::path::Path;

use backout_capture::overlay::{self, Becomes, Change, Ended, Finished, What};
use backout_files::Baseline;
use backout_model::TargetPath;

use super::manifest::{Manifest, TrialChange, TrialEnd, TrialState, TrialWhat};
use crate::EngineError;

/// Adds to a manifest how the command ended and what it changed.
pub(super) fn outcome(manifest: &mut Manifest, finished: &Finished) -> Result<(), EngineError> {
    manifest.ended = Some(TrialEnd {
        code: finished.ended.code(),
        signal: match finished.ended {
            Ended::Signal(signal) => Some(signal),
            Ended::Code(_) => None,
        },
    });
    for survivor in &finished.survivors {
        let (pid, command) = (survivor.pid, &survivor.command);
        manifest
            .notes
            .push(format!("process {pid} outlived the command: {command}"));
    }
    for (path, why) in &finished.not_layered {
        let path = path.display();
        manifest
            .notes
            .push(format!("`{path}` could only be read inside: {why}"));
    }
    let changes = overlay::walk(&finished.plan)?;
    manifest.notes.extend(changes.iter().filter_map(|change| {
        let other = old_mode(change, &changes)?;
        let (path, other) = (change.path.display(), other.display());
        Some(format!(
            "`{path}` has other names, and `{other}` keeps the old mode, owner and attributes"
        ))
    }));
    for change in changes {
        if has_other_names(&change) {
            let path = change.path.display();
            manifest.notes.push(format!(
                "`{path}` has other names, and they keep the old content"
            ));
        }
        if let Some(change) = noted(&change, finished.began.0)? {
            manifest.changes.push(change);
        }
    }
    Ok(())
}

/// Tells whether a changed file has more than one name: a layer has its own file for each.
fn has_other_names(change: &Change) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    change.what == What::Changed
        && std::fs::symlink_metadata(&change.path)
            .is_ok_and(|found| found.is_file() && found.nlink() > 1)
}

/// Finds another name of a file that got another mode or owner, to which the layer gave a file of its own: it was written
/// or moved.
fn old_mode<'c>(change: &Change, all: &'c [Change]) -> Option<&'c Path> {
    use std::os::unix::fs::MetadataExt as _;
    if change.what != What::Metadata {
        return None;
    }
    let look = |path: &Path| path.symlink_metadata().ok();
    let real = look(&change.path).filter(|it| it.is_file() && it.nlink() > 1)?;
    let is_name = |other: &&Change| {
        let number = |it: &std::fs::Metadata| (it.dev(), it.ino());
        let is_same = look(&other.path).is_some_and(|it| number(&it) == number(&real));
        is_same && other.path != change.path
    };
    let mut names = all.iter().filter(is_name);
    let is_moved = names.clone().any(|other| other.what == What::Deleted);
    // A copy that a layer makes of a file to move it has its size and time.
    let is_copy = |source: &Path| {
        let stamp = |it: &std::fs::Metadata| (it.size(), it.mtime(), it.mtime_nsec());
        look(source).is_some_and(|it| it.is_file() && stamp(&it) == stamp(&real))
    };
    let is_moved_to = |other: &&Change| match &other.becomes {
        Becomes::Like(source) => is_moved && other.what == What::Created && is_copy(source),
        Becomes::Nothing | Becomes::Linked { .. } | Becomes::Moved(_) => false,
    };
    let written = names.find(|other| other.what == What::Changed);
    let other = written.or_else(|| all.iter().find(is_moved_to))?;
    Some(&other.path)
}

/// Notes one change with what its name was; nothing for a path that no operation can write.
fn noted(change: &Change, began: i64) -> Result<Option<TrialChange>, EngineError> {
    let Ok(path) = TargetPath::new(&change.path) else {
        return Ok(None);
    };
    let becomes_directory = match &change.becomes {
        Becomes::Like(source) => source.symlink_metadata().is_ok_and(|it| it.is_dir()),
        Becomes::Nothing | Becomes::Linked { .. } | Becomes::Moved(_) => false,
    };
    let baseline = look(&change.path, !becomes_directory)?;
    let mut is_conflict = baseline.is_newer_than(began);
    let Some(becomes) = state(&change.becomes)? else {
        return Ok(None);
    };
    if let TrialState::Moved { baseline, .. } = &becomes {
        is_conflict |= baseline.is_newer_than(began);
    }
    Ok(Some(TrialChange {
        path,
        what: match change.what {
            What::Created => TrialWhat::Created,
            What::Changed => TrialWhat::Changed,
            What::Metadata => TrialWhat::Metadata,
            What::Deleted => TrialWhat::Deleted,
            What::Moved => TrialWhat::Moved,
        },
        becomes,
        baseline,
        is_conflict,
        size_before: change.size_before,
        size_after: change.size_after,
        gone_below: Some(change.gone_below).filter(|below| *below > 0),
    }))
}

fn state(becomes: &Becomes) -> Result<Option<TrialState>, EngineError> {
    let target = |path: &Path| TargetPath::new(path).ok();
    Ok(match becomes {
        Becomes::Nothing => Some(TrialState::Nothing),
        Becomes::Like(source) => target(source).map(|source| TrialState::Like { source }),
        Becomes::Linked { first, source } => match (target(first), target(source)) {
            (Some(first), Some(source)) => Some(TrialState::Linked {
                first,
                source,
                made: None,
            }),
            _ => None,
        },
        Becomes::Moved(from) => {
            let baseline = look(from, true)?;
            target(from).map(|from| TrialState::Moved { from, baseline })
        }
    })
}

fn look(path: &Path, whole: bool) -> Result<Baseline, EngineError> {
    Baseline::of(path, whole).map_err(|source| EngineError::Io {
        action: "look at what the command changed",
        source,
    })
}
