//! Measures the promises of the design in one run, against what a user would do instead, and writes
//! `docs/benchmarks.md`.
//!
//! `bench against PATH` compares two builds side by side (`against`), `bench` measures the promises, `bench commands` what `run` and `try` cost (`commands`), `bench data` what rows cost (`data/`), `bench --peers` runs the race against others (`peers/`), `bench
//! long` looks at a store with a long life (`long/`); each rewrites its own section of
//! the document. Machines differ and are shared: contenders are interleaved and ratios of medians are reported. Nothing here is
//! asserted; a promise that is missed is printed as missed.

mod against;
mod checkpoint;
mod commands;
mod data;
mod docker;
mod drift;
mod durable;
mod gates;
mod hooks;
mod long;
mod peers;
mod process;
mod report;
mod sandbox;
mod serve;
mod sizes;
mod syncs;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use report::{Report, Row};

/// What any measurement can fail with.
type Failure = Box<dyn std::error::Error>;

/// Measures in a directory of its own.
type Measurement = fn(&Path) -> Result<Vec<Row>, Failure>;

fn main() -> ExitCode {
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report::say(&format!("the benchmark failed: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn measure() -> Result<(), Failure> {
    let place = tempfile::Builder::new()
        .prefix("backout-bench-")
        .tempdir()?;
    let chosen: Vec<String> = std::env::args().skip(1).collect();
    let (first, rest) = chosen.split_first().unzip();
    let rest = rest.unwrap_or_default();
    match first.map(String::as_str) {
        Some("against") => against::measure(place.path(), rest),
        Some("commands") => commands::measure(place.path(), rest),
        Some("data") => data::measure(place.path()),
        Some("--peers") => peers::measure(place.path(), rest),
        Some("serve") => serve::measure(place.path(), rest),
        Some("long") => long::measure(place.path(), rest),
        Some(long::DIE) => long::die(rest),
        _ => measure_promises(place.path(), &chosen),
    }
}

/// Words after `bench` choose measurements by name; the report is written only when all were made.
fn measure_promises(place: &Path, chosen: &[String]) -> Result<(), Failure> {
    let mut report = Report::default();
    let measurements: [(&str, Measurement); 10] = [
        ("durable writes of 4 KiB", durable::small),
        ("replacing large files", durable::large),
        ("fifty edits", sizes::fifty_edits),
        ("a thousand operations", sizes::thousand_operations),
        ("syncs", syncs::count),
        ("drift", drift::measure),
        ("a checkpoint, beside drift", checkpoint::measure),
        ("gates", gates::measure),
        ("hooks", hooks::measure),
        ("sandbox and workspace", sandbox::measure),
    ];
    for (name, measurement) in measurements {
        if !chosen.is_empty() && !chosen.iter().any(|word| name.contains(word.as_str())) {
            continue;
        }
        report::say(&format!("measuring {name}"));
        let directory = place.join(name.replace(' ', "-"));
        std::fs::create_dir(&directory)?;
        report.rows.extend(measurement(&directory)?);
    }
    if chosen.is_empty() {
        report::write_section("promises", &report.to_markdown())?;
    }
    report::say(&report.to_markdown());
    Ok(())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
