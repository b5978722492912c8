//! Updates that are kept, and those that are not.

use serde_json::json;

use super::*;
use crate::uuid_of;

fn id(name: &str) -> String {
    uuid_of("test", name)
}

fn meta() -> Value {
    json!({"protocol_version": "1.0.0", "schema_version": "2.0.0"})
}

fn context(name: &str, status: &str) -> Value {
    json!({
        "meta": meta(), "context_id": id(name), "title": name, "status": status,
        "root": {"domain": "code", "environment": "test"},
    })
}

fn step(name: &str, status: &str, after: &[&str]) -> Value {
    let after: Vec<String> = after.iter().map(|name| id(name)).collect();
    json!({"step_id": id(name), "description": name, "status": status, "dependencies": after})
}

fn plan(name: &str, status: &str, steps: &[Value]) -> Value {
    json!({
        "meta": meta(), "plan_id": id(name), "context_id": id("context"), "title": name,
        "objective": "done", "status": status, "steps": steps,
    })
}

fn trace(name: &str, plan: &str) -> Value {
    json!({
        "meta": meta(), "trace_id": id(name), "context_id": id("context"), "plan_id": id(plan),
        "root_span": {"trace_id": id(name), "span_id": id("span")}, "status": "running",
        "events": [{"event_id": id("e"), "event_type": "x", "source": "t", "timestamp": "2025-01-01T00:00:00Z"}],
    })
}

fn put(object: Value) -> Change {
    Change::Put {
        object,
        expect: Expect::Any,
    }
}

fn updated(graph: &Graph, changes: Vec<Change>) -> Graph {
    let update = graph.update(&id("graph"), changes).unwrap();
    // What is read back from the notes is what was decided.
    let mut notes: Vec<(Lsn, GraphNote)> = Vec::new();
    for (at, note) in update.notes.iter().enumerate() {
        let json = serde_json::to_string(note).unwrap();
        let lsn = Lsn(graph.at.0 + 1 + u64::try_from(at).unwrap());
        notes.push((lsn, serde_json::from_str(&json).unwrap()));
    }
    let mut read = graph.clone();
    for (lsn, note) in notes {
        read.take(lsn, note);
    }
    assert_eq!(read.digest(), update.after.digest());
    assert_eq!(read.edges(), update.after.edges());
    let grown: i64 = update.notes.iter().map(node_delta).sum();
    let length = |graph: &Graph| i64::try_from(graph.len()).unwrap();
    assert_eq!(grown, length(&read) - length(graph));
    read
}

fn node_delta(note: &GraphNote) -> i64 {
    match note {
        GraphNote::Node(version) => version.node_delta,
        GraphNote::Produces(_) | GraphNote::Violated(_) => 0,
    }
}

fn refused(graph: &Graph, changes: Vec<Change>) -> Refusal {
    graph.update(&id("graph"), changes).unwrap_err()
}

fn started() -> Graph {
    let steps = [
        step("one", "completed", &[]),
        step("two", "in_progress", &["one"]),
        step("three", "pending", &["one", "two"]),
    ];
    let all = [
        context("context", "active"),
        plan("plan", "in_progress", &steps),
    ];
    updated(&Graph::default(), all.into_iter().map(put).collect())
}

#[test]
fn objects_are_nodes_and_edges_follow_from_them() {
    let role = json!({"meta": meta(), "role_id": id("role"), "name": "coder"});
    let mut graph = updated(&started(), vec![put(role), put(trace("trace", "plan"))]);
    let confirm = json!({
        "meta": meta(), "confirm_id": id("confirm"), "target_type": "plan", "target_id": id("plan"),
        "status": "pending", "requested_by_role": "coder", "requested_at": "2025-01-01T00:00:00Z",
    });
    graph = updated(&graph, vec![put(confirm)]);
    graph = updated(
        &graph,
        vec![Change::Produce {
            from: id("two"),
            to: vec![id("trace"), id("trace")],
        }],
    );
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for edge in graph.edges() {
        *kinds.entry(edge.kind.as_str()).or_default() += 1;
    }
    let wanted = [
        ("CONFIRMS", 1),
        ("CONTAINS", 3),
        ("DEPENDS_ON", 3),
        ("HAS_CONTEXT", 2),
        ("PRODUCES", 1),
        ("TRACES", 1),
    ];
    assert_eq!(kinds, wanted.into_iter().collect());
    assert_eq!(graph.len(), 8);
    assert_eq!(graph.kind_of(&id("two")), Some(NodeKind::Step));
    let drawn: Vec<String> = graph.drawn().iter().map(|it| it.kind.to_string()).collect();
    assert_eq!(
        drawn.join(" "),
        "confirm trace plan step step step role context"
    );
}

#[test]
fn a_step_is_assigned_to_the_role_that_it_names() {
    let role = json!({"meta": meta(), "role_id": id("role"), "name": "coder"});
    let mut one = step("one", "pending", &[]);
    one["agent_role"] = json!("coder");
    let mut two = step("two", "pending", &[]);
    two["agent_role"] = json!("somebody");
    let all = [
        context("context", "active"),
        plan("plan", "draft", &[one, two]),
        role,
    ];
    let graph = updated(&Graph::default(), all.into_iter().map(put).collect());
    let assigned: Vec<Edge> = graph
        .edges()
        .into_iter()
        .filter(|edge| edge.kind == EdgeKind::AssignedTo)
        .collect();
    assert_eq!(assigned.len(), 1);
    assert_eq!(
        (&assigned[0].from, &assigned[0].to),
        (&id("one"), &id("role"))
    );
}

#[test]
fn an_object_that_does_not_follow_its_schema_is_refused() {
    let mut wrong = context("context", "active");
    wrong["mood"] = json!("good");
    assert!(matches!(
        refused(&Graph::default(), vec![put(wrong)]),
        Refusal::Invalid { .. }
    ));
    assert_eq!(
        refused(&Graph::default(), vec![put(json!({"a": 1}))]),
        Refusal::NoNode
    );
    let core = json!({"core_id": id("core")});
    assert_eq!(refused(&Graph::default(), vec![put(core)]), Refusal::NoNode);
}

#[test]
fn ids_are_unique_and_keep_their_kind() {
    let graph = started();
    let twice = vec![
        put(context("other", "active")),
        put(context("other", "draft")),
    ];
    assert_eq!(
        refused(&graph, twice),
        Refusal::Duplicate { id: id("other") }
    );
    let taken = plan("second", "draft", &[step("one", "pending", &[])]);
    assert_eq!(
        refused(&graph, vec![put(taken)]),
        Refusal::Duplicate { id: id("one") }
    );
    let own = plan(
        "second",
        "draft",
        &[step("a", "pending", &[]), step("a", "pending", &[])],
    );
    assert_eq!(
        refused(&graph, vec![put(own)]),
        Refusal::Duplicate { id: id("a") }
    );
    let node = plan("second", "draft", &[step("context", "pending", &[])]);
    assert_eq!(
        refused(&graph, vec![put(node)]),
        Refusal::Duplicate { id: id("context") }
    );
    let mut role = json!({"meta": meta(), "role_id": id("plan"), "name": "x"});
    assert!(matches!(
        refused(&graph, vec![put(role.clone())]),
        Refusal::KindChanged { .. }
    ));
    role["role_id"] = json!(id("two"));
    assert_eq!(
        refused(&graph, vec![put(role)]),
        Refusal::Duplicate { id: id("two") }
    );
}

#[test]
fn what_has_come_to_its_end_does_not_change() {
    let graph = started();
    let again = [
        step("one", "pending", &[]),
        step("two", "in_progress", &["one"]),
        step("three", "pending", &[]),
    ];
    let told = refused(&graph, vec![put(plan("plan", "in_progress", &again))]);
    assert!(
        matches!(
            told,
            Refusal::Terminal {
                kind: NodeKind::Step,
                ..
            }
        ),
        "{told}"
    );
    let without = [step("two", "completed", &[])];
    let told = refused(&graph, vec![put(plan("plan", "in_progress", &without))]);
    assert!(
        matches!(
            told,
            Refusal::Terminal {
                kind: NodeKind::Step,
                ..
            }
        ),
        "{told}"
    );
    let (_, object) = graph.object(&id("plan")).unwrap();
    let mut done = object.clone();
    done["status"] = json!("completed");
    let graph = updated(&graph, vec![put(done.clone())]);
    // The same once more is no change.
    assert!(
        graph
            .update("x", vec![put(done.clone())])
            .unwrap()
            .notes
            .is_empty()
    );
    done["title"] = json!("another");
    let told = refused(&graph, vec![put(done)]);
    assert_eq!(
        told.to_string(),
        format!(
            "the plan {} is completed and does not change any more",
            id("plan")
        )
    );
}

#[test]
fn two_who_update_one_node_are_told() {
    let graph = started();
    let said = |expect| Change::Put {
        object: context("context", "suspended"),
        expect,
    };
    assert_eq!(
        refused(&graph, vec![said(Expect::Unsaid)]),
        Refusal::Unsaid {
            id: id("context"),
            found: 1
        }
    );
    let second = updated(&graph, vec![said(Expect::Version(1))]);
    assert_eq!(second.object(&id("context")).unwrap().0.version, 2);
    let late = Change::Put {
        object: context("context", "draft"),
        expect: Expect::Version(1),
    };
    let told = refused(&second, vec![late]);
    let wanted = Refusal::Conflict {
        id: id("context"),
        expected: 1,
        found: 2,
    };
    assert_eq!(told, wanted);
    let new = Change::Put {
        object: context("new", "active"),
        expect: Expect::Version(3),
    };
    assert!(matches!(
        refused(&second, vec![new]),
        Refusal::Conflict { found: 0, .. }
    ));
}

#[test]
fn steps_that_wait_for_each_other_are_told() {
    let steps = [
        step("a", "pending", &["d"]),
        step("b", "pending", &["a"]),
        step("c", "pending", &["b"]),
        step("d", "pending", &["c"]),
        step("e", "pending", &["d"]),
    ];
    let all = vec![
        put(context("context", "active")),
        put(plan("plan", "draft", &steps)),
    ];
    let Refusal::Cycle { steps, .. } = refused(&Graph::default(), all) else {
        panic!("no circle");
    };
    assert_eq!(steps, ["a", "d", "c", "b"].map(id));
    let own = [step("a", "pending", &["a"])];
    let all = vec![
        put(context("context", "active")),
        put(plan("plan", "draft", &own)),
    ];
    let told = refused(&Graph::default(), all);
    assert!(
        matches!(&told, Refusal::Cycle { steps, .. } if *steps == [id("a")]),
        "{told}"
    );
}

#[test]
fn a_step_of_another_plan_is_told() {
    let graph = started();
    let foreign = plan("second", "draft", &[step("a", "pending", &["two"])]);
    let told = refused(&graph, vec![put(foreign)]);
    assert!(
        matches!(&told, Refusal::ForeignStep { plan, .. } if *plan == id("plan")),
        "{told}"
    );
    let nobody = plan("second", "draft", &[step("a", "pending", &["nobody"])]);
    let told = refused(&graph, vec![put(nobody)]);
    assert!(
        matches!(told, Refusal::Dangling { found: None, .. }),
        "{told}"
    );
}

#[test]
fn a_plan_without_its_context_breaks_a_grave_rule() {
    let told = refused(
        &Graph::default(),
        vec![put(plan("plan", "draft", &[step("a", "pending", &[])]))],
    );
    let Refusal::Violated(written) = told else {
        panic!("{told}");
    };
    assert_eq!(
        written[0].violations[0].invariant,
        "sa_plan_context_binding"
    );
    // A lesser one is told, and kept.
    let draft = vec![put(context("context", "draft"))];
    let update = Graph::default().update(&id("graph"), draft).unwrap();
    assert_eq!(
        update.written[0].violations[0].invariant,
        "sa_context_must_be_active"
    );
    assert_eq!(update.notes.len(), 2);
    // It is noted once, and noted again when it is over.
    let graph = updated(&Graph::default(), vec![put(context("context", "draft"))]);
    assert_eq!(graph.violated().count(), 1);
    let graph = updated(&graph, vec![put(context("context", "suspended"))]);
    assert_eq!(graph.violated().next().unwrap().version, 1);
    let graph = updated(&graph, vec![put(context("context", "active"))]);
    assert_eq!(graph.violated().count(), 0);
    assert_eq!(refused_notes(&written).len(), 1);
}

#[test]
fn what_others_lead_to_is_not_removed() {
    let graph = started();
    let remove = |name: &str| Change::Remove {
        id: id(name),
        expect: Expect::Any,
    };
    assert!(matches!(
        refused(&graph, vec![remove("context")]),
        Refusal::Violated(_) | Refusal::Dangling { .. }
    ));
    assert!(matches!(
        refused(&graph, vec![remove("nobody")]),
        Refusal::Unknown { .. }
    ));
    let graph = updated(&graph, vec![put(context("lonely", "active"))]);
    let graph = updated(&graph, vec![remove("lonely")]);
    assert_eq!(graph.object(&id("lonely")), None);
    let back = updated(&graph, vec![put(context("lonely", "active"))]);
    assert_eq!(back.object(&id("lonely")).unwrap().0.version, 3);
}

#[test]
fn a_restore_makes_new_versions_and_leaves_the_past() {
    let then = started();
    let (_, object) = then.object(&id("plan")).unwrap();
    let mut done = object.clone();
    done["status"] = json!("failed");
    let mut now = updated(&then, vec![put(done), put(trace("trace", "plan"))]);
    now = updated(&now, vec![put(context("later", "active"))]);
    let restored = now.restored_to(&then, Lsn(2)).unwrap();
    assert!(restored.kept.is_empty());
    let after = &restored.update.after;
    assert_eq!(after.digest_of_state(), then.digest_of_state());
    assert_ne!(after.digest(), then.digest());
    let (node, plan) = after.object(&id("plan")).unwrap();
    assert_eq!((node.version, &plan["status"]), (3, &json!("in_progress")));
    assert!(after.object(&id("trace")).is_some());
    assert!(after.object(&id("later")).is_none());
    for note in &restored.update.notes {
        let json = serde_json::to_value(note).unwrap();
        assert_eq!(json["restores"], json!(2));
    }
    // Whatever a trace tells of stays, although it was not there.
    let steps = [step("x", "pending", &[])];
    let later = vec![
        put(plan_of("second", &steps)),
        put(trace("trace", "second")),
    ];
    let now = updated(&then, later);
    let restored = now.restored_to(&then, Lsn(2)).unwrap();
    assert_eq!(restored.kept, [id("second")]);
    // To nothing at all.
    let nothing = now.restored_to(&Graph::default(), Lsn(0)).unwrap();
    assert!(nothing.update.after.object(&id("trace")).is_some());
}

fn plan_of(name: &str, steps: &[Value]) -> Value {
    plan(name, "in_progress", steps)
}

#[test]
fn a_file_goes_out_and_comes_back() {
    let graph = started();
    let graph = updated(
        &graph,
        vec![Change::Produce {
            from: id("one"),
            to: vec![id("context")],
        }],
    );
    let json = serde_json::to_value(graph.document()).unwrap();
    let same = Document::read(json.clone())
        .unwrap()
        .changes(&graph, Expect::Unsaid)
        .unwrap();
    assert!(graph.update("x", same).unwrap().notes.is_empty());
    let elsewhere = Document::read(json.clone()).unwrap();
    let changes = elsewhere.changes(&Graph::default(), Expect::Any).unwrap();
    let copy = updated(&Graph::default(), changes);
    assert_eq!(copy.digest(), graph.digest());
    // Edited by hand: an edge that no object says, a kind that is another, a field that nobody knows.
    let mut edited = json.clone();
    edited["edges"][0]["to"] = json!(id("elsewhere"));
    let read = Document::read(edited).unwrap();
    assert!(matches!(
        read.changes(&graph, Expect::Unsaid),
        Err(Refusal::ForeignEdge { .. })
    ));
    let mut edited = json.clone();
    edited["nodes"][0]["kind"] = json!("role");
    let read = Document::read(edited).unwrap();
    assert!(matches!(
        read.changes(&graph, Expect::Unsaid),
        Err(Refusal::KindChanged { .. })
    ));
    let mut edited = json;
    edited["nodes"][0]["colour"] = json!("red");
    assert!(Document::read(edited).is_err());
}

#[test]
fn a_hundred_thousand_nodes_are_no_matter() {
    let steps: Vec<Value> = (0..100_000)
        .map(|at| {
            let before = format!("s{}", at - i32::from(at > 0));
            let after: Vec<&str> = if at > 0 { vec![&before] } else { Vec::new() };
            step(&format!("s{at}"), "pending", &after)
        })
        .collect();
    let all = vec![
        put(context("context", "active")),
        put(plan("plan", "draft", &steps)),
    ];
    let graph = updated(&Graph::default(), all);
    assert_eq!(graph.len(), 100_002);
    assert_eq!(graph.edges().len(), 200_000);
    let graph = updated(&graph, vec![put(context("second", "active"))]);
    assert_eq!(graph.drawn().len(), 100_003);
}
