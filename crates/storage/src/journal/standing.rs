//! How operations, their targets and their tasks stand after an undo or a redo.

use backout_model::{Below, Lsn, OperationId, Standing, Status, TargetOutcome, TaskStatus};
use rusqlite::params;

use super::project::Projection;
use super::rows::{id_to_sql, lsn_to_sql};
use crate::StorageError;

/// What a redo (?2) brought back of an operation (?1) and is gone again ends with an undo (?3). Each of the three conditions is a
/// search in an index; as one they would be a scan of all targets for each of them. Below a key nothing lies by a slash: that is
/// a letter of its name.
pub(super) const END_REDO: &str = "
UPDATE target SET undone_by = ?3 WHERE operation = ?2 AND undone_by IS NULL
    AND NOT EXISTS (SELECT 1 FROM target AS back
        WHERE back.operation = ?1 AND back.undone_by IS NULL
          AND back.path = target.path)
    AND NOT EXISTS (SELECT 1 FROM target AS back
        WHERE back.operation = ?1 AND back.undone_by IS NULL AND back.held_by = ?2
          AND instr(target.path, x'00') = 0
          AND back.path > CAST(target.path || '/' AS BLOB)
          AND back.path < CAST(target.path || '0' AS BLOB))
    AND NOT EXISTS (SELECT 1 FROM target AS back
        WHERE back.operation = ?1 AND back.undone_by IS NULL AND back.held_by = ?2
          AND back.path > CAST(target.path || x'00' AS BLOB)
          AND back.path < CAST(target.path || x'01' AS BLOB))";

impl Projection<'_, '_> {
    pub(super) fn undone(
        &self,
        id: OperationId,
        by: OperationId,
        outcomes: &[TargetOutcome],
        is_partial: bool,
    ) -> Result<(), StorageError> {
        if !is_partial && !all_taken_back(outcomes) {
            return self.status(id, Status::Failed);
        }
        if is_partial {
            let settled = outcomes
                .iter()
                .filter(|outcome| outcome.kind.is_taken_back());
            for outcome in settled {
                self.execute(
                    "UPDATE target SET undone_by = ?3 WHERE operation = ?1 AND path = ?2 AND undone_by IS NULL",
                    params![id_to_sql(id), outcome.target.key().to_bytes(), id_to_sql(by)],
                )?;
            }
        } else {
            self.execute(
                "UPDATE target SET undone_by = ?2 WHERE operation = ?1 AND undone_by IS NULL",
                params![id_to_sql(id), id_to_sql(by)],
            )?;
        }
        self.end_redos(id, by)?;
        self.release(id)?;
        if self.has_targets_in_effect(id)? {
            return self.touch(id);
        }
        self.status(id, Status::Undone)?;
        self.execute(
            "UPDATE operation SET undone_by = ?2, redone_by = NULL, undo_failed = NULL WHERE id = ?1",
            params![id_to_sql(id), id_to_sql(by)],
        )?;
        self.roll_task_back_again(id)
    }

    /// A redo holds as long as what it brought back does.
    fn end_redos(&self, id: OperationId, by: OperationId) -> Result<(), StorageError> {
        let named = |error| self.store.named(error);
        let mut statement = self
            .transaction
            .prepare_cached(
                "SELECT redo.id FROM operation AS undo JOIN operation AS redo ON redo.undoes = undo.id
                 WHERE undo.undoes = ?1 AND redo.verb = 'redo' AND redo.status = 'committed'",
            )
            .map_err(named)?;
        let redos = statement
            .query_map([id_to_sql(id)], |row| row.get::<_, i64>(0))
            .map_err(named)?;
        let redos: Vec<i64> = redos.collect::<rusqlite::Result<_>>().map_err(named)?;
        for redo in redos {
            self.execute(END_REDO, params![id_to_sql(id), redo, id_to_sql(by)])?;
            let redo = super::rows::id_from_sql(redo);
            if !self.has_targets_in_effect(redo)? {
                self.status(redo, Status::Undone)?;
            }
        }
        Ok(())
    }

    fn has_targets_in_effect(&self, id: OperationId) -> Result<bool, StorageError> {
        self.transaction
            .prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM target WHERE operation = ?1 AND undone_by IS NULL)",
            )
            .and_then(|mut statement| statement.query_row([id_to_sql(id)], |row| row.get(0)))
            .map_err(|error| self.store.named(error))
    }

    /// Notes that something happened to an operation whose status stays.
    fn touch(&self, id: OperationId) -> Result<(), StorageError> {
        self.execute(
            "UPDATE operation SET finished = ?2 WHERE id = ?1",
            params![id_to_sql(id), self.now.0],
        )
    }

    /// An operation that came back is kept, or waits for its task again if that is, or is again, open.
    pub(super) fn redone(
        &self,
        lsn: Lsn,
        id: OperationId,
        by: OperationId,
        targets: Option<&[Standing]>,
    ) -> Result<(), StorageError> {
        match targets {
            None => self.execute(
                "UPDATE target SET undone_by = NULL, held_by = ?2 WHERE operation = ?1",
                params![id_to_sql(id), id_to_sql(by)],
            )?,
            Some(targets) => {
                for standing in targets {
                    self.bring_back(id, by, standing)?;
                }
            }
        }
        self.execute(
            "UPDATE task SET status = was WHERE status = 'rolled-back' AND was IS NOT NULL
               AND id = (SELECT task FROM operation WHERE id = ?1)",
            [id_to_sql(id)],
        )?;
        let is_open: bool = self
            .transaction
            .prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM operation JOIN task ON task.id = operation.task
                                WHERE operation.id = ?1 AND task.status = 'open')",
            )
            .and_then(|mut statement| statement.query_row([id_to_sql(id)], |row| row.get(0)))
            .map_err(|error| self.store.named(error))?;
        let next = if is_open {
            Status::Applied
        } else {
            Status::Committed
        };
        match self.status_found(id)? {
            Some(status) if status != Status::Undone => self.touch(id)?,
            _ => self.status(id, next)?,
        }
        self.execute(
            "UPDATE operation SET undone_by = NULL, redone_by = ?2, place = ?3 WHERE id = ?1",
            params![id_to_sql(id), id_to_sql(by), lsn_to_sql(lsn)],
        )
    }

    fn bring_back(
        &self,
        id: OperationId,
        by: OperationId,
        standing: &Standing,
    ) -> Result<(), StorageError> {
        let key = standing.target.key();
        self.execute(
            "UPDATE target SET undone_by = NULL, held_by = ?3 WHERE operation = ?1 AND path = ?2",
            params![
                id_to_sql(id),
                key.to_bytes(),
                standing.held_by.map(id_to_sql)
            ],
        )?;
        // An earlier redo that holds it again is in effect again.
        let Some(holder) = standing.held_by.filter(|holder| *holder != by) else {
            return Ok(());
        };
        for above in std::iter::once(key.clone()).chain(key.ancestors()) {
            let is_whole = above == *key || key.below(&above) == Some(Below::Part);
            self.execute(
                "UPDATE target SET undone_by = NULL WHERE operation = ?1 AND path = ?2
                   AND (?3 OR reach = 'tree')",
                params![id_to_sql(holder), above.to_bytes(), is_whole],
            )?;
        }
        match self.status_found(holder)? {
            Some(Status::Undone) => self.status(holder, Status::Committed),
            _ => Ok(()),
        }
    }

    pub(super) fn finish_task(&self, task: &str, status: TaskStatus) -> Result<(), StorageError> {
        let sql = match status {
            // What it was is remembered: a redo makes it that again.
            TaskStatus::RolledBack => {
                "UPDATE task SET was = status, status = ?2 WHERE id = ?1 AND status <> ?2"
            }
            TaskStatus::Open | TaskStatus::Committed => "UPDATE task SET status = ?2 WHERE id = ?1",
        };
        self.execute(sql, params![task, status.as_str()])
    }

    /// A task that was rolled back once is rolled back again when nothing of it is left in effect.
    pub(super) fn roll_task_back_again(&self, id: OperationId) -> Result<(), StorageError> {
        self.execute(
            "UPDATE task SET was = status, status = 'rolled-back'
             WHERE id = (SELECT task FROM operation WHERE id = ?1)
               AND status <> 'rolled-back'
               AND was IS NOT NULL
               AND NOT EXISTS (SELECT 1 FROM operation AS other JOIN target ON target.operation = other.id
                               WHERE other.task = task.id AND target.undone_by IS NULL
                                 AND other.status IN ('armed', 'applied', 'committed', 'interrupted'))",
            [id_to_sql(id)],
        )
    }
}

pub(super) fn all_taken_back(outcomes: &[TargetOutcome]) -> bool {
    outcomes.iter().all(|outcome| outcome.kind.is_taken_back())
}
