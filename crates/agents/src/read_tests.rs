//! Payloads as the real agents sent them, cut short.

use backout_model::Verb;

use super::*;
use crate::Does;

fn told(by: Agent, text: &str) -> Told {
    read(by, None, text.as_bytes()).unwrap()
}

fn used(told: &Told) -> &Use {
    match &told.what {
        What::Before(used) | What::After(used) => used,
        other @ (What::Prompt(_)
        | What::TurnOver
        | What::Stopped
        | What::Ended
        | What::Check
        | What::Other) => panic!("{other:?}"),
    }
}

fn writes(verb: Verb, path: &str) -> Does {
    let paths = vec![PathBuf::from(path)];
    Does::Writes { verb, paths }
}

#[test]
fn claude_code_tells_of_a_write_of_a_sub_agent() {
    let told = told(
        Agent::ClaudeCode,
        r#"{"session_id": "s", "cwd": "/w", "prompt_id": "p", "agent_id": "a", "agent_type": "general-purpose",
            "hook_event_name": "PreToolUse", "tool_name": "Write", "new_field": [1],
            "tool_input": {"file_path": "/w/a.txt", "content": "one\n"}, "tool_use_id": "toolu_1"}"#,
    );
    assert_eq!(told.agent, Agent::ClaudeCode);
    assert_eq!(told.agent_id.as_deref(), Some("a"));
    assert_eq!(told.prompt.as_deref(), Some("p"));
    assert_eq!(used(&told).does, writes(Verb::Write, "/w/a.txt"));
    assert_eq!(used(&told).call.as_deref(), Some("toolu_1"));
}

#[test]
fn codex_tells_of_a_patch_and_of_a_shell() {
    let patch = told(
        Agent::Codex,
        r#"{"session_id": "s", "turn_id": "t", "cwd": "/w", "hook_event_name": "PreToolUse", "tool_name": "apply_patch",
            "tool_input": {"command": "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch\n"}, "tool_use_id": "c"}"#,
    );
    assert_eq!(used(&patch).does, writes(Verb::Remove, "a.txt"));
    assert_eq!(
        patch.absolute(std::path::Path::new("a.txt")),
        PathBuf::from("/w/a.txt")
    );
    let shell = told(
        Agent::Codex,
        r#"{"session_id": "s", "turn_id": "t", "cwd": "/w", "hook_event_name": "PostToolUse", "tool_name": "Bash",
            "tool_input": {"command": "ls"}, "tool_response": "", "tool_use_id": "c"}"#,
    );
    let commands = vec!["ls".to_owned()];
    assert_eq!(used(&shell).does, Does::Shell { commands });
}

#[test]
fn gemini_names_no_calls() {
    let before = r#"{"session_id": "s", "cwd": "/w", "hook_event_name": "BeforeTool", "timestamp": "t", "tool_name": "replace",
        "tool_input": {"file_path": "a.txt", "old_string": "one", "new_string": "two"}}"#;
    let after = before.replace("BeforeTool", "AfterTool");
    let (before, after) = (told(Agent::Gemini, before), told(Agent::Gemini, &after));
    assert_eq!(used(&before).call, None);
    assert_eq!(
        used(&before).input,
        used(&after).input,
        "they are joined by that"
    );
    assert_eq!(used(&before).does, writes(Verb::Edit, "a.txt"));
}

#[test]
fn qwen_names_a_call_by_the_models_name() {
    let told = told(
        Agent::Qwen,
        r#"{"session_id": "s", "cwd": "/w", "hook_event_name": "PreToolUse", "timestamp": "t", "prompt_id": "s########0",
            "tool_name": "write_file", "tool_input": {"file_path": "/w/a"}, "tool_use_id": "toolu_17_x", "tool_call_id": "call_0"}"#,
    );
    assert_eq!(used(&told).call.as_deref(), Some("call_0"));
}

#[test]
fn copilot_tells_in_its_own_form_and_in_that_of_claude_code() {
    let own = read(
        Agent::Copilot,
        Some("preToolUse"),
        br#"{"sessionId": "s", "timestamp": 1, "cwd": "/w", "toolName": "create", "toolArgs": "{\"path\":\"/w/a\",\"file_text\":\"x\"}"}"#,
    )
    .unwrap();
    assert_eq!(used(&own).does, writes(Verb::Write, "/w/a"));
    assert_eq!(own.name, "preToolUse");
    let by_claudes = read(
        Agent::ClaudeCode,
        Some("PreToolUse"),
        br#"{"sessionId": "s", "cwd": "/w", "toolName": "edit", "toolArgs": {"path": "/w/a"}}"#,
    );
    assert_eq!(by_claudes.unwrap().agent, Agent::Copilot);
}

#[test]
fn cursor_is_known_whoever_it_comes_by() {
    let text = r#"{"conversation_id": "c", "generation_id": "g", "session_id": "c", "cursor_version": "3", "workspace_roots": ["/w"],
        "hook_event_name": "preToolUse", "tool_name": "Delete", "tool_input": {"path": "a"}, "tool_use_id": "u"}"#;
    for by in [Agent::Cursor, Agent::ClaudeCode] {
        let told = told(by, text);
        assert_eq!(told.agent, Agent::Cursor);
        assert_eq!(told.prompt.as_deref(), Some("g"));
        assert_eq!(told.directory, PathBuf::from("/w"));
        assert_eq!(
            told.key("u"),
            super::super::call_key(Agent::Cursor, "c", None, "u")
        );
    }
}

#[test]
fn cline_keeps_the_call_one_level_deeper() {
    let told = told(
        Agent::Cline,
        r#"{"hookName": "tool_call", "taskId": "t", "workspaceRoots": ["/w"],
            "tool_call": {"id": "1", "name": "run_commands", "input": {"commands": ["ls", "rm x"]}}}"#,
    );
    let commands = vec!["ls".to_owned(), "rm x".to_owned()];
    assert_eq!(used(&told).does, Does::Shell { commands });
    assert_eq!(told.session, "t");
}

#[test]
fn what_is_no_event_is_told_as_such() {
    let said = |text: &[u8]| read(Agent::Codex, None, text).unwrap_err().to_string();
    assert_eq!(said(b" \n"), "nothing was said on standard input");
    assert_eq!(said(b"[1]"), "what was said on standard input is no object");
    assert_eq!(said(b"{}"), "the event has no name");
    let nameless = br#"{"hook_event_name": "PreToolUse"}"#;
    assert_eq!(said(nameless), "the event `PreToolUse` names no session");
    assert!(said(b"{\"a\":").starts_with("what was said on standard input is no JSON"));
    let deep = "[".repeat(10_000);
    assert!(said(deep.as_bytes()).contains("no JSON"));
}

#[test]
fn an_event_that_is_not_known_is_nothing_to_us() {
    let told = told(
        Agent::ClaudeCode,
        r#"{"session_id": "s", "hook_event_name": "SomethingNew", "cwd": "/w"}"#,
    );
    assert_eq!(told.what, What::Other);
}
