//! Claude Code: hooks without a shell, and a prefix for every command of its shell.

use backout_config::Format;
use serde_json::json;

use super::{Keys, Places, Setup, TIMEOUT_SECONDS, hook, scripts, text, text_of};
use crate::Agent;

/// The tools that write.
const WRITERS: &str = "Write|Edit|NotebookEdit|Bash|Monitor";

/// The variable that names what every command is run by.
pub(super) const PREFIX: &str = "CLAUDE_CODE_SHELL_PREFIX";

pub(super) fn setup(places: &Places) -> Setup {
    let shell = places.own.join("backout-shell");
    let handler = json!({
        "type": "command",
        "command": text_of(&places.program),
        "args": places.words(Agent::ClaudeCode),
        "timeout": TIMEOUT_SECONDS,
    });
    let mut wants = vec![text(&["env", PREFIX], &text_of(&shell))];
    for event in ["PreToolUse", "PostToolUse", "PostToolUseFailure"] {
        wants.push(hook(event, Some(WRITERS), &handler));
    }
    for event in [
        "PostToolBatch",
        "UserPromptSubmit",
        "SubagentStop",
        "Stop",
        "SessionEnd",
    ] {
        wants.push(hook(event, None, &handler));
    }
    let keys = Keys {
        file: places.settings(".claude").join("settings.json"),
        format: Format::Jsonc,
        agent: Agent::ClaudeCode,
        wants,
    };
    Setup {
        keys: vec![keys],
        files: vec![scripts::shell(places, shell)],
        notes: Vec::new(),
    }
}
