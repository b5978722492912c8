//! `log`, `show`, `diff`, `status`.

use std::process::Stdio;

use crate::world::{Ran, World};

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
    insta::assert_snapshot!(busy_world().cli(["log"]), @r"
    ╭◇         53845412   2 min ago  committed          undo of write src/main.rs
    │  ╭●─╮    b54cda58  10 min ago  committed  codex   write notes.md
    │  ├● │    1715609f     1 h ago  committed  claude  edit app.toml
    ├○ │  │    78dde6e5     1 h ago  undone     claude  write src/main.rs
    │  │  ╰●   daa66d2c     1 h ago  committed  codex   write notes.md
    ╰● │       3c6ef372     2 h ago  committed  claude  make directory src
       ╰●      9e3779b9     3 h ago  committed  claude  write app.toml
    ");
}

#[test]
fn the_log_is_plain_without_the_graph() {
    insta::assert_snapshot!(busy_world().cli(["log", "--no-graph", "-n", "2"]), @r"
    ◇  53845412   2 min ago  committed         undo of write src/main.rs
    ●  b54cda58  10 min ago  committed  codex  write notes.md
    hint: there may be more: list all with `backout log -n 0`
    ");
}

#[test]
fn the_log_lists_only_an_agent_or_a_path() {
    let world = busy_world();
    insta::assert_snapshot!(world.cli(["log", "--agent", "codex"]), @r"
    ╭●   b54cda58  10 min ago  committed  codex  write notes.md
    ╰●   daa66d2c     1 h ago  committed  codex  write notes.md
    ");
    insta::assert_snapshot!(world.cli(["log", "src"]), @r"
    ╭◇   53845412  2 min ago  committed          undo of write src/main.rs
    ├○   78dde6e5    1 h ago  undone     claude  write src/main.rs
    ╰●   3c6ef372    2 h ago  committed  claude  make directory src
    ");
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
    insta::assert_snapshot!(world.run(world.command(&["log"]).env("BACKOUT_AGENT", "claude")), @r"
    ●  3c6ef372  just now  committed          write b
    ●  9e3779b9  just now  committed  claude  write a
    ");
}

#[test]
fn a_name_that_would_move_the_cursor_is_shown_harmlessly() {
    let world = World::new();
    world.did(["write", "a\u{1b}[31m\nb", "--text", "x"]);
    insta::assert_snapshot!(world.cli(["log"]), @r"●  9e3779b9  just now  committed  write a\u{1b}[31m\nb");
}

#[test]
fn an_operation_is_shown_with_all_that_is_known_of_it() {
    let world = busy_world();
    insta::assert_snapshot!(world.cli(["show", "@-1"]), @"
    1715609f  edit app.toml
      id        1715609f7c746c69
      status    committed
      when      2027-01-15 09:40:00 UTC (1 h ago)
      agent     claude
      target    app.toml  as this operation left it
      built on  9e3779b9  writes the same target
      base of   b54cda58
      strategy  snapshot  small enough to keep whole (size 10)
      cost      22 B stored
      journal   13 intent, 14 applied, 15 commit
    hint: see what it changed with `backout diff 1715609f`
    hint: see what an undo would do with `backout undo 1715609f --dry-run`
    ");
    insta::assert_snapshot!(world.cli(["show", "@-2"]), @"
    78dde6e5  write src/main.rs
      id        78dde6e5fd29f054
      status    undone by 53845412
      when      2027-01-15 09:30:00 UTC (1 h ago)
      agent     claude
      target    src/main.rs  taken back by 53845412
      built on  3c6ef372  writes inside its directory
      strategy  snapshot  small enough to keep whole (size 0)
      cost      13 B stored
      journal   10 intent, 11 applied, 12 commit, 22 undone
    ");
}

#[test]
fn a_difference_can_be_read_by_patch() {
    let world = busy_world();
    insta::assert_snapshot!(world.cli(["diff", "@-1"]), @"
    changed app.toml
    --- a/app.toml
    +++ b/app.toml
    @@ -1 +1 @@
    -port = 80
    +port = 8080
    ");
}

#[test]
fn a_difference_is_coloured_on_a_terminal() {
    let world = World::new().file("a", "one\ntwo\n");
    world.did(["edit", "a", "-s", "two", "-r", "2\u{1b}[2J"]);
    let shown = world.terminal(80, ["diff"]);
    insta::assert_snapshot!(shown.out.replace('\u{1b}', "^"), @r"
    ^[1mchanged a^[0m
    ^[1m--- a/a^[0m
    ^[1m+++ b/a^[0m
    ^[36m@@ -1,2 +1,2 @@^[0m
     one
    ^[1m^[31m-two^[0m
    ^[32m+2\u{1b}[2J^[0m
    ");
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
    let status = world.cli(["status"]).to_string();
    // How much room a database takes is its own affair.
    let (before, after) = status.split_once("undone; ").unwrap();
    let (size, after) = after.split_once('\n').unwrap();
    assert!(size.ends_with(" KiB"), "{size}");
    insta::assert_snapshot!(format!("{before}undone; [size]\n{after}"), @"
    open tasks:
      refactor  claude  began 5 min ago
    newest:
    ╭●         f1bbcdcb   5 min ago  applied    claude  refactor  write app.toml
    │  ╭◇      53845412   7 min ago  committed                    undo of write src/main.rs
    ├──│───●   b54cda58  15 min ago  committed  codex             write notes.md
    ╰● │       1715609f     1 h ago  committed  claude            edit app.toml
       ╰○      78dde6e5     1 h ago  undone     claude            write src/main.rs
    store:
      journal    8 operations: 1 applied, 6 committed, 1 undone; [size]
      images     54 B of 2.0 GiB
      directory  $WORLD/state
    hint: keep the task with `backout commit refactor`, or take it back with `backout rollback refactor`
    ");
}

#[test]
fn an_empty_store_has_nothing_to_tell() {
    let world = World::new();
    insta::assert_snapshot!(world.cli(["log"]), @"no operations");
    insta::assert_snapshot!(world.cli(["status"]), @"
    store:
      journal    no operations yet
      images     0 B of 2.0 GiB
      directory  $WORLD/state
    ");
}

#[test]
fn whoever_only_looks_makes_no_store_and_is_answered_as_by_an_empty_one() {
    let (absent, empty) = (World::new().file("f", "0"), World::new().file("f", "0"));
    let state = absent.place("state");
    empty.did(["recover"]);
    let looks: [&[&str]; 22] = [
        &["log"],
        &["log", "--json"],
        &["status"],
        &["status", "--json"],
        &["verify"],
        &["verify", "--json"],
        &["show", "@"],
        &["diff"],
        &["diff", "@"],
        &["undo", "-n"],
        &["undo", "f", "-n"],
        &["redo", "--dry-run"],
        &["rollback", "t", "-n"],
        &["undo"],
        &["undo", "f"],
        &["undo", "@"],
        &["redo"],
        &["rollback", "t"],
        &["gc", "-n"],
        &["task", "list"],
        &["checkpoint", "--list"],
        &["try", "--list"],
    ];
    for look in looks {
        let told = absent.run(absent.command(look).stdin(Stdio::null()));
        let wanted = empty.run(empty.command(look).stdin(Stdio::null()));
        let plain = |ran: &Ran| without_sizes(&ran.to_string());
        assert_eq!(plain(&told), plain(&wanted), "{look:?}");
        assert_eq!(told.code, wanted.code, "{look:?}");
        assert!(!state.exists(), "{look:?}");
    }
    let told = absent.run(absent.command(&["export"]).stdin(Stdio::null()));
    assert_eq!((told.code, told.out.as_str()), (0, ""), "{told}");
    assert!(!state.exists());
    let told = absent.run(absent.command(&["doctor"]).stdin(Stdio::null()));
    let said = "ok  privacy       there is no state directory yet; it is made closed to others";
    assert!(told.to_string().contains(said), "{told}");
    assert_eq!(told.code, empty.cli(["doctor"]).code, "{told}");
    assert!(!state.exists());
    absent.did(["write", "f", "--text", "1"]);
    assert!(state.exists());
}

/// An empty journal takes room on the disk, and one that is not there does not.
fn without_sizes(text: &str) -> String {
    let Some((begin, rest)) = text.split_once("\"journal_bytes\":") else {
        return text.to_owned();
    };
    let (_, end) = rest.split_once(',').unwrap();
    format!("{begin}{end}")
}

#[test]
fn a_relative_state_directory_in_the_environment_is_refused() {
    let world = World::new();
    let mut command = world.command(&["write", "f", "--text", "1"]);
    command
        .env("BACKOUT_STATE_DIR", "state")
        .stdin(Stdio::null());
    insta::assert_snapshot!(world.run(&mut command), @"
    error: the environment variable BACKOUT_STATE_DIR cannot be used
      why: `state` is a relative path: it would be another store in each directory
      next: set it to an absolute path, or take it away
    [exit code 2]
    ");
    assert!(!world.has("f") && !world.has("state"));
}
