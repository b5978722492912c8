//! The chapter on drift and rollback, end to end, with its four sections as test names.

use std::fs;

use serde_json::{Value, json};

use super::evidence::{exported, names, rolled_back, story, timeline};
use super::{asked, context, id, import, plan};
use crate::world::World;

/// 3.4: on every update the rules are carried out; a violation is told as drift, and a grave one lets nothing pass.
#[test]
fn section_3_drift_detection() {
    let world = World::in_memory();
    let updated = import(&world, "draft.json", &context("draft"), &[]).unwrap();
    let violation = &updated["written"][0]["violations"][0];
    assert_eq!(violation["invariant"], "sa_context_must_be_active");
    assert_eq!(violation["severity"], "medium");
    let mut lost = plan(2, "draft", &[(11, "pending")]);
    lost["context_id"] = json!(id(99));
    let error = import(&world, "lost.json", &lost, &[]).unwrap_err();
    assert_eq!(error["code"], "invariant-violated");
    import(
        &world,
        "active.json",
        &context("active"),
        &["--expect", "1"],
    )
    .unwrap();
    let events = timeline(&exported(&world, "pack"));
    let drifts: Vec<&Value> = events
        .iter()
        .filter(|it| it["event_type"].as_str().unwrap().starts_with("drift."))
        .collect();
    let told: Vec<(&str, &str, &str)> = drifts
        .iter()
        .map(|it| {
            let payload = &it["payload"];
            assert_eq!(payload["drift_type"], "invariant_violation");
            (
                it["event_type"].as_str().unwrap(),
                payload["invariant_id"].as_str().unwrap(),
                payload["severity"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("drift.detected", "sa_context_must_be_active", "medium"),
            ("drift.detected", "sa_plan_context_binding", "high"),
            ("drift.resolved", "sa_context_must_be_active", "medium"),
        ]
    );
    world.check_store();
}

/// 4.2: a snapshot of the graph, and going back to it as a new version.
#[test]
fn section_4_2_snapshots() {
    let world = story();
    world.ok(&["checkpoint", "failed"]);
    let failed = asked(&world, &["--json", "graph", "show"]).unwrap();
    let first = failed["lsn"].as_u64().unwrap();
    import(
        &world,
        "more.json",
        &plan(3, "draft", &[(21, "pending")]),
        &[],
    )
    .unwrap();
    let back = asked(&world, &["--json", "graph", "restore", "--to", "failed"]).unwrap();
    assert_eq!(back["digest"], failed["digest"]);
    assert!(back["lsn"].as_u64().unwrap() > first);
    let pack = exported(&world, "pack");
    let events = timeline(&pack);
    let removed = events
        .iter()
        .filter(|it| it["update_kind"] == "node_delete");
    assert_eq!(removed.count(), 1);
}

/// 4.3 to 4.5: a trigger sets a rollback off; files come back, the graph does as a new version, and the trace stays.
#[test]
fn section_4_rollback_mechanisms() {
    let world = story();
    let before = timeline(&exported(&world, "before"));
    let lsn = {
        let document = asked(&world, &["--json", "graph", "show"]).unwrap();
        // Before the plan failed.
        let noted = document["lsn"].as_u64().unwrap();
        (noted - 1).to_string()
    };
    world.ok(&["rollback", "release", "--trigger", "plan-failure"]);
    assert_eq!(world.read("app.toml"), "port = 8080\n");
    assert_eq!(world.read("note.txt"), "hello\n");
    assert!(!world.path("made.txt").exists());
    asked(&world, &["--json", "graph", "restore", "--at", &lsn]).unwrap();
    let document: Value = serde_json::from_str(&world.ok(&["graph", "export"])).unwrap();
    let nodes = document["nodes"].as_array().unwrap();
    let plan = nodes.iter().find(|it| it["kind"] == "plan").unwrap();
    assert_eq!(plan["version"], 3);
    assert_eq!(plan["object"]["status"], "in_progress");
    let after = timeline(&exported(&world, "after"));
    assert!(after.starts_with(&before));
    world.check_store();
}

/// 4.6 and 4.7: the events of a rollback, and the actions that answer what was done.
#[test]
fn section_4_6_rollback_events_and_compensation() {
    let world = rolled_back();
    let pack = exported(&world, "pack");
    let events = timeline(&pack);
    let told = names(&events);
    let at = |name: &str| told.iter().position(|it| *it == name).unwrap();
    assert!(at("rollback.initiated") < at("rollback.action"));
    assert!(at("rollback.action") < at("rollback.completed"));
    assert!(at("rollback.completed") < at("span.started"));
    let initiated = &events[at("rollback.initiated")]["payload"];
    assert_eq!(initiated["trigger"], "plan-failure");
    assert_eq!(initiated["severity"], "high");
    assert_eq!(initiated["will_undo"].as_array().unwrap().len(), 3);
    let completed = &events[at("rollback.completed")]["payload"];
    assert_eq!(completed["result"], "completed");
    assert_eq!(completed["completed"], 3);
    for action in completed["actions"].as_array().unwrap() {
        for key in ["original_action", "compensation_action", "status"] {
            assert!(action[key].is_string(), "{action}");
        }
    }
    let snapshot = initiated["snapshot"]["lsn"].as_u64().unwrap() + 1;
    let kept = pack.join(format!("snapshots/graph-before-{snapshot}.json"));
    let kept: Value = serde_json::from_slice(&fs::read(kept).unwrap()).unwrap();
    assert_eq!(kept["nodes"].as_array().unwrap().len(), 2);
    // What is done afterwards is a span of its own, whose parent is the rollback's.
    let trace: Value =
        serde_json::from_slice(&fs::read(pack.join("artifacts/trace.json")).unwrap()).unwrap();
    let segments = trace["segments"].as_array().unwrap();
    assert_eq!(segments.len(), 3);
    assert_eq!(segments[2]["parent_segment_id"], segments[1]["segment_id"]);
    assert_eq!(segments[1]["parent_segment_id"], segments[0]["segment_id"]);
}
