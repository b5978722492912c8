//! Times and sizes, as people write them.

use std::time::Duration;

use toml_edit::Item;

/// What each unit of size stands for.
const UNITS: [(&str, u64); 9] = [
    ("", 1),
    ("b", 1),
    ("kb", 1_000),
    ("kib", 1 << 10),
    ("mb", 1_000_000),
    ("mib", 1 << 20),
    ("gb", 1_000_000_000),
    ("gib", 1 << 30),
    ("tb", 1_000_000_000_000),
];

/// Reads a length of time; none if it is none, or less than nothing.
pub(crate) fn time(text: &str) -> Option<Duration> {
    let span: jiff::Span = text.parse().ok()?;
    let days = jiff::SpanRelativeTo::days_are_24_hours();
    Duration::try_from(span.to_duration(days).ok()?).ok()
}

/// Reads a number of bytes.
pub(crate) fn size(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(digits)?;
    let unit = unit.trim().to_ascii_lowercase();
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

/// Reads a number of bytes, written as a text or as a number.
pub(crate) fn size_of(item: &Item) -> Option<u64> {
    match item.as_str() {
        Some(text) => size(text),
        None => u64::try_from(item.as_integer()?).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("10", Some(10)),
            ("10KB", Some(10_000)),
            ("10 KiB", Some(10_240)),
            ("1mib", Some(1 << 20)),
            ("", None),
            ("KB", None),
            ("-1", None),
            ("10 bananas", None),
            ("99999999999999999999", None),
            ("9999999999999TB", None),
        ] {
            assert_eq!(size(text), bytes, "{text}");
        }
    }

    #[test]
    fn times_are_never_less_than_nothing() {
        assert_eq!(time("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(time("7d"), Some(Duration::from_hours(168)));
        assert_eq!(time("-1h"), None);
        assert_eq!(time("soon"), None);
    }
}
