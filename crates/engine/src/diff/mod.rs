//! What operations changed and undos would change, name by name.

mod file;
mod key;

use std::collections::{BTreeMap, HashSet};

use backout_files::{FileChange, Shown, Was};
use backout_model::text::{Merge, merge3};
use backout_model::{Effect, Key, Operation, PlanError, Status, Target, TargetPath, Verb};
use backout_storage::{Filter, OperationRef};

use crate::undo::Work;
use crate::untold::Untold;
use crate::{
    Diff, DiffFile, Engine, EngineError, GateError, PlanDiff, PlannedStep, PlannedTarget,
    Selection, TargetState,
};
pub(crate) use file::Comparison;

/// How much of a file is merged for a preview.
const MERGE_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// So many earlier operations on a name are asked whether they have what a later one left.
const EARLIER_MAX: usize = 64;

impl Engine {
    /// Says what an operation changed.
    pub fn diff(
        &self,
        reference: &OperationRef,
        selection: &Selection,
        is_brief: bool,
    ) -> Result<Diff, EngineError> {
        let operation = self.told_by(reference)?;
        let id = operation.id;
        let effect = self.store.effect(id)?;
        if let Some(values) = self.driver_of(&effect)?.values(&effect)? {
            let is_of_files = self.as_files(&effect)?.is_some();
            let files = Self::compare_values(&values, selection, is_brief, is_of_files);
            return Ok(Diff { id, files });
        }
        let Some(effect) = self.as_files(&effect)? else {
            return Err(Untold::values(id));
        };
        let mut changes = self.files.changes(&effect)?;
        changes.retain(|change| {
            let names = [Some(&change.path), change.from.as_ref()];
            selection.has(names.into_iter().flatten().map(TargetPath::as_path))
        });
        changes.sort_by(|one, other| one.path.cmp(&other.path));
        let files = self.compare(&changes, Some(&operation), is_brief)?;
        Ok(Diff { id, files })
    }

    /// Reads one side of a file that an operation changed; the inner error says why there are no bytes.
    pub fn side_of(
        &self,
        reference: &OperationRef,
        path: &TargetPath,
        is_after: bool,
        bytes_max: u64,
    ) -> Result<Result<Vec<u8>, String>, EngineError> {
        let operation = self.told_by(reference)?;
        let sides = self.sides_of(&self.store.effect(operation.id)?)?;
        let Some(change) = sides.into_iter().find(|side| side.path == *path) else {
            return Ok(Err("the operation did not change that file".to_owned()));
        };
        let was = if is_after {
            change.after
        } else {
            change.before
        };
        let Some(was) = was.filter(Was::is_file) else {
            return Ok(Err("there was no file".to_owned()));
        };
        let shown = match self.files.read(&was, bytes_max)? {
            Shown::Lost(why) => match self.kept_later(&operation, path, &was)? {
                Some(found) => self.files.read(&found, bytes_max)?,
                None => Shown::Lost(why),
            },
            shown @ (Shown::Bytes(_) | Shown::TooMany) => shown,
        };
        Ok(match shown {
            Shown::Bytes(bytes) => Ok(bytes),
            Shown::TooMany => Err("it is too large".to_owned()),
            Shown::Lost(why) => Err(why),
        })
    }

    /// Finds an operation whose recipe tells what it changed. That of a command does not before the command has ended.
    pub(crate) fn told_by(&self, reference: &OperationRef) -> Result<Operation, EngineError> {
        let id = self.store.resolve(reference)?;
        let unknown = PlanError::Unknown { id };
        let operation = self.store.operation(id)?.ok_or(unknown)?;
        if let status @ (Status::Proposed | Status::Refused) = operation.status {
            return Err(GateError::NothingDone { id, status }.into());
        }
        if !operation.retained {
            let for_sake_of = None;
            return Err(PlanError::Expired { id, for_sake_of }.into());
        }
        if operation.verb == Verb::Run && operation.status == Status::Armed {
            return Err(self.unfinished(&operation));
        }
        Ok(operation)
    }

    /// Lists every file that an effect changed, with what others saw before and after it.
    pub(crate) fn sides_of(&self, effect: &Effect) -> Result<Vec<FileChange>, EngineError> {
        let files = self.as_files(effect)?;
        let sides = files.map(|files| self.files.sides(&files)).transpose()?;
        Ok(sides.unwrap_or_default())
    }

    /// Compares both sides of each name. What is not where an operation left it may be kept by a later one.
    pub(crate) fn compare(
        &self,
        changes: &[FileChange],
        operation: Option<&Operation>,
        is_brief: bool,
    ) -> Result<Vec<DiffFile>, EngineError> {
        let elsewhere = |change: &FileChange, was: &Was| {
            let operation = operation?;
            self.kept_later(operation, &change.path, was).ok()?
        };
        let mut comparison = Comparison::new(&*self.files, &elsewhere, is_brief);
        let mut files = Vec::new();
        for change in changes {
            files.extend(comparison.compare(change)?);
        }
        Ok(files)
    }

    /// Finds what an operation made of a name, where a later one that wrote there, or by another name of the file, keeps it.
    pub(crate) fn kept_later(
        &self,
        operation: &Operation,
        path: &TargetPath,
        was: &Was,
    ) -> Result<Option<Was>, EngineError> {
        let bases = self.files.bases(was)?;
        let mut made = None;
        for name in was.names(path) {
            let after = Filter {
                after: Some(operation.lsn),
                ..Filter::default()
            };
            let later = self.writers_of(name, &after)?;
            for next in later.iter().rev().filter(|next| next.retained) {
                let sides = self.sides_of(&self.store.effect(next.id)?)?;
                let side = sides.into_iter().find(|side| side.path == *name);
                let Some(kept) = side.and_then(|side| side.before) else {
                    continue;
                };
                if self.files.is_same(was, &kept)? {
                    return Ok(Some(kept));
                }
                // What it is told as a change of will do as well.
                if made.is_none()
                    && let Some(base) = self.files.has_one_of(&bases, &kept)?
                {
                    made = Some(was.made_from(base, kept));
                }
            }
        }
        Ok(made)
    }

    /// Finds what an operation left under a name, where another one has it: a later one that replaced it, or an earlier one that wrote it.
    pub(crate) fn kept_elsewhere(
        &self,
        operation: &Operation,
        path: &TargetPath,
        was: &Was,
    ) -> Result<Option<Was>, EngineError> {
        if let Some(kept) = self.kept_later(operation, path, was)? {
            return Ok(Some(kept));
        }
        let before = Filter {
            before: Some(operation.lsn),
            limit: Some(EARLIER_MAX),
            ..Filter::default()
        };
        let earlier = self.writers_of(path, &before)?;
        for it in earlier.iter().filter(|it| it.retained) {
            let Some(effect) = self.as_files(&self.store.effect(it.id)?)? else {
                continue;
            };
            let sides = self.files.sides(&effect)?.into_iter();
            let left = sides.into_iter().find(|side| side.path == *path);
            let left = left.and_then(|side| side.after).filter(Was::is_file);
            let Some(left) = left.filter(|left| !left.is_dress()) else {
                continue;
            };
            let number = self.files.left_inode(&effect, path)?;
            let is_that_one = number.zip(was.identity).is_some_and(|(one, other)| {
                (one.ino, one.size, one.mtime) == (other.ino, other.size, other.mtime)
            });
            if is_that_one && self.files.is_at_hand(&left)? || self.files.is_same(was, &left)? {
                return Ok(Some(left));
            }
        }
        Ok(None)
    }

    /// Lists the operations that wrote a path, or something below it, or a tree that it is in, newest first.
    fn writers_of(
        &self,
        path: &TargetPath,
        filter: &Filter,
    ) -> Result<Vec<Operation>, EngineError> {
        let at = Filter {
            at: Some(path.clone().into()),
            ..filter.clone()
        };
        let within = Filter {
            at: None,
            within: Some(path.clone().into()),
            ..filter.clone()
        };
        let mut all = self.store.operations(&at)?;
        all.extend(self.store.operations(&within)?);
        all.sort_by_key(|operation| std::cmp::Reverse(operation.lsn));
        all.dedup_by_key(|operation| operation.id);
        Ok(all)
    }

    /// Lists operations. Those of a path are also those that took or brought it with its directory, as one.
    pub(crate) fn log(&self, filter: &Filter) -> Result<Vec<Operation>, EngineError> {
        let path = filter.at.as_ref().filter(|at| at.parts().is_empty());
        let Some(path) = path.and_then(Key::file) else {
            return Ok(self.store.operations(filter)?);
        };
        let mut all = self.writers_of(path, filter)?;
        let at = Key::from(path.clone());
        let is_at = |operation: &Operation| {
            let mut keys = operation.targets.iter().map(|it| it.target.key());
            keys.any(|key| key.is_at_or_below(&at))
        };
        let mut unlike = HashSet::new();
        for operation in all.iter().filter(|it| !is_at(it)) {
            let is_told = operation.retained && operation.status != Status::Armed;
            if !is_told || !self.has_touched(operation.id, path)? {
                unlike.insert(operation.id);
            }
        }
        all.retain(|operation| !unlike.contains(&operation.id));
        all.truncate(filter.limit.unwrap_or(usize::MAX));
        Ok(all)
    }

    /// Says what a plan would change back, and what somebody else changed since.
    pub(crate) fn plan_diff(
        &self,
        works: &[Work<'_>],
        steps: &[PlannedStep],
    ) -> Result<PlanDiff, EngineError> {
        let mut names: BTreeMap<TargetPath, Name> = BTreeMap::new();
        for (work, step) in std::iter::zip(works, steps) {
            if self
                .driver_of(&work.effect)?
                .values(&work.effect)?
                .is_some()
            {
                continue;
            }
            for side in self.sides_of(&work.effect)? {
                let Some(planned) = meant(&step.targets, &side.path) else {
                    continue;
                };
                let name = names.entry(side.path).or_insert_with(|| Name {
                    // Newest first: the first step says what was left there.
                    left: side.after,
                    back: None,
                    state: planned.state.clone(),
                });
                name.back = side.before;
            }
        }
        let (mut back, mut theirs) = (Vec::new(), Vec::new());
        for (path, name) in names {
            let now = self.files.now(&path)?;
            let is_merged = name.state == TargetState::Merges;
            let is_drifted = matches!(
                name.state,
                TargetState::Conflict { .. } | TargetState::Overwritten { .. }
            );
            if is_drifted || is_merged {
                theirs.push(FileChange::new(
                    path.clone(),
                    name.left.clone(),
                    now.clone(),
                ));
            }
            let wanted = match (&name.left, &now, name.back) {
                (Some(left), Some(now), Some(back)) if is_merged => {
                    Some(self.merged(left, now, back)?)
                }
                (_, _, back) => back,
            };
            back.push(FileChange::new(path, now, wanted));
        }
        let mut diff = PlanDiff {
            back: self.compare(&back, None, false)?,
            theirs: self.compare(&theirs, None, false)?,
        };
        self.plan_diff_of_parts(works, steps, &mut diff)?;
        Ok(diff)
    }

    /// Says that an operation has not ended.
    pub(crate) fn unfinished(&self, operation: &Operation) -> EngineError {
        let id = operation.id;
        if self.store.is_alive(&operation.owner) {
            let owner = operation.owner.clone();
            return EngineError::AtWork { id, owner };
        }
        PlanError::Unfinished { id }.into()
    }

    /// Gives what a merge would make of a file.
    fn merged(&self, left: &Was, now: &Was, back: Was) -> Result<Was, EngineError> {
        let read = |was: &Was| self.files.read(was, MERGE_BYTES_MAX);
        let sides = (read(left)?, read(now)?, read(&back)?);
        let (Shown::Bytes(base), Shown::Bytes(ours), Shown::Bytes(theirs)) = sides else {
            return Ok(back);
        };
        Ok(match merge3(&base, &ours, &theirs) {
            Merge::Clean(merged) => now.clone().with_bytes(merged),
            Merge::Conflicting(_) | Merge::NotText => back,
        })
    }
}

/// What a plan does to one name.
struct Name {
    left: Option<Was>,
    back: Option<Was>,
    state: TargetState,
}

/// Finds the target that a name belongs to.
fn meant<'t>(targets: &'t [PlannedTarget], path: &TargetPath) -> Option<&'t PlannedTarget> {
    let name = Target::node(path.clone());
    let mut targets = targets.iter();
    targets.find(|planned| planned.target.overlap(&name).is_some())
}
