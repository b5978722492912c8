//! What an operation did to files and which command it was, in the shapes of the integration schemas.

use backout_model::{Captured, DriverName, Intent, Recipe, Target, TargetPath, Timestamp, Verb};
use serde::Deserialize;
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

/// As much of the file driver's recipe as is told of it. Recipes are read for ever as they were once written, so this shape
/// stays as well; it is told again here because events are made without any driver.
#[derive(Deserialize)]
struct FileRecipe {
    changes: Vec<Change>,
}

/// One change of one name. A name that is no text has no place in an event.
#[derive(Deserialize)]
#[serde(tag = "change", rename_all = "kebab-case")]
enum Change {
    Set {
        path: TargetPath,
        before: Image,
        after: Image,
    },
    Move {
        from: TargetPath,
        to: TargetPath,
    },
    Retouch {
        path: TargetPath,
    },
    Rewrite {
        path: TargetPath,
    },
}

/// What a name stands for: nothing, or something.
#[derive(Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
enum Image {
    Absent,
    #[serde(other)]
    Something,
}

fn of(recipe: &Recipe, targets: &[Target], verb: Verb, at: Timestamp) -> Vec<Value> {
    if recipe.driver == DriverName::FILE
        && let Ok(FileRecipe { changes }) = recipe.body.read()
    {
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

fn changed(change: &Change, at: Timestamp) -> Option<Value> {
    let text = |path: &TargetPath| path.as_path().to_str().map(str::to_owned);
    let (path, kind) = match change {
        Change::Move { from, to } => {
            let mut renamed = event(&text(to)?, "renamed", at);
            set(&mut renamed, "previous_path", json!(text(from)?));
            return Some(renamed);
        }
        Change::Set {
            path,
            before,
            after,
        } => match (before, after) {
            (Image::Absent, Image::Absent) => return None,
            (Image::Absent, Image::Something) => (path, "created"),
            (Image::Something, Image::Absent) => (path, "deleted"),
            (Image::Something, Image::Something) => (path, "modified"),
        },
        Change::Retouch { path } | Change::Rewrite { path } => (path, "modified"),
    };
    Some(event(&text(path)?, kind, at))
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
