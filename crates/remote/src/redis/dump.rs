//! Reads what `DUMP` gives, so that what was kept of a key can be told to people without writing anything to a server.
//!
//! Strings, lists, sets, hashes and sorted sets in every encoding of Redis 7 and later. Streams and values of modules are not read.
//! A dump that is not as expected is not read either: nothing is made up.

use serde_json::{Map, Value};

use super::words::name_of;

/// What is behind a value: the version of the format, and a checksum.
const TAIL_BYTES: usize = 10;

/// A value that is larger than this when unpacked is not read.
const UNPACKED_MAX: usize = 64 * 1024 * 1024;

/// Gives the value of a dump as JSON: a text, a list, or an object of fields or of scores. What has no order is in that of its names.
pub(super) fn told(dump: &[u8]) -> Option<Value> {
    let body = dump.get(..dump.len().checked_sub(TAIL_BYTES)?)?;
    let mut from = Bytes(body);
    let value = match from.byte()? {
        0 => text(&from.string()?),
        2 => {
            let count = from.length()?;
            set(from.strings(count)?)
        }
        4 => {
            let count = from.length()?.checked_mul(2)?;
            pairs(&from.strings(count)?, text)
        }
        5 => {
            let mut scores = Map::new();
            for _ in 0..from.length()? {
                let name = name_of(&from.string()?);
                let score = f64::from_le_bytes(from.take(8)?.try_into().ok()?);
                scores.insert(name, score.to_string().into());
            }
            Value::Object(scores)
        }
        11 => set(intset(&from.string()?)?),
        16 => pairs(&listpack(&from.string()?)?, text),
        17 => pairs(&listpack(&from.string()?)?, score),
        18 => {
            let mut items = Vec::new();
            for _ in 0..from.length()? {
                let is_plain = from.length()? == 1;
                let node = from.string()?;
                if is_plain {
                    items.push(node);
                } else {
                    items.extend(listpack(&node)?);
                }
            }
            items.iter().map(|item| text(item)).collect()
        }
        20 => set(listpack(&from.string()?)?),
        _ => return None,
    };
    from.0.is_empty().then_some(value)
}

fn text(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => name_of(bytes).into(),
    }
}

/// A score is told as a number tells itself, whichever way it is kept.
fn score(bytes: &[u8]) -> Value {
    let read = std::str::from_utf8(bytes)
        .ok()
        .and_then(|it| it.parse::<f64>().ok());
    read.map_or_else(|| text(bytes), |score| score.to_string().into())
}

fn set(mut members: Vec<Vec<u8>>) -> Value {
    members.sort();
    members.iter().map(|member| text(member)).collect()
}

fn pairs(flat: &[Vec<u8>], value: fn(&[u8]) -> Value) -> Value {
    let each = flat.chunks(2).filter_map(|pair| match pair {
        [name, it] => Some((name_of(name), value(it))),
        _ => None,
    });
    Value::Object(each.collect())
}

/// What is left to read.
struct Bytes<'b>(&'b [u8]);

impl<'b> Bytes<'b> {
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    /// Reads a length; none if it is one of those that stand for something else.
    fn length(&mut self) -> Option<usize> {
        let first = self.byte()?;
        let low = usize::from(first & 0x3f);
        match (first >> 6, first) {
            (0, _) => Some(low),
            (1, _) => Some(low << 8 | usize::from(self.byte()?)),
            (_, 0x80) => usize::try_from(u32::from_be_bytes(self.take(4)?.try_into().ok()?)).ok(),
            (_, 0x81) => usize::try_from(u64::from_be_bytes(self.take(8)?.try_into().ok()?)).ok(),
            _ => None,
        }
    }

    fn string(&mut self) -> Option<Vec<u8>> {
        let is_special = self.0.first()? >> 6 == 3;
        if !is_special {
            let length = self.length()?;
            return self.take(length).map(<[u8]>::to_vec);
        }
        let number = match self.byte()? & 0x3f {
            0 => i64::from(i8::from_le_bytes(self.take(1)?.try_into().ok()?)),
            1 => i64::from(i16::from_le_bytes(self.take(2)?.try_into().ok()?)),
            2 => i64::from(i32::from_le_bytes(self.take(4)?.try_into().ok()?)),
            3 => {
                let (packed, length) = (self.length()?, self.length()?);
                return unpacked(self.take(packed)?, length);
            }
            _ => return None,
        };
        Some(number.to_string().into_bytes())
    }

    fn strings(&mut self, count: usize) -> Option<Vec<Vec<u8>>> {
        (0..count).map(|_| self.string()).collect()
    }
}

/// Unpacks what LZF packed.
fn unpacked(packed: &[u8], length: usize) -> Option<Vec<u8>> {
    if length > UNPACKED_MAX {
        return None;
    }
    let (mut from, mut out) = (Bytes(packed), Vec::with_capacity(length));
    while !from.0.is_empty() {
        let first = usize::from(from.byte()?);
        if first < 32 {
            out.extend_from_slice(from.take(first + 1)?);
            continue;
        }
        let mut count = first >> 5;
        if count == 7 {
            count += usize::from(from.byte()?);
        }
        let back = (first & 0x1f) << 8 | usize::from(from.byte()?);
        let at = out.len().checked_sub(back + 1)?;
        // What is copied may be what this copy wrote.
        for step in 0..count + 2 {
            let byte = *out.get(at + step)?;
            out.push(byte);
        }
        if out.len() > length {
            return None;
        }
    }
    (out.len() == length).then_some(out)
}

/// Reads the numbers of a set of numbers.
fn intset(bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut from = Bytes(bytes);
    let width = usize::try_from(u32::from_le_bytes(from.take(4)?.try_into().ok()?)).ok()?;
    let count = u32::from_le_bytes(from.take(4)?.try_into().ok()?);
    let mut numbers = Vec::new();
    for _ in 0..count {
        numbers.push(signed(from.take(width)?)?.to_string().into_bytes());
    }
    Some(numbers)
}

/// Reads a number with a sign, the low byte first.
fn signed(bytes: &[u8]) -> Option<i64> {
    let last = bytes.last()?;
    let fill = if last >> 7 == 1 { 0xff } else { 0 };
    let mut all = [fill; 8];
    all.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(i64::from_le_bytes(all))
}

/// Reads the entries of a packed list.
fn listpack(bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut from = Bytes(bytes.get(6..)?);
    let mut entries = Vec::new();
    loop {
        let before = from.0.len();
        let first = from.byte()?;
        let low = |mask: u8| usize::from(first & mask);
        let entry = match first {
            0xff => return from.0.is_empty().then_some(entries),
            _ if first < 0x80 => i64::from(first).to_string().into_bytes(),
            _ if first >> 6 == 0b10 => from.take(low(0x3f))?.to_vec(),
            _ if first >> 5 == 0b110 => {
                let number = (low(0x1f) << 8 | usize::from(from.byte()?)).cast_signed();
                let number = if number >= 1 << 12 {
                    number - (1 << 13)
                } else {
                    number
                };
                number.to_string().into_bytes()
            }
            _ if first >> 4 == 0b1110 => {
                let length = low(0x0f) << 8 | usize::from(from.byte()?);
                from.take(length)?.to_vec()
            }
            0xf0 => {
                let length = u32::from_le_bytes(from.take(4)?.try_into().ok()?);
                from.take(usize::try_from(length).ok()?)?.to_vec()
            }
            0xf1..=0xf4 => {
                let width = match first {
                    0xf1 => 2,
                    0xf2 => 3,
                    0xf3 => 4,
                    _ => 8,
                };
                signed(from.take(width)?)?.to_string().into_bytes()
            }
            _ => return None,
        };
        let size = before - from.0.len();
        // Behind each entry stands how long it is, seven bits a byte.
        let width = match size {
            0..=127 => 1,
            128..=16_382 => 2,
            16_383..=2_097_150 => 3,
            2_097_151..=268_435_454 => 4,
            _ => 5,
        };
        from.take(width)?;
        entries.push(entry);
    }
}
