//! What a damaged journal still holds: rows that look like ours, sorted by what they could be.

use std::collections::{BTreeMap, HashMap};

use backout_model::{Completion, Digest, Event, Lsn, OperationId, Status, Timestamp};

use super::pages::{Cell, Pages, RawRow};
use crate::journal::id_from_sql;

/// A row that may be a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) at: Timestamp,
    pub(super) body: Vec<u8>,
    pub(super) hash: Digest,
}

impl Candidate {
    /// Reads its event.
    pub(super) fn event(&self) -> Option<Event> {
        serde_json::from_slice(&self.body).ok()
    }
}

/// What a row of the table of operations said. Nothing vouches for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hint {
    pub(super) lsn: Lsn,
    pub(super) status: Status,
    pub(super) undone_by: Option<OperationId>,
    pub(super) redone_by: Option<OperationId>,
    pub(super) completion: Option<Completion>,
}

/// A row that may be a content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ContentRow {
    pub(super) digest: Digest,
    pub(super) size: i64,
    pub(super) form: i64,
    pub(super) base: Option<Digest>,
    pub(super) bytes: Vec<u8>,
}

/// Records and hints; contents are read in a second pass, one at a time.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) records: BTreeMap<Lsn, Vec<Candidate>>,
    pub(super) hints: HashMap<OperationId, Hint>,
}

impl Found {
    /// Looks through both files.
    pub(super) fn in_pages(pages: &Pages) -> Self {
        let mut found = Self::default();
        pages.each_row(&mut |row| {
            if let Some((lsn, candidate)) = record(&row) {
                let known = found.records.entry(lsn).or_default();
                if !known.contains(&candidate) {
                    known.push(candidate);
                }
            } else if let Some((id, hint)) = hint(&row) {
                // The log comes last, and in it what is newer.
                found.hints.insert(id, hint);
            }
        });
        found
    }
}

fn record(row: &RawRow) -> Option<(Lsn, Candidate)> {
    let [
        Cell::Null,
        Cell::Integer(at),
        Cell::Text(_),
        Cell::Integer(_) | Cell::Null,
        Cell::Blob(body),
        Cell::Blob(hash),
    ] = row.cells.as_slice()
    else {
        return None;
    };
    let lsn = u64::try_from(row.rowid).ok().filter(|lsn| *lsn > 0)?;
    let candidate = Candidate {
        at: Timestamp(*at),
        body: body.clone(),
        hash: Digest::from_slice(hash).ok()?,
    };
    Some((Lsn(lsn), candidate))
}

/// Reads a row of `content`, if it is one.
pub(super) fn content(row: RawRow) -> Option<ContentRow> {
    let Ok(
        [
            Cell::Blob(digest),
            Cell::Integer(size),
            Cell::Integer(form),
            base @ (Cell::Null | Cell::Blob(_)),
            Cell::Blob(bytes),
        ],
    ) = <[Cell; 5]>::try_from(row.cells)
    else {
        return None;
    };
    let base = match base {
        Cell::Blob(base) => Some(Digest::from_slice(&base).ok()?),
        Cell::Null | Cell::Integer(_) | Cell::Text(_) => None,
    };
    Some(ContentRow {
        digest: Digest::from_slice(&digest).ok()?,
        size,
        form,
        base,
        bytes,
    })
}

/// Reads a row of the table of operations, by the places of its columns in every format so far.
fn hint(row: &RawRow) -> Option<(OperationId, Hint)> {
    const STATUS: usize = 5;
    const UNDONE_BY: usize = 13;
    const REDONE_BY: usize = 14;
    const COMPLETION: usize = 17;
    let cell = |index: usize| row.cells.get(index);
    let (
        Cell::Null,
        Cell::Integer(lsn),
        Cell::Integer(_),
        Cell::Text(_),
        Cell::Text(_),
        Cell::Text(status),
    ) = (
        cell(0)?,
        cell(1)?,
        cell(2)?,
        cell(3)?,
        cell(4)?,
        cell(STATUS)?,
    )
    else {
        return None;
    };
    let (undone_by, redone_by) = (cell(UNDONE_BY)?, cell(REDONE_BY)?);
    let completion = cell(COMPLETION)?;
    let id = |cell: &Cell| match cell {
        Cell::Integer(id) => Some(id_from_sql(*id)),
        Cell::Null | Cell::Blob(_) | Cell::Text(_) => None,
    };
    let status = std::str::from_utf8(status).ok()?;
    let hint = Hint {
        lsn: Lsn(u64::try_from(*lsn).ok()?),
        status: Status::ALL
            .into_iter()
            .find(|known| known.as_str() == status)?,
        undone_by: id(undone_by),
        redone_by: id(redone_by),
        completion: match completion {
            Cell::Blob(bytes) => serde_json::from_slice(bytes).ok().map(Completion),
            Cell::Null | Cell::Integer(_) | Cell::Text(_) => None,
        },
    };
    Some((id_from_sql(row.rowid), hint))
}
