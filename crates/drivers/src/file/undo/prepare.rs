//! Preparing an undo: every target is judged and its way back staged before anything is touched.
//!
//! Everything that an undo replaces is kept in its own recipe. Without force or a word for partial undos, one target that
//! cannot be taken back means that nothing is.

use std::collections::{HashMap, HashSet};

use backout_files::said::said_of_barred;
use backout_model::ports::{How, OnConflict, PreparedUndo, hold_back};
use backout_model::{Effect, OperationId, OutcomeKind, TargetOutcome, TargetPath};

use super::dress::{Dressed, dressed};
use super::outcomes_of;
use super::select::{chosen, is_clean_tree};
use crate::file::before_image::Keeper;
use crate::file::compare::Current;
use crate::file::context::FileContext;
use crate::file::error::FileError;
use crate::file::execute::{Step, is_closed, tidy::tidy};
use crate::file::judge::{State, judge_all};
use crate::file::listing::has_strangers;
use crate::file::locks::Locks;
use crate::file::plan::{parents_of, prepared};
use crate::file::recipe::{Change, FileCompletion, FileRecipe, Image, Kind, Numbers};
use crate::file::stage::Staged;
use crate::file::sys::Dir;

/// Prepares the operation that takes `effect` back.
pub(crate) fn prepare_undo(
    context: &FileContext,
    id: OperationId,
    effect: &Effect,
    how: How<'_>,
) -> Result<PreparedUndo<Staged>, FileError> {
    let recipe = FileRecipe::decode(&effect.recipe)?;
    let completion = FileCompletion::of(effect)?;
    if how.is_unfinished {
        tidy(context, &recipe)?;
    }
    // Each is judged, made and put in place.
    context.watch.total(recipe.changes.len() as u64 * 3);
    let states = judge_all(context, &recipe, &completion)?;
    let chosen = chosen(&recipe, &states, how.only)?;
    let numbered = recipe.changes.iter().enumerate();
    let meant = numbered.filter(|(index, _)| chosen.contains(index));
    let meant: Vec<&Change> = meant.map(|(_, change)| change).collect();
    let mut undo = Undo {
        context,
        id,
        how,
        keeper: Keeper::new(context, id),
        steps: Vec::new(),
        open: 0,
        whole: whole_trees(&recipe, &completion),
        left_at: left_at(&recipe, &completion),
        returning: returning(meant.iter().copied()),
        names: meant.iter().map(|change| change.path()).collect(),
        meant,
        listed: recipe
            .changes
            .iter()
            .map(|change| change.path().clone())
            .collect(),
        rewritten: recipe.rewritten(),
        dressed: dressed(
            &recipe.changes,
            &states,
            &chosen,
            how.on_conflict == OnConflict::Force,
        )?,
        changes: &recipe.changes,
    };
    undo.forget_trees_without_depot()?;
    undo.forget_trees_out_of_slots();
    if how.is_partial || how.only.is_some() {
        undo.keep_clean_trees(&recipe, &states, &chosen)?;
    }
    let mut outcomes = Vec::new();
    let mut stay = Vec::new();
    let judged = std::iter::zip(&recipe.changes, states).enumerate().rev();
    for (index, (change, state)) in judged {
        context.watch.advance(1);
        if !chosen.contains(&index) {
            stay.extend((state != State::Before).then_some(change));
            continue;
        }
        let is_shared = recipe.shared.contains_key(&index);
        let kind = undo.take_back(change, state, is_shared)?;
        if let Change::Move { from, .. } = change
            && !kind.is_taken_back()
        {
            undo.keep_room(from, &mut outcomes);
        }
        stay.extend((!kind.is_taken_back()).then_some(change));
        outcomes.extend(outcomes_of(change, &kind).into_iter().rev());
        context.reach("file.judged")?;
    }
    outcomes.reverse();
    undo.leave_homes(&recipe, &completion, &chosen)?;
    undo.finish(&recipe, &completion, outcomes, &stay)
}

/// An undo in the making.
pub(super) struct Undo<'t> {
    pub(super) context: &'t FileContext,
    pub(super) id: OperationId,
    pub(super) how: How<'t>,
    pub(super) keeper: Keeper<'t>,
    pub(super) steps: Vec<Step>,
    pub(super) open: usize,
    /// New directories of the effect that can be taken away whole.
    pub(super) whole: HashMap<TargetPath, bool>,
    /// When the effect last changed names in a directory.
    pub(super) left_at: HashMap<TargetPath, i128>,
    /// Files that were kept and come back, by their number.
    pub(super) returning: HashMap<u64, TargetPath>,
    /// Every name that the effect changed.
    pub(super) listed: HashSet<TargetPath>,
    /// The inodes that the effect changed in place.
    pub(super) rewritten: Numbers,
    /// The files whose mode or owner this undo puts back.
    pub(super) dressed: Dressed<'t>,
    /// All that the effect did.
    pub(super) changes: &'t [Change],
    /// The part of it that this undo takes back.
    pub(super) meant: Vec<&'t Change>,
    /// The names that it is about.
    pub(super) names: HashSet<&'t TargetPath>,
}

impl Undo<'_> {
    /// Tells whether what others changed is replaced.
    pub(super) fn is_forced(&self) -> bool {
        self.how.on_conflict == OnConflict::Force
    }

    fn take_back(
        &mut self,
        change: &Change,
        state: State,
        is_shared: bool,
    ) -> Result<OutcomeKind, FileError> {
        let state = match state {
            State::Other { .. } if self.is_torn(change)? => State::After,
            State::Before | State::After | State::Other { .. } => state,
        };
        if let Some(kind) = self.part_of_whole(change, &state) {
            return Ok(kind);
        }
        match change {
            Change::Set {
                path,
                before,
                after,
            } => self.take_back_set(path, (before, after), state, is_shared),
            Change::Move {
                from,
                to,
                node,
                identity,
                replaced,
                ..
            } => self.take_back_move((from, to), (*node, identity), replaced, state),
            Change::Retouch {
                path,
                before,
                after,
                node,
            } => self.take_back_retouch((path, *node), before, after, state),
            Change::Rewrite {
                path,
                ino,
                before,
                after,
            } => self.take_back_rewrite((path, *ino), (before, after), state),
        }
    }

    /// Takes away whole only those new directories of which all goes.
    fn keep_clean_trees(
        &mut self,
        recipe: &FileRecipe,
        states: &[State],
        chosen: &HashSet<usize>,
    ) -> Result<(), FileError> {
        let mut clean = HashMap::new();
        for (root, is_clean) in std::mem::take(&mut self.whole) {
            if is_clean_tree(&root, recipe, states, chosen) && !has_strangers(&root, &self.listed)?
            {
                clean.insert(root, is_clean);
            }
        }
        self.whole = clean;
        Ok(())
    }

    /// Where there is no depot, new directories are taken away entry by entry. So are those that are closed to their owner: they
    /// could not leave.
    fn forget_trees_without_depot(&mut self) -> Result<(), FileError> {
        for path in self.whole.keys().cloned().collect::<Vec<_>>() {
            let can_park = match Dir::of(&path) {
                Ok(place) => {
                    let is_closed = place.node()?.is_some_and(|node| is_closed(&node));
                    !is_closed && self.keeper.can_park(&place.dir)?
                }
                // Nothing of it is there.
                Err(error) if error.leads_nowhere() => false,
                Err(error) => return Err(error),
            };
            if !can_park {
                self.whole.remove(&path);
            }
        }
        Ok(())
    }

    /// What it took out of slots goes back to them, each by itself: to whoever holds it, nothing happened, and it can come out
    /// again without the rest.
    fn forget_trees_out_of_slots(&mut self) {
        let is_taken = |change: &&Change| {
            matches!(
                change,
                Change::Set {
                    after: Image::Kept { .. },
                    ..
                }
            )
        };
        let taken = self.changes.iter().filter(is_taken);
        let taken: HashSet<TargetPath> =
            taken.flat_map(|change| change.path().ancestors()).collect();
        self.whole.retain(|root, _| !taken.contains(root));
    }

    /// Tells whether a name's directory is there, or is brought back by a step of this very undo.
    pub(super) fn has_directory(&self, current: &Current) -> bool {
        let parent = current.path.parent();
        let is_parent = |step: &Step| match &step.change {
            Change::Set { path, after, .. } => {
                Some(path) == parent.as_ref() && after.is_directory()
            }
            Change::Move { to, .. } => Some(to) == parent.as_ref(),
            Change::Retouch { .. } | Change::Rewrite { .. } => false,
        };
        current.place.is_some() || self.steps.iter().any(is_parent)
    }

    /// Judges an entry of a new directory that will be taken away whole.
    fn part_of_whole(&mut self, change: &Change, state: &State) -> Option<OutcomeKind> {
        let root = change
            .path()
            .ancestors()
            .find(|above| self.whole.contains_key(above))?;
        Some(match state {
            State::Before => OutcomeKind::AlreadyGone,
            State::After => OutcomeKind::Restored,
            State::Other { why } if self.is_forced() => {
                OutcomeKind::Overwritten { why: why.clone() }
            }
            State::Other { why } => {
                self.whole.insert(root, false);
                OutcomeKind::Conflict { why: why.clone() }
            }
        })
    }

    /// Turns what a flag forbids into a conflict, before anything is touched, and takes its steps out.
    fn refuse_locked(&mut self, recipe: &FileRecipe, outcomes: &mut [TargetOutcome]) -> bool {
        let mut locks = Locks::of(recipe.own_directories());
        let mut locked: HashMap<TargetPath, String> = HashMap::new();
        self.steps.retain(|step| {
            let barred = |locks: &Locks| {
                let directory = locks.barred(&step.change)?;
                Some(said_of_barred(&directory))
            };
            let Some(why) = locks.why(&step.change).or_else(|| barred(&locks)) else {
                return true;
            };
            if let Change::Move { from, .. } = &step.change {
                locked.insert(from.clone(), why.clone());
            }
            locked.insert(step.change.path().clone(), why);
            false
        });
        for outcome in outcomes {
            if let Some(why) = outcome.target.file().and_then(|path| locked.get(path)) {
                outcome.kind = OutcomeKind::Conflict { why: why.clone() };
            }
        }
        !locked.is_empty()
    }

    /// A tree that a step takes something out of before it goes, or brings something into when it has come, is not what was
    /// listed.
    fn forget_listings(&mut self) {
        let mut homes: HashSet<TargetPath> = HashSet::new();
        for step in &mut self.steps {
            if let Change::Set { path, before, .. } = &mut step.change
                && homes.contains(path)
            {
                before.forget_listing();
            }
            homes.extend(homes_of(&step.change));
        }
        homes.clear();
        for step in self.steps.iter_mut().rev() {
            if let Change::Set { path, after, .. } = &mut step.change
                && homes.contains(path)
            {
                after.forget_listing();
            }
            homes.extend(homes_of(&step.change));
        }
    }

    fn finish(
        mut self,
        recipe: &FileRecipe,
        completion: &FileCompletion,
        mut outcomes: Vec<TargetOutcome>,
        stay: &[&Change],
    ) -> Result<PreparedUndo<Staged>, FileError> {
        let is_locked = self.refuse_locked(recipe, &mut outcomes);
        let is_whole = outcomes.iter().all(|outcome| outcome.kind.is_taken_back());
        let goes_on = self.how.is_partial || self.is_forced() && !is_locked;
        if !is_whole && !goes_on {
            self.steps.clear();
            hold_back(&mut outcomes);
        }
        self.forget_listings();
        for (number, step) in self.steps.iter_mut().enumerate() {
            step.number = number;
        }
        let mut parents = parents_of(self.steps.iter().map(|step| &step.change))?;
        if !is_locked {
            let is_all = is_whole && self.how.only.is_none();
            self.put_back_times(&mut parents, (recipe, completion), stay, is_all)?;
            self.leave_times_of_others(&mut parents);
        }
        self.context.reach("file.undo-prepared")?;
        let own = Some(recipe.own_directories());
        let prepared = prepared(self.context, self.id, self.keeper, self.steps, parents, own)?;
        Ok(PreparedUndo { prepared, outcomes })
    }
}

/// Lists the directories above the names of a change.
fn homes_of(change: &Change) -> Vec<TargetPath> {
    let old = match change {
        Change::Move { from, .. } => Some(from),
        Change::Set { .. } | Change::Retouch { .. } | Change::Rewrite { .. } => None,
    };
    let names = std::iter::once(change.path()).chain(old);
    names.flat_map(TargetPath::ancestors).collect()
}

/// Finds the files that an undo takes out of their slots, moves back or writes into.
fn returning<'r>(changes: impl Iterator<Item = &'r Change>) -> HashMap<u64, TargetPath> {
    let mut all = HashMap::new();
    for change in changes {
        match change {
            Change::Set { path, before, .. } => all.extend(kept_number(before, path)),
            Change::Rewrite { path, ino, .. } => drop(all.insert(*ino, path.clone())),
            Change::Move {
                from,
                to,
                identity,
                node,
                replaced,
                ..
            } => {
                all.extend(kept_number(replaced, to));
                if *node != Kind::Directory {
                    all.insert(identity.ino, from.clone());
                }
            }
            Change::Retouch { .. } => {}
        }
    }
    all
}

/// Gives the number of a kept inode that is no directory, with the name that it comes back to.
fn kept_number(image: &Image, path: &TargetPath) -> Option<(u64, TargetPath)> {
    let Image::Kept { identity, node, .. } = image else {
        return None;
    };
    (*node != Kind::Directory).then(|| (identity.ino, path.clone()))
}

/// Tells when an effect last changed names in each directory, by the directory's own time.
fn left_at(recipe: &FileRecipe, completion: &FileCompletion) -> HashMap<TargetPath, i128> {
    let each = std::iter::zip(&recipe.parents, &completion.parents);
    // An undo gives directories the times that they had before.
    let each = each.filter(|(parent, _)| parent.after.is_none());
    let known = each.filter_map(|(parent, left)| Some((parent.path.clone(), left.as_ref()?.0)));
    known.collect()
}

/// Finds the new directories whose entries came with them and with nothing else.
fn whole_trees(recipe: &FileRecipe, completion: &FileCompletion) -> HashMap<TargetPath, bool> {
    let mut roots: HashMap<TargetPath, bool> = HashMap::new();
    let mut filled = HashSet::new();
    let returning = returning(recipe.changes.iter());
    let returns = |index: usize| {
        let left = completion.identity(index);
        left.is_some_and(|left| returning.contains_key(&left.ino))
    };
    for (index, change) in recipe.changes.iter().enumerate() {
        let path = change.path();
        let root = path
            .ancestors()
            .filter(|above| roots.contains_key(above))
            .last();
        match (root, change) {
            // A kept tree must not go on sharing a file with what stays.
            (
                Some(root),
                Change::Set {
                    after: Image::Linked { to, identity, .. },
                    ..
                },
            ) if identity.is_some() || !to.is_below(&root) => drop(roots.remove(&root)),
            (Some(root), Change::Set { after, .. }) if !after.is_directory() && returns(index) => {
                roots.remove(&root);
            }
            (Some(root), Change::Set { .. }) => drop(filled.insert(root)),
            (Some(root), Change::Move { .. } | Change::Retouch { .. } | Change::Rewrite { .. }) => {
                roots.remove(&root);
            }
            (None, change) if change.is_new_directory() => drop(roots.insert(path.clone(), true)),
            (None, _) => {}
        }
        if let Change::Move { from, .. } = change {
            roots.retain(|root, _| !from.is_below(root));
        }
    }
    roots.retain(|root, _| filled.contains(root));
    roots
}
