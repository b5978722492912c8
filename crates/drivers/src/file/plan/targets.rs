//! Naming what a request will write, before anything is looked at closely.

use std::collections::{HashMap, HashSet};
use std::path::{Component, Path, PathBuf};

use backout_files::{Baseline, LayerEntry, LayerState};
use backout_model::text::parse;
use backout_model::{Target, TargetPath};

use super::patch::{base_of, inside};
use crate::file::context::FileContext;
use crate::file::error::FileError;
use crate::file::past::{Past, Was};
use crate::file::request::FileRequest;
use crate::file::resolve::{Last, refuse_ours, resolve};

/// Names the targets of a request, resolved as the plan will resolve them.
pub(crate) fn targets(
    context: &FileContext,
    request: &FileRequest,
) -> Result<Vec<Target>, FileError> {
    let mut found = Vec::new();
    add(context, request, &mut found)?;
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Names what a path leads to whose content is taken over, with all below; none if it leads nowhere.
pub(crate) fn source(context: &FileContext, path: &Path) -> Option<Target> {
    let path = resolve(context, path, Last::Itself).ok()?.path;
    let is_tree = is_directory(&path);
    Some(target(path, is_tree))
}

fn add(
    context: &FileContext,
    request: &FileRequest,
    found: &mut Vec<Target>,
) -> Result<(), FileError> {
    let at = |path: &Path, last: Last| Ok::<_, FileError>(resolve(context, path, last)?.path);
    match request {
        FileRequest::Write { path, parents, .. } => {
            let path = at(path, Last::Followed)?;
            add_missing_parents(&path, *parents, found);
            found.push(Target::node(path));
        }
        FileRequest::Append { path, .. } | FileRequest::Edit { path, .. } => {
            found.push(Target::node(at(path, Last::Followed)?));
        }
        FileRequest::Patch { base, patch } => {
            let base = base_of(base, |path| at(path, Last::Itself))?;
            for file in parse(patch).map_err(FileError::Patch)?.files {
                for name in file.old.iter().chain(file.new.iter()) {
                    let path = inside(&base, name, |path| at(path, Last::Itself))?;
                    add_missing_parents(&path, file.new.is_some(), found);
                    found.push(Target::node(path));
                }
            }
        }
        FileRequest::Remove { path, recursive }
        | FileRequest::Chown {
            path, recursive, ..
        } => {
            found.push(target(at(path, Last::Itself)?, *recursive));
        }
        FileRequest::Move { from, to, .. } => {
            let (from, to) = (at(from, Last::Itself)?, at(to, Last::Itself)?);
            let is_tree = is_directory(&from);
            found.extend([target(from, is_tree), target(to, is_tree)]);
        }
        FileRequest::Copy {
            from,
            to,
            recursive,
            ..
        } => {
            let is_tree = *recursive && is_directory(&at(from, Last::Itself)?);
            found.push(target(at(to, Last::Itself)?, is_tree));
        }
        FileRequest::Mkdir { path, parents, .. } => {
            let path = at(path, Last::Itself)?;
            add_missing_parents(&path, *parents, found);
            found.push(Target::node(path));
        }
        FileRequest::Symlink { path, .. } | FileRequest::HardLink { path, .. } => {
            found.push(Target::node(at(path, Last::Itself)?));
        }
        FileRequest::Chmod {
            path, recursive, ..
        } => {
            found.push(target(at(path, Last::Followed)?, *recursive));
        }
        FileRequest::Layer { entries, .. } => {
            let above: HashSet<&Path> = entries.iter().filter_map(|it| it.path.parent()).collect();
            let mut names = Names::new(context);
            for entry in entries {
                add_entry(&mut names, (entry, above.contains(&*entry.path)), found)?;
            }
        }
        FileRequest::Restore { names, .. } => add_past(names, found),
        FileRequest::Batch(requests) | FileRequest::Within { requests, .. } => {
            for request in requests {
                add(context, request, found)?;
            }
        }
    }
    Ok(())
}

/// The names of a layer: what most of them lie in was resolved for another one.
struct Names<'c> {
    context: &'c FileContext,
    parents: HashMap<PathBuf, TargetPath>,
}

impl<'c> Names<'c> {
    fn new(context: &'c FileContext) -> Self {
        let parents = HashMap::new();
        Self { context, parents }
    }

    fn of(&mut self, path: &Path) -> Result<TargetPath, FileError> {
        let (Some(parent), Some(Component::Normal(name)), true) = (
            path.parent(),
            path.components().next_back(),
            path.is_absolute(),
        ) else {
            return Ok(resolve(self.context, path, Last::Itself)?.path);
        };
        if let Some(known) = self.parents.get(parent) {
            let found = known.join(name);
            refuse_ours(self.context, &found)?;
            return Ok(found);
        }
        let found = resolve(self.context, path, Last::Itself)?.path;
        let known = found.parent().map(|real| (parent.to_path_buf(), real));
        self.parents.extend(known);
        Ok(found)
    }
}

/// Names what an entry of a layer writes: a directory that goes or moves takes all below along. What the name was when the
/// layer was made is believed here; it is looked at before anything is planned.
fn add_entry(
    names: &mut Names<'_>,
    (entry, has_others_below): (&LayerEntry, bool),
    found: &mut Vec<Target>,
) -> Result<(), FileError> {
    let path = names.of(&entry.path)?;
    let (is_new, is_directory) = match &entry.baseline {
        Baseline::Absent => (true, false),
        Baseline::Node { .. } | Baseline::Directory { .. } | Baseline::Tree { .. } => {
            (false, is_directory(&path))
        }
    };
    let is_tree = match &entry.becomes {
        LayerState::Nothing => is_directory,
        // What comes to be below a new directory stands on it.
        LayerState::Like(_) if is_new => has_others_below,
        LayerState::Like(from) => is_directory && !from.is_dir(),
        LayerState::Linked(_) => false,
        LayerState::Moved { from, .. } => {
            found.push(Target::tree(names.of(from)?));
            true
        }
    };
    found.push(target(path, is_tree));
    Ok(())
}

/// Names what becomes what it was: a directory that becomes something else takes all below along.
fn add_past(names: &[Past], found: &mut Vec<Target>) {
    for past in names {
        add_missing_parents(&past.path, past.was.is_some(), found);
        let stays_directory = past.was.as_ref().is_some_and(Was::is_directory);
        let is_tree = is_directory(&past.path) && !stays_directory;
        found.push(target(past.path.clone(), is_tree));
    }
}

fn add_missing_parents(path: &TargetPath, wanted: bool, found: &mut Vec<Target>) {
    if wanted {
        let missing = path
            .ancestors()
            .take_while(|above| !above.as_path().exists());
        found.extend(missing.map(Target::node));
    }
}

fn target(path: TargetPath, is_tree: bool) -> Target {
    if is_tree {
        Target::tree(path)
    } else {
        Target::node(path)
    }
}

fn is_directory(path: &TargetPath) -> bool {
    path.as_path()
        .symlink_metadata()
        .is_ok_and(|found| found.is_dir())
}
