//! Which drivers there are. What another driver recorded is kept and told, never judged.

use std::sync::PoisonError;

use backout_model::{DriverName, Event, OperationId};
use rusqlite::Transaction;

use crate::journal::id_to_sql;
use crate::{OfOtherDriver, StorageError, Store};

impl Store {
    /// Says that there is somebody who understands the recipes of a driver. A store that was never told knows all.
    pub fn know_driver(&self, name: DriverName) {
        let mut known = self.drivers.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(name);
    }

    pub(crate) fn knows_driver(&self, name: &DriverName) -> bool {
        let known = self.drivers.lock().unwrap_or_else(PoisonError::into_inner);
        known.is_empty() || *name == DriverName::COMMAND || known.contains(name)
    }

    /// Tells whether an event arms something that nobody here understands.
    pub(crate) fn of_other_driver(&self, event: &Event) -> Option<OfOtherDriver> {
        let (id, recipe) = event.armed()?;
        let driver = recipe.driver.clone();
        (!self.knows_driver(&driver)).then_some(OfOtherDriver { id, driver })
    }

    /// Names the driver of an operation, if nobody here understands it.
    pub(crate) fn other_driver_of(
        &self,
        transaction: &Transaction<'_>,
        id: OperationId,
    ) -> Result<Option<OfOtherDriver>, StorageError> {
        let found: Option<Option<String>> = transaction
            .prepare_cached(
                "SELECT json_extract(CAST(body AS TEXT), '$.recipe.driver') FROM record
                 WHERE operation = ?1 AND kind IN ('intent', 'captured') ORDER BY lsn DESC LIMIT 1",
            )
            .and_then(|mut statement| {
                let mut rows = statement.query_map([id_to_sql(id)], |row| row.get(0))?;
                rows.next().transpose()
            })
            .map_err(|error| self.named(error))?;
        let driver = found.flatten().map(DriverName::from);
        let other = driver.filter(|driver| !self.knows_driver(driver));
        Ok(other.map(|driver| OfOtherDriver { id, driver }))
    }
}
