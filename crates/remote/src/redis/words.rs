//! Commands as people write them, and keys as names of targets.

use std::fmt::Write as _;

use super::error::RedisFault;

/// One command: its name and its arguments.
pub type Line = Vec<Vec<u8>>;

/// Reads commands from a text, one per line, in the quotes of `redis-cli`. Empty lines and those that begin with `#` say nothing.
pub fn commands_of(text: &[u8]) -> Result<Vec<Line>, RedisFault> {
    let mut lines = Vec::new();
    for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        lines.push(words_of(line).ok_or(RedisFault::Quotes { line: index + 1 })?);
    }
    Ok(lines)
}

/// Splits a line into words; none if its quotes do not match.
fn words_of(line: &[u8]) -> Option<Line> {
    let mut bytes = line.iter().copied().peekable();
    let mut words = Vec::new();
    loop {
        while bytes.next_if(u8::is_ascii_whitespace).is_some() {}
        let mut word = Vec::new();
        match bytes.peek() {
            None => return Some(words),
            Some(b'"') => {
                bytes.next();
                quoted(&mut bytes, &mut word)?;
            }
            Some(b'\'') => {
                bytes.next();
                plainly_quoted(&mut bytes, &mut word)?;
            }
            Some(_) => {
                while let Some(byte) = bytes.next_if(|byte| !byte.is_ascii_whitespace()) {
                    word.push(byte);
                }
            }
        }
        // What follows a closing quote has to be a blank.
        if bytes.peek().is_some_and(|byte| !byte.is_ascii_whitespace()) {
            return None;
        }
        words.push(word);
    }
}

fn quoted(bytes: &mut impl Iterator<Item = u8>, word: &mut Vec<u8>) -> Option<()> {
    loop {
        match bytes.next()? {
            b'"' => return Some(()),
            b'\\' => word.push(match bytes.next()? {
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'b' => 8,
                b'a' => 7,
                b'x' => hex(bytes.next()?, bytes.next()?)?,
                other => other,
            }),
            byte => word.push(byte),
        }
    }
}

fn plainly_quoted(bytes: &mut impl Iterator<Item = u8>, word: &mut Vec<u8>) -> Option<()> {
    let mut is_escaped = false;
    loop {
        match (bytes.next()?, is_escaped) {
            (b'\'', false) => return Some(()),
            (b'\\', false) => is_escaped = true,
            (b'\'', true) => {
                word.push(b'\'');
                is_escaped = false;
            }
            (byte, true) => {
                word.extend([b'\\', byte]);
                is_escaped = false;
            }
            (byte, false) => word.push(byte),
        }
    }
}

fn hex(high: u8, low: u8) -> Option<u8> {
    let digits = [high, low];
    u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()
}

/// The name of the key that is no bytes at all.
const EMPTY: &str = "%";

/// Writes any bytes as text: as they are, where they are text, and else in percent signs.
pub fn name_of(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return EMPTY.to_owned();
    }
    let mut name = String::new();
    let escape = |name: &mut String, bytes: &[u8]| {
        for byte in bytes {
            // Writing to a string cannot fail.
            let _written = write!(name, "%{byte:02X}");
        }
    };
    for chunk in bytes.utf8_chunks() {
        for each in chunk.valid().chars() {
            if each.is_control() || each == '%' {
                escape(&mut name, each.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                name.push(each);
            }
        }
        escape(&mut name, chunk.invalid());
    }
    name
}

/// Names a key for a target, which writes what nobody can type in percent signs itself: text is as it is. Only bytes that are no text
/// are written so here, and a percent sign that would be taken for one of those.
pub(super) fn plain_name_of(bytes: &[u8]) -> String {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return name_of(bytes);
    };
    if text.is_empty() || text.contains('\0') {
        return name_of(bytes);
    }
    let is_byte = |at: usize| {
        let digits = text.as_bytes().get(at + 1..at + 3);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    let each = text.char_indices().map(|(at, each)| match each {
        '%' if is_byte(at) || text == EMPTY => "%25".to_owned(),
        each => each.to_string(),
    });
    each.collect()
}

/// How the targets of an operation are named. Older ones were written in percent signs twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Naming {
    /// All that is odd is written in percent signs, before the target does it once more.
    #[default]
    Escaped,
    /// Text is as it is.
    Plain,
}

/// Reads bytes that were written so; none if they were not.
pub(super) fn bytes_of(name: &str) -> Option<Vec<u8>> {
    if name == EMPTY {
        return Some(Vec::new());
    }
    let (mut bytes, mut rest) = (Vec::new(), name.bytes());
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => hex(rest.next()?, rest.next()?)?,
            byte => byte,
        });
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(line: &str) -> Option<Vec<String>> {
        let words = words_of(line.as_bytes())?.into_iter();
        Some(words.map(|word| name_of(&word)).collect())
    }

    #[test]
    fn words_are_read_as_redis_cli_reads_them() {
        let are = |line, expected: &[&str]| {
            let expected: Vec<_> = expected.iter().map(|it| (*it).to_owned()).collect();
            assert_eq!(words(line), Some(expected), "{line}");
        };
        are("SET a b", &["SET", "a", "b"]);
        are(r#"SET "a b" 'c d'"#, &["SET", "a b", "c d"]);
        are(r#"SET a "\x00\xff\n""#, &["SET", "a", "%00%FF%0A"]);
        are(r#"SET a """#, &["SET", "a", "%"]);
        are(r"SET a 'it\'s \n'", &["SET", "a", r"it's \n"]);
        are(r"SET a b\n", &["SET", "a", r"b\n"]);
        for line in [r#"SET "a"#, "SET 'a", r#"SET "a"b"#, r#"SET "\xzz""#] {
            assert_eq!(words(line), None, "{line}");
        }
    }

    #[test]
    fn a_text_is_a_command_a_line() {
        let lines = commands_of(b"# first\nSET a 1\r\n\n  INCR a\n").unwrap();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[1], vec![b"INCR".to_vec(), b"a".to_vec()]);
        let error = commands_of(b"GET a\nGET \"a\n").unwrap_err();
        assert_eq!(error.to_string(), "the quotes of line 2 do not match");
    }

    proptest! {
        #[test]
        fn any_key_has_a_name_of_its_own(bytes in prop::collection::vec(any::<u8>(), 0..12)) {
            prop_assert_eq!(bytes_of(&name_of(&bytes)), Some(bytes));
        }

        #[test]
        fn two_keys_have_two_plain_names(one in "[a%0F\n]{0,5}", other in "[a%0F\n]{0,5}") {
            let same = one == other;
            prop_assert_eq!(plain_name_of(one.as_bytes()) == plain_name_of(other.as_bytes()), same);
            let bytes = [one.as_bytes(), b"\xff"].concat();
            prop_assert_ne!(plain_name_of(&bytes), plain_name_of(other.as_bytes()));
        }

        #[test]
        fn any_text_is_read_back(text in "[a%/\u{0}\u{7f}é \"]{0,6}") {
            prop_assert_eq!(bytes_of(&name_of(text.as_bytes())), Some(text.into_bytes()));
        }
    }
}
