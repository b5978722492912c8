//! The record is right: what others made of recorded targets becomes what was recorded, by a write like any other.
//!
//! All files of one drift are one write, so one undo brings back all that it overwrote. Keys, rows and calls are restored by their drivers.

use std::collections::BTreeMap;

use backout_files::{Past, Was};
use backout_model::drift::{Drift, DriftKind, HowResolved};
use backout_model::{Key, OperationId, TargetPath};
use backout_storage::OperationRef;

use super::recorded::link_above;
use super::resolve::{Decided, Done};
use super::sweep::Candidate;
use super::{DriftDecided, DriftError};
use crate::{Engine, EngineError};

impl Engine {
    /// Makes the world what was recorded. What that overwrites is kept, as with every write.
    pub(super) fn restore_drift(&self, targets: &[Key]) -> Result<DriftDecided, EngineError> {
        let mut done = Done::default();
        for decided in self.decided_drift(targets)? {
            let restored = self.restore_members(&decided, &mut done);
            let restored = restored.map_err(|error| unrestored(error, &decided.known.drift));
            if !done.take(&decided, restored.map(|by| HowResolved::Restored { by })) {
                break;
            }
        }
        self.done_about_drift(done)
    }

    fn restore_members(
        &self,
        decided: &Decided,
        done: &mut Done,
    ) -> Result<Option<OperationId>, EngineError> {
        let parts = self.parts_of(decided)?;
        let target = &decided.known.drift.target;
        let files = decided
            .members
            .iter()
            .filter_map(|it| it.differing.target.file());
        if let Some(link) = files.into_iter().find_map(link_above) {
            return Err(DriftError::NoRestore {
                target: target.key().clone(),
                by: decided.known.drift.expected.by,
                why: format!("`{link}` is a symbolic link now"),
            }
            .into());
        }
        let mut made = Vec::new();
        let names = self.recorded_names(&decided.members)?;
        if !names.is_empty() {
            let summary = if names.iter().all(|past| past.was.is_none()) {
                format!("remove what others added at {target}")
            } else {
                format!("make {target} what was recorded")
            };
            let finished = self.write(&*self.files.restoring(summary, names))?;
            made.extend(finished.id);
            done.notes.extend(finished.notes);
        }
        for (id, keys) in parts {
            let from = OperationRef::Prefix(id.to_string());
            let finished = self.restore_parts(&keys, &from, true);
            let finished = finished.inspect_err(|_| {
                // What was done before it is done.
                for by in &made {
                    done.also(target, *by);
                }
            })?;
            made.extend(finished.id);
            done.notes.extend(finished.notes);
        }
        let last = made.pop();
        for by in made {
            done.also(target, by);
        }
        Ok(last)
    }

    /// Gives what each file is to become, by name. What tells only its looks goes on top of what tells all of it.
    fn recorded_names(&self, members: &[Candidate]) -> Result<Vec<Past>, EngineError> {
        let mut names: BTreeMap<TargetPath, Option<Was>> = BTreeMap::new();
        for (it, change) in std::iter::zip(members, self.recorded_of(members)?) {
            let key = it.differing.target.key();
            let Some(path) = key.file().filter(|_| key.parts().is_empty()) else {
                continue;
            };
            if it.differing.kind == DriftKind::Added {
                names.insert(path.clone(), None);
                continue;
            }
            let Some(was) = change.and_then(|change| change.after) else {
                continue;
            };
            let was = self.at_hand(it, was)?;
            let known = names.remove(path).flatten();
            names.insert(path.clone(), Some(dressed(known, was)));
        }
        let past = |(path, was)| Past { path, was };
        Ok(names.into_iter().map(past).collect())
    }

    /// Lists the parts that differ by who left them, the oldest first. A part of a file that is gone has no place.
    fn parts_of(&self, decided: &Decided) -> Result<Vec<(OperationId, Vec<Key>)>, EngineError> {
        let mut parts: BTreeMap<_, (OperationId, Vec<Key>)> = BTreeMap::new();
        for it in &decided.members {
            let key = it.differing.target.key();
            if key.file().is_some() && key.parts().is_empty() {
                continue;
            }
            if let Some(file) = key.file().filter(|file| !file.as_path().exists()) {
                return Err(DriftError::NoFile {
                    target: key.clone(),
                    file: self.has_whole(it.by, file).then(|| file.clone()),
                    by: it.by,
                }
                .into());
            }
            let own = parts.entry(it.lsn).or_insert_with(|| (it.by, Vec::new()));
            own.1.push(key.clone());
        }
        Ok(parts.into_values().collect())
    }

    /// Tells whether the whole file can be had that an operation wrote a part of.
    fn has_whole(&self, by: OperationId, file: &TargetPath) -> bool {
        let effect = self.store.effect(by).ok();
        let files = effect.and_then(|it| self.as_files(&it).ok().flatten());
        let sides = files.and_then(|it| self.files.sides(&it).ok());
        let mut sides = sides.into_iter().flatten();
        let left = sides
            .find(|side| side.path == *file)
            .and_then(|it| it.after);
        left.is_some_and(|was| self.files.is_at_hand(&was).unwrap_or_default())
    }
}

/// Puts two descriptions of one name together, of which one may tell only its looks.
fn dressed(known: Option<Was>, was: Was) -> Was {
    match known {
        Some(known) if was.is_dress() => Was {
            meta: was.meta,
            ..known
        },
        Some(known) if known.is_dress() => Was {
            meta: known.meta,
            ..was
        },
        Some(_) | None => was,
    }
}

/// Says what stands in the way of making the record true again.
fn unrestored(error: EngineError, drift: &Drift) -> EngineError {
    let target = drift.target.key();
    let lost = |path: &str, why: &str| {
        let is_it = path == target.to_string();
        let why = if is_it {
            why.to_owned()
        } else {
            format!("`{path}`: {why}")
        };
        let (target, by) = (target.clone(), drift.expected.by);
        EngineError::from(DriftError::NoRestore { target, by, why })
    };
    match &error {
        EngineError::Unrestorable { path, why, .. } => lost(path, why),
        EngineError::NoRestore { .. } => lost(
            &target.to_string(),
            "its driver restores nothing but by an undo",
        ),
        EngineError::Driver(cause) => match cause.fault().lost() {
            Some((path, why)) => lost(path, why),
            None => error,
        },
        _ => error,
    }
}
