//! Everything that can be seen below a directory, to compare it with what it was.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::ops::{Deref, DerefMut};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// What one name is, in full.
#[derive(Clone, PartialEq, Eq)]
pub struct Entry {
    /// File, directory, link, fifo, socket, or a device with its number.
    pub kind: &'static str,
    /// The permission bits.
    pub mode: u32,
    /// User and group.
    pub owner: (u32, u32),
    /// When it was written, in seconds and nanoseconds.
    pub mtime: (i64, i64),
    /// How many names it has; 0 for directories.
    pub links: u64,
    /// Its bytes, where a link points, the number of a device.
    pub content: Vec<u8>,
    /// Where a file has data, by start and end: the rest is holes.
    pub data: Vec<(u64, u64)>,
    /// Extended attributes, ACLs and capabilities included, as far as the one who looks may see them.
    pub xattrs: Vec<(Vec<u8>, Vec<u8>)>,
    /// The flags that `chattr` sets.
    pub flags: u32,
    /// Of a file with several names, the first of them in the tree.
    pub first_name: Option<PathBuf>,
}

impl std::fmt::Debug for Entry {
    // A failing test shows what differs, not a screen full of zeros.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let start = self.content.get(..40).unwrap_or(&self.content);
        write!(f, "{} {:04o} {:?}", self.kind, self.mode, self.owner)?;
        write!(f, " mtime {:?} links {}", self.mtime, self.links)?;
        write!(
            f,
            " {} bytes {:?}",
            self.content.len(),
            String::from_utf8_lossy(start)
        )?;
        write!(f, " data {:?} flags {:x}", self.data, self.flags)?;
        if let Some(first) = &self.first_name {
            write!(f, " is {first:?}")?;
        }
        for (name, value) in &self.xattrs {
            write!(f, " {}={value:x?}", String::from_utf8_lossy(name))?;
        }
        Ok(())
    }
}

/// Everything below a directory, by relative path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree(BTreeMap<PathBuf, Entry>);

impl Deref for Tree {
    type Target = BTreeMap<PathBuf, Entry>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Tree {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Tree {
    /// Looks at everything below a directory, and at itself.
    pub fn of(root: &Path) -> Self {
        let mut entries = BTreeMap::new();
        collect(root, root, &mut entries);
        let mut firsts = BTreeMap::new();
        let mut tree = BTreeMap::new();
        for (name, (number, mut entry)) in entries {
            if entry.links > 1 {
                let first = firsts.entry(number).or_insert_with(|| name.clone());
                entry.first_name = Some(first.clone());
            }
            tree.insert(name, entry);
        }
        Self(tree)
    }

    /// The same without times, to compare two runs.
    #[must_use]
    pub fn without_times(mut self) -> Self {
        for entry in self.0.values_mut() {
            entry.mtime = (0, 0);
        }
        self
    }

    /// The same without the times of directories: after a crash nobody can tell who changed them last.
    #[must_use]
    pub fn without_directory_times(mut self) -> Self {
        for entry in self
            .0
            .values_mut()
            .filter(|entry| entry.kind == "directory")
        {
            entry.mtime = (0, 0);
        }
        self
    }

    /// The same without which names are one file.
    #[must_use]
    pub fn without_links(mut self) -> Self {
        for entry in self.0.values_mut() {
            (entry.links, entry.first_name) = (1, None);
        }
        self
    }

    /// The same, counting only the names in it: a depot may hold another.
    #[must_use]
    pub fn counting_own_names(mut self) -> Self {
        let mut counts: BTreeMap<PathBuf, _> = BTreeMap::new();
        for first in self.0.values().filter_map(|entry| entry.first_name.clone()) {
            *counts.entry(first).or_insert(0) += 1;
        }
        for entry in self.0.values_mut() {
            let count = entry
                .first_name
                .as_ref()
                .and_then(|first| counts.get(first));
            entry.links = count.copied().unwrap_or(entry.links);
            entry.first_name.take_if(|_| count == Some(&1));
        }
        self
    }

    /// The same with some names as files of their own: so an overlay leaves what it copied out of a lower layer. The
    /// others keep the count of that layer.
    #[must_use]
    pub fn taken_apart(mut self, names: &[String]) -> Self {
        let mut firsts = BTreeMap::new();
        for (name, entry) in &mut self.0 {
            if names.iter().any(|apart| Path::new(apart) == name) {
                (entry.links, entry.first_name) = (1, None);
            } else if let Some(first) = entry.first_name.take() {
                entry.first_name =
                    Some(firsts.entry(first).or_insert_with(|| name.clone()).clone());
            }
        }
        self
    }

    /// The same without holes in some files.
    #[must_use]
    pub fn filled(mut self, names: &[String]) -> Self {
        for (name, entry) in &mut self.0 {
            if names.iter().any(|filled| Path::new(filled) == name) {
                entry.data = vec![(0, u64::try_from(entry.content.len()).unwrap())];
            }
        }
        self
    }

    /// The same without one name.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.0.remove(Path::new(name));
        self
    }

    /// The same with everything at and below some names as another tree has it.
    #[must_use]
    pub fn with_those_of(mut self, other: &Self, names: &[&str]) -> Self {
        let is_below = |path: &Path| names.iter().any(|name| path.starts_with(name));
        self.0.retain(|path, _| !is_below(path));
        let theirs = other.0.iter().filter(|(path, _)| is_below(path));
        self.0
            .extend(theirs.map(|(path, entry)| (path.clone(), entry.clone())));
        self
    }

    /// Gives the permission bits of a name.
    pub fn mode_of(&self, name: &str) -> Option<u32> {
        self.0.get(Path::new(name)).map(|entry| entry.mode)
    }

    /// Says what differs, for a failing test.
    pub fn difference(&self, other: &Self) -> String {
        let mut lines = Vec::new();
        for name in self.0.keys().chain(other.0.keys()) {
            let (a, b) = (self.0.get(name), other.0.get(name));
            if a != b {
                lines.push(format!("{}:\n  {a:?}\n  {b:?}", name.display()));
            }
        }
        lines.dedup();
        lines.join("\n")
    }

    /// Lists all names.
    pub fn names(&self) -> Vec<String> {
        self.0
            .keys()
            .map(|name| name.display().to_string())
            .collect()
    }
}

/// Things by their names, each with the numbers of its device and inode.
type Numbered = BTreeMap<PathBuf, ((u64, u64), Entry)>;

fn collect(root: &Path, path: &Path, entries: &mut Numbered) {
    let found = fs::symlink_metadata(path).unwrap();
    let kind = found.file_type();
    let (kind, content) = if kind.is_symlink() {
        (
            "link",
            fs::read_link(path).unwrap().as_os_str().as_bytes().to_vec(),
        )
    } else if kind.is_dir() {
        ("directory", Vec::new())
    } else if kind.is_file() {
        ("file", fs::read(path).unwrap())
    } else if kind.is_fifo() {
        ("fifo", Vec::new())
    } else if kind.is_socket() {
        ("socket", Vec::new())
    } else {
        ("device", found.rdev().to_string().into_bytes())
    };
    let name = path.strip_prefix(root).unwrap().to_owned();
    let entry = Entry {
        kind,
        mode: found.mode() & 0o7777,
        owner: (found.uid(), found.gid()),
        mtime: (found.mtime(), found.mtime_nsec()),
        links: if kind == "directory" {
            0
        } else {
            found.nlink()
        },
        content,
        data: data(path, kind),
        xattrs: xattrs(path),
        flags: flags(path, kind),
        first_name: None,
    };
    entries.insert(name, ((found.dev(), found.ino()), entry));
    if kind == "directory" {
        for entry in fs::read_dir(path).unwrap() {
            collect(root, &entry.unwrap().path(), entries);
        }
    }
}

/// Lists the parts of a file that are not holes.
fn data(path: &Path, kind: &str) -> Vec<(u64, u64)> {
    use rustix::fs::{SeekFrom, seek};
    let mut parts = Vec::new();
    if kind != "file" {
        return parts;
    }
    let file = fs::File::open(path).unwrap();
    let mut at = 0;
    while let Ok(start) = seek(&file, SeekFrom::Data(at)) {
        let end = seek(&file, SeekFrom::Hole(start)).unwrap();
        parts.push((start, end));
        at = end;
    }
    parts
}

/// Lists the extended attributes of a name, in their order.
pub fn xattrs(path: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut names = vec![0_u8; 4096];
    let length = rustix::fs::llistxattr(path, names.as_mut_slice()).unwrap_or(0);
    names.truncate(length);
    let value_of = |name: &[u8]| {
        let mut value = vec![0_u8; 4096];
        let read = rustix::fs::lgetxattr(path, OsStr::from_bytes(name), value.as_mut_slice());
        value.truncate(read.unwrap_or(0));
        (name.to_vec(), value)
    };
    let names = names
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty());
    let mut all: Vec<_> = names.map(value_of).collect();
    all.sort();
    all
}

fn flags(path: &Path, kind: &str) -> u32 {
    // Whether data is kept in the inode or by extents is the file system's own business.
    const OWN_BUSINESS: u32 = 0x1008_1000;
    if !matches!(kind, "file" | "directory") {
        return 0;
    }
    let file = fs::File::open(path).unwrap();
    rustix::fs::ioctl_getflags(file).map_or(0, |flags| flags.bits() & !OWN_BUSINESS)
}
