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
        let is_due = || {
            let stays = open.manifest.unapplied().into_iter().collect();
            keep.bytes.is_some()
                || !due(&open.manifest, &keep, (self.now().0, 0), &stays).is_empty()
        };
        if keep.is_everything() || !is_due() {
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
        let mut stays = BTreeSet::new();
        if !is_discarding {
            stays.extend(open.manifest.unapplied());
        }
        let due = due(&open.manifest, keep, (self.now().0, bytes), &stays);
        let chain: BTreeSet<u64> = numbers(&open.manifest.chain(open.manifest.head));
        let (folded, aside): (Vec<u64>, Vec<u64>) =
            due.into_iter().partition(|it| chain.contains(it));
        let (not_applied, dropped): (Vec<u64>, Vec<u64>) =
            aside.into_iter().partition(|it| stays.contains(it));
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
    pub(super) fn needed_by_forks(
        &self,
        manifest: &Manifest,
    ) -> Result<BTreeSet<OperationId>, EngineError> {
        let mut needed = BTreeSet::new();
        for other in self.others_of_the_family(manifest)? {
            needed.extend(other.all_layers());
            needed.extend(other.running.map(|it| it.layer));
        }
        Ok(needed)
    }
}

fn numbers(chain: &[&Checkpoint]) -> BTreeSet<u64> {
    chain.iter().map(|it| it.number).collect()
}

/// Tells which checkpoints are too many, too old or too much, oldest first. What was set aside above one goes before it: it
/// stands on it. Those that `stays` holds back are named, and hold back what they stand on.
fn due(
    manifest: &Manifest,
    keep: &SandboxKeep,
    (now, bytes): (i64, u64),
    stays: &BTreeSet<u64>,
) -> Vec<u64> {
    let chain = numbers(&manifest.chain(manifest.head));
    let aside = manifest.checkpoints.iter();
    let aside: Vec<(&Checkpoint, BTreeSet<u64>)> = aside
        .filter(|it| !chain.contains(&it.number))
        .map(|it| (it, numbers(&manifest.chain(it.number))))
        .collect();
    let mut choice = Choice {
        manifest,
        keep,
        now,
        left: bytes,
        gone: BTreeSet::new(),
    };
    let mut named = BTreeSet::new();
    for it in &manifest.checkpoints {
        let may_go = it.number != 0 && it.number != manifest.head && !it.is_folded;
        if !may_go || choice.gone.contains(&it.number) || !choice.is_due(it) {
            continue;
        }
        let on_it = aside.iter().filter(|(_, below)| below.contains(&it.number));
        let on_it = on_it.map(|(above, _)| *above);
        let on_it: Vec<&Checkpoint> = on_it
            .filter(|above| !choice.gone.contains(&above.number))
            .collect();
        let held = on_it.iter().map(|above| above.number);
        let held: Vec<u64> = held.filter(|above| stays.contains(above)).collect();
        if !held.is_empty() {
            named.extend(held);
        } else if choice.is_over() || on_it.iter().all(|above| choice.is_old(above)) {
            for above in on_it {
                choice.goes(above);
            }
            // With that it may be enough.
            if chain.contains(&it.number) && choice.is_due(it) && choice.is_free(it) {
                choice.goes(it);
            }
        }
    }
    named.union(&choice.gone).copied().collect()
}

/// What goes, as far as that is chosen.
struct Choice<'m> {
    manifest: &'m Manifest,
    keep: &'m SandboxKeep,
    now: i64,
    /// How many bytes stay.
    left: u64,
    gone: BTreeSet<u64>,
}

impl Choice<'_> {
    /// Tells whether what stays is still too many or too much.
    fn is_over(&self) -> bool {
        let present = self.manifest.checkpoints.iter();
        let present = present
            .filter(|it| !it.is_folded && it.number != 0 && !self.gone.contains(&it.number))
            .count() as u64;
        self.keep.count.is_some_and(|most| present > most)
            || self.keep.bytes.is_some_and(|most| self.left > most)
    }

    fn is_old(&self, it: &Checkpoint) -> bool {
        let age = self.now.saturating_sub(it.at.0);
        self.keep.age_ms.is_some_and(|most| age >= most)
    }

    fn is_due(&self, it: &Checkpoint) -> bool {
        self.is_over() || self.is_old(it)
    }

    /// Tells whether nobody who stays has its variables.
    fn is_free(&self, it: &Checkpoint) -> bool {
        !self.manifest.checkpoints.iter().any(|other| {
            let is_other = other.number != it.number && !self.gone.contains(&other.number);
            is_other && other.variables == Some(it.number)
        })
    }

    fn goes(&mut self, it: &Checkpoint) {
        if self.keep.bytes.is_some() {
            let layer = it.layer.and_then(|id| self.manifest.layer(id));
            let bytes = layer.map_or(0, |path| weigh(&path, 0));
            self.left = self.left.saturating_sub(bytes);
        }
        self.gone.insert(it.number);
    }
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
