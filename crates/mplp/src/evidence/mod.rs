//! An evidence pack: what an auditor gets, as files, each with its sum, and all of it bound to the journal's chain of hashes.
//!
//! | file | what is in it |
//! | --- | --- |
//! | `manifest.json` | what it is, which records it tells of, the chain's hashes before and at its end, and the sum of every other file |
//! | `journal.jsonl` | the records, as `backout export` writes them: the chain can be computed from them |
//! | `timeline.jsonl` | the events, each with the place and the hash of its record |
//! | `artifacts/` | the trace, the graph, and each object of it by itself |
//! | `snapshots/` | the graph as it was when a rollback began |
//! | `SHA256SUMS` | the sums again, for `sha256sum -c` |
//!
//! The events follow from the records by a function that anybody can run again ([`crate::tell`]); [`check_pack`] does. So whoever wants to change the story has to
//! change the records, and the chain says so.

mod check;
#[cfg(test)]
mod tests;

use backout_model::{Digest, Event, Lsn, Record, Timestamp, Topic};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::graph::{Graph, GraphNote};
use crate::moment::moment;
use crate::trace::{About, Story, tell};
pub use check::{EvidenceFlaw, Integrity, check_pack, first_of_pack};

/// The file that lists the others.
pub const MANIFEST: &str = "manifest.json";
/// The file that lists all sums.
pub const SUMS: &str = "SHA256SUMS";
const JOURNAL: &str = "journal.jsonl";
const TIMELINE: &str = "timeline.jsonl";
const TRACE: &str = "artifacts/trace.json";
const GRAPH: &str = "artifacts/graph.json";

/// The most snapshots of the graph in one pack; of more rollbacks the newest have theirs.
const SNAPSHOTS_MAX: usize = 100;

/// A name and bytes, to be written into the directory of a pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackFile {
    /// Its path in the pack.
    pub path: String,
    /// As they are to be written.
    pub bytes: Vec<u8>,
}

/// A pack, as files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pack {
    /// The files, in the order of the manifest, which is the last but one.
    pub files: Vec<PackFile>,
    /// How many records it tells of.
    pub records: u64,
    /// How many of MPLP's events it holds.
    pub events: u64,
}

/// What a pack is made of.
#[derive(Debug)]
pub struct EvidenceParts<'r> {
    /// The project and the span of time.
    pub about: About,
    /// The records, without a gap.
    pub records: &'r [Record],
    /// The same as an export has them, one a line, with their events as they are stored.
    pub journal: Vec<u8>,
    /// The hash that the first one follows.
    pub before: Digest,
    /// The graph before the first record.
    pub graph: Graph,
    /// When it is made.
    pub made: Timestamp,
}

/// What a manifest says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    format: String,
    version: u32,
    protocol: String,
    made_at: String,
    project_id: String,
    trace_id: String,
    context_id: String,
    plan_id: Option<String>,
    journal: Anchors,
    events: u64,
    files: Vec<Listed>,
}

/// Where in the journal's chain a pack hangs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Anchors {
    first: u64,
    last: u64,
    records: u64,
    before: String,
    head: String,
}

/// A file in a manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    path: String,
    bytes: u64,
    sha256: String,
}

const FORMAT: &str = "backout-evidence";
const VERSION: u32 = 1;
const PROTOCOL: &str = "MPLP 1.0.0";

impl Pack {
    /// Makes a pack.
    pub fn of(parts: &EvidenceParts<'_>) -> Self {
        let story = tell(parts.records, &parts.about);
        let mut files = vec![PackFile {
            path: JOURNAL.to_owned(),
            bytes: parts.journal.clone(),
        }];
        files.extend(story_files(&story));
        files.extend(graph_files(&parts.graph, parts.records, &story));
        let head = parts.records.last().map_or(parts.before, |last| last.hash);
        let place = |record: Option<&Record>| record.map_or(0, |record| record.lsn.0);
        let manifest = Manifest {
            format: FORMAT.to_owned(),
            version: VERSION,
            protocol: PROTOCOL.to_owned(),
            made_at: moment(parts.made),
            project_id: parts.about.project.clone(),
            trace_id: parts.about.trace(),
            context_id: parts.about.context.clone(),
            plan_id: parts.about.plan.clone(),
            journal: Anchors {
                first: place(parts.records.first()),
                last: place(parts.records.last()),
                records: count(parts.records.len()),
                before: parts.before.to_string(),
                head: head.to_string(),
            },
            events: count(story.timeline.len()),
            files: files.iter().map(listed).collect(),
        };
        files.push(pretty(MANIFEST, &json!(manifest)));
        let mut sums = String::new();
        for file in &files {
            sums.push_str(&sum_line(&sum(&file.bytes), &file.path));
        }
        files.push(PackFile {
            path: SUMS.to_owned(),
            bytes: sums.into_bytes(),
        });
        Self {
            files,
            records: manifest.journal.records,
            events: manifest.events,
        }
    }
}

/// Tells the events and the trace.
fn story_files(story: &Story) -> [PackFile; 2] {
    [
        lines(TIMELINE, story.timeline.iter().map(|line| &line.event)),
        pretty(TRACE, &story.trace),
    ]
}

/// Plays the graph's notes again, from how it was before the first record: as it is at the end, each object of it, and as it was when each
/// rollback began.
fn graph_files(start: &Graph, records: &[Record], story: &Story) -> Vec<PackFile> {
    let (graph, snapshots) = played(start, records, story);
    let mut files = vec![pretty(GRAPH, &json!(graph.document()))];
    for (id, node, object) in graph.objects() {
        let path = format!("artifacts/{}/{id}.json", node.kind);
        files.push(pretty(&path, object));
    }
    files.extend(snapshots);
    files
}

fn played(start: &Graph, records: &[Record], story: &Story) -> (Graph, Vec<PackFile>) {
    let is_start = |event: &Value| event.get("event_type") == Some(&json!("rollback.initiated"));
    let mut starts: Vec<Lsn> = story
        .timeline
        .iter()
        .filter(|line| is_start(&line.event))
        .map(|line| line.lsn)
        .collect();
    starts.drain(..starts.len().saturating_sub(SNAPSHOTS_MAX));
    let mut starts = starts.into_iter().peekable();
    let mut graph = start.clone();
    let mut snapshots = Vec::new();
    for record in records {
        if starts.next_if_eq(&record.lsn).is_some() {
            let path = format!("snapshots/graph-before-{}.json", record.lsn);
            snapshots.push(pretty(&path, &json!(graph.document())));
        }
        if let Event::Noted(note) = &record.event
            && note.topic == Topic::Graph
            && let Ok(read) = serde_json::from_value::<GraphNote>(note.body.clone())
        {
            graph.take(record.lsn, read);
        }
    }
    (graph, snapshots)
}

/// Writes one value a line.
fn lines<'v, T: Serialize + 'v>(path: &str, values: impl Iterator<Item = &'v T>) -> PackFile {
    let mut bytes = Vec::new();
    for value in values {
        bytes.extend(serde_json::to_vec(value).unwrap_or_default());
        bytes.push(b'\n');
    }
    PackFile {
        path: path.to_owned(),
        bytes,
    }
}

fn pretty(path: &str, value: &Value) -> PackFile {
    PackFile {
        path: path.to_owned(),
        bytes: format!("{value:#}\n").into_bytes(),
    }
}

fn listed(file: &PackFile) -> Listed {
    Listed {
        path: file.path.clone(),
        bytes: count(file.bytes.len()),
        sha256: sum(&file.bytes),
    }
}

fn sum(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let mut text = String::with_capacity(64);
    for byte in digest {
        let digit = |bits: u8| char::from_digit(u32::from(bits), 16).unwrap_or('0');
        text.push(digit(byte >> 4));
        text.push(digit(byte & 0xf));
    }
    text
}

/// Writes a line as `sha256sum` does.
fn sum_line(sum: &str, path: &str) -> String {
    format!("{sum}  {path}\n")
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
