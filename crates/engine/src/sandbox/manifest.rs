//! What is kept of a sandbox: its checkpoints, the layers behind them, and a log of what was done in it.
//!
//! Checkpoints are a tree. Each knows the one that it was made above; the head is where the next command runs. A number is
//! never given twice, and a layer never changes, so that every checkpoint can be gone back to until the sandbox ends.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use backout_capture::overlay::{Means, Stack, Top};
use backout_files::Baseline;
use backout_model::{AgentId, OperationId, Owner, TargetPath, TaskId, Timestamp};
use serde::{Deserialize, Serialize};

use super::prune::SandboxKeep;
use super::view::{SandboxAct, SandboxVerdict};
use crate::trial::command_line;

/// The newest version of a manifest that this program writes and reads.
pub(super) const VERSION: u16 = 1;

/// Everything about a sandbox.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub(super) version: u16,
    pub(super) name: String,
    /// Shared by all that were forked off one another: their layers are in one place.
    pub(super) family: OperationId,
    pub(super) made: Timestamp,
    /// Who began it, and at which boot of the machine.
    pub(super) owner: Owner,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) agent: Option<AgentId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) task: Option<TaskId>,
    /// Whether root made the layers; else a user namespace.
    pub(super) is_roots: bool,
    /// The directory with the layers; none before one was found.
    pub(super) place: Option<TargetPath>,
    /// Where it could be: to be removed in the end.
    pub(super) places: Vec<TargetPath>,
    pub(super) home: TargetPath,
    pub(super) foreign: Vec<TargetPath>,
    pub(super) roots: Vec<TargetPath>,
    pub(super) points: Vec<TargetPath>,
    /// When it began, by the clock that stamps files.
    pub(super) began: i64,
    pub(super) has_no_network: bool,
    pub(super) checkpoints: Vec<Checkpoint>,
    pub(super) head: u64,
    pub(super) next: u64,
    /// Layers that were made of others, oldest first.
    pub(super) merges: Vec<Merge>,
    /// Layers that are not whole or not needed: whoever comes next removes them.
    pub(super) unfinished: Vec<OperationId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) running: Option<Running>,
    pub(super) log: Vec<Entry>,
    /// What was made real, with what was there before and after.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) applied: Vec<Applied>,
    /// What an application was to be made over that did not come to its end, or is on its way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) begun: Vec<Begun>,
    /// The checkpoint that was made real as a whole, if it was the last thing that was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) applied_head: Option<u64>,
    /// Which checkpoints stay when there are many.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) keep: SandboxKeep,
    /// Whether it is being removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_ended: bool,
}

/// A state that can be gone back to.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Checkpoint {
    pub(super) number: u64,
    pub(super) parent: Option<u64>,
    /// What the command wrote; none if that is nothing.
    pub(super) layer: Option<OperationId>,
    /// Tops of the layer as they were made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) tops: Vec<Top>,
    /// When its command began, by the clock that stamps files.
    pub(super) began: i64,
    /// The directory that the next command begins in.
    pub(super) directory: TargetPath,
    /// The checkpoint whose file has the variables; none if there are none of our own.
    pub(super) variables: Option<u64>,
    pub(super) at: Timestamp,
    /// Whether it is only known any more: what it changed is part of the next one, and nobody can go back to it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_folded: bool,
    /// Whether its command changed nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_empty: bool,
    /// Whether it was made real as a whole, by itself or with one after it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) was_real: bool,
}

/// A layer that stands for several, oldest first.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Merge {
    pub(super) of: Vec<OperationId>,
    pub(super) into: OperationId,
    pub(super) level: u32,
}

/// A command that runs, or whose owner died.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Running {
    pub(super) layer: OperationId,
    pub(super) command: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_line: bool,
    pub(super) owner: Owner,
    pub(super) at: Timestamp,
}

/// One line of the log.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) act: SandboxAct,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) command: Vec<String>,
    /// Whether the command is a line for a shell.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_line: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) verdict: Option<SandboxVerdict>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) code: Option<u8>,
    /// The checkpoint that it led to.
    pub(super) checkpoint: u64,
    pub(super) is_rolled_back: bool,
    pub(super) directory: TargetPath,
    pub(super) at: Timestamp,
    pub(super) took_ms: u64,
    pub(super) changes: u64,
}

/// A name that was made real.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Applied {
    pub(super) path: TargetPath,
    pub(super) before: Baseline,
    pub(super) after: Baseline,
}

/// A name that was about to be made real. If that was put back, it is as it was but for its change time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Begun {
    pub(super) path: TargetPath,
    pub(super) before: Baseline,
    pub(super) at: Timestamp,
}

impl Running {
    pub(super) fn said(&self) -> String {
        said(&self.command, self.is_line)
    }
}

impl Entry {
    pub(super) fn said(&self) -> String {
        said(&self.command, self.is_line)
    }
}

/// Says a command as it was typed; a line for a shell is not quoted.
pub(super) fn said(command: &[String], is_line: bool) -> String {
    if is_line {
        command.concat()
    } else {
        command_line(command)
    }
}

impl Manifest {
    pub(super) const fn means(&self) -> Means {
        if self.is_roots {
            Means::Root
        } else {
            Means::UserNamespace
        }
    }

    pub(super) fn checkpoint(&self, number: u64) -> Option<&Checkpoint> {
        self.checkpoints.iter().find(|it| it.number == number)
    }

    /// Gives the checkpoints from the first to one, oldest first.
    pub(super) fn chain(&self, number: u64) -> Vec<&Checkpoint> {
        let by_number: BTreeMap<u64, &Checkpoint> =
            self.checkpoints.iter().map(|it| (it.number, it)).collect();
        let mut chain = Vec::new();
        let mut at = by_number.get(&number);
        while let Some(checkpoint) = at {
            chain.push(*checkpoint);
            // A parent is always older, so this ends.
            let parent = checkpoint.parent.filter(|it| *it < checkpoint.number);
            at = parent.and_then(|parent| by_number.get(&parent));
        }
        chain.reverse();
        chain
    }

    /// Gives the layers behind a checkpoint, oldest first, with merged ones in place of those that they stand for.
    pub(super) fn layers(&self, number: u64) -> Vec<OperationId> {
        let chain = self.chain(number);
        let mut layers: Vec<OperationId> = chain.iter().filter_map(|it| it.layer).collect();
        for merge in &self.merges {
            let mut runs = layers.windows(merge.of.len());
            if let Some(start) = runs.position(|run| run == merge.of.as_slice()) {
                layers.splice(start..start + merge.of.len(), [merge.into]);
            }
        }
        layers
    }

    /// Lists every layer that it needs.
    pub(super) fn all_layers(&self) -> Vec<OperationId> {
        let own = self.checkpoints.iter().filter_map(|it| it.layer);
        own.chain(self.merges.iter().map(|it| it.into)).collect()
    }

    /// Gives the directory of a layer.
    pub(super) fn layer(&self, id: OperationId) -> Option<PathBuf> {
        let place = self.place.as_ref()?;
        Some(place.as_path().join(id.to_string()))
    }

    /// Says what a command at the head runs above.
    pub(super) fn stack(&self, layer: OperationId) -> Option<Stack> {
        let paths = |paths: &[TargetPath]| paths.iter().map(|it| it.as_path().into()).collect();
        let lowers = self.layers(self.head).into_iter().rev();
        Some(Stack {
            means: self.means(),
            foreign: paths(&self.foreign),
            home: self.home.as_path().into(),
            roots: paths(&self.roots),
            points: paths(&self.points),
            lowers: lowers.filter_map(|id| self.layer(id)).collect(),
            layer: self.layer(layer)?,
        })
    }

    /// Tells whether the head holds something that was not made real.
    pub(super) fn is_pending(&self) -> bool {
        let is_left = |it: &&Checkpoint| it.layer.is_some() && !it.is_empty && !it.was_real;
        self.applied_head != Some(self.head) && self.chain(self.head).iter().any(is_left)
    }

    /// Lists the checkpoints with changes that were not made real, also those that were set aside.
    pub(super) fn unapplied(&self) -> Vec<u64> {
        let real = self.applied_head.map(|head| self.chain(head));
        let real = real.unwrap_or_default();
        let is_real =
            |it: &Checkpoint| it.was_real || real.iter().any(|real| real.number == it.number);
        let is_left = |it: &&Checkpoint| {
            it.layer.is_some() && !it.is_empty && !is_real(it)
                || it.number == self.head && self.is_pending()
        };
        let left = self.checkpoints.iter().filter(is_left);
        left.map(|it| it.number).collect()
    }

    /// Forgets what was noted when an application of these names began.
    pub(super) fn forget_begun(&mut self, names: &[(TargetPath, Baseline)]) {
        let names: BTreeSet<&TargetPath> = names.iter().map(|(path, _)| path).collect();
        self.begun.retain(|it| !names.contains(&it.path));
    }

    /// Notes that the head was made real as a whole.
    pub(super) fn note_real(&mut self) {
        self.applied_head = Some(self.head);
        let real: Vec<u64> = self.chain(self.head).iter().map(|it| it.number).collect();
        for checkpoint in &mut self.checkpoints {
            checkpoint.was_real |= real.contains(&checkpoint.number);
        }
    }
}

/// Gives paths as targets; one that cannot be a target cannot be layered either, and is left out.
pub(super) fn targets(paths: &[impl AsRef<Path>]) -> Vec<TargetPath> {
    let target = |path: &dyn AsRef<Path>| TargetPath::new(path.as_ref()).ok();
    paths.iter().filter_map(|path| target(path)).collect()
}

fn is_default(keep: &SandboxKeep) -> bool {
    *keep == SandboxKeep::default()
}
