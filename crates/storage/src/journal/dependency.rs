//! What a new write is built on, as far as the journal can see it: the operations still in effect whose targets
//! touch its own.
//!
//! For every name only the newest operation counts: the older ones are behind it in the chain. Undos are
//! transparent (what they restored was written by an operation that is in effect again) but are linked as
//! well when they are newer, so that a redo knows who built on what it would take away.

use std::collections::{BTreeSet, HashMap};

use backout_model::{Dependency, DependencyReason, OperationId, Reach, Target, TargetPath};
use rusqlite::{Transaction, params};

use super::rows::{contradiction, id_from_sql, word};
use crate::{StorageError, Store};

/// The newest operation on one name, and the newest undo if that is newer.
const ON_PATH: &str = "
SELECT operation.id, target.reach, operation.undoes IS NOT NULL FROM target
JOIN operation ON operation.id = target.operation
WHERE target.path = ?1 AND target.undone_by IS NULL
  AND operation.status IN ('armed', 'applied', 'committed', 'interrupted', 'in-doubt', 'failed')
ORDER BY target.lsn DESC";

/// The next name behind one that somebody wrote, as bytes are ordered.
const BEHIND: &str = "
SELECT min(path) FROM target WHERE path > ?1";

/// The names below a directory that somebody wrote.
const BELOW: &str = "
SELECT DISTINCT path FROM target WHERE path > ?1 AND path < ?2";

/// From so many targets on it pays to look where nobody wrote anything.
const MANY: usize = 16;

impl Store {
    /// Finds what a write of `targets` depends on.
    pub fn dependencies(&self, targets: &[Target]) -> Result<Vec<Dependency>, StorageError> {
        self.read(|transaction| {
            let mut finder = Finder {
                store: self,
                transaction,
                seen: HashMap::new(),
                is_many: targets.len() >= MANY,
                gap: None,
            };
            let mut found = BTreeSet::new();
            for target in targets {
                finder.collect(target, &mut found)?;
            }
            Ok(found
                .into_iter()
                .map(|(on, reason)| Dependency { on, reason })
                .collect())
        })
    }
}

struct Finder<'s, 't> {
    store: &'s Store,
    transaction: &'s Transaction<'t>,
    seen: HashMap<TargetPath, Vec<(OperationId, Target)>>,
    is_many: bool,
    gap: Option<Gap>,
}

/// Names that nobody wrote: all between two, as bytes are ordered. Targets come sorted, so most new names lie in few gaps.
struct Gap {
    after: Vec<u8>,
    before: Option<Vec<u8>>,
}

impl Gap {
    fn has(&self, path: &TargetPath) -> bool {
        let path = path.as_bytes();
        let before = self.before.as_deref();
        path > self.after.as_slice() && before.is_none_or(|before| path < before)
    }
}

impl Finder<'_, '_> {
    fn collect(
        &mut self,
        target: &Target,
        found: &mut BTreeSet<(OperationId, DependencyReason)>,
    ) -> Result<(), StorageError> {
        let mut names = vec![target.path().clone()];
        names.extend(target.path().ancestors());
        if target.reach() == Reach::Tree {
            names.extend(self.below(target.path())?);
        }
        for name in &names {
            for (id, earlier) in self.newest_on(name)? {
                found
                    .extend(DependencyReason::between(target, earlier).map(|reason| (*id, reason)));
            }
        }
        Ok(())
    }

    fn newest_on(&mut self, path: &TargetPath) -> Result<&[(OperationId, Target)], StorageError> {
        if self.gap.as_ref().is_some_and(|gap| gap.has(path)) {
            return Ok(&[]);
        }
        if !self.seen.contains_key(path) {
            let newest = self.query(path)?;
            if newest.is_empty() && self.is_many {
                self.gap = Some(self.gap_behind(path)?);
            }
            self.seen.insert(path.clone(), newest);
        }
        Ok(self.seen.get(path).map_or(&[], Vec::as_slice))
    }

    fn query(&self, path: &TargetPath) -> Result<Vec<(OperationId, Target)>, StorageError> {
        let named = |error| self.store.named(error);
        let mut statement = self.transaction.prepare_cached(ON_PATH).map_err(named)?;
        let mut rows = statement.query([path.as_bytes()]).map_err(named)?;
        let mut newest = Vec::new();
        while let Some(row) = rows.next().map_err(named)? {
            let id = id_from_sql(row.get(0).map_err(named)?);
            let reach: String = row.get(1).map_err(named)?;
            let is_reversal: bool = row.get(2).map_err(named)?;
            let reach = word(&format!("a target of operation {id}"), &reach)?;
            newest.push((
                id,
                Target::Path {
                    path: path.clone(),
                    reach,
                },
            ));
            if !is_reversal {
                break;
            }
        }
        Ok(newest)
    }

    fn gap_behind(&self, path: &TargetPath) -> Result<Gap, StorageError> {
        let after = path.as_bytes().to_vec();
        let before = self
            .transaction
            .prepare_cached(BEHIND)
            .and_then(|mut statement| statement.query_row([&after], |row| row.get(0)))
            .map_err(|error| self.store.named(error))?;
        Ok(Gap { after, before })
    }

    fn below(&self, directory: &TargetPath) -> Result<Vec<TargetPath>, StorageError> {
        let named = |error| self.store.named(error);
        let (first, last) = bounds_below(directory);
        let mut statement = self.transaction.prepare_cached(BELOW).map_err(named)?;
        let rows = statement
            .query_map(params![first, last], |row| row.get::<_, Vec<u8>>(0))
            .map_err(named)?;
        rows.map(|row| {
            let bytes = row.map_err(named)?;
            TargetPath::from_bytes(&bytes).map_err(|cause| contradiction("a target", &cause))
        })
        .collect()
    }
}

/// Gives the bounds between which, as bytes, lies every path below `directory` and nothing else.
pub(super) fn bounds_below(directory: &TargetPath) -> (Vec<u8>, Vec<u8>) {
    let mut first = directory.as_bytes().to_vec();
    if first.last() != Some(&b'/') {
        first.push(b'/');
    }
    let mut last = first.clone();
    if let Some(slash) = last.last_mut() {
        *slash = b'/' + 1;
    }
    (first, last)
}
