//! Storing many contents at once, for somebody who holds them all: a workspace's files and trees.
//!
//! One transaction takes many of them and is not synced; [`Store::settle`] makes all of them durable with one sync. They are
//! referred to by one id that is no operation's, which a row of `meta`, `held/ID`, says to `gc`.

use std::collections::BTreeSet;

use backout_model::ports::{Durability, NewContent};
use backout_model::{Digest, OperationId};
use rusqlite::params;

use super::codec::{self, Effort};
use super::rows::{replace, stored_length, to_digest};
use crate::journal::id_to_sql;
use crate::{StorageError, Store};

impl Store {
    /// Stores contents, those that are not there. They are durable after the next [`Store::settle`].
    pub fn stash_many(&self, by: OperationId, contents: &[NewContent]) -> Result<(), StorageError> {
        self.write(Durability::Process, |transaction| {
            for content in contents {
                if stored_length(self, transaction, &content.digest)?.is_none() {
                    let encoded = codec::encode(&content.bytes, Effort::Quick);
                    let size = content.bytes.len() as u64;
                    replace(self, transaction, &content.digest, size, &encoded, None)?;
                }
                self.refer(transaction, by, &content.digest)?;
            }
            Ok(())
        })
    }

    /// Makes durable what was stored, and keeps `gc` from it until [`Store::let_go_of`].
    pub fn settle(&self, by: OperationId) -> Result<(), StorageError> {
        self.write(Durability::Power, |transaction| {
            let sql = "INSERT OR REPLACE INTO meta (key, value) VALUES ('held/' || ?1, 1)";
            let held = transaction.execute(sql, [id_to_sql(by)]);
            held.map(drop).map_err(|error| self.named(error))
        })
    }

    /// Refers to nothing any more but to what is needed. What nobody refers to goes with the next `gc`.
    pub fn let_go_of(
        &self,
        by: OperationId,
        needed: &BTreeSet<Digest>,
    ) -> Result<u64, StorageError> {
        let named = |error| self.named(error);
        self.write(Durability::Process, |transaction| {
            let mut all = transaction
                .prepare("SELECT digest FROM reference WHERE operation = ?1")
                .map_err(named)?;
            let mut remove = transaction
                .prepare("DELETE FROM reference WHERE operation = ?1 AND digest = ?2")
                .map_err(named)?;
            let rows = all.query_map([id_to_sql(by)], |row| row.get::<_, Vec<u8>>(0));
            let rows: Vec<_> = rows.map_err(named)?.collect();
            let mut gone = 0;
            for row in rows {
                let digest = to_digest(&row.map_err(named)?)?;
                if !needed.contains(&digest) {
                    let with = params![id_to_sql(by), digest.as_bytes().as_slice()];
                    remove.execute(with).map_err(named)?;
                    gone += 1;
                }
            }
            Ok(gone)
        })
    }
}
