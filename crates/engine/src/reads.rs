//! Observed reads: which files a command read as another operation had left them, and whether an undo changes them.
//!
//! A read is a dependency that *may* count:
//!
//! - It is noted when the command ends, if the version that was read is the one that the operation wrote, and the operation
//!   changed bytes.
//! - It counts in a plan if the file has other bytes, or none, once everything in the plan is undone. A file that went
//!   there and back is the same to whoever read it. Where that cannot be told, it counts.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use backout_files::inode::Identity;
use backout_files::{FileChange, FileRead, Settled, Was};
use backout_model::{
    Dependency, DependencyReason, Event, History, OperationId, ReadFrom, Target, TargetPath,
    UndoPlan,
};

use crate::{Engine, EngineError};

/// What an effect did to files, by their names; none if nobody can tell.
type Sides = Option<BTreeMap<TargetPath, FileChange>>;

/// The reads that operations of a history noted, and that leave everything as it was read until a plan shows that they do not.
#[derive(Debug, Default)]
pub(crate) struct MayReads {
    noted: BTreeMap<(OperationId, OperationId), Vec<TargetPath>>,
    sides: BTreeMap<OperationId, Sides>,
}

impl MayReads {
    /// Names the edges that do not count so far: who read, and what had written it.
    pub(crate) fn edges(&self) -> BTreeSet<(OperationId, OperationId)> {
        self.noted.keys().copied().collect()
    }
}

impl Engine {
    /// Finds what a command read as other operations had left it.
    pub(crate) fn reads_of(&self, settled: &Settled) -> Result<Vec<ReadFrom>, EngineError> {
        let mut sides: BTreeMap<OperationId, Sides> = BTreeMap::new();
        let own: BTreeSet<_> = settled.targets.iter().filter_map(Target::file).collect();
        let mut found = Vec::new();
        for read in &settled.reads {
            let path = &read.path;
            for edge in self.store.dependencies(&[Target::node(path.clone())])? {
                let Some(is_named) = is_of_file(edge.reason) else {
                    continue;
                };
                let known = match sides.entry(edge.on) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(slot) => slot.insert(self.sides_by_name(edge.on)?),
                };
                let is_read = match known.as_ref().map(|sides| sides.get(path)) {
                    Some(Some(side)) => {
                        changes_bytes(side)
                            && (own.contains(path) || self.is_version(read, side)?)
                    }
                    Some(None) | None => is_named,
                };
                if is_read {
                    let (on, path) = (edge.on, path.clone());
                    found.push(ReadFrom { on, path });
                }
            }
        }
        Ok(found)
    }

    /// Tells whether a file was read as an operation had left it. Where that cannot be told, it was.
    fn is_version(&self, read: &FileRead, side: &FileChange) -> Result<bool, EngineError> {
        let Some(after) = &side.after else {
            return Ok(false);
        };
        let Some(seen) = &read.identity else {
            return Ok(true);
        };
        if after
            .identity
            .as_ref()
            .is_some_and(|left| is_one(left, seen))
        {
            return Ok(true);
        }
        let is_known = after.identity.is_some() || after.digest().is_some();
        let now = self.files.now(&read.path)?;
        let same = now.filter(|now| now.identity.as_ref().is_some_and(|now| is_one(now, seen)));
        match same {
            Some(now) if is_known => Ok(self.files.is_same(after, &now)?),
            Some(_) | None => Ok(true),
        }
    }

    /// Reads what operations of a history noted about their reads.
    pub(crate) fn may_reads(&self, history: &History) -> Result<MayReads, EngineError> {
        let mut reads = MayReads::default();
        for operation in history.iter() {
            let is_read = |edge: &Dependency| edge.reason == DependencyReason::Read;
            if !operation.depends_on.iter().any(is_read) {
                continue;
            }
            for record in self.store.records_of(operation.id)? {
                if let Event::Captured(captured) = record.event {
                    for ReadFrom { on, path } in captured.reads {
                        let noted = reads.noted.entry((operation.id, on));
                        noted.or_default().push(path);
                    }
                }
            }
        }
        Ok(reads)
    }

    /// Counts the reads that a plan changes; those that are left read the same afterwards. Tells whether there were any.
    pub(crate) fn count_reads(
        &self,
        reads: &mut MayReads,
        plan: &UndoPlan,
    ) -> Result<bool, EngineError> {
        let goes: BTreeSet<OperationId> = plan.steps.iter().map(|step| step.id).collect();
        let withs = plan.steps.iter().map(|step| step.with);
        let goes_with: BTreeSet<OperationId> = goes.iter().copied().chain(withs).collect();
        let asked: Vec<_> = reads
            .noted
            .iter()
            .filter(|((by, on), _)| goes_with.contains(on) && !goes.contains(by))
            .map(|(edge, paths)| (*edge, paths.clone()))
            .collect();
        let mut is_any = false;
        for (edge, paths) in asked {
            let mut is_changed = false;
            for path in &paths {
                is_changed |= self.is_other_after(&mut reads.sides, plan, (edge.1, path))?;
            }
            if is_changed {
                reads.noted.remove(&edge);
                is_any = true;
            }
        }
        Ok(is_any)
    }

    /// Tells whether a file that was read as an operation left it is another one after a plan. Where that cannot be told, it
    /// is.
    fn is_other_after(
        &self,
        known: &mut BTreeMap<OperationId, Sides>,
        plan: &UndoPlan,
        (on, path): (OperationId, &TargetPath),
    ) -> Result<bool, EngineError> {
        for id in plan.steps.iter().map(|step| step.with).chain([on]) {
            if let Entry::Vacant(slot) = known.entry(id) {
                slot.insert(self.sides_by_name(id)?);
            }
        }
        let side_of = |id: &OperationId| known.get(id)?.as_ref().map(|sides| sides.get(path));
        let mut becomes: Option<&FileChange> = None;
        for step in &plan.steps {
            let here = Target::node(path.clone());
            if !step.targets.iter().any(|it| it.overlap(&here).is_some()) {
                continue;
            }
            match side_of(&step.with) {
                // Nobody can tell what comes back.
                None => return Ok(true),
                Some(Some(side)) if changes_bytes(side) => becomes = Some(side),
                Some(Some(_) | None) => {}
            }
        }
        let Some(side) = becomes else {
            // It is not among what goes of the operation.
            return Ok(side_of(&on).is_none());
        };
        let read = side_of(&on).flatten().and_then(|side| side.after.as_ref());
        match (&side.before, read) {
            (Some(before), Some(read)) if has_same_size(before, read) => {
                Ok(!self.files.is_same(read, before)?)
            }
            (_, _) => Ok(true),
        }
    }

    fn sides_by_name(&self, id: OperationId) -> Result<Sides, EngineError> {
        let effect = self.store.effect(id)?;
        let Ok(Some(effect)) = self.as_files(&effect) else {
            return Ok(None);
        };
        let sides = self.files.sides_with_moved(&effect)?.into_iter();
        Ok(Some(sides.map(|side| (side.path.clone(), side)).collect()))
    }
}

/// Tells whether an earlier operation may have written a file that was read, and if so, whether by its name: then it counts
/// also where nobody can say what the operation did.
const fn is_of_file(reason: DependencyReason) -> Option<bool> {
    match reason {
        DependencyReason::SameTarget | DependencyReason::WholeOfTarget => Some(true),
        DependencyReason::InsideDirectory => Some(false),
        DependencyReason::HoldsTarget
        | DependencyReason::PartOfTarget
        | DependencyReason::Declared
        | DependencyReason::Copied
        | DependencyReason::Within
        | DependencyReason::Read => None,
    }
}

/// Tells whether an effect gave a name other bytes. Where that cannot be told, it did.
fn changes_bytes(side: &FileChange) -> bool {
    let digest = |was: &Option<Was>| was.as_ref().and_then(Was::digest);
    let is_dress = |was: &Option<Was>| was.as_ref().is_some_and(Was::is_dress);
    match (digest(&side.before), digest(&side.after)) {
        (Some(before), Some(after)) => before != after,
        (_, _) => !(is_dress(&side.before) && is_dress(&side.after)),
    }
}

fn has_same_size(one: &Was, other: &Was) -> bool {
    one.size().is_none() || other.size().is_none() || one.size() == other.size()
}

/// Tells whether two looks are at the same file, unchanged.
fn is_one(one: &Identity, other: &Identity) -> bool {
    (one.ino, one.size, one.mtime) == (other.ino, other.size, other.mtime)
}
