//! Which checkpoints have their files, and which of them may go.
//!
//! A checkpoint loses its files if a later one took its name over, if it is older than images are kept, if its directories have
//! enough newer ones, or if the store is over its cap. The newest of its directories never goes, nor does one within the time
//! that is guaranteed.

use std::collections::{BTreeMap, BTreeSet};

use backout_crashpoint::crash_point;
use backout_model::{
    CheckpointFiles, CheckpointName, CheckpointRoot, Digest, ExpiryReason, OperationId, TargetPath,
    Timestamp,
};
use backout_storage::{GcRequest, Workspaces};
use serde::{Deserialize, Serialize};

use super::kept::Kept;
use super::{LetGo, WorkspaceError};
use crate::{Engine, EngineError};

/// The newest version of the list that this program writes and reads.
const VERSION: u16 = 1;

/// All checkpoints that have their files, oldest first.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Held {
    version: u16,
    checkpoints: Vec<One>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct One {
    name: CheckpointName,
    id: OperationId,
    roots: Vec<CheckpointRoot>,
    at: Timestamp,
    /// What it took when it was made.
    bytes: u64,
}

impl Held {
    pub(super) fn read(spaces: &Workspaces) -> Result<Self, EngineError> {
        let Some(bytes) = spaces.read_held()? else {
            return Ok(Self {
                version: VERSION,
                checkpoints: Vec::new(),
            });
        };
        let unreadable = |why: String| WorkspaceError::Unreadable { why };
        let held: Self =
            serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string()))?;
        if held.version > VERSION {
            let why = format!(
                "it was written by a newer program (version {})",
                held.version
            );
            return Err(unreadable(why).into());
        }
        Ok(held)
    }

    pub(super) fn write(&self, spaces: &Workspaces) -> Result<(), EngineError> {
        let bytes = serde_json::to_vec(self).map_err(|source| EngineError::Io {
            action: "write down which checkpoints there are",
            source: source.into(),
        })?;
        Ok(spaces.write_held(&bytes)?)
    }

    pub(super) fn add(
        &mut self,
        name: CheckpointName,
        files: &CheckpointFiles,
        at: Timestamp,
        bytes: u64,
    ) {
        self.checkpoints.push(One {
            name,
            id: files.id,
            roots: files.roots.clone(),
            at,
            bytes,
        });
    }

    pub(super) fn has(&self, files: &CheckpointFiles) -> bool {
        self.checkpoints.iter().any(|one| one.id == files.id)
    }

    pub(super) fn remove(&mut self, id: OperationId) {
        self.checkpoints.retain(|one| one.id != id);
    }

    pub(super) fn trees(&self) -> impl Iterator<Item = &CheckpointRoot> {
        self.checkpoints.iter().flat_map(|one| &one.roots)
    }
}

impl Engine {
    /// Lets the files of checkpoints go that are past their retention; tells which.
    pub(crate) fn collect_workspaces(&self, is_dry_run: bool) -> Result<Vec<LetGo>, EngineError> {
        let spaces = self.workspaces();
        if spaces.is_absent() {
            return Ok(Vec::new());
        }
        let _alone = spaces.hold(true)?;
        if !is_dry_run {
            self.sweep_backs(&spaces);
        }
        let kept = self.open_kept(&spaces)?;
        self.let_go(&spaces, &kept, is_dry_run)
    }

    pub(super) fn let_go(
        &self,
        spaces: &Workspaces,
        kept: &Kept,
        is_dry_run: bool,
    ) -> Result<Vec<LetGo>, EngineError> {
        let mut held = Held::read(spaces)?;
        let due = self.due(&held, kept.bytes()?)?;
        let gone = due.iter().map(|(one, why)| LetGo {
            name: one.name.clone(),
            at: one.at,
            why: (*why).to_owned(),
        });
        let gone: Vec<LetGo> = gone.collect();
        if !is_dry_run {
            for (one, _) in &due {
                held.remove(one.id);
            }
            if !due.is_empty() {
                held.write(spaces)?;
            }
            self.sweep_kept(spaces, kept, &held)?;
        }
        Ok(gone)
    }

    /// Chooses what may go.
    fn due(&self, held: &Held, stored: u64) -> Result<Vec<(One, &'static str)>, EngineError> {
        let retention = &self.settings.retention;
        let now = self.now();
        let mut newer: BTreeMap<Vec<&TargetPath>, usize> = BTreeMap::new();
        let (mut due, mut left, mut left_bytes) = (Vec::new(), Vec::new(), stored);
        for one in held.checkpoints.iter().rev() {
            let marked = self.store.checkpoint(&one.name)?;
            let is_marked = marked
                .and_then(|it| it.files)
                .is_some_and(|it| it.id == one.id);
            let count = newer
                .entry(one.roots.iter().map(|it| &it.path).collect())
                .or_default();
            let is_newest = *count == 0;
            *count += usize::from(is_marked);
            let age = now.millis_since(one.at);
            let why = if !is_marked {
                Some("a later checkpoint took its name over")
            } else if is_newest || age < retention.committed_ms_min {
                None
            } else if age >= retention.committed_ms_max {
                Some(ExpiryReason::TooOld.as_str())
            } else if *count > retention.versions_per_file_max {
                Some("its directories have enough newer checkpoints")
            } else {
                left.push(one);
                None
            };
            if let Some(why) = why {
                left_bytes = left_bytes.saturating_sub(one.bytes);
                due.push((one.clone(), why));
            }
        }
        while left_bytes > retention.store_bytes_max {
            let Some(oldest) = left.pop() else { break };
            left_bytes = left_bytes.saturating_sub(oldest.bytes);
            due.push((oldest.clone(), ExpiryReason::OverCap.as_str()));
        }
        Ok(due)
    }

    /// Removes the files and trees that no checkpoint needs. What the next walk compares with stays.
    pub(super) fn sweep_kept(
        &self,
        spaces: &Workspaces,
        kept: &Kept,
        held: &Held,
    ) -> Result<(), EngineError> {
        let mut all: BTreeSet<Digest> = BTreeSet::new();
        for root in held.trees() {
            self.directories.needed(kept, &root.tree, &mut all)?;
        }
        for index in spaces.indexes() {
            // It may speak of trees that go now.
            let tree = self.directories.index_tree(&index);
            if tree.is_none_or(|tree| !all.contains(&tree)) {
                spaces.remove_index(&index)?;
            }
        }
        crash_point("workspace.forgetting");
        kept.let_go_of_others(&all)?;
        let request = GcRequest {
            retention: self.settings.retention.clone(),
            is_dry_run: false,
            now: self.now(),
        };
        kept.store.gc(&request, &mut |_, _| {})?;
        Ok(())
    }
}
