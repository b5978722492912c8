//! What is kept before each kind of call: names that come to be, contents that are written, metadata that changes.

use std::sync::Arc;

use backout_capture::live::{Act, Answer, Place, Touch};
use backout_model::TargetPath;
use rustix::fs::{Access, AtFlags, accessat, fstat};
use rustix::io::Errno;

use super::before_image::{KeepError, Kept, all_flags, flags_of, has_flags, meta_of, with_meta};
use super::log::Note;
use super::recorder::{
    EIO, ENOENT, ENOTDIR, ENOTEMPTY, EPERM, Recorder, Stop, is_filled, node_of, with_times,
};
use super::tracker::Known;
use crate::file::recipe::{Image, Kind, Meta};
use crate::file::sys::{Node, flags};

/// How often a name is looked at again that vanishes, or stands for another file, while it is looked at. Somebody may save
/// it by a rename many times in a row, and the command must not fail of that.
const TRIES_MAX: usize = 100;

impl Recorder {
    /// Looks around before a call, and answers it if nothing has to be kept for it.
    pub(super) fn prepare(&mut self, touch: &mut Touch) -> Option<Answer> {
        self.others.expects_anew();
        match touch.act {
            Act::Standing => return Some(Answer::Continue),
            // What a process mounts for itself alone is gone with it.
            Act::Mounts if !touch.has_our_mounts => return Some(Answer::Continue),
            Act::Mounts => {
                return Some(self.pass("it changed what is mounted; that is not undone"));
            }
            Act::Quotas => {
                return Some(self.pass("it asked for quotas or changed them; that is not undone"));
            }
            Act::Sync => return Some(self.keep_first()),
            Act::Exec => {
                self.executed(touch);
                return Some(Answer::Continue);
            }
            Act::Read => {}
            Act::Open { .. }
            | Act::Truncate
            | Act::Unlink
            | Act::Rmdir
            | Act::Rename { .. }
            | Act::Link
            | Act::Make
            | Act::Attributes
            | Act::Times
            | Act::Flags { .. } => {
                if let Some(answer) = self.beforehand(touch) {
                    return Some(answer);
                }
            }
        }
        for place in [&touch.first, &touch.second].into_iter().flatten() {
            self.others.watch(place);
        }
        self.look_around().err().map(|error| {
            let stop = Stop::Log(error);
            match touch.first.take() {
                Some(place) => self.stop(&place, stop),
                None => Answer::Refuse(EIO),
            }
        })
    }

    /// Keeps what a call changes for which all is prepared.
    pub(super) fn proceed(&mut self, touch: &mut Touch) -> Answer {
        // A name that goes or changes: its file is known no longer by its number.
        if !matches!(touch.act, Act::Open { .. } | Act::Make | Act::Read) {
            self.made.clear();
        }
        let answer = self.act_until_it_holds(touch);
        if let Ok(answer) = &answer {
            self.expect(touch, *answer);
        }
        match answer {
            Ok(Answer::Continue) if touch.has_our_rights && touch.has_our_mounts => Answer::Perform,
            Ok(answer) => answer,
            Err(stop) => match touch.first.take() {
                Some(place) => self.stop(&place, stop),
                None => Answer::Refuse(EIO),
            },
        }
    }

    /// Keeps what a call changes. What vanishes or changes meanwhile is looked at again: it may be something else now.
    pub(super) fn act_until_it_holds(&mut self, touch: &mut Touch) -> Result<Answer, Stop> {
        for _ in 1..TRIES_MAX {
            match self.act(touch) {
                Err(Stop::Keep(
                    KeepError::Changing
                    | KeepError::System {
                        errno: Errno::NOENT,
                        ..
                    },
                )) => {}
                other => return other,
            }
            for place in [&mut touch.first, &mut touch.second].into_iter().flatten() {
                let action = "look at";
                place
                    .look()
                    .map_err(|errno| Stop::Keep(KeepError::System { action, errno }))?;
            }
        }
        self.act(touch)
    }

    pub(super) fn act(&mut self, touch: &mut Touch) -> Result<Answer, Stop> {
        self.bring_up(touch);
        let (first, second) = (touch.first.as_ref(), touch.second.as_ref());
        match (touch.act, first, second) {
            (
                Act::Open {
                    creates, writes, ..
                },
                Some(place),
                _,
            ) => {
                match node_of(place) {
                    None if creates => drop(self.made(place)?),
                    Some(node) if writes && node.kind == Kind::BlockDevice => {
                        self.note_lasting(format!(
                            "it opened the device `{}` for writing; what it wrote to it is not undone",
                            place.path().display()
                        ));
                    }
                    Some(_) if writes => self.written(place)?,
                    _ => {}
                }
                Ok(Answer::Continue)
            }
            (Act::Truncate, Some(place), _) => self.written(place).map(|()| Answer::Continue),
            (Act::Unlink, Some(place), _) => self.unlink(place, touch.has_our_rights),
            (Act::Rmdir, Some(place), _) => self.rmdir(place, touch.has_our_rights),
            (Act::Make, Some(place), _) => self.made(place).map(|_| Answer::Continue),
            (Act::Attributes | Act::Times, Some(place), _) => {
                self.dressed(place, touch.act).map(|()| Answer::Continue)
            }
            (Act::Flags { to }, Some(place), _) => self.flags(place, to),
            (Act::Link, Some(old), Some(new)) => self.link(old, new, touch.has_our_rights),
            // A file without a name gets one.
            (Act::Link, None, Some(new)) => self.made(new).map(|_| Answer::Continue),
            (Act::Rename { flags }, Some(from), Some(to)) => {
                self.rename(from, to, flags, touch.has_our_rights)
            }
            (Act::Read, Some(place), _) => self.read(place),
            _ => Ok(Answer::Continue),
        }
    }

    /// Gives the name of before, if it is worth learning something about it.
    pub(super) fn origin(&mut self, place: &Place) -> Result<Option<TargetPath>, Stop> {
        let path = TargetPath::new(place.path());
        let path = path.map_err(|error| KeepError::Meta(error.to_string()))?;
        let origin = self.tracker.origin(&path);
        let parent = path
            .parent()
            .and_then(|parent| self.tracker.origin(&parent));
        if let Some(parent) = parent {
            self.parent(place, parent)?;
        }
        Ok(origin)
    }

    /// Notes the times of a directory before its entries change for the first time.
    pub(super) fn parent(&mut self, place: &Place, origin: TargetPath) -> Result<(), Stop> {
        // Of one that was there and is a new one now they are known.
        let known = self.tracker.known.get(&origin);
        let is_new = matches!(known, Some(Known::Absent | Known::Whole(_)));
        if is_new || self.tracker.parents.contains_key(&origin) {
            return Ok(());
        }
        if let Ok(stat) = fstat(&place.dir) {
            let times = Node::of(&stat).times;
            self.learn(
                Note::Parent {
                    path: origin,
                    times,
                },
                Vec::new(),
            )?;
        }
        Ok(())
    }

    /// A name comes to be where nothing was. Gives the name of before, if that was not known.
    pub(super) fn made(&mut self, place: &Place) -> Result<Option<TargetPath>, Stop> {
        if place.stat.is_some() {
            return Ok(None); // it will be refused
        }
        let origin = self.origin(place)?;
        let Some(origin) = origin.filter(|origin| !self.tracker.known.contains_key(origin)) else {
            return Ok(None);
        };
        self.learn(Note::Absent(origin.clone()), Vec::new())?;
        Ok(Some(origin))
    }

    /// A file is about to be written in place.
    pub(super) fn written(&mut self, place: &Place) -> Result<(), Stop> {
        let Some(node) = node_of(place).filter(|node| node.kind == Kind::File) else {
            return Ok(());
        };
        let Some(origin) = self.inode_origin(place, &node)? else {
            return Ok(());
        };
        let dressed = match self.tracker.known.get(&origin) {
            // Its inode is what was kept, and has another name: from now on its bytes are, and the inode beside them.
            Some(Known::Whole(image)) if is_inode(image, &node) => {
                let (path, image) = (origin.clone(), image.clone());
                let meta = image.meta().cloned();
                self.learn(Note::Shelved { path, image }, Vec::new())?;
                meta
            }
            Some(Known::Absent | Known::Whole(_)) => return Ok(()),
            Some(Known::Dressed { meta, .. }) => Some(meta.clone()),
            None if self.tracker.is_in_new_directory(&origin) => return Ok(()),
            None => None,
        };
        let kept = self.content(place, &node, dressed)?;
        let has_flags = kept.has_flags.unwrap_or_else(|| has_flags(place));
        // What its other names and its flags are, only the inode itself knows. And where no name may come or go it cannot
        // be replaced.
        let is_itself = node.is_shared || has_flags || !is_replaceable(place);
        let written = is_itself.then_some(node.identity.ino);
        if is_itself {
            self.note_first(&node, &origin);
        }
        self.is_ahead = !self.limits.syncs;
        self.learn(
            Note::Whole {
                path: origin,
                image: kept.image,
                written,
            },
            kept.bytes,
        )
    }

    /// Remembers under which name an inode of several names, or with flags, is noted.
    pub(super) fn note_first(&mut self, node: &Node, origin: &TargetPath) {
        if node.kind != Kind::Directory {
            let key = (node.identity.dev, node.identity.ino);
            self.firsts.insert(key, origin.clone());
        }
    }

    /// Finds under which name of before an inode that changes in place is noted: all its names show the change, one
    /// is enough to take it back.
    pub(super) fn inode_origin(
        &mut self,
        place: &Place,
        node: &Node,
    ) -> Result<Option<TargetPath>, Stop> {
        let origin = self.origin(place)?;
        if !node.is_shared || node.kind == Kind::Directory {
            return Ok(origin);
        }
        Ok(self.first_of(node).or(origin))
    }

    /// Gives the name of before that an inode of several names is known by.
    pub(super) fn first_of(&self, node: &Node) -> Option<TargetPath> {
        let first = self.firsts.get(&(node.identity.dev, node.identity.ino))?;
        self.is_noted(first, node).then(|| first.clone())
    }

    fn is_noted(&self, first: &TargetPath, node: &Node) -> bool {
        let number = node.identity.ino;
        match self.tracker.known.get(first) {
            Some(Known::Dressed { identity, .. }) => identity.ino == number,
            Some(Known::Whole(image)) => {
                self.tracker.written.get(first) == Some(&number) || is_inode(image, node)
            }
            Some(Known::Absent) => false,
            // Nothing was done to it but that it got another name.
            None => {
                let now = rustix::fs::lstat(self.tracker.now_of(first).as_path());
                now.is_ok_and(|now| {
                    (now.st_dev, now.st_ino) == (node.identity.dev, node.identity.ino)
                })
            }
        }
    }

    /// Forgets an inode that is about to lose its last name and is not kept: another may get its number.
    pub(super) fn forget_last(&mut self, node: &Node) {
        let number = (node.identity.dev, node.identity.ino);
        let first = self.firsts.get(&number);
        let is_written = first.is_some_and(|first| self.tracker.written.contains_key(first));
        if !node.is_shared && !is_written {
            self.firsts.remove(&number);
        }
    }

    /// A file of several names that was written in place is about to lose one: its inode is kept beside its bytes.
    pub(super) fn keep_written(&mut self, place: &Place, node: &Node) -> Result<(), Stop> {
        let key = (node.identity.dev, node.identity.ino);
        let Some(first) = self.firsts.get(&key).cloned() else {
            return Ok(());
        };
        let is_written = self.tracker.written.get(&first) == Some(&node.identity.ino);
        if !is_written || self.tracker.shelved.contains_key(&first) {
            return Ok(());
        }
        let depots = Arc::clone(&self.depots);
        if let Some(image) = self.shelf.slotted(&*depots, place, node, None)? {
            let shelved = Note::Shelved {
                path: first,
                image: image.clone(),
            };
            self.learn(shelved, Vec::new())?;
            // If it cannot be, the slot stays empty, and what was in the file comes back as a file of its own.
            let _linked = self.shelf.link(place, &image);
        }
        Ok(())
    }

    pub(super) fn content(
        &mut self,
        place: &Place,
        node: &Node,
        dressed: Option<Meta>,
    ) -> Result<Kept, Stop> {
        match self.shelf.by_value(place, node) {
            Ok(Some(kept)) => {
                return Ok(Kept {
                    image: with_meta(kept.image, dressed),
                    ..kept
                });
            }
            Ok(None) | Err(KeepError::Changing) => {}
            Err(error) => return Err(error.into()),
        }
        let depots = Arc::clone(&self.depots);
        let syncs = self.limits.syncs;
        let copied = self
            .shelf
            .copied(&*depots, place, node, dressed.clone(), syncs);
        let image = match copied {
            Err(KeepError::NoDepot) => self.shelf.stashed(&*self.stash, place, node, dressed)?,
            other => other?,
        };
        Ok(Kept::from(image))
    }

    /// Mode, owner, attributes or times are about to change.
    pub(super) fn dressed(&mut self, place: &Place, act: Act) -> Result<(), Stop> {
        let Some(node) = node_of(place) else {
            return Ok(());
        };
        let Some(origin) = self.inode_origin(place, &node)? else {
            return Ok(());
        };
        if self.tracker.known.contains_key(&origin) || self.tracker.is_in_new_directory(&origin) {
            return Ok(());
        }
        if node.kind == Kind::Directory {
            if !self.tracker.parents.contains_key(&origin) {
                let (path, times) = (origin.clone(), node.times);
                self.learn(Note::Parent { path, times }, Vec::new())?;
            }
            if act == Act::Times {
                if !self.tracker.timed.contains(&origin) {
                    self.learn(Note::Timed(origin), Vec::new())?;
                }
                return Ok(());
            }
        }
        let meta = meta_of(place, &node)?;
        if node.is_shared {
            self.note_first(&node, &origin);
        }
        let dressed = Note::Dressed {
            path: origin,
            node: node.kind,
            meta,
            identity: node.identity,
        };
        self.learn(dressed, Vec::new())
    }

    /// Flags that `chattr` sets are noted before they change. Those that lock a file, and whatever else is changed with
    /// them, may only be given to what the command made itself.
    pub(super) fn flags(&mut self, place: &Place, to: Option<u32>) -> Result<Answer, Stop> {
        let is_new = match self.origin(place)? {
            None => true,
            Some(origin) => {
                self.tracker.known.get(&origin) == Some(&Known::Absent)
                    || self.tracker.is_in_new_directory(&origin)
            }
        };
        if is_new {
            return Ok(Answer::Continue);
        }
        let now = all_flags(place);
        if let (Some(to), Some(now)) = (to, now)
            && flags::is_undoable(now, to)
        {
            return self.flagged(place).map(|()| Answer::Continue);
        }
        self.note(format!(
            "changing the flags of `{}` (as `chattr` does) was refused: they could not be brought back; \
             do it without `backout run`",
            place.path().display()
        ));
        Ok(Answer::Refuse(EPERM))
    }

    /// Notes the flags of something, and what it is that has them.
    fn flagged(&mut self, place: &Place) -> Result<(), Stop> {
        self.dressed(place, Act::Attributes)?;
        let Some(node) = node_of(place) else {
            return Ok(());
        };
        let origin = self.inode_origin(place, &node)?;
        let told = origin
            .as_ref()
            .and_then(|path| self.tracker.known.get(path));
        let meta = match told {
            Some(Known::Dressed { meta, .. }) => Some(meta),
            Some(Known::Whole(image)) => image.meta(),
            Some(Known::Absent) | None => None,
        };
        let is_told = meta.is_none_or(|meta| meta.flags.is_some());
        match origin.zip(flags_of(place, &node)) {
            Some((path, flags)) if !is_told => self.learn(Note::Flags { path, flags }, Vec::new()),
            _ => Ok(()),
        }
    }

    /// A directory goes away, if it is empty. One that is not stays: it must not count as known when it moves later.
    pub(super) fn rmdir(&mut self, place: &Place, may_act: bool) -> Result<Answer, Stop> {
        match node_of(place).map(|node| node.kind) {
            Some(Kind::Directory) => {}
            Some(_) => return Ok(Answer::Fails(ENOTDIR)),
            None => return Ok(Answer::Fails(ENOENT)),
        }
        if is_filled(place) {
            // Who has other rights may be told something else.
            return Ok(if may_act {
                Answer::Fails(ENOTEMPTY)
            } else {
                Answer::Continue
            });
        }
        if is_subvolume(place) {
            self.note(format!(
                "`{}` was a subvolume; an undo brings it back as a directory",
                place.path().display()
            ));
        }
        self.whole(place).map(|()| Answer::Continue)
    }

    /// What stands at a name goes away or is replaced, and is no file.
    pub(super) fn whole(&mut self, place: &Place) -> Result<(), Stop> {
        let Some(node) = node_of(place) else {
            return Ok(());
        };
        let Some(origin) = self.origin_to_keep(place)? else {
            return Ok(());
        };
        // The times of a directory whose entries went first are those it had before that.
        let dressed = self.dressed_as(&origin);
        let times = self.tracker.parents.get(&origin).copied();
        if let Some(Kept { image, bytes, .. }) = self.shelf.by_value(place, &node)? {
            let image = with_times(with_meta(image, dressed), times);
            self.learn(
                Note::Whole {
                    path: origin,
                    image,
                    written: None,
                },
                bytes,
            )?;
        }
        Ok(())
    }

    /// Gives the name of before if what stands there must be kept whole.
    pub(super) fn origin_to_keep(&mut self, place: &Place) -> Result<Option<TargetPath>, Stop> {
        let Some(origin) = self.origin(place)? else {
            return Ok(None);
        };
        let is_kept = matches!(
            self.tracker.known.get(&origin),
            Some(Known::Absent | Known::Whole(_))
        );
        let is_needless = is_kept || self.tracker.is_in_new_directory(&origin);
        Ok((!is_needless).then_some(origin))
    }

    pub(super) fn dressed_as(&self, origin: &TargetPath) -> Option<Meta> {
        match self.tracker.known.get(origin) {
            Some(Known::Dressed { meta, .. }) => Some(meta.clone()),
            _ => None,
        }
    }

    /// Gives what a file was before its metadata changed, by whichever of its names that was noted.
    pub(super) fn dressed_before(&self, origin: &TargetPath, node: &Node) -> Option<Meta> {
        let by_number = || match self.tracker.known.get(&self.first_of(node)?)? {
            Known::Dressed { meta, .. } => Some(meta.clone()),
            Known::Whole(image) => image.meta().cloned(),
            Known::Absent => None,
        };
        self.dressed_as(origin).or_else(by_number)
    }

    pub(super) fn read(&mut self, place: &Place) -> Result<Answer, Stop> {
        if let (Some(node), Ok(path)) = (node_of(place), TargetPath::new(place.path()))
            && node.kind == Kind::File
            && !self.tracker.reads.contains_key(&path)
        {
            self.learn(Note::Read(path.clone()), Vec::new())?;
            self.tracker.reads.insert(path, Some(node.identity));
        }
        Ok(Answer::Continue)
    }
}

/// Tells whether a directory is the root of a subvolume, as btrfs numbers those.
fn is_subvolume(place: &Place) -> bool {
    const BTRFS: i64 = 0x9123_683e;
    const FIRST: u64 = 256;
    let has_number = place.stat.as_ref().is_some_and(|stat| stat.st_ino == FIRST);
    has_number && rustix::fs::fstatfs(&place.dir).is_ok_and(|found| found.f_type == BTRFS)
}

/// Tells whether what was kept is this very inode.
fn is_inode(image: &Image, node: &Node) -> bool {
    let number = (node.identity.dev, node.identity.ino);
    matches!(image, Image::Kept { identity, .. } if (identity.dev, identity.ino) == number)
}

/// Tells whether this process may make and remove names where a file is.
fn is_replaceable(place: &Place) -> bool {
    accessat(&place.dir, ".", Access::WRITE_OK, AtFlags::EACCESS).is_ok()
}
