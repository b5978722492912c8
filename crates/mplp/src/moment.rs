//! Moments as the schemas want them: ISO 8601 with a zone.

use backout_model::Timestamp;

/// Writes a moment in UTC. What no calendar has room for is the beginning of time.
pub fn moment(at: Timestamp) -> String {
    let moment = jiff::Timestamp::from_millisecond(at.0).unwrap_or_default();
    format!("{moment:.3}")
}

/// Tells whether a text is a moment with a zone.
pub fn is_moment(text: &str) -> bool {
    let has_time = text
        .as_bytes()
        .get(10)
        .is_some_and(|it| matches!(it, b'T' | b't'));
    has_time && text.parse::<jiff::Timestamp>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_and_told_apart() {
        let text = moment(Timestamp(1_700_000_000_123));
        assert_eq!(text, "2023-11-14T22:13:20.123Z");
        assert!(is_moment(&text));
        assert!(is_moment("2025-01-28T15:30:00+01:00"));
        assert_eq!(moment(Timestamp(i64::MAX)), "1970-01-01T00:00:00.000Z");
        for wrong in [
            "",
            "yesterday",
            "2025-01-28",
            "2025-01-28T15:30:00",
            "2025-13-28T15:30:00Z",
            "2025-01-28 15:30:00Z",
        ] {
            assert!(!is_moment(wrong), "{wrong}");
        }
    }
}
