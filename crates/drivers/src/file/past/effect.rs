//! Both sides of every name that an effect changed.

use std::collections::{BTreeMap, HashMap};

use backout_model::{Effect, TargetPath};

use super::shared::{Inodes, Side};
use super::{Body, FileChange, Was, inside, was_there};
use crate::file::compare::Current;
use crate::file::context::FileContext;
use crate::file::error::FileError;
use crate::file::listing::listing;
use crate::file::recipe::{Change, FileCompletion, FileRecipe, Identity, Image, Kind, Meta};
use crate::file::sys::Place;

/// Lists what an effect changed, trees with all that is in them.
pub(crate) fn changes_of(
    context: &FileContext,
    effect: &Effect,
) -> Result<Vec<FileChange>, FileError> {
    let recipe = FileRecipe::decode(&effect.recipe)?;
    changes_in(context, &recipe, &FileCompletion::of(effect)?, true)
}

/// The same. What is in trees that went is left out unless it is wanted.
fn changes_in(
    context: &FileContext,
    recipe: &FileRecipe,
    completion: &FileCompletion,
    with_gone: bool,
) -> Result<Vec<FileChange>, FileError> {
    let inodes = Inodes::of(recipe, completion);
    let trees = Trees {
        context,
        recipe,
        inodes: &inodes,
        with_gone,
    };
    let mut all = Vec::new();
    for (index, change) in recipe.changes.iter().enumerate() {
        match change {
            Change::Set {
                path,
                before,
                after,
            } => trees.add_sides((index, path), (before, after), &mut all)?,
            Change::Move {
                from,
                to,
                node,
                identity,
                replaced,
                ..
            } => {
                if !replaced.is_absent() {
                    trees.add_sides((index, to), (replaced, &Image::Absent), &mut all)?;
                }
                let side = |side| Some(inodes.told(to, moved((from, to), *node, identity), side));
                all.push(FileChange {
                    from: Some(from.clone()),
                    ..FileChange::new(to.clone(), side(Side::Before), side(Side::After))
                });
            }
            Change::Retouch {
                path,
                before,
                after,
                node,
            } => {
                let kind = node.unwrap_or(Kind::File);
                let left = completion.identity(index);
                let side = |meta| Some(retouched(path, kind, meta, left));
                all.push(FileChange::new(path.clone(), side(before), side(after)));
            }
            Change::Rewrite {
                path,
                before,
                after,
                ..
            } => {
                let side = |side| Some(Inodes::written(path, side));
                all.push(FileChange::new(path.clone(), side(before), side(after)));
            }
        }
    }
    Ok(all)
}

/// Lists every name that an effect changed, once, with what others saw before and after it.
pub(crate) fn sides_of(
    context: &FileContext,
    effect: &Effect,
) -> Result<Vec<FileChange>, FileError> {
    Ok(once(changes_of(context, effect)?))
}

/// Lists every name that an effect changed, once, in order. What was in trees that went is not told, nor what went from the place of a
/// directory that the effect moved there afterwards: what is in that belongs there.
pub(super) fn left_by(
    context: &FileContext,
    recipe: &FileRecipe,
    completion: &FileCompletion,
) -> Result<Vec<FileChange>, FileError> {
    let mut changes = changes_in(context, recipe, completion, false)?;
    let moved = changes.iter().enumerate().filter(|(_, it)| {
        let is_directory = it.after.as_ref().is_some_and(Was::is_directory);
        it.from.is_some() && is_directory
    });
    let moved: HashMap<TargetPath, usize> = moved.map(|(at, it)| (it.path.clone(), at)).collect();
    if moved.is_empty() {
        return Ok(once(changes));
    }
    let is_over = |path: &TargetPath, at: usize| {
        let mut above = path.ancestors();
        above.any(|above| moved.get(&above).is_some_and(|later| *later > at))
    };
    for (at, change) in changes.iter_mut().enumerate() {
        change.from = change.from.take().filter(|from| !is_over(from, at));
    }
    let told = changes.into_iter().enumerate();
    let told = told.filter(|(at, it)| it.after.is_some() || !is_over(&it.path, *at));
    Ok(once(told.map(|(_, it)| it).collect()))
}

fn once(changes: Vec<FileChange>) -> Vec<FileChange> {
    let mut sides: BTreeMap<TargetPath, FileChange> = BTreeMap::new();
    // A name may change more than once: the first before and the last after count.
    let mut note = |change: FileChange| {
        let known = sides.entry(change.path.clone());
        let known = known.or_insert_with(|| FileChange::new(change.path, change.before, None));
        (known.after, known.is_as_now) = (change.after, change.is_as_now);
    };
    for mut change in changes {
        if let Some(from) = change.from.take() {
            note(FileChange::new(from, change.before.take(), None));
        }
        note(change);
    }
    sides.into_values().collect()
}

/// What is told of trees that an effect kept or brought as one.
struct Trees<'e> {
    context: &'e FileContext,
    recipe: &'e FileRecipe,
    inodes: &'e Inodes<'e>,
    /// Whether what is in trees that went is told.
    with_gone: bool,
}

impl Trees<'_> {
    /// Adds a name, and what is in trees that were kept as one.
    fn add_sides(
        &self,
        (index, path): (usize, &TargetPath),
        (before, after): (&Image, &Image),
        all: &mut Vec<FileChange>,
    ) -> Result<(), FileError> {
        all.push(FileChange::new(
            path.clone(),
            self.inodes.image(index, path, before, Side::Before),
            self.inodes.image(index, path, after, Side::After),
        ));
        let mut inside: BTreeMap<TargetPath, (Option<Was>, Option<Was>)> = BTreeMap::new();
        let gone = if self.with_gone {
            self.entries(path, before)?.0
        } else {
            Vec::new()
        };
        for (name, was) in gone {
            let was = self.inodes.told(&name, was, Side::Before);
            inside.entry(name).or_default().0 = Some(was);
        }
        let (entries, is_as_now) = self.entries(path, after)?;
        for (name, was) in entries {
            let was = self.inodes.told(&name, was, Side::After);
            inside.entry(name).or_default().1 = Some(was);
        }
        let changes = inside.into_iter();
        all.extend(changes.map(|(name, (before, after))| FileChange {
            is_as_now,
            ..FileChange::new(name, before, after)
        }));
        Ok(())
    }

    /// Lists what was in a tree that was kept as one: what is in its slot, or else what was noted of it. Of what nobody noted
    /// only the names are told, as they are now that the tree is back; tells whether it is so.
    fn entries(
        &self,
        path: &TargetPath,
        image: &Image,
    ) -> Result<(Vec<(TargetPath, Was)>, bool), FileError> {
        let Image::Kept {
            slot,
            node: Kind::Directory,
            identity,
            entries,
            ..
        } = image
        else {
            return Ok((Vec::new(), false));
        };
        let mut all = Vec::new();
        let kept = Current::at(&slot.path())?;
        if let Some(place) = is_tree(&kept, identity) {
            walk(place, path, &mut all)?;
            return Ok((all, false));
        }
        if let Some(told) = inside::told(self.context, self.recipe, slot, path)? {
            return Ok((told, false));
        }
        let back = Current::at(path)?;
        let Some(place) = is_tree(&back, identity) else {
            return Ok((all, false));
        };
        walk(place, path, &mut all)?;
        let is_as_it_was = entries.is_some() && listing(place)? == *entries;
        if !is_as_it_was {
            for (name, was) in &mut all {
                was.body = Body::Lost(format!(
                    "its directory came and went as one, and `{name}` may have changed since"
                ));
                was.identity = None;
            }
        }
        Ok((all, true))
    }
}

/// Finds a kept tree, if this is it.
fn is_tree<'c>(current: &'c Current, identity: &Identity) -> Option<&'c Place> {
    let node = current.node.as_ref();
    let is_it = node.is_some_and(|node| node.is_kept(Kind::Directory, identity));
    current.place.as_ref().filter(|_| is_it)
}

/// Lists what is in a directory, with all below, under the names that it has below `path`.
pub(crate) fn walk(
    place: &Place,
    path: &TargetPath,
    all: &mut Vec<(TargetPath, Was)>,
) -> Result<(), FileError> {
    let dir = place.enter()?;
    for name in dir.names()? {
        let entry = dir.place(&name);
        let Some(node) = entry.node()? else {
            continue;
        };
        let path = path.join(&name);
        all.push((path.clone(), was_there(&entry, &node)?));
        if node.kind == Kind::Directory {
            walk(&entry, &path, all)?;
        }
    }
    Ok(())
}

/// Describes what only got another name.
fn moved((from, to): (&TargetPath, &TargetPath), kind: Kind, identity: &Identity) -> Was {
    Was {
        kind,
        meta: None,
        size: Some(identity.size),
        link: None,
        device: 0,
        body: if kind == Kind::File {
            Body::Somewhere {
                at: vec![to.clone(), from.clone()],
                identity: Some(*identity),
                digest: None,
            }
        } else {
            Body::None
        },
        identity: Some(*identity),
        shares: None,
        is_dress: false,
        made_at: None,
        made_from: None,
    }
}

fn retouched(path: &TargetPath, kind: Kind, meta: &Meta, left: Option<&Identity>) -> Was {
    Was {
        kind,
        meta: Some(meta.clone()),
        size: None,
        link: None,
        device: 0,
        body: if kind == Kind::File {
            Body::SameAs(path.clone())
        } else {
            Body::None
        },
        identity: left.copied(),
        shares: None,
        is_dress: true,
        made_at: None,
        made_from: None,
    }
}
