//! One name of a change, with its bytes, read once and only if somebody wants them.

use std::cell::OnceCell;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use backout_model::ports::{ChangedFile, FileBytes, NodeFacts, StagedChange};
use backout_model::{Target, TargetPath};

/// More bytes of one file are not looked at.
pub(super) const BYTES_MAX: u64 = 64 << 20;

/// More names of trees that move are not looked at one by one.
const MOVED_MAX: usize = 10_000;

/// One name of a change.
#[derive(Debug)]
pub(super) struct Looked<'c> {
    pub(super) path: TargetPath,
    /// Other names by which the same bytes are read: links by which it is written, and hard links.
    pub(super) also: Vec<TargetPath>,
    /// The directory that it leads to, if it comes to be a link to one.
    pub(super) leads_to: Option<TargetPath>,
    pub(super) before: Option<NodeFacts>,
    pub(super) after: Option<NodeFacts>,
    old: Option<Box<dyn FileBytes + 'c>>,
    new: Option<Box<dyn FileBytes + 'c>>,
    read_old: OnceCell<Option<Vec<u8>>>,
    read_new: OnceCell<Result<Vec<u8>, String>>,
}

impl<'c> Looked<'c> {
    fn of(file: ChangedFile<'c>) -> Self {
        Self {
            path: file.path,
            also: Vec::new(),
            leads_to: file.leads_to,
            before: file.before,
            after: file.after,
            old: file.old,
            new: file.new,
            read_old: OnceCell::new(),
            read_new: OnceCell::new(),
        }
    }

    /// Gives the new bytes, if the content is new; the error says why they cannot be looked at.
    pub(super) fn new_bytes(&self) -> Option<Result<&[u8], &str>> {
        let new = self.new.as_ref()?;
        let read = self.read_new.get_or_init(|| {
            let mut bytes = with_room(self.after);
            let opened = new.open();
            let read = opened.and_then(|from| from.take(BYTES_MAX + 1).read_to_end(&mut bytes));
            match read {
                Ok(_) if bytes.len() as u64 > BYTES_MAX => {
                    Err(format!("it is larger than {} MiB", BYTES_MAX >> 20))
                }
                Ok(_) => Ok(bytes),
                Err(error) => Err(format!("its new content cannot be read: {error}")),
            }
        });
        Some(read.as_deref().map_err(String::as_str))
    }

    /// Gives the old bytes, if there were any and they can be had.
    pub(super) fn old_bytes(&self) -> Option<&[u8]> {
        let old = self.old.as_ref()?;
        let read = self.read_old.get_or_init(|| {
            let mut bytes = with_room(self.before);
            let opened = old.open().ok()?;
            opened.take(BYTES_MAX).read_to_end(&mut bytes).ok()?;
            Some(bytes)
        });
        read.as_deref()
    }

    /// Writes the new bytes to a file.
    pub(super) fn copy_to(&self, to: &Path) -> std::io::Result<()> {
        let Some(new) = &self.new else {
            return Err(std::io::ErrorKind::NotFound.into());
        };
        let mut file = fs::File::create(to)?;
        std::io::copy(&mut new.open()?, &mut file)?;
        Ok(())
    }

    /// Tells whether it has new content.
    pub(super) const fn has_new(&self) -> bool {
        self.new.is_some()
    }

    /// Tells whether it is a directory that goes, with all that is in it, whatever comes in its place.
    pub(super) fn is_tree_that_goes(&self) -> bool {
        let is_directory = |facts: Option<NodeFacts>| facts.is_some_and(|it| it.is_directory);
        is_directory(self.before) && !is_directory(self.after)
    }

    /// Lists the names by which it is read.
    pub(super) fn names(&self) -> impl Iterator<Item = &Path> {
        let also = self.also.iter().map(TargetPath::as_path);
        std::iter::once(self.path.as_path()).chain(also)
    }

    /// Gives the target that it is.
    pub(super) fn target(&self) -> Target {
        Target::node(self.path.clone())
    }

    /// Tells how many bytes it brings or takes.
    pub(super) fn weight(&self) -> u64 {
        let size = |facts: Option<NodeFacts>| facts.map_or(0, |facts| facts.size);
        if self.after.is_none() {
            size(self.before)
        } else if self.has_new() {
            size(self.after)
        } else {
            0
        }
    }
}

/// Makes room for the bytes of a file, so that they are read at once.
fn with_room(facts: Option<NodeFacts>) -> Vec<u8> {
    let size = facts.map_or(0, |facts| facts.size.min(BYTES_MAX));
    Vec::with_capacity(usize::try_from(size).map_or(0, |size| size + 1))
}

/// Bytes at a path of the world.
#[derive(Debug)]
struct InWorld(PathBuf);

impl FileBytes for InWorld {
    fn open(&self) -> std::io::Result<Box<dyn std::io::Read + '_>> {
        Ok(Box::new(fs::File::open(&self.0)?))
    }
}

/// All that is looked at of a change.
#[derive(Debug, Default)]
pub(super) struct Seen<'c> {
    /// What it changes, with what lies in trees that move.
    pub(super) files: Vec<Looked<'c>>,
    /// What can be had by the names of new links to directories.
    pub(super) led: Vec<Looked<'c>>,
    /// Places that hold more than can be looked at.
    pub(super) too_large: Vec<TargetPath>,
}

/// Lists the names of a change, with what lies in trees that move.
pub(super) fn looked_at<'c>(change: &StagedChange<'c>) -> Seen<'c> {
    let changed = change.staged.changed().into_iter();
    let mut seen = Seen {
        files: changed.map(Looked::of).collect(),
        ..Seen::default()
    };
    for (name, path) in change.staged.through() {
        let written = seen.files.iter_mut().find(|file| file.path == path);
        if let Some(file) = written.filter(|file| file.path != name) {
            file.also.push(name);
        }
    }
    for (from, to) in change.staged.moved() {
        let Some(arrived) = below(from.as_path(), to.as_path()) else {
            seen.too_large.push(to);
            continue;
        };
        seen.files.extend(arrived);
    }
    seen
}

/// Lists the files below a directory, as if it were at `place`; none if there are too many.
pub(super) fn below<'c>(directory: &Path, place: &Path) -> Option<Vec<Looked<'c>>> {
    let mut files = Vec::new();
    let mut left = MOVED_MAX;
    let mut waiting = vec![(directory.to_owned(), place.to_owned())];
    while let Some((directory, place)) = waiting.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            left = left.checked_sub(1)?;
            let place = place.join(entry.file_name());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => waiting.push((entry.path(), place)),
                Ok(kind) if kind.is_file() => files.extend(arriving(&entry, &place)),
                _ => {}
            }
        }
    }
    Some(files)
}

/// A file that comes with a tree.
fn arriving<'c>(entry: &fs::DirEntry, place: &Path) -> Option<Looked<'c>> {
    use std::os::unix::fs::PermissionsExt as _;
    let found = entry.metadata().ok()?;
    Some(Looked::of(ChangedFile {
        path: TargetPath::new(place).ok()?,
        before: None,
        after: Some(NodeFacts {
            is_file: true,
            is_directory: false,
            size: found.len(),
            mode: Some(found.permissions().mode() & 0o7777),
        }),
        old: None,
        new: Some(Box::new(InWorld(entry.path()))),
        leads_to: None,
    }))
}
