//! Checkpoints that keep directories: all that is in them, and the way back to it.
//!
//! ```text
//! checkpoint --roots ─► walk ─► files and trees ─► held ─► mark in the journal
//! rollback --to      ─► walk ─► what differs    ─► one write of the file driver, undone like any other
//! ```
//!
//! - The files are in a store of their own, so that they never push an image of an operation out.
//! - Which checkpoints have their files is in `held.json`; only `gc`, a drop and a later mark of the same name let them go.
//! - Going back is a write: gates look at it, it is armed, `undo` brings back what it overwrote.
//!
//! Design: `docs/design/workspace.md`. Not here: walking and comparing (behind the port `Directories`).

mod back;
mod error;
mod held;
mod kept;
mod view;
mod writers;

use std::collections::BTreeSet;

use backout_crashpoint::crash_point;
use backout_files::index_name;
use backout_model::{CheckpointFiles, CheckpointName, CheckpointRoot, TargetPath};
use backout_storage::Workspaces;

use crate::{Engine, EngineError, Finding, MarkRequest, Reply};

pub use back::WorkspaceReturn;
pub use error::WorkspaceError;
use held::Held;
use kept::Kept;
pub use view::{LetGo, NotKept, WorkspaceBy, WorkspaceChange, WorkspaceKept, WorkspacePlan};

impl Engine {
    pub(super) fn workspaces(&self) -> Workspaces {
        Workspaces::of(self.store.directory())
    }

    /// Keeps all that is in some directories, and marks this point of the journal.
    pub(crate) fn keep_workspace(
        &self,
        name: Option<CheckpointName>,
        state: serde_json::Value,
        roots: &[TargetPath],
        request: Option<&MarkRequest>,
    ) -> Result<WorkspaceKept, EngineError> {
        let name = self.name_of_mark(name)?;
        let spaces = self.workspaces();
        let _alone = spaces.hold(true)?;
        self.sweep_backs(&spaces);
        let mut kept = self.open_kept(&spaces)?;
        let before = kept.bytes()?;
        let mut view = WorkspaceKept::default();
        let (mut walks, mut found) = (Vec::new(), Vec::new());
        for root in apart(roots) {
            let index = spaces.index(&index_name(&root));
            let walked = self.directories.walk(&root, &mut kept, &index)?;
            view.add(&walked);
            found.push(CheckpointRoot {
                path: root,
                tree: walked.tree,
            });
            walks.push(walked);
        }
        kept.settle()?;
        crash_point("workspace.stored");
        for walked in &mut walks {
            // Without an index the next walk reads everything, and that is all.
            let _slower = walked.keep_index();
        }
        crash_point("workspace.indexed");
        let files = CheckpointFiles {
            id: self.next_id(),
            roots: found,
        };
        let mut held = Held::read(&spaces)?;
        view.stored_bytes = kept.bytes()?.saturating_sub(before);
        held.add(name.clone(), &files, self.now(), view.stored_bytes);
        held.write(&spaces)?;
        crash_point("workspace.held");
        let checkpoint = self.mark_with(name, state, Some(files), request)?;
        view.checkpoint = Some(checkpoint);
        let is_over = kept.bytes()? > self.settings.retention.store_bytes_max;
        if is_over {
            let gone = self.let_go(&spaces, &kept, false)?;
            view.let_go = gone;
        }
        Ok(view)
    }

    pub(crate) fn drop_workspace(&self, name: &CheckpointName) -> Result<Reply, EngineError> {
        let spaces = self.workspaces();
        let files = self.files_kept_by(name)?;
        let _alone = spaces.hold(true)?;
        let mut held = Held::read(&spaces)?;
        if !held.has(&files) {
            return Err(WorkspaceError::LetGo { name: name.clone() }.into());
        }
        let kept = self.open_kept(&spaces)?;
        let before = kept.bytes()?;
        held.remove(files.id);
        held.write(&spaces)?;
        crash_point("workspace.dropped");
        self.sweep_kept(&spaces, &kept, &held)?;
        let bytes = before.saturating_sub(kept.bytes()?);
        let name = name.clone();
        Ok(Reply::WorkspaceDropped { name, bytes })
    }

    /// Reads all that checkpoints keep; nothing to say if they keep nothing.
    pub(crate) fn check_workspaces(&self) -> Result<Option<Finding>, EngineError> {
        let spaces = self.workspaces();
        if spaces.is_absent() {
            return Ok(None);
        }
        let _shared = spaces.hold(false)?;
        let kept = self.open_kept(&spaces)?;
        let (mut all, mut wrong) = (BTreeSet::new(), 0_usize);
        for root in Held::read(&spaces)?.trees() {
            // What a tree that cannot be read has in it nobody can tell.
            let read = self.directories.needed(&kept, &root.tree, &mut all);
            wrong += usize::from(read.is_err());
        }
        for digest in &all {
            wrong += usize::from(!kept.is_sound(digest));
        }
        let is_good = wrong == 0;
        let advice = "make a new checkpoint: those that need them cannot be gone back to whole";
        Ok(Some(Finding {
            check: "checkpoints".to_owned(),
            is_good,
            detail: if is_good {
                format!("{} contents that checkpoints keep are sound", all.len())
            } else {
                format!("{wrong} contents that checkpoints keep are damaged")
            },
            advice: (!is_good).then(|| advice.to_owned()),
        }))
    }

    /// Finds what a checkpoint keeps.
    fn files_kept_by(&self, name: &CheckpointName) -> Result<CheckpointFiles, EngineError> {
        let found = self.store.checkpoint(name)?;
        let found = found.ok_or_else(|| EngineError::NoCheckpoint { name: name.clone() })?;
        let none = || WorkspaceError::LetGo { name: name.clone() };
        Ok(found.files.ok_or_else(none)?)
    }

    fn open_kept(&self, spaces: &Workspaces) -> Result<Kept, EngineError> {
        Kept::open(&spaces.store(), self.clock())
    }
}

/// Leaves out directories that lie in others.
fn apart(roots: &[TargetPath]) -> Vec<TargetPath> {
    let mut all: Vec<TargetPath> = roots.to_vec();
    all.sort();
    all.dedup();
    let is_inside = |root: &TargetPath| roots.iter().any(|other| root.is_below(other));
    all.retain(|root| !is_inside(root));
    all
}
