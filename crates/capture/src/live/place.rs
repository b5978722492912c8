//! Where a path of another process leads: the directory, open, and the name in it.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, ResolveFlags, Stat, openat, openat2, readlinkat, statat,
};
use rustix::io::Errno;

use super::task::Scene;

/// How many symbolic links in a row are followed, as the kernel does.
const LINKS_MAX: usize = 40;

/// What a directory that is gone is called.
const DELETED: &[u8] = b" (deleted)";

/// A name in an open directory, and what it stands for.
#[derive(Debug)]
pub struct Place {
    /// The directory, opened only to be walked through.
    pub dir: OwnedFd,
    /// Its path, without links, as we see it.
    pub dir_path: PathBuf,
    /// The name in it.
    pub name: OsString,
    /// What the name stands for, a link not followed; none if nothing.
    pub stat: Option<Stat>,
}

impl Place {
    /// Gives the whole path.
    pub fn path(&self) -> PathBuf {
        self.dir_path.join(&self.name)
    }

    /// Looks again at what the name stands for.
    pub fn look(&mut self) -> Result<(), Errno> {
        self.stat = stat_of(&self.dir, &self.name)?;
        Ok(())
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

/// Resolves a path as the task itself would.
pub(super) fn resolve(
    thread: u32,
    scene: Scene,
    base: Base,
    path: &[u8],
    follow: bool,
) -> Result<Place, Errno> {
    let start = match base {
        Base::Here => format!("/proc/{thread}/cwd"),
        Base::Descriptor(number) => format!("/proc/{thread}/fd/{number}"),
    };
    let mut resolver = Resolver { thread, scene };
    let path = own_processes(thread, path);
    if path.first() == Some(&b'/') {
        return resolver.below_root(&path, follow, 0);
    }
    if path.is_empty() {
        return Err(Errno::NOENT);
    }
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let (parent, name) = split(&path);
    let mut whole = start.into_bytes();
    if !parent.is_empty() {
        whole.push(b'/');
        whole.extend_from_slice(parent);
    }
    let dir = openat(
        CWD,
        OsStr::from_bytes(&whole),
        flags | OFlags::DIRECTORY,
        Mode::empty(),
    )?;
    resolver.at(dir, name, follow, 0)
}

/// Gives the path of what a descriptor of the task is open on.
pub(super) fn path_of_descriptor(thread: u32, number: i32) -> Result<PathBuf, Errno> {
    let link = format!("/proc/{thread}/fd/{number}");
    let path = readlinkat(CWD, &link, Vec::with_capacity(256))?.into_bytes();
    if path.first() != Some(&b'/') || path.ends_with(DELETED) {
        return Err(Errno::NOENT);
    }
    Ok(PathBuf::from(OsString::from_vec(path)))
}

/// Gives the place of what a descriptor of the task is open on.
pub(super) fn of_descriptor(thread: u32, number: i32) -> Result<Place, Errno> {
    let path = path_of_descriptor(thread, number)?;
    by_canonical(path.as_os_str().as_bytes())
}

struct Resolver {
    thread: u32,
    scene: Scene,
}

impl Resolver {
    fn below_root(&mut self, path: &[u8], follow: bool, links: usize) -> Result<Place, Errno> {
        let (parent, name) = split(path);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let parent = if parent.is_empty() { b"/" } else { parent };
        let dir = if self.scene.has_our_root && self.scene.has_our_mounts {
            openat(CWD, OsStr::from_bytes(parent), flags, Mode::empty())?
        } else {
            let root = openat(
                CWD,
                format!("/proc/{}/root", self.thread),
                flags,
                Mode::empty(),
            )?;
            openat2(
                root,
                OsStr::from_bytes(parent),
                flags,
                Mode::empty(),
                ResolveFlags::IN_ROOT,
            )?
        };
        self.at(dir, name, follow, links)
    }

    fn at(
        &mut self,
        dir: OwnedFd,
        name: &[u8],
        follow: bool,
        links: usize,
    ) -> Result<Place, Errno> {
        if links > LINKS_MAX {
            return Err(Errno::LOOP);
        }
        let trimmed = trim(name);
        if trimmed.is_empty() || trimmed == b"." || trimmed == b".." {
            let itself = if trimmed.is_empty() { b"." } else { trimmed };
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            let opened = openat(&dir, OsStr::from_bytes(itself), flags, Mode::empty())?;
            return by_canonical(&canonical(&opened)?);
        }
        let is_slashed = trimmed.len() != name.len();
        let stat = stat_of(&dir, OsStr::from_bytes(trimmed))?;
        let is_link = stat.as_ref().is_some_and(is_link);
        if is_link && (follow || is_slashed) {
            let to = readlinkat(&dir, OsStr::from_bytes(trimmed), Vec::new())?.into_bytes();
            if to.first() == Some(&b'/') {
                let to = own_processes(self.thread, &to);
                return self.below_root(&to, follow, links + 1);
            }
            let (parent, last) = split(&to);
            let parent = if parent.is_empty() { b"." } else { parent };
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let next = openat(&dir, OsStr::from_bytes(parent), flags, Mode::empty())?;
            return self.at(next, last, follow, links + 1);
        }
        let path = canonical(&dir)?;
        Ok(Place {
            dir,
            dir_path: PathBuf::from(OsString::from_vec(path)),
            name: OsStr::from_bytes(trimmed).to_owned(),
            stat,
        })
    }
}

/// Opens the directory of a path that has no links in it.
fn by_canonical(path: &[u8]) -> Result<Place, Errno> {
    let whole = Path::new(OsStr::from_bytes(path));
    let (Some(parent), Some(name)) = (whole.parent(), whole.file_name()) else {
        return Err(Errno::BUSY); // the root directory has no name
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = openat(CWD, parent, flags, Mode::empty())?;
    let stat = stat_of(&dir, name)?;
    Ok(Place {
        dir,
        dir_path: parent.to_path_buf(),
        name: name.to_owned(),
        stat,
    })
}

fn canonical(dir: &OwnedFd) -> Result<Vec<u8>, Errno> {
    let link = format!("/proc/self/fd/{}", dir.as_fd().as_raw_fd());
    let path = readlinkat(CWD, link, Vec::new())?.into_bytes();
    // A file system of its own, or a directory that is gone: nothing can come to be there.
    if path.first() != Some(&b'/') || path.ends_with(DELETED) {
        return Err(Errno::NOENT);
    }
    Ok(path)
}

fn stat_of(dir: &OwnedFd, name: &OsStr) -> Result<Option<Stat>, Errno> {
    match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

fn is_link(stat: &Stat) -> bool {
    rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Symlink
}

/// Splits a path before its last component; slashes at the end stay with it.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    let end = trim(path).len();
    let slash = path.iter().take(end).rposition(|byte| *byte == b'/');
    match slash {
        Some(at) => {
            let (parent, rest) = path.split_at(at);
            let parent = if parent.is_empty() { b"/" } else { parent };
            (parent, rest.get(1..).unwrap_or_default())
        }
        None => (b"", path),
    }
}

fn trim(path: &[u8]) -> &[u8] {
    let end = path
        .iter()
        .rposition(|byte| *byte != b'/')
        .map_or(0, |at| at + 1);
    path.get(..end).unwrap_or_default()
}

/// `/proc/self` is another process for us than for the task.
fn own_processes(thread: u32, path: &[u8]) -> Vec<u8> {
    for (prefix, there) in [
        (b"/proc/self".as_slice(), String::new()),
        (b"/proc/thread-self", String::new()),
        (b"/dev/fd", "/fd".to_owned()),
        (b"/dev/stdin", "/fd/0".to_owned()),
        (b"/dev/stdout", "/fd/1".to_owned()),
        (b"/dev/stderr", "/fd/2".to_owned()),
    ] {
        let rest = path.strip_prefix(prefix);
        if let Some(rest) = rest.filter(|rest| rest.is_empty() || rest.first() == Some(&b'/')) {
            let mut own = format!("/proc/{thread}{there}").into_bytes();
            own.extend_from_slice(rest);
            return own;
        }
    }
    path.to_vec()
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
        ] {
            let expected = (parent.as_bytes(), name.as_bytes());
            assert_eq!(split(path.as_bytes()), expected, "{path}");
        }
    }

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
        for (path, follow, expected, is_there) in [
            ("real/file", true, "real/file", true),
            ("link/file", true, "real/file", true),
            ("link", false, "link", true),
            ("link", true, "real", true),
            ("link/", false, "real", true),
            ("link/up", true, "real/file", true),
            ("dangling", true, "real/new", false),
            ("real/inner/..", true, "real", true),
            ("real/none", true, "real/none", false),
        ] {
            let whole = root.join(path);
            let whole = whole.as_os_str().as_bytes();
            let whole = if path.ends_with('/') {
                [whole, b""].concat()
            } else {
                whole.to_vec()
            };
            let place = resolve(own, Scene::USUAL, Base::Here, &whole, follow).unwrap();
            assert_eq!(place.path(), root.join(expected), "{path}");
            assert_eq!(place.stat.is_some(), is_there, "{path}");
        }
        let missing = root.join("none/below");
        let found = resolve(
            own,
            Scene::USUAL,
            Base::Here,
            missing.as_os_str().as_bytes(),
            true,
        );
        assert_eq!(found.map(|place| place.path()), Err(Errno::NOENT));
    }
}
