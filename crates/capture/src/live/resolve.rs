//! Where a path of another process leads: the directory, open, and the name in it.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;

use super::mounts;
use super::paths::{self, Number};
use super::process_info::Scene;
use super::reach::{link_text, opened, path_text, seen, taken};
use super::walk::{Lead, Walk};

/// What the system puts behind the path of something that is gone.
const DELETED: &[u8] = b" (deleted)";

/// How often something that moves while it is looked for is looked for again.
const TRIES_MAX: usize = 3;

/// A directory that is held open: one descriptor, however many names in it are looked at.
pub type Held = Arc<OwnedFd>;

/// A name in an open directory, and what it stands for.
#[derive(Debug)]
pub struct Place {
    /// The directory, opened only to be walked through.
    pub dir: Held,
    /// Its path, without links, as we see it.
    pub dir_path: PathBuf,
    /// Its device and number, where they were looked at.
    pub dir_number: Option<(u64, u64)>,
    /// The name in it.
    pub name: OsString,
    /// What the name stands for, a link not followed; none if nothing.
    pub stat: Option<Stat>,
    /// Whether a slash came after the name: only a directory may be called so.
    pub is_slashed: bool,
    /// The link at the end of the path, if one was followed to here.
    pub through: Option<PathBuf>,
}

impl Place {
    /// Gives the whole path.
    pub fn path(&self) -> PathBuf {
        self.dir_path.join(&self.name)
    }

    /// Gives the place of another name in the same directory.
    pub(super) fn beside(&self, name: &[u8]) -> Result<Self, Errno> {
        let name = OsStr::from_bytes(name).to_owned();
        Ok(Self {
            stat: stat_of(self.dir.as_fd(), &name)?,
            dir: Held::clone(&self.dir),
            dir_path: self.dir_path.clone(),
            dir_number: self.dir_number,
            name,
            is_slashed: false,
            through: None,
        })
    }

    /// Gives the device and number of the directory.
    pub fn directory(&self) -> Option<(u64, u64)> {
        let look = || fstat(&self.dir).map(|found| (found.st_dev, found.st_ino));
        self.dir_number.or_else(|| look().ok())
    }

    /// Looks again at what the name stands for.
    pub fn look(&mut self) -> Result<(), Errno> {
        self.stat = stat_of(self.dir.as_fd(), &self.name)?;
        Ok(())
    }
}

/// A file that lost the name it was opened by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gone {
    /// Its device and number.
    pub number: (u64, u64),
    /// The name that it had.
    pub path: PathBuf,
}

impl Gone {
    /// Tells of what is open.
    pub(super) fn of(opened: BorrowedFd<'_>) -> Option<Self> {
        let path = path_text(opened).ok()?.strip_suffix(DELETED)?.to_vec();
        let stat = fstat(opened).ok()?;
        Some(Self {
            number: (stat.st_dev, stat.st_ino),
            path: PathBuf::from(OsString::from_vec(path)),
        })
    }
}

/// Where a path starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    /// At the current directory of the task.
    Here,
    /// At the directory behind one of its descriptors.
    Descriptor(i32),
}

impl Base {
    /// Takes it to be walked from.
    pub(super) fn start(self, thread: u32) -> Result<OwnedFd, Lost> {
        let taken = match self {
            Self::Here => None,
            Self::Descriptor(number) => taken(thread, number),
        };
        taken.map_or_else(|| self.open(thread), Ok)
    }

    /// Looks at which directory it is.
    pub(super) fn number(self, thread: u32) -> Option<(u64, u64)> {
        let found = match self {
            Self::Here => seen(thread, "cwd"),
            Self::Descriptor(number) => seen(thread, &link_of(number)),
        };
        found.map(|found| (found.st_dev, found.st_ino)).ok()
    }

    /// Opens it, whatever it is, only to be looked at.
    pub(super) fn open(self, thread: u32) -> Result<OwnedFd, Lost> {
        let opened = match self {
            Self::Here => opened(thread, "cwd"),
            Self::Descriptor(number) => opened(thread, &link_of(number)),
        };
        opened.map_err(|errno| match (errno, self) {
            (Errno::NOENT, Self::Descriptor(_)) => Lost::Fails(Errno::BADF),
            _ => Lost::Blind(errno, "what it has open cannot be looked at"),
        })
    }
}

/// How the last component of a path is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    /// A symbolic link there is followed.
    Followed,
    /// It is not, unless a slash comes after it.
    Itself,
    /// It is a name that is made, taken away or given to something else.
    Name,
}

/// What stands where a name is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dots {
    One,
    Two,
    Root,
}

/// Why a path leads to no name in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lost {
    /// The call fails with this, as it does without us.
    Fails(Errno),
    /// We cannot look where the process may be able to: the call fails with this, and that is said.
    Blind(Errno, &'static str),
    /// It stands for something without a name here: a pipe, or something removed, which may have other names.
    Nameless { has_others: bool },
    /// It is the root directory.
    Root,
    /// It ends in no name where one is wanted.
    Dots(Dots),
}

/// Something that has no name at all.
const GONE: Lost = Lost::Nameless { has_others: false };

/// Says what it means that we could not look.
pub(super) fn lost(errno: Errno, scene: Scene) -> Lost {
    match errno {
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG => Lost::Fails(errno),
        Errno::ACCESS if scene.has_our_rights => Lost::Fails(errno),
        _ => Lost::Blind(errno, "its path cannot be resolved"),
    }
}

/// Resolves a path as the task itself would.
pub(super) fn resolve(
    thread: u32,
    scene: Scene,
    base: Base,
    path: &[u8],
    last: Last,
) -> Result<Place, Lost> {
    let mut walk = Walk::new(thread, scene);
    match walk.lead(base, path, last)? {
        Lead::Itself(opened) => of_opened(thread, scene, &opened),
        Lead::Dots(dots) => Err(Lost::Dots(dots)),
        Lead::Name {
            dir,
            name,
            stat,
            is_slashed,
        } => {
            let (dir, dir_path, dir_number) = match walk.known() {
                Some((number, path)) => (dir, path_from(path), Some(number)),
                None => placed(thread, scene, dir)?,
            };
            if let Some(number) = dir_number {
                walk.remember(path, &dir, number);
            }
            Ok(Place {
                dir,
                dir_path,
                dir_number,
                name: OsString::from_vec(name),
                stat,
                is_slashed,
                through: walk.through().map(path_from),
            })
        }
    }
}

fn path_from(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes))
}

/// A directory as we see it, its path, and its device and number where they were looked at.
type Placed = (Held, PathBuf, Option<(u64, u64)>);

/// Gives the number of a directory whose path may be remembered.
fn memorable(scene: Scene, dir: BorrowedFd<'_>) -> Option<Number> {
    let is_plain = scene.is_plain() && !scene.has_new_mounts;
    let found = is_plain.then(|| fstat(dir).ok()).flatten();
    // One that is gone may be held open, and is not told of then.
    let found = found.filter(|found| found.st_nlink > 0 && mounts::is_seen_once(found.st_dev));
    found.map(|found| (found.st_dev, found.st_ino))
}

/// Gives the number and the path of a directory that is remembered.
pub(super) fn remembered(scene: Scene, dir: BorrowedFd<'_>) -> Option<(Number, Vec<u8>)> {
    let number = memorable(scene, dir)?;
    paths::known(number).map(|path| (number, path))
}

/// Gives a directory of the task as we see it.
fn placed(thread: u32, scene: Scene, dir: Held) -> Result<Placed, Lost> {
    let number = memorable(scene, dir.as_fd());
    if let Some(path) = number.and_then(paths::known) {
        return Ok((dir, path_from(path), number));
    }
    match path_of(dir.as_fd()) {
        Ok(path) => {
            if let Some(number) = number {
                paths::learn(number, dir.as_fd(), &path);
                return Ok((dir, path_from(path), Some(number)));
            }
            let (dir, path) = mounts::seen(thread, scene, dir, path);
            Ok((dir, path, None))
        }
        // In a directory that is gone nothing is, and nothing can come to be.
        Err(Lost::Nameless { .. }) => Err(Lost::Fails(Errno::NOENT)),
        Err(other) => Err(other),
    }
}

/// Looks at what a descriptor of the task is open on, if it has one name.
pub(super) fn only_of(thread: u32, number: i32) -> Option<Stat> {
    let stat = seen(thread, &link_of(number)).ok()?;
    let is_only = stat.st_nlink == 1 || is_directory(&stat);
    is_only.then_some(stat)
}

/// Gives the path of what a descriptor of the task is open on, if that is a name.
pub(super) fn path_of_descriptor(thread: u32, number: i32) -> Option<PathBuf> {
    let path = link_text(thread, &link_of(number)).ok()?;
    if path.first() != Some(&b'/') || path.ends_with(DELETED) {
        return None;
    }
    Some(PathBuf::from(OsString::from_vec(path)))
}

fn link_of(number: i32) -> String {
    format!("fd/{number}")
}

/// Gives the place of what the task has open, or of its current directory.
pub(super) fn of_base(thread: u32, scene: Scene, base: Base) -> Result<Place, Lost> {
    of_opened(thread, scene, &base.open(thread)?)
}

/// Gives the place of something that we have open.
fn of_opened(thread: u32, scene: Scene, opened: &OwnedFd) -> Result<Place, Lost> {
    for _ in 0..TRIES_MAX {
        let path = PathBuf::from(OsString::from_vec(path_of(opened.as_fd())?));
        if let Some(place) = named(&path, opened.as_fd())? {
            return Ok(place);
        }
        // It is somewhere else for us, if anywhere.
        if !scene.is_plain() || scene.has_new_mounts {
            let ours = mounts::ours(thread, opened.as_fd(), &path);
            let place = ours.map_or(Ok(None), |ours| named(&ours, opened.as_fd()));
            return place?.ok_or_else(|| hidden(opened.as_fd()));
        }
    }
    let why = "its path changes while it is looked at";
    Err(Lost::Blind(Errno::AGAIN, why))
}

/// Says of something that no path of ours leads to what it is: a file or a directory of a file system that others see too,
/// reached by a mount that is gone, or nothing to speak of.
fn hidden(opened: BorrowedFd<'_>) -> Lost {
    let is_kept = |stat: Stat| {
        let kind = FileType::from_raw_mode(stat.st_mode);
        matches!(kind, FileType::RegularFile | FileType::Directory) && stat.st_nlink > 0
    };
    if fstat(opened).is_ok_and(is_kept) && mounts::is_on_ours(opened) {
        return Lost::Blind(Errno::PERM, "it came by a path that nobody else can follow");
    }
    GONE
}

/// Gives the place at a path, if what is open stands there.
fn named(path: &Path, opened: BorrowedFd<'_>) -> Result<Option<Place>, Lost> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Lost::Root);
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(dir) = openat(CWD, parent, flags, Mode::empty()) else {
        return Ok(None);
    };
    let stat = stat_of(dir.as_fd(), name).ok().flatten();
    let Some(stat) = stat.filter(|stat| is_same(stat, opened)) else {
        return Ok(None);
    };
    let (dir, dir_path) = mounts::by_first_path(Held::new(dir), parent.to_path_buf());
    Ok(Some(Place {
        dir,
        dir_path,
        dir_number: None,
        name: name.to_owned(),
        stat: Some(stat),
        is_slashed: false,
        through: None,
    }))
}

/// Gives the path of something that we have open, as the system tells it.
pub(super) fn path_of(opened: BorrowedFd<'_>) -> Result<Vec<u8>, Lost> {
    let path = path_text(opened).map_err(|errno| match errno {
        Errno::NAMETOOLONG => Lost::Blind(
            errno,
            "it is so deep that its whole path has more than 4096 bytes",
        ),
        _ => Lost::Blind(errno, "its path cannot be told"),
    })?;
    if path.first() != Some(&b'/') {
        return Err(GONE);
    }
    if path.ends_with(DELETED) {
        let there = statat(CWD, OsStr::from_bytes(&path), AtFlags::SYMLINK_NOFOLLOW);
        if !there.is_ok_and(|stat| is_same(&stat, opened)) {
            let has_others =
                fstat(opened).is_ok_and(|stat| !is_directory(&stat) && stat.st_nlink > 0);
            return Err(Lost::Nameless { has_others });
        }
    }
    Ok(path)
}

/// Tells whether what was seen is what is open.
pub(super) fn is_same(stat: &Stat, opened: BorrowedFd<'_>) -> bool {
    fstat(opened).is_ok_and(|other| (other.st_dev, other.st_ino) == (stat.st_dev, stat.st_ino))
}

pub(super) fn stat_of(dir: BorrowedFd<'_>, name: &OsStr) -> Result<Option<Stat>, Errno> {
    match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

pub(super) fn is_link(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Symlink
}

fn is_directory(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

/// Tells whether a path leads to a directory that is the same as an open one.
pub(super) fn leads_to(path: &Path, opened: BorrowedFd<'_>) -> bool {
    statat(CWD, path, AtFlags::empty()).is_ok_and(|stat| is_same(&stat, opened))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;

    use super::*;

    #[test]
    fn a_path_leads_where_the_process_itself_would_go() {
        let world = tempfile::tempdir().unwrap();
        let root = world.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("real/inner")).unwrap();
        std::fs::write(root.join("real/file"), "x").unwrap();
        std::os::unix::fs::symlink("real", root.join("link")).unwrap();
        std::os::unix::fs::symlink("../real/file", root.join("real/up")).unwrap();
        std::os::unix::fs::symlink(root.join("real/new"), root.join("dangling")).unwrap();
        let own = std::process::id();
        let lead = |path: &str, last: Last, scene: Scene| {
            let whole = format!("{}/{path}", root.display());
            resolve(own, scene, Base::Here, whole.as_bytes(), last)
        };
        let walked = Scene {
            has_our_root: false,
            ..Scene::USUAL
        };
        for (path, last, expected, is_there) in [
            ("real/file", Last::Followed, "real/file", true),
            ("link/file", Last::Followed, "real/file", true),
            ("link", Last::Itself, "link", true),
            ("link", Last::Followed, "real", true),
            ("link/", Last::Itself, "real", true),
            ("link/", Last::Name, "link", true),
            ("link/up", Last::Followed, "real/file", true),
            ("dangling", Last::Followed, "real/new", false),
            ("real/inner/..", Last::Followed, "real", true),
            ("real/none", Last::Followed, "real/none", false),
            (
                "link//inner/../../link/./file",
                Last::Name,
                "real/file",
                true,
            ),
        ] {
            for scene in [Scene::USUAL, walked] {
                let place = lead(path, last, scene).unwrap();
                assert_eq!(place.path(), root.join(expected), "{path}");
                assert_eq!(place.stat.is_some(), is_there, "{path}");
            }
        }
        for (path, last, expected) in [
            ("none/below", Last::Followed, Lost::Fails(Errno::NOENT)),
            ("real/file/x", Last::Name, Lost::Fails(Errno::NOTDIR)),
            ("real/.", Last::Name, Lost::Dots(Dots::One)),
            ("real/..", Last::Name, Lost::Dots(Dots::Two)),
            ("real/./", Last::Name, Lost::Dots(Dots::One)),
        ] {
            for scene in [Scene::USUAL, walked] {
                let found = lead(path, last, scene).map(|place| place.path());
                assert_eq!(found, Err(expected), "{path}");
            }
        }
    }

    #[test]
    fn nothing_comes_to_be_in_a_directory_that_is_gone_however_often_it_was_used() {
        let world = tempfile::tempdir().unwrap();
        let root = world.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("d")).unwrap();
        let dir = openat(CWD, root.join("d"), OFlags::DIRECTORY, Mode::empty()).unwrap();
        let own = std::process::id();
        let base = Base::Descriptor(dir.as_raw_fd());
        let lead = || resolve(own, Scene::USUAL, base, b"x", Last::Name).map(|place| place.path());
        for _ in 0..4 {
            assert_eq!(lead(), Ok(root.join("d/x")));
        }
        std::fs::rename(root.join("d"), root.join("e")).unwrap();
        for _ in 0..4 {
            assert_eq!(lead(), Ok(root.join("e/x")));
        }
        std::fs::remove_dir(root.join("e")).unwrap();
        std::fs::create_dir(root.join("e")).unwrap();
        assert_eq!(lead(), Err(Lost::Fails(Errno::NOENT)));
    }

    #[test]
    fn a_way_that_was_gone_before_leads_where_it_leads_now() {
        use std::os::unix::fs::MetadataExt as _;
        let world = tempfile::tempdir().unwrap();
        let root = world.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::create_dir_all(root.join("c/b")).unwrap();
        let dir = openat(CWD, &root, OFlags::DIRECTORY, Mode::empty()).unwrap();
        let base = Base::Descriptor(dir.as_raw_fd());
        let whole = format!("{}/a/b/x", root.display());
        let is_at = |expected: &str| {
            let there = std::fs::metadata(root.join(expected)).unwrap();
            // Often enough to be remembered.
            for _ in 0..6 {
                for path in [b"a/b/x".as_slice(), whole.as_bytes()] {
                    let own = std::process::id();
                    let place = resolve(own, Scene::USUAL, base, path, Last::Name).unwrap();
                    assert_eq!(place.path(), root.join(expected).join("x"));
                    assert_eq!(place.directory(), Some((there.dev(), there.ino())));
                }
            }
        };
        is_at("a/b");
        std::fs::rename(root.join("a"), root.join("z")).unwrap();
        std::os::unix::fs::symlink("c", root.join("a")).unwrap();
        is_at("c/b");
        std::fs::remove_file(root.join("a")).unwrap();
        std::fs::rename(root.join("z"), root.join("a")).unwrap();
        is_at("a/b");
        std::fs::remove_dir(root.join("a/b")).unwrap();
        std::fs::create_dir(root.join("a/b")).unwrap();
        is_at("a/b");
        std::fs::remove_dir(root.join("a/b")).unwrap();
        std::os::unix::fs::symlink("../c/b", root.join("a/b")).unwrap();
        is_at("c/b");
    }

    #[test]
    fn a_name_that_says_deleted_is_a_name() {
        let world = tempfile::tempdir().unwrap();
        let root = world.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("d (deleted)")).unwrap();
        std::fs::create_dir(root.join("d")).unwrap();
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let open = |name: &str| openat(CWD, root.join(name), flags, Mode::empty()).unwrap();
        let (real, gone) = (open("d (deleted)"), open("d"));
        std::fs::remove_dir(root.join("d")).unwrap();
        let found = path_of(real.as_fd()).map(OsString::from_vec);
        assert_eq!(found, Ok(root.join("d (deleted)").into_os_string()));
        assert_eq!(path_of(gone.as_fd()), Err(GONE));
    }
}
