//! Both sides of every name that an effect changed.

use std::collections::BTreeMap;

use backout_model::{Effect, TargetPath};

use super::shared::{Inodes, Side};
use super::{Body, Was};
use crate::file::compare::{Current, differs_in_meta};
use crate::file::error::FileError;
use crate::file::judge::differs_where_changed;
use crate::file::recipe::{Change, FileCompletion, FileRecipe, Identity, Image, Kind, Meta};
use crate::file::sys::Place;
use crate::file::undo::put_back_changed;

/// A name with what it was before and after an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// The name; of what was moved, the new one.
    pub path: TargetPath,
    /// The old name of what was moved.
    pub from: Option<TargetPath>,
    /// What it was; none if nothing was there.
    pub before: Option<Was>,
    /// What it became; none if nothing is left.
    pub after: Option<Was>,
    /// Whether nobody noted what it became: it came with a tree, and was looked for in that as the tree is now.
    pub is_as_now: bool,
}

impl FileChange {
    /// Of a name that was not moved.
    pub const fn new(path: TargetPath, before: Option<Was>, after: Option<Was>) -> Self {
        Self {
            path,
            from: None,
            before,
            after,
            is_as_now: false,
        }
    }

    /// Says how mode, owner or attributes differ from what the effect left, as far as an undo of it looks at them. Of what it
    /// only gave another mode or owner, that is what it changed.
    pub fn differs_in_looks(&self, found: &Was) -> Option<String> {
        let after = self.after.as_ref()?;
        let (left, now) = after.meta.as_ref().zip(found.meta.as_ref())?;
        match self.before.as_ref().filter(|before| before.is_dress) {
            Some(before) => differs_where_changed(now, left, before.meta.as_ref()?),
            None => differs_in_meta(now, left, after.kind),
        }
    }

    /// Gives what a name is when the mode and owner that the effect changed are put back.
    #[must_use]
    pub fn put_back_looks(&self, found: Was) -> Was {
        let side = |side: &Option<Was>| side.as_ref().and_then(|was| was.meta.clone());
        let meta = found.meta.as_ref();
        let sides = side(&self.before).zip(side(&self.after));
        let back = meta.zip(sides.as_ref());
        let meta = back.map(|(now, (before, after))| put_back_changed(now, before, after));
        Was {
            meta: meta.or(found.meta),
            ..found
        }
    }
}

/// Lists what an effect changed, trees with all that is in them.
pub(crate) fn changes_of(effect: &Effect) -> Result<Vec<FileChange>, FileError> {
    let recipe = FileRecipe::decode(&effect.recipe)?;
    let completion = FileCompletion::of(effect)?;
    let inodes = Inodes::of(&recipe, &completion);
    let mut all = Vec::new();
    for (index, change) in recipe.changes.iter().enumerate() {
        match change {
            Change::Set {
                path,
                before,
                after,
            } => add_sides(&inodes, (index, path), (before, after), &mut all)?,
            Change::Move {
                from,
                to,
                node,
                identity,
                replaced,
            } => {
                if !replaced.is_absent() {
                    add_sides(&inodes, (index, to), (replaced, &Image::Absent), &mut all)?;
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
pub(crate) fn sides_of(effect: &Effect) -> Result<Vec<FileChange>, FileError> {
    let mut sides: BTreeMap<TargetPath, FileChange> = BTreeMap::new();
    // A name may change more than once: the first before and the last after count.
    let mut note = |change: FileChange| {
        let known = sides.entry(change.path.clone());
        let known = known.or_insert_with(|| FileChange::new(change.path, change.before, None));
        (known.after, known.is_as_now) = (change.after, change.is_as_now);
    };
    for mut change in changes_of(effect)? {
        if let Some(from) = change.from.take() {
            note(FileChange::new(from, change.before.take(), None));
        }
        note(change);
    }
    Ok(sides.into_values().collect())
}

/// Adds a name, and what is in trees that were kept as one.
fn add_sides(
    inodes: &Inodes<'_>,
    (index, path): (usize, &TargetPath),
    (before, after): (&Image, &Image),
    all: &mut Vec<FileChange>,
) -> Result<(), FileError> {
    all.push(FileChange::new(
        path.clone(),
        inodes.image(index, path, before, Side::Before),
        inodes.image(index, path, after, Side::After),
    ));
    let mut inside: BTreeMap<TargetPath, (Option<Was>, Option<Was>)> = BTreeMap::new();
    for (name, was) in entries(path, before)?.0 {
        let was = inodes.told(&name, was, Side::Before);
        inside.entry(name).or_default().0 = Some(was);
    }
    let (entries, is_as_now) = entries(path, after)?;
    for (name, was) in entries {
        let was = inodes.told(&name, was, Side::After);
        inside.entry(name).or_default().1 = Some(was);
    }
    let changes = inside.into_iter();
    all.extend(changes.map(|(name, (before, after))| FileChange {
        is_as_now,
        ..FileChange::new(name, before, after)
    }));
    Ok(())
}

/// Lists what is in a tree that was kept as one: it is in its slot, or back at its path. Tells whether it is back.
fn entries(path: &TargetPath, image: &Image) -> Result<(Vec<(TargetPath, Was)>, bool), FileError> {
    let Image::Kept {
        slot,
        node: Kind::Directory,
        identity,
        ..
    } = image
    else {
        return Ok((Vec::new(), false));
    };
    let mut all = Vec::new();
    for (at, is_back) in [(&slot.path(), false), (path, true)] {
        let current = Current::at(at)?;
        if let (Some(place), Some(node)) = (&current.place, &current.node)
            && node.is_kept(Kind::Directory, identity)
        {
            walk(place, path, &mut all)?;
            return Ok((all, is_back));
        }
    }
    Ok((all, false))
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
        all.push((path.clone(), Was::there(&entry, &node)?));
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
        body: match kind {
            Kind::File => Body::Somewhere {
                at: vec![to.clone(), from.clone()],
                identity: Some(*identity),
                digest: None,
            },
            _ => Body::None,
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
        body: match kind {
            Kind::File => Body::SameAs(path.clone()),
            _ => Body::None,
        },
        identity: left.copied(),
        shares: None,
        is_dress: true,
        made_at: None,
        made_from: None,
    }
}
