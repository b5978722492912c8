//! After a store came from an older format: the tables that answer questions are made to say what the records say, in the
//! way of this program.

use backout_model::ports::Durability;
use rusqlite::types::Value;
use rusqlite::{Transaction, params_from_iter};

use super::replay::{Replay, temporary};
use crate::schema::REBUILD;
use crate::{StorageError, Store, VerifyReport};

/// Each table that is brought over: what to read of the replay, and what to write for each row. What no record gives is
/// left as it is.
const TABLES: [(&str, &str); 3] = [
    (
        "SELECT status, undone_by, redone_by, place, decision, id FROM operation",
        "UPDATE operation SET status = ?1, undone_by = ?2, redone_by = ?3, place = ?4, decision = ?5
         WHERE id = ?6",
    ),
    (
        "SELECT undone_by, held_by, operation, path FROM target",
        "UPDATE target SET undone_by = ?1, held_by = ?2 WHERE operation = ?3 AND path = ?4",
    ),
    (
        "SELECT status, was, id FROM task",
        "UPDATE task SET status = ?1, was = ?2 WHERE id = ?3",
    ),
];

impl Store {
    /// Brings the tables over, if the store comes from an older format and nobody has done that yet.
    pub(crate) fn rebuild_if_older(&self) -> Result<(), StorageError> {
        let is_older = self.read(|transaction| {
            let sql = "SELECT count(*) FROM meta WHERE key = ?1";
            let found = transaction.query_row(sql, [REBUILD], |row| row.get::<_, i64>(0));
            found.map_err(|error| self.named(error))
        })?;
        if is_older == 0 {
            return Ok(());
        }
        let connection = temporary(self)?;
        let replay = Replay::begin(self, &connection)?;
        self.read(|transaction| {
            // What is wrong with the records is told by a check of the store.
            let mut report = VerifyReport::default();
            self.verify_chain(transaction, &replay, &mut report, &mut |_| {})
        })?;
        self.write(Durability::Power, |transaction| {
            for (read, write) in TABLES {
                self.bring_over(&replay.transaction, transaction, read, write)?;
            }
            self.run(transaction, "DELETE FROM meta WHERE key = ?1", [REBUILD])?;
            Ok(())
        })
    }

    fn bring_over(
        &self,
        replay: &Transaction<'_>,
        transaction: &Transaction<'_>,
        read: &str,
        write: &str,
    ) -> Result<(), StorageError> {
        let named = |error| self.named(error);
        let mut reading = replay.prepare(read).map_err(named)?;
        let mut writing = transaction.prepare(write).map_err(named)?;
        let columns = reading.column_count();
        let mut rows = reading.query([]).map_err(named)?;
        while let Some(row) = rows.next().map_err(named)? {
            let values: Vec<Value> = (0..columns)
                .map(|column| row.get(column))
                .collect::<Result<_, _>>()
                .map_err(named)?;
            writing.execute(params_from_iter(values)).map_err(named)?;
        }
        Ok(())
    }
}
