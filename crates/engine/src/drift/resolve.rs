//! What people decide about drift, bound to what was told of it.

use backout_files::{Body, Past, Shown, Was};
use backout_model::Key;
use backout_model::drift::{Drift, DriftKind, HowResolved, OpenDrift, Seen, subject_of};
use backout_model::text::{Merge, merge3};
use backout_model::{OperationId, TargetPath};
use backout_storage::OperationRef;

use super::notes::ended;
use super::sweep::{Candidate, Extent};
use super::{DriftDecided, DriftError, looked_at_by};
use crate::lifecycle::with_causes;
use crate::{Engine, EngineError};

/// A larger file is not merged.
const MERGED_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// A drift that somebody decides about, as another look found it.
pub(super) struct Decided {
    pub(super) subject: String,
    pub(super) known: OpenDrift,
    /// What differs.
    pub(super) members: Vec<Candidate>,
    /// Whether that is only a part of it.
    pub(super) is_part: bool,
}

impl Engine {
    /// Finds the drift that is meant, and looks at it again: what changed since it was told is not decided about.
    pub(super) fn decided_drift(&self, targets: &[Key]) -> Result<Vec<Decided>, EngineError> {
        let standing = self.drift_standing()?;
        let mut meant: Vec<(String, OpenDrift, Option<Key>)> = Vec::new();
        for key in targets {
            let before = meant.len();
            for (subject, known) in &standing.open {
                let own = known.drift.target.key();
                let part = match (own.is_at_or_below(key), key.is_at_or_below(own)) {
                    (true, _) => None,
                    (false, true) if known.drift.count > 1 => Some(key.clone()),
                    (false, _) => continue,
                };
                if meant.iter().all(|(other, ..)| other != subject) {
                    meant.push((subject.clone(), known.clone(), part));
                }
            }
            if meant.len() == before {
                let what = key.to_string();
                return Err(DriftError::Unknown { what }.into());
            }
        }
        let below: Vec<Key> = meant
            .iter()
            .map(|(_, known, _)| looked_at_by(&known.drift))
            .collect();
        let extent = Extent {
            below: &below,
            ..Extent::default()
        };
        let swept = self.sweep(&extent, &standing)?;
        let told = self.told_drift(&swept, &standing, Seen::Active)?;
        let mut decided = Vec::new();
        for (subject, known, part) in meant {
            let target = known.drift.target.key().clone();
            let now = told
                .iter()
                .find(|it| subject_of(&it.drift.target) == subject);
            let Some(now) = now.filter(|now| now.drift.found.mark == known.drift.found.mark) else {
                // The next who asks is told what it is now.
                self.look_for_drift(&extent, Seen::Active)?;
                return Err(DriftError::Changed { target }.into());
            };
            let mut members = now.members.clone();
            if let Some(part) = &part {
                members.retain(|it| it.differing.target.key().is_at_or_below(part));
                if members.is_empty() {
                    let what = part.to_string();
                    return Err(DriftError::Unknown { what }.into());
                }
            }
            decided.push(Decided {
                subject,
                known,
                members,
                is_part: part.is_some(),
            });
        }
        Ok(decided)
    }

    /// Makes the world what was recorded. What that overwrites is kept, as with every write.
    pub(super) fn restore_drift(&self, targets: &[Key]) -> Result<DriftDecided, EngineError> {
        let mut news = Vec::new();
        let mut notes = Vec::new();
        for decided in self.decided_drift(targets)? {
            let restored = self.restore_members(&decided, &mut notes);
            let by = match restored {
                Ok(by) => by,
                Err(error) => {
                    // What was done before it is done.
                    self.append_drift(&news)?;
                    return Err(unrestored(error, &decided.known.drift));
                }
            };
            if !decided.is_part {
                let how = HowResolved::Restored { by };
                news.push(ended(&decided.subject, &decided.known, how, None));
            }
        }
        self.append_drift(&news)?;
        Ok(DriftDecided {
            notes,
            ..DriftDecided::of(news)
        })
    }

    fn restore_members(
        &self,
        decided: &Decided,
        notes: &mut Vec<String>,
    ) -> Result<Option<OperationId>, EngineError> {
        let mut last = None;
        let added = decided
            .members
            .iter()
            .filter(|it| it.differing.kind == DriftKind::Added);
        let added: Vec<Past> = added
            .filter_map(|it| it.differing.target.file())
            .map(|path| Past {
                path: path.clone(),
                was: None,
            })
            .collect();
        if !added.is_empty() {
            let what = &decided.known.drift.target;
            let summary = format!("remove what others added at {what}");
            let finished = self.write(&*self.files.restoring(summary, added))?;
            last = finished.id.or(last);
            notes.extend(finished.notes);
        }
        // What was left first comes first, so that a directory is there before what is in it.
        let mut by: Vec<(backout_model::Lsn, OperationId)> = decided
            .members
            .iter()
            .filter(|it| it.differing.kind != DriftKind::Added)
            .map(|it| (it.lsn, it.by))
            .collect();
        by.sort_unstable();
        by.dedup();
        for (_, id) in by {
            let from = OperationRef::Prefix(id.to_string());
            let own = decided
                .members
                .iter()
                .filter(|it| it.by == id && it.differing.kind != DriftKind::Added);
            let (mut paths, mut parts) = (Vec::new(), Vec::new());
            for it in own {
                let key = it.differing.target.key();
                match key.file().filter(|_| key.parts().is_empty()) {
                    Some(path) => paths.push(path.clone()),
                    None => parts.push(key.clone()),
                }
            }
            if !paths.is_empty() {
                let finished = self.restore(&paths, &from, true)?;
                last = finished.id.or(last);
                notes.extend(finished.notes);
            }
            if !parts.is_empty() {
                let finished = self.restore_parts(&parts, &from, true)?;
                last = finished.id.or(last);
                notes.extend(finished.notes);
            }
        }
        Ok(last)
    }

    /// Brings what was recorded and what is there together, file by file.
    pub(super) fn merge_drift(&self, targets: &[Key]) -> Result<DriftDecided, EngineError> {
        let mut news = Vec::new();
        for decided in self.decided_drift(targets)? {
            let target = decided.known.drift.target.key().clone();
            let mut names = Vec::new();
            for it in &decided.members {
                let merged = self.merged_member(it);
                let merged = merged.map_err(|why| DriftError::NoMerge {
                    target: it.differing.target.key().clone(),
                    why,
                })?;
                names.push(merged);
            }
            let summary = format!("merge what others made of {target} with what was recorded");
            let finished = self.write(&*self.files.restoring(summary, names))?;
            if !decided.is_part {
                let how = HowResolved::Merged { by: finished.id };
                // Where both had made the same change, what is there stays as it is.
                let mark = finished
                    .id
                    .is_none()
                    .then_some(decided.known.drift.found.mark);
                news.push(ended(&decided.subject, &decided.known, how, mark));
            }
        }
        self.append_drift(&news)?;
        Ok(DriftDecided::of(news))
    }

    fn merged_member(&self, it: &Candidate) -> Result<Past, String> {
        let key = it.differing.target.key();
        let path = key
            .file()
            .filter(|_| key.parts().is_empty() && it.differing.kind == DriftKind::Changed)
            .ok_or("only what is in files can be merged")?;
        let told = |error: EngineError| with_causes(&error);
        let side = self.side_there(it.by, path).map_err(told)?;
        let side = side.ok_or("nobody told what was in it")?;
        let now = self.files.now(path).map_err(|error| error.to_string())?;
        let now = now.ok_or("it is gone")?;
        let read = |was: &Was| match self.files.read(was, MERGED_BYTES_MAX) {
            Ok(Shown::Bytes(bytes)) => Ok(bytes),
            Ok(Shown::TooMany) => Err("it is too large to be merged".to_owned()),
            Ok(Shown::Lost(why)) => Err(why),
            Err(error) => Err(error.to_string()),
        };
        let theirs = side.after.as_ref().ok_or("nothing was left there")?;
        let base = side.before.as_ref().filter(|was| was.is_file());
        let base = base.map_or_else(|| Ok(Vec::new()), read)?;
        match merge3(&base, &read(&now)?, &read(theirs)?) {
            Merge::Clean(merged) => {
                let kept = self.store.stash(it.by, &mut merged.as_slice());
                let (digest, bytes) = kept.map_err(|error| error.to_string())?;
                let was = Was {
                    body: Body::Stored(digest),
                    size: Some(bytes),
                    identity: None,
                    ..now
                };
                Ok(Past {
                    path: path.clone(),
                    was: Some(was),
                })
            }
            Merge::Conflicting(_) => Err("both changed the same lines".to_owned()),
            Merge::NotText => Err("it is no text".to_owned()),
        }
    }

    /// Says what an operation left under a name; none if nothing.
    pub(super) fn left_there(
        &self,
        by: OperationId,
        path: &TargetPath,
    ) -> Result<Option<Was>, EngineError> {
        Ok(self.side_there(by, path)?.and_then(|side| side.after))
    }

    fn side_there(
        &self,
        by: OperationId,
        path: &TargetPath,
    ) -> Result<Option<backout_files::FileChange>, EngineError> {
        let effect = self.store.effect(by)?;
        let Some(files) = self.as_files(&effect)? else {
            return Ok(None);
        };
        let sides = self.files.sides(&files)?.into_iter();
        Ok(sides.into_iter().find(|side| side.path == *path))
    }
}

/// Says what stands in the way of making the record true again.
fn unrestored(error: EngineError, drift: &Drift) -> EngineError {
    match &error {
        EngineError::Unrestorable { why, .. } => DriftError::NoRestore {
            target: drift.target.key().clone(),
            by: drift.expected.by,
            why: why.clone(),
        }
        .into(),
        EngineError::NoRestore { .. } => DriftError::NoRestore {
            target: drift.target.key().clone(),
            by: drift.expected.by,
            why: "its driver restores nothing but by an undo".to_owned(),
        }
        .into(),
        _ => error,
    }
}
