//! What a call is answered: the engine's own JSON, and beside it what a model reads.

use backout_engine::{Reply, Report};
use serde_json::{Value, json};

use crate::advice;
use crate::call::Failed;
use crate::child::Ended;
use crate::text;

/// How much of the rows of a statement a model is shown.
const ROWS_BYTES_MAX: usize = 32 * 1024;

#[derive(Debug)]
pub(crate) struct Answer {
    /// As programs read it.
    pub(crate) value: Value,
    /// As models read it, piece by piece.
    pub(crate) texts: Vec<String>,
    /// Whether it was not, or not wholly, done.
    pub(crate) is_error: bool,
}

impl Answer {
    /// Answers with a reply, and what was told on the way to it.
    pub(crate) fn of(reply: &Reply, told: Value) -> Self {
        let mut value = serde_json::to_value(reply).unwrap_or_default();
        let mut texts = vec![text::reply(reply)];
        if let (Some(value), Value::Object(told)) = (value.as_object_mut(), told) {
            texts.extend(recovered(&told));
            value.extend(told);
        }
        Self {
            value,
            texts,
            is_error: false,
        }
    }

    /// Answers that something was not, or not wholly, done.
    pub(crate) fn of_failure(failed: &Failed) -> Self {
        let mut texts = vec![text::report(&failed.report)];
        texts.extend(failed.done.as_deref().map(text::undone));
        let mut value = serde_json::to_value(&failed.report).unwrap_or_default();
        advice::reword(&mut value);
        Self {
            value,
            texts,
            is_error: true,
        }
    }

    /// Answers with what a process said.
    pub(crate) fn of_process(ended: Ended) -> Self {
        let Ended {
            reply,
            is_good,
            is_cancelled,
            said: [out, err],
        } = ended;
        let mut texts = Vec::new();
        if is_cancelled {
            texts.push(
                "You cancelled it, so it was ended. What it had done is recorded.\n".to_owned(),
            );
        }
        let Some(mut value) = reply else {
            let report =
                Report::broken("it is not known what became of it: the process said nothing")
                    .next("see what was done with the tool `log`");
            let mut answer = Self::of_failure(&report.into());
            answer.texts.splice(0..0, texts);
            answer.texts.extend(text::output("stderr", &err));
            return answer;
        };
        let is_report = value.get("severity").is_some() && value.get("reply").is_none();
        texts.push(if is_report {
            without_bringing_back(&mut value);
            advice::reword(&mut value);
            of_report(&value)
        } else {
            of_value(&value)
        });
        texts.extend(value.as_object().and_then(recovered));
        texts.extend(text::output("stdout", &out));
        texts.extend(text::output("stderr", &err));
        // That a command failed is no failure of ours; that a service or a rule said no is told as one.
        let ran = value
            .get("reply")
            .is_some_and(|it| it == "ran" || it == "trial");
        Self {
            is_error: is_report || (!is_good && !ran),
            value,
            texts,
        }
    }
}

/// Says what was recovered on the way.
fn recovered(told: &serde_json::Map<String, Value>) -> Option<String> {
    let count = told.get("recovered").and_then(Value::as_array)?.len();
    Some(format!(
        "Note: {count} operations that a process had left unfinished were settled first; the tool `log` shows how.\n"
    ))
}

fn of_value(value: &Value) -> String {
    match value.get("reply").and_then(Value::as_str) {
        Some("rows") => rows(value),
        Some("called") => called(value),
        _ => match serde_json::from_value::<Reply>(value.clone()) {
            Ok(reply) => text::reply(&reply),
            Err(_) => format!("{value}\n"),
        },
    }
}

fn finished(value: Option<&Value>) -> String {
    let Some(Value::Object(finished)) = value else {
        return String::new();
    };
    let mut finished = finished.clone();
    finished.insert("reply".to_owned(), json!("finished"));
    let reply = serde_json::from_value::<Reply>(Value::Object(finished));
    reply.map(|reply| text::reply(&reply)).unwrap_or_default()
}

fn rows(value: &Value) -> String {
    let mut text = finished(value.get("finished"));
    for table in value
        .get("results")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let line = |row: &Value| {
            let cells = row.as_array().into_iter().flatten();
            let cells: Vec<String> = cells
                .map(|cell| {
                    cell.as_str()
                        .map_or_else(|| cell.to_string(), str::to_owned)
                })
                .collect();
            cells.join(" | ")
        };
        let columns = table.get("columns").map(line).unwrap_or_default();
        text.extend([columns.as_str(), "\n"]);
        for row in table
            .get("rows")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            if text.len() > ROWS_BYTES_MAX {
                text.push_str("… there are more rows than are shown\n");
                return text;
            }
            text.extend([line(row).as_str(), "\n"]);
        }
        if table.get("has_more") == Some(&Value::Bool(true)) {
            text.push_str("… there are more rows than are told\n");
        }
    }
    text
}

fn called(value: &Value) -> String {
    let mut text = match value.get("status").and_then(Value::as_u64) {
        Some(status) => format!("Status {status}.\n"),
        None => String::new(),
    };
    text.push_str(&finished(value.get("operation")));
    if let Some(body) = value.get("body").and_then(Value::as_str) {
        text.extend([body, "\n"]);
    }
    text
}

/// What a rule took back is not an agent's to bring back.
fn without_bringing_back(report: &mut Value) {
    let reasons = report.get("reasons").and_then(Value::as_array);
    if reasons.is_none_or(Vec::is_empty) {
        return;
    }
    let names_redo = |next: &Value| {
        let calls = next.get("calls").and_then(Value::as_array);
        let mut commands = calls.into_iter().flatten().map(|call| call.get("command"));
        commands.any(|command| command.is_some_and(|it| it == "redo"))
    };
    if let Some(next) = report.get_mut("next").and_then(Value::as_array_mut) {
        next.retain(|next| !names_redo(next));
    }
}

/// Says a report that came as JSON.
fn of_report(value: &Value) -> String {
    let word = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    let list = |name: &str| {
        value
            .get(name)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    };
    let mut text = String::new();
    let is_waiting = word("code") == "waits";
    if is_waiting {
        let id: String = word("operation").chars().take(8).collect();
        text = text::waits(&id);
    }
    text.extend(["Error: ", word("what"), ".\n"]);
    for why in list("why").filter_map(Value::as_str) {
        text.extend(["Why: ", why, "\n"]);
    }
    for next in list("next").filter(|_| !is_waiting) {
        let next = next.get("text").and_then(Value::as_str).unwrap_or_default();
        text.extend(["Next: ", next, "\n"]);
    }
    text
}
