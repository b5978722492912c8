//! `write`: content from everywhere, conditions, and nothing without an undo.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::world::World;

#[test]
fn a_file_is_written_from_standard_input() {
    let world = World::new();
    insta::assert_snapshot!(world.piped(b"hello\n", ["write", "notes.txt"]), @"wrote notes.txt  (9e3779b9, undo with `backout undo 9e3779b9`)");
    assert_eq!(world.text("notes.txt"), "hello\n");
}

#[test]
fn a_file_is_written_from_text_and_from_another_file() {
    let world = World::new().file("from.txt", "copied");
    insta::assert_snapshot!(world.cli(["write", "a.txt", "--text", "-x"]), @"wrote a.txt  (9e3779b9, undo with `backout undo 9e3779b9`)");
    insta::assert_snapshot!(world.cli(["write", "a.txt", "--from", "from.txt"]), @"wrote a.txt  (3c6ef372, undo with `backout undo 3c6ef372`)");
    assert_eq!(world.text("a.txt"), "copied");
}

#[test]
fn input_too_large_for_memory_arrives_whole_and_can_be_undone() {
    let world = World::new().file("big", "small before");
    let large: Vec<u8> = (0..9 * 1024 * 1024_u32)
        .map(|n| n.to_le_bytes()[n as usize % 3])
        .collect();
    assert_eq!(world.piped(&large, ["write", "big"]).code, 0);
    assert_eq!(fs::read(world.path("big")).unwrap(), large);
    world.did(["undo"]);
    assert_eq!(world.text("big"), "small before");
}

#[test]
fn missing_directories_and_modes_are_made_when_asked_for() {
    let world = World::new();
    world.did([
        "write",
        "-p",
        "--mode",
        "0600",
        "deep/down/key",
        "--text",
        "secret",
    ]);
    let mode = fs::metadata(world.path("deep/down/key"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o7777, 0o600);
    world.did(["undo"]);
    assert!(!world.has("deep"));
}

#[test]
fn text_is_added_to_the_end() {
    let world = World::new().file("log", "one\n");
    insta::assert_snapshot!(world.cli(["write", "--append", "log", "--text", "two\n"]), @"added to log  (9e3779b9, undo with `backout undo 9e3779b9`)");
    assert_eq!(world.text("log"), "one\ntwo\n");
}

#[test]
fn a_write_that_changes_nothing_is_not_recorded() {
    let world = World::new().file("a.txt", "same");
    insta::assert_snapshot!(world.cli(["write", "a.txt", "--text", "same"]), @"nothing to do: everything is already as asked");
    insta::assert_snapshot!(world.cli(["log"]), @"no operations");
}

#[test]
fn a_file_that_must_exist_and_does_not_is_refused() {
    let world = World::new();
    insta::assert_snapshot!(world.cli(["write", "--existing", "a.txt", "--text", "x"]), @r"
    error: `a.txt` does not exist
      next: leave out `--existing` to make it
    [exit code 1]
    ");
}

#[test]
fn a_mode_that_is_none_is_a_wrong_question() {
    let world = World::new();
    insta::assert_snapshot!(world.cli(["write", "a.txt", "--text", "x", "--mode", "rw"]), @r"
    error: invalid value 'rw' for '--mode <OCTAL>': a mode is octal digits, like 0644

    For more information, try '--help'.
    [exit code 2]
    ");
}

#[test]
fn nothing_is_written_into_our_own_state() {
    let world = World::new();
    world.did(["write", "a.txt", "--text", "x"]);
    insta::assert_snapshot!(world.cli(["write", "../state/journal.sqlite", "--text", "x"]), @r"
    error: `$WORLD/state/journal.sqlite` belongs to our own state
      why: nobody writes there but Backout itself
      next: choose another path
    [exit code 1]
    ");
}
