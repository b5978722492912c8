//! Comparing what a part of something was with what it became, in the words of what holds it.

use std::collections::BTreeMap;

use backout_model::ports::ValueChange;
use backout_model::{Key, Reach, Target, text};

use super::file::CONTEXT_LINES;
use crate::undo::Work;
use crate::{
    DiffChange, DiffFile, DiffValue, Engine, EngineError, PlanDiff, PlannedStep, Selection,
    TargetState,
};

impl Engine {
    /// Compares the parts that an effect is told in.
    pub(crate) fn compare_values(
        values: &[ValueChange],
        selection: &Selection,
        is_brief: bool,
        is_of_files: bool,
    ) -> Vec<DiffFile> {
        let is_meant = |value: &&ValueChange| {
            let target = Target::new(value.key.clone(), Reach::Node);
            selection.has_target(&target)
        };
        let files = values.iter().filter(is_meant).filter_map(|value| {
            let sides = (value.before.as_deref(), value.after.as_deref());
            let compared = compared(&value.key, sides, is_brief)?;
            let told = (!is_brief && !is_of_files).then(|| DiffValue {
                before: value.before.clone(),
                after: value.after.clone(),
                now: value.now.clone().ok().flatten(),
                unread: value.now.clone().err(),
            });
            Some(DiffFile {
                value: told,
                ..compared
            })
        });
        files.collect()
    }

    /// Says what a plan would change back in parts, and what somebody else changed there since.
    pub(super) fn plan_diff_of_parts(
        &self,
        works: &[Work<'_>],
        steps: &[PlannedStep],
        diff: &mut PlanDiff,
    ) -> Result<(), EngineError> {
        let mut parts: BTreeMap<Key, Part> = BTreeMap::new();
        for (work, step) in std::iter::zip(works, steps) {
            let values = self.driver_of(&work.effect)?.values(&work.effect)?;
            let is_of_files = self.as_files(&work.effect)?.is_some();
            for value in values.into_iter().flatten() {
                let mut planned = step.targets.iter();
                let Some(planned) = planned.find(|it| *it.target.key() == value.key) else {
                    continue;
                };
                let part = parts.entry(value.key).or_insert_with(|| Part {
                    // Newest first: the first step says what was left there.
                    left: value.after,
                    now: value.now,
                    back: None,
                    state: planned.state.clone(),
                    is_of_files,
                });
                part.back = value.before;
            }
        }
        for (key, part) in parts {
            // Why nobody can tell what is there stands with the target.
            let Ok(now) = part.now.clone() else { continue };
            if let TargetState::Conflict { .. } | TargetState::Overwritten { .. } = part.state {
                diff.theirs
                    .extend(part.compared(&key, part.left.as_deref(), now.as_deref()));
            }
            diff.back
                .extend(part.compared(&key, now.as_deref(), part.back.as_deref()));
        }
        Ok(())
    }
}

/// What a plan does to one part.
struct Part {
    left: Option<String>,
    now: Result<Option<String>, String>,
    back: Option<String>,
    state: TargetState,
    is_of_files: bool,
}

impl Part {
    /// Compares two of its values, and tells them if that is all there is to tell.
    fn compared(&self, key: &Key, old: Option<&str>, new: Option<&str>) -> Option<DiffFile> {
        let compared = compared(key, (old, new), false)?;
        let told = (!self.is_of_files).then(|| DiffValue {
            before: old.map(str::to_owned),
            after: new.map(str::to_owned),
            now: self.now.clone().ok().flatten(),
            unread: None,
        });
        Some(DiffFile {
            value: told,
            ..compared
        })
    }
}

/// Compares two values; none if they are the same.
fn compared(
    key: &Key,
    (before, after): (Option<&str>, Option<&str>),
    is_brief: bool,
) -> Option<DiffFile> {
    let change = match (before, after) {
        (None, Some(_)) => DiffChange::Created,
        (Some(_), None) => DiffChange::Removed,
        (Some(before), Some(after)) if before != after => DiffChange::Changed,
        (Some(_), Some(_)) | (None, None) => return None,
    };
    let lines = |value: Option<&str>| value.map(|value| format!("{value}\n")).unwrap_or_default();
    let (old, new) = (lines(before), lines(after));
    let stat = text::stat(old.as_bytes(), new.as_bytes()).filter(|_| !is_brief);
    // A value is no file: without the two names above it, nobody takes this for a patch of one.
    let unified = || {
        let text = text::unified(old.as_bytes(), new.as_bytes(), "", "", CONTEXT_LINES);
        text.splitn(3, '\n').nth(2).unwrap_or_default().to_owned()
    };
    let (whole, path) = (key.to_string(), key.file().cloned());
    let above = path.as_ref().map(|path| format!("{path}:"));
    let below = whole.strip_prefix(&above.unwrap_or_default());
    Some(DiffFile {
        key: below.map(str::to_owned),
        path,
        from: None,
        change,
        before: None,
        after: None,
        added: stat.as_ref().map(|stat| stat.added),
        removed: stat.as_ref().map(|stat| stat.removed),
        text: stat.map(|_| unified()).unwrap_or_default(),
        value: None,
        unshown: None,
    })
}
