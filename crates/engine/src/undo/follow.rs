//! What the journal says when something was taken back: which targets are undone, which are in effect again, and whose
//! recipe takes them back now.

use std::collections::{BTreeSet, HashMap, HashSet};

use backout_model::ports::{Guarantee, How, State};
use backout_model::{
    Effect, Event, Key, Operation, OperationId, OutcomeKind, Standing, Target, TargetOutcome,
};

use super::work::Work;
use crate::{Engine, EngineError};

impl Engine {
    /// Gives the records that follow from `by` having taken back what `work` is about.
    pub(crate) fn what_follows(
        &self,
        work: &Work<'_>,
        by: OperationId,
        outcomes: &[TargetOutcome],
    ) -> Result<Vec<Event>, EngineError> {
        let operation = work.operation;
        let undone = |id, outcomes: Vec<TargetOutcome>, is_partial| Event::Undone {
            id,
            by,
            outcomes,
            is_partial,
        };
        let is_whole = work.is_whole(outcomes);
        let mut events = vec![undone(operation.id, outcomes.to_vec(), !is_whole)];
        // What never finished had not taken anything back.
        if operation.status.is_unfinished() {
            return Ok(events);
        }
        let about = match operation.undoes {
            Some(about) => self.store.operation(about)?,
            None => None,
        };
        let Some(about) = about else {
            return Ok(events);
        };
        // What a recovery or an undo had taken back is in effect again.
        if operation.verb.is_redoable() && !about.verb.is_reversal() {
            let targets = self.back_again(operation, &about, by, outcomes)?;
            if !targets.is_empty() {
                events.push(Event::Redone {
                    id: about.id,
                    by,
                    targets: Some(targets),
                });
            }
        }
        Ok(events)
    }

    /// Lists the targets of an operation that are in effect again now that `undo` is taken back by `by`, each with whose
    /// recipe takes it back.
    fn back_again(
        &self,
        undo: &Operation,
        about: &Operation,
        by: OperationId,
        outcomes: &[TargetOutcome],
    ) -> Result<Vec<Standing>, EngineError> {
        let intent = self.store.undone_with(undo.id)?;
        let first = self.store.outcomes_of(about.id, undo.id)?;
        let first: HashMap<&Key, &OutcomeKind> = first
            .iter()
            .map(|outcome| (outcome.target.key(), &outcome.kind))
            .collect();
        let taken = about.targets.iter();
        let taken = taken.filter(|standing| standing.undone_by == Some(undo.id));
        let taken: Vec<Standing> = taken.cloned().collect();
        // A redo that was taken back by its own name need not be what holds the target.
        let held: HashMap<&Key, Option<OperationId>> = taken
            .iter()
            .map(|standing| (standing.target.key(), standing.held_by))
            .collect();
        let now = mapped_to(
            undo,
            taken.iter().map(|standing| &standing.target),
            outcomes,
        );
        let is_back = |outcome: &TargetOutcome| {
            outcome.kind.is_taken_back() && !matches!(outcome.kind, OutcomeKind::Left { .. })
        };
        let settled = now.into_iter().filter(is_back);
        let effect = self.store.effect(about.id)?;
        let outline = self.driver_of(&effect)?.outline(&effect)?;
        // What is answered by another effect is made anew: only the redo knows what it is called now.
        let is_new = outline.guarantee == Guarantee::Compensating;
        let gone = outline.gone;
        let replaced = self.replaced(&effect, outcomes)?;
        let is_clean = |key: &Key| {
            let then = first.get(key);
            is_new || then.is_none_or(|kind| was_as_left(kind))
        };
        let back = settled.map(|outcome| {
            // What was in a directory that went as one comes back with it, and by the same recipe.
            let key = outcome.target.key();
            let inside = first.keys().filter(|it| it.is_at_or_below(key));
            let was_clean = is_clean(key)
                && (!gone.contains(key) || inside.into_iter().all(|key| is_clean(key)));
            let is_changed = outcome.kind != OutcomeKind::AlreadyGone;
            let holder = held.get(outcome.target.key()).copied().flatten();
            let held_by = match intent {
                _ if is_changed && is_with(key, &gone, &replaced) => Some(by),
                Some(_) if holder != intent => holder,
                _ if was_clean && is_changed => Some(by),
                _ => intent,
            };
            Standing {
                held_by,
                ..Standing::new(outcome.target)
            }
        });
        Ok(back.collect())
    }

    /// Lists the targets at which a redo replaced what somebody had made of them: only the redo has that, and what it came out
    /// of is empty. Both names of what was moved go by one recipe.
    fn replaced(
        &self,
        effect: &Effect,
        outcomes: &[TargetOutcome],
    ) -> Result<BTreeSet<Key>, EngineError> {
        let replaced = outcomes.iter().filter(|it| is_replaced(&it.kind));
        let mut replaced: BTreeSet<Key> = replaced.map(|it| it.target.key().clone()).collect();
        let files = self.as_files(effect)?;
        let (false, Some(files)) = (replaced.is_empty(), files) else {
            return Ok(replaced);
        };
        let changes = self.files.changes(&files)?.into_iter();
        let moves = changes.filter_map(|change| Some([change.from?, change.path].map(Key::from)));
        let moves: Vec<[Key; 2]> = moves.collect();
        loop {
            let count = replaced.len();
            for names in &moves {
                if names.iter().any(|name| replaced.contains(name)) {
                    replaced.extend(names.iter().cloned());
                }
            }
            if replaced.len() == count {
                return Ok(replaced);
            }
        }
    }
}

impl Engine {
    /// Replaces what was foreseen of the targets that somebody else changed at once by what a second look finds. What is
    /// as it was to be stays so: of a key, somebody may have changed another one of the same file.
    pub(super) fn look_again(
        &self,
        work: &Work<'_>,
        unlike: &[TargetOutcome],
        outcomes: &mut [TargetOutcome],
    ) -> Result<(), EngineError> {
        if unlike.is_empty() {
            return Ok(());
        }
        // It has happened, also where nobody can look at it any more.
        let examined = self.driver_of(&work.effect)?.examine(&work.effect, false);
        let examined = examined.unwrap_or_default();
        let found: HashMap<Target, &State> = work
            .examined(&examined)
            .into_iter()
            .filter_map(|(target, found)| Some((target, &found?.state)))
            .collect();
        for told in work.spread(unlike) {
            let OutcomeKind::Overtaken { mut why } = told.kind else {
                continue;
            };
            match found.get(&told.target) {
                Some(State::Before) => continue,
                Some(State::After) => why.push_str(": it is again what it was"),
                Some(State::Other { .. }) | None => {}
            }
            if let Some(outcome) = outcomes.iter_mut().find(|it| it.target == told.target) {
                outcome.kind = OutcomeKind::Overtaken { why };
            }
        }
        Ok(())
    }

    /// Finds the targets of a redo that are already as it would make them, and that must not be taken back again: what they
    /// were left the store with the undo and somebody replaced it since, or was the work of an operation that is undone; or
    /// it is another operation that made them so; or somebody made them so and more, like a directory with files in it.
    pub(super) fn mark_left(
        &self,
        work: &Work<'_>,
        outcomes: &mut [TargetOutcome],
    ) -> Result<(), EngineError> {
        let is_found = |outcome: &TargetOutcome| outcome.kind == OutcomeKind::AlreadyGone;
        let found: BTreeSet<Key> = outcomes
            .iter()
            .filter(|outcome| is_found(outcome))
            .map(|outcome| outcome.target.key().clone())
            .collect();
        let (false, Some(about)) = (found.is_empty(), work.operation.undoes) else {
            return Ok(());
        };
        let first = self.store.outcomes_of(about, work.operation.id)?;
        mark_never_taken(&first, outcomes);
        let is_clean = |key: &Key| is_clean(&first, key);
        let again = self.taken_again(work, &found)?;
        let then: HashMap<&Target, &OutcomeKind> =
            again.iter().map(|it| (&it.target, &it.kind)).collect();
        let undone = self.undone_bases(about)?;
        for outcome in outcomes.iter_mut().filter(|outcome| is_found(outcome)) {
            let base = undone
                .iter()
                .find(|(_, it)| it.overlap(&outcome.target).is_some());
            let key = outcome.target.key();
            let other = self.store.done_since(key, work.operation.lsn, about)?;
            let why = match (base, other, then.get(&outcome.target)) {
                (Some((id, _)), ..) => format!("{}, which it was built on, is undone", id.short()),
                (None, Some(id), _) => format!("{} did that since", id.short()),
                (None, None, Some(OutcomeKind::Failed { why })) => why.clone(),
                // If the undo found it as it had to be, somebody has made this since.
                (None, None, Some(OutcomeKind::Conflict { why })) if is_clean(key) => why.clone(),
                (None, None, _) => continue,
            };
            outcome.kind = OutcomeKind::Left { why };
        }
        Ok(())
    }

    /// Gives the effect that an undo took back: the undo of a redo would be by it.
    pub(super) fn effect_before(&self, work: &Work<'_>) -> Result<Option<Effect>, EngineError> {
        let undo = work.operation;
        let Some(about) = undo.undoes else {
            return Ok(None);
        };
        let holder = self.store.undone_with(undo.id)?.unwrap_or(about);
        Ok(Some(self.store.effect(holder)?))
    }

    /// Says what would come of taking again what an undo took, as the names stand now.
    fn taken_again(
        &self,
        work: &Work<'_>,
        keys: &BTreeSet<Key>,
    ) -> Result<Vec<TargetOutcome>, EngineError> {
        let Some(effect) = self.effect_before(work)? else {
            return Ok(Vec::new());
        };
        let how = How {
            only: Some(keys),
            is_partial: true,
            ..How::default()
        };
        let driver = self.driver_of(&effect)?;
        let again = driver.prepare_undo(self.next_id(), &effect, how)?;
        Ok(again.outcomes)
    }

    /// Tells whether an undo found a target as the operation had left it.
    pub(super) fn was_clean(&self, work: &Work<'_>, key: &Key) -> Result<bool, EngineError> {
        let undo = work.operation;
        let first = match undo.undoes {
            Some(about) => self.store.outcomes_of(about, undo.id)?,
            None => Vec::new(),
        };
        Ok(is_clean(&first, key))
    }

    /// Lists the targets that an operation was built on and that are not in effect any more.
    fn undone_bases(&self, id: OperationId) -> Result<Vec<(OperationId, Target)>, EngineError> {
        let operation = self.store.operation(id)?;
        let edges = operation.map(|operation| operation.depends_on);
        let mut undone = Vec::new();
        for edge in edges.into_iter().flatten() {
            let Some(base) = self.store.operation(edge.on)? else {
                continue;
            };
            if edge.reason.is_of_targets() && !base.verb.is_reversal() {
                let gone = base
                    .targets
                    .into_iter()
                    .filter(|standing| !standing.is_in_effect());
                undone.extend(gone.map(|standing| (edge.on, standing.target)));
            }
        }
        Ok(undone)
    }
}

/// What an undo had found as before already is not brought back by taking it back: nobody kept what it was.
fn mark_never_taken(first: &[TargetOutcome], outcomes: &mut [TargetOutcome]) {
    let never: HashSet<&Key> = first
        .iter()
        .filter(|outcome| outcome.kind == OutcomeKind::AlreadyGone)
        .map(|outcome| outcome.target.key())
        .collect();
    for outcome in outcomes {
        if outcome.kind == OutcomeKind::AlreadyGone && never.contains(outcome.target.key()) {
            let why = "it was as before already when it was undone, so nothing was kept".into();
            outcome.kind = OutcomeKind::Left { why };
        }
    }
}

fn is_clean(first: &[TargetOutcome], key: &Key) -> bool {
    let then = first.iter().find(|it| it.target.key() == key);
    then.is_none_or(|then| was_as_left(&then.kind))
}

/// Tells whether an undo found a target as the operation had left it. What became of it afterwards is another matter.
const fn was_as_left(kind: &OutcomeKind) -> bool {
    matches!(
        kind,
        OutcomeKind::Restored | OutcomeKind::Compensated | OutcomeKind::Overtaken { .. }
    )
}

/// Tells whether a target is one of some, or went or comes as one with one of them.
fn is_with(key: &Key, gone: &BTreeSet<Key>, some: &BTreeSet<Key>) -> bool {
    let is_in = |key: &Key, tree: &Key| gone.contains(tree) && key.is_at_or_below(tree);
    let mut some = some.iter();
    some.any(|other| other == key || is_in(other, key) || is_in(key, other))
}

/// Tells whether a redo replaced what somebody had made of a target.
const fn is_replaced(kind: &OutcomeKind) -> bool {
    match kind {
        OutcomeKind::Overwritten { .. } | OutcomeKind::Merged | OutcomeKind::Incomplete { .. } => {
            true
        }
        OutcomeKind::Restored
        | OutcomeKind::Compensated
        | OutcomeKind::Overtaken { .. }
        | OutcomeKind::AlreadyGone
        | OutcomeKind::Left { .. }
        | OutcomeKind::Skipped { .. }
        | OutcomeKind::Conflict { .. }
        | OutcomeKind::Failed { .. }
        | OutcomeKind::InDoubt { .. } => false,
    }
}

/// Says of each target what became of it. What the undo itself speaks of does not come with its directory: that may have been
/// needed for something else.
fn mapped_to<'t>(
    undo: &Operation,
    targets: impl Iterator<Item = &'t backout_model::Target>,
    outcomes: &[TargetOutcome],
) -> Vec<TargetOutcome> {
    let told = super::work::Told::new(outcomes.iter().map(|it| (&it.target, &it.kind)));
    let own: HashSet<&Key> = undo.targets.iter().map(|it| it.target.key()).collect();
    let each = targets.filter_map(|target| {
        let kind = if own.contains(target.key()) {
            told.exactly(target)?
        } else {
            told.of(target)?
        };
        Some(TargetOutcome::new(target.clone(), kind.clone()))
    });
    each.collect()
}
