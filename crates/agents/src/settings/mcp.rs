//! Our tools in an agent's list of MCP servers. That is beside the hooks: what an agent does by them is recorded by itself.

use std::path::PathBuf;

use backout_config::{Format, KeyPath, Value};
use serde_json::json;

use super::{Keys, Places, Setup, Want, gathered, text_of, value};
use crate::Agent;

/// What our entry is called.
const NAME: &str = "backout";

/// Says what gives an agent our tools; none if it is not known how it is told.
#[expect(
    clippy::too_many_lines,
    reason = "one table: where each agent looks for its tools"
)]
pub(super) fn setup(agent: Agent, places: &Places) -> Option<Setup> {
    let words = places.server_words(agent);
    let program = text_of(&places.program);
    let plain = json!({"command": program, "args": words});
    let (file, format, list, entry, note) = match agent {
        // What is for the user alone is in the file of all that it remembers.
        Agent::ClaudeCode => {
            let file = match (&places.project, &places.config) {
                (Some(project), _) => project.join(".mcp.json"),
                (None, Some(config)) => config.join(".claude.json"),
                (None, None) => places.home.join(".claude.json"),
            };
            let entry = json!({"type": "stdio", "command": program, "args": words});
            let note = "Claude Code asks before it uses a server that a project names";
            (
                file,
                Format::Json,
                "mcpServers",
                entry,
                places.project.is_some().then_some(note),
            )
        }
        Agent::Codex => (
            in_settings(places, ".codex", "config.toml"),
            Format::Toml,
            "mcp_servers",
            plain,
            None,
        ),
        Agent::Gemini => (
            in_settings(places, ".gemini", "settings.json"),
            Format::Jsonc,
            "mcpServers",
            plain,
            None,
        ),
        Agent::Qwen => (
            in_settings(places, ".qwen", "settings.json"),
            Format::Jsonc,
            "mcpServers",
            plain,
            None,
        ),
        Agent::OpenCode => {
            let file = match (&places.project, &places.config) {
                (Some(project), _) => project.join("opencode.json"),
                (None, Some(config)) => config.join("opencode.json"),
                (None, None) => places.home.join(".config/opencode/opencode.json"),
            };
            let all = std::iter::once(program).chain(words);
            let entry =
                json!({"type": "local", "command": all.collect::<Vec<_>>(), "enabled": true});
            (file, Format::Jsonc, "mcp", entry, None)
        }
        Agent::Cursor => (
            in_settings(places, ".cursor", "mcp.json"),
            Format::Jsonc,
            "mcpServers",
            plain,
            None,
        ),
        Agent::Copilot | Agent::Cline => return None,
    };
    let keys = Keys {
        file,
        format,
        agent,
        wants: vec![Want::Value {
            key: KeyPath::of_names([list, NAME]),
            value: value(&entry),
        }],
    };
    Some(Setup {
        keys: vec![keys],
        files: Vec::new(),
        notes: note.map(str::to_owned).into_iter().collect(),
    })
}

fn in_settings(places: &Places, directory: &str, file: &str) -> PathBuf {
    places.settings(directory).join(file)
}

/// Tells whether an entry starts `backout mcp`.
pub(super) fn is_our_server(entry: &Value) -> bool {
    let words = gathered(entry);
    let is_program = |word: &&str| *word == NAME || word.ends_with("/backout");
    words.iter().any(is_program) && words.contains(&"mcp")
}

impl Places {
    /// The words after the program's name that make it a server for an agent.
    fn server_words(&self, agent: Agent) -> Vec<String> {
        let mut words = vec!["--agent".to_owned(), agent.as_str().to_owned()];
        if let Some(directory) = &self.state_dir {
            words.extend(["--state-dir".to_owned(), text_of(directory)]);
        }
        words.push("mcp".to_owned());
        words
    }
}
