//! Stories told from records that the tests make.

use backout_model::compensation::CompensationStatus;
use backout_model::{
    ActPlan, Completion, Decision, Event, GENESIS, Intent, Note, OutcomeKind, Owner, Source,
    Strategy, Target, TargetOutcome, TargetPath, TaskId, Timestamp, Topic, Trigger, TriggerKind,
    Verb,
};
use serde_json::json;

use super::*;
use crate::invariant::{Surroundings, invariants};
use crate::{Kind, Scope, check, is_uuid};

fn id(bits: u64) -> OperationId {
    OperationId::from_bits(bits)
}

fn intent(bits: u64, verb: Verb) -> Intent {
    let path = TargetPath::new("/w/app.toml").unwrap();
    Intent {
        id: id(bits),
        verb,
        summary: "app.toml".to_owned(),
        agent: Some("robin".parse().unwrap()),
        task: None,
        prompt: None,
        owner: Owner {
            pid: 1,
            started: 1,
            boot: "boot".to_owned(),
            pid_namespace: 1,
            host: String::new(),
        },
        decision: Decision::new(Strategy::Snapshot, &[], "small"),
        targets: vec![Target::node(path)],
        depends_on: Vec::new(),
        undoes: None,
        with: None,
        group: None,
        asked: None,
        plan: None,
        trigger: None,
        notes: Vec::new(),
        command: None,
        call: None,
        approval: None,
        recipe: backout_model::Recipe::of(
            backout_model::DriverName::FILE,
            3,
            &json!({"operation": id(bits), "changes": [
                {"change": "set", "path": "/w/app.toml", "before": {"is": "absent"}, "after": {"is": "file"}},
            ]}),
        )
        .unwrap(),
    }
}

fn records(events: Vec<Event>) -> Vec<Record> {
    let mut previous = GENESIS;
    let mut records = Vec::new();
    for (at, event) in (1..).zip(events) {
        let (lsn, when) = (
            Lsn(at),
            Timestamp(1_700_000_000_000 + i64::try_from(at).unwrap()),
        );
        let body = serde_json::to_vec(&event).unwrap();
        let hash = Record::chain(&previous, lsn, when, &body);
        records.push(Record::read(&previous, lsn, when, &body, hash).unwrap());
        previous = hash;
    }
    records
}

pub(crate) fn about() -> About {
    About {
        project: uuid_of("graph", "test"),
        context: uuid_of("context", "test"),
        plan: None,
    }
}

fn outcome(kind: OutcomeKind) -> TargetOutcome {
    let path = TargetPath::new("/w/app.toml").unwrap();
    TargetOutcome::new(Target::node(path), kind)
}

/// Two writes of a task, one comes back and the other does not; then work goes on.
pub(crate) fn rolled_back() -> Vec<Record> {
    let task: TaskId = "release".parse().unwrap();
    let undo = |bits: u64, undoes: u64| Intent {
        undoes: Some(id(undoes)),
        group: Some(id(10)),
        plan: (bits == 10).then(|| ActPlan {
            steps: vec![id(2), id(1)],
            task: Some(task.clone()),
            is_part: false,
        }),
        trigger: Some(
            Trigger::new(TriggerKind::PlanFailure, Source::Person).because("a step failed"),
        ),
        ..intent(bits, Verb::Undo)
    };
    let boxed = |intent: Intent| Event::Intent(Box::new(intent));
    records(vec![
        Event::TaskBegin {
            task: task.clone(),
            agent: None,
            owner: None,
        },
        boxed(intent(1, Verb::Write)),
        Event::Applied {
            id: id(1),
            completion: Completion::default(),
        },
        boxed(intent(2, Verb::Edit)),
        Event::Applied {
            id: id(2),
            completion: Completion::default(),
        },
        boxed(undo(10, 2)),
        Event::Undone {
            id: id(2),
            by: id(10),
            outcomes: vec![outcome(OutcomeKind::Restored)],
            is_partial: false,
        },
        Event::Commit { id: id(10) },
        boxed(undo(11, 1)),
        Event::UndoFailed {
            id: id(1),
            outcomes: vec![outcome(OutcomeKind::Conflict {
                why: "it changed".to_owned(),
            })],
        },
        Event::TaskRollback {
            task,
            why: "asked".to_owned(),
        },
        boxed(intent(3, Verb::Write)),
        Event::Commit { id: id(3) },
    ])
}

fn names(story: &Story) -> Vec<&str> {
    let all = story.timeline.iter();
    all.map(|line| line.event["event_type"].as_str().unwrap())
        .collect()
}

/// Every event in its two shapes follows its schema, and every rule about events holds.
fn assert_sound(story: &Story) {
    for line in &story.timeline {
        let kind = Kind::of(&line.event).unwrap();
        assert_eq!(check(kind, &line.event), [], "{:#}", line.event);
        assert_eq!(check(Kind::Event, &line.event), []);
        for rule in invariants() {
            if rule.scope == Some(Scope::Event) {
                assert_eq!(rule.check(&line.event, &Surroundings::new()), []);
            }
        }
        let payload = &line.event["payload"];
        let of = |name: &str| line.event["event_type"] == name;
        let (kind, scope) = match () {
            () if of("file.updated") => (Kind::FileUpdateEvent, Scope::FileUpdateEvent),
            () if of("tool.result") => (Kind::ToolEvent, Scope::ToolEvent),
            () => continue,
        };
        assert_eq!(check(kind, payload), []);
        for rule in invariants() {
            if rule.scope == Some(scope) {
                assert_eq!(rule.check(payload, &Surroundings::new()), []);
            }
        }
    }
    assert_eq!(check(Kind::Trace, &story.trace), []);
    let events = story.trace["events"].as_array().unwrap();
    assert_eq!(events.len(), story.timeline.len());
    for (event, line) in events.iter().zip(&story.timeline) {
        assert_eq!(check(Kind::BaseEvent, event), []);
        assert_eq!(event["event_id"], line.event["event_id"]);
        assert!(is_uuid(event["event_id"].as_str().unwrap()));
    }
}

#[test]
fn a_rollback_is_a_chapter_and_work_after_it_a_new_span() {
    let records = rolled_back();
    let story = tell(&records, &about());
    assert_sound(&story);
    assert_eq!(
        names(&story),
        [
            "task.begun",
            "operation.started",
            "file.updated",
            "operation.started",
            "file.updated",
            "rollback.initiated",
            "rollback.action",
            "rollback.action",
            "file.updated",
            "operation.committed",
            "rollback.action",
            "rollback.action",
            "rollback.completed",
            "task.rolledback",
            "span.started",
            "operation.started",
            "file.updated",
            "operation.committed",
        ]
    );
    let payload = |at: usize| &story.timeline[at].event["payload"];
    assert_eq!(payload(5)["trigger"], "plan-failure");
    assert_eq!(payload(5)["severity"], "high");
    assert_eq!(payload(5)["why"], "a step failed");
    assert_eq!(payload(5)["will_undo"].as_array().unwrap().len(), 2);
    assert_eq!(payload(5)["snapshot"]["lsn"], 5);
    assert_eq!(payload(6)["status"], CompensationStatus::Pending.as_str());
    assert_eq!(payload(7)["status"], "completed");
    assert_eq!(payload(11)["status"], "failed");
    assert!(
        payload(11)["error"]
            .as_str()
            .unwrap()
            .contains("it changed")
    );
    assert_eq!(payload(12)["result"], "partial");
    let segments = story.trace["segments"].as_array().unwrap();
    let label = |at: usize| segments[at]["label"].as_str().unwrap();
    assert_eq!((label(0), label(2)), ("execution 1", "execution 2"));
    assert_eq!(segments[1]["parent_segment_id"], segments[0]["segment_id"]);
    assert_eq!(segments[2]["parent_segment_id"], segments[1]["segment_id"]);
    assert_eq!(segments[1]["status"], "failed");
    assert_eq!(payload(15)["segment_id"], segments[2]["segment_id"]);
}

#[test]
fn asked_twice_the_story_is_the_same_and_grows_at_its_end_only() {
    let records = rolled_back();
    let whole = tell(&records, &about());
    assert_eq!(whole, tell(&records, &about()));
    for length in 0..records.len() {
        let story = tell(&records[..length], &about());
        assert_sound(&story);
        assert!(whole.timeline.starts_with(&story.timeline), "{length}");
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "one story, told once")]
fn notes_are_told_as_what_they_are_about() {
    let note = |topic, subject: &str, body| {
        Event::Noted(Box::new(Note {
            topic,
            subject: subject.to_owned(),
            lsn: Lsn(0),
            at: Timestamp(0),
            agent: Some("robin".parse().unwrap()),
            task: None,
            body,
        }))
    };
    let context = json!({
        "meta": {"protocol_version": "1.0.0", "schema_version": "2.0.0"},
        "context_id": uuid_of("x", "context"), "title": "t", "status": "draft",
        "root": {"domain": "d", "environment": "e"},
    });
    let change = crate::Change::Put {
        object: context,
        expect: crate::Expect::Unsaid,
    };
    let update = crate::Graph::default()
        .update(&uuid_of("x", "graph"), vec![change])
        .unwrap();
    let mut events: Vec<Event> = update
        .notes
        .iter()
        .map(|it| {
            note(
                Topic::Graph,
                &it.subject(),
                serde_json::to_value(it).unwrap(),
            )
        })
        .collect();
    events.push(note(Topic::Graph, "odd", json!({"what": 1})));
    events.push(note(
        Topic::Stage,
        "build of robin",
        json!({"stage": "build", "standing": "open"}),
    ));
    events.push(note(
        Topic::Stage,
        "build of robin",
        json!({"stage": "build", "standing": {"failed": {}}}),
    ));
    events.push(note(Topic::Drift, "/w/a", json!({"drift": "detected"})));
    events.push(note(Topic::Drift, "/w/a", json!({"drift": "resolved"})));
    events.push(note(Topic::State, "robin", json!({"secret": "hunter2"})));
    let story = tell(&records(events), &about());
    assert_sound(&story);
    assert_eq!(
        names(&story),
        [
            "graph.updated",
            "drift.detected",
            "graph.unreadable",
            "stage.changed",
            "stage.changed",
            "drift.detected",
            "drift.resolved",
            "state.saved",
        ]
    );
    let event = |at: usize| &story.timeline[at].event;
    assert_eq!(event(0)["update_kind"], "node_add");
    assert_eq!(event(0)["node_delta"], 1);
    assert_eq!(event(1)["payload"]["drift_type"], "invariant_violation");
    assert_eq!(event(1)["payload"]["severity"], "medium");
    assert_eq!(event(3)["stage_status"], "running");
    assert_eq!(event(4)["stage_status"], "failed");
    assert!(!story.trace.to_string().contains("hunter2"));
}
