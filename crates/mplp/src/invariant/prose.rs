//! The two rules about sessions of several agents that upstream has in prose only, written out.
//!
//! Both look at the events of a trace. An event of the multi-agent profile stands there as it is, as the `data` of another event, or under a dotted name
//! (`map.turn.dispatched`), since the type of an event inside of a trace has no capitals.

use std::collections::BTreeMap;

use serde_json::Value;

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prose {
    /// A turn that was given was taken: as many completed as dispatched, for each session and role. In a trace that is not over, turns may be open.
    TurnsAreCompleted,
    /// A broadcast was heard: who sends one is answered at least once in the same session.
    BroadcastsAreReceived,
}

/// Finds the rule that belongs to an id.
pub(super) fn of(id: &str) -> Option<Prose> {
    match id {
        "map_turn_completion_matches_dispatch" => Some(Prose::TurnsAreCompleted),
        "map_broadcast_has_receivers" => Some(Prose::BroadcastsAreReceived),
        _ => None,
    }
}

impl Prose {
    /// Says where and how a trace breaks the rule.
    pub(super) fn told(self, trace: &Value) -> Vec<(String, String)> {
        let (opens, closes, by_role) = match self {
            Self::TurnsAreCompleted => ("MAPTurnDispatched", "MAPTurnCompleted", true),
            Self::BroadcastsAreReceived => ("MAPBroadcastSent", "MAPBroadcastReceived", false),
        };
        let events = match trace.get("events") {
            None => return Vec::new(),
            Some(events) => match events.as_array() {
                Some(events) => events,
                None => return vec![("/events".to_owned(), "it is no list".to_owned())],
            },
        };
        let mut told = Vec::new();
        let mut seen: BTreeMap<(String, String), Counted> = BTreeMap::new();
        for (at, event) in events.iter().enumerate() {
            let Some(event) = Seen::of(event) else {
                continue;
            };
            if event.kind != opens && event.kind != closes {
                continue;
            }
            let role = if by_role {
                event.role
            } else {
                Some(String::new())
            };
            let (Some(session), Some(role)) = (event.session, role) else {
                let why = format!("{} does not say for which session and role", event.kind);
                told.push((format!("/events/{at}"), why));
                continue;
            };
            let counted = seen.entry((session, role)).or_default();
            if event.kind == opens {
                counted.opened += 1;
                counted.last = at;
            } else {
                counted.closed += 1;
            }
        }
        if by_role && !is_over(trace) {
            return told;
        }
        for ((session, role), counted) in seen {
            let open = match self {
                Self::TurnsAreCompleted => counted.opened.saturating_sub(counted.closed),
                Self::BroadcastsAreReceived if counted.closed > 0 => 0,
                Self::BroadcastsAreReceived => counted.opened,
            };
            if open > 0 {
                let whose = if by_role {
                    format!(" by the role {role}")
                } else {
                    String::new()
                };
                let why = format!("{open} of {opens} in session {session}{whose} without {closes}");
                told.push((format!("/events/{}", counted.last), why));
            }
        }
        told
    }
}

#[derive(Default)]
struct Counted {
    opened: usize,
    closed: usize,
    /// Where the last one was opened.
    last: usize,
}

fn is_over(trace: &Value) -> bool {
    let status = trace.get("status").and_then(Value::as_str);
    matches!(status, Some("completed" | "failed" | "cancelled"))
}

struct Seen {
    kind: String,
    session: Option<String>,
    role: Option<String>,
}

impl Seen {
    fn of(event: &Value) -> Option<Self> {
        let text = |value: &Value, key: &str| {
            let text = value.get(key).and_then(Value::as_str);
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let data = event.get("data").unwrap_or(event);
        let kind = |value: &Value| {
            let kind = text(value, "event_type")?;
            Some(match kind.as_str() {
                "map.turn.dispatched" => "MAPTurnDispatched".to_owned(),
                "map.turn.completed" => "MAPTurnCompleted".to_owned(),
                "map.broadcast.sent" => "MAPBroadcastSent".to_owned(),
                "map.broadcast.received" => "MAPBroadcastReceived".to_owned(),
                _ if kind.starts_with("MAP") => kind,
                _ => return None,
            })
        };
        let payload = data.get("payload").unwrap_or(data);
        Some(Self {
            kind: kind(event).or_else(|| kind(data))?,
            session: text(data, "session_id").or_else(|| text(event, "session_id")),
            role: text(payload, "role_id").or_else(|| text(data, "role_id")),
        })
    }
}
