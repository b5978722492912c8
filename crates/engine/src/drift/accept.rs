//! The world is right: what others made of recorded targets becomes an operation of its own.
//!
//! - Its recipe leads from what was recorded to what is there, so a later undo compares with what was accepted, and the accepted state can
//!   be taken back like any other. Nothing in the world changes.
//! - The bytes that are accepted are kept with it: `restore PATH --from ID --after` brings them back, whatever becomes of the file.
//! - Keys, rows and calls have no such recipe: of them the note says that they are accepted as long as they stay so.

use std::collections::BTreeMap;
use std::os::unix::fs::OpenOptionsExt as _;

use backout_crashpoint::crash_point;
use backout_files::{Past, Was};
use backout_model::drift::{DriftKind, HowResolved};
use backout_model::ports::{Durability, Entry};
use backout_model::{
    Decision, Event, Intent, Key, OperationId, Strategy, Target, TargetPath, Verb,
};

use backout_storage::StorageError;

use super::recorded::is_straight;
use super::resolve::{Decided, Done};
use super::sweep::Candidate;
use super::{DriftDecided, DriftError};
use crate::{Engine, EngineError};

/// A larger file is accepted, but its bytes are not kept a second time.
const ACCEPTED_BYTES_MAX: u64 = 64 * 1024 * 1024;

impl Engine {
    pub(super) fn accept_drift(&self, targets: &[Key]) -> Result<DriftDecided, EngineError> {
        let mut done = Done::default();
        for decided in self.decided_drift(targets)? {
            let by = self.adopt(&decided, &mut done.notes);
            if !done.take(&decided, by.map(|by| HowResolved::Accepted { by })) {
                break;
            }
            // Of several, each that no operation keeps is accepted by a note of its own.
            if decided.members.len() > 1 && decided.part.is_none() {
                let rest = decided.members.iter().filter(|it| !is_kept(it));
                rest.for_each(|it| done.accepted(&decided, it));
            }
        }
        self.done_about_drift(done)
    }

    /// Records what others made of files as an operation; none if nothing of it is a file.
    pub(super) fn adopt(
        &self,
        decided: &Decided,
        notes: &mut Vec<String>,
    ) -> Result<Option<OperationId>, EngineError> {
        let files = decided.members.iter().filter(|it| is_kept(it));
        let files: Vec<Candidate> = files.cloned().collect();
        if files.len() < decided.members.len() {
            notes.push(format!(
                "`{}` is accepted as long as it stays so; an undo of what was recorded will find it changed",
                decided.known.drift.target
            ));
        }
        if files.is_empty() {
            return Ok(None);
        }
        let names = self.believed(&files)?;
        let targets: Vec<Target> = names.keys().cloned().map(Target::node).collect();
        let lease = self.lease(&targets, &[])?;
        let id = lease.id;
        for path in names.keys() {
            self.keep_accepted(id, path, notes)?;
        }
        let names: Vec<Past> = names
            .into_iter()
            .map(|(path, was)| Past { path, was })
            .collect();
        let found = self.commands.believe(&names)?;
        let settled = self.commands.settle_looked(id, &found)?;
        if settled.is_nothing || settled.targets.is_empty() {
            return Ok(None);
        }
        crash_point("drift.accepting");
        let summary = format!("accept what others made of {}", decided.known.drift.target);
        let depends_on = self.store.dependencies(&settled.targets)?;
        let intent = Intent {
            verb: Verb::Write,
            decision: Decision::new(
                Strategy::Snapshot,
                &[],
                "what was recorded is kept where anybody has it, and what is accepted is kept",
            ),
            targets: settled.targets,
            depends_on,
            ..self.intent_of_a_run(id, summary, settled.recipe)
        };
        let completion = settled.completion;
        let events = vec![
            Event::Intent(Box::new(intent)),
            Event::Applied { id, completion },
            Event::Commit { id },
        ];
        let contents = settled.contents;
        self.store
            .append(&Entry { events, contents }, Durability::Power)?;
        crash_point("drift.accepted");
        Ok(Some(id))
    }

    /// Gives what was recorded of each name, with all that is in directories that nobody recorded.
    fn believed(
        &self,
        files: &[Candidate],
    ) -> Result<BTreeMap<TargetPath, Option<Was>>, EngineError> {
        let mut names = BTreeMap::new();
        for (it, change) in std::iter::zip(files, self.recorded_of(files)?) {
            let Some(path) = it.differing.target.file() else {
                continue;
            };
            if matches!(it.differing.kind, DriftKind::Added | DriftKind::Replaced) {
                for below in self.files.below(path)? {
                    names.entry(below.path).or_insert(None);
                }
            }
            let was = match it.differing.kind {
                DriftKind::Added => None,
                DriftKind::Looks
                | DriftKind::Changed
                | DriftKind::Replaced
                | DriftKind::Gone
                | DriftKind::Several => change.and_then(|change| change.after),
            };
            // What tells all of it goes before what tells only its looks.
            let is_dress = was.as_ref().is_some_and(Was::is_dress);
            if !(is_dress && names.contains_key(path)) {
                names.insert(path.clone(), was);
            }
        }
        Ok(names)
    }

    /// Keeps the bytes of a file that is accepted.
    fn keep_accepted(
        &self,
        id: OperationId,
        path: &TargetPath,
        notes: &mut Vec<String>,
    ) -> Result<(), EngineError> {
        let Some(now) = self.files.now(path)?.filter(Was::is_file) else {
            return Ok(());
        };
        if now.size().is_some_and(|size| size > ACCEPTED_BYTES_MAX) {
            notes.push(format!(
                "the bytes of `{path}` are not kept: they are too many"
            ));
            return Ok(());
        }
        let mut options = std::fs::OpenOptions::new();
        let flags = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
        let opened = options.read(true).custom_flags(flags).open(path.as_path());
        let mut file = opened.map_err(|_| DriftError::Changed {
            target: path.clone().into(),
        })?;
        let kept = self.store.stash(id, &mut file);
        kept.map_err(|cause| StorageError::inconsistent(format!("the bytes of {path}"), &cause))?;
        Ok(())
    }
}

/// Tells whether an operation can keep what is accepted: it is a file, and no directory above it became a link.
fn is_kept(it: &Candidate) -> bool {
    let is_file = it.told_name().is_some();
    is_file && it.differing.target.file().is_some_and(is_straight)
}
