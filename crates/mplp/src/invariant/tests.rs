//! Every rule of the five files passes for something and fails for something else; what is not understood fails.

use serde_json::json;

use super::*;

const ID: &str = "550e8400-e29b-41d4-a716-446655440000";
const WHEN: &str = "2025-01-01T00:00:00.000Z";

fn one(id: &str) -> &'static Invariant {
    let found = invariants().iter().find(|it| it.id == id);
    found.unwrap_or_else(|| panic!("no rule {id}"))
}

fn broken(id: &str, object: &Value, around: &[(Scope, &Value)]) -> Vec<Violation> {
    one(id).check(object, &around.iter().copied().collect())
}

/// An object of each scope that keeps every rule of it.
fn good(scope: Scope) -> Value {
    match scope {
        Scope::Context => json!({"context_id": ID, "status": "active"}),
        Scope::Plan => json!({
            "plan_id": ID, "context_id": ID,
            "steps": [{"step_id": ID, "agent_role": "coder"}, {"step_id": ID}],
        }),
        Scope::Trace => json!({
            "context_id": ID, "plan_id": ID, "status": "completed",
            "events": [
                {"event_type": "map.turn.dispatched", "data": {"session_id": ID, "role_id": "a"}},
                {"event_type": "x", "data": {"event_type": "MAPTurnCompleted", "session_id": ID, "payload": {"role_id": "a"}}},
                {"event_type": "MAPBroadcastSent", "session_id": ID},
                {"event_type": "map.broadcast.received", "data": {"session_id": ID}},
            ],
        }),
        Scope::Collab => json!({
            "collab_id": ID, "mode": "pair",
            "participants": [{"participant_id": "p", "kind": "agent", "role_id": "r"}],
        }),
        Scope::Event => json!({
            "event_id": ID, "event_type": "x", "timestamp": WHEN, "event_family": "intent",
        }),
        Scope::ToolEvent => json!({
            "tool_id": "t", "tool_kind": "other", "invocation_id": ID, "status": "failed", "started_at": WHEN,
        }),
        Scope::FileUpdateEvent => {
            json!({"file_path": "a", "change_type": "created", "timestamp": WHEN})
        }
        Scope::GitEvent => json!({
            "repo_url": "u", "commit_id": "c", "ref_name": "r", "event_kind": "push", "timestamp": WHEN,
        }),
        Scope::CiEvent => json!({
            "ci_provider": "c", "pipeline_id": "p", "run_id": "r", "status": "running",
            "started_at": WHEN, "completed_at": WHEN,
        }),
        Scope::LearningSample => json!({
            "sample_id": ID, "sample_family": "other", "created_at": WHEN, "input": {}, "output": {},
            "meta": {"human_feedback_label": "approved", "source_flow_id": "f"},
        }),
        Scope::Confirm
        | Scope::Role
        | Scope::Dialog
        | Scope::Extension
        | Scope::Network
        | Scope::Core => json!({}),
    }
}

/// The same, of the family that a conditional rule holds for.
fn of_family(id: &str) -> Option<Value> {
    let mut object = match id.split('_').take(2).collect::<Vec<_>>().join("_").as_str() {
        "obs_pipeline" => json!({
            "event_family": "pipeline_stage", "pipeline_id": ID, "stage_id": "s", "stage_status": "running",
        }),
        "obs_graph" => json!({
            "event_family": "graph_update", "graph_id": ID, "update_kind": "bulk",
        }),
        "obs_runtime" => json!({
            "event_family": "runtime_execution", "execution_id": ID, "executor_kind": "tool", "status": "failed",
        }),
        "learning_intent" => json!({
            "sample_family": "intent_resolution", "input": {"intent_id": "i"},
            "output": {"resolution_quality_label": "good"},
        }),
        "learning_delta" => json!({
            "sample_family": "delta_impact", "input": {"delta_id": "d"},
            "output": {"impact_scope": "local"}, "state": {"risk_level": "low"},
        }),
        _ => return None,
    };
    let base = good(one(id).scope.unwrap());
    for (key, value) in base.as_object().unwrap() {
        let map = object.as_object_mut().unwrap();
        map.entry(key).or_insert_with(|| value.clone());
    }
    Some(object)
}

fn around(context: &Value, plan: &Value) -> Vec<(Scope, Value)> {
    vec![
        (Scope::Context, context.clone()),
        (Scope::Plan, plan.clone()),
    ]
}

/// Puts a value at the place that a rule looks at, or takes it away.
fn put(object: &mut Value, path: &str, value: Option<Value>) {
    let mut keys = path.split('.').peekable();
    let mut here = object;
    while let Some(key) = keys.next() {
        let (name, each) = match key.strip_suffix("[*]") {
            Some(name) => (name, true),
            None => (key, false),
        };
        if keys.peek().is_none() {
            let map = here.as_object_mut().unwrap();
            match value {
                Some(value) => map.insert(name.to_owned(), value),
                None => map.remove(name),
            };
            return;
        }
        here = here.get_mut(name).unwrap();
        if each {
            here = here.get_mut(0).unwrap();
        }
    }
}

#[test]
fn there_are_sixty_one_and_each_has_a_severity() {
    let count = |set| invariants().iter().filter(|it| it.set == set).count();
    assert_eq!(count(RuleSet::Sa), 9);
    assert_eq!(count(RuleSet::Map), 9);
    assert_eq!(count(RuleSet::Observability), 12);
    assert_eq!(count(RuleSet::Integration), 19);
    assert_eq!(count(RuleSet::Learning), 12);
    let ids: Vec<&str> = invariants().iter().map(|it| it.id.as_str()).collect();
    let weighed: Vec<&str> = severity::TABLE.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, weighed);
    for severity in [Severity::Low, Severity::Medium, Severity::High] {
        assert!(invariants().iter().any(|it| it.severity == severity));
    }
    assert_eq!(severity::of("somebody_elses"), Severity::High);
}

#[test]
fn all_of_them_are_understood() {
    for rule in invariants() {
        assert!(!matches!(rule.meaning, Rule::Unknown(_)), "{rule:?}");
        assert!(rule.scope.is_some(), "{rule:?}");
    }
}

#[test]
fn each_of_them_passes_and_fails() {
    let (context, plan) = (good(Scope::Context), good(Scope::Plan));
    let around = around(&context, &plan);
    let around: Vec<(Scope, &Value)> = around.iter().map(|(scope, it)| (*scope, it)).collect();
    for rule in invariants() {
        let object = of_family(&rule.id).unwrap_or_else(|| good(rule.scope.unwrap()));
        let told = broken(&rule.id, &object, &around);
        assert!(told.is_empty(), "{told:?}");
        let Some(path) = &rule.path else {
            continue;
        };
        let mut worse = object.clone();
        put(&mut worse, path, Some(json!(17)));
        let told = broken(&rule.id, &worse, &around);
        // What is there in whatever shape is there.
        let is_exists = rule.meaning == Rule::Exists;
        assert_eq!(told.is_empty(), is_exists, "{} {told:?}", rule.id);
        let mut without = object.clone();
        put(&mut without, path, None);
        let told = broken(&rule.id, &without, &around);
        let may_be_missing = rule.when.is_present || rule.meaning == Rule::OptionalString;
        assert_eq!(told.is_empty(), may_be_missing, "{} {told:?}", rule.id);
    }
}

#[test]
fn a_condition_switches_its_rule_off_for_others_only() {
    let event = good(Scope::Event);
    assert!(broken("obs_graph_event_has_graph_id", &event, &[]).is_empty());
    let mut graph = event;
    graph["event_family"] = json!("graph_update");
    assert_eq!(broken("obs_graph_event_has_graph_id", &graph, &[]).len(), 1);
    // The note of the last rule of its file is a key of the file.
    let mut sample = good(Scope::LearningSample);
    sample["state"] = json!({"risk_level": "enormous"});
    assert!(broken("learning_delta_risk_valid", &sample, &[]).is_empty());
    sample["sample_family"] = json!("delta_impact");
    assert_eq!(broken("learning_delta_risk_valid", &sample, &[]).len(), 1);
}

#[test]
fn a_binding_needs_what_it_binds_to() {
    let plan = good(Scope::Plan);
    let told = broken("sa_plan_context_binding", &plan, &[]);
    assert_eq!(
        told[0].why,
        "there is no context.context_id to compare it with"
    );
    let other = json!({"context_id": "550e8400-e29b-41d4-a716-446655440009"});
    let told = broken(
        "sa_plan_context_binding",
        &plan,
        &[(Scope::Context, &other)],
    );
    assert!(
        told[0].why.contains("is not the context.context_id"),
        "{told:?}"
    );
    assert_eq!(told[0].place, "/context_id");
    assert_eq!(told[0].severity, Severity::High);
}

#[test]
fn turns_and_broadcasts_are_counted() {
    let turn = "map_turn_completion_matches_dispatch";
    let mut trace = good(Scope::Trace);
    trace["events"].as_array_mut().unwrap().remove(1);
    let told = broken(turn, &trace, &[]);
    assert_eq!(told.len(), 1);
    assert!(told[0].why.contains("without MAPTurnCompleted"), "{told:?}");
    // A turn of somebody else does not count.
    let other =
        json!({"event_type": "map.turn.completed", "data": {"session_id": ID, "role_id": "b"}});
    trace["events"].as_array_mut().unwrap().push(other);
    assert_eq!(broken(turn, &trace, &[]).len(), 1);
    trace["status"] = json!("running");
    assert!(broken(turn, &trace, &[]).is_empty());
    let nameless = json!({"event_type": "map.turn.dispatched", "data": {}});
    trace["events"].as_array_mut().unwrap().push(nameless);
    let told = broken(turn, &trace, &[]);
    assert!(
        told[0].why.contains("does not say for which session"),
        "{told:?}"
    );

    let heard = "map_broadcast_has_receivers";
    let mut trace = good(Scope::Trace);
    assert!(broken(heard, &trace, &[]).is_empty());
    trace["events"].as_array_mut().unwrap().pop();
    assert_eq!(broken(heard, &trace, &[]).len(), 1);
    trace["events"] = json!("none");
    assert_eq!(broken(heard, &trace, &[])[0].why, "it is no list");
}

#[test]
fn what_is_not_understood_fails() {
    let rules = "invariants:
  - {id: a, scope: plan, path: plan_id, rule: looks-nice}
  - {id: b, scope: moon, path: plan_id, rule: exists}
  - {id: c, scope: plan, path: 'steps[', rule: exists}
  - {id: d, scope: plan, path: plan_id, rule: exists, note: Only on Sundays}
  - {id: e, scope: plan, description: All is well}
  - {id: f, scope: plan, path: plan_id, rule: eq(moon.phase)}
  - {id: g, scope: plan, path: plan_id, rule: 'if(status == \"x\", looks-nice)'}
  - {id: h, scope: plan, path: plan_id, rule: min-length(many)}
  - {id: i, scope: plan, path: plan_id, rule: 'enum(a,,b)'}
  - {id: j, scope: plan, rule: uuid-v4}
  - {id: k, scope: plan, path: plan_id, rule: exists, note: Apply only when other_id exists}
";
    let read = read_rules(rules, RuleSet::Own, None).unwrap();
    assert_eq!(read.len(), 11);
    let plan = good(Scope::Plan);
    for rule in &read {
        let told = rule.check(&plan, &Surroundings::new());
        assert_eq!(told.len(), 1, "{rule:?} {told:?}");
        assert_eq!(told[0].severity, Severity::High);
    }
}
