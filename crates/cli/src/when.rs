//! Moments as people say them.

use backout_engine::Report;
use backout_model::Timestamp;
use jiff::civil::{DateTime, Time};
use jiff::{Span, ToSpan as _, Zoned};

use crate::session::now;

/// Reads a moment: a time span before now (`10m`, `2h ago`), a time of today (`14:30`), a date with or without a time, or
/// a full time stamp.
pub(crate) fn moment(text: &str) -> Result<Timestamp, Report> {
    let example = "for example `--at 10m`, `--at 14:30` or `--at '2026-11-16 09:00'`";
    match read(text, now()) {
        Some(moment) if moment > now() => {
            Err(Report::usage(format!("`{text}` is still to come")).next(example))
        }
        Some(moment) => Ok(moment),
        None => Err(Report::usage(format!("`{text}` is not a time"))
            .because("a time is a span like `10m` or `2h ago`, a clock time, a date, or both")
            .next(example)),
    }
}

fn read(text: &str, now: Timestamp) -> Option<Timestamp> {
    let zone = jiff::tz::TimeZone::system();
    let now = jiff::Timestamp::from_millisecond(now.0)
        .ok()?
        .to_zoned(zone);
    let text = text.trim();
    // A date first: a clock time can be read out of it, too, and the day would be lost.
    let date = || {
        let civil: DateTime = text.parse().ok()?;
        civil.to_zoned(now.time_zone().clone()).ok()
    };
    let zoned = span(text)
        .and_then(|span| now.checked_sub(span).ok())
        .or_else(date)
        .or_else(|| clock(text, &now));
    let stamp = match zoned {
        Some(zoned) => zoned.timestamp(),
        None => text.parse().ok()?,
    };
    Some(Timestamp(stamp.as_millisecond()))
}

fn span(text: &str) -> Option<Span> {
    let text = text.strip_suffix("ago").unwrap_or(text).trim_end();
    text.parse().ok()
}

/// A time of today, or of yesterday if it has not come yet.
fn clock(text: &str, now: &Zoned) -> Option<Zoned> {
    let time: Time = text.parse().ok()?;
    let today = now
        .date()
        .to_datetime(time)
        .to_zoned(now.time_zone().clone());
    let today = today.ok()?;
    if today > *now {
        today.checked_sub(1.day()).ok()
    } else {
        Some(today)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_as_people_say_them() {
        let now = Timestamp(1_800_000_000_000);
        let before = |millis: i64| Some(Timestamp(now.0 - millis));
        assert_eq!(read("10m", now), before(600_000));
        assert_eq!(read("10 minutes ago", now), before(600_000));
        assert_eq!(read("2h ago", now), before(7_200_000));
        assert_eq!(read("2027-01-15T08:00:00Z", now), Some(now));
        let read_again = |text: &str| read(text, now).map(|moment| now.0 - moment.0);
        assert!(read_again("08:30").is_some_and(|ago| (0..86_400_000).contains(&ago)));
        let day = 86_400_000;
        assert!(
            read_again("2027-01-10 08:30").is_some_and(|ago| (4 * day..6 * day).contains(&ago))
        );
        assert!(read_again("2027-01-10").is_some_and(|ago| (4 * day..7 * day).contains(&ago)));
        assert!(read_again("2027-01-20 08:30").is_some_and(|ago| ago < 0));
        for wrong in ["", "soon", "25:61", "yesterday-ish"] {
            assert_eq!(read(wrong, now), None, "{wrong}");
        }
    }
}
