//! From an event as an agent tells it to ours.
//!
//! The agents call the same things by a few names; which of them occur tells who it is: several read each other's settings, so
//! an event may come by another agent's hook. What is not known is passed over.

use std::path::PathBuf;

use backout_model::Digest;
use serde_json::Value;

use crate::tools::does;
use crate::{Agent, Told, Use, What};

/// The event by which `doctor` asks whether a hook works. No agent has one of that name.
pub const CHECK: &str = "BackoutCheck";

/// Says why something is no event.
#[derive(Debug, thiserror::Error)]
pub enum NotAnEvent {
    /// Nothing came.
    #[error("nothing was said on standard input")]
    Empty,
    /// It is no JSON.
    #[error("what was said on standard input is no JSON: {0}")]
    Malformed(serde_json::Error),
    /// It is JSON, and no object.
    #[error("what was said on standard input is no object")]
    NoObject,
    /// It does not say which event it is.
    #[error("the event has no name")]
    NoName,
    /// It does not say which session it belongs to.
    #[error("the event `{name}` names no session")]
    NoSession {
        /// The event.
        name: String,
    },
}

/// Reads an event that came by the hook of an agent. `name` is the event's, for agents whose events do not say.
pub fn read(by: Agent, name: Option<&str>, text: &[u8]) -> Result<Told, NotAnEvent> {
    if text.iter().all(u8::is_ascii_whitespace) {
        return Err(NotAnEvent::Empty);
    }
    let event: Value = serde_json::from_slice(text).map_err(NotAnEvent::Malformed)?;
    if !event.is_object() {
        return Err(NotAnEvent::NoObject);
    }
    let agent = told_by(by, &event);
    let own = word(&event, &["hook_event_name", "hookEventName"]);
    let name = own
        .or(name)
        .or_else(|| word(&event, &["hookName", "event"]));
    let name = name.ok_or(NotAnEvent::NoName)?;
    let session = word(
        &event,
        &[
            "session_id",
            "sessionId",
            "conversation_id",
            "sessionID",
            "taskId",
        ],
    );
    let session = session.ok_or_else(|| NotAnEvent::NoSession {
        name: name.to_owned(),
    })?;
    let prompt = match agent {
        Agent::Cursor => word(&event, &["generation_id"]),
        // A conversation of its is one prompt.
        Agent::Cline => word(&event, &["taskId"]),
        Agent::ClaudeCode
        | Agent::Codex
        | Agent::Gemini
        | Agent::Qwen
        | Agent::OpenCode
        | Agent::Copilot => word(&event, &["prompt_id", "turn_id", "submitted_id"]),
    };
    Ok(Told {
        agent,
        name: name.to_owned(),
        session: session.to_owned(),
        agent_id: word(&event, &["agent_id", "agentId"]).map(ToOwned::to_owned),
        prompt: prompt.map(ToOwned::to_owned),
        directory: directory(&event),
        what: what(agent, name, &event),
    })
}

/// Finds out who tells it.
fn told_by(by: Agent, event: &Value) -> Agent {
    let has = |name: &str| event.get(name).is_some();
    if has("cursor_version") {
        return Agent::Cursor;
    }
    match by {
        Agent::ClaudeCode if has("turn_id") => Agent::Codex,
        Agent::ClaudeCode if has("toolName") || has("sessionId") => Agent::Copilot,
        Agent::ClaudeCode
        | Agent::Codex
        | Agent::Gemini
        | Agent::Qwen
        | Agent::OpenCode
        | Agent::Copilot
        | Agent::Cline
        | Agent::Cursor => by,
    }
}

fn directory(event: &Value) -> PathBuf {
    let own = word(event, &["cwd", "working_dir", "directory"]);
    let mut roots = ["workspace_roots", "workspaceRoots"].iter();
    let root = roots.find_map(|name| event.get(name)?.get(0)?.as_str());
    PathBuf::from(own.or(root).unwrap_or("/"))
}

fn what(agent: Agent, name: &str, event: &Value) -> What {
    match name {
        "UserPromptSubmit"
        | "BeforeAgent"
        | "userPromptSubmitted"
        | "beforeSubmitPrompt"
        | "user_prompt"
        | "TaskStart"
        | "agent_start"
        | "UserPromptSubmitted" => {
            let text = word(event, &["prompt", "submitted_prompt", "task", "text"]);
            What::Prompt(text.unwrap_or_default().to_owned())
        }
        "PreToolUse" | "BeforeTool" | "preToolUse" | "tool_call" => {
            What::Before(used(agent, event))
        }
        "PostToolUse" | "PostToolUseFailure" | "AfterTool" | "postToolUse" | "tool_result"
        | "postToolUseFailure" | "errorOccurred" => What::After(used(agent, event)),
        "PostToolBatch" | "SubagentStop" | "subagentStop" => What::TurnOver,
        "Stop" | "AfterAgent" | "agentStop" | "stop" | "TaskComplete" | "agent_end" => {
            What::Stopped
        }
        "SessionEnd" | "sessionEnd" | "session_end" => What::Ended,
        CHECK => What::Check,
        _ => What::Other,
    }
}

fn used(agent: Agent, event: &Value) -> Use {
    // Cline keeps it one level deeper.
    let nested = event.get("tool_call").or_else(|| event.get("tool_result"));
    let within = nested.filter(|it| it.is_object()).unwrap_or(event);
    let tool = word(within, &["tool_name", "toolName", "name"]).unwrap_or_default();
    let call = match agent {
        // What it calls the call's name is another one in each event.
        Agent::Qwen => word(within, &["tool_call_id", "tool_use_id"]),
        Agent::ClaudeCode
        | Agent::Codex
        | Agent::Gemini
        | Agent::OpenCode
        | Agent::Copilot
        | Agent::Cline
        | Agent::Cursor => word(within, &["tool_use_id", "toolUseId", "tool_call_id", "id"]),
    };
    let names = ["tool_input", "toolArgs", "input", "args"];
    let given = names.iter().find_map(|name| within.get(name));
    let input = match given {
        Some(Value::String(text)) => serde_json::from_str(text)
            .ok()
            .filter(Value::is_object)
            .unwrap_or_else(|| Value::String(text.clone())),
        Some(other) => other.clone(),
        None => Value::Null,
    };
    Use {
        call: call.map(ToOwned::to_owned),
        tool: tool.to_owned(),
        input: Digest::of(input.to_string().as_bytes()),
        does: does(agent, tool, &input),
    }
}

/// Gives the first of some fields that is a text and not empty.
fn word<'e>(event: &'e Value, names: &[&str]) -> Option<&'e str> {
    let mut found = names.iter().filter_map(|name| event.get(name)?.as_str());
    found.find(|text| !text.is_empty())
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
