//! What differs between two states of a root: from what is there now to what was.
//!
//! Trees that are the same are not read. A directory that is only in one of the states is told by itself where it goes, and
//! with all that is in it where it comes back.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use backout_files::{Difference, Differences, KeptRoot, Objects, Past, Was, What, WrittenDown};
use backout_model::{Digest, TargetPath};

use super::entry::{Entry, tree};
use crate::file::error::FileError;
use crate::file::recipe::Kind;

/// Compares states.
pub(super) struct Differ<'d> {
    objects: &'d dyn Objects,
    /// Whether what came since is told name by name, each before the directory that it is in.
    is_fine: bool,
    roots: Vec<(TargetPath, Digest, Option<Digest>)>,
    found: Vec<Difference>,
    unread: Vec<TargetPath>,
    /// Names of files that had several, and whose file is another now.
    renumbered: Vec<Renumbered>,
}

/// A name of a file that had several, and the number of the file that it is now.
struct Renumbered {
    difference: Difference,
    now: Option<u64>,
}

impl<'d> Differ<'d> {
    /// Reads trees from here.
    pub(super) const fn new(objects: &'d dyn Objects, is_fine: bool) -> Self {
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
    pub(super) fn compare(
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
        self.pair(root.clone(), Some(tops.0), tops.1.as_ref())
    }

    /// Gives what differs, and the names that nobody kept and that stay as they are.
    pub(super) fn end(mut self) -> Result<Differences, FileError> {
        let renumbered = std::mem::take(&mut self.renumbered);
        if !renumbered.is_empty() {
            let of_was = renumbered.iter().filter_map(|it| it.difference.number);
            let of_was: BTreeSet<u64> = of_was.collect();
            let of_now = renumbered.iter().filter_map(|it| it.now);
            let of_now = of_now.chain(of_was.iter().copied()).collect();
            let gone: BTreeSet<TargetPath> = self.found.iter().map(|it| it.path.clone()).collect();
            let (mut was, mut now) = (BTreeMap::new(), BTreeMap::new());
            for (root, was_tree, now_tree) in &self.roots {
                self.groups(&of_was, root, was_tree, &mut was)?;
                if let Some(now_tree) = now_tree {
                    self.groups(&of_now, root, now_tree, &mut now)?;
                }
            }
            for it in renumbered {
                let Renumbered {
                    difference,
                    now: number,
                } = it;
                let names = difference.number.and_then(|number| was.get(&number));
                let still = difference.number.and_then(|number| now.get(&number));
                let first = names.and_then(|names| first_of(names, &gone, still));
                let others = number.and_then(|number| now.get(&number));
                let is_joined = first.is_none_or(|first| {
                    *first == difference.path || others.is_some_and(|others| others.contains(first))
                });
                if !is_joined {
                    self.found.push(difference);
                }
            }
            self.found.sort_by(|one, other| one.path.cmp(&other.path));
        }
        Ok(Differences {
            found: self.found,
            stay: self.unread,
        })
    }

    fn tree(&self, digest: &Digest) -> Result<Vec<Entry>, FileError> {
        tree(self.objects, digest).map_err(FileError::Contents)
    }

    fn pair(
        &mut self,
        path: TargetPath,
        was: Option<Entry>,
        now: Option<&Entry>,
    ) -> Result<(), FileError> {
        let is_unread = |side: Option<&Entry>| side.is_some_and(|it| it.unread.is_some());
        if is_unread(was.as_ref()) || is_unread(now) {
            self.unread.push(path);
            return Ok(());
        }
        let inside = |side: Option<&Entry>| {
            let directory = side.filter(|it| it.kind == Kind::Directory);
            directory.and_then(|it| it.digest)
        };
        let (was_tree, now_tree) = (inside(was.as_ref()), inside(now));
        if let (true, None, Some(now_tree)) = (self.is_fine, &was, now_tree) {
            for entry in self.tree(&now_tree)? {
                self.pair(path.join(entry.os_name()), None, Some(&entry))?;
            }
        }
        let what = match (&was, now) {
            (None, _) => Some(What::Created),
            (Some(_), None) => Some(What::Deleted),
            (Some(was), Some(now)) => differs(was, now),
        };
        let number = now.and_then(|it| it.number);
        let is_changed = what.is_some();
        let difference = difference(path.clone(), what.unwrap_or(What::Changed), was, now);
        if is_changed {
            self.found.push(difference);
        } else if difference.number.is_some() && difference.number != number {
            let now = number;
            self.renumbered.push(Renumbered { difference, now });
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
            self.pair(path.join(&name.unwrap_or_default()), was, now.as_ref())?;
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

/// Names the one of several names of a file that the others are to be names of: one that `still` is of that file, or else one
/// that is not to `come` anew.
fn first_of<'n>(
    names: &'n [TargetPath],
    come: &BTreeSet<TargetPath>,
    still: Option<&Vec<TargetPath>>,
) -> Option<&'n TargetPath> {
    let there = names.iter().filter(|name| !come.contains(name));
    let is_still = |name: &&TargetPath| still.is_some_and(|still| still.contains(*name));
    let first = there.clone().filter(is_still).min();
    first.or_else(|| there.min()).or_else(|| names.iter().min())
}

fn difference(path: TargetPath, what: What, was: Option<Entry>, now: Option<&Entry>) -> Difference {
    let had = was.as_ref().filter(|it| it.kind == Kind::File);
    let has = now.filter(|it| it.kind == Kind::File);
    let bytes = has.and_then(|it| it.digest);
    Difference {
        path,
        what,
        size_before: had.map(|it| it.size),
        size_now: has.map(|it| it.size),
        number: was.as_ref().and_then(|was| was.number),
        needs: had
            .and_then(|it| it.digest)
            .filter(|digest| bytes != Some(*digest)),
        holes: was.as_ref().map_or_else(Vec::new, |was| was.holes.clone()),
        was: was.map(written_down),
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
pub(super) fn pasts(
    objects: &dyn Objects,
    roots: &[KeptRoot],
    chosen: &[&Difference],
    at: &BTreeMap<Digest, PathBuf>,
) -> Result<Vec<Past>, FileError> {
    let numbers = chosen.iter().filter_map(|it| it.number);
    let numbers: BTreeSet<u64> = numbers.collect();
    let mut groups = BTreeMap::new();
    if !numbers.is_empty() {
        let differ = Differ::new(objects, false);
        for root in roots {
            differ.groups(&numbers, &root.path, &root.tree, &mut groups)?;
        }
    }
    let come: BTreeSet<TargetPath> = chosen.iter().map(|it| it.path.clone()).collect();
    let mut all = Vec::new();
    for difference in chosen {
        let Some(was) = &difference.was else {
            let path = difference.path.clone();
            all.push(Past { path, was: None });
            continue;
        };
        let names = difference.number.and_then(|number| groups.get(&number));
        let first = names
            .and_then(|names| first_of(names, &come, None))
            .cloned();
        let shares = first.filter(|first| *first != difference.path);
        let path = difference.path.clone();
        let bytes = match difference.needs {
            Some(digest) => at.get(&digest).and_then(|at| TargetPath::new(at).ok()),
            None => Some(path.clone()),
        };
        all.push(Past {
            was: Some(Was::written_down(was.clone(), bytes, shares)),
            path,
        });
    }
    Ok(all)
}

fn written_down(was: Entry) -> WrittenDown {
    WrittenDown {
        kind: was.kind,
        meta: was.meta,
        size: was.size,
        link: was.to,
        device: was.device,
        digest: was.digest,
    }
}
