//! What a whole file will be when the newer steps of a plan have taken their parts out of it. They leave what others changed
//! in the rest of the file, and an older write of the whole file then meets that.

use backout_files::said::{changed_bytes, merged};
use backout_files::{Shown, Was};
use backout_model::ports::OnConflict;
use backout_model::{Digest, OutcomeKind, Target, TargetPath};

use super::preview::touches;
use super::work::Work;
use crate::{Engine, EngineError, PlannedTarget, TargetState};

/// Why a file is not as an older step left it when its turn comes.
const OTHER_BYTES: &str = "its rows are taken back first, and that leaves other bytes in the file";

/// The largest file that is looked at. Config files are smaller.
const BYTES_MAX: u64 = 8 * 1024 * 1024;

impl Engine {
    /// Says of the files that newer steps write in parts how they will stand when the turn of `work` comes.
    pub(super) fn foresee_whole(
        &self,
        work: &Work<'_>,
        newer: &[Work<'_>],
        on_conflict: OnConflict,
        planned: &mut [PlannedTarget],
    ) -> Result<(), EngineError> {
        let is_open = |it: &PlannedTarget| it.state == TargetState::AfterNewerStep;
        if !planned.iter().any(is_open) || self.is_in_parts(work)? {
            return Ok(());
        }
        let sides = self.sides_of(&work.effect)?;
        for it in planned.iter_mut().filter(|it| is_open(it)) {
            let path = it.target.file();
            if let (Some(path), true) = (path, on_conflict != OnConflict::Merge)
                && self.leaves_other_bytes(path, newer)?
            {
                let why = OTHER_BYTES.to_owned();
                it.state = match on_conflict {
                    OnConflict::Refuse | OnConflict::Merge => TargetState::Conflict { why },
                    OnConflict::Force => TargetState::Overwritten { why },
                };
                continue;
            }
            let side = sides.iter().find(|side| Some(&side.path) == path);
            let Some(side) = side.filter(|side| side.from.is_none() && !side.is_as_now) else {
                continue;
            };
            let Some(left) = &side.after else {
                continue;
            };
            let Some(found) = self.bytes_by_then(&side.path, newer, on_conflict)? else {
                continue;
            };
            // What a recipe says nothing of, a change of the mode or a move, it does not mind either.
            let Some(digest) = self.files.digest(left)? else {
                continue;
            };
            if digest == Digest::of(&found) {
                continue;
            }
            let was = left.size().unwrap_or_default();
            let why = changed_bytes(was, found.len() as u64);
            it.state = match on_conflict {
                OnConflict::Refuse => TargetState::Conflict { why },
                OnConflict::Force => TargetState::Overwritten { why },
                OnConflict::Merge => {
                    match self.merges((left, &found, side.before.as_ref()))? {
                        Some(Ok(_)) => TargetState::Merges,
                        Some(Err(more)) => TargetState::Conflict {
                            why: format!("{why}; {more}"),
                        },
                        // That is seen when its turn comes.
                        None => continue,
                    }
                }
            };
        }
        Ok(())
    }

    /// Tells whether steps take parts of a file back and leave other bytes than it had.
    fn leaves_other_bytes(
        &self,
        path: &TargetPath,
        newer: &[Work<'_>],
    ) -> Result<bool, EngineError> {
        let is_in_it =
            |target: &Target| target.file() == Some(path) && !target.key().parts().is_empty();
        for newer in newer {
            let driver = self.driver_of(&newer.effect)?;
            if newer.step.targets.iter().any(is_in_it) && !driver.keeps_bytes(&newer.effect) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Says of the keys of a file that come back among others' changes that they merge, as the undo will say.
    pub(super) fn foresee_merged(
        &self,
        work: &Work<'_>,
        on_conflict: OnConflict,
        planned: &mut [PlannedTarget],
    ) -> Result<(), EngineError> {
        let comes_back = |it: &PlannedTarget| it.state == TargetState::ComesBack;
        if !planned.iter().any(comes_back) || !self.is_in_parts(work)? || self.is_as_left(work)? {
            return Ok(());
        }
        let driver = self.driver_of(&work.effect)?;
        let how = work.how(on_conflict, true);
        let Ok(ready) = driver.prepare_undo(self.next_id(), &work.effect, how) else {
            // What stops it shows when it is done.
            return Ok(());
        };
        let outcomes = work.spread(&ready.outcomes);
        let merges = |target: &Target| {
            let mut outcomes = outcomes.iter();
            outcomes.any(|it| it.target == *target && it.kind == OutcomeKind::Merged)
        };
        for it in planned.iter_mut().filter(|it| comes_back(it)) {
            if merges(&it.target) {
                it.state = TargetState::Merges;
            }
        }
        Ok(())
    }

    /// Tells whether the files of a step have the bytes that it left: then nothing came between.
    fn is_as_left(&self, work: &Work<'_>) -> Result<bool, EngineError> {
        for side in self.sides_of(&work.effect)? {
            let now = self.files.now(&side.path)?;
            let (Some(left), Some(now)) = (&side.after, &now) else {
                return Ok(false);
            };
            if self.files.digest(left)? != self.files.digest(now)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Gives what a file will be after some steps, if one of them takes parts out of it, or all of them merge, and all of them
    /// will work.
    fn bytes_by_then(
        &self,
        path: &TargetPath,
        newer: &[Work<'_>],
        on_conflict: OnConflict,
    ) -> Result<Option<Vec<u8>>, EngineError> {
        let target = Target::node(path.clone());
        let mut on_it = Vec::new();
        for newer in newer.iter().filter(|newer| touches(&newer.step, &target)) {
            on_it.push((newer, self.is_in_parts(newer)?));
        }
        let is_asked = on_conflict == OnConflict::Merge || on_it.iter().any(|it| it.1);
        let Some(now) = self.files.now(path)?.filter(|_| is_asked) else {
            return Ok(None);
        };
        let mut now = self.bytes(&now)?;
        for (newer, is_in_parts) in on_it {
            let Some(found) = now else {
                return Ok(None);
            };
            let sides = self.sides_of(&newer.effect)?;
            let side = sides.into_iter().find(|side| side.path == *path);
            let how = newer.how(on_conflict, false);
            let after = side.as_ref().and_then(|side| side.after.as_ref());
            let is_as_left = match after {
                Some(after) => self.files.digest(after)? == Some(Digest::of(&found)),
                None => false,
            };
            let before = side.as_ref().and_then(|side| side.before.as_ref());
            now = if is_in_parts && !(is_as_left && how.only.is_none()) {
                self.driver_of(&newer.effect)?
                    .without(&newer.effect, how, &found)?
            } else {
                match (before, after) {
                    (Some(before), _) if before.is_dress() => Some(found),
                    (Some(_), Some(after)) if on_conflict == OnConflict::Merge && !is_as_left => {
                        let merged = self.merges((after, &found, before))?;
                        merged.and_then(Result::ok)
                    }
                    (Some(before), _) => self.bytes(before)?,
                    (None, _) => None,
                }
            };
        }
        Ok(now)
    }

    fn is_in_parts(&self, work: &Work<'_>) -> Result<bool, EngineError> {
        let driver = self.driver_of(&work.effect)?;
        Ok(driver.values(&work.effect)?.is_some())
    }

    /// Merges what was before into what is found; none if not all of the texts are at hand.
    fn merges(
        &self,
        (left, found, before): (&Was, &[u8], Option<&Was>),
    ) -> Result<Option<Result<Vec<u8>, String>>, EngineError> {
        let before = match before {
            Some(before) => self.bytes(before)?,
            None => None,
        };
        let texts = self.bytes(left)?.zip(before);
        Ok(texts.map(|(base, before)| merged(&base, found, &before)))
    }

    fn bytes(&self, was: &Was) -> Result<Option<Vec<u8>>, EngineError> {
        Ok(match self.files.read(was, BYTES_MAX)? {
            Shown::Bytes(bytes) => Some(bytes),
            Shown::TooMany | Shown::Lost(_) => None,
        })
    }
}
