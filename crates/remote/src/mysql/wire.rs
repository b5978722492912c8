//! The protocol of `MySQL` and `MariaDB`, as far as it is needed: text queries, one at a time. A client of our own, because it is
//! a few hundred lines and the smallest crate that does the same brings ninety.

use std::fmt;
use std::io::{self, Read, Write};

use super::login::{Login, log_in};

/// The largest packet; what is larger comes in several.
const PACKET_MAX: usize = 0xff_ffff;

/// A client may not send more than this in one query, and an answer of more than this in one row is none.
const MESSAGE_MAX: usize = 1 << 30;

/// More answers follow.
const MORE_RESULTS: u16 = 0x08;

/// A transaction is open.
pub(super) const IN_TRANSACTION: u16 = 0x01;

/// What bytes go through.
pub(super) trait Stream: Read + Write + Send {}

impl<T: Read + Write + Send> Stream for T {}

/// Says why the server could not be asked, or what it said instead.
#[derive(Debug)]
pub(super) enum WireError {
    /// It said no.
    Server {
        /// Its number for that.
        code: u16,
        /// What it said.
        message: String,
    },
    /// The connection broke.
    Io(io::Error),
    /// It cannot be spoken with.
    Protocol(String),
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server { message, .. } => f.write_str(message),
            Self::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                f.write_str("the server closed the connection")
            }
            Self::Io(error) => write!(f, "the connection broke: {error}"),
            Self::Protocol(why) => f.write_str(why),
        }
    }
}

impl From<io::Error> for WireError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// What a query gave.
#[derive(Debug, Default)]
pub(super) struct Given {
    /// The names of the columns; empty if it gives no rows.
    pub(super) columns: Vec<String>,
    /// The first rows, each value as it was sent; none is NULL.
    pub(super) rows: Vec<Vec<Option<Vec<u8>>>>,
    /// How many rows it changed or gave.
    pub(super) count: u64,
}

/// A session with a server.
pub(super) struct Wire {
    stream: Box<dyn Stream>,
    sequence: u8,
    /// What the server says of the session.
    pub(super) status: u16,
    /// The number of the session.
    pub(super) thread: u32,
    /// The version that the server says it is.
    pub(super) version: String,
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Wire({})", self.thread)
    }
}

impl Wire {
    /// Begins a session.
    pub(super) fn open(stream: Box<dyn Stream>, login: &Login<'_>) -> Result<Self, WireError> {
        let mut wire = Self {
            stream,
            sequence: 0,
            status: 0,
            thread: 0,
            version: String::new(),
        };
        log_in(&mut wire, login)?;
        Ok(wire)
    }

    /// Puts encryption under what follows.
    pub(super) fn encrypt(
        &mut self,
        with: impl FnOnce(Box<dyn Stream>) -> io::Result<Box<dyn Stream>>,
    ) -> Result<(), WireError> {
        let plain = std::mem::replace(&mut self.stream, Box::new(io::Cursor::new(Vec::new())));
        self.stream = with(plain)?;
        Ok(())
    }

    /// Reads one message.
    pub(super) fn read(&mut self) -> Result<Vec<u8>, WireError> {
        let mut message = Vec::new();
        loop {
            let mut head = [0; 4];
            self.stream.read_exact(&mut head)?;
            let [a, b, c, sequence] = head;
            let length = usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16;
            self.sequence = sequence.wrapping_add(1);
            if message.len() + length > MESSAGE_MAX {
                return Err(protocol("a message of the server is too long"));
            }
            let begin = message.len();
            message.resize(begin + length, 0);
            let part = message.get_mut(begin..).unwrap_or_default();
            self.stream.read_exact(part)?;
            if length < PACKET_MAX {
                return Ok(message);
            }
        }
    }

    /// Sends a message as packets, with their numbers.
    pub(super) fn send(&mut self, message: &[u8]) -> Result<(), WireError> {
        let mut rest = message;
        loop {
            let (part, after) = rest.split_at(rest.len().min(PACKET_MAX));
            let [a, b, c, ..] = u32::try_from(part.len()).unwrap_or_default().to_le_bytes();
            self.stream.write_all(&[a, b, c, self.sequence])?;
            self.stream.write_all(part)?;
            self.sequence = self.sequence.wrapping_add(1);
            rest = after;
            // One of full length is followed by another, if need be by an empty one.
            if part.len() < PACKET_MAX {
                break;
            }
        }
        self.stream.flush()?;
        Ok(())
    }

    /// Asks, and gives the answers, of each at most `rows_max` rows.
    pub(super) fn query(&mut self, sql: &str, rows_max: usize) -> Result<Vec<Given>, WireError> {
        self.sequence = 0;
        let mut message = vec![3];
        message.extend_from_slice(sql.as_bytes());
        self.send(&message)?;
        let mut all = Vec::new();
        loop {
            all.push(self.answer(rows_max)?);
            if self.status & MORE_RESULTS == 0 {
                return Ok(all);
            }
        }
    }

    fn answer(&mut self, rows_max: usize) -> Result<Given, WireError> {
        let message = self.read()?;
        let mut fields = Fields(&message);
        let mut given = Given::default();
        match message.first() {
            Some(0x00) => {
                fields.skip(1)?;
                given.count = fields.number()?.unwrap_or_default();
                fields.number()?;
                self.status = fields.short()?;
                return Ok(given);
            }
            Some(0xff) => return Err(said(&message)),
            Some(0xfb) => {
                // It wants a file of this machine: it gets none.
                self.send(&[])?;
                self.read()?;
                return Err(protocol("it wants to read a file of this machine"));
            }
            _ => {}
        }
        let columns = fields.number()?.unwrap_or_default();
        for _ in 0..columns {
            let column = self.read()?;
            let mut fields = Fields(&column);
            for _ in 0..4 {
                fields.text()?;
            }
            let name = fields.text()?.unwrap_or_default();
            given
                .columns
                .push(String::from_utf8_lossy(name).into_owned());
        }
        self.read()?;
        loop {
            let row = self.read()?;
            match row.first() {
                Some(0xff) => return Err(said(&row)),
                Some(0xfe) if row.len() < 9 => {
                    let mut fields = Fields(&row);
                    fields.skip(3)?;
                    self.status = fields.short()?;
                    return Ok(given);
                }
                _ => {}
            }
            given.count += 1;
            if given.rows.len() < rows_max {
                let mut fields = Fields(&row);
                let values = (0..columns).map(|_| Ok(fields.text()?.map(<[u8]>::to_vec)));
                given.rows.push(values.collect::<Result<_, WireError>>()?);
            }
        }
    }
}

/// Reads what the server complains of.
pub(super) fn said(message: &[u8]) -> WireError {
    let mut fields = Fields(message);
    let code = fields.skip(1).and_then(|()| fields.short());
    let Ok(code) = code else {
        return protocol("the server says that something is wrong, and not what");
    };
    let text = String::from_utf8_lossy(fields.0);
    // `#` and five letters come first, once the session has begun.
    let message = match text.strip_prefix('#') {
        Some(rest) => rest.get(5..).unwrap_or_default().to_owned(),
        None => text.into_owned(),
    };
    WireError::Server { code, message }
}

/// Says that the server speaks another language.
pub(super) fn protocol(why: &str) -> WireError {
    WireError::Protocol(why.to_owned())
}

/// What is left of a message.
pub(super) struct Fields<'m>(pub(super) &'m [u8]);

impl<'m> Fields<'m> {
    /// Takes a number of bytes.
    pub(super) fn take(&mut self, count: usize) -> Result<&'m [u8], WireError> {
        let cut = self.0.split_at_checked(count);
        let (taken, rest) = cut.ok_or_else(|| protocol("a message of the server is too short"))?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn skip(&mut self, count: usize) -> Result<(), WireError> {
        self.take(count).map(drop)
    }

    /// Takes bytes up to a zero, and the zero; or all that is left.
    pub(super) fn until_zero(&mut self) -> &'m [u8] {
        let end = self.0.iter().position(|byte| *byte == 0);
        let taken = self.0.get(..end.unwrap_or(self.0.len()));
        let rest = end.and_then(|end| self.0.get(end + 1..));
        self.0 = rest.unwrap_or_default();
        taken.unwrap_or_default()
    }

    pub(super) fn short(&mut self) -> Result<u16, WireError> {
        let bytes = self.take(2)?;
        Ok(u16::from_le_bytes(bytes.try_into().unwrap_or_default()))
    }

    pub(super) fn long(&mut self) -> Result<u32, WireError> {
        let bytes = self.take(4)?;
        Ok(u32::from_le_bytes(bytes.try_into().unwrap_or_default()))
    }

    /// Takes a number of any length; none stands for NULL.
    pub(super) fn number(&mut self) -> Result<Option<u64>, WireError> {
        let first = self.take(1)?.first().copied().unwrap_or_default();
        let length = match first {
            0xfb => return Ok(None),
            0xfc => 2,
            0xfd => 3,
            0xfe => 8,
            small => return Ok(Some(u64::from(small))),
        };
        let bytes = self.take(length)?;
        let each = bytes.iter().rev();
        Ok(Some(
            each.fold(0, |number, byte| number << 8 | u64::from(*byte)),
        ))
    }

    /// Takes a text that its length stands before; none stands for NULL.
    pub(super) fn text(&mut self) -> Result<Option<&'m [u8]>, WireError> {
        let Some(length) = self.number()? else {
            return Ok(None);
        };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        self.take(length).map(Some)
    }
}
