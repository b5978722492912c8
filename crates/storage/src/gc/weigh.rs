//! How many bytes go with an operation, so that the cap lets go of no more than it must.

use std::collections::HashMap;

use backout_model::Digest;
use rusqlite::{OptionalExtension as _, Transaction};

use super::expire::Group;
use crate::contents::codec::Form;
use crate::contents::pack::decode_list;
use crate::contents::rows::to_digest;
use crate::{StorageError, Store};

impl Store {
    /// Tells each group how many bytes go with it. A content goes with the last group that needs it, so that letting
    /// the oldest go first adds up; one that something else needs too goes with none.
    pub(super) fn weigh(
        &self,
        transaction: &Transaction<'_>,
        groups: &mut [Group],
    ) -> Result<(), StorageError> {
        let named = |error| self.named(error);
        let mut of_operation = HashMap::new();
        for (index, group) in groups.iter().enumerate() {
            of_operation.extend(group.ids().map(|id| (id, index)));
        }
        let mut last: HashMap<Digest, Option<usize>> = HashMap::new();
        let mut statement = transaction
            .prepare("SELECT digest, operation FROM reference")
            .map_err(named)?;
        let mut rows = statement.query([]).map_err(named)?;
        while let Some(row) = rows.next().map_err(named)? {
            let digest = to_digest(&row.get::<_, Vec<u8>>(0).map_err(named)?)?;
            let index = of_operation
                .get(&row.get::<_, i64>(1).map_err(named)?)
                .copied();
            let order = |index: usize| groups.get(index).map(Group::place);
            last.entry(digest)
                .and_modify(|last| {
                    *last = last
                        .zip(index)
                        .map(|(a, b)| if order(a) >= order(b) { a } else { b });
                })
                .or_insert(index);
        }
        let weights = self.weights(transaction)?;
        for (digest, index) in last {
            if let Some(group) = index.and_then(|index| groups.get_mut(index)) {
                group.candidate.bytes += weights.get(&digest).copied().unwrap_or(0);
            }
        }
        let mut statement = transaction
            .prepare("SELECT operation, coalesce(sum(bytes), 0) FROM slot GROUP BY operation")
            .map_err(named)?;
        let mut rows = statement.query([]).map_err(named)?;
        while let Some(row) = rows.next().map_err(named)? {
            let operation: i64 = row.get(0).map_err(named)?;
            let bytes: i64 = row.get(1).map_err(named)?;
            let group = of_operation
                .get(&operation)
                .and_then(|index| groups.get_mut(*index));
            if let Some(group) = group {
                group.candidate.bytes += u64::try_from(bytes).unwrap_or(0);
            }
        }
        Ok(())
    }

    /// Tells how many bytes each content takes, with the chunks that only it needs.
    fn weights(&self, transaction: &Transaction<'_>) -> Result<HashMap<Digest, u64>, StorageError> {
        let named = |error| self.named(error);
        let mut weights = HashMap::new();
        let mut users: HashMap<Digest, Option<Digest>> = HashMap::new();
        let mut statement = transaction
            .prepare(
                "SELECT digest, length(bytes), size, CASE form WHEN ?1 THEN bytes END FROM content",
            )
            .map_err(named)?;
        let mut rows = statement.query([Form::Chunks.to_sql()]).map_err(named)?;
        while let Some(row) = rows.next().map_err(named)? {
            let digest = to_digest(&row.get::<_, Vec<u8>>(0).map_err(named)?)?;
            let length: i64 = row.get(1).map_err(named)?;
            weights.insert(digest, u64::try_from(length).unwrap_or(0));
            let size: i64 = row.get(2).map_err(named)?;
            if let Some(list) = row.get::<_, Option<Vec<u8>>>(3).map_err(named)? {
                let chunks =
                    decode_list(&list, u64::try_from(size).unwrap_or(0)).unwrap_or_default();
                for chunk in chunks {
                    let user = users.entry(chunk).or_insert(Some(digest));
                    *user = user.filter(|user| *user == digest);
                }
            }
        }
        let mut stored = transaction
            .prepare_cached("SELECT stored FROM chunk WHERE digest = ?1")
            .map_err(named)?;
        for (chunk, user) in users {
            let Some(weight) = user.and_then(|user| weights.get_mut(&user)) else {
                continue;
            };
            let bytes: Option<i64> = stored
                .query_row([chunk.as_bytes().as_slice()], |row| row.get(0))
                .optional()
                .map_err(named)?;
            *weight += bytes
                .and_then(|bytes| u64::try_from(bytes).ok())
                .unwrap_or(0);
        }
        Ok(weights)
    }
}
