//! Gemini CLI and Qwen Code: hooks in `settings.json`. The seam of the first stands in a `.env` beside it; the second takes it only
//! from the environment that it is started in.

use backout_config::Format;
use serde_json::json;

use super::{Keys, Places, Setup, TIMEOUT_SECONDS, hook, scripts, text, text_of};
use crate::Agent;

pub(super) fn setup(agent: Agent, places: &Places) -> Setup {
    let (directory, writers, tools, others): (_, _, &[&str], &[&str]) = if agent == Agent::Qwen {
        (
            ".qwen",
            "^(write_file|edit|run_shell_command|monitor)$",
            &["PreToolUse", "PostToolUse", "PostToolUseFailure"],
            &[
                "PostToolBatch",
                "UserPromptSubmit",
                "SubagentStop",
                "Stop",
                "SessionEnd",
            ],
        )
    } else {
        (
            ".gemini",
            "^(write_file|replace|run_shell_command)$",
            &["BeforeTool", "AfterTool"],
            &["BeforeAgent", "AfterAgent", "SessionEnd"],
        )
    };
    let directory = places.settings(directory);
    let handler = json!({
        "name": "backout",
        "type": "command",
        "command": places.line(agent),
        "timeout": TIMEOUT_SECONDS * 1000,
    });
    let tools = tools
        .iter()
        .map(|event| hook(event, Some(writers), &handler));
    let others = others.iter().map(|event| hook(event, None, &handler));
    let seam = text_of(&places.bash_env());
    let keys = |name: &str, format, wants| Keys {
        file: directory.join(name),
        format,
        agent,
        wants,
    };
    let hooks = keys(
        "settings.json",
        Format::Jsonc,
        tools.chain(others).collect(),
    );
    if agent == Agent::Qwen {
        // It takes no such variable from its settings.
        return Setup {
            keys: vec![hooks],
            files: vec![scripts::bash_env(places, agent)],
            notes: vec![format!(
                "start Qwen Code with `BASH_ENV={seam} SHLVL=2` in its environment, by an alias for example, or its shell commands are refused"
            )],
        };
    }
    Setup {
        keys: vec![
            hooks,
            keys(".env", Format::Env, vec![text(&["BASH_ENV"], &seam)]),
        ],
        files: vec![scripts::bash_env(places, agent)],
        notes: vec![format!(
            "{} reads the nearest `.env`: where a project has its own, put `BASH_ENV={seam}` there too, or its shell commands are refused",
            agent.title()
        )],
    }
}
