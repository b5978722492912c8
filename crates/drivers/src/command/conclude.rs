//! The end of settling: the changes become a recipe, with what is known of who made them.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use backout_files::{Counts, FileRead, Settled};
use backout_model::wide::Wide;
use backout_model::{Target, TargetPath};

use super::inodes::key_of;
use super::settle::Settling;
use super::tracker::Known;
use crate::file::before_image::meta_of;
use crate::file::error::FileError;
use crate::file::mounted::mounts_of;
use crate::file::plan::targets_of;
use crate::file::recipe::{
    Change, FileCompletion, FileRecipe, Identity, Kind, Meta, ParentTimes, Times, leave_to_others,
};
use crate::file::sys::{Dir, Node};

impl Settling<'_> {
    /// Makes the recipe that takes the changes back.
    pub(super) fn recipe(
        mut self,
        mut changes: Vec<Change>,
        parents: &BTreeMap<TargetPath, Times>,
        mut counts: Counts,
    ) -> Result<Settled, FileError> {
        if changes.is_empty() {
            changes = self.times_alone(parents)?;
            counts.changed += changes.len() as u64;
        }
        leave_to_others(&mut changes);
        self.keep_texts(&mut changes);
        let own: HashSet<&TargetPath> = changes.iter().filter_map(Change::set_path).collect();
        let (mut kept, mut left) = (Vec::new(), Vec::new());
        let mut is_nothing = changes.is_empty();
        for (path, times) in parents {
            if own.contains(path) {
                continue;
            }
            if let Ok(dir) = Dir::open(path) {
                let now = dir.node()?.times;
                kept.push(ParentTimes {
                    path: path.clone(),
                    before: *times,
                    after: None,
                });
                left.push(Some(Wide(now.mtime)));
                is_nothing &= now.mtime == times.mtime;
            }
        }
        let identities = self.identities(&changes)?;
        let needed: BTreeSet<_> = changes.iter().flat_map(Change::stored).collect();
        let opened = self.opened_for(&changes);
        let mut contents = self.contents;
        contents.retain(|content| needed.contains(&content.digest));
        contents.sort_by_key(|content| content.digest);
        contents.dedup_by_key(|content| content.digest);
        let mut targets: Vec<Target> = changes.iter().flat_map(targets_of).collect();
        targets.sort();
        targets.dedup();
        let numbered = changes.iter().enumerate();
        let shared = numbered.filter_map(|(index, change)| {
            let from = match change {
                Change::Move { from, .. } => Some(from),
                Change::Set { .. } | Change::Retouch { .. } | Change::Rewrite { .. } => None,
            };
            let mut names = std::iter::once(change.path()).chain(from);
            let why = names.find_map(|name| self.shared.get(name));
            Some((index, why?.clone()))
        });
        let recipe = FileRecipe {
            operation: self.id,
            shared: shared.collect(),
            opened,
            inside: BTreeMap::new(),
            mounts: mounts_of(&changes),
            changes,
            parents: kept,
        };
        let completion = FileCompletion {
            identities,
            parents: left,
        };
        Ok(Settled {
            targets,
            recipe: recipe.encode()?,
            contents,
            completion: completion.encode()?,
            counts,
            reads: self.tracker.reads.into_iter().map(read).collect(),
            lasting: Vec::new(),
            is_nothing,
            doubts: Vec::new(),
        })
    }

    /// Looks at what the changes left, and finds out what may be somebody else's.
    fn identities(&mut self, changes: &[Change]) -> Result<Vec<Option<Identity>>, FileError> {
        let mut identities = Vec::with_capacity(changes.len());
        for change in changes {
            let path = change.path().clone();
            if self.is_later(&path)? {
                let why = "it was changed after the last moment that the command is known to have been watched".to_owned();
                self.shared.entry(path.clone()).or_insert(why);
            }
            // What was read belongs to what was seen then, and to nothing that came later.
            let seen = self.seen.remove(&path);
            let node = match seen.filter(|seen| !self.touched.contains(&key_of(seen))) {
                Some(node) => Some(node),
                None => self.node(&path)?,
            };
            identities.push(node.map(|node| node.identity));
        }
        Ok(identities)
    }

    /// Names the directories that the command gave a mode and that it changed something in: it may have opened them for that and
    /// closed them again, and taking it back may do so, too.
    fn opened_for(&self, changes: &[Change]) -> BTreeSet<TargetPath> {
        let parents = changes.iter().filter_map(|change| change.path().parent());
        let is_dressed = |path: &TargetPath| {
            let known = self.known.get(path);
            matches!(
                known,
                Some(Known::Dressed {
                    node: Kind::Directory,
                    ..
                })
            )
        };
        parents.filter(is_dressed).collect()
    }

    /// Finds the directories whose times are all that the command changed. Beside other changes they go without saying: nobody's
    /// undo is to be a conflict because somebody wrote in a directory since. Nor does a file that came and went count.
    fn times_alone(
        &mut self,
        parents: &BTreeMap<TargetPath, Times>,
    ) -> Result<Vec<Change>, FileError> {
        let mut changes = Vec::new();
        for path in self.tracker.timed.clone() {
            let (Some(times), Some(place)) = (parents.get(&path), self.place(&path)?) else {
                continue;
            };
            let node = place.node()?;
            let is_other =
                |node: &Node| node.kind == Kind::Directory && node.times.mtime != times.mtime;
            let Some(node) = node.filter(is_other) else {
                continue;
            };
            let after = meta_of(&place, &node)?;
            let before = Meta {
                times: Some(*times),
                ..after.clone()
            };
            changes.push(Change::Retouch {
                path,
                before,
                after,
                node: Some(Kind::Directory),
            });
        }
        Ok(changes)
    }

    /// Tells whether a name was changed after the last moment that somebody watched. The times of a directory speak of its
    /// entries, and of what is gone only its directory can tell. What settling itself touched was looked at before.
    fn is_later(&mut self, path: &TargetPath) -> Result<bool, FileError> {
        let Some(until) = self.watched_until else {
            return Ok(false);
        };
        let changed = match self.node(path)? {
            Some(node) if node.kind == Kind::Directory => None,
            Some(node) if self.touched.contains(&key_of(&node)) => None,
            Some(node) => Some(node.identity.ctime),
            None => match path.parent() {
                Some(parent) => self.node(&parent)?.map(|node| node.identity.mtime),
                None => None,
            },
        };
        Ok(changed.is_some_and(|changed| changed > until))
    }
}

fn read((path, identity): (TargetPath, Option<Identity>)) -> FileRead {
    FileRead { path, identity }
}
