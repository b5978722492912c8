//! What is said when something was asked wrongly. Nothing was done then, and the world is looked at to be sure.
//!
//! Without a test: "the manual page could not be made" (it is made in memory), "the engine gave no trial" (there is no
//! other reply to a trial), "the answer could not be read" (a terminal that hangs up ends the process first).

use std::fs::{self, File};

use crate::world::World;

fn one_write() -> World {
    let world = World::new();
    world.did(["write", "a", "--text", "1"]);
    world
}

#[test]
fn an_owner_that_names_nobody() {
    insta::assert_snapshot!(one_write().unmoved(["chown", ":", "a"]), @"
    error: `:` does not name an owner
      next: give USER, USER:GROUP or :GROUP
    [exit code 2]
    ");
}

#[test]
fn a_size_that_is_none() {
    insta::assert_snapshot!(one_write().unmoved(["gc", "--cap", "5XB"]), @"
    error: invalid value '5XB' for '--cap <SIZE>': a size is like 500MB or 2GiB

    For more information, try '--help'.
    [exit code 2]
    ");
}

#[test]
fn a_directory_for_manual_pages_that_is_not_there() {
    insta::assert_snapshot!(World::new().unmoved(["man", "--dir", "missing"]), @"
    error: the manual pages could not be written into `missing`
      why: No such file or directory (os error 2)
      next: name a directory that exists and that you may write
    [exit code 1]
    ");
}

#[test]
fn a_moment_without_a_path() {
    let world = one_write();
    insta::assert_snapshot!(world.unmoved(["undo", "--at", "10m"]), @"
    error: `--at` needs a path
      next: name what to take back: `backout undo PATH --at WHEN`
    [exit code 2]
    ");
    insta::assert_snapshot!(world.unmoved(["undo", "@", "--at", "10m"]), @"
    error: `--at` is for paths
      why: an operation has its own time
      next: name a path, or leave out `--at`
    [exit code 2]
    ");
    insta::assert_snapshot!(world.unmoved(["undo", "a", "--at", "soon"]), @"
    error: `soon` is not a time
      why: a time is a span like `10m` or `2h ago`, a clock time, a date, or both
      next: for example `--at 10m`, `--at 14:30` or `--at '2026-11-16 09:00'`
    [exit code 2]
    ");
}

#[test]
fn operations_and_paths_at_once() {
    insta::assert_snapshot!(one_write().unmoved(["undo", "@", "a"]), @"
    error: operations and paths cannot be mixed
      next: restrict operations to paths with `--only PATH`
    [exit code 2]
    ");
}

#[test]
fn a_name_of_an_operation_that_is_a_file_too() {
    let world = one_write();
    world.put("9e37", "not an operation");
    insta::assert_snapshot!(world.unmoved(["undo", "9e37"]), @"
    error: `9e37` is an operation and a file here
      next: write `./9e37` for the file
      next: or give the operation's own id, or more digits of it
    [exit code 2]
    ");
    insta::assert_snapshot!(world.cli(["undo", "9e3779"]), @"
    undid 9e3779b9  write a
      a  gone, as before
    hint: take this back with `backout redo 3c6ef372`
    ");
    assert!(!world.has("a"));
}

#[test]
fn a_file_to_read_that_is_not_there() {
    let world = one_write();
    insta::assert_snapshot!(world.unmoved(["batch", "missing.json"]), @"
    error: `missing.json` could not be read
      why: No such file or directory (os error 2)
      next: check the name and that you may read it
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["edit", "a", "--search-file", "missing", "-r", "x"]), @"
    error: `missing` could not be read
      why: No such file or directory (os error 2)
      next: check the name and that you may read it
    [exit code 1]
    ");
}

#[test]
fn standard_input_that_cannot_be_read() {
    let world = one_write();
    let input = File::open(world.path("")).unwrap();
    let ran = world.still(|| world.run(world.command(&["write", "a"]).stdin(input)));
    insta::assert_snapshot!(ran, @"
    error: standard input could not be read
      why: Is a directory (os error 21)
      next: check the name and that you may read it
    [exit code 1]
    ");
}

#[test]
fn nobody_is_asked_to_type_a_batch_or_a_patch() {
    let world = one_write();
    insta::assert_snapshot!(world.still(|| world.terminal(80, ["batch"])), @"
    [1m[31merror:[0m there is nothing to read
      [2mwhy:[0m standard input is a terminal
      [36mnext:[0m pipe it in, or name a file with the changes
    [exit code 2]
    ");
    insta::assert_snapshot!(world.still(|| world.terminal(80, ["edit", "--patch", "-"])), @"
    [1m[31merror:[0m there is nothing to read
      [2mwhy:[0m standard input is a terminal
      [36mnext:[0m pipe it in, or name a file with `--patch FILE`
    [exit code 2]
    ");
}

#[test]
fn a_path_that_is_empty() {
    insta::assert_snapshot!(one_write().unmoved(["undo", ""]), @"
    error: a path is empty
      next: give the path of a file
    [exit code 2]
    ");
}

#[test]
fn a_directory_that_is_gone_under_our_feet() {
    let world = one_write();
    let gone = world.path("gone");
    for arguments in [&["write", "x", "--text", "1"] as &[&str], &["undo"]] {
        fs::create_dir(&gone).unwrap();
        let shell = "rmdir ../gone; exec \"$0\" \"$@\"";
        let program = env!("CARGO_BIN_EXE_backout");
        let mut command = world.program("/bin/sh".as_ref(), &["-c", shell, program]);
        let ran = world.run(command.args(arguments).current_dir(&gone));
        insta::allow_duplicates! {
            insta::assert_snapshot!(ran, @"
            error: the current directory cannot be found
              why: No such file or directory (os error 2)
              next: go to a directory that is there
            [exit code 1]
            ");
        }
    }
    assert_eq!(world.text("a"), "1");
}

#[test]
fn a_path_that_leads_nowhere_and_back() {
    insta::assert_snapshot!(one_write().unmoved(["undo", "nowhere/../a"]), @"
    error: `nowhere/../a` cannot be looked up
      why: `nowhere/../a` is not a normal path (it has `..` or a NUL byte)
      next: give the path without `..`
    [exit code 2]
    ");
}

#[test]
fn the_answers_to_a_trial_are_explained() {
    let world = World::new().file("a", "0");
    let ran = world.still(|| world.typed("?\nq\n", ["try", "--", "sh", "-c", "echo 1 > a"]));
    insta::assert_snapshot!(ran, @"
    [1msh -c 'echo 1 > a'[0m succeeded: 1 changed
      [33m~[0m a [2m(1 B -> 2 B)[0m
    Apply these changes? [y]es, [n]o, [d]iff, [s]elect, [q]uit, [?] y - yes, apply them
    n - no, throw them away
    d - show them line by line
    s - select a part by globs
    q - quit, and keep them for later
    Apply these changes? [y]es, [n]o, [d]iff, [s]elect, [q]uit, [?] [36mhint:[0m nothing was changed; apply it with `[36mbackout try --apply 9e3779b9[0m`, look with `[36mbackout try --diff 9e3779b9[0m`, or let it go with `[36mbackout try --discard 9e3779b9[0m`
    ");
}

#[test]
fn a_symbolic_link_without_operations_names_what_it_leads_to() {
    let world = World::new();
    world.did(["write", "a", "--text", "1"]);
    std::os::unix::fs::symlink("a", world.path("l")).unwrap();
    insta::assert_snapshot!(world.unmoved(["log", "l"]), @"
    no operations
    hint: it is a symbolic link: see what it leads to with `backout log $WORLD/work/a`
    ");
}

#[test]
fn what_something_was_built_on_is_asked_for_by_operations_only() {
    let world = World::new();
    world.did(["write", "a", "--text", "1"]);
    let ran = world.unmoved(["undo", "a", "--with-dependencies"]);
    insta::assert_snapshot!(ran, @"
    error: `--with-dependencies` is for operations
      why: what an operation was built on may lie at other paths
      next: name the operation: see which wrote the path with `backout log PATH`
    [exit code 2]
    ");
}

#[test]
fn a_checkpoint_of_somebody_else_keeps_its_name() {
    let world = World::new();
    world.did(["task", "begin", "t"]);
    let mut told = String::new();
    for (name, whose) in [
        ("one", &["--agent", "ann", "--task", "t"][..]),
        ("two", &["--task", "t"]),
        ("three", &["--agent", "ann"]),
        ("four", &[]),
    ] {
        let made = world.run(&mut world.command(&[whose, &["checkpoint", name]].concat()));
        assert_eq!(made.code, 0, "{made}");
        told += &world.unmoved(["--agent", "bob", "checkpoint", name]).err;
    }
    insta::assert_snapshot!(told, @"
    error: there is a checkpoint `one` already
      why: agent `ann` made it in task `t`
      why: its owner could not return to it any more
      next: choose another name
    error: there is a checkpoint `two` already
      why: it was made in task `t`
      why: its owner could not return to it any more
      next: choose another name
    error: there is a checkpoint `three` already
      why: agent `ann` made it
      why: its owner could not return to it any more
      next: choose another name
    error: there is a checkpoint `four` already
      why: it was made without `--agent` and `--task`
      why: its owner could not return to it any more
      next: choose another name
    ");
}

#[test]
fn a_task_with_a_doubt_in_it_is_not_committed() {
    let world = World::new().file("a", "0");
    world.did(["task", "begin", "t"]);
    world.dies(
        "engine.before-commit",
        ["--task", "t", "write", "a", "--text", "1"],
    );
    world.put("a", "theirs");
    assert_eq!(world.cli(["recover"]).code, 1);
    insta::assert_snapshot!(world.unmoved(["commit", "t"]), @"
    error: the task `t` was not committed
      why: operation 9e3779b9 waits for a decision
      next: keep what is there with `backout recover --keep 9e3779b9`
      next: or take it back with `backout recover --rollback 9e3779b9`
    [exit code 1]
    ");
    world.did(["recover", "--keep", "9e37"]);
    world.did(["commit", "t"]);
    assert_eq!(world.text("a"), "theirs");
}
