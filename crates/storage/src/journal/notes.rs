//! Notes: facts that are no operation's, by topic and subject.
//!
//! A row holds the whole note, so that the newest of each subject is there when its record was cut.

use backout_model::{Lsn, Note, NoteFilter};
use rusqlite::{named_params, params};

use super::project::Projection;
use super::rows::{from_json, lsn_to_sql, to_json};
use crate::{StorageError, Store};

impl Projection<'_, '_> {
    /// Keeps a note with its place.
    pub(super) fn noted(&self, lsn: Lsn, note: &Note) -> Result<(), StorageError> {
        let placed = Note {
            lsn,
            at: self.now,
            ..note.clone()
        };
        self.execute(
            "INSERT OR REPLACE INTO note (topic, subject, lsn, body) VALUES (?1, ?2, ?3, ?4)",
            params![
                placed.topic.as_str(),
                placed.subject,
                lsn_to_sql(lsn),
                to_json(&placed)?
            ],
        )
    }

    /// Forgets the notes whose records were cut off, but for those that tell how each subject stood at the cut: whoever asks for a later place is
    /// answered truly.
    pub(super) fn forget_notes(&self, up_to: Lsn) -> Result<(), StorageError> {
        self.execute(
            "DELETE FROM note WHERE lsn <= ?1 AND lsn < (
                 SELECT max(newer.lsn) FROM note AS newer
                 WHERE newer.topic = note.topic AND newer.subject = note.subject
                 AND newer.lsn <= ?1)",
            [lsn_to_sql(up_to)],
        )
    }
}

impl Store {
    /// Lists notes, newest first.
    pub fn notes(&self, filter: &NoteFilter) -> Result<Vec<Note>, StorageError> {
        self.read(|transaction| {
            let named = |error| self.named(error);
            let mut statement = transaction
                .prepare_cached(
                    "SELECT body FROM note WHERE topic = :topic
                     AND (:subject IS NULL OR subject = :subject)
                     AND lsn > :after AND lsn <= :up_to
                     AND (NOT :is_newest OR lsn = (
                         SELECT max(newer.lsn) FROM note AS newer
                         WHERE newer.topic = note.topic AND newer.subject = note.subject
                         AND newer.lsn <= :up_to))
                     ORDER BY lsn DESC LIMIT :limit",
                )
                .map_err(named)?;
            let values = named_params! {
                ":topic": filter.topic.as_str(),
                ":subject": filter.subject,
                ":after": filter.after.map_or(0, lsn_to_sql),
                ":up_to": filter.up_to.map_or(i64::MAX, lsn_to_sql),
                ":is_newest": filter.is_newest,
                ":limit": filter.limit.and_then(|it| i64::try_from(it).ok()).unwrap_or(-1),
            };
            let rows = statement
                .query_map(values, |row| row.get::<_, String>(0))
                .map_err(named)?;
            rows.map(|row| from_json("a note", &row.map_err(named)?))
                .collect()
        })
    }
}
