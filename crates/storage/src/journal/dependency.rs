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

/// The keys in a range that somebody wrote.
const BELOW: &str = "
SELECT DISTINCT path FROM target WHERE path >= ?1 AND path < ?2";

impl Store {
    /// Finds what a write of `targets` depends on.
    pub fn dependencies(&self, targets: &[Target]) -> Result<Vec<Dependency>, StorageError> {
        self.read(|transaction| {
            let mut finder = Finder {
                store: self,
                transaction,
                seen: HashMap::new(),
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
    seen: HashMap<Key, Vec<(OperationId, Target)>>,
}

impl Finder<'_, '_> {
    fn collect(
        &mut self,
        target: &Target,
        found: &mut BTreeSet<(OperationId, DependencyReason)>,
    ) -> Result<(), StorageError> {
        let mut keys = vec![target.key().clone()];
        keys.extend(target.key().ancestors());
        let [names, parts] = target.key().ranges_below();
        if target.reach() == Reach::Tree {
            keys.extend(self.between(&names)?);
        }
        keys.extend(self.between(&parts)?);
        for key in &keys {
            for (id, earlier) in self.newest_on(key)? {
                found
                    .extend(DependencyReason::between(target, earlier).map(|reason| (*id, reason)));
            }
        }
        Ok(())
    }

    fn newest_on(&mut self, key: &Key) -> Result<&[(OperationId, Target)], StorageError> {
        if !self.seen.contains_key(key) {
            let newest = self.query(key)?;
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

    fn between(&self, (first, last): &(Vec<u8>, Vec<u8>)) -> Result<Vec<Key>, StorageError> {
        let named = |error| self.store.named(error);
        let mut statement = self.transaction.prepare_cached(BELOW).map_err(named)?;
        let rows = statement
            .query_map(params![first, last], |row| row.get::<_, Vec<u8>>(0))
            .map_err(named)?;
        rows.map(|row| key_from_sql("a target", &row.map_err(named)?))
            .collect()
    }
}
