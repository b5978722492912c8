//! Numbers for Prometheus. What the journal tells is counted when somebody asks, from where the last one asked: nothing is
//! counted that nobody looks at.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use axum::http::StatusCode;
use backout_engine::{Engine, EngineError};
use backout_model::ports::APPEND_BOUNDS_US;
use backout_model::{Event, Lsn};

/// How many records are read at a time.
const RECORDS_AT_A_TIME: usize = 500;

/// How many operations under way are remembered.
const VERBS_MAX: usize = 65_536;

/// Counters of this process.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    pub(crate) requests: AtomicU64,
    answers: Mutex<BTreeMap<u16, u64>>,
    seen: Mutex<Seen>,
}

/// What was counted of the journal, and up to where.
#[derive(Debug, Default)]
struct Seen {
    up_to: Option<Lsn>,
    /// By verb and by what became of it.
    operations: BTreeMap<(String, &'static str), u64>,
    undone: BTreeMap<String, u64>,
    /// The verbs of operations under way.
    verbs: BTreeMap<backout_model::OperationId, String>,
}

impl Metrics {
    /// Begins to count the journal at its end.
    pub(crate) fn beginning_at(last: u64) -> Self {
        let metrics = Self::default();
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

    /// Writes all of them down.
    pub(crate) fn text(&self, engine: &Engine, connections: u64) -> Result<String, EngineError> {
        let mut out = String::new();
        self.of_journal(engine, &mut out)?;
        self.of_store(engine, &mut out)?;
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = answers
            .iter()
            .map(|(code, count)| (format!("{{code=\"{code}\"}}"), *count));
        family(
            &mut out,
            "backout_http_responses_total",
            "counter",
            "Answers, by status.",
            rows,
        );
        let requests = self.requests.load(Ordering::Relaxed);
        one(
            &mut out,
            "backout_http_requests_total",
            "counter",
            "Requests.",
            requests,
        );
        one(
            &mut out,
            "backout_connections",
            "gauge",
            "Open connections.",
            connections,
        );
        Ok(out)
    }

    fn of_journal(&self, engine: &Engine, out: &mut String) -> Result<(), EngineError> {
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
        let rows = seen.operations.iter().map(|((verb, status), count)| {
            (format!("{{verb=\"{verb}\",status=\"{status}\"}}"), *count)
        });
        let about = "Operations since the server began, by verb and by what became of them.";
        family(out, "backout_operations_total", "counter", about, rows);
        let rows = seen
            .undone
            .iter()
            .map(|(outcome, count)| (format!("{{outcome=\"{outcome}\"}}"), *count));
        let about = "Targets that were to be taken back since the server began, by outcome.";
        family(out, "backout_undo_targets_total", "counter", about, rows);
        Ok(())
    }

    #[expect(clippy::unused_self, reason = "stands beside the others")]
    fn of_store(&self, engine: &Engine, out: &mut String) -> Result<(), EngineError> {
        let summary = engine.store().summary()?;
        let rows = summary
            .operations
            .iter()
            .map(|(status, count)| (format!("{{status=\"{}\"}}", status.as_str()), *count));
        family(
            out,
            "backout_operations",
            "gauge",
            "Operations in the journal, by status.",
            rows,
        );
        let stored = engine.store().stored_bytes()?;
        let rows = [
            ("inline", stored.inline),
            ("packs", stored.packs),
            ("depots", stored.slots),
        ];
        let rows = rows.map(|(part, bytes)| (format!("{{part=\"{part}\"}}"), bytes));
        family(
            out,
            "backout_store_bytes",
            "gauge",
            "What the store holds.",
            rows.into_iter(),
        );
        let journal = engine.store().journal_bytes();
        one(
            out,
            "backout_journal_bytes",
            "gauge",
            "The journal on the disk.",
            journal,
        );
        let cap = engine.settings().retention.store_bytes_max;
        one(
            out,
            "backout_store_bytes_max",
            "gauge",
            "What the store may hold.",
            cap,
        );
        let pending = engine.store().proposals()?.len() as u64;
        one(
            out,
            "backout_pending",
            "gauge",
            "Proposals that wait for a decision.",
            pending,
        );
        let failed = engine.store().failed()?.len() as u64;
        one(
            out,
            "backout_failed",
            "gauge",
            "Undos that failed and that nobody solved.",
            failed,
        );
        arms(engine, out);
        Ok(())
    }
}

impl Seen {
    fn count(&mut self, event: &Event) {
        let (id, status) = match event {
            Event::Intent(intent) => {
                // Those of tasks that never end are forgotten, and counted as others then.
                if self.verbs.len() >= VERBS_MAX {
                    self.verbs.clear();
                }
                self.verbs.insert(intent.id, intent.verb.to_string());
                (intent.id, "armed")
            }
            Event::Refused(refusal) => {
                let verb = refusal.verb.to_string();
                *self.operations.entry((verb, "refused")).or_default() += 1;
                return;
            }
            Event::Proposed(proposal) => {
                let verb = proposal.verb.to_string();
                *self.operations.entry((verb, "proposed")).or_default() += 1;
                return;
            }
            Event::Applied { id, .. } => (*id, "applied"),
            Event::Commit { id } => (*id, "committed"),
            Event::Abort { id, .. } => (*id, "aborted"),
            Event::Interrupted { id, .. } => (*id, "interrupted"),
            Event::Undone { outcomes, .. } | Event::UndoFailed { outcomes, .. } => {
                for outcome in outcomes {
                    let word = serde_json::to_value(outcome).ok();
                    let word = word.as_ref().and_then(|it| it.get("outcome")?.as_str());
                    let word = word.unwrap_or("other").to_owned();
                    *self.undone.entry(word).or_default() += 1;
                }
                return;
            }
            _ => return,
        };
        let is_over = matches!(status, "committed" | "aborted");
        let verb = if is_over {
            self.verbs.remove(&id)
        } else {
            self.verbs.get(&id).cloned()
        };
        let verb = verb.unwrap_or_else(|| "other".to_owned());
        *self.operations.entry((verb, status)).or_default() += 1;
    }
}

/// How long arms took in this process.
fn arms(engine: &Engine, out: &mut String) {
    const NAME: &str = "backout_arm_seconds";
    let times = engine.store().append_times();
    let _written = writeln!(
        out,
        "# HELP {NAME} From asking for an arm to its record being on the disk.\n# TYPE {NAME} histogram"
    );
    let mut below = 0;
    for (bound, count) in std::iter::zip(APPEND_BOUNDS_US, times.buckets) {
        below += count;
        let _written = writeln!(out, "{NAME}_bucket{{le=\"{}\"}} {below}", seconds(bound));
    }
    let (entries, total) = (times.entries, seconds(times.total_us));
    let _written = writeln!(
        out,
        "{NAME}_bucket{{le=\"+Inf\"}} {entries}\n{NAME}_sum {total}\n{NAME}_count {entries}"
    );
    one(
        out,
        "backout_arm_syncs_total",
        "counter",
        "Syncs of the journal for arms.",
        times.commits,
    );
}

/// Writes microseconds as seconds.
fn seconds(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

fn one(out: &mut String, name: &str, kind: &str, about: &str, value: u64) {
    family(
        out,
        name,
        kind,
        about,
        std::iter::once((String::new(), value)),
    );
}

fn family(
    out: &mut String,
    name: &str,
    kind: &str,
    about: &str,
    rows: impl Iterator<Item = (String, u64)>,
) {
    let _written = writeln!(out, "# HELP {name} {about}\n# TYPE {name} {kind}");
    for (labels, value) in rows {
        let _written = writeln!(out, "{name}{labels} {value}");
    }
}
