//! Letting checkpoints of a sandbox go, by number, age and size.
//!
//! - The head never goes, nor does the beginning. What the state at the head consists of stays: a checkpoint on the way to it
//!   is *folded*, its layer becomes a part of the next one that stays.
//! - A checkpoint that was set aside goes with its layer. If it holds work that was not applied, only by a word.
//! - A layer that a fork needs stays where it is.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use backout_capture::overlay;
use backout_crashpoint::crash_point;
use backout_model::OperationId;
use serde::{Deserialize, Serialize};

use super::exec::{changes_file, variables_file};
use super::manifest::{Checkpoint, Manifest};
use super::open::Open;
use crate::{Engine, EngineError, Reply};

/// How deep a layer is looked into to weigh it.
const DEPTH_MAX: usize = 1024;

/// Which checkpoints stay.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SandboxKeep {
    /// At most so many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Only those that are younger.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<i64>,
    /// As many as take no more than so many bytes together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

impl SandboxKeep {
    const fn is_everything(&self) -> bool {
        self.count.is_none() && self.age_ms.is_none() && self.bytes.is_none()
    }
}

/// Checkpoints that were let go.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SandboxPruned {
    /// The sandbox.
    pub name: String,
    /// Those on the way to the head: what they changed is part of the next one.
    pub folded: Vec<u64>,
    /// Those that were set aside, with what they changed.
    pub dropped: Vec<u64>,
    /// Those that would go, but hold work that was not applied.
    pub not_applied: Vec<u64>,
    /// What the layers took before.
    pub bytes_before: u64,
    /// What they take now.
    pub bytes_after: u64,
    /// Whether nothing was done.
    pub is_dry_run: bool,
}

impl Engine {
    pub(super) fn prune_sandbox(
        &self,
        name: Option<&str>,
        keep: &SandboxKeep,
        (is_discarding, is_dry_run): (bool, bool),
    ) -> Result<Reply, EngineError> {
        let _held = self.sandboxes().hold()?;
        let mut open = self.open_sandbox(name)?;
        let pruned = self.prune_open(&mut open, keep, (is_discarding, is_dry_run))?;
        Ok(Reply::SandboxPruned(Box::new(pruned)))
    }

    /// Lets go what the sandbox itself was begun with the word for; says so in a note.
    pub(super) fn prune_by_itself(&self, open: &mut Open) -> Result<Vec<String>, EngineError> {
        let keep = open.manifest.keep.clone();
        if keep.is_everything()
            || due(&open.manifest, &keep, self.now().0, 0).is_empty() && keep.bytes.is_none()
        {
            return Ok(Vec::new());
        }
        let _held = self.sandboxes().hold()?;
        let pruned = self.prune_open(open, &keep, (false, false))?;
        let all = |numbers: &[u64]| {
            let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
            numbers.join(", ")
        };
        let mut notes = Vec::new();
        if !pruned.folded.is_empty() {
            let gone = all(&pruned.folded);
            notes.push(format!(
                "checkpoints that cannot be gone back to any more: {gone}"
            ));
        }
        if !pruned.dropped.is_empty() {
            let gone = all(&pruned.dropped);
            notes.push(format!(
                "checkpoints that were set aside and let go: {gone}"
            ));
        }
        Ok(notes)
    }

    fn prune_open(
        &self,
        open: &mut Open,
        keep: &SandboxKeep,
        (is_discarding, is_dry_run): (bool, bool),
    ) -> Result<SandboxPruned, EngineError> {
        let bytes = weigh_all(&open.manifest);
        let due = due(&open.manifest, keep, self.now().0, bytes);
        let chain: BTreeSet<u64> = numbers(&open.manifest.chain(open.manifest.head));
        let unapplied: BTreeSet<u64> = open.manifest.unapplied().into_iter().collect();
        let (folded, aside): (Vec<u64>, Vec<u64>) =
            due.into_iter().partition(|it| chain.contains(it));
        let (not_applied, dropped): (Vec<u64>, Vec<u64>) = aside
            .into_iter()
            .partition(|it| unapplied.contains(it) && !is_discarding);
        // What a checkpoint that stays was made above stays with it.
        let above: BTreeSet<u64> = not_applied
            .iter()
            .flat_map(|number| numbers(&open.manifest.chain(*number)))
            .collect();
        let dropped: Vec<u64> = dropped
            .into_iter()
            .filter(|it| !above.contains(it))
            .collect();
        let folded: Vec<u64> = folded
            .into_iter()
            .filter(|it| !above.contains(it))
            .collect();
        let mut pruned = SandboxPruned {
            name: open.manifest.name.clone(),
            bytes_before: bytes,
            bytes_after: bytes,
            is_dry_run,
            folded,
            dropped,
            not_applied,
        };
        if is_dry_run || pruned.folded.is_empty() && pruned.dropped.is_empty() {
            return Ok(pruned);
        }
        self.fold(open, &pruned)?;
        pruned.bytes_after = weigh_all(&open.manifest);
        Ok(pruned)
    }

    /// Makes the layers anew that others go into, then forgets those.
    fn fold(&self, open: &mut Open, pruned: &SandboxPruned) -> Result<(), EngineError> {
        let before: BTreeSet<OperationId> = open.manifest.all_layers().into_iter().collect();
        let chain: Vec<Checkpoint> = open
            .manifest
            .chain(open.manifest.head)
            .into_iter()
            .cloned()
            .collect();
        let mut run: Vec<Checkpoint> = Vec::new();
        for checkpoint in chain {
            if pruned.folded.contains(&checkpoint.number) {
                run.push(checkpoint);
                continue;
            }
            let parts = std::mem::take(&mut run);
            if !parts.is_empty() {
                self.fold_into(open, &parts, &checkpoint)?;
            }
        }
        open.manifest
            .checkpoints
            .retain(|it| !pruned.dropped.contains(&it.number));
        let left: BTreeSet<OperationId> = open
            .manifest
            .checkpoints
            .iter()
            .filter_map(|it| it.layer)
            .collect();
        let mut known = left;
        open.manifest.merges.retain(|merge| {
            let is_known = merge.of.iter().all(|id| known.contains(id));
            if is_known {
                known.insert(merge.into);
            }
            is_known
        });
        let needed = self.needed_by_forks(&open.manifest)?;
        let gone = before
            .into_iter()
            .filter(|id| !known.contains(id) && !needed.contains(id));
        open.manifest.unfinished.extend(gone);
        self.save(open)?;
        crash_point("sandbox.pruned");
        open.sweep()?;
        self.save(open)?;
        for number in pruned.folded.iter().chain(&pruned.dropped) {
            // Who touched what first is still told by what was folded.
            self.sandboxes()
                .remove_file(&open.manifest.name, &variables_file(*number))?;
            if pruned.dropped.contains(number) {
                self.sandboxes()
                    .remove_file(&open.manifest.name, &changes_file(*number))?;
            }
        }
        Ok(())
    }

    fn fold_into(
        &self,
        open: &mut Open,
        parts: &[Checkpoint],
        into: &Checkpoint,
    ) -> Result<(), EngineError> {
        let all: Vec<&Checkpoint> = parts.iter().chain([into]).collect();
        let layers: Vec<OperationId> = all.iter().filter_map(|it| it.layer).collect();
        let folded: BTreeSet<u64> = parts.iter().map(|it| it.number).collect();
        let merged = if layers.len() > 1 || into.layer.is_none() && !layers.is_empty() {
            let id = self.next_id();
            open.manifest.unfinished.push(id);
            self.save(open)?;
            crash_point("sandbox.folding");
            let paths = layers
                .iter()
                .rev()
                .filter_map(|it| open.manifest.layer(*it));
            let paths: Vec<PathBuf> = paths.collect();
            if let Some(target) = open.manifest.layer(id) {
                let (means, points) = (open.manifest.means(), open.manifest.points.len());
                overlay::merge(means, &paths, points, &target)?;
            }
            open.manifest.unfinished.retain(|it| *it != id);
            Some(id)
        } else {
            into.layer
        };
        let mut tops = Vec::new();
        for (number, top) in all.iter().flat_map(|it| &it.tops) {
            if !tops.iter().any(|(known, _)| known == number) {
                tops.push((*number, *top));
            }
        }
        for checkpoint in &mut open.manifest.checkpoints {
            if folded.contains(&checkpoint.number) {
                checkpoint.is_folded = true;
                (checkpoint.layer, checkpoint.variables) = (None, None);
                checkpoint.tops.clear();
            } else if checkpoint.number == into.number {
                checkpoint.layer = merged;
                checkpoint.tops.clone_from(&tops);
            }
        }
        Ok(())
    }

    /// Lists the layers that other sandboxes of the family need.
    fn needed_by_forks(&self, manifest: &Manifest) -> Result<BTreeSet<OperationId>, EngineError> {
        let mut needed = BTreeSet::new();
        for name in self.sandbox_names()? {
            let other = self.read_sandbox(&name)?;
            if name != manifest.name && other.family == manifest.family {
                needed.extend(other.all_layers());
                needed.extend(other.running.map(|it| it.layer));
            }
        }
        Ok(needed)
    }
}

fn numbers(chain: &[&Checkpoint]) -> BTreeSet<u64> {
    chain.iter().map(|it| it.number).collect()
}

/// Chooses what may go, oldest first.
fn due(manifest: &Manifest, keep: &SandboxKeep, now: i64, bytes: u64) -> Vec<u64> {
    let parents: BTreeSet<u64> = manifest
        .checkpoints
        .iter()
        .filter_map(|it| it.parent)
        .collect();
    let chain = numbers(&manifest.chain(manifest.head));
    // Of what was set aside only the ends can go: others stand above the rest. Whose variables others have stays.
    let used: BTreeSet<u64> = manifest
        .checkpoints
        .iter()
        .filter(|it| it.variables != Some(it.number))
        .filter_map(|it| it.variables)
        .collect();
    let may_go = |it: &&Checkpoint| {
        let is_end = !parents.contains(&it.number);
        it.number != 0
            && it.number != manifest.head
            && !it.is_folded
            && !used.contains(&it.number)
            && (chain.contains(&it.number) || is_end)
    };
    let all: Vec<&Checkpoint> = manifest.checkpoints.iter().filter(may_go).collect();
    let present = manifest
        .checkpoints
        .iter()
        .filter(|it| !it.is_folded && it.number != 0)
        .count();
    let mut due = BTreeSet::new();
    if let Some(count) = keep.count {
        let over = present.saturating_sub(usize::try_from(count).unwrap_or(usize::MAX));
        due.extend(all.iter().take(over).map(|it| it.number));
    }
    if let Some(age) = keep.age_ms {
        let is_old = |it: &&&Checkpoint| now.saturating_sub(it.at.0) >= age;
        due.extend(all.iter().filter(is_old).map(|it| it.number));
    }
    if let Some(most) = keep.bytes {
        let mut left = bytes;
        for it in &all {
            if left <= most {
                break;
            }
            let own = it.layer.and_then(|id| manifest.layer(id));
            left = left.saturating_sub(own.map_or(0, |path| weigh(&path, 0)));
            due.insert(it.number);
        }
    }
    due.into_iter().collect()
}

/// Tells how much room the layers take.
fn weigh_all(manifest: &Manifest) -> u64 {
    let layers = manifest.all_layers().into_iter();
    let paths = layers.filter_map(|id| manifest.layer(id));
    paths.map(|path| weigh(&path, 0)).sum()
}

/// Tells how much room something takes; a file of several names is divided by them.
fn weigh(path: &Path, depth: usize) -> u64 {
    let Ok(found) = path.symlink_metadata() else {
        return 0;
    };
    let own = found.blocks().saturating_mul(512);
    if !found.is_dir() {
        return own / found.nlink().max(1);
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let entries = entries.filter(|_| depth < DEPTH_MAX);
    own + entries
        .map(|entry| weigh(&entry.path(), depth + 1))
        .sum::<u64>()
}
