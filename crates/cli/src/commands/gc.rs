//! `backout gc`

use backout_engine::Command;
use backout_model::Retention;
use backout_model::wide::PLAIN_MAX;
use clap::{Args, ValueEnum};
use jiff::SignedDuration;

use crate::failure::Failure;
use crate::session::Session;

/// Let old images go and pack the rest.
///
/// Images of uncommitted operations are never let go, and those of committed ones not before `--keep-at-least`. What
/// is let go can no longer be undone; the journal still knows that it happened.
#[derive(Debug, Args)]
pub(crate) struct GcArgs {
    /// Show what would go and change nothing.
    #[arg(long, short = 'n')]
    dry_run: bool,

    /// Do not pack versions of the same file together.
    #[arg(long)]
    no_compact: bool,

    /// The rules to start from.
    #[arg(long, value_name = "NAME", default_value = "standard")]
    preset: Preset,

    /// Let images go that are older than this, like 30d or 12h.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    keep: Option<i64>,

    /// Keep younger images whatever happens.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    keep_at_least: Option<i64>,

    /// Keep this many versions of a file.
    #[arg(long, value_name = "N")]
    versions: Option<usize>,

    /// Keep records in the journal this long after their images. Those of a call with a key (`--once`) stay a week.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    audit: Option<i64>,
}

/// Rules to start from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Preset {
    /// 30 days, 50 versions of a file, 2 GiB.
    Standard,
    /// 1 hour, 50 versions of a file, 500 MiB.
    Article,
}

impl GcArgs {
    /// Tells whether it only shows what would go.
    pub(crate) const fn only_looks(&self) -> bool {
        self.dry_run
    }
}

/// Collects.
pub(crate) fn cmd_gc(session: &mut Session, args: &GcArgs) -> Result<(), Failure> {
    session.retention = retention(args, session.cap);
    session.run(Command::Gc {
        is_dry_run: args.dry_run,
        compact: !args.no_compact,
    })?;
    if !args.dry_run {
        session.prune_databases();
    }
    Ok(())
}

fn retention(args: &GcArgs, cap: Option<u64>) -> Retention {
    let preset = match args.preset {
        Preset::Standard => Retention::standard(),
        Preset::Article => Retention::article(),
    };
    Retention {
        committed_ms_min: args.keep_at_least.unwrap_or(preset.committed_ms_min),
        committed_ms_max: args.keep.unwrap_or(preset.committed_ms_max),
        versions_per_file_max: args.versions.unwrap_or(preset.versions_per_file_max),
        store_bytes_max: cap.unwrap_or(preset.store_bytes_max),
        audit_ms: args.audit.unwrap_or(preset.audit_ms),
    }
}

/// Reads a duration in milliseconds; a day is 24 hours.
pub(crate) fn parse_duration(text: &str) -> Result<i64, String> {
    let wrong = || "a duration is like 30d, 12h or 90min".to_owned();
    let span: jiff::Span = text.parse().map_err(|_| wrong())?;
    let duration = SignedDuration::try_from(span)
        .or_else(|_| span.to_duration(jiff::SpanRelativeTo::days_are_24_hours()))
        .map_err(|_| wrong())?;
    let millis = i64::try_from(duration.as_millis()).map_err(|_| wrong())?;
    if millis < 0 { Err(wrong()) } else { Ok(millis) }
}

/// Reads a number of bytes: 500, 64K, 500MB, 2GiB. K, M, G and T count in 1024, with a B in 1000.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = || "a size is like 500MB or 2GiB".to_owned();
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let power = |base: u64, letter: char| {
        "KMGT"
            .find(letter.to_ascii_uppercase())
            .and_then(|at| base.checked_pow(u32::try_from(at).ok()? + 1))
    };
    let mut letters = unit.trim().chars();
    let factor = match (
        letters.next(),
        letters.as_str().to_ascii_lowercase().as_str(),
    ) {
        (None, _) | (Some('b' | 'B'), "") => Some(1),
        (Some(letter), "" | "i" | "ib") => power(1024, letter),
        (Some(letter), "b") => power(1000, letter),
        _ => None,
    };
    factor
        .and_then(|factor| number.checked_mul(factor))
        // JSON can say no more.
        .filter(|bytes| *bytes <= PLAIN_MAX)
        .ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        for (text, bytes) in [
            ("0", 0),
            ("500", 500),
            ("7B", 7),
            ("64K", 65_536),
            ("64kib", 65_536),
            ("500MB", 500_000_000),
            ("2GiB", 2_147_483_648),
            ("2 GiB", 2_147_483_648),
            ("1T", 1_099_511_627_776),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in [
            "",
            "MB",
            "-1",
            "5XB",
            "5MBs",
            "99999999999T",
            "8192T",
            "1.5G",
        ] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_are_read() {
        for (text, millis) in [
            ("30d", 2_592_000_000),
            ("1 hour", 3_600_000),
            ("12h", 43_200_000),
            ("90min", 5_400_000),
            ("1d 12h", 129_600_000),
            ("2w", 1_209_600_000),
            ("PT1H", 3_600_000),
        ] {
            assert_eq!(parse_duration(text), Ok(millis), "{text}");
        }
        for text in ["", "30", "soon", "-1h", "1 month"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
