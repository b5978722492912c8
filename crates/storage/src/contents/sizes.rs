//! How much the store holds, kept as running sums so that asking costs nothing.
//!
//! The sums stand in `meta` and change in the transaction that changes what they count. `gc` counts again, so
//! that a mistake would not last.

use rusqlite::{Transaction, params};

use crate::{StorageError, Store, StoredBytes};

/// What a number of bytes is kept as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Rows of the database.
    Inline,
    /// Packs beside it.
    Packs,
    /// Whole inodes in depots.
    Slots,
}

impl Kept {
    const ALL: [Self; 3] = [Self::Inline, Self::Packs, Self::Slots];

    const fn key(self) -> &'static str {
        match self {
            Self::Inline => "stored-bytes-inline",
            Self::Packs => "stored-bytes-packs",
            Self::Slots => "stored-bytes-slots",
        }
    }

    const fn count(self) -> &'static str {
        match self {
            Self::Inline => "SELECT coalesce(sum(length(bytes)), 0) FROM content",
            Self::Packs => "SELECT coalesce(sum(bytes), 0) FROM pack",
            Self::Slots => "SELECT coalesce(sum(bytes), 0) FROM slot",
        }
    }
}

impl Store {
    /// Tells how much the store holds, without counting.
    pub fn stored_bytes(&self) -> Result<StoredBytes, StorageError> {
        self.read(|transaction| stored_in(self, transaction))
    }

    /// Counts what the running sums say, in case they ever went wrong.
    pub(crate) fn recount_stored(
        &self,
        transaction: &Transaction<'_>,
    ) -> Result<StoredBytes, StorageError> {
        let named = |error| self.named(error);
        for kept in Kept::ALL {
            let sum: i64 = transaction
                .query_row(kept.count(), [], |row| row.get(0))
                .map_err(named)?;
            transaction
                .execute(
                    "INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)",
                    params![kept.key(), sum],
                )
                .map_err(named)?;
        }
        stored_in(self, transaction)
    }
}

pub(super) fn stored_in(
    store: &Store,
    transaction: &Transaction<'_>,
) -> Result<StoredBytes, StorageError> {
    let named = |error| store.named(error);
    let mut statement = transaction
        .prepare_cached("SELECT coalesce((SELECT value FROM meta WHERE key = ?1), 0)")
        .map_err(named)?;
    let mut sum = |kept: Kept| {
        let value: i64 = statement
            .query_row([kept.key()], |row| row.get(0))
            .map_err(named)?;
        Ok::<_, StorageError>(u64::try_from(value).unwrap_or(0))
    };
    let (inline, packs, slots) = (sum(Kept::Inline)?, sum(Kept::Packs)?, sum(Kept::Slots)?);
    let total = inline.saturating_add(packs).saturating_add(slots);
    Ok(StoredBytes {
        inline,
        packs,
        slots,
        total,
    })
}

/// Notes that the store grew, or shrank if `change` is negative.
pub(crate) fn add_stored(
    store: &Store,
    transaction: &Transaction<'_>,
    kept: Kept,
    change: i64,
) -> Result<(), StorageError> {
    if change == 0 {
        return Ok(());
    }
    transaction
        .prepare_cached(
            "INSERT INTO meta (key, value) VALUES (?1, ?2)
             ON CONFLICT (key) DO UPDATE SET value = value + excluded.value",
        )
        .and_then(|mut statement| statement.execute(params![kept.key(), change]))
        .map_err(|error| store.named(error))?;
    Ok(())
}
