//! Numbers, for Prometheus and for a collector. What the journal tells is counted when somebody asks, from where the last one asked: nothing is
//! counted that nobody looks at.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use axum::http::StatusCode;
use backout_engine::{Engine, EngineError};
use backout_model::ports::APPEND_BOUNDS_US;
use backout_model::{Event, Lsn, OperationId, Status, Verb};

/// How many records are read at a time.
const RECORDS_AT_A_TIME: usize = 500;

/// How many operations under way are remembered.
const VERBS_MAX: usize = 65_536;

/// Counters of this process.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Where the journal ended when the server began.
    pub(crate) begun_at: u64,
    pub(crate) requests: AtomicU64,
    answers: Mutex<BTreeMap<u16, u64>>,
    seen: Mutex<Seen>,
}

/// What was counted of the journal, and up to where.
#[derive(Debug, Default)]
struct Seen {
    up_to: Option<Lsn>,
    /// By verb and by what became of it.
    operations: BTreeMap<(&'static str, &'static str), u64>,
    undone: BTreeMap<&'static str, u64>,
    /// The verbs of operations under way.
    verbs: BTreeMap<OperationId, Verb>,
}

impl Metrics {
    /// Begins to count the journal at its end.
    pub(crate) fn beginning_at(last: u64) -> Self {
        let metrics = Self {
            begun_at: last,
            ..Self::default()
        };
        metrics
            .seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .up_to = Some(Lsn(last));
        metrics
    }

    /// Counts an answer.
    pub(crate) fn answered(&self, status: StatusCode) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        *answers.entry(status.as_u16()).or_default() += 1;
    }

    /// Writes all of them down for Prometheus.
    pub(crate) fn text(
        &self,
        engine: &Engine,
        connections: u64,
        exported: Option<(u64, u64)>,
    ) -> Result<String, EngineError> {
        let families = self.families(engine, connections, exported)?;
        Ok(families.iter().map(Family::text).collect())
    }

    /// Gives all of them. `exported` is how many spans were sent to a collector and how many were dropped.
    pub(crate) fn families(
        &self,
        engine: &Engine,
        connections: u64,
        exported: Option<(u64, u64)>,
    ) -> Result<Vec<Family>, EngineError> {
        let mut all = self.of_journal(engine)?;
        all.extend(of_store(engine)?);
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = answers
            .iter()
            .map(|(code, count)| (vec![("code", code.to_string())], *count));
        all.push(Family::of(
            "backout_http_responses_total",
            Kind::Counter,
            "Answers, by status.",
            rows.collect(),
        ));
        let requests = self.requests.load(Ordering::Relaxed);
        let about = "Requests.";
        all.push(Family::count(
            "backout_http_requests_total",
            about,
            requests,
        ));
        let about = "Open connections.";
        all.push(Family::gauge("backout_connections", about, connections));
        if let Some((sent, dropped)) = exported {
            let rows = [("sent", sent), ("dropped", dropped)];
            let rows = rows.map(|(outcome, count)| (vec![("outcome", outcome.to_owned())], count));
            all.push(Family::of(
                "backout_otlp_spans_total",
                Kind::Counter,
                "Spans for the collector, by what became of them.",
                rows.to_vec(),
            ));
        }
        Ok(all)
    }

    fn of_journal(&self, engine: &Engine) -> Result<Vec<Family>, EngineError> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let from = seen.up_to.unwrap_or_default();
            let records = engine.store().records_after(from, RECORDS_AT_A_TIME)?;
            let is_end = records.len() < RECORDS_AT_A_TIME;
            for record in records {
                seen.up_to = Some(record.lsn);
                seen.count(&record.event);
            }
            if is_end {
                break;
            }
        }
        let operations = seen.operations.iter().map(|((verb, status), count)| {
            let labels = [("verb", *verb), ("status", *status)];
            (
                labels.map(|(name, of)| (name, of.to_owned())).to_vec(),
                *count,
            )
        });
        let undone = seen
            .undone
            .iter()
            .map(|(outcome, count)| (vec![("outcome", (*outcome).to_owned())], *count));
        Ok(vec![
            Family::of(
                "backout_operations_total",
                Kind::Counter,
                "Operations since the server began, by verb and by what became of them.",
                operations.collect(),
            ),
            Family::of(
                "backout_undo_targets_total",
                Kind::Counter,
                "Targets that were to be taken back since the server began, by outcome.",
                undone.collect(),
            ),
        ])
    }
}

fn of_store(engine: &Engine) -> Result<Vec<Family>, EngineError> {
    let store = engine.store();
    let summary = store.summary()?;
    let operations = summary
        .operations
        .iter()
        .map(|(status, count)| (vec![("status", status.as_str().to_owned())], *count));
    let stored = store.stored_bytes()?;
    let parts = [
        ("inline", stored.inline),
        ("packs", stored.packs),
        ("depots", stored.slots),
    ];
    let parts = parts.map(|(part, bytes)| (vec![("part", part.to_owned())], bytes));
    let cap = engine.settings().retention.store_bytes_max;
    let (pending, failed) = (store.proposals()?.len(), store.failed()?.len());
    let times = store.append_times();
    Ok(vec![
        Family::of(
            "backout_operations",
            Kind::Gauge,
            "Operations in the journal, by status.",
            operations.collect(),
        ),
        Family::of(
            "backout_store_bytes",
            Kind::Gauge,
            "What the store holds.",
            parts.to_vec(),
        ),
        Family::gauge(
            "backout_journal_bytes",
            "The journal on the disk.",
            store.journal_bytes(),
        ),
        Family::gauge("backout_store_bytes_max", "What the store may hold.", cap),
        Family::gauge(
            "backout_pending",
            "Proposals that wait for a decision.",
            pending as u64,
        ),
        Family::gauge(
            "backout_failed",
            "Undos that failed and that nobody solved.",
            failed as u64,
        ),
        Family {
            name: "backout_arm_seconds",
            kind: Kind::Histogram,
            about: "From asking for an arm to its record being on the disk.",
            numbers: Numbers::Histogram {
                bounds_us: APPEND_BOUNDS_US.to_vec(),
                counts: times.buckets.to_vec(),
                total_us: times.total_us,
                count: times.entries,
            },
        },
        Family::count(
            "backout_arm_syncs_total",
            "Syncs of the journal for arms.",
            times.commits,
        ),
    ])
}

impl Seen {
    fn count(&mut self, event: &Event) {
        if let Event::Undone { outcomes, .. } | Event::UndoFailed { outcomes, .. } = event {
            for outcome in outcomes {
                *self.undone.entry(outcome.kind.as_str()).or_default() += 1;
            }
        }
        let Some((id, status)) = event.brings_to() else {
            return;
        };
        let verb = match event.begins() {
            Some(begun) => Some(begun.verb),
            None if matches!(status, Status::Committed | Status::Aborted) => self.verbs.remove(&id),
            None => self.verbs.get(&id).copied(),
        };
        if let (Status::Armed, Some(verb)) = (status, verb) {
            // Those of tasks that never end are forgotten, and counted as others then.
            if self.verbs.len() >= VERBS_MAX {
                self.verbs.clear();
            }
            self.verbs.insert(id, verb);
        }
        let labels = (verb.map_or("other", Verb::as_str), status.as_str());
        *self.operations.entry(labels).or_default() += 1;
    }
}

/// What kind of numbers they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// Numbers of one name.
#[derive(Debug)]
pub(crate) struct Family {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) about: &'static str,
    pub(crate) numbers: Numbers,
}

/// A number, with what tells it from the others of its name.
type Row = (Vec<(&'static str, String)>, u64);

#[derive(Debug)]
pub(crate) enum Numbers {
    Rows(Vec<Row>),
    Histogram {
        bounds_us: Vec<u64>,
        /// How many are at most the bound, and more than the bound before.
        counts: Vec<u64>,
        total_us: u64,
        count: u64,
    },
}

impl Family {
    const fn of(name: &'static str, kind: Kind, about: &'static str, rows: Vec<Row>) -> Self {
        Self {
            name,
            kind,
            about,
            numbers: Numbers::Rows(rows),
        }
    }

    fn count(name: &'static str, about: &'static str, value: u64) -> Self {
        Self::of(name, Kind::Counter, about, vec![(Vec::new(), value)])
    }

    fn gauge(name: &'static str, about: &'static str, value: u64) -> Self {
        Self::of(name, Kind::Gauge, about, vec![(Vec::new(), value)])
    }

    /// Names what is counted, as OpenTelemetry does.
    pub(crate) fn unit(&self) -> &'static str {
        if self.name.contains("_bytes") {
            "By"
        } else if self.name.ends_with("_seconds") {
            "s"
        } else {
            "1"
        }
    }

    pub(crate) fn has_numbers(&self) -> bool {
        match &self.numbers {
            Numbers::Rows(rows) => !rows.is_empty(),
            Numbers::Histogram { .. } => true,
        }
    }

    /// Writes it down for Prometheus.
    fn text(&self) -> String {
        let (name, about) = (self.name, self.about);
        let kind = match self.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let mut out = format!("# HELP {name} {about}\n# TYPE {name} {kind}\n");
        match &self.numbers {
            Numbers::Rows(rows) => {
                for (labels, value) in rows {
                    let labels: Vec<String> = labels
                        .iter()
                        .map(|(label, value)| format!("{label}=\"{value}\""))
                        .collect();
                    let labels = match labels.join(",") {
                        labels if labels.is_empty() => labels,
                        labels => format!("{{{labels}}}"),
                    };
                    let _written = writeln!(out, "{name}{labels} {value}");
                }
            }
            Numbers::Histogram {
                bounds_us,
                counts,
                total_us,
                count,
            } => {
                let mut below = 0;
                for (bound, inside) in std::iter::zip(bounds_us, counts) {
                    below += inside;
                    let bound = seconds(*bound);
                    let _written = writeln!(out, "{name}_bucket{{le=\"{bound}\"}} {below}");
                }
                let total = seconds(*total_us);
                let _written = writeln!(
                    out,
                    "{name}_bucket{{le=\"+Inf\"}} {count}\n{name}_sum {total}\n{name}_count {count}"
                );
            }
        }
        out
    }
}

/// Writes microseconds as seconds.
fn seconds(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}
