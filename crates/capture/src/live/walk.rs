//! Walking along a path as another process would.
//!
//! The kernel walks for us where that is exact. It is not where the process has another root, nor in `/proc`, whose
//! `self` is the one who looks: there each component is taken by itself.

use std::ffi::OsStr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, ResolveFlags, Stat, StatxFlags, fstat, fstatfs, openat, openat2,
    readlinkat, statx,
};
use rustix::io::Errno;

use super::paths::{self, Beginning, Number};
use super::process_info::{Scene, number_in};
use super::resolve::{Base, Dots, Held, Last, Lost, is_link, lost, path_of, remembered, stat_of};

/// How many symbolic links in a row are followed, as the kernel does.
const LINKS_MAX: usize = 40;

/// What `/proc` calls itself.
const PROC: i64 = 0x9fa0;

/// The number of the root directory of any `/proc`.
const PROC_ROOT: u64 = 1;

/// Where a path leads.
#[derive(Debug)]
pub(super) enum Lead {
    /// To a name in a directory.
    Name {
        dir: Held,
        name: Vec<u8>,
        stat: Option<Stat>,
        is_slashed: bool,
    },
    /// To something that is open now, by no name.
    Itself(Held),
    /// To no name, where one is wanted.
    Dots(Dots),
}

/// What a link leads to.
enum Target {
    Text(Vec<u8>),
    Opened(Held),
}

/// One walk for one task.
pub(super) struct Walk {
    thread: u32,
    scene: Scene,
    links: usize,
    /// The number and the path of the directory that the last component is looked for in first, where they are known.
    known: Option<(Number, Vec<u8>)>,
    /// Where the way to that directory began, if it had no link in it.
    straight: Option<Beginning>,
    /// The first link at the end of the path that was followed.
    through: Option<Vec<u8>>,
}

impl Walk {
    pub(super) const fn new(thread: u32, scene: Scene) -> Self {
        Self {
            thread,
            scene,
            links: 0,
            known: None,
            straight: None,
            through: None,
        }
    }

    /// Gives the first link at the end of the path, if one was followed.
    pub(super) const fn through(&mut self) -> Option<Vec<u8>> {
        self.through.take()
    }

    /// Gives the number and the path of the directory that was found, where they are known.
    pub(super) const fn known(&mut self) -> Option<(Number, Vec<u8>)> {
        self.known.take()
    }

    /// Remembers the way to the directory that was found, if it can be gone again without a look at it.
    pub(super) fn remember(&self, path: &[u8], dir: &Held, number: Number) {
        if let Some(from) = self.straight {
            paths::leads(from, split(path).0, dir, number);
        }
    }

    /// Walks.
    pub(super) fn lead(&mut self, base: Base, path: &[u8], last: Last) -> Result<Lead, Lost> {
        let Some(first) = path.first() else {
            return Err(Lost::Fails(Errno::NOENT));
        };
        let is_absolute = *first == b'/';
        if self.scene.is_plain()
            && let Some((dir, name)) = self.at_once(base, path, is_absolute)?
        {
            return self.walk(dir, name.to_vec(), last);
        }
        let start = if is_absolute {
            self.root()?
        } else {
            base.start(self.thread)?
        };
        self.walk(Held::new(start), path.to_vec(), last)
    }

    /// Lets the kernel walk up to the last component. None if it could go wrong: that is in `/proc`.
    fn at_once<'p>(
        &mut self,
        base: Base,
        path: &'p [u8],
        is_absolute: bool,
    ) -> Result<Option<(Held, &'p [u8])>, Lost> {
        let (parent, name) = split(path);
        if let Some(dir) = self.led(base, parent, is_absolute) {
            return Ok(Some((dir, name)));
        }
        let opened = match (is_absolute, parent.is_empty()) {
            (true, _) => self.down(None, parent),
            (false, true) => Ok(base.start(self.thread)?),
            (false, false) => self.down(Some(base.start(self.thread)?.as_fd()), parent),
        };
        match opened {
            Ok(dir) => {
                // What is remembered is no `/proc`.
                self.known = remembered(self.scene, dir.as_fd());
                let is_good = self.known.is_some() || !is_proc(dir.as_fd());
                Ok(is_good.then(|| (Held::new(dir), name)))
            }
            // What is not there for us may be there for the task: `/proc/self` is somebody else.
            Err(_) => Ok(None),
        }
    }

    /// Lets the kernel walk along a path, from a directory or from the root.
    fn down(&mut self, from: Option<BorrowedFd<'_>>, along: &[u8]) -> Result<OwnedFd, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let plain = ResolveFlags::NO_MAGICLINKS;
        let to = |how: ResolveFlags| {
            let at = from.unwrap_or(CWD);
            openat2(at, OsStr::from_bytes(along), flags, Mode::empty(), how)
        };
        // Only where it may be worth remembering: a link on the way costs a second walk.
        if self.scene.has_new_mounts || !is_straight(along) || !paths::is_worth_it(along) {
            return to(plain);
        }
        match to(plain | ResolveFlags::NO_SYMLINKS) {
            Ok(dir) => {
                let number = |from| fstat(from).map(|found| (found.st_dev, found.st_ino));
                self.straight = match from {
                    None => Some(Beginning::Root),
                    Some(from) => number(from).map(Beginning::Directory).ok(),
                };
                Ok(dir)
            }
            Err(_) => to(plain),
        }
    }

    /// Goes a way that was gone before, if it begins where this one does.
    fn led(&mut self, base: Base, along: &[u8], is_absolute: bool) -> Option<Held> {
        if self.scene.has_new_mounts {
            return None;
        }
        let from = paths::begins(along)?;
        let is_it = match from {
            Beginning::Root => is_absolute,
            Beginning::Directory(from) => !is_absolute && base.number(self.thread) == Some(from),
        };
        let (dir, number, path) = is_it.then(|| paths::led(along)).flatten()?;
        self.known = Some((number, path));
        Some(dir)
    }

    /// Walks one component after the other.
    fn walk(&mut self, start: Held, path: Vec<u8>, last: Last) -> Result<Lead, Lost> {
        let (mut at, mut rest) = (start, path);
        let mut is_first = true;
        loop {
            let (name, after) = next(&rest);
            let is_last = after.iter().all(|byte| *byte == b'/');
            let is_slashed = !after.is_empty();
            let dots = match name {
                b"" => Some(Dots::Root),
                b"." => Some(Dots::One),
                b".." => Some(Dots::Two),
                _ => None,
            };
            if let Some(dots) = dots {
                if is_last && last == Last::Name {
                    return Ok(Lead::Dots(dots));
                }
                if dots == Dots::Two {
                    at = self.above(at)?;
                    is_first = false;
                }
                if is_last {
                    return Ok(Lead::Itself(at));
                }
                rest = after.to_vec();
                continue;
            }
            let found = stat_of(at.as_fd(), OsStr::from_bytes(name));
            let found = found.map_err(|errno| lost(errno, self.scene))?;
            let is_followed =
                !is_last || last == Last::Followed || last == Last::Itself && is_slashed;
            if is_followed && found.as_ref().is_some_and(is_link) {
                is_first = false;
                match self.follow(at.as_fd(), name)? {
                    Target::Opened(opened) if is_last => return Ok(Lead::Itself(opened)),
                    Target::Opened(opened) => {
                        at = opened;
                        rest = after.to_vec();
                    }
                    Target::Text(to) => {
                        if is_last && self.through.is_none() && self.scene.is_plain() {
                            let directory = path_of(at.as_fd()).ok();
                            self.through = directory.map(|it| [&it[..], b"/", name].concat());
                        }
                        if to.first() == Some(&b'/') {
                            at = Held::new(self.root()?);
                        }
                        rest = [&to, after].concat();
                    }
                }
                continue;
            }
            if is_last {
                if !is_first {
                    (self.known, self.straight) = (None, None);
                }
                return Ok(Lead::Name {
                    name: name.to_vec(),
                    dir: at,
                    stat: found,
                    is_slashed,
                });
            }
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let opened = openat(&at, OsStr::from_bytes(name), flags, Mode::empty());
            at = Held::new(opened.map_err(|errno| lost(errno, self.scene))?);
            is_first = false;
            rest = after.to_vec();
        }
    }

    /// Goes up one directory, but not above the root of the task.
    fn above(&self, at: Held) -> Result<Held, Lost> {
        if !self.scene.is_plain() && is_same_mount(&at, &self.root()?) {
            return Ok(at);
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = openat(&at, "..", flags, Mode::empty());
        opened
            .map(Held::new)
            .map_err(|errno| lost(errno, self.scene))
    }

    /// Reads a link as the task does.
    fn follow(&mut self, dir: BorrowedFd<'_>, name: &[u8]) -> Result<Target, Lost> {
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(Lost::Fails(Errno::LOOP));
        }
        let name = OsStr::from_bytes(name);
        let told = |errno| lost(errno, self.scene);
        if is_proc(dir) {
            let is_root = fstat(dir).is_ok_and(|stat| stat.st_ino == PROC_ROOT);
            let is_self = is_root && (name == "self" || name == "thread-self");
            if is_self {
                let numbers = number_in(self.thread, dir).ok_or(Lost::Fails(Errno::NOENT))?;
                let text = match name.as_bytes() {
                    b"self" => numbers.0.to_string(),
                    _ => format!("{}/task/{}", numbers.0, numbers.1),
                };
                return Ok(Target::Text(text.into_bytes()));
            }
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            let plain = openat2(dir, name, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS);
            if plain.is_err_and(|errno| errno == Errno::LOOP) {
                let opened = openat(dir, name, flags, Mode::empty());
                return opened
                    .map(|opened| Target::Opened(Held::new(opened)))
                    .map_err(told);
            }
        }
        let to = readlinkat(dir, name, Vec::new()).map_err(told)?;
        Ok(Target::Text(to.into_bytes()))
    }

    /// Opens the root directory of the task.
    fn root(&self) -> Result<OwnedFd, Lost> {
        let path = if self.scene.is_plain() {
            "/".to_owned()
        } else {
            format!("/proc/{}/root", self.thread)
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(CWD, path, flags, Mode::empty())
            .map_err(|errno| Lost::Blind(errno, "its root directory cannot be looked at"))
    }
}

fn is_proc(dir: BorrowedFd<'_>) -> bool {
    fstatfs(dir).is_ok_and(|found| found.f_type == PROC)
}

/// Tells whether two descriptors are the same directory of the same mount.
fn is_same_mount(one: &OwnedFd, other: &OwnedFd) -> bool {
    let which = |fd: &OwnedFd| {
        let wanted = StatxFlags::INO | StatxFlags::MNT_ID;
        statx(fd, "", AtFlags::EMPTY_PATH, wanted)
            .map(|found| (found.stx_mnt_id, found.stx_ino, found.stx_dev_minor))
    };
    matches!((which(one), which(other)), (Ok(one), Ok(other)) if one == other)
}

/// Tells whether a path has no dots in it, which could lead back.
fn is_straight(path: &[u8]) -> bool {
    let mut names = path.split(|byte| *byte == b'/');
    !path.is_empty() && names.all(|name| name != b"." && name != b"..")
}

/// Takes the first component of a path, without the slashes before it; those behind it stay with the rest.
fn next(path: &[u8]) -> (&[u8], &[u8]) {
    let start = path.iter().position(|byte| *byte != b'/');
    let path = path.get(start.unwrap_or(path.len())..).unwrap_or_default();
    let end = path.iter().position(|byte| *byte == b'/');
    path.split_at(end.unwrap_or(path.len()))
}

/// Splits a path before its last component; slashes at the end stay with it.
pub(super) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    let end = path
        .iter()
        .rposition(|byte| *byte != b'/')
        .map_or(0, |at| at + 1);
    let slash = path.iter().take(end).rposition(|byte| *byte == b'/');
    match slash {
        Some(at) => {
            let (parent, rest) = path.split_at(at);
            let parent = if parent.is_empty() { b"/" } else { parent };
            (parent, rest.get(1..).unwrap_or_default())
        }
        None if end == 0 => (path, b""),
        None => (b"", path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_split_before_their_last_component() {
        for (path, parent, name) in [
            ("a", "", "a"),
            ("a/b", "a", "b"),
            ("/a", "/", "a"),
            ("/a/b/", "/a", "b/"),
            ("a//b", "a/", "b"),
            (".", "", "."),
            ("//", "//", ""),
        ] {
            let expected = (parent.as_bytes(), name.as_bytes());
            assert_eq!(split(path.as_bytes()), expected, "{path}");
        }
    }

    #[test]
    fn components_come_one_after_the_other() {
        for (path, first, rest) in [
            ("a", "a", ""),
            ("//a//b/", "a", "//b/"),
            ("///", "", ""),
            ("", "", ""),
            ("..", "..", ""),
        ] {
            let expected = (first.as_bytes(), rest.as_bytes());
            assert_eq!(next(path.as_bytes()), expected, "{path}");
        }
    }
}
