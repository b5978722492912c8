//! The race as people read it: a table per tree, a table of what was lost, and a line for each who was faster.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use super::race::{Standing, Work};

/// What a column is called.
pub(super) fn title(work: Work) -> &'static str {
    match work {
        Work::WriteOne => "write 1 file",
        Work::UndoOne => "undo it",
        Work::WriteForty => "write 40 files",
        Work::UndoForty => "undo them",
        Work::WriteMany => "write 10 000 files",
        Work::UndoMany => "undo all of them",
        Work::RemoveMany => "remove 10 000 files",
        Work::UndoRemoval => "bring them back",
    }
}

const HEAD: &str = "\
Written by `cargo xtask bench --peers`, in one run on one machine: every contender works on its own copy of the same tree, in \
turns, with its own programs, as an agent's harness would start them. A *write* is the protection and the change together. \
Medians in ms (one round \
for 10 000 files); in brackets, for a change how many times the *bare* change, for an undo how many times ours. A time counts only \
if every file came back. *Stored* is what all rounds together left on disk.

![The race as a picture](race.svg)
";

/// All of it.
pub(super) fn to_markdown(standings: &[Standing]) -> String {
    let mut text = HEAD.to_owned();
    let sizes: BTreeSet<usize> = standings
        .iter()
        .flat_map(|standing| standing.times.keys().map(|(files, _)| *files))
        .collect();
    for files in sizes {
        times(&mut text, standings, files);
    }
    corners(&mut text, standings);
    faster(&mut text, standings);
    who(&mut text, standings);
    text
}

fn times(text: &mut String, standings: &[Standing], files: usize) {
    let works: BTreeSet<Work> = standings
        .iter()
        .flat_map(|standing| standing.times.keys())
        .filter(|(of, _)| *of == files)
        .map(|(_, work)| *work)
        .collect();
    let titles: Vec<&str> = works.iter().map(|work| title(*work)).collect();
    line(text, &format!("\nA tree of {} files:\n", spaced(files)));
    line(text, &format!("| | {} | stored |", titles.join(" | ")));
    line(
        text,
        &format!("| --- |{}", " ---: |".repeat(titles.len() + 1)),
    );
    for standing in standings {
        let mut cells = vec![standing.name.to_owned()];
        if standing.version.is_err() {
            cells.push("not installed".to_owned());
        } else {
            cells.extend(
                works
                    .iter()
                    .map(|work| cell(standings, standing, (files, *work))),
            );
            let bytes = standing.stored_bytes.get(&files);
            cells.push(
                bytes
                    .filter(|bytes| **bytes > 0)
                    .map(|bytes| megabytes(*bytes))
                    .unwrap_or_default(),
            );
        }
        line(text, &format!("| {} |", cells.join(" | ")));
    }
}

fn cell(standings: &[Standing], standing: &Standing, key: (usize, Work)) -> String {
    let base = match key.1 {
        Work::WriteOne | Work::WriteForty | Work::WriteMany | Work::RemoveMany => "bare",
        Work::UndoOne | Work::UndoForty | Work::UndoMany | Work::UndoRemoval => OURS,
    };
    match standing.times.get(&key) {
        Some(Ok(time)) => {
            let ratio =
                time_of(standings, base, key).map(|base| time.as_secs_f64() / base.as_secs_f64());
            let ratio = ratio
                .map(|ratio| format!(" ({ratio:.1})"))
                .unwrap_or_default();
            format!("{}{ratio}", milliseconds(*time))
        }
        Some(Err(_)) if standing.name.starts_with("bare") => "-".to_owned(),
        Some(Err(why)) => why.clone(),
        None => String::new(),
    }
}

pub(super) const OURS: &str = "**Backout**";

fn time_of(standings: &[Standing], name: &str, key: (usize, Work)) -> Option<Duration> {
    let standing = standings.iter().find(|standing| standing.name == name)?;
    standing.times.get(&key)?.clone().ok()
}

fn corners(text: &mut String, standings: &[Standing]) {
    line(
        text,
        "\nWhat did not come back (each alone in a world of its own), and what became of a person's work when the agent's step \
         was taken back after it:\n",
    );
    line(
        text,
        "| | lost after a removal | lost after a file was replaced | edit of the same file | edit of another file | new file |",
    );
    line(text, "| --- | --- | --- | --- | --- | --- |");
    for standing in standings {
        let (Some(lost), Some(foreign)) = (&standing.lost, &standing.foreign) else {
            continue;
        };
        let named = |lost: &[&str]| {
            if lost.is_empty() {
                "nothing".to_owned()
            } else {
                lost.join(", ")
            }
        };
        line(
            text,
            &format!(
                "| {} | {} | {} | {} | {} | {} |",
                standing.name,
                named(&lost.by_removal),
                named(&lost.by_write),
                foreign.same,
                foreign.other,
                foreign.new
            ),
        );
    }
}

/// Names everybody who was faster than we are, and why.
fn faster(text: &mut String, standings: &[Standing]) {
    let mut lines = Vec::new();
    for standing in standings
        .iter()
        .filter(|one| !one.name.starts_with("bare") && one.name != OURS)
    {
        let mut where_faster = Vec::new();
        for (key, time) in &standing.times {
            let (Ok(time), Some(ours)) = (time, time_of(standings, OURS, *key)) else {
                continue;
            };
            if *time < ours {
                where_faster.push(format!(
                    "{} of {} ({} against {} ms)",
                    title(key.1),
                    spaced(key.0),
                    milliseconds(*time),
                    milliseconds(ours)
                ));
            }
        }
        if !where_faster.is_empty() {
            lines.push(format!(
                "- {}: {}. {}",
                standing.name,
                where_faster.join("; "),
                reason(standing.name)
            ));
        }
    }
    if !lines.is_empty() {
        line(text, "\nWho was faster than Backout, and why:\n");
        for one in &lines {
            line(text, one);
        }
    }
}

/// Why somebody may be faster. Which syncs are made was seen with strace once, for these versions (not for `cp`).
fn reason(name: &str) -> &'static str {
    match name {
        "`cp -a`" => {
            "It syncs nothing: after a power cut its copy may be empty. It must be told beforehand, and keeps no record."
        }
        "shadow git" => {
            "It syncs nothing, neither its objects nor what it restores; and before a step that follows an undo its checkpoint finds \
             nothing new to keep."
        }
        "doover" => {
            "It syncs its journal, but neither its snapshot nor what it restores: after a power cut either may be empty."
        }
        "undo-core" => {
            "It syncs files but no directories, and does not look whether somebody else changed the file since."
        }
        "agent-undo" => {
            "Its undo syncs nothing, and does not look whether somebody else changed the file since."
        }
        "restic" | "borg" | "jj" => {
            "It syncs its repository, not what it restores; and before a step that follows an undo it finds nothing new to keep."
        }
        _ => "It was not looked at yet.",
    }
}

fn who(text: &mut String, standings: &[Standing]) {
    line(text, "\nWho took part:\n");
    for standing in standings {
        let version = match &standing.version {
            Ok(version) if version.is_empty() => String::new(),
            Ok(version) => format!(" {version}"),
            Err(why) => format!(" (took no part: {why})"),
        };
        line(
            text,
            &format!("- {}{version}: {}.", standing.name, standing.how),
        );
    }
}

/// Milliseconds with as many digits as mean something.
pub(super) fn milliseconds(time: Duration) -> String {
    let ms = time.as_secs_f64() * 1000.0;
    if ms < 100.0 {
        format!("{ms:.1}")
    } else {
        format!("{ms:.0}")
    }
}

/// Megabytes for the table.
#[expect(clippy::cast_precision_loss, reason = "a table needs three digits")]
pub(super) fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

/// 20 000 instead of 20000.
pub(super) fn spaced(number: usize) -> String {
    if number < 1_000 {
        return number.to_string();
    }
    format!("{} {:03}", number / 1_000, number % 1_000)
}

fn line(text: &mut String, line: &str) {
    // Writing to a string cannot fail.
    let _written = writeln!(text, "{line}");
}
