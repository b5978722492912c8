//! Sentences about what comes back without its comment, what others did since, and what stays where something else belongs.

use crate::world::World;

#[test]
fn a_key_whose_comment_has_no_place_any_more_comes_back_without_it() {
    let world = World::new().file("a.yaml", "x: 1\ns:\n  port: 80 # public\n  host: a\n");
    world.did(["unset", "a.yaml", "s.port"]);
    world.put("a.yaml", "{x: 1}\n");
    insta::assert_snapshot!(world.cli(["undo"]), @"
    undid 9e3779b9  unset s.port in a.yaml  (the newest below .)
      a.yaml:s.port  merged
      note: `a.yaml:s.port` is as it was, but there is no place for its comment, which is not back
    hint: take this back with `backout redo daa66d2c`
    ");
    assert_eq!(world.text("a.yaml"), "{x: 1, s: {port:  80}}\n");
}

#[test]
fn a_redo_leaves_what_a_later_operation_made_just_so() {
    let lines = |first: &str, last: &str| format!("{first}\n2\n3\n4\n5\n6\n7\n8\n{last}\n");
    let world = World::new().file("f", &lines("1", "9"));
    world.did(["edit", "f", "-s", "9", "-r", "nine"]);
    world.did(["undo"]);
    world.did(["edit", "f", "-s", "1", "-r", "one"]);
    world.did(["edit", "f", "-s", "9", "-r", "nine"]);
    // The operation between the two goes, and the newest stays.
    world.did(["undo", "@-1", "--merge"]);
    assert_eq!(world.text("f"), lines("1", "nine"));
    insta::assert_snapshot!(world.cli(["redo", "9e3779b9"]), @"
    did not redo 9e3779b9  edit f
      f  left as it is: 78dde6e5 did that since
    error: nothing was brought back
      why: 9e3779b9 `f`: left as it is: 78dde6e5 did that since
      next: see how it stands with `backout show 9e3779b9`
    [exit code 1]
    ");
    assert_eq!(world.text("f"), lines("1", "nine"));
    world.did(["undo", "--merge"]);
    assert_eq!(world.text("f"), lines("1", "9"));
}

#[test]
fn what_stands_where_something_else_belongs_stays_if_that_cannot_come() {
    let world = World::new().file("a", "old\n");
    let batch = r#"{"changes": [
        {"move": {"from": "a", "to": "z"}},
        {"write": {"path": "a", "text": "new\n"}}
    ]}"#;
    assert_eq!(world.piped(batch.as_bytes(), ["batch"]).code, 0);
    world.put("z", "somebody else's\n");
    insta::assert_snapshot!(world.unmoved(["undo", "-n", "--partial"]), @"
    would not undo 1 operation:  (the newest below .)
      9e3779b9  move a to z and 1 more
                a  conflict: what belongs there cannot come back
                z  conflict: `z`: content changed since (4 -> 16 bytes)
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["undo", "--partial"]), @"
    did not undo 9e3779b9  move a to z and 1 more  (the newest below .)
      a  conflict: what belongs there cannot come back
      z  conflict: `z`: content changed since (4 -> 16 bytes)
    error: nothing was taken back
      why: 9e3779b9 `a`: conflict: what belongs there cannot come back
      why: 9e3779b9 `z`: conflict: `z`: content changed since (4 -> 16 bytes)
      next: put right what stands in the way, then `backout undo 9e3779b9` again
    [exit code 1]
    ");
    assert_eq!(
        (world.text("a"), world.text("z")),
        ("new\n".into(), "somebody else's\n".into())
    );
    world.put("z", "old\n");
    world.did(["undo", "--force"]);
    assert_eq!(world.text("a"), "old\n");
    assert!(!world.has("z"));
}

#[test]
fn bytes_that_a_command_left_alone_are_lost_with_whoever_replaces_them() {
    let world = World::new().file("a", "1\n");
    std::fs::hard_link(world.path("a"), world.path("b")).unwrap();
    world.did(["run", "-q", "--", "/bin/sh", "-c", "chmod 600 a; ln a c"]);
    std::fs::write(world.path("a"), "somebody else's\n").unwrap();
    insta::assert_snapshot!(world.unmoved(["undo", "-n"]), @"
    would not undo 1 operation:  (the newest below .)
      9e3779b9  run /bin/sh -c 'chmod 600 a; ln a c'
                a  cannot be brought back: its bytes were never stored
                c  will be as before
    hint: do the rest with `backout undo 9e3779b9 --partial`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["undo"]), @"
    error: nothing was undone
      why: `a`: its bytes were never stored
      next: do the rest with `backout undo 9e3779b9 --partial`
    [exit code 1]
    ");
    // Who puts the bytes back can undo.
    std::fs::write(world.path("a"), "1\n").unwrap();
    world.did(["undo"]);
    assert!(!world.has("c"));
    assert_eq!(world.text("b"), "1\n");
}
