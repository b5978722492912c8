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
    insta::assert_snapshot!(world.cli(["task", "begin", "refactor", "--agent", "claude"]), @"");
    insta::assert_snapshot!(world.cli(["--task", "refactor", "write", "a", "--text", "1"]), @"");
    insta::assert_snapshot!(world.cli(["commit"]), @"");
    insta::assert_snapshot!(world.cli(["task", "list"]), @"");
}

#[test]
fn a_task_without_a_name_gets_one() {
    insta::assert_snapshot!(World::new().cli(["task", "begin"]), @"");
}

#[test]
fn a_task_is_rolled_back_whole() {
    let world = open_task();
    insta::assert_snapshot!(world.cli(["rollback", "refactor", "--dry-run"]), @"");
    insta::assert_snapshot!(world.cli(["rollback", "refactor"]), @"");
    assert_eq!(world.text("a"), "0");
    assert!(!world.has("b"));
    insta::assert_snapshot!(world.cli(["task", "list"]), @"");
}

#[test]
fn the_task_of_the_environment_is_meant() {
    let world = open_task();
    let ran = world.run(world.command(&["rollback"]).env("BACKOUT_TASK", "refactor"));
    assert_eq!((ran.code, world.text("a").as_str()), (0, "0"), "{ran}");
}

#[test]
fn a_rollback_of_nothing_in_particular_is_a_wrong_question() {
    insta::assert_snapshot!(World::new().cli(["rollback"]), @"");
}

#[test]
fn tasks_that_are_not_there_or_not_open_are_refused() {
    let world = open_task();
    insta::assert_snapshot!(world.cli(["--task", "other", "write", "a", "--text", "1"]), @"");
    insta::assert_snapshot!(world.cli(["task", "begin", "refactor"]), @"");
    world.did(["task", "commit", "refactor"]);
    insta::assert_snapshot!(world.cli(["--task", "refactor", "write", "a", "--text", "1"]), @"");
}

#[test]
fn a_checkpoint_is_marked_listed_and_returned_to() {
    let world = World::new();
    world.did(["write", "a", "--text", "1"]);
    insta::assert_snapshot!(world.cli(["checkpoint", "before-tests", "--state", r#"{"step": 3}"#]), @"");
    world.did(["write", "a", "--text", "2"]);
    world.did(["write", "b", "--text", "3"]);
    world.minutes(5);
    insta::assert_snapshot!(world.cli(["checkpoint", "--list"]), @"");
    insta::assert_snapshot!(world.cli(["rollback", "--to", "before-tests"]), @"");
    insta::assert_snapshot!(world.cli(["rollback", "--to", "before-tests", "--committed"]), @"");
    assert_eq!(world.text("a"), "1");
    assert!(!world.has("b"));
}

#[test]
fn the_state_of_a_checkpoint_is_json_from_the_line_or_a_file() {
    let world = World::new().file("state.json", "[1, 2]");
    world.did(["checkpoint", "one", "--state", "@state.json"]);
    insta::assert_snapshot!(world.cli(["checkpoint", "two", "--state", "{step: 3}"]), @"");
    insta::assert_snapshot!(world.cli(["checkpoint", "--list"]), @"");
}

#[test]
fn empty_lists_say_so() {
    let world = World::new();
    insta::assert_snapshot!(world.cli(["task", "list"]), @"");
    insta::assert_snapshot!(world.cli(["checkpoint", "--list"]), @"");
}
