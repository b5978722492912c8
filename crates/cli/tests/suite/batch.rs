//! `batch`: several changes, all or nothing.

use crate::world::World;

const BATCH: &str = r#"{"changes": [
  {"write": {"path": "new/a", "text": "hello\n", "parents": true}},
  {"edit": {"path": "old", "search": "1", "replace": "2"}},
  {"remove": {"path": "gone"}},
  {"move": {"from": "x", "to": "new/x"}},
  {"write": {"path": "bytes", "base64": "AP8="}}
]}"#;

#[test]
fn several_changes_are_one_operation() {
    let world = World::new().file("old", "1").file("gone", "").file("x", "");
    insta::assert_snapshot!(world.piped(BATCH.as_bytes(), ["batch"]), @"wrote new/a, edited old, removed gone and 2 more  (9e3779b9, undo with `backout undo 9e3779b9`)");
    assert_eq!(
        (world.text("new/a"), world.text("old")),
        ("hello\n".into(), "2".into())
    );
    assert!(world.has("new/x") && !world.has("gone"));
    world.did(["undo"]);
    assert!(world.has("gone") && world.has("x") && !world.has("new") && !world.has("bytes"));
}

#[test]
fn if_one_change_cannot_be_made_none_is() {
    let world = World::new()
        .file("old", "1")
        .file("x", "")
        .file("batch.json", BATCH);
    insta::assert_snapshot!(world.cli(["batch", "batch.json"]), @"
    error: `gone` does not exist
      next: check the name
    [exit code 1]
    ");
    assert!(!world.has("new"));
}

#[test]
fn an_unknown_field_is_refused_with_its_place() {
    let world = World::new().file(
        "b.json",
        "{\"changes\": [\n  {\"write\": {\"path\": \"a\", \"txt\": \"x\"}}]}",
    );
    insta::assert_snapshot!(world.cli(["batch", "b.json"]), @r"
    error: the batch cannot be read in `b.json`
      why: unknown field `txt`, expected one of `path`, `text`, `base64`, `from`, `create`, `existing`, `parents`, `mode` at line 2 column 31
      next: see its shape with `backout batch --help`
    [exit code 2]
    ");
}

#[test]
fn a_path_that_leads_out_is_refused() {
    let world = World::new();
    let batch = br#"{"changes": [{"write": {"path": "../a", "text": "x"}}]}"#;
    insta::assert_snapshot!(world.piped(batch, ["batch"]), @r"
    error: change 1 of the batch cannot be made: `../a` is not a path below this directory
      why: paths in a batch are relative and have no `..`
      next: run it in the directory that holds everything it writes
    [exit code 2]
    ");
}
