//! Keys, as a terminal sends them.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    /// A letter, or a control character.
    Letter(char),
    Enter,
    Escape,
    Backspace,
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
}

/// What terminals send for keys that are no letters.
const SEQUENCES: [(&[u8], Key); 14] = [
    (b"\x1b[A", Key::Up),
    (b"\x1b[B", Key::Down),
    (b"\x1bOA", Key::Up),
    (b"\x1bOB", Key::Down),
    (b"\x1b[5~", Key::PageUp),
    (b"\x1b[6~", Key::PageDown),
    (b"\x1b[H", Key::Home),
    (b"\x1b[F", Key::End),
    (b"\x1bOH", Key::Home),
    (b"\x1bOF", Key::End),
    (b"\x1b[1~", Key::Home),
    (b"\x1b[4~", Key::End),
    (b"\x1b[7~", Key::Home),
    (b"\x1b[8~", Key::End),
];

/// Takes the first key from what was read; none if there is nothing. What is no key is passed over.
pub(super) fn next(bytes: &mut Vec<u8>) -> Option<Key> {
    loop {
        let first = *bytes.first()?;
        if let Some((sequence, key)) = SEQUENCES.iter().find(|(it, _)| bytes.starts_with(it)) {
            bytes.drain(..sequence.len());
            return Some(*key);
        }
        let (count, key) = match first {
            b'\r' | b'\n' => (1, Some(Key::Enter)),
            0x7f | 0x08 => (1, Some(Key::Backspace)),
            0x1b => match unknown(bytes) {
                0 => (1, Some(Key::Escape)),
                count => (count, None),
            },
            _ => letter(bytes),
        };
        bytes.drain(..count.clamp(1, bytes.len()));
        if key.is_some() {
            return key;
        }
    }
}

/// Measures a sequence that is none of those that are known; 0 if it is only the key itself.
fn unknown(bytes: &[u8]) -> usize {
    match bytes.get(1) {
        Some(b'[' | b'O') => {
            let rest = bytes.get(2..).unwrap_or_default();
            let end = rest.iter().position(|byte| (0x40..=0x7e).contains(byte));
            end.map_or(bytes.len(), |end| end + 3)
        }
        _ => 0,
    }
}

fn letter(bytes: &[u8]) -> (usize, Option<Key>) {
    let first = bytes.get(..4.min(bytes.len())).unwrap_or_default();
    let valid = match std::str::from_utf8(first) {
        Ok(text) => text,
        Err(error) => {
            let good = first.get(..error.valid_up_to()).unwrap_or_default();
            std::str::from_utf8(good).unwrap_or_default()
        }
    };
    match valid.chars().next() {
        Some(letter) => (letter.len_utf8(), Some(Key::Letter(letter))),
        None => (1, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> Vec<Key> {
        let mut bytes = bytes.to_vec();
        std::iter::from_fn(|| next(&mut bytes)).collect()
    }

    #[test]
    fn keys_are_told_apart() {
        assert_eq!(
            all(b"j\x1b[Bk\x1b[5~\r\x7f\x1b"),
            [
                Key::Letter('j'),
                Key::Down,
                Key::Letter('k'),
                Key::PageUp,
                Key::Enter,
                Key::Backspace,
                Key::Escape
            ]
        );
        assert_eq!(
            all("é\u{3}".as_bytes()),
            [Key::Letter('é'), Key::Letter('\u{3}')]
        );
    }

    #[test]
    fn what_is_no_key_is_passed_over() {
        assert_eq!(all(b"\x1b[1;5Cq"), [Key::Letter('q')]);
        assert_eq!(all(b"\xff\xfeq"), [Key::Letter('q')]);
        assert_eq!(all(b"\x1b["), []);
    }
}
