//! Packs that are whole, and packs that somebody touched.

use std::collections::BTreeMap;

use backout_model::GENESIS;

use super::*;
use crate::trace::tests::{about, rolled_back};

fn pack() -> BTreeMap<String, Vec<u8>> {
    let records = rolled_back();
    let pack = Pack::of(&EvidenceParts {
        about: about(),
        records: &records,
        journal: lines("", records.iter()).bytes,
        before: GENESIS,
        graph: Graph::default(),
        made: Timestamp(1_700_000_000_000),
    });
    assert_eq!(pack.records, 13);
    pack.files
        .into_iter()
        .map(|file| (file.path, file.bytes))
        .collect()
}

/// Puts all sums right again, as somebody would who knows how.
fn summed(mut files: BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Vec<u8>> {
    let mut manifest: Manifest = serde_json::from_slice(&files[MANIFEST]).unwrap();
    for listed in &mut manifest.files {
        listed.sha256 = sum(&files[&listed.path]);
        listed.bytes = count(files[&listed.path].len());
    }
    files.insert(
        MANIFEST.to_owned(),
        pretty(MANIFEST, &json!(manifest)).bytes,
    );
    let mut sums = String::new();
    for listed in &manifest.files {
        sums.push_str(&sum_line(&listed.sha256, &listed.path));
    }
    sums.push_str(&sum_line(&sum(&files[MANIFEST]), MANIFEST));
    files.insert(SUMS.to_owned(), sums.into_bytes());
    files
}

fn checked(files: &BTreeMap<String, Vec<u8>>) -> Result<Integrity, Vec<EvidenceFlaw>> {
    check_pack(files, Some(&Graph::default()))
}

fn edited(path: &str, from: &str, to: &str) -> BTreeMap<String, Vec<u8>> {
    let mut files = pack();
    let text = String::from_utf8(files[path].clone()).unwrap();
    assert!(text.contains(from), "{text}");
    files.insert(path.to_owned(), text.replacen(from, to, 1).into_bytes());
    files
}

#[test]
fn a_pack_is_whole_and_the_same_twice() {
    let files = pack();
    let integrity = checked(&files).unwrap();
    assert_eq!(integrity.records, rolled_back());
    assert_eq!(files, pack());
    assert_eq!(files, summed(files.clone()));
    assert!(files.contains_key("snapshots/graph-before-6.json"));
}

#[test]
fn every_byte_counts() {
    let whole = pack();
    for path in whole.keys() {
        let mut files = whole.clone();
        let bytes = files.get_mut(path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        assert!(checked(&files).is_err(), "{path}");
        let mut files = whole.clone();
        files.remove(path);
        assert!(checked(&files).is_err(), "{path}");
    }
    let mut files = whole;
    files.insert("artifacts/more.json".to_owned(), b"{}".to_vec());
    assert_eq!(
        checked(&files),
        Err(vec![EvidenceFlaw::Foreign(
            "artifacts/more.json".to_owned()
        )])
    );
}

#[test]
fn whoever_puts_the_sums_right_is_found_by_the_chain() {
    let changed = summed(edited(
        "journal.jsonl",
        "\"summary\":\"app.toml\"",
        "\"summary\":\"harmless\"",
    ));
    assert_eq!(
        checked(&changed),
        Err(vec![EvidenceFlaw::Broken { lsn: 2 }])
    );
    // A rollback that is taken out leaves a gap.
    let mut files = pack();
    let text = String::from_utf8(files["journal.jsonl"].clone()).unwrap();
    let kept: Vec<&str> = text
        .lines()
        .filter(|line| !line.contains("undo-failed"))
        .collect();
    files.insert(
        "journal.jsonl".to_owned(),
        (kept.join("\n") + "\n").into_bytes(),
    );
    assert!(matches!(
        checked(&summed(files)).unwrap_err()[..],
        [EvidenceFlaw::Broken { .. }]
    ));
    // So does an end that is cut off.
    let mut files = pack();
    let kept: Vec<&str> = text.lines().take(12).collect();
    files.insert(
        "journal.jsonl".to_owned(),
        (kept.join("\n") + "\n").into_bytes(),
    );
    assert_eq!(
        checked(&summed(files)),
        Err(vec![EvidenceFlaw::Broken { lsn: 12 }])
    );
}

#[test]
fn a_story_that_the_records_do_not_tell_is_untrue() {
    for (path, from, to) in [
        (
            "timeline.jsonl",
            "\"result\":\"partial\"",
            "\"result\":\"completed\"",
        ),
        (
            "artifacts/trace.json",
            "rollback.initiated",
            "execution.initiated",
        ),
    ] {
        let told = checked(&summed(edited(path, from, to))).unwrap_err();
        assert_eq!(told, [EvidenceFlaw::Untrue(path.to_owned())]);
    }
    let told = checked(&edited(MANIFEST, "\"version\": 1", "\"version\": 2")).unwrap_err();
    assert!(
        matches!(told[..], [EvidenceFlaw::Unreadable { .. }]),
        "{told:?}"
    );
}

#[test]
fn objects_and_snapshots_that_the_records_do_not_tell_are_untrue() {
    let mut files = pack();
    let snapshot = files.keys().find(|path| path.starts_with("snapshots/"));
    let snapshot = snapshot.expect("a rollback began").clone();
    files.insert(snapshot.clone(), b"{}\n".to_vec());
    let told = checked(&summed(files)).unwrap_err();
    assert_eq!(told, [EvidenceFlaw::Untrue(snapshot.clone())]);
    // One that is left out with its line in the list is missed.
    let mut files = pack();
    files.remove(&snapshot);
    let mut manifest: Manifest = serde_json::from_slice(&files[MANIFEST]).unwrap();
    manifest.files.retain(|file| file.path != snapshot);
    files.insert(
        MANIFEST.to_owned(),
        pretty(MANIFEST, &json!(manifest)).bytes,
    );
    let told = checked(&summed(files)).unwrap_err();
    assert_eq!(told, [EvidenceFlaw::Missing(snapshot)]);
    // And so is one too many, or another graph.
    let other = edited("artifacts/graph.json", "{", "{ \"more\": 1,");
    let told = checked(&summed(other)).unwrap_err();
    assert_eq!(
        told,
        [EvidenceFlaw::Untrue("artifacts/graph.json".to_owned())]
    );
    for (from, to) in [
        ("MPLP 1.0.0", "MPLP 9"),
        ("\"version\": 1", "\"version\": 1, \"more\": 1"),
    ] {
        let told = checked(&edited(MANIFEST, from, to)).unwrap_err();
        assert!(
            matches!(told[..], [EvidenceFlaw::Unreadable { .. }]),
            "{told:?}"
        );
    }
}
