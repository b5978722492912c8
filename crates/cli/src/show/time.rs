//! Moments and sizes as people say them.

use backout_model::Timestamp;
use jiff::tz::TimeZone;

const SECOND_MS: i64 = 1000;
const MINUTE_MS: i64 = 60 * SECOND_MS;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;

/// Fresh enough to be called so.
const JUST_NOW_MS: i64 = 5 * SECOND_MS;

/// Older than this, a date says more than a number of days.
const DAYS_MAX: i64 = 30;

/// Says how long ago a moment was, or its date.
pub(super) fn ago(now: Timestamp, then: Timestamp) -> String {
    let passed = now.millis_since(then);
    if passed < JUST_NOW_MS {
        "just now".to_owned()
    } else if passed < MINUTE_MS {
        format!("{} s ago", passed / SECOND_MS)
    } else if passed < HOUR_MS {
        format!("{} min ago", passed / MINUTE_MS)
    } else if passed < DAY_MS {
        format!("{} h ago", passed / HOUR_MS)
    } else if passed < 2 * DAY_MS {
        "1 day ago".to_owned()
    } else if passed < DAYS_MAX * DAY_MS {
        format!("{} days ago", passed / DAY_MS)
    } else {
        at(then, "%Y-%m-%d")
    }
}

/// Says a moment exactly, in the time zone of the machine.
pub(super) fn exactly(moment: Timestamp) -> String {
    at(moment, "%Y-%m-%d %H:%M:%S %Z")
}

fn at(moment: Timestamp, format: &str) -> String {
    match jiff::Timestamp::from_millisecond(moment.0) {
        Ok(timestamp) => timestamp
            .to_zoned(TimeZone::system())
            .strftime(format)
            .to_string(),
        Err(_) => format!("{} ms", moment.0),
    }
}

/// Says a number of bytes.
pub(super) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut tenths = u128::from(bytes) * 10 / 1024;
    let mut units = UNITS.iter();
    let mut unit = units.next().copied().unwrap_or_default();
    for next in units {
        if tenths < 10 * 1024 {
            break;
        }
        tenths /= 1024;
        unit = next;
    }
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_said_in_the_largest_unit_that_fits() {
        let now = Timestamp(1_800_000_000_000);
        for (passed, said) in [
            (-7, "just now"),
            (4_999, "just now"),
            (5_000, "5 s ago"),
            (59_999, "59 s ago"),
            (MINUTE_MS * 2 + 1, "2 min ago"),
            (HOUR_MS * 23, "23 h ago"),
            (DAY_MS, "1 day ago"),
            (DAY_MS * 29, "29 days ago"),
        ] {
            assert_eq!(ago(now, Timestamp(now.0 - passed)), said);
        }
        assert!(ago(now, Timestamp(now.0 - DAY_MS * 100)).starts_with("2026-10-0"));
    }

    #[test]
    fn sizes_are_said_with_one_digit_after_the_point() {
        for (bytes, said) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (2 << 30, "2.0 GiB"),
            (u64::MAX, "16777215.9 TiB"),
        ] {
            assert_eq!(size(bytes), said);
        }
    }
}
