//! The journal's records told as MPLP events: nothing is written twice, and asked twice the same records tell the same.
//!
//! - Three shapes. Each line of the timeline is an event of the observability stream (`events/`). The trace has the same event in the shape that events
//!   inside of a trace have (`common/events`), under the same id. What became of a file or a command is the payload of such an event, in the
//!   shape of the integration schemas.
//! - A rollback is a chapter: `rollback.initiated`, `rollback.action` for each action and each time that it comes to something, `rollback.completed`; what is done
//!   afterwards is a new segment, whose parent is the rollback's. One that was left half-way has no end.
//! - The event names of a rollback and of drift stand in no schema. They are types of ours inside of families that the schemas know.
//!
//! Pure: records in, events out.

mod events;
mod files;
mod notes;
mod rollback;
mod segment;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeMap;

use backout_model::{Lsn, OperationId, Record};
use serde_json::{Map, Value, json};

use crate::moment::moment;
use crate::uuid::uuid_of;
use rollback::Act;
use segment::Segments;

/// What a story belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// The project: its graph, or what stands for it where there is none.
    pub project: String,
    /// The context that the trace is bound to.
    pub context: String,
    /// The plan that it tells of, if there is one.
    pub plan: Option<String>,
}

impl About {
    /// Names the trace. It is the project's: one journal tells one story.
    pub fn trace(&self) -> String {
        uuid_of("trace", &self.project)
    }
}

/// One event of the timeline.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The record that it tells of.
    pub lsn: Lsn,
    /// The event, in the shape of the observability stream.
    pub event: Value,
}

/// All that the records tell.
#[derive(Debug, Clone, PartialEq)]
pub struct Story {
    /// The events, in the order of the records.
    pub timeline: Vec<Line>,
    /// The same as a trace, with its segments.
    pub trace: Value,
}

/// Tells what records say.
pub fn tell<'r>(records: impl IntoIterator<Item = &'r Record>, about: &About) -> Story {
    let mut teller = Teller::new(about);
    for record in records {
        teller.tell(record);
    }
    teller.end()
}

/// What is known of an operation until it is over.
#[derive(Debug, Clone)]
struct Known {
    verb: backout_model::Verb,
    summary: String,
    agent: Option<String>,
    /// The program, if it is a command.
    tool: Option<String>,
    /// What it does to files, once that is so.
    files: Vec<Value>,
    /// The act that it is a step of, if it takes something back.
    act: Option<OperationId>,
    is_told: bool,
}

struct Teller<'a> {
    about: &'a About,
    trace: String,
    timeline: Vec<Line>,
    in_trace: Vec<Value>,
    segments: Segments,
    operations: BTreeMap<OperationId, Known>,
    acts: BTreeMap<OperationId, Act>,
    /// How many events the record that is told has so far.
    count: u32,
    first: Option<String>,
    last: Option<String>,
}

/// An event in the making.
struct Told {
    name: &'static str,
    family: &'static str,
    /// What the schema of its family wants at the top.
    fields: Value,
    payload: Value,
}

impl Told {
    fn of(name: &'static str, family: &'static str, payload: Value) -> Self {
        Self {
            name,
            family,
            fields: Value::Null,
            payload,
        }
    }

    fn with(self, fields: Value) -> Self {
        Self { fields, ..self }
    }
}

impl<'a> Teller<'a> {
    fn new(about: &'a About) -> Self {
        Self {
            about,
            trace: about.trace(),
            timeline: Vec::new(),
            in_trace: Vec::new(),
            segments: Segments::new(&about.project),
            operations: BTreeMap::new(),
            acts: BTreeMap::new(),
            count: 0,
            first: None,
            last: None,
        }
    }

    /// Appends an event in both shapes.
    fn say(&mut self, record: &Record, told: Told) {
        self.count += 1;
        let at = moment(record.at);
        let id = uuid_of("event", &format!("{} {}", record.hash, self.count));
        let mut payload = object(told.payload);
        payload.insert("lsn".to_owned(), json!(record.lsn.0));
        payload.insert("record".to_owned(), json!(record.hash.to_string()));
        payload.insert("segment_id".to_owned(), json!(self.segments.current()));
        self.in_trace.push(json!({
            "event_id": id,
            "event_type": told.name,
            "source": "backout",
            "timestamp": at,
            "trace_id": self.trace,
            "data": payload,
        }));
        let mut event = object(told.fields);
        for (key, value) in [
            ("event_id", json!(id)),
            ("event_type", json!(told.name)),
            ("event_family", json!(told.family)),
            ("timestamp", json!(at)),
            ("project_id", json!(self.about.project)),
            ("payload", Value::Object(payload)),
        ] {
            event.insert(key.to_owned(), value);
        }
        self.timeline.push(Line {
            lsn: record.lsn,
            event: Value::Object(event),
        });
        self.first.get_or_insert_with(|| at.clone());
        self.last = Some(at);
    }

    fn tell_as(&mut self, record: &Record, name: &'static str, family: &'static str, it: Value) {
        self.say(record, Told::of(name, family, it));
    }

    /// Says what became of something outside, in the shape that it has of its own.
    fn say_integration(&mut self, record: &Record, name: &'static str, thing: &Value) {
        // The payload of such an event is the thing and nothing else; where it is from stands beside it.
        self.count += 1;
        let at = moment(record.at);
        let id = uuid_of("event", &format!("{} {}", record.hash, self.count));
        self.in_trace.push(json!({
            "event_id": id, "event_type": name, "source": "backout", "timestamp": at,
            "trace_id": self.trace, "data": thing,
        }));
        self.timeline.push(Line {
            lsn: record.lsn,
            event: json!({
                "event_id": id, "event_type": name, "event_family": "external_integration",
                "timestamp": at, "project_id": self.about.project, "payload": thing,
                "lsn": record.lsn.0, "record": record.hash.to_string(), "segment_id": self.segments.current(),
            }),
        });
        self.last = Some(at);
    }

    fn end(self) -> Story {
        let mut root = json!({
            "trace_id": self.trace,
            "span_id": self.segments.root(),
            "context_id": self.about.context,
        });
        set(
            &mut root,
            "attributes",
            json!({"project_id": self.about.project}),
        );
        let mut trace = json!({
            "meta": {"protocol_version": "1.0.0", "schema_version": "2.0.0", "created_by": "backout"},
            "trace_id": self.trace,
            "context_id": self.about.context,
            "root_span": root,
            "status": "running",
            "segments": self.segments.into_json(),
            "events": self.in_trace,
        });
        if let Some(plan) = &self.about.plan {
            set(&mut trace, "plan_id", json!(plan));
        }
        if let Some(first) = self.first {
            set(&mut trace, "started_at", json!(first));
        }
        Story {
            timeline: self.timeline,
            trace,
        }
    }
}

/// Gives an object a property.
fn set(object: &mut Value, key: &str, value: Value) {
    if let Value::Object(map) = object {
        map.insert(key.to_owned(), value);
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
