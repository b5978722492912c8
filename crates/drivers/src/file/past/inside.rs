//! What was in a tree that is kept as one, when it went into its slot or came out of it.
//!
//! While a tree is in its slot, everybody can look at it. Once it is back in the world people write in it, and what it
//! was is told by this list and by nothing else. The list has no bytes: those are where they were left, or with whoever
//! replaced them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use backout_model::{Digest, Slot, TargetPath, wide};
use serde::{Deserialize, Serialize};

use super::{Body, Was};
use crate::file::any_bytes::AnyBytes;
use crate::file::before_image::{Keeper, link_target, meta_of};
use crate::file::compare::Current;
use crate::file::context::FileContext;
use crate::file::error::FileError;
use crate::file::kept::look_into;
use crate::file::recipe::{Change, FileRecipe, Identity, Image, Kind, Meta};
use crate::file::sys::Place;

/// A larger tree is not listed: it stays as cheap to remove as a small one.
const LISTED_MAX: usize = 1_000;

/// How many entries one content tells of: so few that it rides with the recipe and needs no room of its own.
const PIECE: usize = 200;

/// Something in a tree.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    /// Its path below the tree.
    at: AnyBytes,
    is: Kind,
    #[serde(with = "wide")]
    ino: u64,
    #[serde(with = "wide")]
    size: u64,
    #[serde(with = "wide")]
    mtime: i128,
    meta: Meta,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    link: Option<AnyBytes>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    device: Option<String>,
}

impl Entry {
    /// Describes it: in the slot of its tree, or back in the world below `path`.
    fn was(self, slot: &Slot, path: &TargetPath) -> (TargetPath, Was) {
        let below = |tree: &TargetPath| {
            let names = self.at.0.split(|byte| *byte == b'/');
            names.fold(tree.clone(), |above, name| {
                above.join(OsStr::from_bytes(name))
            })
        };
        let (kept, path) = (below(&slot.path()), below(path));
        // It is compared with what is kept elsewhere by what is noted; the rest is not asked for.
        let identity = Identity {
            dev: 0,
            ino: self.ino,
            size: self.size,
            mtime: self.mtime,
            ctime: 0,
        };
        let device = self.device.and_then(|number| number.parse().ok());
        let was = Was {
            kind: self.is,
            meta: Some(self.meta),
            size: Some(self.size),
            link: self.link,
            device: device.unwrap_or_default(),
            body: if self.is == Kind::File {
                Body::Somewhere {
                    at: vec![kept, path.clone()],
                    identity: Some(identity),
                    digest: None,
                }
            } else {
                Body::None
            },
            identity: Some(identity),
            shares: None,
            is_dress: false,
            made_at: None,
            made_from: None,
        };
        (path, was)
    }
}

/// Lists the trees that some changes keep or take out of their slots, by the names of those. What is not there, too large or
/// closed to us is left out, and so is a tree that other changes write in.
pub(crate) fn inside_of(
    context: &FileContext,
    keeper: &mut Keeper<'_>,
    changes: &[Change],
) -> Result<BTreeMap<String, Vec<Digest>>, FileError> {
    let mut all = BTreeMap::new();
    for change in changes {
        let (before, after) = match change {
            Change::Set { before, after, .. } => (before, Some(after)),
            Change::Move { replaced, .. } => (replaced, None),
            Change::Retouch { .. } | Change::Rewrite { .. } => continue,
        };
        let path = change.path();
        if let Some((slot, identity)) = tree(before)
            && !changes.iter().any(|change| is_in(change, path))
        {
            let list = listed(&Current::at(path)?, identity)?;
            all.extend(list.map(|list| (slot.name.clone(), list)));
        }
        if let Some((slot, identity)) = after.and_then(tree) {
            let list = listed(&look_into(context, slot)?, identity)?;
            all.extend(list.map(|list| (slot.name.clone(), list)));
        }
    }
    let riding = all.into_iter().filter_map(|(name, list)| {
        let pieces = list.into_iter().map(|piece| {
            let digest = Digest::of(&piece);
            keeper.inline(digest, &piece).then_some(digest)
        });
        Some((name, pieces.collect::<Option<Vec<_>>>()?))
    });
    Ok(riding.collect())
}

/// Describes what was in a tree, under the names that it has below `path`; none if nobody listed it.
pub(super) fn told(
    context: &FileContext,
    recipe: &FileRecipe,
    slot: &Slot,
    path: &TargetPath,
) -> Result<Option<Vec<(TargetPath, Was)>>, FileError> {
    let Some(pieces) = recipe.inside.get(&slot.name) else {
        return Ok(None);
    };
    let mut told = Vec::new();
    for piece in pieces {
        // What damage took is not told, like what nobody listed.
        let Ok(bytes) = context.contents.read(piece) else {
            return Ok(None);
        };
        let entries: Vec<Entry> = serde_json::from_slice(&bytes).map_err(FileError::Unreadable)?;
        told.extend(entries.into_iter().map(|entry| entry.was(slot, path)));
    }
    Ok(Some(told))
}

fn tree(image: &Image) -> Option<(&Slot, &Identity)> {
    let Image::Kept {
        slot,
        node: Kind::Directory,
        identity,
        ..
    } = image
    else {
        return None;
    };
    Some((slot, identity))
}

fn is_in(change: &Change, tree: &TargetPath) -> bool {
    let from = match change {
        Change::Move { from, .. } => Some(from),
        Change::Set { .. } | Change::Retouch { .. } | Change::Rewrite { .. } => None,
    };
    let mut names = std::iter::once(change.path()).chain(from);
    names.any(|name| name.is_below(tree))
}

fn listed(current: &Current, identity: &Identity) -> Result<Option<Vec<Vec<u8>>>, FileError> {
    let (Some(place), Some(node)) = (&current.place, &current.node) else {
        return Ok(None);
    };
    if !node.is_kept(Kind::Directory, identity) {
        return Ok(None);
    }
    let mut all = Vec::new();
    match list(place, &mut Vec::new(), &mut all) {
        Ok(true) => {
            let pieces = all.chunks(PIECE).map(serde_json::to_vec);
            let pieces: Result<_, _> = pieces.collect();
            Ok(Some(pieces.map_err(FileError::Unreadable)?))
        }
        Ok(false) | Err(FileError::Permission { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn list(place: &Place, above: &mut Vec<u8>, all: &mut Vec<Entry>) -> Result<bool, FileError> {
    let dir = place.enter()?;
    let mut names = dir.names()?;
    names.sort_unstable();
    for name in names {
        let entry = dir.place(&name);
        let Some(node) = entry.node()? else {
            continue;
        };
        if all.len() >= LISTED_MAX {
            return Ok(false);
        }
        let length = above.len();
        if length > 0 {
            above.push(b'/');
        }
        above.extend(name.as_bytes());
        all.push(Entry {
            at: AnyBytes(above.clone()),
            is: node.kind,
            ino: node.identity.ino,
            size: node.identity.size,
            mtime: node.identity.mtime,
            meta: meta_of(&entry, &node)?,
            link: if node.kind == Kind::Symlink {
                Some(link_target(&entry)?)
            } else {
                None
            },
            device: (node.device != 0).then(|| node.device.to_string()),
        });
        if node.kind == Kind::Directory && !list(&entry, above, all)? {
            return Ok(false);
        }
        above.truncate(length);
    }
    Ok(true)
}
