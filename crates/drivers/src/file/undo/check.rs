//! Looking at what was kept, without touching it: would an undo take it?

use std::collections::BTreeMap;
use std::fmt::Display;

use backout_model::ports::LookedAt;
use backout_model::{Effect, Flaw, Key, Slot, TargetPath};

use super::obtain::obtain;
use super::stamps::{changed_below, said_of_changed};
use crate::file::context::FileContext;
use crate::file::error::FileError;
use crate::file::recipe::{Change, FileRecipe, Image, Kind, Numbers, Written};

/// What is wrong with an inode, if something is.
type Finding = Result<Option<Flaw>, FileError>;

/// Looks at each of the inodes that an effect keeps for names that are needed: what they stood for before it. Of a tree that
/// was kept whole every entry is looked at: none may have changed after it was put away.
pub(crate) fn check_kept(
    context: &FileContext,
    effect: &Effect,
    is_needed: &dyn Fn(&Key) -> bool,
) -> Result<Vec<LookedAt>, FileError> {
    let recipe = FileRecipe::decode(&effect.recipe)?;
    let rewritten = recipe.rewritten();
    let mut keepers: BTreeMap<&Slot, Keeper<'_>> = BTreeMap::new();
    let needed = |change: &&Change| is_needed(&Key::from(change.path().clone()));
    for change in recipe.changes.iter().filter(needed) {
        let kept = match change {
            Change::Set { path, before, .. } => {
                before.slot().zip(Some(Keeper::Image(path, before)))
            }
            Change::Move { to, replaced, .. } => {
                replaced.slot().zip(Some(Keeper::Image(to, replaced)))
            }
            Change::Rewrite { before, .. } => {
                before.slot.as_ref().zip(Some(Keeper::Written(before)))
            }
            Change::Retouch { .. } => None,
        };
        if let Some((slot, keeper)) = kept {
            keepers.entry(slot).or_insert(keeper);
        }
    }
    let look = |slot: &Slot, keeper| match keeper {
        Keeper::Image(path, image) => check_image(context, path, image, slot, &rewritten),
        Keeper::Written(written) => Ok(written.lacks(context)?.map(lost)),
    };
    let each = keepers.into_iter();
    let each = each.map(|(slot, keeper)| {
        let unseen = |error| Some(Flaw::Lost(format!("cannot be looked at: {error}")));
        (slot.clone(), look(slot, keeper).unwrap_or_else(unseen))
    });
    Ok(each.collect())
}

/// The part of a recipe that speaks of a kept inode.
enum Keeper<'a> {
    Image(&'a TargetPath, &'a Image),
    Written(&'a Written),
}

fn check_image(
    context: &FileContext,
    path: &TargetPath,
    image: &Image,
    slot: &Slot,
    rewritten: &Numbers,
) -> Finding {
    let obtained = match obtain(context, path, image, false, rewritten)? {
        Ok(obtained) => obtained,
        // What force would take is there.
        Err(why) => {
            let is_there = obtain(context, path, image, true, rewritten)?.is_ok();
            return Ok(Some(if is_there {
                Flaw::Changed(why)
            } else {
                lost(why)
            }));
        }
    };
    let Image::Kept {
        node: Kind::Directory,
        identity,
        ..
    } = obtained.image
    else {
        return Ok(None);
    };
    let changed = changed_below(slot.path().as_path(), &identity, usize::MAX);
    Ok(changed.map(|at| Flaw::Changed(said_of_changed(&at))))
}

fn lost(why: impl Display) -> Flaw {
    Flaw::Lost(format!("cannot be used: {why}"))
}
