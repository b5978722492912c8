//! Both are right: the lines that others changed come together with those that were recorded.
//!
//! Where others changed a text that has all that was recorded, there is nothing to bring together: it is accepted, and that is said.

use backout_files::{Body, Past, Shown, Was};
use backout_model::drift::{DriftKind, HowResolved};
use backout_model::text::{Merge, merge3};
use backout_model::{Key, TargetPath};
use backout_storage::StorageError;

use super::resolve::{Decided, Done};
use super::sweep::Candidate;
use super::{DriftDecided, DriftError};
use crate::lifecycle::with_causes;
use crate::{Engine, EngineError};

/// A larger file is not merged.
const MERGED_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Of a larger file it is not tried whether it can be merged, only to say so.
const TRIED_BYTES_MAX: u64 = 256 * 1024;

/// What two sides came to.
struct Merged {
    path: TargetPath,
    now: Was,
    bytes: Vec<u8>,
    /// Whether that is what is there.
    is_now: bool,
}

impl Engine {
    /// Brings what was recorded and what is there together, file by file.
    pub(super) fn merge_drift(&self, targets: &[Key]) -> Result<DriftDecided, EngineError> {
        let mut done = Done::default();
        for decided in self.decided_drift(targets)? {
            let merged = self.merge_members(&decided, &mut done);
            if !done.take(&decided, merged) {
                break;
            }
        }
        self.done_about_drift(done)
    }

    fn merge_members(
        &self,
        decided: &Decided,
        done: &mut Done,
    ) -> Result<HowResolved, EngineError> {
        let (mut names, mut same) = (Vec::new(), Vec::new());
        for it in &decided.members {
            let merged = self.both_sides(it, MERGED_BYTES_MAX);
            let merged = merged.map_err(|why| DriftError::NoMerge {
                target: it.differing.target.key().clone(),
                why,
                can_restore: self.can_restore(&decided.members),
            })?;
            if merged.is_now {
                same.push(it.clone());
            } else {
                names.push(self.kept_merge(it, merged)?);
            }
        }
        let target = &decided.known.drift.target;
        let mut how = None;
        if !names.is_empty() {
            let summary = format!("merge what others made of {target} with what was recorded");
            let finished = self.write(&*self.files.restoring(summary, names))?;
            done.notes.extend(finished.notes);
            how = Some(HowResolved::Merged { by: finished.id });
        }
        if same.is_empty() {
            return Ok(how.unwrap_or(HowResolved::Merged { by: None }));
        }
        let accepted = Decided {
            members: same,
            ..decided.clone()
        };
        let by = self.adopt(&accepted, &mut done.notes)?;
        done.notes.push(format!(
            "what others made of `{target}` has all that was recorded in it: it was accepted as it is"
        ));
        match (&how, by) {
            (Some(_), Some(by)) => done.also(target, by),
            _ => how = Some(HowResolved::Accepted { by }),
        }
        Ok(how.unwrap_or(HowResolved::Accepted { by }))
    }

    /// Tells whether a merge comes to something, of files that are small enough to try.
    pub(super) fn can_merge(&self, members: &[Candidate]) -> bool {
        let mut each = members.iter();
        each.all(|it| self.both_sides(it, TRIED_BYTES_MAX).is_ok())
    }

    fn kept_merge(&self, it: &Candidate, merged: Merged) -> Result<Past, EngineError> {
        let kept = self.store.stash(it.by, &mut merged.bytes.as_slice());
        let (digest, bytes) = kept.map_err(|error| {
            let path = &merged.path;
            StorageError::inconsistent(format!("the bytes of {path}"), &error)
        })?;
        let was = Was {
            body: Body::Stored(digest),
            size: Some(bytes),
            identity: None,
            ..merged.now
        };
        Ok(Past {
            path: merged.path,
            was: Some(was),
        })
    }

    fn both_sides(&self, it: &Candidate, bytes_max: u64) -> Result<Merged, String> {
        let no_file = "only what is in files can be merged";
        let key = it.differing.target.key();
        let path = key
            .file()
            .filter(|_| key.parts().is_empty() && it.differing.kind == DriftKind::Changed)
            .ok_or(no_file)?;
        let told = |error: EngineError| with_causes(&error);
        let side = self.recorded(it).map_err(told)?;
        let side = side.ok_or("nobody told what was in it")?;
        let now = self.files.now(path).map_err(|error| error.to_string())?;
        let now = now.ok_or("it is gone")?;
        let read = |was: &Was| match self.files.read(was, bytes_max) {
            Ok(Shown::Bytes(bytes)) => Ok(bytes),
            Ok(Shown::TooMany) => Err("it is too large to be merged".to_owned()),
            Ok(Shown::Lost(why)) => Err(why),
            Err(error) => Err(error.to_string()),
        };
        let theirs = side.after.ok_or("nothing was left there")?;
        if !now.is_file() || !theirs.is_file() {
            return Err(no_file.to_owned());
        }
        let theirs = self.at_hand(it, theirs).map_err(told)?;
        let base = side.before.as_ref().filter(|was| was.is_file());
        let base = base.map_or_else(|| Ok(Vec::new()), read)?;
        let there = read(&now)?;
        match merge3(&base, &there, &read(&theirs)?) {
            Merge::Clean(bytes) => Ok(Merged {
                path: path.clone(),
                is_now: bytes == there,
                now,
                bytes,
            }),
            Merge::Conflicting(_) => Err("both changed the same lines".to_owned()),
            Merge::NotText => Err("it is no text".to_owned()),
        }
    }
}
