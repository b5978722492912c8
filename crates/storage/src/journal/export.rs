//! The audit: the records as JSON lines, and the cut that lets old ones leave the journal.
//!
//! A cut first writes the leaving records to `audit/FIRST-LAST.jsonl` in the state directory, durably, and then
//! moves the beginning of the chain to the last of them. The chain goes on from its hash, so an exported
//! file and the journal can be checked together.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::PathBuf;

use backout_crashpoint::crash_point;
use backout_model::ports::{Durability, Entry};
use backout_model::{Digest, Event, KEY_MS_MIN, Lsn, Record, Retention};
use rusqlite::{OptionalExtension as _, Transaction, params};

use super::rows::{digest, lsn_from_sql, lsn_to_sql};
use crate::{StorageError, Store};

/// How many records are held in memory at a time.
const PAGE: usize = 1000;

const AUDIT: &str = "audit";

impl Store {
    /// Writes every record after `from` as one JSON object a line, and returns how many there were.
    pub fn export(&self, from: Lsn, out: &mut dyn Write) -> Result<u64, StorageError> {
        self.export_between(from, None, out)
    }

    /// Moves records that are past their retention out of the journal into a file, and returns that file.
    pub fn cut_audit(&self, retention: &Retention) -> Result<Option<PathBuf>, StorageError> {
        let now = self.clock.now().0;
        let before = now.saturating_sub(retention.audit_ms);
        let keyed_before = now.saturating_sub(KEY_MS_MIN);
        let cuttable = self.read(|tx| self.cuttable(tx, before, keyed_before))?;
        let Some((first, last, anchor)) = cuttable else {
            return Ok(None);
        };
        let path = self
            .directory
            .path()
            .join(AUDIT)
            .join(format!("{first}-{last}.jsonl"));
        self.write_audit(&path, first, last)
            .map_err(|error| match error {
                AuditError::Storage(error) => error,
                AuditError::Io(source) => StorageError::StateDir {
                    path: path.clone(),
                    action: "write",
                    source,
                },
            })?;
        crash_point("audit.exported");
        let now = self.clock.now();
        self.write(Durability::Power, |transaction| {
            let entry = Entry::of(vec![Event::Cut {
                up_to: last,
                anchor,
            }]);
            self.append_in(transaction, &entry, now)?;
            for sql in [
                "INSERT OR IGNORE INTO depot (path) SELECT depot FROM slot
                 WHERE operation IN (SELECT id FROM operation WHERE lsn <= ?1)",
                "DELETE FROM slot WHERE operation IN (SELECT id FROM operation WHERE lsn <= ?1)",
                "DELETE FROM target WHERE operation IN (SELECT id FROM operation WHERE lsn <= ?1)",
                "DELETE FROM edge WHERE dependent IN (SELECT id FROM operation WHERE lsn <= ?1)",
                "DELETE FROM operation WHERE lsn <= ?1",
                "DELETE FROM record WHERE lsn <= ?1",
            ] {
                self.run(transaction, sql, [lsn_to_sql(last)])?;
            }
            Ok(())
        })?;
        crash_point("audit.cut");
        Ok(Some(path))
    }

    /// Finds the longest beginning of the journal that nothing needs any more.
    fn cuttable(
        &self,
        transaction: &Transaction<'_>,
        before: i64,
        keyed_before: i64,
    ) -> Result<Option<(Lsn, Lsn, Digest)>, StorageError> {
        let named = |error| self.named(error);
        // The first record that is too young, or speaks of an operation that is still retained or unfinished,
        // or of a task or a rollout that is open, or answers a call that may still be made again, ends it.
        let first_needed: Option<i64> = transaction
            .query_row(
                "SELECT min(record.lsn) FROM record
                 LEFT JOIN operation ON operation.id = record.operation
                 WHERE record.at > ?1 OR operation.retained = 1
                    OR operation.status IN ('armed', 'applied', 'interrupted', 'in-doubt', 'failed')
                    OR operation.finished > ?1
                    OR (operation.call_key IS NOT NULL AND record.at > ?2)
                    OR EXISTS (SELECT 1 FROM meta WHERE key = 'rollout-open/' || record.operation)",
                [before, keyed_before],
                |row| row.get(0),
            )
            .map_err(named)?;
        let last = first_needed.map_or(i64::MAX, |lsn| lsn - 1);
        let found = transaction
            .query_row(
                "SELECT (SELECT min(lsn) FROM record), lsn, hash FROM record
                 WHERE lsn <= ?1 ORDER BY lsn DESC LIMIT 1",
                params![last],
                |row| {
                    Ok((
                        row.get::<_, i64>(0)?,
                        row.get::<_, i64>(1)?,
                        row.get::<_, Vec<u8>>(2)?,
                    ))
                },
            )
            .optional()
            .map_err(named)?;
        found
            .map(|(first, last, hash)| {
                Ok((
                    lsn_from_sql(first),
                    lsn_from_sql(last),
                    digest("a record", &hash)?,
                ))
            })
            .transpose()
    }

    fn write_audit(&self, path: &PathBuf, first: Lsn, last: Lsn) -> Result<(), AuditError> {
        let directory = self.directory.path().join(AUDIT);
        match std::fs::DirBuilder::new().mode(0o700).create(&directory) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            result => result?,
        }
        let options = File::options()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .clone();
        let mut out = BufWriter::new(options.open(path)?);
        self.export_between(Lsn(first.0 - 1), Some(last), &mut out)?;
        out.flush()?;
        out.get_ref().sync_all()?;
        crate::state_dir::sync_directory(&directory)?;
        crate::state_dir::sync_directory(self.directory.path())?;
        Ok(())
    }

    fn export_between(
        &self,
        from: Lsn,
        up_to: Option<Lsn>,
        out: &mut dyn Write,
    ) -> Result<u64, StorageError> {
        let failed = |source| StorageError::StateDir {
            path: PathBuf::from("the export"),
            action: "write",
            source,
        };
        let (mut last, mut count) = (from, 0);
        loop {
            let page = self.records_after(last, PAGE)?;
            let end = page.last().map_or(last, |record| record.lsn);
            let bodies = self.bodies(last, end)?;
            for (record, body) in page.iter().zip(&bodies) {
                if up_to.is_some_and(|up_to| record.lsn > up_to) {
                    return Ok(count);
                }
                write_line(record, body, out).map_err(failed)?;
                count += 1;
                last = record.lsn;
            }
            if page.len() < PAGE {
                return Ok(count);
            }
        }
    }

    /// Gives the events of records as they are stored.
    fn bodies(&self, after: Lsn, up_to: Lsn) -> Result<Vec<Vec<u8>>, StorageError> {
        self.read(|transaction| {
            let named = |error| self.named(error);
            let mut statement = transaction
                .prepare_cached("SELECT body FROM record WHERE lsn > ?1 AND lsn <= ?2 ORDER BY lsn")
                .map_err(named)?;
            let places = params![lsn_to_sql(after), lsn_to_sql(up_to)];
            let rows = statement
                .query_map(places, |row| row.get::<_, Vec<u8>>(0))
                .map_err(named)?;
            rows.collect::<Result<_, _>>().map_err(named)
        })
    }
}

/// Writes a record with its event as it is stored: its hash is that of these very bytes, so that anybody can compute the chain.
fn write_line(record: &Record, body: &[u8], out: &mut dyn Write) -> io::Result<()> {
    let inside = body
        .strip_prefix(b"{")
        .and_then(|body| body.strip_suffix(b"}"));
    let Some(inside) = inside else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "a record is no object",
        ));
    };
    write!(out, "{{\"lsn\":{},\"at\":{},", record.lsn, record.at.0)?;
    out.write_all(inside)?;
    writeln!(out, ",\"hash\":\"{}\"}}", record.hash)
}

enum AuditError {
    Storage(StorageError),
    Io(io::Error),
}

impl From<StorageError> for AuditError {
    fn from(error: StorageError) -> Self {
        Self::Storage(error)
    }
}

impl From<io::Error> for AuditError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
