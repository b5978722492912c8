//! One prompt is one unit.

use serde_json::{Value, json};

use crate::world::{World, passed, text};

fn prompts(world: &World) -> Vec<Value> {
    world.json(&["log", "--prompts"])["prompts"]
        .as_array()
        .unwrap()
        .clone()
}

/// Two prompts: the first makes two files, the second changes one and makes another.
fn told() -> World {
    let world = World::new();
    world.prompt("p1", "make two files");
    world.tool_writes("p1", "c1", "a.txt", "1");
    world.tool_writes("p1", "c2", "b.txt", "1");
    world.prompt("p2", "change a\nand make c");
    world.tool_writes("p2", "c3", "a.txt", "2");
    world.tool_writes("p2", "c4", "c.txt", "2");
    world
}

#[test]
fn the_last_prompt_is_taken_back_as_one_and_then_the_one_before() {
    let world = told();
    let all = prompts(&world);
    assert_eq!(all.len(), 2);
    assert_eq!(
        (&all[0]["text"], &all[0]["number"], &all[0]["in_effect"]),
        (&json!("change a\nand make c"), &json!(-1), &json!(2))
    );
    let listed = world.backout(&["log", "--prompts"]);
    assert!(
        listed.contains("-1") && listed.contains("change a…") && listed.contains("2 operations"),
        "{listed}"
    );
    world.backout(&["rollback", "--prompt", "-1"]);
    assert_eq!(world.read("a.txt"), "1");
    assert!(!world.path("c.txt").exists() && world.path("b.txt").exists());
    let all = prompts(&world);
    let listed = world.backout(&["log", "--prompts"]);
    assert!(listed.contains("2 operations, none in effect"), "{listed}");
    assert_eq!(
        (&all[0]["number"], &all[1]["number"]),
        (&Value::Null, &json!(-1))
    );
    world.backout(&["rollback", "--prompt", "-1"]);
    assert!(!world.path("a.txt").exists() && !world.path("b.txt").exists());
    let none = world
        .program()
        .args(["rollback", "--prompt", "-1"])
        .output()
        .unwrap();
    assert!(
        text(&none)
            .contains("there is no prompt -1 that has something in effect below this directory"),
        "{}",
        text(&none)
    );
}

#[test]
fn a_prompt_is_named_by_its_text_or_its_id() {
    let world = told();
    world.backout(&["rollback", "--prompt", "make c"]);
    assert_eq!(world.read("a.txt"), "1");
    let id = prompts(&world)[1]["id"].as_str().unwrap().to_owned();
    let two = world
        .program()
        .args(["rollback", "--prompt", "make"])
        .output()
        .unwrap();
    assert!(
        text(&two).contains("2 prompts are or say `make`")
            && text(&two).contains("it is not clear which one is meant"),
        "{}",
        text(&two)
    );
    let none = world
        .program()
        .args(["rollback", "--prompt", "nobody said this"])
        .output()
        .unwrap();
    assert!(
        text(&none).contains("no prompt is or says `nobody said this`"),
        "{}",
        text(&none)
    );
    world.backout(&["rollback", "--prompt", &id]);
    assert!(!world.path("a.txt").exists());
}

#[test]
fn an_earlier_prompt_takes_what_was_built_on_it_along() {
    let world = told();
    world.backout(&["rollback", "--prompt", "-2"]);
    assert!(!world.path("a.txt").exists() && !world.path("b.txt").exists());
    assert!(
        world.path("c.txt").exists(),
        "what was not built on it stays"
    );
}

#[test]
fn a_notice_and_nothing_go_on_with_the_prompt_before() {
    let world = World::new();
    world.prompt("p1", "start it in the background");
    world.prompt(
        "p2",
        "<task-notification>\n<task-id>1</task-id>\n</task-notification>",
    );
    world.tool_writes("p2", "c1", "a.txt", "1");
    world.prompt("p1", "");
    world.tool_writes("p1", "c2", "b.txt", "1");
    let all = prompts(&world);
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(all[0]["operations"], 2);
    world.backout(&["rollback", "--prompt", "-1"]);
    assert!(!world.path("a.txt").exists() && !world.path("b.txt").exists());
}

#[test]
fn a_sub_agents_work_belongs_to_the_prompt() {
    let world = World::new();
    world.prompt("p1", "have it done");
    let event = |name: &str| {
        let mut event = world.write_event(name, "c1", "sub.txt");
        event["agent_id"] = "sub1".into();
        event
    };
    passed(&world.hook("claude-code", &event("PreToolUse")));
    world.write("sub.txt", "x");
    passed(&world.hook("claude-code", &event("PostToolUse")));
    assert_eq!(prompts(&world)[0]["operations"], 1);
    let shown = world.backout(&["show", "@"]);
    assert!(
        shown.contains("by the sub-agent sub1, with the tool Write"),
        "{shown}"
    );
}

#[test]
fn prompts_of_other_projects_are_not_counted_here() {
    let world = told();
    let elsewhere = world.root().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let output = world
        .program()
        .current_dir(&elsewhere)
        .args(["rollback", "--prompt", "-1"])
        .output()
        .unwrap();
    assert!(!output.status.success());
    let listed = world
        .program()
        .current_dir(&elsewhere)
        .args(["log", "--prompts"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&listed.stdout), "no prompts\n");
    let all = world
        .program()
        .current_dir(&elsewhere)
        .args(["log", "--prompts", "--everywhere"])
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&all.stdout).contains("make two files"));
}

#[test]
fn a_prompt_whose_command_still_runs_is_not_taken_back_in_part() {
    let world = World::new();
    world.prompt("p1", "start it");
    world.tool_writes("p1", "c1", "a.txt", "1");
    let mut running = world.command_at_work("begun.txt");
    let refused = world
        .program()
        .args(["rollback", "--prompt", "-1"])
        .output()
        .unwrap();
    assert!(!refused.status.success(), "{}", text(&refused));
    assert!(world.path("a.txt").exists());
    std::fs::write(world.path("fifo"), "go\n").unwrap();
    assert!(running.wait().unwrap().success());
    std::fs::remove_file(world.path("fifo")).unwrap();
    world.backout(&["rollback", "--prompt", "-1"]);
    assert!(!world.path("a.txt").exists() && !world.path("begun.txt").exists());
}

#[test]
fn a_store_of_format_5_is_brought_over_and_takes_prompts() {
    let world = World::new();
    world.write("a.txt", "before");
    world.backout(&["write", "a.txt", "--text", "after"]);
    // What formats 6 and 7 added is taken away again: then it is one of format 5.
    let state = world.home().join(".local/state/backout");
    let journal = rusqlite::Connection::open(state.join("journal.sqlite")).unwrap();
    let older = "DROP TABLE note; DROP TABLE prompt; DROP INDEX operation_prompt;
        ALTER TABLE operation DROP COLUMN prompt; PRAGMA user_version = 5;";
    journal.execute_batch(older).unwrap();
    drop(journal);
    std::fs::write(state.join("lock"), "format 5\n").unwrap();
    world.prompt("p1", "go on");
    world.tool_writes("p1", "c1", "b.txt", "1");
    assert!(state.join("journal.sqlite.format-5").exists());
    assert_eq!(world.json(&["verify"])["findings"], json!([]));
    world.backout(&["rollback", "--prompt", "-1"]);
    assert!(!world.path("b.txt").exists());
    world.backout(&["undo"]);
    assert_eq!(world.read("a.txt"), "before");
}
