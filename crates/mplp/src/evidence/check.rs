//! Looking at a pack: sums, the chain, and whether the records really tell the story that is told.

use std::collections::BTreeMap;

use backout_model::{Digest, Lsn, Record};
use serde_json::Value;

use super::{
    FORMAT, GRAPH, JOURNAL, Listed, MANIFEST, Manifest, PROTOCOL, PackFile, SUMS, TIMELINE, TRACE,
    VERSION, graph_files, story_files, sum, sum_line,
};
use crate::Kind;
use crate::graph::Graph;
use crate::schema::check;
use crate::trace::{About, tell};

/// How long the hash at the end of a line is, with its name.
const HASH_LENGTH: usize = 75;

/// What is wrong with a pack.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum EvidenceFlaw {
    /// A file is missing.
    #[error("`{0}` is not there")]
    Missing(String),
    /// A file is there that no list knows.
    #[error("`{0}` belongs to nothing")]
    Foreign(String),
    /// A file is not what its sum says.
    #[error("`{0}` is not what its sum says")]
    Changed(String),
    /// A file cannot be read.
    #[error("`{path}` cannot be read: {why}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why not.
        why: String,
    },
    /// The chain of hashes is broken.
    #[error("the chain of hashes is broken at record {lsn}")]
    Broken {
        /// The record.
        lsn: u64,
    },
    /// A record is not the journal's.
    #[error("record {lsn} is another one in the journal")]
    Other {
        /// The record.
        lsn: u64,
    },
    /// A record is not in the journal any more, although nothing was cut there.
    #[error("record {lsn} is gone from the journal")]
    Gone {
        /// The record.
        lsn: u64,
    },
    /// What is told does not follow from the records.
    #[error("`{0}` does not follow from the records")]
    Untrue(String),
    /// Something does not follow its schema.
    #[error("`{path}` does not follow the schema of {kind}: {why}")]
    Invalid {
        /// Where.
        path: String,
        /// What it is to be.
        kind: Kind,
        /// What is wrong.
        why: String,
    },
}

/// What a pack that is whole says.
#[derive(Debug, Clone, PartialEq)]
pub struct Integrity {
    /// Each is linked to the one before.
    pub records: Vec<Record>,
    /// The hash that the first one follows.
    pub before: Digest,
    /// The hash of the last one.
    pub head: Digest,
    /// How many events are told.
    pub events: u64,
}

/// Gives the place of the first record of a pack; none if it has none, or cannot be read.
pub fn first_of_pack(files: &BTreeMap<String, Vec<u8>>) -> Option<Lsn> {
    let manifest = read_manifest(files).ok()?;
    Some(Lsn(manifest.journal.first)).filter(|first| *first != Lsn(0))
}

/// Checks a pack by itself, by all of its files. `start` is the graph before its first record; where nobody can tell that, the objects of the graph
/// are not compared. Whether its records are those of a journal is for whoever has the journal.
pub fn check_pack(
    files: &BTreeMap<String, Vec<u8>>,
    start: Option<&Graph>,
) -> Result<Integrity, Vec<EvidenceFlaw>> {
    let manifest = read_manifest(files).map_err(|flaw| vec![flaw])?;
    let flaws = check_sums(files, &manifest);
    if !flaws.is_empty() {
        return Err(flaws);
    }
    let records = read_records(files, &manifest).map_err(|flaw| vec![flaw])?;
    let flaws = check_story(files, &manifest, &records, start);
    if !flaws.is_empty() {
        return Err(flaws);
    }
    let digest = |text: &str| {
        text.parse::<Digest>().map_err(|error| {
            vec![EvidenceFlaw::Unreadable {
                path: MANIFEST.to_owned(),
                why: error.to_string(),
            }]
        })
    };
    Ok(Integrity {
        records,
        before: digest(&manifest.journal.before)?,
        head: digest(&manifest.journal.head)?,
        events: manifest.events,
    })
}

fn read_manifest(files: &BTreeMap<String, Vec<u8>>) -> Result<Manifest, EvidenceFlaw> {
    let bytes = files
        .get(MANIFEST)
        .ok_or_else(|| EvidenceFlaw::Missing(MANIFEST.to_owned()))?;
    let unreadable = |why: String| EvidenceFlaw::Unreadable {
        path: MANIFEST.to_owned(),
        why,
    };
    let manifest: Manifest =
        serde_json::from_slice(bytes).map_err(|error| unreadable(error.to_string()))?;
    let Manifest {
        format,
        version,
        protocol,
        ..
    } = &manifest;
    if format != FORMAT || *version != VERSION || protocol != PROTOCOL {
        return Err(unreadable("it is of another format".to_owned()));
    }
    Ok(manifest)
}

fn check_sums(files: &BTreeMap<String, Vec<u8>>, manifest: &Manifest) -> Vec<EvidenceFlaw> {
    let mut flaws = Vec::new();
    let mut sums = String::new();
    for Listed {
        path,
        bytes,
        sha256,
    } in &manifest.files
    {
        match files.get(path) {
            None => flaws.push(EvidenceFlaw::Missing(path.clone())),
            Some(found) if super::count(found.len()) != *bytes || sum(found) != *sha256 => {
                flaws.push(EvidenceFlaw::Changed(path.clone()));
            }
            Some(_) => {}
        }
        sums.push_str(&sum_line(sha256, path));
    }
    let own = files.get(MANIFEST).map(|bytes| sum(bytes));
    sums.push_str(&sum_line(&own.unwrap_or_default(), MANIFEST));
    match files.get(SUMS) {
        None => flaws.push(EvidenceFlaw::Missing(SUMS.to_owned())),
        Some(found) if *found != sums.as_bytes() => {
            flaws.push(EvidenceFlaw::Changed(SUMS.to_owned()));
        }
        Some(_) => {}
    }
    let is_known = |path: &str| {
        path == MANIFEST || path == SUMS || manifest.files.iter().any(|file| file.path == path)
    };
    let foreign = files.keys().filter(|path| !is_known(path));
    flaws.extend(foreign.map(|path| EvidenceFlaw::Foreign(path.clone())));
    for needed in [JOURNAL, TIMELINE, TRACE, GRAPH] {
        if !manifest.files.iter().any(|file| file.path == needed) {
            flaws.push(EvidenceFlaw::Missing(needed.to_owned()));
        }
    }
    flaws
}

/// Reads the records and computes the chain from the bytes that are there.
fn read_records(
    files: &BTreeMap<String, Vec<u8>>,
    manifest: &Manifest,
) -> Result<Vec<Record>, EvidenceFlaw> {
    let unreadable = |why: String| EvidenceFlaw::Unreadable {
        path: JOURNAL.to_owned(),
        why,
    };
    let anchors = &manifest.journal;
    let digest = |text: &str| text.parse::<Digest>();
    let mut previous = digest(&anchors.before).map_err(|error| unreadable(error.to_string()))?;
    let mut records = Vec::new();
    let mut next = Lsn(anchors.first);
    for line in files
        .get(JOURNAL)
        .map_or(&[][..], Vec::as_slice)
        .split(|byte| *byte == b'\n')
    {
        if line.is_empty() {
            continue;
        }
        let record: Record =
            serde_json::from_slice(line).map_err(|error| unreadable(error.to_string()))?;
        let body = stored(line).ok_or_else(|| unreadable("a line is no record".to_owned()))?;
        let hash = Record::chain(&previous, record.lsn, record.at, &body);
        if record.lsn != next || hash != record.hash {
            return Err(EvidenceFlaw::Broken { lsn: record.lsn.0 });
        }
        previous = record.hash;
        next = next.next();
        records.push(record);
    }
    let last = records.last().map_or(0, |record| record.lsn.0);
    let is_whole = super::count(records.len()) == anchors.records
        && last == anchors.last
        && previous.to_string() == anchors.head;
    if !is_whole {
        return Err(EvidenceFlaw::Broken { lsn: last });
    }
    Ok(records)
}

/// Gives the event of a record as it was stored: all of its line but place, moment and hash.
fn stored(line: &[u8]) -> Option<Vec<u8>> {
    let mut commas = line.iter().enumerate().filter(|(_, byte)| **byte == b',');
    let (second, _) = commas.nth(1)?;
    let end = line.len().checked_sub(HASH_LENGTH)?;
    let (head, hash) = line.split_at_checked(end)?;
    if !hash.starts_with(b",\"hash\":\"") {
        return None;
    }
    let mut body = b"{".to_vec();
    body.extend_from_slice(head.get(second + 1..)?);
    body.push(b'}');
    Some(body)
}

/// Tells the story again and compares; looks at every event and every object by its schema.
fn check_story(
    files: &BTreeMap<String, Vec<u8>>,
    manifest: &Manifest,
    records: &[Record],
    start: Option<&Graph>,
) -> Vec<EvidenceFlaw> {
    let about = About {
        project: manifest.project_id.clone(),
        context: manifest.context_id.clone(),
        plan: manifest.plan_id.clone(),
    };
    let story = tell(records, &about);
    let mut flaws = Vec::new();
    let mut again: Vec<PackFile> = story_files(&story).into();
    if let Some(start) = start {
        again.extend(graph_files(start, records, &story));
        let told = |path: &str| path == JOURNAL || again.iter().any(|file| file.path == path);
        let more = manifest.files.iter().filter(|file| !told(&file.path));
        flaws.extend(more.map(|file| EvidenceFlaw::Untrue(file.path.clone())));
    }
    for file in again {
        match files.get(&file.path) {
            None => flaws.push(EvidenceFlaw::Missing(file.path)),
            Some(bytes) if *bytes != file.bytes => flaws.push(EvidenceFlaw::Untrue(file.path)),
            Some(_) => {}
        }
    }
    if manifest.events != super::count(story.timeline.len()) || manifest.trace_id != about.trace() {
        flaws.push(EvidenceFlaw::Untrue(MANIFEST.to_owned()));
    }
    let mut schema = |path: &str, kind: Kind, object: &Value| {
        if let Some(flaw) = check(kind, object).into_iter().next() {
            flaws.push(EvidenceFlaw::Invalid {
                path: path.to_owned(),
                kind,
                why: flaw.to_string(),
            });
        }
    };
    for line in &story.timeline {
        schema(
            TIMELINE,
            Kind::of(&line.event).unwrap_or(Kind::Event),
            &line.event,
        );
    }
    schema(TRACE, Kind::Trace, &story.trace);
    for (path, bytes) in files {
        let Some((kind, _)) = path
            .strip_prefix("artifacts/")
            .and_then(|it| it.split_once('/'))
        else {
            continue;
        };
        let object = serde_json::from_slice(bytes).unwrap_or(Value::Null);
        schema(path, Kind::named(kind).unwrap_or(Kind::Core), &object);
    }
    flaws
}
