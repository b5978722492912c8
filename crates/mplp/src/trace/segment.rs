//! Segments of a trace: work, a rollback of it, the work after that.

use backout_model::Timestamp;
use serde_json::{Value, json};

use super::set;
use crate::moment::moment;
use crate::uuid::uuid_of;

struct Segment {
    id: String,
    parent: Option<String>,
    label: String,
    status: &'static str,
    began: String,
    ended: Option<String>,
}

/// The segments so far. The last that work happens in is the current one.
pub(super) struct Segments {
    project: String,
    all: Vec<Segment>,
    /// Which is current.
    at: usize,
    executions: usize,
    /// The rollback after which work goes on in a segment of its own.
    after: Option<String>,
}

impl Segments {
    pub(super) fn new(project: &str) -> Self {
        let mut segments = Self {
            project: project.to_owned(),
            all: Vec::new(),
            at: 0,
            executions: 0,
            after: None,
        };
        segments.execution(None, moment(Timestamp(0)));
        segments
    }

    /// Names the span that all of it happens in.
    pub(super) fn root(&self) -> String {
        uuid_of("span", &self.project)
    }

    /// Names the current segment.
    pub(super) fn current(&self) -> &str {
        self.all.get(self.at).map_or("", |segment| &segment.id)
    }

    /// Notes when the first work was done.
    pub(super) fn begin(&mut self, at: Timestamp) {
        if let Some(first) = self.all.first_mut()
            && first.began == moment(Timestamp(0))
        {
            first.began = moment(at);
        }
    }

    fn execution(&mut self, parent: Option<String>, began: String) {
        self.executions += 1;
        let label = format!("execution {}", self.executions);
        self.push(label, parent, began);
    }

    fn push(&mut self, label: String, parent: Option<String>, began: String) {
        self.at = self.all.len();
        self.all.push(Segment {
            id: uuid_of("segment", &format!("{} {}", self.project, self.at)),
            parent,
            label,
            status: "running",
            began,
            ended: None,
        });
    }

    /// A rollback begins: a segment in the one that it takes something back of. Gives its name.
    pub(super) fn rollback(&mut self, label: String, at: Timestamp) -> String {
        let parent = self.current().to_owned();
        self.push(label, Some(parent), moment(at));
        self.current().to_owned()
    }

    /// A rollback is over; whatever it was part of is, too, and work goes on elsewhere.
    pub(super) fn ended(&mut self, id: &str, status: &'static str, at: Timestamp) {
        for segment in &mut self.all {
            if segment.id == id {
                segment.status = status;
                segment.ended = Some(moment(at));
            }
        }
        self.after = Some(id.to_owned());
    }

    /// Work is done. Says whether that begins a segment, because something was rolled back before.
    pub(super) fn works(&mut self, at: Timestamp) -> Option<String> {
        let rollback = self.after.take()?;
        for segment in &mut self.all {
            if segment.ended.is_none() && segment.label.starts_with("execution") {
                segment.status = "cancelled";
                segment.ended = Some(moment(at));
            }
        }
        self.execution(Some(rollback.clone()), moment(at));
        Some(rollback)
    }

    pub(super) fn into_json(self) -> Vec<Value> {
        let each = self.all.into_iter().map(|segment| {
            let mut json = json!({
                "segment_id": segment.id,
                "label": segment.label,
                "status": segment.status,
                "started_at": segment.began,
            });
            if let Some(parent) = segment.parent {
                set(&mut json, "parent_segment_id", json!(parent));
            }
            if let Some(ended) = segment.ended {
                set(&mut json, "finished_at", json!(ended));
            }
            json
        });
        each.collect()
    }
}
