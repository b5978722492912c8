//! From upper directories to changes of real files.
//!
//! An upper directory merges with a lower one: usually the real directory of the same name, after a rename another one,
//! and none if it is opaque. Where the two are one, only what is in the upper one can have changed; elsewhere everything
//! is compared. A file that was copied up and is equal to the real one is no change.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::change::{Becomes, Change, What};
use super::compare::{Difference, difference};
use super::plan::{Layer, LayerKind, Means, Plan};
use super::touched::{self, is_whiteout};
use super::{OverlayError, layer_dir, skeleton, xattrs};

/// Tells what the layers of a plan change, sorted by path: what lies in a directory comes after it.
pub fn walk(plan: &Plan) -> Result<Vec<Change>, OverlayError> {
    let mut all = Vec::new();
    for layer in &plan.layers {
        let mut walker = Walker {
            means: plan.means,
            layer,
            changes: Vec::new(),
            first_names: HashMap::new(),
            moves: Vec::new(),
        };
        let outcome = match &layer.kind {
            LayerKind::Overlay => walker.overlay(),
            LayerKind::Skeleton { known } => walker.skeleton(known),
        };
        outcome.map_err(|(path, source)| OverlayError::Unreadable { path, source })?;
        all.append(&mut walker.changes);
    }
    all.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(all)
}

type Walked<T> = Result<T, (PathBuf, io::Error)>;

struct Walker<'p> {
    means: Means,
    layer: &'p Layer,
    changes: Vec<Change>,
    /// The first name of each inode of several names.
    first_names: HashMap<(u64, u64), PathBuf>,
    /// Directories that seem to be renamed and nothing else: upper, from, to.
    moves: Vec<(PathBuf, PathBuf, PathBuf)>,
}

impl Walker<'_> {
    fn overlay(&mut self) -> Walked<()> {
        let (upper, point) = (self.layer.upper.clone(), self.layer.point.clone());
        self.top(&upper, &point)?;
        self.directory(&upper, Some(&point), &point)?;
        self.resolve_moves()
    }

    /// The top of a layer was made by us, with the mode and owner of what it covers as far as we could: it changed if it
    /// is not as it was made.
    fn top(&mut self, upper: &Path, point: &Path) -> Walked<()> {
        let is_changed = layer_dir::top_of(upper) != self.layer.top;
        if is_changed && look(point)?.is_some_and(|real| real.is_dir()) {
            let becomes = Becomes::Like(upper.to_path_buf());
            self.push(point, What::Metadata, becomes, None)?;
        }
        Ok(())
    }

    /// Compares what stands at `real`: an upper directory over a lower one.
    fn directory(&mut self, upper: &Path, lower: Option<&Path>, real: &Path) -> Walked<()> {
        let is_in_place = lower == Some(real);
        let mut seen: BTreeSet<OsString> = BTreeSet::new();
        let mut gone: BTreeSet<OsString> = BTreeSet::new();
        for name in names(upper)? {
            let (above, below) = (upper.join(&name), lower.map(|lower| lower.join(&name)));
            let Some(found) = look(&above)? else {
                continue;
            };
            if is_whiteout(&found) {
                gone.insert(name);
                continue;
            }
            self.entry(&above, &found, below, &real.join(&name))?;
            seen.insert(name);
        }
        if is_in_place {
            for name in gone {
                self.push(&real.join(&name), What::Deleted, Becomes::Nothing, None)?;
            }
            return Ok(());
        }
        let others = lower.map(names).transpose()?.unwrap_or_default();
        for (name, lower) in others.iter().zip(lower.iter().cycle()) {
            if !seen.contains(name) && !gone.contains(name) {
                self.elsewhere(&lower.join(name), &real.join(name))?;
                seen.insert(name.clone());
            }
        }
        if look(real)?.is_some_and(|found| found.is_dir()) {
            for name in names(real)?.into_iter().filter(|name| !seen.contains(name)) {
                self.push(&real.join(&name), What::Deleted, Becomes::Nothing, None)?;
            }
        }
        Ok(())
    }

    fn entry(
        &mut self,
        upper: &Path,
        found: &Metadata,
        lower: Option<PathBuf>,
        real: &Path,
    ) -> Walked<()> {
        if !found.is_dir() {
            return self.file(upper, found, real);
        }
        let note = |name: &str| {
            let name = format!("{}{name}", self.means.xattr_prefix());
            xattrs::read(upper, &name).map_err(|error| (upper.to_path_buf(), error))
        };
        let is_opaque = note("opaque")?.is_some_and(|value| value == b"y");
        let redirect = note("redirect")?.filter(|_| !is_opaque);
        let lower = match &redirect {
            _ if is_opaque => None,
            Some(to) => self.redirected(to, lower.as_deref()),
            None => lower,
        };
        let lower = lower.filter(|path| path.is_dir() && !path.is_symlink());
        if let Some(from) = lower.as_ref().filter(|_| redirect.is_some())
            && from != real
            && names(upper)?.is_empty()
            && look(real)?.is_none()
            && difference(upper, from).map_err(|error| (upper.to_path_buf(), error))?
                == Difference::None
        {
            self.moves
                .push((upper.to_path_buf(), from.clone(), real.to_path_buf()));
            return Ok(());
        }
        self.compare(upper, found, real)?;
        self.directory(upper, lower.as_deref(), real)
    }

    /// Follows an overlay's note about where a renamed directory was: from the top of the mount, or beside it.
    fn redirected(&self, to: &[u8], lower: Option<&Path>) -> Option<PathBuf> {
        let to = Path::new(OsStr::from_bytes(to));
        if to.is_absolute() {
            return Some(skeleton::below(&self.layer.point, to));
        }
        Some(lower?.parent()?.join(to))
    }

    fn file(&mut self, upper: &Path, found: &Metadata, real: &Path) -> Walked<()> {
        if found.nlink() > 1 {
            let key = (found.dev(), found.ino());
            if let Some(first) = self.first_names.get(&key) {
                let before = look(real)?;
                let what = match before {
                    Some(_) => What::Changed,
                    None => What::Created,
                };
                let becomes = Becomes::Linked {
                    first: first.clone(),
                    source: upper.to_path_buf(),
                };
                self.note(real, before.as_ref(), what, becomes, Some(found));
                return Ok(());
            }
            self.first_names.insert(key, real.to_path_buf());
        }
        self.compare(upper, found, real)
    }

    /// Notes how what is at `new` differs from what is really there.
    fn compare(&mut self, new: &Path, found: &Metadata, real: &Path) -> Walked<()> {
        let before = look(real)?;
        let what = match before {
            None => What::Created,
            Some(_) => match difference(new, real).map_err(|error| (new.to_path_buf(), error))? {
                Difference::None => return Ok(()),
                Difference::Metadata => What::Metadata,
                Difference::Content => What::Changed,
            },
        };
        let becomes = Becomes::Like(new.to_path_buf());
        self.note(real, before.as_ref(), what, becomes, Some(found));
        Ok(())
    }

    /// What is at `from`, and all below it, comes to be at `real`.
    fn elsewhere(&mut self, from: &Path, real: &Path) -> Walked<()> {
        let Some(found) = look(from)? else {
            return Ok(());
        };
        if !found.is_dir() {
            return self.file(from, &found, real);
        }
        self.compare(from, &found, real)?;
        let mut seen = BTreeSet::new();
        for name in names(from)? {
            self.elsewhere(&from.join(&name), &real.join(&name))?;
            seen.insert(name);
        }
        if look(real)?.is_some_and(|found| found.is_dir()) {
            for name in names(real)?.into_iter().filter(|name| !seen.contains(name)) {
                self.push(&real.join(&name), What::Deleted, Becomes::Nothing, None)?;
            }
        }
        Ok(())
    }

    /// A renamed directory moves if its old name is gone and nothing else happened in either; else it is copied.
    fn resolve_moves(&mut self) -> Walked<()> {
        let moves = std::mem::take(&mut self.moves);
        let froms: Vec<PathBuf> = moves.iter().map(|(_, from, _)| from.clone()).collect();
        for (upper, from, to) in moves {
            let is_gone =
                |change: &Change| change.path == from && change.becomes == Becomes::Nothing;
            let is_touched = |change: &Change| {
                change.path != from
                    && (change.path.starts_with(&from) || change.path.starts_with(&to))
            };
            let is_single = froms.iter().filter(|other| **other == from).count() == 1;
            let place = self.changes.iter().position(is_gone);
            match place {
                Some(place) if is_single && !self.changes.iter().any(is_touched) => {
                    self.changes.remove(place);
                    self.push(&to, What::Moved, Becomes::Moved(from), None)?;
                }
                Some(_) | None => {
                    if let Some(found) = look(&upper)? {
                        self.compare(&upper, &found, &to)?;
                    }
                    self.directory(&upper, Some(&from), &to)?;
                }
            }
        }
        Ok(())
    }

    fn skeleton(&mut self, known: &BTreeSet<PathBuf>) -> Walked<()> {
        let top = self.layer.upper.clone();
        let mut left = vec![PathBuf::from("/")];
        while let Some(real) = left.pop() {
            let here = skeleton::below(&top, &real);
            let mut seen = BTreeSet::new();
            for name in names(&here)? {
                let path = real.join(&name);
                if !known.contains(&path) {
                    self.elsewhere(&here.join(&name), &path)?;
                } else if known.iter().any(|other| other.parent() == Some(&path)) {
                    left.push(path.clone());
                }
                seen.insert(path);
            }
            let was_here = |path: &&PathBuf| path.parent() == Some(real.as_path());
            for path in known
                .iter()
                .filter(was_here)
                .filter(|path| !seen.contains(*path))
            {
                self.push(path, What::Deleted, Becomes::Nothing, None)?;
            }
        }
        Ok(())
    }

    fn push(
        &mut self,
        path: &Path,
        what: What,
        becomes: Becomes,
        after: Option<&Metadata>,
    ) -> Walked<()> {
        let before = look(path)?;
        if what == What::Deleted && before.is_none() {
            return Ok(());
        }
        self.note(path, before.as_ref(), what, becomes, after);
        Ok(())
    }

    /// Adds a change of a name that was looked at.
    fn note(
        &mut self,
        path: &Path,
        before: Option<&Metadata>,
        what: What,
        becomes: Becomes,
        after: Option<&Metadata>,
    ) {
        let size = |found: &Metadata| found.is_file().then_some(found.len());
        let is_gone = match what {
            What::Deleted => true,
            What::Changed => after.is_none_or(|after| !after.is_dir()),
            What::Created | What::Metadata | What::Moved => false,
        };
        let was_directory = before.is_some_and(Metadata::is_dir);
        self.changes.push(Change {
            gone_below: if is_gone && was_directory {
                count_below(path)
            } else {
                0
            },
            path: path.to_path_buf(),
            what,
            becomes,
            size_before: before.and_then(size),
            size_after: after.and_then(size),
        });
    }
}

/// Counts the names below a directory. One that cannot be listed was empty, or the command could not have removed it.
fn count_below(top: &Path) -> u64 {
    let (mut count, mut left) = (0, vec![top.to_path_buf()]);
    while let Some(directory) = left.pop() {
        for name in names(&directory).unwrap_or_default() {
            count += 1;
            let path = directory.join(name);
            if matches!(look(&path), Ok(Some(found)) if found.is_dir()) {
                left.push(path);
            }
        }
    }
    count
}

fn look(path: &Path) -> Walked<Option<Metadata>> {
    touched::look(path).map_err(|error| (path.to_path_buf(), error))
}

fn names(directory: &Path) -> Walked<Vec<OsString>> {
    touched::names(directory).map_err(|error| (directory.to_path_buf(), error))
}
