//! `SQLite`'s session extension, called as C has it. All of the crate's unsafe code is here.
//!
//! - A [`Session`] cannot outlive its connection, by its lifetime; nor can the filter that it calls.
//! - Every callback gets a pointer to a structure on the stack of the function that calls `SQLite`, which does not return before
//!   the last callback did.

#![expect(
    unsafe_code,
    reason = "the session extension has no safe wrapper without libclang"
)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io::{self, Read, Write};
use std::marker::PhantomData;
use std::{ptr, slice};

use rusqlite::{Connection, ffi};

use crate::{Answer, Change, ChangesetError, Conflict, Op, Value};

type Filter = Box<dyn Fn(&str) -> bool>;

/// Records what a connection does to the rows of its main database, from its making on.
pub struct Session<'c> {
    raw: *mut ffi::sqlite3_session,
    // Called by the session as long as that lives.
    filter: Box<Filter>,
    connection: PhantomData<&'c Connection>,
}

impl std::fmt::Debug for Session<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Session")
    }
}

impl<'c> Session<'c> {
    /// Begins to record the tables that `is_meant` names.
    pub fn new(
        connection: &'c Connection,
        is_meant: impl Fn(&str) -> bool + 'static,
    ) -> Result<Self, ChangesetError> {
        let filter: Box<Filter> = Box::new(Box::new(is_meant));
        let mut raw = ptr::null_mut();
        // SAFETY: the connection is open, and stays so as long as the session by the lifetime. The filter is in a box that the
        // session owns and that does not move.
        unsafe {
            let database = connection.handle();
            check(
                database,
                ffi::sqlite3session_create(database, c"main".as_ptr(), &raw mut raw),
            )?;
            let session = Self {
                raw,
                filter,
                connection: PhantomData,
            };
            let mut by_rowid: c_int = 1;
            check(
                database,
                ffi::sqlite3session_object_config(
                    raw,
                    ffi::SQLITE_SESSION_OBJCONFIG_ROWID,
                    (&raw mut by_rowid).cast(),
                ),
            )?;
            let context: *const Filter = &raw const *session.filter;
            ffi::sqlite3session_table_filter(
                raw,
                Some(table_is_meant),
                context.cast_mut().cast::<c_void>(),
            );
            check(database, ffi::sqlite3session_attach(raw, ptr::null()))?;
            Ok(session)
        }
    }

    /// Tells how many bytes of memory it takes.
    pub fn memory_bytes(&self) -> u64 {
        // SAFETY: the session lives.
        let used = unsafe { ffi::sqlite3session_memory_used(self.raw) };
        u64::try_from(used).unwrap_or(0)
    }

    /// Records how a table differs from that of another attached database: what leads from there to here.
    pub fn diff(&self, from: &str, table: &str) -> Result<(), ChangesetError> {
        let (from, table) = (c_string(from)?, c_string(table)?);
        // SAFETY: the session and the names live. The message is SQLite's and freed once.
        unsafe {
            check(
                ptr::null_mut(),
                ffi::sqlite3session_attach(self.raw, table.as_ptr()),
            )?;
            let mut message: *mut c_char = ptr::null_mut();
            let code =
                ffi::sqlite3session_diff(self.raw, from.as_ptr(), table.as_ptr(), &raw mut message);
            let said = (!message.is_null())
                .then(|| CStr::from_ptr(message).to_string_lossy().into_owned());
            ffi::sqlite3_free(message.cast());
            if code == ffi::SQLITE_OK {
                return Ok(());
            }
            Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), said).into())
        }
    }

    /// Writes the changeset of all that was recorded.
    pub fn write_to(&self, to: &mut dyn Write) -> Result<(), ChangesetError> {
        let mut output = Output { to, failed: None };
        // SAFETY: the session lives, and `output` as long as the call.
        let code = unsafe {
            let context: *mut Output<'_> = &raw mut output;
            ffi::sqlite3session_changeset_strm(self.raw, Some(write_some), context.cast())
        };
        output.failed.map_or(Ok(()), Err)?;
        plain(code)
    }

    /// Gives the changeset of all that was recorded.
    pub fn changeset(&self) -> Result<Vec<u8>, ChangesetError> {
        let mut bytes = Vec::new();
        self.write_to(&mut bytes)?;
        Ok(bytes)
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        // SAFETY: it was created once and is deleted once, before its connection is closed.
        unsafe { ffi::sqlite3session_delete(self.raw) }
    }
}

/// Tells how many bytes of memory `SQLite` takes in this process, all connections together.
pub fn memory_bytes() -> u64 {
    // SAFETY: it can be asked at any time.
    let used = unsafe { ffi::sqlite3_memory_used() };
    u64::try_from(used).unwrap_or(0)
}

/// Turns a changeset round.
pub fn invert(changeset: &[u8]) -> Result<Vec<u8>, ChangesetError> {
    let mut bytes = Vec::new();
    let (mut input, mut output) = (
        Input {
            from: &mut &*changeset,
            failed: None,
        },
        Output {
            to: &mut bytes,
            failed: None,
        },
    );
    // SAFETY: both contexts live as long as the call.
    let code = unsafe {
        let from: *mut Input<'_> = &raw mut input;
        let to: *mut Output<'_> = &raw mut output;
        ffi::sqlite3changeset_invert_strm(Some(read_some), from.cast(), Some(write_some), to.cast())
    };
    plain(code)?;
    Ok(bytes)
}

/// Reads a changeset, change by change; with `inverted`, as the one that takes it back.
pub fn each(
    from: &mut dyn Read,
    inverted: bool,
    mut with: impl FnMut(Change) -> Result<(), ChangesetError>,
) -> Result<(), ChangesetError> {
    let mut input = Input { from, failed: None };
    let flags = if inverted {
        ffi::SQLITE_CHANGESETSTART_INVERT
    } else {
        0
    };
    let mut iterator = ptr::null_mut();
    let mut result = Ok(());
    // SAFETY: the input lives as long as the iterator, which is finished below whatever happens. A row is only read where the
    // iterator stands on one.
    let code = unsafe {
        let context: *mut Input<'_> = &raw mut input;
        let code = ffi::sqlite3changeset_start_v2_strm(
            &raw mut iterator,
            Some(read_some),
            context.cast(),
            flags,
        );
        if code == ffi::SQLITE_OK {
            while result.is_ok() && ffi::sqlite3changeset_next(iterator) == ffi::SQLITE_ROW {
                result = change_at(iterator).and_then(&mut with);
            }
            let ended = ffi::sqlite3changeset_finalize(iterator);
            if result.is_ok() {
                ended
            } else {
                ffi::SQLITE_OK
            }
        } else {
            code
        }
    };
    input.failed.map_or(Ok(()), Err)?;
    result?;
    plain(code)
}

/// How a changeset is applied.
pub struct Apply<'a> {
    /// Whether it is taken back.
    pub inverted: bool,
    /// Tells whether a change is wanted; if there is nobody to ask, all are.
    pub wants: Option<&'a mut dyn FnMut(&Change) -> bool>,
    /// Is asked about a conflict; with the change, unless it is about references.
    pub conflict: &'a mut dyn FnMut(Conflict, Option<&Change>) -> Answer,
}

impl std::fmt::Debug for Apply<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Apply(inverted: {})", self.inverted)
    }
}

/// Applies a changeset to the main database, in the transaction that is open. What references demand is looked at when all is
/// applied, and no reference acts: what they did is in the changeset. Triggers act, unless the connection has them off.
pub fn apply(
    connection: &Connection,
    from: &mut dyn Read,
    how: Apply<'_>,
) -> Result<(), ChangesetError> {
    let mut input = Input { from, failed: None };
    let mut flags = ffi::SQLITE_CHANGESETAPPLY_FKNOACTION;
    if how.inverted {
        flags |= ffi::SQLITE_CHANGESETAPPLY_INVERT;
    }
    let isfiltered = how.wants.is_some();
    let mut asked = Asked {
        how,
        failed: None,
        is_stopped: false,
    };
    // SAFETY: the connection is open; the input and what is asked live as long as the call.
    let code = unsafe {
        let context: *mut Input<'_> = &raw mut input;
        let ask: *mut Asked<'_> = &raw mut asked;
        ffi::sqlite3changeset_apply_v3_strm(
            connection.handle(),
            Some(read_some),
            context.cast(),
            if isfiltered { Some(is_wanted) } else { None },
            Some(on_conflict),
            ask.cast(),
            ptr::null_mut(),
            ptr::null_mut(),
            flags,
        )
    };
    input.failed.map_or(Ok(()), Err)?;
    asked.failed.map_or(Ok(()), Err)?;
    if asked.is_stopped {
        return Err(ChangesetError::Stopped);
    }
    // SAFETY: the connection is open.
    unsafe { check(connection.handle(), code) }
}

/// Where bytes come from.
struct Input<'a> {
    from: &'a mut dyn Read,
    failed: Option<ChangesetError>,
}

/// Where bytes go.
struct Output<'a> {
    to: &'a mut dyn Write,
    failed: Option<ChangesetError>,
}

struct Asked<'a> {
    how: Apply<'a>,
    failed: Option<ChangesetError>,
    is_stopped: bool,
}

unsafe extern "C" fn read_some(context: *mut c_void, data: *mut c_void, size: *mut c_int) -> c_int {
    // SAFETY: the context is the `Input` of the call that is under way; SQLite gives a buffer of `*size` bytes.
    let (input, buffer) = unsafe {
        let length = usize::try_from(*size).unwrap_or(0);
        ptr::write_bytes(data.cast::<u8>(), 0, length);
        (
            &mut *context.cast::<Input<'_>>(),
            slice::from_raw_parts_mut(data.cast::<u8>(), length),
        )
    };
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match input.from.read(rest) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                input.failed = Some(error.into());
                return ffi::SQLITE_IOERR;
            }
        }
    }
    // SAFETY: as above. It is no more than was asked for.
    unsafe { *size = c_int::try_from(filled).unwrap_or(0) };
    ffi::SQLITE_OK
}

unsafe extern "C" fn write_some(context: *mut c_void, data: *const c_void, size: c_int) -> c_int {
    // SAFETY: the context is the `Output` of the call that is under way; SQLite gives `size` bytes.
    let (output, bytes) = unsafe {
        let length = usize::try_from(size).unwrap_or(0);
        (
            &mut *context.cast::<Output<'_>>(),
            slice::from_raw_parts(data.cast::<u8>(), length),
        )
    };
    match output.to.write_all(bytes) {
        Ok(()) => ffi::SQLITE_OK,
        Err(error) => {
            output.failed = Some(error.into());
            ffi::SQLITE_IOERR
        }
    }
}

unsafe extern "C" fn table_is_meant(context: *mut c_void, table: *const c_char) -> c_int {
    // SAFETY: the context is the filter that the session owns; the name is SQLite's and ends.
    let (filter, table) = unsafe { (&*context.cast::<Filter>(), CStr::from_ptr(table)) };
    table.to_str().is_ok_and(filter).into()
}

unsafe extern "C" fn is_wanted(
    context: *mut c_void,
    iterator: *mut ffi::sqlite3_changeset_iter,
) -> c_int {
    // SAFETY: the context is what `apply` asks, and the iterator stands on a row.
    let (asked, change) = unsafe { (&mut *context.cast::<Asked<'_>>(), change_at(iterator)) };
    match change {
        Ok(change) => asked
            .how
            .wants
            .as_mut()
            .is_none_or(|wants| wants(&change))
            .into(),
        Err(error) => {
            asked.failed = Some(error);
            0
        }
    }
}

unsafe extern "C" fn on_conflict(
    context: *mut c_void,
    kind: c_int,
    iterator: *mut ffi::sqlite3_changeset_iter,
) -> c_int {
    // SAFETY: the context is what `apply` asks.
    let asked = unsafe { &mut *context.cast::<Asked<'_>>() };
    let answer = if kind == ffi::SQLITE_CHANGESET_FOREIGN_KEY {
        let mut count = 0;
        // SAFETY: of this kind of conflict the iterator knows the number.
        let code = unsafe { ffi::sqlite3changeset_fk_conflicts(iterator, &raw mut count) };
        let count = if code == ffi::SQLITE_OK { count } else { 1 };
        let count = u32::try_from(count).unwrap_or(1);
        (asked.how.conflict)(Conflict::References(count), None)
    } else {
        let conflict = match kind {
            ffi::SQLITE_CHANGESET_DATA => Conflict::Differs,
            ffi::SQLITE_CHANGESET_NOTFOUND => Conflict::Missing,
            ffi::SQLITE_CHANGESET_CONFLICT => Conflict::Taken,
            _ => Conflict::Constraint,
        };
        // SAFETY: of these kinds the iterator stands on a row.
        match unsafe { change_at(iterator) } {
            Ok(change) => (asked.how.conflict)(conflict, Some(&change)),
            Err(error) => {
                asked.failed = Some(error);
                Answer::Stop
            }
        }
    };
    match answer {
        Answer::Skip => ffi::SQLITE_CHANGESET_OMIT,
        Answer::Replace => ffi::SQLITE_CHANGESET_REPLACE,
        Answer::Stop => {
            asked.is_stopped = true;
            ffi::SQLITE_CHANGESET_ABORT
        }
    }
}

/// Reads the change that an iterator stands on.
///
/// # Safety
/// The iterator stands on one.
unsafe fn change_at(iterator: *mut ffi::sqlite3_changeset_iter) -> Result<Change, ChangesetError> {
    let (mut table, mut columns, mut op, mut indirect) = (ptr::null(), 0, 0, 0);
    let mut key: *mut u8 = ptr::null_mut();
    // SAFETY: the iterator stands on a row; the name and the flags are its own until it moves on, and are copied.
    unsafe {
        plain(ffi::sqlite3changeset_op(
            iterator,
            &raw mut table,
            &raw mut columns,
            &raw mut op,
            &raw mut indirect,
        ))?;
        plain(ffi::sqlite3changeset_pk(
            iterator,
            &raw mut key,
            ptr::null_mut(),
        ))?;
        let width = usize::try_from(columns).unwrap_or(0);
        let key = slice::from_raw_parts(key, width);
        let op = match op {
            ffi::SQLITE_INSERT => Op::Insert,
            ffi::SQLITE_DELETE => Op::Delete,
            _ => Op::Update,
        };
        let mut change = Change {
            table: CStr::from_ptr(table).to_string_lossy().into_owned(),
            op,
            key: key.iter().map(|flag| *flag != 0).collect(),
            old: vec![None; width],
            new: vec![None; width],
        };
        for (at, (old, new)) in (0..).zip(std::iter::zip(&mut change.old, &mut change.new)) {
            let mut value = ptr::null_mut();
            if op != Op::Insert {
                plain(ffi::sqlite3changeset_old(iterator, at, &raw mut value))?;
                *old = value_of(value);
            }
            if op != Op::Delete {
                plain(ffi::sqlite3changeset_new(iterator, at, &raw mut value))?;
                *new = value_of(value);
            }
        }
        Ok(change)
    }
}

/// Copies a value; none if there is none.
///
/// # Safety
/// The pointer is null or a value of SQLite's that nobody else uses meanwhile.
unsafe fn value_of(value: *mut ffi::sqlite3_value) -> Option<Value> {
    if value.is_null() {
        return None;
    }
    // SAFETY: by the caller's word. The bytes are valid until the value changes, and are copied before.
    unsafe {
        let bytes = |start: *const u8| {
            let length = usize::try_from(ffi::sqlite3_value_bytes(value)).unwrap_or(0);
            if start.is_null() || length == 0 {
                Vec::new()
            } else {
                slice::from_raw_parts(start, length).to_vec()
            }
        };
        Some(match ffi::sqlite3_value_type(value) {
            ffi::SQLITE_INTEGER => Value::Integer(ffi::sqlite3_value_int64(value)),
            ffi::SQLITE_FLOAT => Value::Real(ffi::sqlite3_value_double(value)),
            ffi::SQLITE_TEXT => Value::Text(bytes(ffi::sqlite3_value_text(value))),
            ffi::SQLITE_BLOB => Value::Blob(bytes(ffi::sqlite3_value_blob(value).cast())),
            _ => Value::Null,
        })
    }
}

fn c_string(text: &str) -> Result<CString, ChangesetError> {
    CString::new(text).map_err(|error| rusqlite::Error::NulError(error).into())
}

fn plain(code: c_int) -> Result<(), ChangesetError> {
    if code == ffi::SQLITE_OK {
        return Ok(());
    }
    Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None).into())
}

/// Turns a code into an error with what the connection says about it.
///
/// # Safety
/// The connection is null or open.
unsafe fn check(database: *mut ffi::sqlite3, code: c_int) -> Result<(), ChangesetError> {
    if code == ffi::SQLITE_OK || database.is_null() {
        return plain(code);
    }
    // SAFETY: by the caller's word; the message is copied.
    let said = unsafe { CStr::from_ptr(ffi::sqlite3_errmsg(database)) };
    let said = Some(said.to_string_lossy().into_owned());
    Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), said).into())
}
