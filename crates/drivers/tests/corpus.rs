//! Replays the fuzzer's inputs: what it found once is tried in every run of the tests, without the fuzzer.

#![expect(
    unreachable_pub,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "the targets are a library of their own, and a test fails by panicking"
)]

#[path = "../../../fuzz/src/lib.rs"]
mod targets;

use std::fs;
use std::path::Path;

type Target = fn(&[u8]);

#[test]
fn every_kept_input_of_the_fuzzer_holds() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let known: [(&str, Target); 6] = [
        ("record", targets::record),
        ("recipe", targets::recipe),
        ("log", targets::log),
        ("patch", targets::patch),
        ("merge", targets::merge),
        ("relay", targets::relay),
    ];
    for (name, target) in known {
        let mut count = 0;
        for entry in fs::read_dir(corpus.join(name)).unwrap() {
            target(&fs::read(entry.unwrap().path()).unwrap());
            count += 1;
        }
        assert!(count > 0, "{name} has inputs");
    }
    let folders = fs::read_dir(&corpus).unwrap().count();
    assert_eq!(folders, known.len(), "every folder belongs to a target");
}
