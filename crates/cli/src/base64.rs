//! Bytes in a batch that are not text: base64 with the standard alphabet (RFC 4648, section 4).

/// Decodes base64; padding may be left out. Nothing but the alphabet is accepted.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=').as_bytes();
    let padding = text.len() - digits.len();
    if padding > 2 || (padding > 0 && !text.len().is_multiple_of(4)) {
        return None;
    }
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    for group in digits.chunks(4) {
        let mut bits = 0_u32;
        for &digit in group {
            bits = bits << 6 | u32::from(value(digit)?);
        }
        // A group of n digits holds 6n bits: n - 1 whole bytes, and the rest must be zero.
        let whole = group.len().checked_sub(1).filter(|whole| *whole > 0)?;
        let spare = 6 * group.len() - 8 * whole;
        if bits & ((1 << spare) - 1) != 0 {
            return None;
        }
        bytes.extend((bits >> spare).to_be_bytes().into_iter().skip(4 - whole));
    }
    Some(bytes)
}

const fn value(digit: u8) -> Option<u8> {
    match digit {
        b'A'..=b'Z' => Some(digit - b'A'),
        b'a'..=b'z' => Some(digit - b'a' + 26),
        b'0'..=b'9' => Some(digit - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_standard_are_read() {
        for (text, bytes) in [
            ("", &b""[..]),
            ("Zg==", b"f"),
            ("Zm8=", b"fo"),
            ("Zm9v", b"foo"),
            ("Zm9vYg==", b"foob"),
            ("Zm9vYmE=", b"fooba"),
            ("Zm9vYmFy", b"foobar"),
            ("Zg", b"f"),
            ("AP+A/w==", b"\x00\xff\x80\xff"),
        ] {
            assert_eq!(decode(text).as_deref(), Some(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_not_base64_is_refused() {
        for text in [
            "Z", "Zg=", "Zg===", "Zh==", "Zm 9", "Zm9-", "=", "====", "ü",
        ] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
