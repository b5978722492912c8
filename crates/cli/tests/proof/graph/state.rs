//! The graph in the journal: read after write, versions, refusals, two who update, files edited by hand, many nodes.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{asked, context, id, import, plan, validated};
use crate::world::{World, said};

fn version(world: &World, node: &str) -> Option<u64> {
    let view = asked(world, &["--json", "graph", "show"]).unwrap();
    let nodes = view["nodes"].as_array().unwrap();
    let found = nodes.iter().find(|it| it["id"] == node)?;
    found["version"].as_u64()
}

#[test]
fn what_is_written_is_read_and_follows_the_schemas() {
    let world = World::in_memory();
    assert_eq!(world.ok(&["graph", "show"]), "the graph is empty\n");
    let role = json!({"meta": super::meta(), "role_id": id(7), "name": "coder"});
    let steps = [(11, "completed"), (12, "in_progress"), (13, "pending")];
    let objects = json!([context("active"), plan(2, "in_progress", &steps), role]);
    let updated = import(&world, "objects.json", &objects, &[]).unwrap();
    assert_eq!(updated["written"].as_array().unwrap().len(), 3);
    let shown = world.ok(&["graph", "show"]);
    for word in ["context", "plan", "step 12", "Sell more", "ASSIGNED_TO"] {
        assert!(shown.contains(word), "{shown}");
    }
    // Out again, the objects are the same, and a validator of others likes them.
    let document: Value = serde_json::from_str(&world.ok(&["graph", "export"])).unwrap();
    let nodes = document["nodes"].as_array().unwrap();
    let pairs: Vec<(String, &Value)> = nodes
        .iter()
        .map(|node| {
            let kind = node["kind"].as_str().unwrap();
            (format!("mplp-{kind}.schema.json"), &node["object"])
        })
        .collect();
    let pairs: Vec<(&str, &Value)> = pairs
        .iter()
        .map(|(name, it)| (name.as_str(), *it))
        .collect();
    assert_eq!(validated(&pairs), Ok(3));
    for object in objects.as_array().unwrap() {
        assert!(nodes.iter().any(|node| node["object"] == *object));
    }
    let same = import(&world, "export.json", &document, &[]).unwrap();
    assert_eq!(same["written"], json!([]));
    assert!(world.ok(&["graph", "check"]).contains("all is well"));
    world.check_store();
}

#[test]
fn what_cannot_be_is_refused_and_nothing_is_written() {
    let world = World::in_memory();
    let objects = json!([context("active"), plan(2, "draft", &[(11, "completed")])]);
    import(&world, "a.json", &objects, &[]).unwrap();
    // A refused update is noted, so the place moves on; nothing else does.
    let nodes = || {
        let document: Value = serde_json::from_str(&world.ok(&["graph", "export"])).unwrap();
        [document["nodes"].clone(), document["edges"].clone()]
    };
    let before = nodes();
    let mut circle = plan(3, "draft", &[(21, "pending"), (22, "pending")]);
    circle["steps"][0]["dependencies"] = json!([id(22)]);
    let mut foreign = plan(3, "draft", &[(21, "pending")]);
    foreign["steps"][0]["dependencies"] = json!([id(11)]);
    let mut elsewhere = plan(3, "draft", &[(21, "pending")]);
    elsewhere["context_id"] = json!(id(99));
    let mut more = context("active");
    more["mood"] = json!("good");
    let mut ended = plan(2, "draft", &[(11, "pending")]);
    ended["steps"][0]["status"] = json!("pending");
    for (object, options, code, why) in [
        (circle, &[][..], "graph-refused", "wait for each other"),
        (foreign, &[], "graph-refused", "a step of another plan"),
        (
            plan(3, "draft", &[(11, "pending")]),
            &[],
            "graph-refused",
            "is there already",
        ),
        (
            elsewhere,
            &[],
            "invariant-violated",
            "sa_plan_context_binding",
        ),
        (
            more,
            &["--force"],
            "graph-refused",
            "does not follow its schema",
        ),
        (
            ended,
            &["--force"],
            "graph-refused",
            "does not change any more",
        ),
        (context("draft"), &[], "graph-conflict", "nobody said"),
        (
            context("draft"),
            &["--expect", "7"],
            "graph-conflict",
            "not 7",
        ),
    ] {
        let error = import(&world, "b.json", &object, options).unwrap_err();
        assert_eq!(error["code"], code, "{error:#}");
        assert!(error["why"].to_string().contains(why), "{error:#}");
        assert_eq!(nodes(), before);
    }
    let error = asked(&world, &["--json", "graph", "remove", &id(99)]).unwrap_err();
    assert_eq!(error["code"], "unknown-node");
    world.check_store();
}

#[test]
fn a_file_that_was_edited_by_hand_is_looked_at() {
    let world = World::in_memory();
    import(
        &world,
        "a.json",
        &json!([context("active"), plan(2, "draft", &[(11, "pending")])]),
        &[],
    )
    .unwrap();
    let document: Value = serde_json::from_str(&world.ok(&["graph", "export"])).unwrap();
    // An object that was changed in its file is the next version.
    let mut edited = document.clone();
    edited["nodes"][0]["object"]["title"] = json!("Another");
    let updated = import(&world, "b.json", &edited, &[]).unwrap();
    assert_eq!(updated["written"].as_array().unwrap().len(), 1);
    // The same file once more is late: somebody else was faster, namely we.
    edited["nodes"][0]["object"]["title"] = json!("A third");
    let error = import(&world, "c.json", &edited, &[]).unwrap_err();
    assert_eq!(error["code"], "graph-conflict");
    let mut edge = document.clone();
    edge["edges"][0]["to"] = json!(id(2));
    let error = import(&world, "d.json", &edge, &[]).unwrap_err();
    assert!(
        error["why"]
            .to_string()
            .contains("does not follow from the objects"),
        "{error:#}"
    );
    let mut unknown = document;
    unknown["nodes"][0]["colour"] = json!("red");
    let error = import(&world, "e.json", &unknown, &[]).unwrap_err();
    assert_eq!(error["what"], "the graph's file cannot be read");
    world.file("f.json", "{");
    let error = asked(&world, &["--json", "graph", "import", "f.json"]).unwrap_err();
    assert_eq!(error["what"], "`f.json` is not JSON");
}

#[test]
fn of_two_who_follow_one_version_one_is_told() {
    let world = World::in_memory();
    import(&world, "a.json", &context("active"), &[]).unwrap();
    for round in 1..=5_u64 {
        let each: Vec<Result<Value, Value>> = thread::scope(|scope| {
            let agents: Vec<_> = (0..4)
                .map(|agent| {
                    let world = &world;
                    scope.spawn(move || {
                        let mut object = context("active");
                        object["title"] = json!(format!("by {agent} in {round}"));
                        let name = format!("{agent}.json");
                        import(world, &name, &object, &["--expect", &round.to_string()])
                    })
                })
                .collect();
            agents.into_iter().map(|it| it.join().unwrap()).collect()
        });
        let late: Vec<&Value> = each.iter().filter_map(|it| it.as_ref().err()).collect();
        assert_eq!(late.len(), 3, "{each:?}");
        assert!(
            late.iter().all(|it| it["code"] == "graph-conflict"),
            "{late:?}"
        );
        assert_eq!(version(&world, &id(1)), Some(round + 1));
    }
    world.check_store();
}

#[test]
fn a_restore_is_a_new_version() {
    let world = World::in_memory();
    import(
        &world,
        "a.json",
        &json!([
            context("active"),
            plan(2, "in_progress", &[(11, "pending")])
        ]),
        &[],
    )
    .unwrap();
    let then = asked(&world, &["--json", "graph", "show"]).unwrap();
    world.ok(&["checkpoint", "before"]);
    import(
        &world,
        "b.json",
        &plan(2, "failed", &[(11, "failed")]),
        &["--force"],
    )
    .unwrap();
    import(&world, "c.json", &plan(3, "draft", &[(21, "pending")]), &[]).unwrap();
    let dry = asked(
        &world,
        &["--json", "graph", "restore", "--to", "before", "--dry-run"],
    )
    .unwrap();
    assert_eq!(dry["is_dry_run"], true);
    assert_eq!(version(&world, &id(2)), Some(2));
    let restored = asked(&world, &["--json", "graph", "restore", "--to", "before"]).unwrap();
    assert_eq!(restored["digest"], then["digest"]);
    assert_eq!(version(&world, &id(2)), Some(3));
    assert_eq!(version(&world, &id(3)), None);
    // What was there in between can still be seen.
    let lsn = (restored["lsn"].as_u64().unwrap() - 2).to_string();
    let between = world.ok(&["graph", "show", "--at", &lsn]);
    assert!(between.contains("failed"), "{between}");
    let again = world.ok(&["graph", "restore", "--to", "before"]);
    assert!(again.contains("already"), "{again}");
    world.check_store();
}

#[test]
fn a_hundred_thousand_nodes_take_bounded_time() {
    const LIMIT: Duration = Duration::from_mins(4);
    let world = World::in_memory();
    let steps: Vec<(u32, &str)> = (0..100_000).map(|at| (1000 + at, "pending")).collect();
    let objects = json!([context("active"), plan(2, "draft", &steps)]);
    let start = Instant::now();
    import(&world, "large.json", &objects, &[]).unwrap();
    let imported = start.elapsed();
    let start = Instant::now();
    let view = asked(&world, &["--json", "graph", "show"]).unwrap();
    let shown = start.elapsed();
    assert_eq!(view["nodes"].as_array().unwrap().len(), 100_002);
    let start = Instant::now();
    let mut second = context("active");
    second["context_id"] = json!(id(3));
    import(&world, "small.json", &second, &[]).unwrap();
    let updated = start.elapsed();
    println!("import {imported:?}, show {shown:?}, small update {updated:?}");
    assert!(
        imported + shown + updated < LIMIT,
        "{imported:?} {shown:?} {updated:?}"
    );
}

#[test]
fn objects_and_events_of_others_are_checked() {
    let world = World::in_memory();
    let mut sample = json!({
        "sample_id": id(1), "sample_family": "delta_impact", "created_at": "2025-01-01T00:00:00Z",
        "input": {"delta_id": "d"}, "output": {"impact_scope": "everything"}, "state": {"risk_level": "low"},
    });
    world.file("sample.json", &sample.to_string());
    let output = world.run(&["--json", "graph", "check", "sample.json"]);
    assert_eq!(output.status.code(), Some(1));
    let checked: Value = serde_json::from_slice(&output.stdout).unwrap();
    let flaws = checked["flaws"].as_array().unwrap();
    assert!(
        flaws
            .iter()
            .any(|it| it["invariant"] == "learning_delta_scope_valid"),
        "{checked:#}"
    );
    sample["output"] = json!({"impact_scope": "local"});
    let tool =
        json!({"tool_id": "t", "tool_kind": "other", "invocation_id": id(1), "status": "failed"});
    world.file(
        "lines.jsonl",
        &format!("{sample}\n{tool}\n{}\n", json!({"a": 1})),
    );
    let output = world.run(&["graph", "check", "lines.jsonl"]);
    assert_eq!(output.status.code(), Some(1));
    let told = said(&output);
    assert!(told.contains("nothing says what it is"), "{told}");
}
