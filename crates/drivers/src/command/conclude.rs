//! The end of settling: the changes become a recipe, with what is known of who made them.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use backout_model::wide::Wide;
use backout_model::{Target, TargetPath};

use super::inodes::key_of;
use super::settle::{Counts, Settled, Settling};
use crate::file::error::FileError;
use crate::file::plan::targets_of;
use crate::file::recipe::{Change, FileCompletion, FileRecipe, Kind, ParentTimes, Times};
use crate::file::sys::Dir;

impl Settling<'_> {
    /// Makes the recipe that takes the changes back.
    pub(super) fn recipe(
        mut self,
        changes: Vec<Change>,
        parents: &BTreeMap<TargetPath, Times>,
        counts: Counts,
    ) -> Result<Settled, FileError> {
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
        let mut identities = Vec::with_capacity(changes.len());
        for change in &changes {
            let path = change.path().clone();
            if self.is_later(&path)? {
                let why = "it was changed after the last moment that the command is known to have been watched".to_owned();
                self.shared.entry(path.clone()).or_insert(why);
            }
            identities.push(self.node(&path)?.map(|node| node.identity));
        }
        let needed: BTreeSet<_> = changes.iter().flat_map(Change::stored).collect();
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
            opened: BTreeSet::new(),
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
            reads: self.ledger.reads.into_iter().collect(),
            is_nothing,
            doubts: Vec::new(),
        })
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
