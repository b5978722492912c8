//! Walking a root: each directory is listed and each name looked at; only what changed since the last walk is read.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use backout_capture::overlay;
use backout_crashpoint::crash_point;
use backout_files::{NextIndex, Objects, Unread, Walked};
use backout_model::{Digest, TargetPath};
use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::entry::{Entry, lasting, to_bytes, tree};
use super::index::{Known, Last, Next};
use crate::file::FileDriver;
use crate::file::any_bytes::AnyBytes;
use crate::file::before_image::{link_target, meta_of};
use crate::file::context::FileContext;
use crate::file::error::FileError;
use crate::file::recipe::{Holes, Kind, Meta};
use crate::file::sys::{Dir, Node, Place, bytes};

/// How often a file that changes while it is read is read again.
const TRIES_MAX: usize = 3;

/// So long before the walk a change time must lie that a later change cannot have the same.
const TICK: i64 = 20_000_000;

/// The same, where only whole seconds are kept.
const TICK_WHOLE: i64 = 2_000_000_000;

/// So many names that are not kept are told by name.
const UNREAD_TOLD_MAX: usize = 100;

/// Walks a root.
struct Walker<'w> {
    context: &'w FileContext,
    objects: &'w mut dyn Objects,
    mounts: BTreeSet<PathBuf>,
    began: i64,
    last: Option<Last>,
    next: Option<Next>,
    walked: Walked,
}

/// A name as it is seen now.
struct Seen {
    known: Known,
    /// What is to be written down, unless it is what the last walk wrote down.
    fresh: Option<Entry>,
}

impl FileDriver {
    /// Walks everything below a directory, with itself. With `keeps_index` the walk can leave an index for the next.
    pub(super) fn walk_root(
        &self,
        root: &TargetPath,
        objects: &mut dyn Objects,
        index: &Path,
        keeps_index: bool,
    ) -> Result<Walked, FileError> {
        let place = Dir::of(root)?;
        let missing = || FileError::NotFound {
            path: root.to_string(),
        };
        let node = place.node()?.ok_or_else(missing)?;
        if node.kind != Kind::Directory && keeps_index {
            let path = root.to_string();
            return Err(FileError::NotADirectory { path });
        }
        let next = keeps_index.then(|| Next::begin(index)).transpose();
        let mut walker = Walker {
            context: self.context(),
            objects,
            mounts: mounts_below(root)?,
            began: now(),
            last: Last::open(index),
            next: next.map_err(|source| unwritten(index, source))?,
            walked: Walked {
                tree: Digest::from_bytes([0; 32]),
                names: 1,
                read: 0,
                bytes: 0,
                unread: Vec::new(),
                next: None,
            },
        };
        let is_directory = node.kind == Kind::Directory;
        let (mut top, _) = walker.capture(&place, node)?;
        top.name = AnyBytes(Vec::new());
        // What only is looked at may have become something else.
        if !is_directory {
            walker.walked.tree = walker.put(&[top])?;
            return Ok(walker.walked);
        }
        let (digest, _) = walker.directory(root, true)?;
        top.digest = digest;
        walker.walked.tree = walker.put(&[top])?;
        walker.walked.next = walker.next.map(|next| Box::new(next) as Box<dyn NextIndex>);
        Ok(walker.walked)
    }
}

impl Walker<'_> {
    /// Walks a directory. Gives its tree, and whether that is another one than last time; no tree if it cannot be read.
    fn directory(
        &mut self,
        path: &TargetPath,
        is_known: bool,
    ) -> Result<(Option<Digest>, bool), FileError> {
        self.context.check_stopped()?;
        crash_point("workspace.walking");
        let (old, known) = self.last_record(is_known);
        let mut seen = Vec::new();
        let mut is_changed = old.is_none();
        match self.look(path, &known, &mut seen) {
            Ok(changed) => is_changed |= changed,
            Err(error) => {
                let why = refused(error)?;
                self.note(path, why);
                self.record(&[])?;
                self.skip(&known)?;
                return Ok((None, true));
            }
        }
        let number = self.record(&seen)?;
        let mut trees = HashMap::new();
        let mut left = known.iter().filter(|it| it.is_entered).peekable();
        let entered: Vec<OsString> = names_of(&seen);
        for name in entered {
            while left.peek().is_some_and(|it| it.name < name) {
                left.next();
                self.skip_one();
            }
            let is_here = left.next_if(|it| it.name == name).is_some();
            let (digest, is_other) = self.directory(&path.join(&name), is_here)?;
            is_changed |= is_other;
            trees.insert(name, digest);
        }
        left.for_each(|_| self.skip_one());
        let digest = match old.filter(|_| !is_changed) {
            Some(old) => old,
            None => self.rebuilt(path, old, seen, &trees)?,
        };
        if let (Some(next), Some(number)) = (&mut self.next, number) {
            next.tree(number, digest);
        }
        Ok((Some(digest), old != Some(digest)))
    }

    /// Looks at the names of a directory, and reads what changed. Tells whether anything did.
    fn look(
        &mut self,
        path: &TargetPath,
        known: &[Known],
        seen: &mut Vec<Seen>,
    ) -> Result<bool, FileError> {
        let dir = Dir::open(path)?;
        let mut is_changed = false;
        let mut left = known.iter().peekable();
        for name in dir.names()? {
            let node = match rustix::fs::statat(&*dir, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => Node::of(&stat),
                Err(Errno::NOENT) => continue,
                // Closed to its owner: that way is slower.
                Err(_) => match dir.place(&name).node()? {
                    Some(node) => node,
                    None => continue,
                },
            };
            let is_entered = node.kind == Kind::Directory;
            if is_entered && self.context.depots.is_ours(&path.join(&name)) {
                continue;
            }
            self.walked.names += 1;
            while left.next_if(|it| it.name < name).is_some() {
                is_changed = true;
            }
            let was = left.next_if(|it| it.name == name);
            let is_mount = is_entered && self.is_mount(path, &name);
            if let Some(was) = was.filter(|it| it.is_still(&node) && !is_mount && it.is_trusted) {
                seen.push(Seen {
                    known: was.clone(),
                    fresh: None,
                });
                continue;
            }
            is_changed = true;
            if is_mount {
                let why = "another file system is mounted there".to_owned();
                self.note(&path.join(&name), why.clone());
                seen.push(Seen {
                    fresh: Some(unread(&name, &node, why)),
                    known: Known::of(name, &node, false, false),
                });
                continue;
            }
            match self.capture(&dir.place(&name), node) {
                Ok((entry, node)) => {
                    let is_trusted = entry.unread.is_none() && self.is_settled(&node);
                    seen.push(Seen {
                        known: Known::of(name, &node, is_trusted, is_entered),
                        fresh: Some(entry),
                    });
                }
                Err(FileError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(is_changed || left.next().is_some())
    }

    fn is_mount(&self, path: &TargetPath, name: &OsStr) -> bool {
        !self.mounts.is_empty() && self.mounts.contains(path.join(name).as_path())
    }

    /// Tells whether a later change would give it another change time.
    fn is_settled(&self, node: &Node) -> bool {
        let Ok(ctime) = i64::try_from(node.identity.ctime) else {
            return false;
        };
        let is_whole = ctime % 1_000_000_000 == 0;
        ctime.saturating_add(if is_whole { TICK_WHOLE } else { TICK }) < self.began
    }

    /// Writes down what is there. Gives the node as it was seen in the end.
    fn capture(&mut self, place: &Place, mut node: Node) -> Result<(Entry, Node), FileError> {
        let path = place.path();
        let mut entry = plain(&place.name, &node);
        for _ in 0..TRIES_MAX {
            entry = match self.captured(place, &node) {
                Ok(entry) => entry,
                Err(FileError::Permission { action, .. }) => {
                    let why = format!("not permitted to {action} it");
                    self.note(&path, why.clone());
                    return Ok((unread(&place.name, &node, why), node));
                }
                Err(error) => return Err(error),
            };
            let missing = || FileError::NotFound {
                path: path.to_string(),
            };
            let now = place.node()?.ok_or_else(missing)?;
            if now.is_still(&node, true) {
                return Ok((entry, node));
            }
            node = now;
        }
        let why = "it was written to while it was read".to_owned();
        self.note(&path, why.clone());
        Ok((
            Entry {
                unread: Some(why),
                ..entry
            },
            node,
        ))
    }

    fn captured(&mut self, place: &Place, node: &Node) -> Result<Entry, FileError> {
        let meta = lasting(meta_of(place, node)?, node.kind);
        let mut entry = Entry {
            meta,
            ..plain(&place.name, node)
        };
        match node.kind {
            Kind::File => {
                let mut file = place.read()?;
                entry.holes = if has_room_left(node, &file) {
                    bytes::holes(&file, node.identity.size)
                } else {
                    Holes::new()
                };
                let put = self.objects.put_file(&mut file);
                let (digest, size) = put.map_err(FileError::Contents)?;
                self.walked.read += 1;
                self.walked.bytes += size;
                (entry.digest, entry.size) = (Some(digest), size);
            }
            Kind::Symlink => entry.to = Some(link_target(place)?),
            Kind::BlockDevice | Kind::CharacterDevice => entry.device = node.device,
            Kind::Directory | Kind::Fifo | Kind::Socket => {}
        }
        Ok(entry)
    }

    /// Makes the tree of a directory of which something changed.
    fn rebuilt(
        &mut self,
        path: &TargetPath,
        old: Option<Digest>,
        seen: Vec<Seen>,
        trees: &HashMap<OsString, Option<Digest>>,
    ) -> Result<Digest, FileError> {
        let before = old.and_then(|old| tree(self.objects, &old).ok());
        let before = before.unwrap_or_default().into_iter();
        let mut before: HashMap<OsString, Entry> = before
            .map(|entry| (entry.os_name().to_owned(), entry))
            .collect();
        let mut entries = Vec::with_capacity(seen.len());
        for Seen { known, fresh } in seen {
            let told = fresh.or_else(|| before.remove(&known.name));
            let mut entry = if let Some(entry) = told {
                entry
            } else {
                // The tree that the index speaks of is not there any more.
                let place = Dir::open(path)?.place(&known.name);
                let Some(node) = place.node()? else { continue };
                self.capture(&place, node)?.0
            };
            match trees.get(&known.name) {
                Some(Some(digest)) => entry.digest = Some(*digest),
                Some(None) => entry.unread = Some("it could not be read".to_owned()),
                None => {}
            }
            entries.push(entry);
        }
        self.put(&entries)
    }

    fn put(&mut self, entries: &[Entry]) -> Result<Digest, FileError> {
        let bytes = to_bytes(entries).map_err(FileError::Contents)?;
        self.objects.put_tree(bytes).map_err(FileError::Contents)
    }

    fn note(&mut self, path: &TargetPath, why: String) {
        if self.walked.unread.len() < UNREAD_TOLD_MAX {
            let path = path.clone();
            self.walked.unread.push(Unread { path, why });
        }
    }

    /// Reads the record of the directory that comes next. An index that does not fit is not asked again.
    fn last_record(&mut self, is_known: bool) -> (Option<Digest>, Vec<Known>) {
        let Some(last) = self.last.as_mut().filter(|_| is_known) else {
            return (None, Vec::new());
        };
        if let Ok((digest, known)) = last.record() {
            return (Some(digest), known);
        }
        self.last = None;
        (None, Vec::new())
    }

    fn skip(&mut self, known: &[Known]) -> Result<(), FileError> {
        known
            .iter()
            .filter(|it| it.is_entered)
            .for_each(|_| self.skip_one());
        self.context.check_stopped()
    }

    fn skip_one(&mut self) {
        if self.last.as_mut().is_some_and(|last| last.skip().is_err()) {
            self.last = None;
        }
    }

    fn record(&mut self, seen: &[Seen]) -> Result<Option<usize>, FileError> {
        let Some(next) = &mut self.next else {
            return Ok(None);
        };
        let names: Vec<Known> = seen.iter().map(|it| it.known.clone()).collect();
        let number = next.record(&names);
        let number = number.map_err(|source| unwritten(Path::new("the index"), source))?;
        Ok(Some(number))
    }
}

fn names_of(seen: &[Seen]) -> Vec<OsString> {
    let entered = seen.iter().filter(|it| it.known.is_entered);
    entered.map(|it| it.known.name.clone()).collect()
}

/// Says why a directory cannot be looked into, if others can go on without it.
fn refused(error: FileError) -> Result<String, FileError> {
    if let FileError::Permission { action, .. } = error {
        Ok(format!("not permitted to {action} it"))
    } else if error.leads_nowhere() {
        Ok("it was replaced while it was looked at".to_owned())
    } else {
        Err(error)
    }
}

fn plain(name: &OsStr, node: &Node) -> Entry {
    use std::os::unix::ffi::OsStrExt as _;
    let meta = Meta {
        mode: node.mode,
        uid: node.uid,
        gid: node.gid,
        times: Some(node.times),
        xattrs: Vec::new(),
        flags: None,
    };
    Entry {
        name: AnyBytes(name.as_bytes().to_vec()),
        kind: node.kind,
        meta: lasting(meta, node.kind),
        digest: None,
        size: 0,
        holes: Holes::new(),
        to: None,
        device: 0,
        number: node.is_shared.then_some(node.identity.ino),
        unread: None,
    }
}

fn unread(name: &OsStr, node: &Node, why: String) -> Entry {
    Entry {
        unread: Some(why),
        ..plain(name, node)
    }
}

/// Tells whether a file takes less room than it has bytes: then it may have holes.
fn has_room_left(node: &Node, file: &std::fs::File) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let taken = file
        .metadata()
        .map(|found| found.blocks().saturating_mul(512));
    taken.is_ok_and(|taken| taken < node.identity.size)
}

/// Lists where something is mounted below a directory.
fn mounts_below(root: &TargetPath) -> Result<BTreeSet<PathBuf>, FileError> {
    let path = "/proc/self/mountinfo";
    let text = std::fs::read(path).map_err(|source| FileError::Io {
        path: path.to_owned(),
        action: "read",
        source,
    })?;
    let points = overlay::parse(&text).into_iter().map(|mount| mount.point);
    let is_below = |point: &PathBuf| point.starts_with(root.as_path()) && point != root.as_path();
    Ok(points.filter(is_below).collect())
}

/// The time that files are stamped with, in nanoseconds since 1970, or a little later.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
    })
}

fn unwritten(path: &Path, source: std::io::Error) -> FileError {
    FileError::Io {
        path: path.display().to_string(),
        action: "write",
        source,
    }
}
