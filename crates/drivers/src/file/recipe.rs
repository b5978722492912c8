//! The persisted undo of a file operation: what each name was before and is after.
//!
//! - A change is data: `before`, `after`, and where the bytes of both can be had. So the same recipe serves
//!   to undo, to revert half an operation, and to finish a half-done undo.
//! - A **kept** inode is at exactly one of three places: its slot in the depot, the temporary name of its
//!   change, or its path. It moves between them by rename only, so no crash can lose it.
//! - Every version is read for ever; golden files under `golden/` hold it to that. Version 2 can say that a target is shared
//!   with others, that nobody has what it was, and which bytes a kept file has. Version 3 writes wide numbers as text.

use std::collections::{BTreeMap, BTreeSet};

use backout_model::wide;
use backout_model::{Digest, DriverName, JsonText, OperationId, Recipe, Slot, TargetPath};
use serde::{Deserialize, Serialize};

pub(crate) use backout_files::inode::{Identity, Kind, Meta, Times};

use super::any_bytes::AnyBytes;
pub(crate) use super::completion::FileCompletion;
use super::error::FileError;
use super::mounted::Mounted;
pub(crate) use super::written::Written;

/// The newest version of the body that this program writes and reads.
pub(crate) const VERSION: u16 = 3;

/// Where a file has holes, by start and end.
pub(crate) type Holes = Vec<(u64, u64)>;

/// Numbers of inodes.
pub(crate) type Numbers = std::collections::HashSet<u64>;

/// The body of a file recipe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileRecipe {
    /// Whose recipe it is; temporary names are made of it.
    pub(crate) operation: OperationId,
    /// What happens, in order.
    pub(crate) changes: Vec<Change>,
    /// The times of the directories whose entries change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) parents: Vec<ParentTimes>,
    /// Changes, by number, whose new state is not the operation's alone, and why: somebody else wrote there meanwhile.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) shared: BTreeMap<usize, String>,
    /// Directories that are closed to their owner and were opened for as long as it took: taking it back may do so, too.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) opened: BTreeSet<TargetPath>,
    /// What was in trees that are kept as one, by the names of their slots: lists in the store, in pieces.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) inside: BTreeMap<String, Vec<Digest>>,
    /// What was mounted where the names are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) mounts: Vec<Mounted>,
}

/// The times of a directory whose entries change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ParentTimes {
    /// The directory.
    pub(crate) path: TargetPath,
    /// Its times before.
    pub(crate) before: Times,
    /// The times to give it at the end, if the operation is an undo and nobody else wrote to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) after: Option<Times>,
}

/// One change of one name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "kebab-case")]
pub(crate) enum Change {
    /// A name comes to stand for something else.
    Set {
        /// The name.
        path: TargetPath,
        /// What it was.
        before: Image,
        /// What it becomes.
        after: Image,
    },
    /// A file or a tree gets another name.
    Move {
        /// The old name.
        from: TargetPath,
        /// The new name.
        to: TargetPath,
        /// What kind of thing is moved.
        node: Kind,
        /// Which it is.
        identity: Identity,
        /// What the new name stood for.
        replaced: Image,
        /// The mode, owner and attributes that it has. None where the same recipe changes them; older recipes do not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        meta: Option<Meta>,
    },
    /// Permissions, owner or attributes change in place.
    Retouch {
        /// The name.
        path: TargetPath,
        /// What they were.
        before: Meta,
        /// What they become.
        after: Meta,
        /// Of what; older recipes do not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<Kind>,
    },
    /// The bytes of a file with several names change in place, and all its names show that.
    Rewrite {
        /// One of its names.
        path: TargetPath,
        /// Which inode it is.
        #[serde(with = "wide")]
        ino: u64,
        /// What was in it.
        before: Written,
        /// What comes to be in it.
        after: Written,
    },
}

impl Change {
    /// Gives the name that the change is about; for a move, the new one.
    pub(crate) const fn path(&self) -> &TargetPath {
        match self {
            Self::Set { path, .. } | Self::Retouch { path, .. } | Self::Rewrite { path, .. } => {
                path
            }
            Self::Move { to, .. } => to,
        }
    }

    /// Gives the name that comes to stand for something else, if the change is that.
    pub(crate) const fn set_path(&self) -> Option<&TargetPath> {
        match self {
            Self::Set { path, .. } => Some(path),
            Self::Move { .. } | Self::Retouch { .. } | Self::Rewrite { .. } => None,
        }
    }

    /// Lists the images.
    pub(crate) fn images(&self) -> Vec<&Image> {
        match self {
            Self::Set { before, after, .. } => vec![before, after],
            Self::Move { replaced, .. } => vec![replaced],
            Self::Retouch { .. } | Self::Rewrite { .. } => Vec::new(),
        }
    }

    /// Lists what was and comes to be in an inode that changes in place.
    pub(crate) fn writings(&self) -> Vec<&Written> {
        match self {
            Self::Rewrite { before, after, .. } => vec![before, after],
            Self::Set { .. } | Self::Move { .. } | Self::Retouch { .. } => Vec::new(),
        }
    }

    /// Names the contents that the store must hold for it.
    pub(crate) fn stored(&self) -> impl Iterator<Item = Digest> {
        let images = self.images().into_iter().filter_map(Image::stored);
        let writings = self.writings().into_iter().filter(|written| written.stored);
        images.chain(writings.map(|written| written.digest))
    }

    /// Tells whether the change puts something that is no directory where nothing was: no name leads elsewhere by that.
    pub(crate) const fn is_new_name(&self) -> bool {
        match self {
            Self::Set { before, after, .. } => {
                before.is_absent() && !after.is_absent() && !after.is_directory()
            }
            Self::Move { .. } | Self::Retouch { .. } | Self::Rewrite { .. } => false,
        }
    }

    /// Tells whether the change puts a new directory where none was, whose entries arrive with it.
    pub(crate) const fn is_new_directory(&self) -> bool {
        match self {
            Self::Set {
                before,
                after: Image::Directory { .. },
                ..
            } => !matches!(before, Image::Directory { .. }),
            Self::Set { .. } | Self::Move { .. } | Self::Retouch { .. } | Self::Rewrite { .. } => {
                false
            }
        }
    }
}

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub(crate) enum Image {
    /// Nothing.
    Absent,
    /// A regular file, by its bytes.
    File {
        /// The bytes' name.
        digest: Digest,
        /// How many they are.
        #[serde(deserialize_with = "wide::deserialize")]
        size: u64,
        /// Whether the content store has them; if not, they are only known by name.
        stored: bool,
        /// Everything else.
        meta: Meta,
        /// What a file made of these bytes does not have, in words: holes, flags.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        without: Option<String>,
        /// Where it has holes, if the bytes are in the store: those do not tell.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        holes: Holes,
    },
    /// A symbolic link.
    Symlink {
        /// Where it points.
        to: AnyBytes,
        /// Everything else.
        meta: Meta,
    },
    /// A directory; its entries are not part of it.
    Directory {
        /// Everything but the entries.
        meta: Meta,
    },
    /// A pipe, a socket or a device, by value.
    Special {
        /// The kind of what moved.
        node: Kind,
        /// The device's number.
        #[serde(with = "wide")]
        device: u64,
        /// Everything else.
        meta: Meta,
    },
    /// A second name of a file.
    Linked {
        /// The first name.
        to: TargetPath,
        /// The file, if it existed before; else it is whatever the first name stands for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        identity: Option<Identity>,
        /// Its bytes, where an undo took the name away: the first name may be gone when it is to come back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        copy: Option<Copied>,
    },
    /// A whole inode, kept in the depot of its file system: a file, or a tree with all that is in it.
    Kept {
        /// Where it is kept.
        slot: Slot,
        /// What it is.
        node: Kind,
        /// Which it is.
        identity: Identity,
        /// Mode, owner and attributes.
        meta: Meta,
        /// A copy of the bytes in the store, for a file that others can change by another name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        copy: Option<Digest>,
        /// What was in a tree when an undo kept it or brought it back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        entries: Option<Digest>,
        /// The bytes of a file, where they are known without reading it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<Digest>,
    },
    /// Something that nobody kept.
    Unkept {
        /// What it was.
        node: Kind,
        /// Why it was not kept.
        why: String,
    },
}

impl Image {
    /// Tells whether it is nothing.
    pub(crate) const fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// Tells whether it is a directory, with or without its entries.
    pub(crate) const fn is_directory(&self) -> bool {
        matches!(
            self,
            Self::Directory { .. }
                | Self::Kept {
                    node: Kind::Directory,
                    ..
                }
        )
    }

    /// Leaves out what was in a kept tree.
    pub(super) const fn forget_listing(&mut self) {
        if let Self::Kept { entries, .. } = self {
            *entries = None;
        }
    }

    /// Gives mode, owner and the rest, where it has its own.
    pub(crate) const fn meta(&self) -> Option<&Meta> {
        match self {
            Self::File { meta, .. }
            | Self::Symlink { meta, .. }
            | Self::Directory { meta }
            | Self::Special { meta, .. }
            | Self::Kept { meta, .. } => Some(meta),
            Self::Absent | Self::Linked { .. } | Self::Unkept { .. } => None,
        }
    }

    /// The same, to be changed.
    pub(crate) const fn meta_mut(&mut self) -> Option<&mut Meta> {
        match self {
            Self::File { meta, .. }
            | Self::Symlink { meta, .. }
            | Self::Directory { meta }
            | Self::Special { meta, .. }
            | Self::Kept { meta, .. } => Some(meta),
            Self::Absent | Self::Linked { .. } | Self::Unkept { .. } => None,
        }
    }

    /// Names the bytes of a file, if they are known.
    pub(crate) const fn digest(&self) -> Option<Digest> {
        match self {
            Self::File { digest, .. } => Some(*digest),
            Self::Kept { copy, digest, .. } => match copy {
                Some(copy) => Some(*copy),
                None => *digest,
            },
            Self::Absent
            | Self::Symlink { .. }
            | Self::Directory { .. }
            | Self::Special { .. }
            | Self::Linked { .. }
            | Self::Unkept { .. } => None,
        }
    }

    /// Notes the bytes of a kept file.
    #[must_use]
    pub(crate) fn with_digest(mut self, known: Option<Digest>) -> Self {
        if let Self::Kept {
            node: Kind::File,
            digest,
            ..
        } = &mut self
        {
            *digest = digest.or(known);
        }
        self
    }

    /// Gives the slot that it is kept in.
    pub(crate) const fn slot(&self) -> Option<&Slot> {
        match self {
            Self::Kept { slot, .. } => Some(slot),
            Self::Absent
            | Self::File { .. }
            | Self::Symlink { .. }
            | Self::Directory { .. }
            | Self::Special { .. }
            | Self::Linked { .. }
            | Self::Unkept { .. } => None,
        }
    }

    /// Names the content that the store must hold for it.
    pub(crate) const fn stored(&self) -> Option<Digest> {
        match self {
            Self::File {
                digest,
                stored: true,
                ..
            } => Some(*digest),
            Self::Kept { copy, .. } => *copy,
            Self::Linked {
                copy: Some(copy), ..
            } => Some(copy.digest),
            Self::Absent
            | Self::File { .. }
            | Self::Symlink { .. }
            | Self::Directory { .. }
            | Self::Special { .. }
            | Self::Linked { .. }
            | Self::Unkept { .. } => None,
        }
    }
}

/// A file by its bytes, all of which the store has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Copied {
    /// The bytes' name.
    pub(crate) digest: Digest,
    /// How many they are.
    #[serde(deserialize_with = "wide::deserialize")]
    pub(crate) size: u64,
    /// Everything else.
    pub(crate) meta: Meta,
    /// When the file came to be, where the system tells: its number may be another's later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) born: Option<String>,
    /// Where it has holes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) holes: Holes,
}

impl Copied {
    /// Gives it as a file of its own.
    pub(crate) fn image(&self) -> Image {
        Image::File {
            digest: self.digest,
            size: self.size,
            stored: true,
            meta: self.meta.clone(),
            without: None,
            holes: self.holes.clone(),
        }
    }
}

/// Takes the metadata out of moves of what another change of the same recipe gives its mode, owner or attributes: that change
/// is compared with the world by itself, and they may come in any order. The name alone decides, since a directory above may
/// move as well.
pub(crate) fn leave_to_others(changes: &mut [Change]) {
    let dresses = |change: &Change| match change {
        Change::Retouch { .. } | Change::Rewrite { .. } => true,
        Change::Set { before, after, .. } => before.is_directory() && after.is_directory(),
        Change::Move { .. } => false,
    };
    let others = changes.iter().filter(|change| dresses(change));
    let told: BTreeSet<Vec<u8>> = others.filter_map(|it| last_name(it.path())).collect();
    if told.is_empty() {
        return;
    }
    for change in changes {
        if let Change::Move { from, to, meta, .. } = change {
            let mut names = [last_name(from), last_name(to)].into_iter().flatten();
            if names.any(|name| told.contains(&name)) {
                *meta = None;
            }
        }
    }
}

fn last_name(path: &TargetPath) -> Option<Vec<u8>> {
    path.file_name()
        .map(|name| name.as_encoded_bytes().to_vec())
}

/// Tells whether an image is a whole tree that is kept as one.
pub(crate) const fn is_kept_tree(image: &Image) -> bool {
    matches!(
        image,
        Image::Kept {
            node: Kind::Directory,
            ..
        }
    )
}

impl FileRecipe {
    /// Names the directories that the effect gave their mode, or opened.
    pub(crate) fn own_directories(&self) -> BTreeSet<TargetPath> {
        let is_dressed = |change: &&Change| match change {
            Change::Set { after, .. } => after.is_directory(),
            Change::Retouch { node, .. } => *node == Some(Kind::Directory),
            Change::Move { .. } | Change::Rewrite { .. } => false,
        };
        let dressed = self.changes.iter().filter(is_dressed);
        let dressed = dressed.map(|change| change.path().clone());
        dressed.chain(self.opened.iter().cloned()).collect()
    }

    /// Names the contents that the store must hold for it.
    pub(crate) fn stored(&self) -> impl Iterator<Item = Digest> + '_ {
        let lists = self.inside.values().flatten().copied();
        self.changes.iter().flat_map(Change::stored).chain(lists)
    }

    /// Wraps the body, with the lists of contents and slots that the store needs.
    pub(crate) fn encode(&self) -> Result<Recipe, FileError> {
        let mut contents: Vec<_> = self.stored().collect();
        contents.sort_unstable();
        contents.dedup();
        let images = self.changes.iter().flat_map(Change::images);
        let writings = self.changes.iter().flat_map(Change::writings);
        let mut slots: Vec<_> = images
            .filter_map(Image::slot)
            .chain(writings.filter_map(|written| written.slot.as_ref()))
            .cloned()
            .collect();
        slots.sort_unstable();
        slots.dedup();
        let body = JsonText::of(self).map_err(FileError::Unreadable)?;
        Ok(Recipe {
            driver: DriverName::FILE,
            version: VERSION,
            contents,
            slots,
            body,
        })
    }

    /// Gives the numbers of the inodes that change in place. Whatever else speaks of them knows them by that alone.
    pub(crate) fn rewritten(&self) -> Numbers {
        let numbers = self.changes.iter().filter_map(|change| match change {
            Change::Rewrite { ino, .. } => Some(*ino),
            Change::Set { .. } | Change::Move { .. } | Change::Retouch { .. } => None,
        });
        numbers.collect()
    }

    /// Names the directories that were moved to where nothing was.
    pub(crate) fn brought(&self) -> BTreeSet<TargetPath> {
        let taken = self.changes.iter().filter_map(|change| match change {
            Change::Set { path, before, .. } => (!before.is_absent()).then_some(path),
            Change::Move { .. } | Change::Retouch { .. } | Change::Rewrite { .. } => None,
        });
        let taken: BTreeSet<&TargetPath> = taken.collect();
        let moved = self.changes.iter().filter_map(|change| match change {
            Change::Move {
                to,
                node: Kind::Directory,
                replaced: Image::Absent,
                ..
            } => Some(to),
            Change::Set { .. }
            | Change::Move { .. }
            | Change::Retouch { .. }
            | Change::Rewrite { .. } => None,
        });
        moved.filter(|to| !taken.contains(to)).cloned().collect()
    }

    /// Reads a body of any version up to ours.
    pub(crate) fn decode(recipe: &Recipe) -> Result<Self, FileError> {
        if recipe.version == 0 || recipe.version > VERSION {
            return Err(FileError::Recipe {
                found: recipe.version,
                known: VERSION,
            });
        }
        recipe.body.read().map_err(FileError::Unreadable)
    }
}
