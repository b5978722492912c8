//! Calls of which nobody says that they are over: what others did meanwhile is not their work, and what they did is told first.

use serde_json::{Value, json};

use crate::world::{World, passed, text};

fn begins(world: &World, prompt: &str, call: &str, file: &str) {
    told(world, "PreToolUse", prompt, call, file);
}

fn ends(world: &World, prompt: &str, call: &str, file: &str) {
    told(world, "PostToolUse", prompt, call, file);
}

fn told(world: &World, name: &str, prompt: &str, call: &str, file: &str) {
    let mut event = world.write_event(name, call, file);
    event["prompt_id"] = prompt.into();
    passed(&world.hook("claude-code", &event));
}

fn stops(world: &World, prompt: &str) {
    let event = world.event("Stop", &json!({"prompt_id": prompt}));
    passed(&world.hook("claude-code", &event));
}

fn refused(world: &World, words: &[&str]) -> String {
    let output = world.program().args(words).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    text(&output)
}

fn statuses(world: &World) -> Vec<Value> {
    let operations = world.operations().into_iter();
    operations.map(|it| it["status"].clone()).collect()
}

#[test]
fn a_call_that_the_user_refused_is_not_given_what_another_agent_wrote() {
    let world = World::new();
    world.write("a", "base");
    world.prompt("p1", "change it");
    begins(&world, "p1", "c1", "a");
    world.backout(&["--agent", "other", "write", "a", "--text", "other"]);
    stops(&world, "p1");
    assert_eq!(statuses(&world), ["committed", "aborted"]);
    assert_eq!(world.operations()[0]["agent"], "other");
    refused(&world, &["rollback", "--prompt", "-1"]);
    assert_eq!(world.read("a"), "other");
}

#[test]
fn what_a_call_wrote_before_another_agent_did_is_told_before_it() {
    let world = World::new();
    world.write("a", "base");
    world.prompt("p1", "change it");
    begins(&world, "p1", "c1", "a");
    world.write("a", "first");
    world.backout(&["--agent", "other", "write", "a", "--text", "other"]);
    stops(&world, "p1");
    assert_eq!(statuses(&world), ["committed", "committed"]);
    world.backout(&["undo"]);
    assert_eq!(world.read("a"), "first");
    world.backout(&["rollback", "--prompt", "-1"]);
    assert_eq!(world.read("a"), "base");
}

#[test]
fn what_a_call_wrote_before_a_command_did_is_not_lost() {
    for agent in ["claude-code", "other"] {
        let world = World::new();
        world.write("a", "base");
        world.prompt("p1", "change it");
        begins(&world, "p1", "c1", "a");
        world.write("a", "first");
        let session = if agent == "other" { "s2" } else { "s1" };
        let mut words = vec!["--agent", agent, "run", "--session", session, "--"];
        words.extend(["/bin/sh", "-c", "printf second > a"]);
        world.backout(&words);
        stops(&world, "p1");
        assert_eq!(statuses(&world), ["committed", "committed"], "{agent}");
        world.backout(&["rollback", "--prompt", "-1"]);
        assert_eq!(world.read("a"), "base", "{agent}");
    }
}

#[test]
fn what_a_call_wrote_over_another_agents_work_is_built_on_that() {
    let world = World::new();
    world.write("a", "base\n");
    world.prompt("p1", "change it");
    begins(&world, "p1", "c1", "a");
    world.backout(&["--agent", "other", "write", "a", "--text", "other\n"]);
    world.write("a", "mine\n");
    ends(&world, "p1", "c1", "a");
    let mine = world.operations();
    let mine = mine.iter().find(|it| it["agent"] == "claude-code").unwrap();
    let shown = world.backout(&["diff", mine["id"].as_str().unwrap()]);
    assert!(!shown.contains("-base"), "{shown}");
    world.backout(&["rollback", "--prompt", "-1"]);
    assert_eq!(world.read("a"), "other\n");
    world.backout(&["undo"]);
    assert_eq!(world.read("a"), "base\n");
}

#[test]
fn the_next_call_on_a_file_settles_the_one_that_was_refused() {
    let world = World::new();
    world.write("a", "base");
    world.prompt("p1", "change it");
    begins(&world, "p1", "c1", "a");
    begins(&world, "p1", "c2", "a");
    world.write("a", "new");
    ends(&world, "p1", "c2", "a");
    stops(&world, "p1");
    assert_eq!(statuses(&world), ["committed", "aborted"]);
    world.backout(&["rollback", "--prompt", "-1"]);
    assert_eq!(world.read("a"), "base");
}

#[test]
fn the_next_call_on_a_file_settles_the_one_that_wrote_and_was_never_told() {
    let world = World::new();
    world.write("a", "base\n");
    world.prompt("p1", "change it twice");
    begins(&world, "p1", "c1", "a");
    world.write("a", "first\n");
    begins(&world, "p1", "c2", "a");
    world.write("a", "second\n");
    ends(&world, "p1", "c2", "a");
    stops(&world, "p1");
    let shown = world.backout(&["diff", "@-1"]);
    assert!(
        shown.contains("-base") && shown.contains("+first"),
        "{shown}"
    );
    world.backout(&["undo"]);
    assert_eq!(world.read("a"), "first\n");
    world.backout(&["undo"]);
    assert_eq!(world.read("a"), "base\n");
}

#[test]
fn the_last_prompt_is_the_last_also_while_a_call_of_it_is_open() {
    let world = World::new();
    world.write("b", "base");
    world.prompt("p1", "make a");
    world.tool_writes("p1", "c1", "a", "one");
    stops(&world, "p1");
    world.prompt("p2", "change b");
    begins(&world, "p2", "c2", "b");
    // A call that has done nothing may be one that the user said no to.
    let all = world.json(&["log", "--prompts"]);
    assert_eq!(all["prompts"][0]["text"], "make a");
    world.write("b", "two");
    let all = world.json(&["log", "--prompts"]);
    assert_eq!(all["prompts"][0]["text"], "change b");
    assert_eq!(all["prompts"][0]["number"], -1);
    let planned = world.backout(&["rollback", "--prompt", "-1", "-n"]);
    assert!(
        planned.contains('b') && world.read("b") == "two",
        "{planned}"
    );
    world.backout(&["rollback", "--prompt", "-1"]);
    assert_eq!(world.read("b"), "base");
    assert_eq!(world.read("a"), "one");
}

#[test]
fn the_last_prompt_is_the_last_also_while_its_command_runs() {
    let world = World::new();
    world.prompt("p1", "make a");
    world.tool_writes("p1", "c1", "a", "one");
    world.prompt("p2", "start it");
    let mut running = world.command_at_work("begun");
    for more in [&["-n"][..], &[]] {
        let words = [&["rollback", "--prompt", "-1"], more].concat();
        let said = refused(&world, &words);
        assert!(
            said.contains("is still at work") && said.contains("wait for it"),
            "{said}"
        );
        assert_eq!(world.read("a"), "one");
    }
    std::fs::write(world.path("fifo"), "go\n").unwrap();
    assert!(running.wait().unwrap().success());
}

#[test]
fn two_calls_at_once_that_need_a_new_directory_are_taken_back_in_any_order_they_end() {
    for order in [["d/x", "d/y"], ["d/y", "d/x"]] {
        let world = World::new();
        world.prompt("p1", "make two");
        begins(&world, "p1", "x", "d/x");
        begins(&world, "p1", "y", "d/y");
        std::fs::create_dir(world.path("d")).unwrap();
        world.write("d/x", "x");
        world.write("d/y", "y");
        for file in order {
            ends(&world, "p1", &file[2..], file);
        }
        stops(&world, "p1");
        world.backout(&["undo"]);
        assert!(!world.path(order[1]).exists() && world.path(order[0]).exists());
        world.backout(&["redo"]);
        world.backout(&["rollback", "--prompt", "-1"]);
        assert!(!world.path("d").exists(), "{order:?}");
    }
}
