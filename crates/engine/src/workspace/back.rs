//! Going back to a checkpoint that keeps directories: what differs is found, shown, and made as it was by one write.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use backout_crashpoint::crash_point;
use backout_files::inode::Kind;
use backout_files::{Difference, Differences, KeptRoot, What, index_name};
use backout_model::ports::{Reason, Ruling};
use backout_model::{
    Checkpoint, CheckpointFiles, CheckpointName, Digest, Operation, OperationId, Owner, Target,
    TargetPath,
};
use backout_storage::{Filter, Workspaces};
use serde::{Deserialize, Serialize};

use super::held::Held;
use super::kept::Kept;
use super::{WorkspaceChange, WorkspaceError, WorkspacePlan};
use crate::lifecycle::with_causes;
use crate::{Engine, EngineError, Finished, GateError, Reply, Selection, TrialWhat};

/// How many names that are not as they were are told after all was done.
const LEFT_TOLD_MAX: usize = 20;

/// A way back.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WorkspaceReturn {
    /// To which directories go back.
    pub name: CheckpointName,
    /// Which of the names.
    pub selection: Selection,
    /// Whether what other agents wrote since may go.
    pub others: bool,
    /// Only show what would change.
    pub is_dry_run: bool,
}

/// Who waits for files that were written out.
#[derive(Debug, Serialize, Deserialize)]
struct Waiting {
    owner: Owner,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    proposal: Option<OperationId>,
}

impl Engine {
    pub(crate) fn return_to_workspace(&self, back: &WorkspaceReturn) -> Result<Reply, EngineError> {
        let name = &back.name;
        if !back.is_dry_run {
            // What the dead left becomes operations, which have an agent.
            self.recover_the_dead()?;
        }
        let found = self.store.checkpoint(name)?;
        let missing = || EngineError::NoCheckpoint { name: name.clone() };
        let checkpoint = found.ok_or_else(missing)?;
        let files = self.files_kept_by(name)?;
        let spaces = self.workspaces();
        let _shared = spaces.hold(false)?;
        if !Held::read(&spaces)?.has(&files) {
            return Err(WorkspaceError::LetGo { name: name.clone() }.into());
        }
        let kept = self.open_kept(&spaces)?;
        let found = self.differences(&spaces, &kept, &files, !back.selection.is_everything())?;
        let chosen = chosen(&back.selection, &found.found);
        if chosen.is_empty() && !back.selection.is_everything() {
            return Err(WorkspaceError::Nothing { name: name.clone() }.into());
        }
        if let Some(path) = held(&back.selection, &chosen) {
            let name = name.clone();
            return Err(WorkspaceError::Held { name, path }.into());
        }
        if !back.is_dry_run {
            // What commands at work have done there so far becomes a part of them that is in the journal.
            let names = chosen.iter().map(|it| Target::tree(it.path.clone()));
            let _checked = self.tell_running(&names.collect::<Vec<_>>())?;
        }
        let mut plan = self.plan_of(&checkpoint, &files, (&chosen, &found.stay), back)?;
        if back.is_dry_run {
            if !chosen.is_empty() {
                plan.refused = self.foresee_return(&spaces, &kept, &files, &chosen)?;
            }
            return Ok(Reply::WorkspacePlan(Box::new(plan)));
        }
        if !plan.others.is_empty() {
            let (name, operations) = (name.clone(), plan.others);
            return Err(WorkspaceError::Others { name, operations }.into());
        }
        let summary = summary(&checkpoint, &files, (back, &chosen));
        if chosen.is_empty() {
            let stays = [stays(&found.stay), one_file(&found)].concat();
            return Ok(Reply::Finished(Finished::nothing(summary, stays)));
        }
        let mut finished = self.bring_back(&spaces, &kept, &files, (&summary, &chosen))?;
        finished.notes.extend(stays(&found.stay));
        self.look_after_return(&spaces, &kept, (&files, back), &mut finished)?;
        Ok(Reply::Finished(finished))
    }

    fn differences(
        &self,
        spaces: &Workspaces,
        kept: &Kept,
        files: &CheckpointFiles,
        is_fine: bool,
    ) -> Result<Differences, EngineError> {
        let roots = kept_roots(spaces, files);
        Ok(self.directories.differences(kept, &roots, is_fine)?)
    }

    fn plan_of(
        &self,
        checkpoint: &Checkpoint,
        files: &CheckpointFiles,
        (chosen, stay): (&[&Difference], &[TargetPath]),
        back: &WorkspaceReturn,
    ) -> Result<WorkspacePlan, EngineError> {
        let filter = Filter {
            placed_after: Some(checkpoint.lsn),
            ..Filter::default()
        };
        let since = self.store.operations(&filter)?;
        let writers = self.writers(&since, !back.is_dry_run)?;
        let is_in = |path: &TargetPath| {
            let mut roots = files.roots.iter();
            roots.any(|root| *path == root.path || path.is_below(&root.path))
        };
        let is_elsewhere = |operation: &&Operation| {
            let mut targets = operation.in_effect().peekable();
            let is_any = targets.peek().is_some() && !operation.verb.is_reversal();
            is_any
                && operation.status.is_in_effect()
                && targets.all(|it| !it.target.file().is_some_and(&is_in))
        };
        let changes = chosen.iter().map(|difference| WorkspaceChange {
            path: difference.path.clone(),
            what: what(difference.what),
            size_before: difference.size_before,
            size_now: difference.size_now,
            by: None,
        });
        let mut changes: Vec<WorkspaceChange> = changes.collect();
        self.attribute(&writers, &mut changes)?;
        let others = changes.iter().filter_map(|change| change.by.as_ref());
        let others = others.filter(|by| self.is_others(by.agent.as_ref()));
        let mut others: BTreeSet<OperationId> = others.map(|by| by.id).collect();
        let may_be_of = self.may_have_written(&writers, &changes);
        others.extend(&may_be_of);
        if back.others {
            others.clear();
        }
        Ok(WorkspacePlan {
            checkpoint: checkpoint.name.clone(),
            at: checkpoint.at,
            roots: files.roots.iter().map(|it| it.path.clone()).collect(),
            changes,
            stay: stay.to_vec(),
            others: others.into_iter().collect(),
            may_be_of,
            refused: None,
            elsewhere: since.iter().filter(is_elsewhere).count() as u64,
        })
    }

    /// Prepares the write that a way back is, and says why it would be refused, or would have to wait.
    fn foresee_return(
        &self,
        spaces: &Workspaces,
        kept: &Kept,
        files: &CheckpointFiles,
        chosen: &[&Difference],
    ) -> Result<Option<String>, EngineError> {
        let directory = spaces.make_back(self.next_id())?;
        let waiting = Waiting {
            owner: self.store.this_process(),
            proposal: None,
        };
        note_waiting(spaces, &directory, &waiting)?;
        let written = self.write_out_all(kept, chosen, &directory);
        let roots = kept_roots(spaces, files);
        let ruling = written.and_then(|at| {
            let names = self.directories.becoming(kept, &roots, chosen, &at)?;
            self.foresee(&*self.files.restoring(String::new(), names))
        });
        spaces.remove_back(&directory)?;
        Ok(match ruling {
            Ok(Ruling::Allow | Ruling::Warn { .. }) => None,
            Ok(Ruling::Deny { reasons }) => Some(Reason::told(&reasons).join("; ")),
            Ok(Ruling::Ask { reasons, .. }) => {
                let told = Reason::told(&reasons).join("; ");
                Some(format!("somebody has to approve it first: {told}"))
            }
            Err(error) if error.is_stop() => return Err(error),
            Err(error) => Some(with_causes(&error)),
        })
    }

    /// Writes the bytes out that are needed, and lets the file driver make the names what they were.
    fn bring_back(
        &self,
        spaces: &Workspaces,
        kept: &Kept,
        files: &CheckpointFiles,
        (summary, chosen): (&str, &[&Difference]),
    ) -> Result<Finished, EngineError> {
        let directory = spaces.make_back(self.next_id())?;
        let mut waiting = Waiting {
            owner: self.store.this_process(),
            proposal: None,
        };
        note_waiting(spaces, &directory, &waiting)?;
        let written = self.write_out_all(kept, chosen, &directory);
        let roots = kept_roots(spaces, files);
        let written = written.and_then(|at| {
            crash_point("workspace.written-out");
            let names = self.directories.becoming(kept, &roots, chosen, &at)?;
            let summary = summary.to_owned();
            self.write(&*self.files.restoring(summary, names))
        });
        crash_point("workspace.returned");
        if let Err(EngineError::Gate(GateError::Waits { proposal, .. })) = &written {
            waiting.proposal = Some(proposal.id);
            note_waiting(spaces, &directory, &waiting)?;
        } else {
            spaces.remove_back(&directory)?;
        }
        written
    }

    fn write_out_all(
        &self,
        kept: &Kept,
        chosen: &[&Difference],
        directory: &Path,
    ) -> Result<BTreeMap<Digest, PathBuf>, EngineError> {
        let mut at = BTreeMap::new();
        for difference in chosen {
            let Some(digest) = difference.needs.filter(|digest| !at.contains_key(digest)) else {
                continue;
            };
            let path = directory.join(at.len().to_string());
            let holes = &difference.holes;
            self.directories.write_out(kept, &digest, &path, holes)?;
            at.insert(digest, path);
        }
        Ok(at)
    }

    /// Says what is not as it was although all was done.
    fn look_after_return(
        &self,
        spaces: &Workspaces,
        kept: &Kept,
        (files, back): (&CheckpointFiles, &WorkspaceReturn),
        finished: &mut Finished,
    ) -> Result<(), EngineError> {
        let is_fine = !back.selection.is_everything();
        let found = self.differences(spaces, kept, files, is_fine)?;
        let left = chosen(&back.selection, &found.found);
        let told = left.iter().take(LEFT_TOLD_MAX).map(|it| {
            let path = &it.path;
            format!("`{path}` is not as it was at the checkpoint")
        });
        finished.notes.extend(told);
        finished.notes.extend(one_file(&found));
        Ok(())
    }

    /// Removes files that nobody waits for any more.
    pub(super) fn sweep_backs(&self, spaces: &Workspaces) {
        for directory in spaces.backs() {
            let note = spaces.read_back(&directory);
            let waiting = note.and_then(|note| serde_json::from_slice::<Waiting>(&note).ok());
            let is_needed = waiting.is_some_and(|it| match it.proposal {
                Some(id) => self.is_proposed(id),
                None => self.store.is_alive(&it.owner),
            });
            if !is_needed {
                // What cannot be removed now is tried again by the next.
                let _later = spaces.remove_back(&directory);
            }
        }
    }

    fn is_proposed(&self, id: OperationId) -> bool {
        let found = self.store.operation(id).ok().flatten();
        found.is_some_and(|it| it.status == backout_model::Status::Proposed)
    }
}

fn note_waiting(
    spaces: &Workspaces,
    directory: &Path,
    waiting: &Waiting,
) -> Result<(), EngineError> {
    let note = serde_json::to_vec(waiting).map_err(|source| EngineError::Io {
        action: "write down who waits for the files",
        source: source.into(),
    })?;
    Ok(spaces.note_back(directory, &note)?)
}

fn kept_roots(spaces: &Workspaces, files: &CheckpointFiles) -> Vec<KeptRoot> {
    let roots = files.roots.iter().map(|root| KeptRoot {
        path: root.path.clone(),
        tree: root.tree,
        index: spaces.index(&index_name(&root.path)),
    });
    roots.collect()
}

/// Gives the names that are meant, with the directories that they need; what came since goes with its directory only if all
/// of it is meant.
fn chosen<'d>(selection: &Selection, all: &'d [Difference]) -> Vec<&'d Difference> {
    let is_meant = |it: &&Difference| selection.has(std::iter::once(it.path.as_path()));
    let meant: BTreeSet<&TargetPath> = all.iter().filter(is_meant).map(|it| &it.path).collect();
    let above: BTreeSet<TargetPath> = meant.iter().flat_map(|path| path.ancestors()).collect();
    let left: Vec<&TargetPath> = all
        .iter()
        .filter(|it| it.what == What::Created && !meant.contains(&it.path))
        .map(|it| &it.path)
        .collect();
    let is_chosen = |it: &&Difference| match it.what {
        What::Created => {
            meant.contains(&it.path) && !left.iter().any(|left| left.is_below(&it.path))
        }
        What::Deleted | What::Changed => meant.contains(&it.path) || above.contains(&it.path),
        What::Dressed => meant.contains(&it.path),
    };
    all.iter().filter(is_chosen).collect()
}

/// Finds what is meant and cannot come back, because something that is excluded is in the directory in its place.
fn held(selection: &Selection, chosen: &[&Difference]) -> Option<TargetPath> {
    let was_directory = |it: &Difference| {
        let was = it.was.as_ref().map(|was| was.kind);
        was == Some(Kind::Directory)
    };
    let is_held = |it: &&&Difference| {
        it.what == What::Changed
            && !was_directory(it)
            && !selection.exclude.is_empty()
            && selection.leaves_out_in(it.path.as_path(), it.path.as_path())
    };
    chosen.iter().find(is_held).map(|it| it.path.clone())
}

const fn what(what: What) -> TrialWhat {
    match what {
        What::Created => TrialWhat::Created,
        What::Deleted => TrialWhat::Deleted,
        What::Changed => TrialWhat::Changed,
        What::Dressed => TrialWhat::Metadata,
    }
}

fn summary(
    checkpoint: &Checkpoint,
    files: &CheckpointFiles,
    (back, chosen): (&WorkspaceReturn, &[&Difference]),
) -> String {
    let roots: Vec<String> = files.roots.iter().map(|it| it.path.to_string()).collect();
    let (name, roots) = (&checkpoint.name, roots.join(", "));
    // Of a part only that part is said.
    let what = match chosen {
        _ if back.selection.is_everything() => roots,
        [only] => only.path.to_string(),
        [] | [_, ..] => format!("{} names in {roots}", chosen.len()),
    };
    format!("bring {what} back to checkpoint {name}")
}

/// Says of names that are what they were that they are not names of the same file as then.
fn one_file(found: &Differences) -> Vec<String> {
    let parted = found.parted.iter().map(|path| {
        format!("`{path}` is no longer the file that has another name outside of the directories")
    });
    let joined = found.joined.iter().map(|path| {
        format!("`{path}` is a second name of another file now, and was none at the checkpoint")
    });
    parted.chain(joined).take(LEFT_TOLD_MAX).collect()
}

fn stays(stay: &[TargetPath]) -> Vec<String> {
    let told = stay.iter().take(LEFT_TOLD_MAX);
    let told =
        told.map(|path| format!("`{path}` is not part of the checkpoint and stays as it is"));
    told.collect()
}
