//! A store in numbers, counted without visiting what is counted: a journal may have millions of records.

use std::collections::BTreeMap;

use backout_model::Status;
use rusqlite::Transaction;

use super::append::{anchor, head};
use super::rows::word;
use crate::{StorageError, Store, StoreSummary};

/// What is retained, and what is not.
const COUNTS: [&str; 2] = [
    "SELECT status, count(*) FROM operation WHERE retained = 1 GROUP BY status",
    "SELECT status, count(*) FROM operation WHERE retained = 0 GROUP BY status",
];

impl Store {
    /// Gives the store in numbers.
    pub fn summary(&self) -> Result<StoreSummary, StorageError> {
        self.read(|transaction| {
            let named = |error| self.named(error);
            let leases = transaction
                .query_row("SELECT count(*) FROM lease", [], |row| row.get(0))
                .map_err(named)?;
            Ok(StoreSummary {
                last_lsn: head(transaction).map_err(named)??.0,
                operations: status_counts(self, transaction)?,
                records: self.record_count(transaction)?,
                leases,
            })
        })
    }

    /// Counts the records without visiting them: there are no gaps after the last cut.
    pub(super) fn record_count(&self, transaction: &Transaction<'_>) -> Result<u64, StorageError> {
        let named = |error| self.named(error);
        let (first, _) = anchor(transaction).map_err(named)??;
        let (last, _) = head(transaction).map_err(named)??;
        Ok(last.0.saturating_sub(first.0))
    }
}

/// Counts operations by status, from two narrow indexes: the rows themselves are wide and many.
fn status_counts(
    store: &Store,
    transaction: &Transaction<'_>,
) -> Result<BTreeMap<Status, u64>, StorageError> {
    let named = |error| store.named(error);
    let mut counts = BTreeMap::new();
    for sql in COUNTS {
        let mut statement = transaction.prepare_cached(sql).map_err(named)?;
        let rows = statement
            .query_map([], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, u64>(1)?))
            })
            .map_err(named)?;
        for row in rows {
            let (status, count) = row.map_err(named)?;
            *counts.entry(word("an operation", &status)?).or_default() += count;
        }
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use backout_model::TargetPath;

    use crate::Filter;
    use crate::journal::read::condition_of;
    use crate::journal::tests::World;

    fn plan(sql: &str, values: Vec<rusqlite::types::Value>) -> String {
        let world = World::new();
        let raw = world.raw();
        let mut statement = raw.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let rows = statement.query_map(rusqlite::params_from_iter(values), |row| row.get(3));
        rows.unwrap()
            .collect::<Result<Vec<String>, _>>()
            .unwrap()
            .join("\n")
    }

    fn plan_of(filter: &Filter) -> String {
        let (condition, values) = condition_of(filter);
        plan(
            &format!("SELECT status, completion FROM operation WHERE {condition}"),
            values,
        )
    }

    #[test]
    fn operations_are_counted_from_an_index_alone() {
        for sql in super::COUNTS {
            let plan = plan(sql, vec![]);
            assert!(plan.contains("USING COVERING INDEX"), "{plan}");
            assert!(!plan.contains("TEMP B-TREE"), "{plan}");
        }
    }

    #[test]
    fn a_filter_is_answered_by_an_index_and_not_by_looking_at_everything() {
        let of_task = Filter {
            task: Some("refactor".parse().unwrap()),
            ..Filter::default()
        };
        assert!(
            plan_of(&of_task).contains("operation_task"),
            "{}",
            plan_of(&of_task)
        );
        let of_path = Filter {
            at: Some(TargetPath::new("/a/b").unwrap().into()),
            limit: Some(20),
            ..Filter::default()
        };
        assert!(
            !plan_of(&of_path).contains("SCAN operation"),
            "{}",
            plan_of(&of_path)
        );
        let newest = Filter {
            limit: Some(20),
            ..Filter::default()
        };
        assert!(
            !plan_of(&newest).contains("TEMP B-TREE"),
            "{}",
            plan_of(&newest)
        );
    }
}
