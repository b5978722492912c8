//! Agents that read hooks from files of their own: what we put there is ours alone.

use backout_config::Format;
use serde_json::{Value, json};

use super::{Generated, Keys, Places, Setup, TIMEOUT_SECONDS, Want, scripts, value};
use crate::Agent;

pub(super) fn opencode(places: &Places) -> Setup {
    let directory = match (&places.project, &places.config) {
        (Some(project), _) => project.join(".opencode"),
        (None, Some(config)) => config.clone(),
        (None, None) => places.home.join(".config/opencode"),
    };
    let plugin = Generated {
        path: directory.join("plugins/backout.js"),
        text: scripts::opencode(places),
        is_executable: false,
    };
    Setup {
        files: vec![plugin, scripts::bash_env(places, Agent::OpenCode)],
        ..Setup::default()
    }
}

pub(super) fn copilot(places: &Places) -> Setup {
    let directory = match (&places.project, &places.config) {
        (Some(project), _) => project.join(".github"),
        (None, Some(config)) => config.clone(),
        (None, None) => places.home.join(".copilot"),
    };
    let line = places.line(Agent::Copilot);
    let events = [
        "userPromptSubmitted",
        "preToolUse",
        "postToolUse",
        "agentStop",
        "sessionEnd",
    ];
    let hooks = events.map(|event| {
        // Its events do not say which they are.
        let bash = format!("{line} {event}");
        let hook = json!([{"type": "command", "bash": bash, "timeoutSec": TIMEOUT_SECONDS}]);
        (event.to_owned(), hook)
    });
    let hooks: serde_json::Map<String, Value> = hooks.into_iter().collect();
    let file = Generated {
        path: directory.join("hooks/backout.json"),
        text: pretty(&json!({"version": 1, "hooks": hooks})),
        is_executable: false,
    };
    Setup {
        files: vec![file],
        notes: vec![
            "Copilot CLI has no place for a seam: what its shell commands do is not recorded, and each is reported as unprotected"
                .to_owned(),
        ],
        ..Setup::default()
    }
}

pub(super) fn cline(places: &Places) -> Setup {
    let directory = places.settings(".cline").join("hooks");
    let events = ["PreToolUse", "PostToolUse", "TaskStart", "TaskComplete"];
    let files = events.map(|event| Generated {
        path: directory.join(format!("{event}.sh")),
        text: scripts::cline(places, event),
        is_executable: true,
    });
    let seam = scripts::bash_env(places, Agent::Cline);
    let path = seam.path.display().to_string();
    let mut files: Vec<Generated> = files.into_iter().collect();
    files.push(seam);
    Setup {
        files,
        notes: vec![
            format!(
                "start Cline with `BASH_ENV={path} SHLVL=2` in its environment, or its shell commands are reported as unprotected"
            ),
            "end Cline's hub if it runs: it keeps the environment of its first start".to_owned(),
        ],
        ..Setup::default()
    }
}

pub(super) fn cursor(places: &Places) -> Setup {
    let line = places.line(Agent::Cursor);
    let tools = "Shell|Write|Delete|StrReplace|EditNotebook|ApplyPatch";
    let entry = |matcher: Option<&str>| {
        let mut entry = json!({"command": line, "timeout": TIMEOUT_SECONDS, "failClosed": true});
        if let (Some(matcher), Some(entry)) = (matcher, entry.as_object_mut()) {
            entry.insert("matcher".to_owned(), matcher.into());
        }
        value(&entry)
    };
    let item = |event: &str, matcher| Want::Item {
        key: backout_config::KeyPath::of_names(["hooks", event]),
        value: entry(matcher),
    };
    let wants = vec![
        Want::Default {
            key: backout_config::KeyPath::of_names(["version"]),
            value: backout_config::Value::Number("1".to_owned()),
        },
        item("preToolUse", Some(tools)),
        item("postToolUse", Some(tools)),
        item("beforeSubmitPrompt", None),
        item("stop", None),
        item("sessionEnd", None),
    ];
    let keys = Keys {
        file: places.settings(".cursor").join("hooks.json"),
        format: Format::Jsonc,
        agent: Agent::Cursor,
        wants,
    };
    Setup {
        keys: vec![keys],
        notes: vec![
            "Cursor was never run with this: its hooks are set by its documentation, and its shell commands are reported as unprotected"
                .to_owned(),
        ],
        ..Setup::default()
    }
}

fn pretty(value: &Value) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    format!("{text}\n")
}
