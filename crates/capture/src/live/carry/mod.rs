//! Carrying calls out in the place of the process that made them.
//!
//! Between our look and the kernel's another thread can change the path in memory, the directory or the descriptor that it
//! starts from, or a link on its way; another process can rename what it leads to. So where the process has our rights and
//! our mounts, what was asked is done here, to exactly what was looked at, and the result is handed over. Nothing of the
//! command happens in between: its calls are taken one after the other.
//!
//! Left to the kernel: pipes and terminals, which wait or belong to a session; sockets, which remember the path; what is
//! named by a descriptor, which is the same file whatever happens to its names.

mod dress;
mod times;

use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RenameFlags, fcntl_setfl, fstat, ftruncate, mkdirat, mknodat,
    openat, renameat_with, symlinkat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::umask;

use super::calls::{Act, Kind, Shape, as_int};
use super::masks::Masks;
use super::memory::{read_exactly, read_path};
use super::resolve::{Place, is_same};
use super::supervise::Touch;
use super::sys::{self, Notice};

/// What `null`, `zero`, `random` and their like have in common.
const MEMORY_DEVICES: u32 = 1;

/// What became of a call.
#[derive(Debug)]
pub(super) enum Carried {
    /// It is over, and this is what it gives.
    Over(Result<i32, Errno>),
    /// It is over, and made this file, known by its device and number. It gave a descriptor of this number, unless the
    /// process knows that already: then the file is still open here.
    Made(Result<i32, OwnedFd>, (u64, u64)),
    /// It failed, and nothing happened.
    Failed(Errno),
    /// What was looked at is not there any more: it must be looked at again.
    Again,
    /// The kernel has to do it.
    ByKernel,
}

impl From<Result<(), Errno>> for Carried {
    fn from(result: Result<(), Errno>) -> Self {
        match result {
            Ok(()) => Self::Over(Ok(0)),
            Err(errno) => Self::Failed(errno),
        }
    }
}

/// Does what a call asks for. Its paths are those of `touch`.
pub(super) fn carry_out(
    listener: BorrowedFd<'_>,
    notice: &Notice,
    shape: &Shape,
    touch: &Touch,
    masks: &RefCell<Masks>,
) -> Carried {
    let Some(place) = &touch.first else {
        return Carried::ByKernel;
    };
    let call = Call {
        notice,
        place,
        masks,
    };
    let done = match shape.kind {
        Kind::Open(_) if touch.act == Act::Read => Err(Carried::ByKernel),
        Kind::Open(flags) => call.open(listener, flags),
        Kind::Truncate => call.truncate(),
        Kind::Unlink(_) | Kind::Rmdir => Ok(call.remove(touch.act)),
        Kind::Rename(flags) => Ok(call.rename(flags, touch.second.as_ref())),
        Kind::Make => call.make(),
        Kind::Attributes => call.dress(),
        Kind::Times => call.set_times(),
        Kind::Link
        | Kind::Flags
        | Kind::Exec
        | Kind::Standing
        | Kind::Confining
        | Kind::Mask
        | Kind::Mounts
        | Kind::Quotas
        | Kind::Sync
        | Kind::Never(_) => Err(Carried::ByKernel),
    };
    done.unwrap_or_else(|early| early)
}

/// A call and what it is about.
struct Call<'c> {
    notice: &'c Notice,
    place: &'c Place,
    masks: &'c RefCell<Masks>,
}

impl Call<'_> {
    fn argument(&self, index: usize) -> u64 {
        let arguments = &self.notice.arguments;
        arguments.get(index).copied().unwrap_or_default()
    }

    fn int(&self, index: usize) -> u32 {
        as_int(self.argument(index)).cast_unsigned()
    }

    /// Opens the file and gives the process a descriptor of it.
    fn open(&self, listener: BorrowedFd<'_>, flags: Option<usize>) -> Result<Carried, Carried> {
        let creat = OFlags::CREATE | OFlags::WRONLY | OFlags::TRUNC;
        let asked = flags.map_or(creat.bits(), |index| self.int(index));
        let mode = self.int(flags.map_or(1, |index| index + 1));
        let asked = OFlags::from_bits_retain(asked);
        let is_new = self.place.stat.is_none();
        if is_new && !asked.contains(OFlags::CREATE) {
            return Err(Carried::Failed(Errno::NOENT));
        }
        if self.may_wait() {
            return Err(Carried::ByKernel);
        }
        let file = self.opened(asked, mode, is_new)?;
        if asked.contains(OFlags::TRUNC) && self.is_file() && is_written(asked) {
            ftruncate(&file, 0).map_err(|errno| Carried::Over(Err(errno)))?;
        }
        let status = OFlags::APPEND | OFlags::DIRECT | OFlags::NOATIME | OFlags::NONBLOCK;
        if !is_new && !asked.contains(OFlags::NONBLOCK) {
            let set = fcntl_setfl(&file, asked & status);
            set.map_err(|errno| Carried::Over(Err(errno)))?;
        }
        let closes = asked.contains(OFlags::CLOEXEC);
        let give = |answers: bool| {
            let how = (closes, answers);
            sys::give(listener, self.notice.id, file.as_fd(), how)
        };
        let new = is_new.then(|| fstat(&file).ok()).flatten();
        let new = new.map(|file| (file.st_dev, file.st_ino));
        // Nobody has locked a new file, and who would execute it asks first: by then it is closed here.
        if let Some(number) = new
            && give(true).is_ok()
        {
            return Ok(Carried::Made(Err(file), number));
        }
        let given = give(false);
        // It must be closed here before the process goes on: else it could not be executed yet.
        drop(file);
        Ok(match (given, new) {
            (Ok(number), Some(file)) => Carried::Made(Ok(number), file),
            (Ok(number), None) => Carried::Over(Ok(number)),
            // Whoever asked is gone.
            (Err(Errno::NOENT), _) => Carried::Over(Ok(0)),
            (Err(Errno::INVAL | Errno::NOTTY), _) => Carried::ByKernel,
            (Err(errno), _) => Carried::Over(Err(errno)),
        })
    }

    /// Opens what was looked at, and nothing else.
    fn opened(&self, asked: OFlags, mode: u32, is_new: bool) -> Result<OwnedFd, Carried> {
        let mut how = asked | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if is_new {
            // Nobody else has it, so nothing can be waited for.
            how |= OFlags::EXCL;
        } else {
            how |= OFlags::NONBLOCK;
            if is_written(asked) {
                how -= OFlags::TRUNC;
            }
        }
        let mode = Mode::from_raw_mode(mode & 0o7777);
        let open = || openat(&self.place.dir, self.name(), how, mode);
        let opened = if is_new { self.masked(open)? } else { open() };
        let is_asked_for = asked.contains(OFlags::EXCL) || !is_new;
        let file = opened.map_err(|errno| match errno {
            Errno::EXIST if !is_asked_for => Carried::Again,
            Errno::NOENT | Errno::LOOP if !is_new && !self.is_link() => Carried::Again,
            // Somebody has a lease of it, and is asked to give it back.
            Errno::WOULDBLOCK => Carried::ByKernel,
            other => Carried::Failed(other),
        })?;
        self.must_be(&file)?;
        Ok(file)
    }

    /// Tells whether an open could wait for somebody, or makes a terminal that of a session.
    fn may_wait(&self) -> bool {
        self.place
            .stat
            .as_ref()
            .is_some_and(|stat| match FileType::from_raw_mode(stat.st_mode) {
                FileType::Fifo => true,
                FileType::CharacterDevice => rustix::fs::major(stat.st_rdev) != MEMORY_DEVICES,
                _ => false,
            })
    }

    fn truncate(&self) -> Result<Carried, Carried> {
        let length = self.argument(1);
        // That comes before the look whether the file is there.
        if length.cast_signed() < 0 {
            return Err(Carried::Failed(Errno::INVAL));
        }
        let size = self.place.stat.as_ref().map_or(0, |stat| stat.st_size);
        let grows = u64::try_from(size).is_ok_and(|size| length > size);
        // Who makes a file longer than it may be gets a signal.
        if grows && sys::has_size_limit(self.notice.thread) {
            return Err(Carried::ByKernel);
        }
        let handle = self.handle()?;
        let done = sys::truncate(&link_of(&handle), length.cast_signed());
        Ok(Carried::from(done))
    }

    fn remove(&self, act: Act) -> Carried {
        let flags = if act == Act::Rmdir {
            AtFlags::REMOVEDIR
        } else {
            AtFlags::empty()
        };
        Carried::from(unlinkat(&self.place.dir, self.name(), flags))
    }

    fn rename(&self, flags: Option<usize>, to: Option<&Place>) -> Carried {
        let Some(to) = to else {
            return Carried::ByKernel;
        };
        let flags = flags.map_or(0, |index| self.int(index));
        let flags = RenameFlags::from_bits_retain(flags);
        let (from, name) = (self.name(), name_of(to));
        Carried::from(renameat_with(&self.place.dir, from, &to.dir, name, flags))
    }

    fn make(&self) -> Result<Carried, Carried> {
        let (dir, name) = (&self.place.dir, self.name());
        let mode_at = match self.notice.number {
            libc::SYS_mkdirat | libc::SYS_mknodat => 2,
            _ => 1,
        };
        let mode = self.int(mode_at);
        let rights = Mode::from_raw_mode(mode & 0o7777);
        let done = match which(self.notice.number) {
            Some(New::Directory) => self.masked(|| mkdirat(dir, &name, rights))?,
            Some(New::Node) => {
                let kind = kind_of(mode).map_err(Carried::Failed)?;
                let device = u64::from(self.int(mode_at + 1));
                self.masked(|| mknodat(dir, &name, kind, rights, device))?
            }
            Some(New::Link) => {
                let to = read_path(self.notice.thread, self.argument(0));
                let to = to.map_err(Carried::Failed)?;
                symlinkat(to.as_slice(), dir, &name)
            }
            None => return Err(Carried::ByKernel),
        };
        Ok(Carried::from(done))
    }

    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Carried> {
        let read = read_exactly(self.notice.thread, address, into);
        read.map_err(Carried::Failed)
    }

    /// Holds what was looked at.
    fn handle(&self) -> Result<OwnedFd, Carried> {
        if self.place.stat.is_none() {
            return Err(Carried::Failed(Errno::NOENT));
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = openat(&self.place.dir, self.name(), flags, Mode::empty());
        let handle = opened.map_err(|errno| match errno {
            Errno::NOENT => Carried::Again,
            other => Carried::Failed(other),
        })?;
        self.must_be(&handle)?;
        Ok(handle)
    }

    /// What was opened must be what was looked at, where there was anything.
    fn must_be(&self, opened: &OwnedFd) -> Result<(), Carried> {
        match &self.place.stat {
            Some(stat) if !is_same(stat, opened.as_fd()) => Err(Carried::Again),
            Some(_) | None => Ok(()),
        }
    }

    /// Makes something as the process would: with its mask.
    fn masked<T>(&self, act: impl FnOnce() -> T) -> Result<T, Carried> {
        let mask = self.masks.borrow_mut().of(self.notice.thread);
        let mask = Mode::from_raw_mode(mask.ok_or(Carried::ByKernel)?);
        if mask == own_mask() {
            return Ok(act());
        }
        let own = umask(mask);
        let done = act();
        umask(own);
        Ok(done)
    }

    fn is_link(&self) -> bool {
        self.kind() == Some(FileType::Symlink)
    }

    fn is_file(&self) -> bool {
        self.kind() == Some(FileType::RegularFile)
    }

    fn kind(&self) -> Option<FileType> {
        let stat = self.place.stat.as_ref();
        stat.map(|stat| FileType::from_raw_mode(stat.st_mode))
    }

    fn name(&self) -> OsString {
        name_of(self.place)
    }
}

/// Gives our own mask, which is always put back.
fn own_mask() -> Mode {
    static OWN: OnceLock<Mode> = OnceLock::new();
    *OWN.get_or_init(|| {
        let own = umask(Mode::RWXU | Mode::RWXG | Mode::RWXO);
        umask(own);
        own
    })
}

/// What comes to be.
enum New {
    Directory,
    Node,
    Link,
}

fn which(number: i64) -> Option<New> {
    match number {
        libc::SYS_mkdirat => Some(New::Directory),
        libc::SYS_mknodat => Some(New::Node),
        libc::SYS_symlinkat => Some(New::Link),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_mkdir => Some(New::Directory),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_mknod => Some(New::Node),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_symlink => Some(New::Link),
        _ => None,
    }
}

/// Tells what kind of node is asked for.
fn kind_of(mode: u32) -> Result<FileType, Errno> {
    const KIND: u32 = 0o170_000;
    match FileType::from_raw_mode(mode & KIND) {
        _ if mode & KIND == 0 => Ok(FileType::RegularFile),
        FileType::Directory => Err(Errno::PERM),
        FileType::Symlink | FileType::Unknown => Err(Errno::INVAL),
        kind => Ok(kind),
    }
}

fn is_written(flags: OFlags) -> bool {
    flags.intersects(OFlags::WRONLY | OFlags::RDWR)
}

/// Gives the name as it was given: with a slash behind it, if there was one.
fn name_of(place: &Place) -> OsString {
    let mut name = place.name.clone();
    if place.is_slashed {
        name.push(OsStr::new("/"));
    }
    name
}

/// Gives a path that leads to what is open, and nowhere else.
fn link_of(opened: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", opened.as_raw_fd())
}
