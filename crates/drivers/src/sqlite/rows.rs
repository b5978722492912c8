//! Rows as bytes: each value a letter and what it is. The number of columns is not in them.

use backout_changeset::Value;
use backout_changeset::rusqlite::types::ValueRef;

/// Writes a value so that no two different ones are written alike.
pub(super) fn write_value(bytes: &mut Vec<u8>, value: ValueRef<'_>) {
    let mut long = |letter: u8, text: &[u8]| {
        bytes.push(letter);
        bytes.extend((text.len() as u64).to_le_bytes());
        bytes.extend(text);
    };
    match value {
        ValueRef::Text(text) => long(b't', text),
        ValueRef::Blob(blob) => long(b'b', blob),
        ValueRef::Null => bytes.push(b'n'),
        ValueRef::Integer(number) => {
            bytes.push(b'i');
            bytes.extend(number.to_le_bytes());
        }
        ValueRef::Real(number) => {
            bytes.push(b'r');
            bytes.extend(number.to_bits().to_le_bytes());
        }
    }
}

/// Reads values.
#[derive(Debug)]
pub(super) struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    pub(super) const fn new(bytes: &'b [u8]) -> Self {
        Self(bytes)
    }

    pub(super) const fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads the next; none if the bytes are no values.
    pub(super) fn value(&mut self) -> Option<Value> {
        let letter = self.take(1)?.first().copied()?;
        Some(match letter {
            b'n' => Value::Null,
            b'i' => Value::Integer(i64::from_le_bytes(self.eight()?)),
            b'r' => Value::Real(f64::from_bits(u64::from_le_bytes(self.eight()?))),
            b't' => Value::Text(self.long()?),
            b'b' => Value::Blob(self.long()?),
            _ => return None,
        })
    }

    fn long(&mut self) -> Option<Vec<u8>> {
        let length = usize::try_from(u64::from_le_bytes(self.eight()?)).ok()?;
        Some(self.take(length)?.to_vec())
    }

    fn eight(&mut self) -> Option<[u8; 8]> {
        self.take(8)?.try_into().ok()
    }

    fn take(&mut self, length: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }
}
