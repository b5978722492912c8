//! What differs between two states of a root: from what is there now to what was.
//!
//! Trees that are the same are not read. A directory that is only in one of the states is told by itself where it goes, and
//! with all that is in it where it comes back.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use backout_model::{Digest, TargetPath};

use super::Objects;
use super::entry::{Entry, tree};
use crate::file::error::FileError;
use crate::file::recipe::Kind;
use backout_files::{Past, Was, WrittenDown};

/// How a name differs from what it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// It came since.
    Created,
    /// It went since.
    Deleted,
    /// It has other bytes, points elsewhere or is something else.
    Changed,
    /// Only its mode, owner, attributes or times are others.
    Dressed,
}

/// A name that is not what it was.
#[derive(Debug, Clone)]
pub struct Difference {
    /// The name.
    pub path: TargetPath,
    /// How it differs.
    pub what: What,
    /// How many bytes it had.
    pub size_before: Option<u64>,
    /// How many it has now.
    pub size_now: Option<u64>,
    was: Option<Entry>,
    now: Option<Entry>,
}

impl Difference {
    /// Names the bytes that are needed to bring it back, if it takes any.
    pub fn needs(&self) -> Option<Digest> {
        let was = self.was.as_ref().filter(|was| was.kind == Kind::File)?;
        let has = self.now.as_ref().filter(|now| now.kind == Kind::File);
        was.digest
            .filter(|digest| has.and_then(|now| now.digest) != Some(*digest))
    }

    /// Tells where the file that it was has its holes.
    pub fn holes(&self) -> &[(u64, u64)] {
        self.was.as_ref().map_or(&[], |was| was.holes.as_slice())
    }
}

/// Compares states.
pub struct Differ<'d> {
    objects: &'d dyn Objects,
    /// Whether what came since is told name by name, each before the directory that it is in.
    is_fine: bool,
    roots: Vec<(TargetPath, Digest, Option<Digest>)>,
    found: Vec<Difference>,
    unread: Vec<TargetPath>,
    /// Names of files that had several, and whose file is another now.
    renumbered: Vec<Difference>,
}

impl std::fmt::Debug for Differ<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Differ").finish_non_exhaustive()
    }
}

impl<'d> Differ<'d> {
    /// Reads trees from here.
    pub const fn new(objects: &'d dyn Objects, is_fine: bool) -> Self {
        Self {
            objects,
            is_fine,
            roots: Vec::new(),
            found: Vec::new(),
            unread: Vec::new(),
            renumbered: Vec::new(),
        }
    }

    /// Compares what a root is with what it was, in the order of names. Nothing at all may be there now.
    pub fn compare(
        &mut self,
        root: &TargetPath,
        was: &Digest,
        now: Option<&Digest>,
    ) -> Result<(), FileError> {
        let top = |digest: &Digest| {
            let mut entries = self.tree(digest)?;
            let missing = || FileError::NotFound {
                path: root.to_string(),
            };
            entries.pop().ok_or_else(missing)
        };
        let tops = (top(was)?, now.map(top).transpose()?);
        self.roots.push((root.clone(), *was, now.copied()));
        self.pair(root.clone(), Some(tops.0), tops.1)
    }

    /// Gives what differs, and the names that nobody kept and that stay as they are.
    pub fn end(mut self) -> Result<(Vec<Difference>, Vec<TargetPath>), FileError> {
        let renumbered = std::mem::take(&mut self.renumbered);
        if !renumbered.is_empty() {
            let number = |side: &Option<Entry>| side.as_ref().and_then(|it| it.number);
            let of_was = renumbered.iter().filter_map(|it| number(&it.was)).collect();
            let of_now = renumbered.iter().filter_map(|it| number(&it.now)).collect();
            let (mut was, mut now) = (BTreeMap::new(), BTreeMap::new());
            for (root, was_tree, now_tree) in &self.roots {
                self.groups(&of_was, root, was_tree, &mut was)?;
                if let Some(now_tree) = now_tree {
                    self.groups(&of_now, root, now_tree, &mut now)?;
                }
            }
            for it in renumbered {
                let names = number(&it.was).and_then(|number| was.get(&number));
                let first = names.and_then(|names| names.iter().min());
                let others = number(&it.now).and_then(|number| now.get(&number));
                let is_joined = first.is_none_or(|first| {
                    *first == it.path || others.is_some_and(|others| others.contains(first))
                });
                if !is_joined {
                    self.found.push(it);
                }
            }
            self.found.sort_by(|one, other| one.path.cmp(&other.path));
        }
        Ok((self.found, self.unread))
    }

    fn tree(&self, digest: &Digest) -> Result<Vec<Entry>, FileError> {
        tree(self.objects, digest).map_err(FileError::Contents)
    }

    fn pair(
        &mut self,
        path: TargetPath,
        was: Option<Entry>,
        now: Option<Entry>,
    ) -> Result<(), FileError> {
        let is_unread = |side: &Option<Entry>| side.as_ref().is_some_and(|it| it.unread.is_some());
        if is_unread(&was) || is_unread(&now) {
            self.unread.push(path);
            return Ok(());
        }
        let inside = |side: &Option<Entry>| {
            let directory = side.as_ref().filter(|it| it.kind == Kind::Directory);
            directory.and_then(|it| it.digest)
        };
        let (was_tree, now_tree) = (inside(&was), inside(&now));
        if let (true, None, Some(now_tree)) = (self.is_fine, &was, now_tree) {
            for entry in self.tree(&now_tree)? {
                self.pair(path.join(entry.os_name()), None, Some(entry.clone()))?;
            }
        }
        let what = match (&was, &now) {
            (None, _) => Some(What::Created),
            (Some(_), None) => Some(What::Deleted),
            (Some(was), Some(now)) => differs(was, now),
        };
        let size = |side: &Option<Entry>| {
            let file = side.as_ref().filter(|it| it.kind == Kind::File);
            file.map(|it| it.size)
        };
        let number = |side: &Option<Entry>| side.as_ref().and_then(|it| it.number);
        let is_renumbered = number(&was).is_some() && number(&was) != number(&now);
        let difference = Difference {
            path: path.clone(),
            what: what.unwrap_or(What::Changed),
            size_before: size(&was),
            size_now: size(&now),
            was,
            now,
        };
        if what.is_some() {
            self.found.push(difference);
        } else if is_renumbered {
            self.renumbered.push(difference);
        }
        match (was_tree, now_tree) {
            (Some(was), now) if now != Some(was) => self.inside(&path, &was, now.as_ref()),
            // What came since goes as one, and so does what stands in the place of something else.
            _ => Ok(()),
        }
    }

    fn inside(
        &mut self,
        path: &TargetPath,
        was: &Digest,
        now: Option<&Digest>,
    ) -> Result<(), FileError> {
        let mut pairs: BTreeMap<Vec<u8>, (Option<Entry>, Option<Entry>)> = BTreeMap::new();
        for entry in self.tree(was)? {
            let name = entry.name.0.clone();
            pairs.entry(name).or_default().0 = Some(entry);
        }
        for entry in now
            .map(|now| self.tree(now))
            .transpose()?
            .unwrap_or_default()
        {
            let name = entry.name.0.clone();
            pairs.entry(name).or_default().1 = Some(entry);
        }
        for (was, now) in pairs.into_values() {
            let name = was
                .as_ref()
                .or(now.as_ref())
                .map(|it| it.os_name().to_owned());
            self.pair(path.join(&name.unwrap_or_default()), was, now)?;
        }
        Ok(())
    }

    /// Lists every name of files that have several, by their numbers, in a state.
    fn groups(
        &self,
        wanted: &BTreeSet<u64>,
        path: &TargetPath,
        digest: &Digest,
        found: &mut BTreeMap<u64, Vec<TargetPath>>,
    ) -> Result<(), FileError> {
        for entry in self.tree(digest)? {
            let path = if entry.name.0.is_empty() {
                path.clone()
            } else {
                path.join(entry.os_name())
            };
            if let Some(number) = entry.number.filter(|number| wanted.contains(number)) {
                found.entry(number).or_default().push(path.clone());
            }
            if let (Kind::Directory, Some(below)) = (entry.kind, entry.digest) {
                self.groups(wanted, &path, &below, found)?;
            }
        }
        Ok(())
    }
}

/// Says how a name differs; of a directory, by itself.
fn differs(was: &Entry, now: &Entry) -> Option<What> {
    if was.is_like(now) {
        return None;
    }
    let is_same = was.kind == now.kind && was.to == now.to && was.device == now.device;
    let has_same = was.kind != Kind::File || was.digest == now.digest;
    Some(if is_same && has_same {
        What::Dressed
    } else {
        What::Changed
    })
}

/// Says to the file driver what the names are to become. `at` tells where the bytes wait that are needed.
pub fn pasts(
    objects: &dyn Objects,
    roots: &[(TargetPath, Digest)],
    chosen: &[&Difference],
    at: &BTreeMap<Digest, PathBuf>,
) -> Result<Vec<Past>, FileError> {
    let numbers = chosen.iter().filter_map(|it| it.was.as_ref()?.number);
    let numbers: BTreeSet<u64> = numbers.collect();
    let mut groups = BTreeMap::new();
    if !numbers.is_empty() {
        let differ = Differ::new(objects, false);
        for (root, digest) in roots {
            differ.groups(&numbers, root, digest, &mut groups)?;
        }
    }
    let mut all = Vec::new();
    for difference in chosen {
        let Some(was) = &difference.was else {
            let path = difference.path.clone();
            all.push(Past { path, was: None });
            continue;
        };
        let names = was.number.and_then(|number| groups.get(&number));
        let first = names.and_then(|names| names.iter().min()).cloned();
        let shares = first.filter(|first| *first != difference.path);
        let path = difference.path.clone();
        let bytes = match difference.needs() {
            Some(digest) => at.get(&digest).and_then(|at| TargetPath::new(at).ok()),
            None => Some(path.clone()),
        };
        all.push(Past {
            was: Some(Was::written_down(was_parts(was), bytes, shares)),
            path,
        });
    }
    Ok(all)
}

fn was_parts(was: &Entry) -> WrittenDown {
    WrittenDown {
        kind: was.kind,
        meta: was.meta.clone(),
        size: was.size,
        link: was.to.clone(),
        device: was.device,
        digest: was.digest,
    }
}
