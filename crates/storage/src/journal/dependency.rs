//! What a new write is built on, as far as the journal can see it: the operations still in effect whose targets
//! touch its own.
//!
//! For every name only the newest operation counts: the older ones are behind it in the chain. Undos are
//! transparent (what they restored was written by an operation that is in effect again) but are linked as
//! well when they are newer, so that a redo knows who built on what it would take away.

use std::collections::{BTreeSet, HashMap};

use backout_model::{Dependency, DependencyReason, Key, OperationId, Reach, Target};
use rusqlite::{Transaction, params};

use super::rows::{id_from_sql, key_from_sql, word};
use crate::{StorageError, Store};

/// The newest operation on one key, and the newest undo if that is newer.
const ON_KEY: &str = "
SELECT operation.id, target.reach, operation.undoes IS NOT NULL FROM target
JOIN operation ON operation.id = target.operation
WHERE target.path = ?1 AND target.undone_by IS NULL
  AND operation.status IN ('armed', 'applied', 'committed', 'interrupted', 'in-doubt', 'failed')
ORDER BY target.lsn DESC";

/// The next key behind one that somebody wrote, as bytes are ordered.
const BEHIND: &str = "
SELECT min(path) FROM target WHERE path > ?1";

/// The keys in a range that somebody wrote.
const BELOW: &str = "
SELECT DISTINCT path FROM target WHERE path >= ?1 AND path < ?2";

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
            // A tree that stands on nothing, and in which nobody wrote: nothing in it stands on anything either.
            let mut untouched: Option<&Key> = None;
            for target in targets {
                if untouched.is_some_and(|tree| target.key().is_at_or_below(tree)) {
                    continue;
                }
                let has_any = finder.collect(target, &mut found)?;
                let is_free = !has_any && target.reach() == Reach::Tree;
                untouched = is_free.then(|| target.key());
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
    seen: HashMap<Key, Vec<(OperationId, Target)>>,
    is_many: bool,
    gap: Option<Gap>,
}

/// Keys that nobody wrote: all between two, as bytes are ordered. Targets come sorted, so most new keys lie in few gaps.
struct Gap {
    after: Vec<u8>,
    before: Option<Vec<u8>>,
}

impl Gap {
    fn has(&self, bytes: &[u8]) -> bool {
        let before = self.before.as_deref();
        bytes > self.after.as_slice() && before.is_none_or(|before| bytes < before)
    }

    /// Tells whether nobody wrote anything from the first to before the last.
    fn has_all(&self, (first, last): &(Vec<u8>, Vec<u8>)) -> bool {
        let before = self.before.as_deref();
        self.has(first) && before.is_none_or(|before| last.as_slice() <= before)
    }
}

impl Finder<'_, '_> {
    /// Collects what a target stands on. Tells whether anybody wrote there at all, above it or below.
    fn collect(
        &mut self,
        target: &Target,
        found: &mut BTreeSet<(OperationId, DependencyReason)>,
    ) -> Result<bool, StorageError> {
        // The key itself last: what is known of the keys behind it is wanted next.
        let mut keys = target.key().ancestors();
        keys.push(target.key().clone());
        let has_any = self.collect_on(target, &keys, found)?;
        let [names, parts] = target.key().ranges_below();
        let mut below = self.between(&parts)?;
        if target.reach() == Reach::Tree {
            below.extend(self.between(&names)?);
        }
        self.collect_on(target, &below, found)?;
        Ok(has_any || !below.is_empty())
    }

    fn collect_on(
        &mut self,
        target: &Target,
        keys: &[Key],
        found: &mut BTreeSet<(OperationId, DependencyReason)>,
    ) -> Result<bool, StorageError> {
        let mut has_any = false;
        for key in keys {
            for (id, earlier) in self.newest_on(key)? {
                has_any = true;
                found
                    .extend(DependencyReason::between(target, earlier).map(|reason| (*id, reason)));
            }
        }
        Ok(has_any)
    }

    fn newest_on(&mut self, key: &Key) -> Result<&[(OperationId, Target)], StorageError> {
        let is_in_gap = |gap: &Gap| gap.has(&key.to_bytes());
        if self.gap.as_ref().is_some_and(is_in_gap) {
            return Ok(&[]);
        }
        if !self.seen.contains_key(key) {
            let newest = self.query(key)?;
            if newest.is_empty() && self.is_many {
                self.gap = Some(self.gap_behind(key)?);
            }
            self.seen.insert(key.clone(), newest);
        }
        Ok(self.seen.get(key).map_or(&[], Vec::as_slice))
    }

    fn query(&self, key: &Key) -> Result<Vec<(OperationId, Target)>, StorageError> {
        let named = |error| self.store.named(error);
        let mut statement = self.transaction.prepare_cached(ON_KEY).map_err(named)?;
        let mut rows = statement.query([key.to_bytes()]).map_err(named)?;
        let mut newest = Vec::new();
        while let Some(row) = rows.next().map_err(named)? {
            let id = id_from_sql(row.get(0).map_err(named)?);
            let reach: String = row.get(1).map_err(named)?;
            let is_reversal: bool = row.get(2).map_err(named)?;
            let reach = word(&format!("a target of operation {id}"), &reach)?;
            newest.push((id, Target::new(key.clone(), reach)));
            if !is_reversal {
                break;
            }
        }
        Ok(newest)
    }

    fn gap_behind(&self, key: &Key) -> Result<Gap, StorageError> {
        let after = key.to_bytes();
        let before = self
            .transaction
            .prepare_cached(BEHIND)
            .and_then(|mut statement| statement.query_row([&after], |row| row.get(0)))
            .map_err(|error| self.store.named(error))?;
        Ok(Gap { after, before })
    }

    fn between(&self, range: &(Vec<u8>, Vec<u8>)) -> Result<Vec<Key>, StorageError> {
        if self.gap.as_ref().is_some_and(|gap| gap.has_all(range)) {
            return Ok(Vec::new());
        }
        let (first, last) = range;
        let named = |error| self.store.named(error);
        let mut statement = self.transaction.prepare_cached(BELOW).map_err(named)?;
        let rows = statement
            .query_map(params![first, last], |row| row.get::<_, Vec<u8>>(0))
            .map_err(named)?;
        rows.map(|row| key_from_sql("a target", &row.map_err(named)?))
            .collect()
    }
}
