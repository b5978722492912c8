//! What an operation did to files and which command it was, in the shapes of the integration schemas.

use backout_model::{Captured, DriverName, Intent, Recipe, Target, Timestamp, Verb};
use serde_json::{Value, json};

use super::set;
use crate::moment::moment;
use crate::uuid::uuid_of;

/// The most files of one operation that have an event of their own.
const FILES_MAX: usize = 1000;

/// Says what a recipe does to files. Where the recipe is another driver's, its targets and the verb have to do.
pub(super) fn of_intent(intent: &Intent, at: Timestamp) -> Vec<Value> {
    of(&intent.recipe, &intent.targets, intent.verb, at)
}

/// The same of a command that is over.
pub(super) fn of_captured(captured: &Captured, at: Timestamp) -> Vec<Value> {
    of(&captured.recipe, &captured.targets, Verb::Run, at)
}

fn of(recipe: &Recipe, targets: &[Target], verb: Verb, at: Timestamp) -> Vec<Value> {
    let changes = if recipe.driver == DriverName::FILE {
        let body: Option<Value> = recipe.body.read().ok();
        body.and_then(|mut body| body.get_mut("changes").map(Value::take))
    } else {
        None
    };
    if let Some(changes) = changes.as_ref().and_then(Value::as_array) {
        let changes = changes.iter().take(FILES_MAX);
        return changes.filter_map(|change| changed(change, at)).collect();
    }
    let files = targets.iter().filter_map(Target::file).take(FILES_MAX);
    let kind = match verb {
        Verb::Remove => "deleted",
        Verb::Mkdir | Verb::Link | Verb::Copy => "created",
        Verb::Write
        | Verb::Edit
        | Verb::Append
        | Verb::Move
        | Verb::Chmod
        | Verb::Chown
        | Verb::Restore
        | Verb::Batch
        | Verb::Run
        | Verb::Undo
        | Verb::Redo
        | Verb::Recover => "modified",
    };
    files
        .map(|path| event(&path.to_string(), kind, at))
        .collect()
}

fn changed(change: &Value, at: Timestamp) -> Option<Value> {
    let text = |key: &str| change.get(key).and_then(Value::as_str);
    let is_absent = |key: &str| change.pointer(&format!("/{key}/is")) == Some(&json!("absent"));
    match text("change")? {
        "move" => {
            let mut renamed = event(text("to")?, "renamed", at);
            set(&mut renamed, "previous_path", json!(text("from")?));
            Some(renamed)
        }
        "set" => {
            let kind = match (is_absent("before"), is_absent("after")) {
                (true, true) => return None,
                (true, false) => "created",
                (false, true) => "deleted",
                (false, false) => "modified",
            };
            Some(event(text("path")?, kind, at))
        }
        _ => Some(event(text("path")?, "modified", at)),
    }
}

fn event(path: &str, kind: &str, at: Timestamp) -> Value {
    json!({"file_path": path, "change_type": kind, "timestamp": moment(at)})
}

/// Says how a command ended.
pub(super) fn of_command(
    captured: &Captured,
    tool: Option<&str>,
    summary: &str,
    at: Timestamp,
) -> Value {
    let status = match (captured.end.exit_code, captured.end.signal) {
        (Some(0), None) => "succeeded",
        (_, Some(_)) => "cancelled",
        _ => "failed",
    };
    let mut event = json!({
        "tool_id": tool.unwrap_or("command"),
        "tool_kind": "other",
        "invocation_id": uuid_of("operation", &captured.id.to_string()),
        "status": status,
        "completed_at": moment(at),
        "output_summary": summary,
    });
    if let Some(code) = captured.end.exit_code {
        set(&mut event, "exit_code", json!(code));
    }
    event
}
