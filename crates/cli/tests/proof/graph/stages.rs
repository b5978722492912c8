//! Stages and the graph: one that fails takes its changes of the graph along, and a broken rule of the graph can make one fail.

use serde_json::{Value, json};

use super::{asked, context, id, import, plan};
use crate::world::{World, said};

const MINE: [&str; 4] = ["--agent", "robin", "--task", "t"];

fn mine(words: &[&str]) -> Vec<String> {
    let all = MINE.iter().chain(words);
    all.map(|word| (*word).to_owned()).collect()
}

fn ok(world: &World, words: &[&str]) -> String {
    let words = mine(words);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    world.ok(&words)
}

fn nodes(world: &World) -> Value {
    let document: Value = serde_json::from_str(&world.ok(&["graph", "export"])).unwrap();
    let nodes = document["nodes"].as_array().unwrap().iter();
    nodes.map(|node| node["object"].clone()).collect()
}

/// A graph with a plan, and a stage in which a step of it was done and a file written.
fn begun() -> World {
    let world = World::new();
    world.ok(&["--agent", "robin", "task", "begin", "t"]);
    let objects = json!([
        context("active"),
        plan(2, "in_progress", &[(11, "pending")])
    ]);
    import(&world, "a.json", &objects, &[]).unwrap();
    ok(&world, &["stage", "begin", "build"]);
    ok(&world, &["write", "made", "--text", "made"]);
    let done = json!([plan(2, "in_progress", &[(11, "completed")])]);
    import(&world, "b.json", &done, &[&MINE[..], &["--force"]].concat()).unwrap();
    import(
        &world,
        "c.json",
        &json!([plan(3, "draft", &[(31, "pending")])]),
        &MINE,
    )
    .unwrap();
    world
}

#[test]
fn a_stage_that_fails_takes_its_changes_of_the_graph_along() {
    let world = begun();
    let after = nodes(&world);
    let told = ok(&world, &["stage", "end", "build", "--failed"]);
    assert!(
        told.contains("the project's graph is as it was, by digest"),
        "{told}"
    );
    let objects = nodes(&world);
    assert_eq!(objects.as_array().unwrap().len(), 2, "{objects}");
    assert!(objects.to_string().contains("\"pending\""), "{objects}");
    assert!(!world.path("made").exists());
    // What it was before is a version like any other.
    let words = told
        .split("what it was before is brought back by `backout ")
        .nth(1)
        .unwrap();
    let words: Vec<&str> = words.split('`').next().unwrap().split(' ').collect();
    world.ok(&words);
    assert_eq!(nodes(&world), after);
    world.check_store();
}

#[test]
fn a_stage_that_is_kept_or_waits_leaves_the_graph() {
    for option in ["--keep", "ask"] {
        let world = begun();
        let after = nodes(&world);
        if option == "ask" {
            world.file("backout.toml", "[triggers]\nplan-failure = 'ask'\n");
            let words = mine(&["stage", "end", "build", "--failed"]);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            assert_eq!(world.run(&words).status.code(), Some(1));
        } else {
            ok(&world, &["stage", "end", "build", "--failed", option]);
        }
        assert_eq!(nodes(&world), after, "{option}");
        if option == "ask" {
            ok(&world, &["stage", "end", "build", "--failed", "--rollback"]);
            assert_eq!(nodes(&world).as_array().unwrap().len(), 2);
        }
    }
}

#[test]
fn what_others_changed_in_the_graph_stays_and_is_told() {
    let world = begun();
    import(
        &world,
        "d.json",
        &json!([plan(4, "draft", &[(41, "pending")])]),
        &["--agent", "eve"],
    )
    .unwrap();
    let after = nodes(&world);
    let words = mine(&["stage", "end", "build", "--failed"]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let output = world.run(&words);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let told = said(&output);
    let why = format!(
        "the project's graph is not as it was: others changed {} in it since; `backout graph restore --at ",
        id(4)
    );
    assert!(told.contains(&why), "{told}");
    assert_eq!(nodes(&world), after);
    assert!(!world.path("made").exists(), "the files went all the same");
    let other = begun();
    import(
        &other,
        "d.json",
        &json!([plan(4, "draft", &[(41, "pending")])]),
        &["--agent", "eve"],
    )
    .unwrap();
    ok(&other, &["stage", "end", "build", "--failed", "--force"]);
    assert_eq!(nodes(&other).as_array().unwrap().len(), 2);
}

#[test]
fn a_graph_that_began_in_the_stage_goes_with_it() {
    let world = World::new();
    world.ok(&["--agent", "robin", "task", "begin", "t"]);
    ok(&world, &["stage", "begin", "build"]);
    import(&world, "a.json", &json!([context("active")]), &MINE).unwrap();
    ok(&world, &["stage", "end", "build", "--failed"]);
    assert_eq!(nodes(&world), json!([]));
}

#[test]
fn what_a_trace_tells_of_stays_and_is_told() {
    let world = begun();
    let trace = json!([{
        "meta": super::meta(), "trace_id": id(8), "context_id": id(1), "plan_id": id(3), "status": "running",
        "root_span": {"trace_id": id(8), "span_id": id(9)},
        "events": [{"event_id": id(10), "event_type": "x", "source": "t", "timestamp": "2025-01-01T00:00:00Z"}],
    }]);
    import(&world, "d.json", &trace, &MINE).unwrap();
    let words = mine(&["stage", "end", "build", "--failed"]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let output = world.run(&words);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let why = format!(
        "is not as it was: what happened since tells of {}, which stays",
        id(3)
    );
    assert!(said(&output).contains(&why), "{}", said(&output));
    // What nothing tells of is as it was.
    assert!(nodes(&world).to_string().contains("\"pending\""));
}

/// An update that breaks a rule of severity high.
fn broken() -> Value {
    let mut elsewhere = plan(5, "draft", &[(51, "pending")]);
    elsewhere["context_id"] = json!(id(99));
    json!([elsewhere])
}

#[test]
fn an_invariant_of_severity_high_rolls_a_stage_back_where_backout_toml_says_so() {
    let world = begun();
    world.file(
        "backout.toml",
        "[triggers]\npolicy-violation = 'rollback'\n",
    );
    let error = import(&world, "e.json", &broken(), &MINE).unwrap_err();
    assert_eq!(error["code"], "invariant-violated", "{error}");
    let why = error["why"].to_string();
    assert!(
        why.contains("`backout.toml` says that this is a rollback: the stage build was taken back, 1 operations and 1 targets"),
        "{error}"
    );
    let next = error["next"].to_string();
    assert!(
        next.contains("bring the stage's work back with `backout redo "),
        "{error}"
    );
    assert!(!world.path("made").exists());
    assert_eq!(nodes(&world).as_array().unwrap().len(), 2);
    let stage = &world.json(&["stage", "list"])["stages"][0];
    assert_eq!(stage["standing"], "rolled-back");
    let trigger = &stage["trigger"];
    assert_eq!(trigger["kind"], "policy-violation", "{stage}");
    assert_eq!(trigger["rule"], "sa_plan_context_binding", "{stage}");
    assert_eq!(
        trigger["why"],
        "the stage build failed: an update of the graph broke sa_plan_context_binding"
    );
    // The trace tells it as a rollback of its own.
    asked(&world, &["--json", "export", "--format", "mplp", "pack"]).unwrap();
    let timeline = world.read("pack/timeline.jsonl");
    let begun = timeline
        .lines()
        .find(|it| it.contains("rollback.initiated"));
    assert!(begun.unwrap().contains("policy-violation"), "{begun:?}");
    let act = stage["act"].as_str().unwrap();
    world.ok(&["redo", act]);
    assert_eq!(world.read("made"), "made");
}

#[test]
fn an_invariant_of_severity_high_lets_a_stage_wait_or_does_nothing() {
    let world = begun();
    world.file("backout.toml", "[triggers]\npolicy-violation = 'ask'\n");
    let error = import(&world, "e.json", &broken(), &MINE).unwrap_err();
    let why = error["why"].to_string();
    assert!(
        why.contains("`backout.toml` says that somebody decides: the stage build waits"),
        "{error}"
    );
    let next = error["next"].to_string();
    assert!(
        next.contains("see the stages with `backout stage list`"),
        "{error}"
    );
    assert_eq!(world.read("made"), "made");
    for rules in ["", "[triggers]\npolicy-violation = 'keep'\n"] {
        let world = begun();
        world.file("backout.toml", rules);
        import(&world, "e.json", &broken(), &MINE).unwrap_err();
        let stage = &world.json(&["stage", "list"])["stages"][0];
        assert_eq!(stage["standing"], "open", "{rules}");
    }
    // Whoever is in no stage loses nothing.
    let world = begun();
    world.file(
        "backout.toml",
        "[triggers]\npolicy-violation = 'rollback'\n",
    );
    import(&world, "e.json", &broken(), &["--agent", "eve"]).unwrap_err();
    assert_eq!(world.read("made"), "made");
}
