//! Phase A: everything new, complete and synced, under its temporary name.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd as _, OwnedFd};

use backout_model::{Digest, TargetPath};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, linkat, mkdirat, mknodat, openat, symlinkat,
};
use rustix::io::Errno;

use super::{Done, Run, SINGLE_SYNCS_MAX, Step};
use crate::file::before_image::digest_of;
use crate::file::error::{FileError, Naming as _};
use crate::file::recipe::{Change, Identity, Image, Kind, Meta};
use crate::file::reversed;
use crate::file::stage::Material;
use crate::file::sys::{Dir, Place, ToSync, bytes, meta, names};

impl Run<'_> {
    /// Makes the new side of every step, and makes it durable.
    pub(super) fn make_all(&mut self) -> Result<(), FileError> {
        let mut files: Vec<ToSync> = Vec::new();
        let mut count = 0_usize;
        let steps = self.steps;
        // Second names come last: the first may be one that is made here, too.
        let is_name = |step: &Step| {
            let Change::Set { after, .. } = &step.change else {
                return false;
            };
            matches!(after, Image::Linked { .. })
        };
        let numbered = || steps.iter().enumerate();
        let firsts = numbered().filter(|(_, step)| !is_name(step));
        let seconds = numbered().filter(|(_, step)| is_name(step));
        for (index, step) in firsts.chain(seconds) {
            self.context.watch.advance(1);
            let Change::Set { path, after, .. } = &step.change else {
                continue;
            };
            if let Some(file) = self.make(index, after, &step.material)? {
                count += 1;
                if count <= SINGLE_SYNCS_MAX {
                    files.push((file, path.clone(), self.sync_name(true)));
                }
            }
            self.context.reach("file.made")?;
        }
        self.finish_directories()?;
        if count > SINGLE_SYNCS_MAX {
            return self.sync_file_systems();
        }
        self.context.syncs.files(&files)?;
        for _ in &files {
            self.context.reach("file.synced")?;
        }
        self.sync_new_directories()
    }

    /// Makes one new thing under its temporary name. Gives back the file, if it has bytes to sync.
    pub(super) fn make(
        &mut self,
        index: usize,
        image: &Image,
        material: &Material,
    ) -> Result<Option<OwnedFd>, FileError> {
        let Some(stage) = self.stages.get(index).cloned() else {
            return Ok(None);
        };
        let place = Dir::of(&stage)?;
        let (dir, name) = (&place.dir, &place.name);
        match image {
            Image::Absent => Ok(None),
            Image::Unkept { why, .. } => Err(FileError::NoWayToKeep {
                path: stage.to_string(),
                why: why.clone(),
            }),
            Image::Directory { .. } => {
                mkdirat(dir, name, Mode::from_raw_mode(0o700)).naming(&stage, "make")?;
                self.done.push(Done::Made(index));
                Ok(None)
            }
            Image::Symlink { to, meta } => {
                symlinkat(to.0.as_slice(), dir, name).naming(&stage, "make")?;
                self.done.push(Done::Made(index));
                self.dress(&place, Kind::Symlink, meta)?;
                Ok(None)
            }
            Image::Special { node, device, meta } => {
                let mode = Mode::from_raw_mode(0o600);
                mknodat(dir, name, file_type(*node), mode, *device).naming(&stage, "make")?;
                self.done.push(Done::Made(index));
                self.dress(&place, *node, meta)?;
                Ok(None)
            }
            Image::Linked { to, identity, .. } => self
                .make_name(index, &place, to, identity.as_ref())
                .map(|()| None),
            Image::Kept {
                slot,
                node,
                identity,
                ..
            } => {
                let kept = Dir::of(&slot.path())?;
                names::rename_to_free(&kept, &place)?;
                self.done.push(Done::Taken(index));
                // If it has other names, our own rename has touched its change time.
                self.shared.insert(identity.ino);
                self.depots.insert(slot.depot.clone());
                if !place
                    .node()?
                    .is_some_and(|now| now.is_kept(*node, identity))
                {
                    return Err(FileError::Changed {
                        path: slot.path().to_string(),
                    });
                }
                Ok(None)
            }
            Image::File {
                digest,
                meta,
                holes,
                ..
            } => self
                .make_file(index, &place, material, (digest, holes), meta)
                .map(Some),
        }
    }

    /// Gives the temporary path of a name that this very operation brings: by itself, or in a tree that was kept whole.
    fn staged(&self, path: &TargetPath) -> Option<TargetPath> {
        let own = self
            .steps
            .iter()
            .position(|step| step.change.set_path() == Some(path));
        if let Some(own) = own {
            return self.stages.get(own).cloned();
        }
        let is_brought = |step: &Step| match &step.change {
            Change::Set {
                path: tree, after, ..
            } => after.is_directory() && path.is_below(tree),
            Change::Move { .. } | Change::Retouch { .. } | Change::Rewrite { .. } => false,
        };
        let tree = self.steps.iter().rposition(is_brought)?;
        let (from, to) = (self.steps.get(tree)?.change.path(), self.stages.get(tree)?);
        path.rebase(from, to)
    }

    /// Gives a file another name, the temporary one.
    fn make_name(
        &mut self,
        index: usize,
        place: &Place,
        to: &TargetPath,
        identity: Option<&Identity>,
    ) -> Result<(), FileError> {
        // The first name may itself still be a temporary one, or stand for the file until another takes it.
        let known = identity.map(|identity| identity.ino);
        let is_there = known.is_some() && number_at(to)? == known;
        let own = self.staged(to).filter(|_| !is_there);
        let first = own.unwrap_or_else(|| to.clone());
        names::link(&Dir::of(&first)?, place)?;
        self.done.push(Done::Made(index));
        let number = place.node()?.map(|node| node.identity.ino);
        self.shared.extend(number);
        if known.is_some() && number != known {
            return Err(FileError::Changed {
                path: to.to_string(),
            });
        }
        Ok(())
    }

    fn make_file(
        &mut self,
        index: usize,
        place: &Place,
        material: &Material,
        (digest, holes): (&Digest, &[(u64, u64)]),
        wanted: &Meta,
    ) -> Result<OwnedFd, FileError> {
        let path = place.path();
        if let Material::Nameless(file) = material {
            let from = meta::proc_path(file.as_fd());
            match linkat(CWD, from, &place.dir, &place.name, AtFlags::SYMLINK_FOLLOW) {
                Ok(()) => {
                    self.done.push(Done::Made(index));
                    return file.as_fd().try_clone_to_owned().naming(&path, "open");
                }
                Err(Errno::XDEV | Errno::NOENT | Errno::OPNOTSUPP) => {}
                Err(errno) => return Err(FileError::of(errno, &path, "name")),
            }
        }
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o600);
        let opened = openat(&place.dir, &place.name, flags, mode).naming(&path, "make")?;
        self.done.push(Done::Made(index));
        let mut file = File::from(opened);
        let found = self.fill(index, &mut file, place, (material, digest))?;
        if found != *digest {
            return Err(FileError::WrongContent {
                path: path.to_string(),
                digest: *digest,
            });
        }
        bytes::punch(&file, holes).naming(&path, "write")?;
        let gaps = meta::write(&file, Kind::File, wanted, &path)?;
        self.note_gaps(index, &gaps);
        Ok(file.into())
    }

    /// Puts the bytes into a new file and tells which they were.
    fn fill(
        &self,
        index: usize,
        file: &mut File,
        place: &Place,
        (material, digest): (&Material, &Digest),
    ) -> Result<Digest, FileError> {
        let path = place.path();
        match material {
            Material::Bytes(content) => {
                file.write_all(content).naming(&path, "write")?;
                Ok(Digest::of(content))
            }
            Material::Nameless(from) => {
                bytes::clone_file(from, file).naming(&path, "write")?;
                Ok(digest_of(place)?.0)
            }
            Material::Spooled(from) => {
                let from = from.rewound().naming(&path, "read")?;
                bytes::clone_file(from, file).naming(&path, "write")?;
                Ok(digest_of(place)?.0)
            }
            Material::CopyOf(source, seen) => {
                let from = Dir::of(source)?;
                let opened = from.read()?;
                bytes::clone_file(&opened, file).naming(&path, "write")?;
                let is_same = from.node()?.is_some_and(|node| {
                    (node.identity.ino, node.identity.mtime) == (seen.ino, seen.mtime)
                });
                let found = digest_of(place)?.0;
                if !is_same || found != *digest {
                    return Err(FileError::Changed {
                        path: source.to_string(),
                    });
                }
                Ok(found)
            }
            Material::Stored | Material::Image => {
                let step = self.steps.get(index);
                let target = step.map_or(&path, |step| step.change.path());
                let mut from = reversed::open(self.context, target, digest)?;
                Ok(bytes::copy_stream(&mut from, file)
                    .naming(&path, "write")?
                    .0)
            }
        }
    }

    fn dress(&mut self, place: &Place, kind: Kind, wanted: &Meta) -> Result<(), FileError> {
        let gaps = meta::write(place.handle()?, kind, wanted, &place.path())?;
        if let Some(gap) = gaps.first() {
            self.gaps.push((place.path(), gap.clone()));
        }
        Ok(())
    }

    fn note_gaps(&mut self, index: usize, gaps: &[String]) {
        if let (Some(gap), Some(step)) = (gaps.first(), self.steps.get(index)) {
            self.gaps.push((step.change.path().clone(), gap.clone()));
        }
    }

    /// Gives new directories their metadata, deepest first, now that their entries are in.
    fn finish_directories(&mut self) -> Result<(), FileError> {
        let steps = self.steps;
        for (index, step) in steps.iter().enumerate().rev() {
            let Change::Set {
                after: Image::Directory { meta },
                ..
            } = &step.change
            else {
                continue;
            };
            let Some(stage) = self.stages.get(index).cloned() else {
                continue;
            };
            self.dress(&Dir::of(&stage)?, Kind::Directory, meta)?;
        }
        Ok(())
    }

    fn sync_new_directories(&self) -> Result<(), FileError> {
        for (step, stage) in std::iter::zip(self.steps, &self.stages) {
            if matches!(
                step.change,
                Change::Set {
                    after: Image::Directory { .. },
                    ..
                }
            ) {
                self.context
                    .syncs
                    .dir(&*Dir::of(stage)?.enter()?, self.sync_name(false))?;
            }
        }
        Ok(())
    }

    /// Syncs each file system that something new stands on.
    pub(super) fn sync_file_systems(&self) -> Result<(), FileError> {
        let mut dirs = BTreeMap::new();
        let paths: std::collections::BTreeSet<_> =
            self.stages.iter().filter_map(TargetPath::parent).collect();
        for path in paths {
            // A directory that was removed by now has nothing left to sync.
            match Dir::open(&path) {
                Ok(dir) => drop(dirs.insert(dir.node()?.identity.dev, dir)),
                Err(error) if error.leads_nowhere() => {}
                Err(error) => return Err(error),
            }
        }
        for dir in dirs.values() {
            self.context.syncs.file_system(dir, self.sync_name(true))?;
        }
        self.context.reach("file.synced")
    }
}

const fn file_type(kind: Kind) -> FileType {
    match kind {
        Kind::File => FileType::RegularFile,
        Kind::Directory => FileType::Directory,
        Kind::Symlink => FileType::Symlink,
        Kind::Fifo => FileType::Fifo,
        Kind::Socket => FileType::Socket,
        Kind::BlockDevice => FileType::BlockDevice,
        Kind::CharacterDevice => FileType::CharacterDevice,
    }
}

/// Gives the number of the inode that a name stands for.
fn number_at(path: &TargetPath) -> Result<Option<u64>, FileError> {
    match Dir::of(path) {
        Ok(place) => Ok(place.node()?.map(|node| node.identity.ino)),
        Err(FileError::NotFound { .. } | FileError::NotADirectory { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
