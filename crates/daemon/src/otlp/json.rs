//! OTLP in JSON: ids are hexadecimal digits, 64-bit integers are text, enumerations are numbers.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};

use super::Collector;
use super::span::{Span, Value};
use crate::metrics::{Family, Kind, Numbers};

/// Counts since the beginning, not since the last time.
const CUMULATIVE: u32 = 2;

const STATUS_ERROR: u32 = 2;

/// The span is sampled, and it is known whether its parent is of another process.
const FLAGS: u32 = 0x101;
const FLAG_REMOTE: u32 = 0x200;

/// Writes spans as an export request.
pub(super) fn spans(collector: &Collector, spans: &[Span]) -> Json {
    let spans: Vec<Json> = spans.iter().map(span).collect();
    json!({"resourceSpans": [{
        "resource": resource(collector),
        "scopeSpans": [{"scope": scope(), "spans": spans}],
    }]})
}

/// Writes numbers as an export request.
pub(super) fn numbers(collector: &Collector, families: &[Family], times: (u64, u64)) -> Json {
    let metrics = families.iter().filter(|it| it.has_numbers());
    let metrics: Vec<Json> = metrics.map(|family| metric(family, times)).collect();
    json!({"resourceMetrics": [{
        "resource": resource(collector),
        "scopeMetrics": [{"scope": scope(), "metrics": metrics}],
    }]})
}

fn metric(family: &Family, times: (u64, u64)) -> Json {
    let is_count = family.kind == Kind::Counter;
    let (kind, data) = match &family.numbers {
        Numbers::Rows(rows) => {
            let points = rows.iter().map(|(labels, value)| {
                let attributes = labels.iter();
                let attributes: Vec<Json> = attributes
                    .map(|(name, value)| attribute(name, &Value::Text(value.clone())))
                    .collect();
                let point = json!({"attributes": attributes, "asInt": value.to_string()});
                timed(point, times, is_count)
            });
            let points: Vec<Json> = points.collect();
            if is_count {
                let sum = json!({"aggregationTemporality": CUMULATIVE, "isMonotonic": true, "dataPoints": points});
                ("sum", sum)
            } else {
                ("gauge", json!({"dataPoints": points}))
            }
        }
        Numbers::Histogram {
            bounds_us,
            counts,
            total_us,
            count,
        } => {
            let seconds = |micros: u64| std::time::Duration::from_micros(micros).as_secs_f64();
            let bounds: Vec<f64> = bounds_us.iter().map(|bound| seconds(*bound)).collect();
            let inside: u64 = counts.iter().sum();
            let beyond = count.saturating_sub(inside);
            let counts = counts.iter().copied().chain([beyond]);
            let counts: Vec<String> = counts.map(|count| count.to_string()).collect();
            let point = json!({
                "count": (inside + beyond).to_string(),
                "sum": seconds(*total_us),
                "bucketCounts": counts,
                "explicitBounds": bounds,
            });
            let points = [timed(point, times, true)];
            let data = json!({"aggregationTemporality": CUMULATIVE, "dataPoints": points});
            ("histogram", data)
        }
    };
    let mut metric =
        json!({"name": family.name, "description": family.about, "unit": family.unit()});
    if let Some(metric) = metric.as_object_mut() {
        metric.insert(kind.to_owned(), data);
    }
    metric
}

/// Says when a number was so, and of a count since when.
fn timed(mut point: Json, (begun_ns, now_ns): (u64, u64), is_count: bool) -> Json {
    if let Some(point) = point.as_object_mut() {
        point.insert("timeUnixNano".to_owned(), json!(now_ns.to_string()));
        if is_count {
            point.insert("startTimeUnixNano".to_owned(), json!(begun_ns.to_string()));
        }
    }
    point
}

fn resource(collector: &Collector) -> Json {
    let text = |name: &str, value: &str| attribute(name, &Value::Text(value.to_owned()));
    let pid = Value::Number(u64::from(std::process::id()));
    json!({"attributes": [
        text("service.name", &collector.service),
        text("service.version", env!("CARGO_PKG_VERSION")),
        attribute("process.pid", &pid),
    ]})
}

fn scope() -> Json {
    json!({"name": "backout", "version": env!("CARGO_PKG_VERSION")})
}

fn span(span: &Span) -> Json {
    let attributes = span.attributes.iter();
    let attributes: Vec<Json> = attributes
        .map(|(name, value)| attribute(name, value))
        .collect();
    let remote = if span.is_remote { FLAG_REMOTE } else { 0 };
    let mut json = json!({
        "traceId": hex(&span.trace),
        "spanId": hex(&span.id),
        "flags": FLAGS | remote,
        "name": span.name,
        "kind": span.kind as u32,
        "startTimeUnixNano": span.start_ns.to_string(),
        "endTimeUnixNano": span.end_ns.to_string(),
        "attributes": attributes,
    });
    let mut also = |name: &str, value: Json| {
        if let Some(json) = json.as_object_mut() {
            json.insert(name.to_owned(), value);
        }
    };
    if let Some(parent) = &span.parent {
        also("parentSpanId", json!(hex(parent)));
    }
    if let Some(state) = &span.state {
        also("traceState", json!(state));
    }
    if let Some(error) = &span.error {
        also("status", json!({"code": STATUS_ERROR, "message": error}));
    }
    json
}

fn attribute(name: &str, value: &Value) -> Json {
    let value = match value {
        Value::Text(text) => json!({"stringValue": text}),
        Value::Number(number) => json!({"intValue": number.to_string()}),
    };
    json!({"key": name, "value": value})
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _written = write!(text, "{byte:02x}");
    }
    text
}
