//! Packs: every frame that gives its digest is known to the database again, and what is gone is not.
//!
//! Serves a rebuilt journal, which knows no pack at all, and a good one whose packs were hurt.

use std::collections::HashMap;
use std::fs;

use backout_model::Digest;
use backout_model::ports::Durability;
use rusqlite::{Transaction, params};

use crate::contents::pack::{self, ChunkAt};
use crate::contents::rows::to_digest;
use crate::{PackSalvage, StorageError, Store};

impl Store {
    /// Reads every pack and makes the table of chunks say what is there.
    pub fn adopt_packs(&self) -> Result<PackSalvage, StorageError> {
        let _lock = pack::share(self)?;
        self.write(Durability::Power, |transaction| {
            self.adopt_packs_in(transaction)
        })
    }

    pub(super) fn adopt_packs_in(
        &self,
        transaction: &Transaction<'_>,
    ) -> Result<PackSalvage, StorageError> {
        let named = |error| self.named(error);
        let mut sound: HashMap<Digest, ChunkAt> = HashMap::new();
        let mut packs = Vec::new();
        for (id, path) in self.pack_files()? {
            let failed = |source| pack::failed(&path, "read", source);
            let length = fs::metadata(&path).map_err(failed)?.len();
            let places = pack::salvage(&path, id).map_err(failed)?;
            packs.push((id, length, places.len()));
            sound.extend(places.into_iter().map(|place| (place.digest, place)));
        }
        let known = self.known_chunks(transaction)?;
        let mut report = PackSalvage::default();
        for (digest, place) in &known {
            if !sound.contains_key(digest) {
                transaction
                    .execute(
                        "DELETE FROM chunk WHERE digest = ?1",
                        [digest.as_bytes().as_slice()],
                    )
                    .map_err(named)?;
                report.lost += 1;
            } else if sound.get(digest) != Some(place) {
                report.found += 1;
            }
        }
        report.found += sound
            .keys()
            .filter(|digest| !known.contains_key(digest))
            .count() as u64;
        for place in sound
            .values()
            .filter(|place| known.get(&place.digest) != Some(place))
        {
            transaction
                .execute(
                    "INSERT OR REPLACE INTO chunk (digest, pack, offset, stored, size)
                     VALUES (?1, ?2, ?3, ?4, ?5)",
                    params![
                        place.digest.as_bytes().as_slice(),
                        place.pack,
                        place.offset.cast_signed(),
                        place.stored,
                        place.size
                    ],
                )
                .map_err(named)?;
        }
        transaction.execute("DELETE FROM pack", []).map_err(named)?;
        // A file without a sound chunk stays what it is: a leftover that `gc` removes.
        for (id, length, _) in packs.iter().filter(|(_, _, chunks)| *chunks > 0) {
            transaction
                .execute(
                    "INSERT INTO pack (id, bytes) VALUES (?1, ?2)",
                    params![id, length.cast_signed()],
                )
                .map_err(named)?;
        }
        self.recount_stored(transaction)?;
        Ok(report)
    }

    fn known_chunks(
        &self,
        transaction: &Transaction<'_>,
    ) -> Result<HashMap<Digest, ChunkAt>, StorageError> {
        let named = |error| self.named(error);
        let mut statement = transaction
            .prepare("SELECT digest, pack, offset, stored, size FROM chunk")
            .map_err(named)?;
        let rows = statement
            .query_map([], |row| {
                let numbers: [i64; 4] = [row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?];
                Ok((row.get::<_, Vec<u8>>(0)?, numbers))
            })
            .map_err(named)?;
        let mut known = HashMap::new();
        for row in rows {
            let (digest, [pack, offset, stored, size]) = row.map_err(named)?;
            let digest = to_digest(&digest)?;
            // An impossible number is one that no sound frame has.
            let small = |number: i64| u32::try_from(number).unwrap_or(u32::MAX);
            known.insert(
                digest,
                ChunkAt {
                    digest,
                    pack,
                    offset: u64::try_from(offset).unwrap_or(u64::MAX),
                    stored: small(stored),
                    size: small(size),
                },
            );
        }
        Ok(known)
    }
}
