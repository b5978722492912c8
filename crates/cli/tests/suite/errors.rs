//! What people read when something does not work: what, why, what next.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::world::World;

fn one_write() -> World {
    let world = World::new();
    world.did(["write", "a.txt", "--text", "1"]);
    world
}

#[test]
fn an_id_that_nobody_has() {
    insta::assert_snapshot!(one_write().cli(["undo", "7f3c"]), @r"
    error: there is no operation `7f3c`
      next: see the operations with `backout log`
    [exit code 1]
    ");
}

#[test]
fn an_id_that_is_none() {
    insta::assert_snapshot!(one_write().cli(["show", "a.txt"]), @r"
    error: `a.txt` does not name an operation
      why: an operation is named by the beginning of its id, `@`, or `@-1` and so on
      next: see the operations with `backout log`
    [exit code 2]
    ");
}

#[test]
fn an_id_that_two_have() {
    let world = one_write();
    world.next_id_is(234);
    world.did(["write", "b.txt", "--text", "2"]);
    insta::assert_snapshot!(world.cli(["undo", "9e"]), @r"
    error: `9e` names more than one operation
      why: it could be 9eb5438e5a156b32
      why: it could be 9e3779b97f4a7c15
      next: give more digits
    [exit code 1]
    ");
}

#[test]
fn a_target_that_is_missing() {
    insta::assert_snapshot!(World::new().cli(["rm", "gone.txt"]), @r"
    error: `gone.txt` does not exist
      next: check the name; `--force` does not mind what is not there
    [exit code 1]
    ");
    insta::assert_snapshot!(World::new().cli(["edit", "gone.txt", "-s", "a", "-r", "b"]), @r"
    error: `gone.txt` does not exist
      next: check the name
    [exit code 1]
    ");
    insta::assert_snapshot!(World::new().cli(["write", "gone/a.txt", "--text", "x"]), @r"
    error: `gone` does not exist
      next: check the name, or make missing directories too with `--parents`
    [exit code 1]
    ");
}

#[test]
fn a_directory_where_a_file_is_expected() {
    insta::assert_snapshot!(World::new().file("d/x", "").cli(["write", "d", "--text", "x"]), @r"
    error: `d` is a directory
      next: name a file in it
    [exit code 1]
    ");
}

#[test]
fn a_file_that_must_be_new_and_exists() {
    insta::assert_snapshot!(one_write().cli(["write", "--create", "a.txt", "--text", "2"]), @r"
    error: `a.txt` already exists
      next: leave out `--create` to replace it
    [exit code 1]
    ");
}

#[test]
fn a_conflict() {
    let world = one_write();
    world.put("a.txt", "somebody else's");
    insta::assert_snapshot!(world.cli(["undo"]), @"
    error: nothing was undone
      why: `a.txt`: content changed since (1 -> 15 bytes)
      next: see what would change back, and what others changed, with `backout undo 9e3779b9 --dry-run --diff`
      next: do it anyway with `backout undo 9e3779b9 --force` (what is there now is kept)
    [exit code 1]
    ");
    assert_eq!(world.text("a.txt"), "somebody else's");
}

#[test]
fn an_operation_that_is_undone_already() {
    let world = one_write();
    world.did(["undo"]);
    insta::assert_snapshot!(world.cli(["undo", "9e37"]), @r"
    error: operation 9e3779b9 is already undone
      why: 3c6ef372 took it back
      next: bring it back with `backout redo 9e3779b9`
    [exit code 1]
    ");
}

#[test]
fn committed_operations_that_depend_on_it() {
    let world = one_write();
    world.did(["write", "a.txt", "--text", "2"]);
    insta::assert_snapshot!(world.cli(["undo", "@-1"]), @"
    undid 3c6ef372  write a.txt
      a.txt  taken back
    undid 9e3779b9  write a.txt
      a.txt  gone, as before
    hint: take this back with `backout redo daa66d2c`
    ");
}

#[test]
fn nothing_to_undo_and_nothing_to_redo() {
    let world = World::new();
    insta::assert_snapshot!(world.cli(["undo"]), @"
    error: there is nothing to undo below `.`
      next: see the operations with `backout log`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["redo"]), @r"
    error: there is nothing to redo
      next: see what was undone with `backout log`
    [exit code 1]
    ");
}

#[test]
fn a_store_of_a_newer_version() {
    let world = one_write();
    let journal = rusqlite::Connection::open(world.place("state/journal.sqlite")).unwrap();
    journal.pragma_update(None, "user_version", 99).unwrap();
    let note = |version: &str| {
        let sql = format!("INSERT OR REPLACE INTO meta VALUES ('reader', '{version}')");
        journal.execute(&sql, []).unwrap();
    };
    note("4.2.0");
    fs::write(world.place("state/lock"), "format 99\n").unwrap();
    insta::assert_snapshot!(world.cli(["log"]), @"
    error: the store was written by a newer version of Backout
      why: it has format 99, this program reads up to 7
      next: use Backout 4.2.0 or newer; nothing was changed
    [exit code 3]
    ");
    // A far newer one may keep that elsewhere.
    journal
        .execute("DELETE FROM meta WHERE key = 'reader'", [])
        .unwrap();
    insta::assert_snapshot!(world.cli(["log"]), @"
    error: the store was written by a newer version of Backout
      why: it has format 99, this program reads up to 7
      next: use the newer program; nothing was changed
    [exit code 3]
    ");
}

#[test]
fn a_store_that_is_none() {
    let world = World::new();
    fs::create_dir(world.place("state")).unwrap();
    fs::write(
        world.place("state/journal.sqlite"),
        "this is not a database, but long enough",
    )
    .unwrap();
    insta::assert_snapshot!(world.cli(["log"]), @r"
    error: the journal `$WORLD/state/journal.sqlite` is damaged
      why: file is not a database
      next: save what can be saved with `backout doctor --repair`; it keeps the damaged files
    [exit code 3]
    ");
}

#[test]
fn no_permission() {
    let world = World::new().file("locked/a.txt", "1");
    let nobody = |ran: &mut std::process::Command| {
        insta::assert_snapshot!(world.run(ran), @r"
        error: not permitted to write in `locked`
          next: run as a user who may, or change the permissions first
        [exit code 1]
        ");
    };
    fs::set_permissions(world.path("locked"), fs::Permissions::from_mode(0o555)).unwrap();
    let arguments = [
        "--state-dir",
        "../home/state",
        "write",
        "locked/a.txt",
        "--text",
        "2",
    ];
    if rustix::process::geteuid().is_root() {
        // Root may do everything, so somebody else tries, with a copy of the program that they can reach.
        let (program, root) = (world.place("backout"), world.place(""));
        fs::copy(env!("CARGO_BIN_EXE_backout"), &program).unwrap();
        for (place, mode) in [
            (root, 0o755),
            (world.place("home"), 0o777),
            (world.place("seed"), 0o777),
        ] {
            fs::set_permissions(place, fs::Permissions::from_mode(mode)).unwrap();
        }
        let mut command = world.program(
            Path::new("/usr/bin/setpriv"),
            &[
                "--reuid=65534",
                "--regid=65534",
                "--clear-groups",
                program.to_str().unwrap(),
            ],
        );
        nobody(command.args(arguments));
    } else {
        nobody(&mut world.command(&arguments));
    }
    fs::set_permissions(world.path("locked"), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn no_home_to_keep_the_state_in() {
    let world = World::new();
    let mut command = world.command(&["log"]);
    insta::assert_snapshot!(world.run(command.env_remove("HOME").env_remove("BACKOUT_STATE_DIR")), @r"
    error: it is not clear where the state is kept
      why: neither XDG_STATE_HOME nor HOME is set
      next: name a directory with `--state-dir DIR` or BACKOUT_STATE_DIR
    [exit code 2]
    ");
}

#[test]
fn an_environment_that_makes_no_sense() {
    let world = World::new();
    insta::assert_snapshot!(world.run(world.command(&["log"]).env("BACKOUT_AGENT", "two words")), @r"
    error: the environment variable BACKOUT_AGENT cannot be used
      why: `two words` cannot name an agent (1 to 128 letters, digits, `.`, `_`, `-`, `:`, `/`, `@`)
      next: set it right, or take it away
    [exit code 2]
    ");
}

#[test]
fn a_command_that_there_is_not() {
    insta::assert_snapshot!(World::new().cli(["udno"]), @r"
    error: unrecognized subcommand 'udno'

      tip: some similar subcommands exist: 'run', 'undo'

    Usage: backout [OPTIONS] <COMMAND>

    For more information, try '--help'.
    [exit code 2]
    ");
}
