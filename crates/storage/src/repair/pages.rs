//! Reading a SQLite file without SQLite: every page that could be a leaf of a table is taken for one.
//!
//! - Nothing above the leaves is used, so a lost root, a wrong pointer or a broken header costs only itself.
//! - Nothing here is believed: what is found are candidates, and the caller checks each against its hash or digest.
//! - Any bytes may come in. Work is bounded by the length of the files.
//!
//! The layout is SQLite's documented file format: pages, cells, varints, overflow chains, and frames of the log.

use std::collections::{HashMap, HashSet};

/// The page size of our databases, which is SQLite's default.
pub(super) const PAGE: usize = 4096;

/// What comes before the first frame of a log, and before each page in it.
const WAL_HEADER: usize = 32;
const FRAME_HEADER: usize = 24;

/// A leaf of a table with rowids, and one of an index, which has nothing for us.
const TABLE_LEAF: u8 = 0x0d;
const INDEX_LEAF: u8 = 0x0a;

/// So many columns has our widest table, and a few more.
const COLUMNS_MAX: usize = 32;

/// One value of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cell {
    Null,
    Integer(i64),
    Blob(Vec<u8>),
    Text(Vec<u8>),
}

/// A row that may be one: its rowid and its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RawRow {
    pub(super) rowid: i64,
    pub(super) cells: Vec<Cell>,
}

/// A database file and its log, as bytes.
#[derive(Debug, Default)]
pub(super) struct Pages {
    database: Vec<u8>,
    log: Vec<u8>,
    /// For each page number, where its copies in the log are, oldest first.
    in_log: HashMap<u32, Vec<usize>>,
}

impl Pages {
    /// Takes the files as they are; either may be empty.
    pub(super) fn new(database: Vec<u8>, log: Vec<u8>) -> Self {
        let mut in_log: HashMap<u32, Vec<usize>> = HashMap::new();
        let mut at = WAL_HEADER;
        while at + FRAME_HEADER + PAGE <= log.len() {
            if let Some(number) = big_endian(&log, at, 4) {
                let number = u32::try_from(number).unwrap_or(0);
                in_log.entry(number).or_default().push(at + FRAME_HEADER);
            }
            at += FRAME_HEADER + PAGE;
        }
        Self {
            database,
            log,
            in_log,
        }
    }

    /// Gives every row that a page of either file seems to hold. Copies of a row come more than once.
    pub(super) fn each_row(&self, take: &mut dyn FnMut(RawRow)) {
        let mut places: Vec<PageAt> = (0..self.database.len())
            .step_by(PAGE)
            .map(PageAt::Database)
            .collect();
        let mut copies: Vec<usize> = self.in_log.values().flatten().copied().collect();
        copies.sort_unstable();
        places.extend(copies.into_iter().map(PageAt::Log));
        let mut used = HashSet::new();
        places.retain(|place| !self.listed(*place, &mut used, take));
        // A leaf whose own header or list is hurt still has its rows: a cell is tried at every byte. Pages that only
        // continue the rows of others were met already.
        for place in places.into_iter().filter(|place| !used.contains(place)) {
            let page = self.at(place);
            if page.iter().any(|byte| *byte != 0) {
                for at in header_bytes(place)..page.len() {
                    if looks_like_a_row(page, at) {
                        self.rows_at(place, at, &mut HashSet::new(), take);
                    }
                }
            }
        }
    }

    /// Gives the bytes of a page, fewer if the file ends in it.
    fn at(&self, place: PageAt) -> &[u8] {
        let rest = match place {
            PageAt::Database(at) => self.database.get(at..),
            PageAt::Log(at) => self.log.get(at..),
        };
        let rest = rest.unwrap_or_default();
        rest.get(..PAGE).unwrap_or(rest)
    }

    /// Takes the cells that a page lists, and tells whether all of them are rows, or none can be.
    fn listed(
        &self,
        place: PageAt,
        used: &mut HashSet<PageAt>,
        take: &mut dyn FnMut(RawRow),
    ) -> bool {
        let (page, header) = (self.at(place), header_bytes(place));
        match page.get(header) {
            Some(&TABLE_LEAF) => {}
            kind => return kind == Some(&INDEX_LEAF),
        }
        let count = big_endian(page, header + 3, 2).unwrap_or(0);
        let count = usize::try_from(count).unwrap_or(0).min(PAGE / 2);
        let mut is_sound = page.len() == PAGE;
        for number in 0..count {
            let at = big_endian(page, header + 8 + 2 * number, 2);
            let at = at.and_then(|at| usize::try_from(at).ok());
            is_sound &= at.is_some_and(|at| self.rows_at(place, at, used, take));
        }
        is_sound
    }

    fn rows_at(
        &self,
        place: PageAt,
        at: usize,
        used: &mut HashSet<PageAt>,
        take: &mut dyn FnMut(RawRow),
    ) -> bool {
        let newest = self.cell(place, at, true, used);
        // A cell may go on in other pages, of which the log may hold several versions.
        let nearest = self.cell(place, at, false, used);
        let nearest = nearest.filter(|row| Some(row) != newest.as_ref());
        let is_row = newest.is_some() || nearest.is_some();
        for row in [newest, nearest].into_iter().flatten() {
            take(row);
        }
        is_row
    }

    fn cell(
        &self,
        place: PageAt,
        at: usize,
        newest: bool,
        used: &mut HashSet<PageAt>,
    ) -> Option<RawRow> {
        let page = self.at(place);
        let mut cursor = at;
        let length = usize::try_from(varint(page, &mut cursor)?).ok()?;
        let rowid = varint(page, &mut cursor)?;
        if length > self.database.len() + self.log.len() {
            return None;
        }
        let local = local_bytes(length);
        let mut payload = page.get(cursor..cursor + local)?.to_vec();
        let mut passed = Vec::new();
        if local < length {
            let mut next = u32::try_from(big_endian(page, cursor + local, 4)?).ok()?;
            while payload.len() < length {
                let there = self.find(next, place, newest)?;
                let page = self.at(there);
                passed.push(there);
                next = u32::try_from(big_endian(page, 0, 4)?).ok()?;
                let wanted = (length - payload.len()).min(PAGE - 4);
                payload.extend_from_slice(page.get(4..4 + wanted)?);
            }
        }
        let cells = values(&payload)?;
        used.extend(passed);
        Some(RawRow { rowid, cells })
    }

    /// Finds a page by its number: the newest in the log, or the one nearest to a place in it, or in the database.
    fn find(&self, number: u32, from: PageAt, newest: bool) -> Option<PageAt> {
        let copies = self.in_log.get(&number).map(Vec::as_slice);
        let copies = copies.unwrap_or_default();
        let copy = match (from, newest) {
            (_, true) => copies.last(),
            // The pages of one transaction lie near each other.
            (PageAt::Log(place), false) => copies.iter().min_by_key(|copy| copy.abs_diff(place)),
            (PageAt::Database(_), false) => None,
        };
        if let Some(copy) = copy {
            return Some(PageAt::Log(*copy));
        }
        let begin = usize::try_from(number).ok()?.checked_sub(1)? * PAGE;
        (begin + PAGE <= self.database.len()).then_some(PageAt::Database(begin))
    }
}

/// Where a page lies: the offset of its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum PageAt {
    Database(usize),
    Log(usize),
}

/// The header of the file lies on the first page.
const fn header_bytes(place: PageAt) -> usize {
    match place {
        PageAt::Database(0) => 100,
        PageAt::Database(_) | PageAt::Log(_) => 0,
    }
}

/// Tells quickly whether a cell of one of our tables may begin here.
fn looks_like_a_row(page: &[u8], at: usize) -> bool {
    let mut cursor = at;
    let length = varint(page, &mut cursor);
    let _rowid = varint(page, &mut cursor);
    let header = page.get(cursor).copied().unwrap_or(0);
    length.is_some_and(|length| length > 32) && (6..=60).contains(&header)
}

/// Computes how much of a payload a table leaf holds itself.
const fn local_bytes(length: usize) -> usize {
    let max = PAGE - 35;
    let min = (PAGE - 12) * 32 / 255 - 23;
    if length <= max {
        return length;
    }
    let local = min + (length - min) % (PAGE - 4);
    if local <= max { local } else { min }
}

/// Reads the values of a row.
fn values(payload: &[u8]) -> Option<Vec<Cell>> {
    let mut cursor = 0;
    let header = usize::try_from(varint(payload, &mut cursor)?).ok()?;
    let mut body = header;
    let mut cells = Vec::new();
    while cursor < header {
        if cells.len() >= COLUMNS_MAX {
            return None;
        }
        let kind = varint(payload, &mut cursor)?;
        let (cell, length) = value(payload, body, kind)?;
        cells.push(cell);
        body += length;
    }
    (cursor == header && body == payload.len() && !cells.is_empty()).then_some(cells)
}

fn value(payload: &[u8], at: usize, kind: i64) -> Option<(Cell, usize)> {
    let integer = |bytes: usize| {
        let unsigned = big_endian(payload, at, bytes)?;
        let shift = 64 - 8 * u32::try_from(bytes).ok()?;
        Some((
            Cell::Integer((unsigned << shift).cast_signed() >> shift),
            bytes,
        ))
    };
    match kind {
        0 => Some((Cell::Null, 0)),
        1..=4 => integer(usize::try_from(kind).ok()?),
        5 => integer(6),
        6 => integer(8),
        8 => Some((Cell::Integer(0), 0)),
        9 => Some((Cell::Integer(1), 0)),
        12.. => {
            let length = usize::try_from((kind - 12) / 2).ok()?;
            let bytes = payload.get(at..at.checked_add(length)?)?.to_vec();
            let cell = if kind % 2 == 0 {
                Cell::Blob
            } else {
                Cell::Text
            };
            Some((cell(bytes), length))
        }
        _ => None,
    }
}

/// Reads a number of up to eight bytes, the first the highest.
fn big_endian(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(length)?)?;
    Some(
        bytes
            .iter()
            .fold(0, |number, byte| number << 8 | u64::from(*byte)),
    )
}

/// Reads one of SQLite's numbers of one to nine bytes and moves on behind it.
fn varint(bytes: &[u8], cursor: &mut usize) -> Option<i64> {
    let mut number: u64 = 0;
    for index in 0..9 {
        let byte = *bytes.get(*cursor)?;
        *cursor += 1;
        if index == 8 {
            return Some((number << 8 | u64::from(byte)).cast_signed());
        }
        number = number << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            break;
        }
    }
    Some(number.cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_without_the_pages_above_them() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.sqlite");
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection
            .execute_batch("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, b BLOB, s TEXT)")
            .unwrap();
        for number in 0..300_i64 {
            let blob =
                vec![u8::try_from(number % 251).unwrap(); usize::try_from(number * 40).unwrap()];
            connection
                .execute(
                    "INSERT INTO t VALUES (?1, ?2, ?3, 'word')",
                    rusqlite::params![number, number * number - 7, blob],
                )
                .unwrap();
        }
        drop(connection);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[..PAGE].fill(0);
        // Every page that is not a leaf or overflow is destroyed.
        for page in bytes.chunks_mut(PAGE).filter(|page| page[0] == 5) {
            page.fill(0xff);
        }
        let mut found = std::collections::BTreeMap::new();
        Pages::new(bytes, Vec::new()).each_row(&mut |row| {
            if row.cells.len() == 4 {
                found.insert(row.rowid, row.cells);
            }
        });
        assert_eq!(found.len(), 300);
        for (number, cells) in found {
            assert_eq!(cells[1], Cell::Integer(number * number - 7));
            assert!(
                matches!(&cells[2], Cell::Blob(blob) if blob.len() == usize::try_from(number * 40).unwrap())
            );
        }
    }
}
