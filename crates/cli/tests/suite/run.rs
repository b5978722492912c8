//! What people read of commands.

use crate::world::World;

#[test]
fn a_command_speaks_for_itself() {
    let world = World::new();
    world.put("a", "1\n");
    insta::assert_snapshot!(world.cli(["run", "--", "sh", "-c", "echo out; echo err >&2; rm a; echo 2 > b"]), @r"
    out
    err
    ");
    insta::assert_snapshot!(world.cli(["log"]), @"●  9e3779b9  just now  committed  run sh -c 'echo out; echo err >&2; rm a; echo 2 > b'");
    insta::assert_snapshot!(world.cli(["undo"]), @"
    undid 9e3779b9  run sh -c 'echo out; echo err >&2; rm a; echo 2 > b'  (the newest below .)
      a  restored
      b  gone, as before
    hint: take this back with `backout redo 3c6ef372`
    ");
    assert_eq!(world.text("a"), "1\n");
}

#[test]
fn on_a_terminal_it_is_said_what_happened() {
    let world = World::new();
    insta::assert_snapshot!(world.terminal(100, ["--color", "never", "run", "--", "touch", "x", "y"]), @"backout: 2 created  (9e3779b9, live capture, undo with `backout undo 9e3779b9`)");
    insta::assert_snapshot!(world.terminal(100, ["--color", "never", "run", "--", "true"]), @"backout: nothing changed  (3c6ef372, live capture)");
    insta::assert_snapshot!(world.terminal(100, ["--color", "never", "run", "--on-failure", "rollback", "--", "sh", "-c", "rm x; exit 4"]), @r"
    backout: 1 deleted  (daa66d2c, live capture, undo with `backout undo daa66d2c`)
    backout: it failed, and what it did was undone  (daa66d2c, bring it back with `backout redo 78dde6e5`)
    [exit code 4]
    ");
}

#[test]
fn a_command_whose_time_is_up_is_told() {
    let world = World::new();
    let line = "touch x; exec sleep 600";
    insta::assert_snapshot!(world.cli(["run", "--timeout", "1s", "--", "sh", "-c", line]), @"
    note: its time was up, so it was ended
    [exit code 128]
    ");
    let ran = world.cli(["run", "--json", "--timeout", "1s", "--", "sh", "-c", line]);
    let reply: serde_json::Value = serde_json::from_str(&ran.err).unwrap();
    assert_eq!(
        (&reply["reply"], &reply["end"]["timed_out"]),
        (&"ran".into(), &true.into())
    );
}

#[test]
fn what_cannot_be_started_is_told() {
    let world = World::new();
    world.put("text", "");
    insta::assert_snapshot!(world.cli(["run", "--", "nosuchcommand"]), @"
    error: `nosuchcommand` was not run
      why: there is no such program
      next: check the name and `PATH`, and the first line if it is a script
      next: a shell's own words need a shell: `sh -c '...'`
    [exit code 127]
    ");
    insta::assert_snapshot!(world.cli(["run", "--", "./text"]), @"
    error: `./text` was not run
      why: it is not executable, or not for you
      next: check that it is a program, and its permissions
    [exit code 126]
    ");
    insta::assert_snapshot!(world.cli(["run", "--timeout", "soon", "--", "true"]), @r"
    error: invalid value 'soon' for '--timeout <TIME>': a time is a number with s, m or h, like 30s or 1h30m

    For more information, try '--help'.
    [exit code 2]
    ");
    insta::assert_snapshot!(world.cli(["run", "--roots", "nowhere", "--", "true"]), @r"
    error: could not find a directory to be compared
      why: No such file or directory (os error 2)
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["run"]), @r"
    error: the following required arguments were not provided:
      <COMMAND>...

    Usage: backout run <COMMAND>...

    For more information, try '--help'.
    [exit code 2]
    ");
}
