//! Finding the operation that a person named. What names there are: `model::ports::OperationRef`.

use backout_model::OperationId;
use backout_model::ports::CANDIDATES_MAX;
use rusqlite::{OptionalExtension as _, params};

use super::rows::id_from_sql;
use crate::{OperationRef, RefError, Store};

impl Store {
    /// Finds the operation that a person named.
    pub fn resolve(&self, reference: &OperationRef) -> Result<OperationId, RefError> {
        match reference {
            OperationRef::Newest { back } => self.newest(*back),
            OperationRef::Prefix(prefix) => self.by_prefix(prefix),
        }
    }

    fn newest(&self, back: u32) -> Result<OperationId, RefError> {
        let found = self.read(|transaction| {
            transaction
                .prepare_cached(
                    "SELECT id FROM operation
                     WHERE undoes IS NULL AND status NOT IN ('proposed', 'refused', 'aborted')
                       AND EXISTS (SELECT 1 FROM target WHERE target.operation = operation.id)
                     ORDER BY lsn DESC LIMIT 1 OFFSET ?1",
                )
                .and_then(|mut s| s.query_row([back], |row| row.get(0)).optional())
                .map_err(|error| self.named(error))
        })?;
        let text = if back == 0 {
            "@".to_owned()
        } else {
            format!("@-{back}")
        };
        found.map(id_from_sql).ok_or(RefError::Unknown { text })
    }

    fn by_prefix(&self, prefix: &str) -> Result<OperationId, RefError> {
        let unknown = || RefError::Unknown {
            text: prefix.to_owned(),
        };
        let first = u64::from_str_radix(&format!("{prefix:0<16}"), 16).map_err(|_| unknown())?;
        let last = u64::from_str_radix(&format!("{prefix:f<16}"), 16).map_err(|_| unknown())?;
        let found: Vec<OperationId> = self.read(|transaction| {
            let named = |error| self.named(error);
            let mut statement = transaction
                .prepare_cached(
                    "SELECT id FROM operation WHERE id BETWEEN ?1 AND ?2 ORDER BY lsn DESC LIMIT ?3",
                )
                .map_err(named)?;
            let rows = statement
                .query_map(
                    params![first.cast_signed(), last.cast_signed(), CANDIDATES_MAX],
                    |row| row.get::<_, i64>(0),
                )
                .map_err(named)?;
            rows.map(|row| row.map(id_from_sql).map_err(named)).collect()
        })?;
        match found.as_slice() {
            [] => Err(unknown()),
            [one] => Ok(*one),
            _ => Err(RefError::Ambiguous {
                text: prefix.to_owned(),
                candidates: found,
            }),
        }
    }
}
