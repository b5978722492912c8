//! Which changes of an effect are taken back, if not all.

use std::collections::{BTreeSet, HashMap, HashSet};

use backout_model::{Key, TargetPath};

use crate::file::judge::State;
use crate::file::recipe::{Change, FileRecipe};

/// Gives the numbers of the changes that are meant, with the directories that what comes back needs.
pub(super) fn chosen(
    recipe: &FileRecipe,
    states: &[State],
    only: Option<&BTreeSet<Key>>,
) -> HashSet<usize> {
    let Some(only) = only else {
        return (0..recipe.changes.len()).collect();
    };
    let meant = with_moved(&recipe.changes, only);
    let is_meant = |change: &Change| match change {
        Change::Move { from, to, .. } => meant.contains(from) || meant.contains(to),
        Change::Set { path, .. } | Change::Retouch { path, .. } | Change::Rewrite { path, .. } => {
            meant.contains(path)
        }
    };
    let numbered = || recipe.changes.iter().enumerate();
    let mut chosen: HashSet<usize> = numbered()
        .filter(|(_, change)| is_meant(change))
        .map(|(index, _)| index)
        .collect();
    let above: BTreeSet<TargetPath> = numbered()
        .filter(|(index, _)| chosen.contains(index))
        .filter_map(|(_, change)| comes_back_to(change))
        .flat_map(TargetPath::ancestors)
        .collect();
    for (index, change) in numbered() {
        let is_gone = matches!(change, Change::Set { before, after, .. }
            if before.is_directory() && !after.is_directory());
        let is_needed = is_gone && above.contains(change.path());
        if is_needed && states.get(index) == Some(&State::After) {
            chosen.insert(index);
        }
    }
    chosen
}

/// Adds the other names of what was moved, from one move to the next: what has a name must leave it before what had it
/// comes back.
pub(crate) fn with_moved<'r>(
    changes: &'r [Change],
    only: &'r BTreeSet<Key>,
) -> HashSet<&'r TargetPath> {
    let mut others: HashMap<&TargetPath, Vec<&TargetPath>> = HashMap::new();
    for change in changes {
        if let Change::Move { from, to, .. } = change {
            others.entry(from).or_default().push(to);
            others.entry(to).or_default().push(from);
        }
    }
    let mut waiting: Vec<&TargetPath> = only.iter().filter_map(Key::file).collect();
    let mut meant: HashSet<&TargetPath> = waiting.iter().copied().collect();
    while let Some(name) = waiting.pop() {
        let found = others.get(name).into_iter().flatten().copied();
        waiting.extend(found.filter(|other| meant.insert(other)));
    }
    meant
}

/// Gives the name that something comes back to.
fn comes_back_to(change: &Change) -> Option<&TargetPath> {
    match change {
        Change::Set { path, before, .. } => (!before.is_absent()).then_some(path),
        Change::Move { from, .. } => Some(from),
        Change::Retouch { .. } | Change::Rewrite { .. } => None,
    }
}

/// Tells whether a new directory can go whole: all of it is meant, and nobody has changed any of it.
pub(super) fn is_clean_tree(
    root: &TargetPath,
    recipe: &FileRecipe,
    states: &[State],
    chosen: &HashSet<usize>,
) -> bool {
    let inside = recipe
        .changes
        .iter()
        .enumerate()
        .filter(|(_, change)| change.path() == root || change.path().is_below(root));
    let mut inside = inside.map(|(index, _)| index);
    inside.all(|index| {
        let is_as_made = !matches!(states.get(index), Some(State::Other { .. }) | None);
        chosen.contains(&index) && is_as_made
    })
}
