//! Identifiers as the schemas want them: UUIDs of version 4 in lower case.
//!
//! Where the journal has a name of its own (an operation, a task, a place), the UUID is made from it: asked twice, the same record gives the same
//! event, so that two exports of one journal agree byte by byte.

/// Makes the UUID that stands for a name. `what` keeps names of different things apart.
pub fn uuid_of(what: &str, name: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(what.as_bytes());
    hasher.update(b"\0");
    hasher.update(name.as_bytes());
    let mut bytes = [0_u8; 16];
    hasher.finalize_xof().fill(&mut bytes);
    let bits = u128::from_be_bytes(bytes);
    // Version 4 in the seventh byte, the variant in the ninth.
    let bits = bits & !(0xf << 76) | (0x4 << 76);
    let bits = bits & !(0x3 << 62) | (0x2 << 62);
    let text = format!("{bits:032x}");
    let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    [
        part(0, 8),
        part(8, 12),
        part(12, 16),
        part(16, 20),
        part(20, 32),
    ]
    .join("-")
}

/// Tells whether a text is a UUID of version 4 in lower case.
pub fn is_uuid(text: &str) -> bool {
    let fits = |at: usize, byte: u8| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        14 => byte == b'4',
        19 => matches!(byte, b'8' | b'9' | b'a' | b'b'),
        _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
    };
    text.len() == 36 && text.bytes().enumerate().all(|(at, byte)| fits(at, byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_gives_one_uuid_and_another_name_another() {
        let all = [
            uuid_of("operation", "1"),
            uuid_of("operation", "2"),
            uuid_of("task", "1"),
            uuid_of("operatio", "n1"),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(is_uuid(one), "{one}");
            assert!(!all[..at].contains(one));
        }
        assert_eq!(all[0], uuid_of("operation", "1"));
    }

    #[test]
    fn only_version_4_in_lower_case_passes() {
        assert!(is_uuid("550e8400-e29b-41d4-a716-446655440000"));
        for wrong in [
            "",
            "123e4567-e89b-12d3-a456-426614174000",
            "550E8400-e29b-41d4-a716-446655440000",
            "550e8400-e29b-41d4-c716-446655440000",
            "550e8400-e29b-41d4-a716-44665544000",
            "550e8400-e29b-41d4-a716-4466554400000",
            "550e8400_e29b_41d4_a716_446655440000",
            "{550e8400-e29b-41d4-a716-44665544000}",
        ] {
            assert!(!is_uuid(wrong), "{wrong}");
        }
    }
}
