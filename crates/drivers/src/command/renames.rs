//! Names that go away, move, or are taken by something else. The recorder carries these out itself where it may: so their
//! result is known.

use std::sync::Arc;

use backout_capture::live::{Answer, Place};
use backout_crashpoint::crash_point;
use backout_model::TargetPath;
use rustix::fs::{AtFlags, RenameFlags, linkat, renameat_with};
use rustix::io::Errno;

use super::before_image::{KeepError, Kept, Shelf, with_meta};
use super::expect::is_exchange;
use super::log::{Move, Note};
use super::recorder::{
    EEXIST, EINVAL, EISDIR, ENOENT, ENOTDIR, ENOTEMPTY, EPERM, Recorder, Stop, is_filled, node_of,
};
use super::tracker::Known;
use crate::file::recipe::{Image, Kind, Meta};
use crate::file::sys::Node;

/// A file that is about to get another name.
#[derive(Debug, Clone)]
pub(super) struct Linking {
    /// Its device and number.
    pub(super) number: (u64, u64),
    /// The new name.
    pub(super) name: TargetPath,
    /// The name of before that it is known by; none if the command made it.
    first: Option<TargetPath>,
    /// What was learnt of the new name for this.
    made: Option<TargetPath>,
}

impl Recorder {
    /// A name goes away: the inode moves into the depot, and that is the removal.
    pub(super) fn unlink(&mut self, place: &Place, may_act: bool) -> Result<Answer, Stop> {
        // The kernel says why not.
        let Some(node) = node_of(place).filter(|node| node.kind != Kind::Directory) else {
            return Ok(Answer::Fails(if place.stat.is_some() {
                EISDIR
            } else {
                ENOENT
            }));
        };
        if place.is_slashed {
            return Ok(Answer::Fails(ENOTDIR));
        }
        self.forget_last(&node);
        let Some(origin) = self.origin_to_keep(place)? else {
            self.keep_written(place, &node)?;
            return Ok(Answer::Continue);
        };
        let is_inode = node.kind == Kind::File && node.identity.size > 0 || node.is_shared;
        if !is_inode {
            self.whole(place)?;
            return Ok(Answer::Continue);
        }
        let dressed = self.dressed_before(&origin, &node);
        if may_act && self.shelved(place, &node, &origin, dressed.clone(), Shelf::shelve)? {
            return Ok(Answer::Done);
        }
        self.shelved_or_copied(place, &node, origin, dressed)?;
        Ok(Answer::Continue)
    }

    /// Puts an inode into a slot. The note comes first: after a crash the slot tells whether it happened.
    pub(super) fn shelved(
        &mut self,
        place: &Place,
        node: &Node,
        origin: &TargetPath,
        dressed: Option<Meta>,
        put: fn(&Shelf, &Place, &Image) -> Result<(), Errno>,
    ) -> Result<bool, Stop> {
        let depots = Arc::clone(&self.depots);
        let before = dressed.clone();
        let Some(image) = self.shelf.slotted(&*depots, place, node, dressed)? else {
            return Ok(false);
        };
        let path = origin.clone();
        let was = self.tracker.known.get(origin).cloned();
        self.learn(
            Note::Whole {
                path,
                image: image.clone(),
                written: None,
            },
            Vec::new(),
        )?;
        if put(&self.shelf, place, &image).is_ok() {
            crash_point("command.kept");
            return Ok(true);
        }
        // One note, so that no half of it can be missing.
        self.is_so(match (was, before) {
            (Some(Known::Dressed { node, identity, .. }), Some(meta)) => Note::Dressed {
                path: origin.clone(),
                node,
                meta,
                identity,
            },
            _ => Note::Forget(origin.clone()),
        });
        Ok(false)
    }

    /// Keeps an inode that the kernel will take the name from.
    pub(super) fn shelved_or_copied(
        &mut self,
        place: &Place,
        node: &Node,
        origin: TargetPath,
        dressed: Option<Meta>,
    ) -> Result<(), Stop> {
        let is_linkable = node.kind == Kind::File || node.is_shared;
        if is_linkable && self.shelved(place, node, &origin, dressed.clone(), Shelf::link)? {
            return Ok(());
        }
        if node.is_shared {
            self.split.insert(origin.clone());
        }
        let Kept { image, bytes, .. } = if node.kind == Kind::File {
            self.content(place, node, dressed)?
        } else {
            let kept = self.shelf.by_value(place, node)?;
            let kept = kept.ok_or(KeepError::Changing)?;
            Kept {
                image: with_meta(kept.image, dressed),
                ..kept
            }
        };
        self.learn(
            Note::Whole {
                path: origin,
                image,
                written: None,
            },
            bytes,
        )
    }

    /// A file gets another name. The note comes first; whoever reads it asks the inode whether it happened.
    pub(super) fn link(&mut self, old: &Place, new: &Place, may_act: bool) -> Result<Answer, Stop> {
        let node = match node_of(old) {
            None => return Ok(Answer::Fails(ENOENT)),
            Some(node) if old.is_slashed && node.kind != Kind::Directory => {
                return Ok(Answer::Fails(ENOTDIR));
            }
            Some(_) if new.stat.is_some() => return Ok(Answer::Fails(EEXIST)),
            Some(_) if new.is_slashed => return Ok(Answer::Fails(ENOENT)),
            Some(node) if node.kind == Kind::Directory => return Ok(Answer::Fails(EPERM)),
            Some(node) => node,
        };
        let (path, name) = (named(old)?, named(new)?);
        let first = self.first_of(&node);
        let first = first.or_else(|| self.tracker.is_untouched(&path));
        let linking = Linking {
            number: (node.identity.dev, node.identity.ino),
            name,
            first,
            made: self.made(new)?,
        };
        if let Some(of) = linking.first.clone() {
            let name = linking.name.clone();
            self.learn(Note::Alias { name, of }, Vec::new())?;
        }
        if !may_act {
            self.linking = Some(linking);
            return Ok(Answer::Watch);
        }
        match linkat(&old.dir, &old.name, &new.dir, &new.name, AtFlags::empty()) {
            Ok(()) => {
                crash_point("command.linked");
                self.linked(linking);
                Ok(Answer::Done)
            }
            Err(errno) => {
                self.not_linked(linking);
                Ok(Answer::Refuse(errno.raw_os_error()))
            }
        }
    }

    /// A file has another name: from now on it is known by its number.
    pub(super) fn linked(&mut self, linking: Linking) {
        if let Some(of) = linking.first {
            self.firsts.entry(linking.number).or_insert(of);
        }
    }

    /// Forgets what was noted of a name that did not come to be.
    pub(super) fn not_linked(&mut self, linking: Linking) {
        self.tracker.aliases.remove(&linking.name);
        if let Some(origin) = linking.made {
            self.is_so(Note::Forget(origin));
        }
    }

    pub(super) fn rename(
        &mut self,
        from: &Place,
        to: &Place,
        flags: u32,
        may_act: bool,
    ) -> Result<Answer, Stop> {
        let Some(node) = node_of(from) else {
            return Ok(Answer::Fails(ENOENT));
        };
        let is_exchange = is_exchange(flags);
        if flags & RenameFlags::WHITEOUT.bits() != 0 {
            // It would leave something behind that nobody keeps; only layers of file systems want that.
            return Ok(Answer::Refuse(EINVAL));
        }
        if is_misnamed(from, to, &node, is_exchange) {
            return Ok(Answer::Fails(ENOTDIR));
        }
        let flags = RenameFlags::from_bits_retain(flags);
        self.origin(from)?;
        match node_of(to) {
            None => drop(self.made(to)?),
            // Two names of one file: the kernel does nothing.
            Some(other) if other.identity.ino == node.identity.ino => return Ok(Answer::Continue),
            Some(_) if is_exchange => drop(self.origin(to)?),
            Some(_) if flags.contains(RenameFlags::NOREPLACE) => return Ok(Answer::Fails(EEXIST)),
            // Into itself.
            Some(_) if to.path().starts_with(from.path()) => return Ok(Answer::Fails(EINVAL)),
            Some(other) if other.kind == Kind::Directory && node.kind != Kind::Directory => {
                return Ok(Answer::Fails(EISDIR));
            }
            Some(other) if other.kind == Kind::Directory && is_filled(to) => {
                return Ok(Answer::Fails(ENOTEMPTY));
            }
            Some(other) => self.replaced(to, &other)?,
        }
        let (source, target) = (named(from)?, named(to)?);
        let moving = Move {
            from: source,
            to: target,
            ino: node.identity.ino,
            is_directory: node.kind == Kind::Directory || is_exchange,
            is_exchange,
        };
        self.learn(Note::Moving(moving), Vec::new())?;
        if !may_act {
            return Ok(Answer::Watch);
        }
        match renameat_with(&from.dir, &from.name, &to.dir, &to.name, flags) {
            Ok(()) => {
                crash_point("command.moved");
                self.is_so(Note::Moved);
                Ok(Answer::Done)
            }
            Err(errno) => {
                self.is_so(Note::NotMoved);
                Ok(Answer::Refuse(errno.raw_os_error()))
            }
        }
    }

    /// Something is about to lose its name to another.
    pub(super) fn replaced(&mut self, place: &Place, node: &Node) -> Result<(), Stop> {
        self.forget_last(node);
        let is_inode = node.kind == Kind::File && node.identity.size > 0 || node.is_shared;
        if node.kind == Kind::Directory || !is_inode {
            return self.whole(place);
        }
        let Some(origin) = self.origin_to_keep(place)? else {
            return self.keep_written(place, node);
        };
        let dressed = self.dressed_before(&origin, node);
        self.shelved_or_copied(place, node, origin, dressed)
    }
}

fn named(place: &Place) -> Result<TargetPath, KeepError> {
    TargetPath::new(place.path()).map_err(|error| KeepError::Meta(error.to_string()))
}

/// Tells whether a slash comes after a name that is not a directory's.
fn is_misnamed(from: &Place, to: &Place, node: &Node, is_exchange: bool) -> bool {
    let is_directory = node.kind == Kind::Directory;
    let to_what = node_of(to).map(|node| node.kind);
    let is_to_directory = if is_exchange {
        to_what == Some(Kind::Directory)
    } else {
        is_directory
    };
    from.is_slashed && !is_directory || to.is_slashed && !is_to_directory
}
