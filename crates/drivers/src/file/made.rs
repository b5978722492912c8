//! What looks like something that was moved or kept, and has another number: whether one of our operations made it anew, or
//! somebody put it there.
//!
//! The journal tells: each operation notes the inodes that it left. Nobody asks it but for what looks alike.

use std::cell::OnceCell;
use std::collections::HashMap;

use backout_model::ports::Filter;
use backout_model::{DriverName, Effect, Slot, TargetPath};

use super::compare::Current;
use super::context::FileContext;
use super::recipe::{Change, FileCompletion, FileRecipe, Image, Kind, Numbers};
use super::sys::Dir;

/// Of how many operations since then it is asked what they left.
const OPERATIONS_MAX: usize = 2000;

/// What operations left since the one that is judged.
pub(crate) struct Made<'r> {
    context: &'r FileContext,
    recipe: &'r FileRecipe,
    completion: &'r FileCompletion,
    left: OnceCell<Option<Left>>,
}

/// What is known of it.
#[derive(Debug, Default)]
struct Left {
    /// The inodes that were left under names.
    numbers: Numbers,
    /// Trees that came out of slots as copies: all in them has another number.
    copies: Numbers,
    /// What was changed. A command that puts another directory in the place of one may only tell of what is in it.
    changed: Vec<TargetPath>,
    /// What was taken or brought back by operations that do not say which inodes they left.
    untold: Vec<TargetPath>,
}

impl<'r> Made<'r> {
    pub(crate) const fn since(
        context: &'r FileContext,
        recipe: &'r FileRecipe,
        completion: &'r FileCompletion,
    ) -> Self {
        Self {
            context,
            recipe,
            completion,
            left: OnceCell::new(),
        }
    }

    /// Tells whether what is there, and looks like ours, may be ours. Where that cannot be known, its looks are believed.
    pub(crate) fn is_at(&self, current: &Current) -> bool {
        let (path, Some(node)) = (&current.path, current.node) else {
            return false;
        };
        let number = node.identity.ino;
        // Whoever died says nothing of what he left.
        if self.completion.identities.len() != self.recipe.changes.len() {
            return true;
        }
        let mut own = self.completion.identities.iter().flatten();
        if own.any(|left| left.ino == number) {
            return true;
        }
        let Some(left) = self.left.get_or_init(|| self.read()) else {
            return true;
        };
        let is_in_copy = |above: TargetPath| {
            let node = Dir::of(&above)
                .and_then(|place| place.node())
                .ok()
                .flatten();
            node.is_some_and(|node| left.copies.contains(&node.identity.ino))
        };
        // It may have been called something else above this.
        let is_untold = |name: &TargetPath| {
            let mut parts = path.as_path().iter();
            parts.any(|part| name.as_path().file_name() == Some(part))
        };
        let is_changed_inside = || {
            let mut changed = left.changed.iter();
            node.kind == Kind::Directory && changed.any(|name| name.is_below(path))
        };
        left.numbers.contains(&number)
            || is_changed_inside()
            || left.untold.iter().any(is_untold)
            || !left.copies.is_empty() && path.ancestors().any(is_in_copy)
    }

    /// Reads what operations left; none if nobody knows.
    fn read(&self) -> Option<Left> {
        let journal = self.context.journal.as_ref()?;
        let own = journal.operation(self.recipe.operation).ok()??;
        let filter = Filter {
            after: Some(own.lsn),
            limit: Some(OPERATIONS_MAX),
            ..Filter::default()
        };
        let since = journal.operations(&filter).ok()?;
        if since.len() >= OPERATIONS_MAX {
            return None;
        }
        let mut left = Left::default();
        // Of a slot that was filled several times the oldest word is the last.
        let (mut kept, mut come) = (HashMap::new(), Vec::new());
        for operation in since {
            let effect = journal.effect(operation.id).ok();
            let Some((recipe, completion)) = effect.as_ref().and_then(told) else {
                if operation.verb.is_reversal() {
                    let names = operation.targets.iter();
                    left.untold
                        .extend(names.filter_map(|it| it.target.file().cloned()));
                }
                continue;
            };
            let numbers = completion.identities.iter().flatten();
            left.numbers.extend(numbers.map(|identity| identity.ino));
            for change in recipe.changes {
                left.changed.push(change.path().clone());
                if let Change::Set { before, after, .. } = change {
                    kept.extend(tree_in_slot(&before));
                    come.extend(tree_in_slot(&after));
                }
            }
        }
        come.retain(|(slot, number)| kept.get(slot).is_none_or(|kept| kept != number));
        left.copies
            .extend(come.into_iter().map(|(_, number)| number));
        Some(left)
    }
}

/// Reads what a file operation did, if it says what it left.
fn told(effect: &Effect) -> Option<(FileRecipe, FileCompletion)> {
    if effect.recipe.driver != DriverName::FILE || effect.completion.is_none() {
        return None;
    }
    let recipe = FileRecipe::decode(&effect.recipe).ok()?;
    Some((recipe, FileCompletion::of(effect).ok()?))
}

/// Gives the slot of a kept tree, with the number of the tree.
fn tree_in_slot(image: &Image) -> Option<(Slot, u64)> {
    match image {
        Image::Kept {
            slot,
            node: Kind::Directory,
            identity,
            ..
        } => Some((slot.clone(), identity.ino)),
        Image::Absent
        | Image::File { .. }
        | Image::Symlink { .. }
        | Image::Directory { .. }
        | Image::Special { .. }
        | Image::Linked { .. }
        | Image::Kept { .. }
        | Image::Unkept { .. } => None,
    }
}
