//! What goes and what stays.

#[cfg(feature = "testing")]
mod crashes;
mod expire;
mod sweep;
mod tidy;

use std::fs;

use backout_model::{Retention, Slot, TargetPath};

use crate::GcReport;
use crate::contents::fixture::{HOUR_MS, World, id};

const MIB: usize = 1 << 20;

/// Keeps nothing longer than the guaranteed hour.
fn strict() -> Retention {
    Retention {
        committed_ms_max: HOUR_MS,
        ..Retention::standard()
    }
}

fn slot(world: &World, number: u64, at: u8) -> Slot {
    let depot = TargetPath::new(fs::canonicalize(world.path("depot")).unwrap()).unwrap();
    Slot {
        depot,
        name: format!("{}-{at}", id(number)),
    }
}

fn ids(report: &GcReport) -> Vec<u64> {
    report.expired.iter().map(|(id, _)| id.bits()).collect()
}
