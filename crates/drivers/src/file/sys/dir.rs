//! Directories, opened without following a symbolic link anywhere on the way, and names in them.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Component;
use std::sync::Arc;

use backout_capture::owner;
use backout_model::TargetPath;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

use crate::file::error::{FileError, Naming as _};
use crate::file::recipe::Kind;
use crate::file::sys::Node;

/// An open directory.
#[derive(Debug)]
pub(crate) struct Dir {
    fd: OwnedFd,
    path: TargetPath,
    /// Whether the descriptor may be read and synced, or only walked through.
    is_readable: bool,
}

impl Dir {
    /// Opens a directory whose path has no symbolic link in it.
    pub(crate) fn open(path: &TargetPath) -> Result<Arc<Self>, FileError> {
        let read = OFlags::RDONLY | OFlags::NOATIME;
        let tries = [(read, true), (OFlags::RDONLY, true), (OFlags::PATH, false)];
        let mut last = Errno::ACCESS;
        for (flags, is_readable) in tries {
            match open_beneath_no_link(path, flags | OFlags::DIRECTORY | OFlags::CLOEXEC) {
                Ok(fd) => return Ok(Self::new(fd, path.clone(), is_readable)),
                Err(errno @ (Errno::PERM | Errno::ACCESS)) => last = errno,
                Err(errno) => return Err(FileError::of(errno, path, "open")),
            }
        }
        let whole = path.as_path().as_os_str();
        let opened = as_owner(CWD, whole, OFlags::PATH | OFlags::DIRECTORY, last);
        let fd = opened.naming(path, "open")?;
        Ok(Self::new(fd, path.clone(), false))
    }

    /// One that can only be walked through because it is closed to its owner, who we are, can be listed all the same.
    fn new(fd: OwnedFd, path: TargetPath, is_readable: bool) -> Arc<Self> {
        let is_ours = || {
            let user = rustix::process::geteuid().as_raw();
            rustix::fs::fstat(&fd).is_ok_and(|stat| stat.st_uid == user)
        };
        let readable = if !is_readable && is_ours() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            as_owner(&fd, OsStr::new("."), flags, Errno::ACCESS).ok()
        } else {
            None
        };
        let is_readable = is_readable || readable.is_some();
        Arc::new(Self {
            fd: readable.unwrap_or(fd),
            path,
            is_readable,
        })
    }

    /// Opens the directory that holds `path`.
    pub(crate) fn of(path: &TargetPath) -> Result<Place, FileError> {
        let unusable = || FileError::Unusable {
            path: path.to_string(),
        };
        let parent = path.parent().ok_or_else(unusable)?;
        let name = path.file_name().ok_or_else(unusable)?.to_owned();
        Ok(Place {
            dir: Self::open(&parent)?,
            name,
        })
    }

    /// Gives the path it was opened by.
    pub(crate) const fn path(&self) -> &TargetPath {
        &self.path
    }

    /// Tells whether it can be listed and synced.
    pub(crate) const fn is_readable(&self) -> bool {
        self.is_readable
    }

    /// Gives a place in it.
    pub(crate) fn place(self: &Arc<Self>, name: &OsStr) -> Place {
        Place {
            dir: Self::clone_of(self),
            name: name.to_owned(),
        }
    }

    fn clone_of(this: &Arc<Self>) -> Arc<Self> {
        Arc::clone(this)
    }

    /// Lists the names in it, sorted.
    pub(crate) fn names(&self) -> Result<Vec<OsString>, FileError> {
        use std::os::unix::ffi::OsStrExt as _;
        let reader = match rustix::fs::Dir::read_from(&self.fd) {
            Err(errno @ Errno::ACCESS) => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY;
                as_owner(&self.fd, OsStr::new("."), flags, errno).and_then(rustix::fs::Dir::new)
            }
            other => other,
        };
        let reader = reader.naming(&self.path, "list")?;
        let mut names = Vec::new();
        for entry in reader {
            let entry = entry.naming(&self.path, "list")?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(OsStr::from_bytes(name).to_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Reads what it is itself.
    pub(crate) fn node(&self) -> Result<Node, FileError> {
        let stat = rustix::fs::fstat(&self.fd).naming(&self.path, "look at")?;
        Ok(Node::of(&stat))
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A name in an open directory.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// The directory.
    pub(crate) dir: Arc<Dir>,
    /// The name.
    pub(crate) name: OsString,
}

impl Place {
    /// Gives the whole path, for messages.
    pub(crate) fn path(&self) -> TargetPath {
        self.dir.path().join(&self.name)
    }

    /// Looks at what is there, without following a link.
    pub(crate) fn node(&self) -> Result<Option<Node>, FileError> {
        let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
        match rustix::fs::statat(&self.dir, &self.name, flags) {
            Ok(stat) => Ok(Some(Node::of(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(errno @ Errno::ACCESS) => match self.opened(OFlags::PATH, errno) {
                Ok(handle) => {
                    let stat = rustix::fs::fstat(&handle).naming(&self.path(), "look at")?;
                    Ok(Some(Node::of(&stat)))
                }
                Err(Errno::NOENT) => Ok(None),
                Err(errno) => Err(FileError::of(errno, &self.path(), "look at")),
            },
            Err(errno) => Err(FileError::of(errno, &self.path(), "look at")),
        }
    }

    /// Tells when what is there came to be, if the system says so.
    pub(crate) fn born(&self) -> Option<String> {
        use rustix::fs::{AtFlags, StatxFlags, statx};
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let found = statx(&self.dir, &self.name, flags, StatxFlags::BTIME).ok()?;
        let born = found.stx_btime;
        let is_told = found.stx_mask & StatxFlags::BTIME.bits() != 0;
        is_told.then(|| format!("{}.{:09}", born.tv_sec, born.tv_nsec))
    }

    /// Opens what is there, whatever it is, only to refer to it.
    pub(crate) fn handle(&self) -> Result<OwnedFd, FileError> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = match openat(&self.dir, &self.name, flags, Mode::empty()) {
            Err(errno @ Errno::ACCESS) => self.opened(OFlags::PATH, errno),
            other => other,
        };
        opened.naming(&self.path(), "open")
    }

    /// Opens what is closed to its owner, who we are.
    fn opened(&self, flags: OFlags, otherwise: Errno) -> Result<OwnedFd, Errno> {
        as_owner(&self.dir, &self.name, flags | OFlags::NOFOLLOW, otherwise)
    }

    /// Opens a regular file for reading, without touching its access time where that is allowed.
    pub(crate) fn read(&self) -> Result<File, FileError> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let quiet = openat(
            &self.dir,
            &self.name,
            flags | OFlags::NOATIME,
            Mode::empty(),
        );
        let opened = match quiet {
            Err(Errno::PERM) => openat(&self.dir, &self.name, flags, Mode::empty()),
            Err(errno @ Errno::ACCESS) => self.opened(flags | OFlags::NOATIME, errno),
            other => other,
        };
        let file = File::from(opened.naming(&self.path(), "read")?);
        let stat = rustix::fs::fstat(&file).naming(&self.path(), "look at")?;
        match Node::of(&stat).kind {
            Kind::File => Ok(file),
            Kind::Directory => Err(FileError::IsADirectory {
                path: self.path().to_string(),
            }),
            Kind::Symlink
            | Kind::Fifo
            | Kind::Socket
            | Kind::BlockDevice
            | Kind::CharacterDevice => Err(FileError::NotAFile {
                path: self.path().to_string(),
            }),
        }
    }

    /// Opens the directory that is there.
    pub(crate) fn enter(&self) -> Result<Arc<Dir>, FileError> {
        let path = self.path();
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut last = Errno::ACCESS;
        for extra in [
            OFlags::RDONLY | OFlags::NOATIME,
            OFlags::RDONLY,
            OFlags::PATH,
        ] {
            match openat(&self.dir, &self.name, flags | extra, Mode::empty()) {
                Ok(fd) => return Ok(Dir::new(fd, path, extra != OFlags::PATH)),
                Err(errno @ (Errno::PERM | Errno::ACCESS)) => last = errno,
                Err(errno) => return Err(FileError::of(errno, &path, "open")),
            }
        }
        let opened = self.opened(OFlags::PATH | OFlags::DIRECTORY, last);
        let fd = opened.naming(&path, "open")?;
        Ok(Dir::new(fd, path, false))
    }
}

/// Opens what the modes of files or directories close to their own owner. `otherwise` is why it is closed, if he is not who
/// we are, or the system does not let him.
pub(crate) fn as_owner(
    dir: impl AsFd,
    name: &OsStr,
    flags: OFlags,
    otherwise: Errno,
) -> Result<OwnedFd, Errno> {
    if rustix::process::geteuid().is_root() {
        return Err(otherwise);
    }
    match owner::open(dir, name, flags) {
        Ok(opened) => Ok(opened),
        Err(Errno::NOENT) => Err(Errno::NOENT),
        Err(_) => Err(otherwise),
    }
}

fn open_beneath_no_link(path: &TargetPath, flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match openat2(CWD, path.as_path(), flags, Mode::empty(), resolve) {
        Err(Errno::NOSYS) => walk_no_link(path, flags),
        other => other,
    }
}

/// Does what `openat2` does on kernels that lack it: one component at a time, following nothing.
fn walk_no_link(path: &TargetPath, flags: OFlags) -> Result<OwnedFd, Errno> {
    let through = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut at = openat(CWD, "/", through, Mode::empty())?;
    for component in path.as_path().components() {
        let Component::Normal(name) = component else {
            continue;
        };
        at = match openat(&at, name, through, Mode::empty()) {
            Ok(next) => next,
            // A symbolic link opened with O_DIRECTORY | O_NOFOLLOW is "not a directory": tell them apart.
            Err(Errno::NOTDIR) if is_link(&at, name) => return Err(Errno::LOOP),
            Err(errno) => return Err(errno),
        };
    }
    openat(&at, ".", flags, Mode::empty())
}

fn is_link(at: &OwnedFd, name: &OsStr) -> bool {
    rustix::fs::statat(at, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| Node::of(&stat).kind == Kind::Symlink)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_opening_refuse_a_link_on_the_way() {
        let world = tempfile::tempdir().unwrap();
        let root = world.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("real/inner")).unwrap();
        std::os::unix::fs::symlink("real", root.join("link")).unwrap();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        for (path, is_fine) in [("real/inner", true), ("link/inner", false), ("link", false)] {
            let path = TargetPath::new(root.join(path)).unwrap();
            assert_eq!(
                open_beneath_no_link(&path, flags).is_ok(),
                is_fine,
                "{path}"
            );
            assert_eq!(walk_no_link(&path, flags).is_ok(), is_fine, "{path}");
            let walked = walk_no_link(&path, flags).map(drop);
            assert!(is_fine || walked == Err(Errno::LOOP), "{path}");
        }
    }
}
