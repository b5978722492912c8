//! `log`, `show`, `diff`, `status`.

use crate::world::World;

/// Two agents on three files over three hours.
fn busy_world() -> World {
    let world = World::new();
    world.did([
        "--agent",
        "claude",
        "write",
        "app.toml",
        "--text",
        "port = 80\n",
    ]);
    world.minutes(60).did(["--agent", "claude", "mkdir", "src"]);
    world
        .minutes(70)
        .did(["--agent", "codex", "write", "notes.md", "--text", "plan\n"]);
    world.minutes(90).did([
        "--agent",
        "claude",
        "write",
        "src/main.rs",
        "--text",
        "fn main() {}\n",
    ]);
    world.minutes(100).did([
        "--agent", "claude", "edit", "app.toml", "-s", "80", "-r", "8080",
    ]);
    world.minutes(170).did([
        "--agent",
        "codex",
        "--depends-on",
        "@",
        "write",
        "notes.md",
        "--text",
        "done\n",
    ]);
    world.minutes(178).did(["undo", "@-2"]);
    world.minutes(180);
    world
}

#[test]
fn the_log_draws_what_was_built_on_what() {
    insta::assert_snapshot!(busy_world().cli(["log"]), @"");
}

#[test]
fn the_log_is_plain_without_the_graph() {
    insta::assert_snapshot!(busy_world().cli(["log", "--no-graph", "-n", "2"]), @"");
}

#[test]
fn the_log_lists_only_an_agent_or_a_path() {
    let world = busy_world();
    insta::assert_snapshot!(world.cli(["log", "--agent", "codex"]), @"");
    insta::assert_snapshot!(world.cli(["log", "src"]), @"");
}

#[test]
fn the_environment_says_who_asks_and_not_what_to_list() {
    let world = World::new();
    world.run(
        world
            .command(&["write", "a", "--text", "1"])
            .env("BACKOUT_AGENT", "claude"),
    );
    world.did(["write", "b", "--text", "2"]);
    insta::assert_snapshot!(world.run(world.command(&["log"]).env("BACKOUT_AGENT", "claude")), @"");
}

#[test]
fn a_name_that_would_move_the_cursor_is_shown_harmlessly() {
    let world = World::new();
    world.did(["write", "a\u{1b}[31m\nb", "--text", "x"]);
    insta::assert_snapshot!(world.cli(["log"]), @"");
}

#[test]
fn an_operation_is_shown_with_all_that_is_known_of_it() {
    let world = busy_world();
    insta::assert_snapshot!(world.cli(["show", "@-1"]), @"");
    insta::assert_snapshot!(world.cli(["show", "@-2"]), @"");
}

#[test]
fn a_difference_can_be_read_by_patch() {
    let world = busy_world();
    insta::assert_snapshot!(world.cli(["diff", "@-1"]), @"");
}

#[test]
fn a_difference_is_coloured_on_a_terminal() {
    let world = World::new().file("a", "one\ntwo\n");
    world.did(["edit", "a", "-s", "two", "-r", "2\u{1b}[2J"]);
    let shown = world.terminal(80, ["diff"]);
    insta::assert_snapshot!(shown.out.replace('\u{1b}', "^"), @"");
}

#[test]
fn status_tells_what_waits_what_is_new_and_what_is_kept() {
    let world = busy_world();
    world.did(["task", "begin", "refactor", "--agent", "claude"]);
    world.did([
        "--agent",
        "claude",
        "--task",
        "refactor",
        "write",
        "app.toml",
        "--text",
        "port = 1\n",
    ]);
    world.minutes(185);
    insta::assert_snapshot!(world.cli(["status"]), @"");
}

#[test]
fn an_empty_store_has_nothing_to_tell() {
    let world = World::new();
    insta::assert_snapshot!(world.cli(["log"]), @"");
    insta::assert_snapshot!(world.cli(["status"]), @"");
}
