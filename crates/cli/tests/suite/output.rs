//! Streams: quiet, colour, terminals, readers that go away.

use std::process::Stdio;

use crate::world::World;

#[test]
fn quiet_says_nothing_of_success_but_shows_what_was_asked_for() {
    let world = World::new();
    insta::assert_snapshot!(world.cli(["-q", "write", "a", "--text", "1"]), @"");
    insta::assert_snapshot!(world.cli(["-q", "log"]), @"●  9e3779b9  just now  committed  write a");
    insta::assert_snapshot!(world.cli(["-q", "undo"]), @"");
    insta::assert_snapshot!(world.cli(["-q", "undo"]), @"
    error: there is nothing to undo below `.`
      next: see the operations with `backout log`
    [exit code 1]
    ");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let world = World::new();
    world.did(["write", "a", "--text", "1"]);
    for arguments in [&["log"][..], &["export"], &["log", "--json"], &["--help"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = world.command(arguments);
        let child = command
            .stdin(Stdio::null())
            .stdout(writer)
            .stderr(Stdio::piped())
            .spawn();
        let output = child.unwrap().wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    }
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let world = World::new();
    world.did(["write", "a", "--text", "1"]);
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = world.command(&["log"]).stdout(full).output().unwrap();
    insta::assert_snapshot!(String::from_utf8_lossy(&output.stderr), @r"
    error: the reply could not be written
      why: No space left on device (os error 28)
      next: if this was to change something, it was done: see it with `backout log -n 1`
    ");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn colour_can_be_asked_for_and_forbidden() {
    let world = World::new();
    world.did(["write", "a", "--text", "1"]);
    insta::assert_snapshot!(world.cli(["log", "--color", "always"]).out.replace('\u{1b}', "^"), @"^[32m●^[0m  ^[36m9e3779b9^[0m  ^[2mjust now^[0m  committed  write a");
    assert!(
        !world
            .terminal(80, ["log", "--color", "never"])
            .out
            .contains('\u{1b}')
    );
    let ran = world.run(world.command(&["log"]).env("CLICOLOR_FORCE", "1"));
    assert!(ran.out.contains('\u{1b}'));
}

#[test]
fn lines_are_cut_to_the_terminal() {
    let world = World::new();
    world.did([
        "write",
        "a-file-with-a-name-that-is-too-long-for-a-narrow-terminal.txt",
        "--text",
        "1",
    ]);
    insta::assert_snapshot!(world.terminal(60, ["log", "--color", "never"]), @"●  9e3779b9  just now  committed  write a-file-with-a-name-…");
}

#[test]
fn nobody_is_asked_to_type_a_file() {
    let world = World::new();
    insta::assert_snapshot!(world.terminal(80, ["write", "a", "--color", "never"]), @r"
    error: there is nothing to read
      why: standard input is a terminal
      next: pipe it in, or give `--text STRING` or `--from FILE`
    [exit code 2]
    ");
}

#[test]
fn an_undo_of_many_files_shows_how_far_it_is_and_leaves_no_trace() {
    let world = World::new();
    let write = |number| format!(r#"{{"write": {{"path": "f{number}", "text": "new"}}}}"#);
    let changes: Vec<String> = (0..50).map(write).collect();
    let batch = format!(r#"{{"changes": [{}]}}"#, changes.join(", "));
    assert_eq!(world.piped(batch.as_bytes(), ["batch"]).code, 0);
    let shown = world.impatient_terminal(80, ["undo"]).out;
    assert!(shown.contains('%') && shown.contains('━'), "{shown:?}");
    // The line of the bar is erased before anything else is said.
    let (_, said) = shown.rsplit_once("\u{1b}[2K").unwrap();
    assert!(!said.contains('━') && said.contains("undid"), "{said:?}");
}
