//! Codex: hooks in `hooks.json`, the seam and the room for our state in `config.toml`.

use backout_config::{Format, KeyPath, Value};
use serde_json::json;

use super::{Keys, Places, Setup, TIMEOUT_SECONDS, Want, hook, scripts, text, text_of};
use crate::Agent;

/// The tools that write.
const WRITERS: &str = "^(Bash|apply_patch)$";

pub(super) fn setup(places: &Places) -> Setup {
    let directory = places.settings(".codex");
    let handler = json!({
        "type": "command",
        "command": places.line(Agent::Codex),
        "timeout": TIMEOUT_SECONDS,
    });
    let mut hooks = Vec::new();
    for event in ["PreToolUse", "PostToolUse"] {
        hooks.push(hook(event, Some(WRITERS), &handler));
    }
    for event in ["UserPromptSubmit", "SubagentStop", "Stop", "SessionEnd"] {
        hooks.push(hook(event, None, &handler));
    }
    let environment = ["shell_environment_policy", "set"];
    let seam = text_of(&places.bash_env());
    let mut config = vec![
        text(&[environment[0], environment[1], "BASH_ENV"], &seam),
        Want::Default {
            key: KeyPath::of_names([environment[0], environment[1], "SHLVL"]),
            value: Value::Text("2".to_owned()),
        },
    ];
    // Its sandbox lets nobody else's state be written, and a run that cannot be recorded is refused.
    config.push(Want::Item {
        key: KeyPath::of_names(["sandbox_workspace_write", "writable_roots"]),
        value: Value::Text(text_of(&state_of(places))),
    });
    let keys = |name: &str, format, wants| Keys {
        file: directory.join(name),
        format,
        agent: Agent::Codex,
        wants,
    };
    Setup {
        keys: vec![
            keys("hooks.json", Format::Json, hooks),
            keys("config.toml", Format::Toml, config),
        ],
        files: vec![scripts::bash_env(places, Agent::Codex)],
        notes: vec![
            "Codex runs a hook only if you trust it: approve these in `/hooks`, or let `--trust` do it".to_owned(),
        ],
    }
}

/// Our own files for an agent are in the state directory.
fn state_of(places: &Places) -> std::path::PathBuf {
    let state = places.own.ancestors().nth(2);
    state.unwrap_or(&places.own).to_path_buf()
}
