//! `task`, `commit`, `rollback`, `checkpoint`.

use crate::world::World;

fn open_task() -> World {
    let world = World::new().file("a", "0");
    world.did(["task", "begin", "refactor"]);
    world.did(["--task", "refactor", "write", "a", "--text", "1"]);
    world.did(["--task", "refactor", "write", "b", "--text", "2"]);
    world
}

#[test]
fn a_task_begins_takes_writes_and_is_kept() {
    let world = World::new();
    insta::assert_snapshot!(world.cli(["task", "begin", "refactor", "--agent", "claude"]), @r"
    began task refactor
    hint: write into it with `--task refactor`; keep it with `backout commit refactor`, or take it back with `backout rollback refactor`
    ");
    insta::assert_snapshot!(world.cli(["--task", "refactor", "write", "a", "--text", "1"]), @"wrote a  (9e3779b9 in task refactor, undo with `backout undo 9e3779b9`)");
    insta::assert_snapshot!(world.cli(["commit"]), @"committed task refactor: 1 operation kept");
    insta::assert_snapshot!(world.cli(["task", "list"]), @"refactor  committed  just now  claude");
}

#[test]
fn a_task_without_a_name_gets_one() {
    insta::assert_snapshot!(World::new().cli(["task", "begin"]), @r"
    began task task-9e3779b9
    hint: write into it with `--task task-9e3779b9`; keep it with `backout commit task-9e3779b9`, or take it back with `backout rollback task-9e3779b9`
    ");
}

#[test]
fn a_task_is_rolled_back_whole() {
    let world = open_task();
    insta::assert_snapshot!(world.cli(["rollback", "refactor", "--dry-run"]), @r"
    would roll back 2 operations, newest first:
      3c6ef372  write b
                b  will be as before
      9e3779b9  write a
                a  will be as before
    hint: do it with `backout rollback refactor`
    ");
    insta::assert_snapshot!(world.cli(["rollback", "refactor"]), @"
    rolled back 3c6ef372  write b
      b  gone, as before
    rolled back 9e3779b9  write a
      a  restored
    hint: take this back with `backout redo daa66d2c`
    ");
    assert_eq!(world.text("a"), "0");
    assert!(!world.has("b"));
    insta::assert_snapshot!(world.cli(["task", "list"]), @"refactor  rolled-back  just now");
}

#[test]
fn the_task_of_the_environment_is_meant() {
    let world = open_task();
    let ran = world.run(world.command(&["rollback"]).env("BACKOUT_TASK", "refactor"));
    assert_eq!((ran.code, world.text("a").as_str()), (0, "0"), "{ran}");
}

#[test]
fn a_rollback_of_nothing_in_particular_is_a_wrong_question() {
    insta::assert_snapshot!(World::new().cli(["rollback"]), @r"
    error: it is not clear what to roll back
      next: name a task; see them with `backout task list`
      next: or a checkpoint with `--to`; see them with `backout checkpoint --list`
    [exit code 2]
    ");
}

#[test]
fn tasks_that_are_not_there_or_not_open_are_refused() {
    let world = open_task();
    insta::assert_snapshot!(world.cli(["--task", "other", "write", "a", "--text", "1"]), @r"
    error: there is no task `other`
      next: see them with `backout task list`
      next: begin it with `backout task begin other`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["task", "begin", "refactor"]), @r"
    error: the task `refactor` is open already
      next: write into it with `--task refactor`
      next: end it with `backout commit refactor` or `backout rollback refactor`
    [exit code 1]
    ");
    world.did(["task", "commit", "refactor"]);
    insta::assert_snapshot!(world.cli(["--task", "refactor", "write", "a", "--text", "1"]), @r"
    error: the task `refactor` has ended
      why: a task that was committed or rolled back takes no more operations
      next: begin another with `backout task begin NAME`
    [exit code 1]
    ");
}

#[test]
fn a_checkpoint_is_marked_listed_and_returned_to() {
    let world = World::new();
    world.did(["write", "a", "--text", "1"]);
    insta::assert_snapshot!(world.cli(["checkpoint", "before-tests", "--state", r#"{"step": 3}"#]), @"marked checkpoint before-tests  (return with `backout rollback --to before-tests`)");
    world.did(["write", "a", "--text", "2"]);
    world.did(["write", "b", "--text", "3"]);
    world.minutes(5);
    insta::assert_snapshot!(world.cli(["checkpoint", "--list"]), @r#"before-tests  5 min ago  after record 4  {"step":3}"#);
    insta::assert_snapshot!(world.cli(["rollback", "--to", "before-tests"]), @"
    rolled back daa66d2c  write b
      b  gone, as before
    rolled back 3c6ef372  write a
      a  restored
    hint: take this back with `backout redo 78dde6e5`
    ");
    insta::assert_snapshot!(world.cli(["rollback", "--to", "before-tests", "--committed"]), @r"
    error: there is nothing to undo
      next: see the operations with `backout log`
    [exit code 1]
    ");
    assert_eq!(world.text("a"), "1");
    assert!(!world.has("b"));
}

#[test]
fn the_state_of_a_checkpoint_is_json_from_the_line_or_a_file() {
    let world = World::new().file("state.json", "[1, 2]");
    world.did(["checkpoint", "one", "--state", "@state.json"]);
    insta::assert_snapshot!(world.cli(["checkpoint", "two", "--state", "{step: 3}"]), @r#"
    error: the state is not JSON
      why: key must be a string at line 1 column 2
      next: give JSON, like '{"step": 3}', or the name of a file as @FILE
    [exit code 2]
    "#);
    insta::assert_snapshot!(world.cli(["checkpoint", "--list"]), @"one  just now  after record 1  [1,2]");
}

#[test]
fn empty_lists_say_so() {
    let world = World::new();
    insta::assert_snapshot!(world.cli(["task", "list"]), @"no tasks");
    insta::assert_snapshot!(world.cli(["checkpoint", "--list"]), @"no checkpoints");
}

#[test]
fn a_rollback_in_conflict_says_what_to_type() {
    let world = open_task();
    world.put("b", "somebody else's");
    insta::assert_snapshot!(world.cli(["rollback", "refactor"]), @"
    error: nothing was rolled back
      why: `b`: content changed since (1 -> 15 bytes)
      next: see what would change back, and what others changed, with `backout rollback refactor --dry-run --diff`
      next: do the rest with `backout rollback refactor --partial`
      next: do it anyway with `backout rollback refactor --force` (what is there now is kept)
    [exit code 1]
    ");
    assert_eq!(world.text("a"), "1");
}
