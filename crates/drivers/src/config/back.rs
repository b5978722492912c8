//! Taking keys back: the whole file where it is as it was left, and else key by key.

use backout_config::{Format, KeyChange, SIZE_MAX};
use backout_model::ports::{How, Past, Prepared, PreparedUndo};
use backout_model::{Digest, Effect, OperationId, OutcomeKind, TargetOutcome, TargetPath};

use super::ConfigDriver;
use super::error::ConfigFault;
use super::known::{Known, read};
use super::recipe::ConfigRecipe;
use super::story::Story;
use super::way::{Fate, WayBack, way_back};
use crate::file::past;
use crate::file::{Shown, Staged};

impl ConfigDriver {
    /// Prepares the way back of the keys that are meant.
    pub(super) fn back(
        &self,
        id: OperationId,
        effect: &Effect,
        how: How<'_>,
    ) -> Result<PreparedUndo<Staged>, ConfigFault> {
        let known = self.known(effect)?;
        let is_meant: Vec<bool> = known.targets.iter().map(|it| how.means(it)).collect();
        let file = (&known.recipe.path, known.recipe.format);
        // Also to clear what a dead process left beside the file.
        let whole = self.back_whole(id, &known, how.is_unfinished)?;
        let changes = match &known.changes {
            Ok(changes) => changes,
            Err(why) => {
                let kind = OutcomeKind::Failed { why: why.clone() };
                return self.none(id, file, &known, &is_meant, &kind);
            }
        };
        if let Some(write) = whole.filter(|_| is_meant.iter().all(|it| *it)) {
            let inverse: Vec<KeyChange> = changes.iter().rev().map(KeyChange::inverse).collect();
            let outcomes = known.outcomes(|_| Some(OutcomeKind::Restored));
            let texts = known.recipe.texts.map(|(before, after)| (after, before));
            let prepared = ConfigRecipe::wrap(file, &inverse, texts, write)?;
            return Ok(PreparedUndo { prepared, outcomes });
        }
        let looked = match read(&known)? {
            Ok(looked) => looked,
            Err(why) => {
                return self.none(id, file, &known, &is_meant, &OutcomeKind::Conflict { why });
            }
        };
        let meant = |index: usize| is_meant.get(index) == Some(&true);
        let way = way_back(file.1, &looked.text, changes, meant, how.on_conflict);
        let mut way = way;
        let mut is_as_found = false;
        if let Some(never) = self.as_if_never(&known, &way, how.past, &looked.text)? {
            way.is_now(never.text);
            is_as_found = never.is_as_found;
        }
        let (way, outcomes) = known.decided(way, &looked.text, how);
        let texts = (
            Digest::of(looked.text.as_bytes()),
            Digest::of(way.text.as_bytes()),
        );
        let mut notes = Vec::new();
        let write = if way.changes.is_empty() {
            self.nothing(id)?
        } else {
            notes.extend(known.not_as_before(&way.fates));
            if is_as_found {
                let path = &known.recipe.path;
                notes.push(format!(
                    "`{path}` has the text back that it had first, but not the time"
                ));
            }
            notes.extend(
                looked
                    .looked
                    .not_given_back(&known.recipe.path, &known.file)?,
            );
            self.rewrite(id, file.0, &looked.looked, way.text)?
        };
        let mut prepared = ConfigRecipe::wrap(file, &way.changes, Some(texts), write)?;
        prepared.notes.extend(notes);
        Ok(PreparedUndo { prepared, outcomes })
    }

    /// Prepares the way back of the whole file; none if it is not exactly as it was left.
    fn back_whole(
        &self,
        id: OperationId,
        known: &Known,
        is_unfinished: bool,
    ) -> Result<Option<Prepared<Staged>>, ConfigFault> {
        let how = How {
            is_unfinished,
            ..How::default()
        };
        let back = self.files.prepare_undo(id, &known.file, how)?;
        let is_back = |outcome: &TargetOutcome| outcome.kind == OutcomeKind::Restored;
        let is_whole = !back.outcomes.is_empty() && back.outcomes.iter().all(is_back);
        Ok(is_whole.then_some(back.prepared))
    }

    /// Prepares nothing, and says the same of every key that is meant.
    fn none(
        &self,
        id: OperationId,
        file: (&TargetPath, Format),
        known: &Known,
        is_meant: &[bool],
        kind: &OutcomeKind,
    ) -> Result<PreparedUndo<Staged>, ConfigFault> {
        let said = |index: usize| (is_meant.get(index) == Some(&true)).then(|| kind.clone());
        Ok(PreparedUndo {
            prepared: ConfigRecipe::wrap(file, &[], None, self.nothing(id)?)?,
            outcomes: known.outcomes(said),
        })
    }

    /// Gives the text as it would be if the operation had never been, where nobody else wrote in the file since: what came after it is done
    /// again on what was before it. None if that is not known, or says no more than the way back does.
    fn as_if_never(
        &self,
        known: &Known,
        way: &WayBack,
        past: &[Past],
        now: &str,
    ) -> Result<Option<Never>, ConfigFault> {
        let is_back = |fate: &Fate| matches!(fate, Fate::Back | Fate::Nearly(_));
        if past.is_empty() || !way.fates.iter().all(is_back) {
            return Ok(None);
        }
        let Some(story) = Story::of(&known.recipe.path, past, now)? else {
            return Ok(None);
        };
        let effect = story.first.file(None);
        let mut sides = past::sides_of(self.files.context(), &effect)?.into_iter();
        let Some(was) = sides.find_map(|side| side.before) else {
            return Ok(None);
        };
        let Shown::Bytes(bytes) = past::read(self.files.context(), &was, SIZE_MAX as u64)? else {
            return Ok(None);
        };
        let Some(first) = story.text(bytes) else {
            return Ok(None);
        };
        let mut text = first.clone();
        for effect in story.since {
            let Ok(changes) = self.known(effect)?.changes else {
                return Ok(None);
            };
            for change in &changes {
                match backout_config::apply(known.recipe.format, &text, change) {
                    Ok(backout_config::Applied::Done(done)) => text = done,
                    Ok(backout_config::Applied::Already) => {}
                    Ok(backout_config::Applied::Nearly { .. }) | Err(_) => return Ok(None),
                }
            }
        }
        let is_as_found = text == first;
        Ok(Some(Never { text, is_as_found }))
    }
}

impl Known {
    /// Gives the targets of which something is said.
    fn outcomes(&self, said: impl Fn(usize) -> Option<OutcomeKind>) -> Vec<TargetOutcome> {
        let each = self.targets.iter().enumerate();
        each.filter_map(|(index, target)| Some(TargetOutcome::new(target.clone(), said(index)?)))
            .collect()
    }

    /// Says of the keys that come back what around them may not be as it was.
    fn not_as_before(&self, fates: &[Fate]) -> Vec<String> {
        let each = std::iter::zip(&self.targets, fates);
        let each = each.filter_map(|(target, fate)| match fate {
            Fate::Nearly(why) => Some(format!("`{target}` is as it was, but {why}")),
            Fate::Back
            | Fate::Merged
            | Fate::Already
            | Fate::Forced(_)
            | Fate::Stays(_)
            | Fate::NotMeant => None,
        });
        each.collect()
    }

    /// Decides whether a way back is taken: not if something stays and all or nothing was asked for.
    fn decided(&self, way: WayBack, text: &str, how: How<'_>) -> (WayBack, Vec<TargetOutcome>) {
        let mut outcomes = self.outcomes(|index| way.fates.get(index).and_then(Fate::outcome));
        if how.goes_on(&mut outcomes) {
            return (way, outcomes);
        }
        let way = WayBack {
            text: text.to_owned(),
            changes: Vec::new(),
            fates: way.fates,
        };
        (way, outcomes)
    }
}

/// A file as it would be if an operation had never been.
struct Never {
    text: String,
    /// Whether it is what the first of our operations found.
    is_as_found: bool,
}
