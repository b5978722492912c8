//! What is fuzzed: any bytes may come in, nothing panics, and what is accepted keeps its promises.
//!
//! One function for each target. The fuzzer calls them with its inputs (`cargo xtask fuzz`), and an ordinary test calls
//! them with the inputs that are kept in `corpus/`, so that every run of the tests covers what was found once.

use std::io::Read;
use std::sync::Arc;

use backout_capture::live::Request;
use backout_drivers::command::{framed, weighed};
use backout_drivers::file::{FileDriver, Files as _};
use backout_model::ports::{
    ContentsError, Depots, Driver as _, OnConflict, ReadContents, WriteContents,
};
use backout_model::text::{Merge, apply, is_text, merge3, parse, unified_bytes};
use backout_model::{
    Digest, Effect, Event, GENESIS, Lsn, OperationId, Recipe, Record, TargetPath, Timestamp,
};

/// What separates the parts of an input that has several.
const SEPARATOR: &[u8] = b"\n=====\n";

/// Larger inputs only cost time.
const BYTES_MAX: usize = 64 * 1024;

/// A stored record: it is read or refused; what is read is written and read again as the same; a changed hash is noticed.
pub fn record(data: &[u8]) {
    let (lsn, at) = (Lsn(7), Timestamp(1_700_000_000_000));
    let hash = Record::chain(&GENESIS, lsn, at, data);
    assert!(Record::read(&hash, lsn, at, data, hash).is_err());
    let Ok(record) = Record::read(&GENESIS, lsn, at, data, hash) else {
        return;
    };
    let written = serde_json::to_vec(&record.event).expect("what was read can be written");
    let again: Event = serde_json::from_slice(&written).expect("what was written can be read");
    assert_eq!(again, record.event);
    assert_eq!(again.kind(), record.event.kind());
    let _exported = serde_json::to_string(&record).expect("a record can be exported");
}

/// A recipe: it is understood or refused; looking and planning an undo never fail otherwise than with an error. Only paths
/// below `/fuzz/`, which is not there, are looked at.
pub fn recipe(data: &[u8]) {
    let Ok(recipe) = serde_json::from_slice::<Recipe>(data) else {
        return;
    };
    let written = serde_json::to_vec(&recipe).expect("what was read can be written");
    let again: Recipe = serde_json::from_slice(&written).expect("what was written can be read");
    assert_eq!(again, recipe);
    let Ok(body) = recipe.body.read::<serde_json::Value>() else {
        return;
    };
    if !is_harmless(&body) || !recipe.slots.iter().all(|slot| is_ours(&slot.depot)) {
        return;
    }
    let nothing = Arc::new(Nothing);
    let driver = FileDriver::new(nothing.clone(), nothing.clone(), nothing);
    let effect = Effect {
        recipe,
        completion: None,
    };
    let _examined = driver.examine(&effect);
    let _changes = driver.changes(&effect);
    let _sides = driver.sides(&effect);
    let _in_place = driver.is_in_place(&effect);
    let _kept = driver.check_kept(&effect, &|_| true);
    let _outline = driver.outline(&effect);
    let id = OperationId::from_bits(1);
    for on_conflict in [OnConflict::Refuse, OnConflict::Merge, OnConflict::Force] {
        let _prepared = driver.prepare_undo(id, &effect, on_conflict.into());
    }
}

/// A content and a patch: the patch applies or is refused; a diff that we write is read and applied exactly.
pub fn patch(data: &[u8]) {
    let [before, text, _] = parts(data);
    let after = match parse(text) {
        Ok(patch) => {
            let mut files = patch.files.iter();
            let applied = files.find_map(|file| apply(file, before).ok());
            applied.unwrap_or_default()
        }
        // Then it serves as another content.
        Err(_) => text.to_vec(),
    };
    if before == after || !is_text(before) || !is_text(&after) {
        return;
    }
    for context in [0, 3] {
        let diff = unified_bytes(before, &after, "a/x", "b/x", context);
        let patch = parse(&diff).expect("our own diff is a patch");
        let file = patch.files.first().expect("of one file");
        assert_eq!(apply(file, before).as_deref(), Ok(after.as_slice()));
    }
}

/// Three versions: they merge or do not; a merge with nothing is the other side; both ways give the same.
pub fn merge(data: &[u8]) {
    let [base, ours, theirs] = parts(data);
    assert_eq!(merge3(base, ours, base), Merge::Clean(ours.to_vec()));
    assert_eq!(merge3(base, base, theirs), Merge::Clean(theirs.to_vec()));
    assert_eq!(merge3(base, ours, ours), Merge::Clean(ours.to_vec()));
    let one_way = merge3(base, ours, theirs);
    let other_way = merge3(base, theirs, ours);
    match (&one_way, &other_way) {
        (Merge::Clean(one), Merge::Clean(other)) => assert_eq!(one, other),
        (Merge::Conflicting(one), Merge::Conflicting(_)) => assert!(!one.is_empty()),
        (Merge::NotText, Merge::NotText) => {}
        _ => panic!("one way {one_way:?}, the other {other_way:?}"),
    }
}

/// What is asked at the relay: it is a request, or unfinished, or refused. What is a request is said and heard again as the
/// same, and nothing shorter is one.
pub fn relay(data: &[u8]) {
    let Ok(Some(request)) = Request::decode(data) else {
        return;
    };
    assert!(request.directory.is_absolute());
    let said = request.encode();
    assert_eq!(Request::decode(&said), Ok(Some(request)));
    for end in [0, 7, 8, said.len() / 2, said.len() - 1] {
        let part = said.get(..end).unwrap_or_default();
        assert_eq!(Request::decode(part), Ok(None));
    }
}

/// Notes of a capture log, and bytes that stand between them: whole notes are read, and what is between is noticed. Nothing
/// that they tell together is too much for the ledger.
pub fn log(data: &[u8]) {
    let _any = weighed(data);
    let [first, damage, second] = parts(data);
    let frames = |lines: &[u8]| -> Vec<Vec<u8>> {
        // As they are written: nothing stands before a note.
        let notes = lines
            .split(|byte| *byte == b'\n')
            .filter(|note| note.starts_with(b"{") || note.starts_with(b"\""));
        let frames = notes.map(|note| framed(note, b"bytes"));
        frames.filter(|frame| weighed(frame) == (1, 0)).collect()
    };
    let (first, second) = (frames(first), frames(second));
    let count = first.len() + second.len();
    let whole = [first.concat(), second.concat()].concat();
    assert_eq!(weighed(&whole), (count, 0));
    let cut = whole.get(..whole.len().saturating_sub(1)).unwrap_or(&[]);
    assert_eq!(weighed(cut), (count.saturating_sub(1), 0));
    let hurt = [&first.concat(), damage, &second.concat()].concat();
    let (found, gaps) = weighed(&hurt);
    assert!(found >= count);
    assert!(gaps > 0 || damage.is_empty() || second.is_empty() || found > count);
}

fn parts(data: &[u8]) -> [&[u8]; 3] {
    let data = data.get(..BYTES_MAX).unwrap_or(data);
    let split = |data: &[u8]| {
        let mut windows = data.windows(SEPARATOR.len());
        windows.position(|window| window == SEPARATOR)
    };
    let (first, rest) = match split(data) {
        Some(at) => (&data[..at], &data[at + SEPARATOR.len()..]),
        None => (data, &[][..]),
    };
    let (second, third) = match split(rest) {
        Some(at) => (&rest[..at], &rest[at + SEPARATOR.len()..]),
        None => (rest, &[][..]),
    };
    [first, second, third]
}

fn is_ours(path: &TargetPath) -> bool {
    path.as_bytes().starts_with(b"/fuzz/")
}

/// Tells whether every path of a recipe's body lies where nothing is.
fn is_harmless(value: &serde_json::Value) -> bool {
    match value {
        serde_json::Value::String(text) => !text.starts_with('/') || text.starts_with("/fuzz/"),
        serde_json::Value::Array(values) => values.iter().all(is_harmless),
        // Paths that are not UTF-8 are written as hexadecimal digits.
        serde_json::Value::Object(map) => !map.contains_key("hex") && map.values().all(is_harmless),
        serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => true,
    }
}

/// A store that has nothing and keeps nothing.
#[derive(Debug)]
struct Nothing;

impl ReadContents for Nothing {
    fn read(&self, digest: &Digest) -> Result<Vec<u8>, ContentsError> {
        Err(ContentsError::Missing { digest: *digest })
    }

    fn open(&self, digest: &Digest) -> Result<Box<dyn Read + Send>, ContentsError> {
        Err(ContentsError::Missing { digest: *digest })
    }

    fn outside(&self, _digest: &Digest) -> Result<Vec<Digest>, ContentsError> {
        Ok(Vec::new())
    }

    fn open_over(
        &self,
        digest: &Digest,
        _base: &Digest,
        _from: Box<dyn Read + Send>,
    ) -> Result<Box<dyn Read + Send>, ContentsError> {
        self.open(digest)
    }

    fn has(&self, _digest: &Digest) -> Result<bool, ContentsError> {
        Ok(true)
    }
}

impl WriteContents for Nothing {
    fn stash(
        &self,
        _by: OperationId,
        _from: &mut dyn Read,
    ) -> Result<(Digest, u64), ContentsError> {
        Ok((GENESIS, 0))
    }

    fn may_be_over(
        &self,
        _older: &Digest,
        _newer: &Digest,
        _size: u64,
    ) -> Result<bool, ContentsError> {
        Ok(true)
    }
}

impl Depots for Nothing {
    fn depot_for(&self, _directory: &TargetPath) -> Option<TargetPath> {
        None
    }

    fn staging(&self, _by: OperationId) -> std::io::Result<TargetPath> {
        Err(std::io::ErrorKind::NotFound.into())
    }

    fn is_above_ours(&self, _path: &TargetPath) -> bool {
        false
    }

    fn is_ours(&self, _path: &TargetPath) -> bool {
        false
    }
}
