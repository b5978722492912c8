//! Which changes of an effect are taken back, if not all.

use std::collections::{BTreeSet, HashMap, HashSet};

use backout_model::{Key, TargetPath};

use crate::file::compare::Current;
use crate::file::error::FileError;
use crate::file::judge::State;
use crate::file::recipe::{Change, FileRecipe, Kind};

/// Gives the numbers of the changes that are meant, with the directories that what comes back needs.
pub(super) fn chosen(
    recipe: &FileRecipe,
    states: &[State],
    only: Option<&BTreeSet<Key>>,
) -> Result<HashSet<usize>, FileError> {
    let Some(only) = only else {
        return Ok((0..recipe.changes.len()).collect());
    };
    let meant = with_moved(&recipe.changes, only)?;
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
    Ok(chosen)
}

/// Adds the other names of what was moved, from one move to the next: what has a name must leave it before what had it
/// comes back. So must whatever is in a new directory where a moved one was.
pub(crate) fn with_moved<'r>(
    changes: &'r [Change],
    only: &'r BTreeSet<Key>,
) -> Result<HashSet<&'r TargetPath>, FileError> {
    let mut others: HashMap<&TargetPath, Vec<&TargetPath>> = HashMap::new();
    for change in changes {
        if let Change::Move { from, to, .. } = change {
            others.entry(from).or_default().push(to);
            others.entry(to).or_default().push(from);
        }
    }
    let places = Places::of(changes);
    for (index, change) in changes.iter().enumerate() {
        let name = change.path();
        for (top, counterpart) in places.shared_with(index, name) {
            others.entry(top).or_default().push(name);
            // What is only in one of the two directories goes by itself.
            if Current::at(&counterpart)?.node.is_some() || places.changed.contains(&counterpart) {
                others.entry(name).or_default().push(top);
            }
        }
    }
    let mut waiting: Vec<&TargetPath> = only.iter().filter_map(Key::file).collect();
    let mut meant: HashSet<&TargetPath> = waiting.iter().copied().collect();
    while let Some(name) = waiting.pop() {
        let found = others.get(name).into_iter().flatten().copied();
        waiting.extend(found.filter(|other| meant.insert(other)));
    }
    Ok(meant)
}

/// The places that directories left or came to, each with the number of the move.
struct Places<'r> {
    left: HashMap<&'r TargetPath, (usize, &'r TargetPath)>,
    taken: HashMap<&'r TargetPath, usize>,
    changed: HashSet<&'r TargetPath>,
}

impl<'r> Places<'r> {
    fn of(changes: &'r [Change]) -> Self {
        let (mut left, mut taken) = (HashMap::new(), HashMap::new());
        for (index, change) in changes.iter().enumerate() {
            if let Change::Move {
                from,
                to,
                node: Kind::Directory,
                ..
            } = change
            {
                left.insert(from, (index, to));
                taken.insert(to, index);
            }
        }
        Self {
            left,
            taken,
            changed: changes.iter().map(Change::path).collect(),
        }
    }

    /// Lists the places above a name that held one directory when it was changed, and hold or held another by a move. With
    /// each goes where the same name of the moved directory is now.
    fn shared_with(&self, index: usize, name: &TargetPath) -> Vec<(&'r TargetPath, TargetPath)> {
        if self.left.is_empty() {
            return Vec::new();
        }
        let mut shared = Vec::new();
        for above in name.ancestors() {
            if let Some((&from, &(moved, to))) = self.left.get_key_value(&above)
                && moved < index
            {
                shared.extend(name.rebase(from, to).map(|now| (from, now)));
            }
            if let Some((&to, &moved)) = self.taken.get_key_value(&above)
                && moved > index
            {
                shared.push((to, name.clone()));
            }
        }
        shared
    }
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
