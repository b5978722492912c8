//! Claude Code.

use serde_json::{Value, json};

use super::model::Model;
use super::{agent, installed, project};
use crate::world::{World, text};

fn bash(command: &str) -> Value {
    json!({"tool": "Bash", "input": {"command": command, "description": "x"}})
}

fn write(file: &str, content: &str) -> Value {
    json!({"tool": "Write", "input": {"file_path": format!("${{CWD}}/{file}"), "content": content}})
}

/// Runs Claude Code with a script, and gives what it said and what the model heard.
fn run(world: &World, turns: &Value, more: &[(&str, &str)]) -> (String, String) {
    let modules = installed("@anthropic-ai/claude-code");
    let model = Model::start(world, "anthropic", turns);
    let program = modules.join("@anthropic-ai/claude-code-linux-x64/claude");
    let url = format!("http://127.0.0.1:{}", model.port);
    let mut variables = vec![
        ("ANTHROPIC_BASE_URL", url.as_str()),
        ("ANTHROPIC_API_KEY", "dummy"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
    ];
    variables.extend(more);
    let words = [
        program.to_str().unwrap(),
        "-p",
        "please change everything",
        "--permission-mode",
        "acceptEdits",
        "--allowedTools",
        "Bash",
        "Agent",
        "--output-format",
        "json",
    ];
    let output = agent(world, &modules, &words, &variables);
    (text(&output), model.heard())
}

#[test]
fn all_that_answered_a_prompt_comes_back_bit_for_bit() {
    let world = project();
    let settings = world.home().join(".claude/settings.json");
    std::fs::create_dir(world.home().join(".claude")).unwrap();
    std::fs::write(
        &settings,
        "{\"permissions\": {\"deny\": [\"Bash(touch:*)\"]}}\n",
    )
    .unwrap();
    world.backout(&["init", "claude-code"]);
    let before = world.tree();
    let turns = json!({"main": [
        [write("new/deep.txt", "new\n")],
        [{"tool": "Read", "input": {"file_path": "${CWD}/edited.txt"}}],
        [{"tool": "Edit", "input": {"file_path": "${CWD}/edited.txt", "old_string": "one", "new_string": "two"}}],
        [bash("rm removed.txt && rm -r old && mkdir sub && cd sub && echo hi > b.txt")],
        [bash("touch forbidden.txt")],
        [{"tool": "Bash", "input": {"command": "sleep 1; echo late > bg.txt", "description": "x", "run_in_background": true}}],
        [{"tool": "Agent", "input": {"description": "sub", "prompt": "SUBTASK: write a file",
            "subagent_type": "general-purpose", "run_in_background": false}}],
        [{"tool": "ToolSearch", "input": {"query": "select:Monitor", "max_results": 3}}],
        [{"tool": "Monitor", "input": {"command": "echo seen > monitored.txt", "description": "x", "timeout_ms": 5000, "persistent": false}}],
        [bash("sleep 2; false")],
        [{"text": "all done"}]],
      "SUBTASK": [[write("sub.txt", "from the sub-agent\n")], [{"text": "done"}]]});
    let (said, heard) = run(&world, &turns, &[]);
    for file in [
        "new/deep.txt",
        "sub/b.txt",
        "sub/bg.txt",
        "sub/monitored.txt",
        "sub.txt",
    ] {
        assert!(world.path(file).exists(), "{file}: {said}");
    }
    assert_eq!(world.read("edited.txt"), "two\n");
    assert!(!world.path("removed.txt").exists() && !world.path("old").exists());
    assert!(
        !world.path("sub/forbidden.txt").exists(),
        "the user's own rule holds"
    );
    assert!(heard.contains("Backout: operation "), "the model is told");
    assert!(!heard.contains("did not see this command run"), "{heard}");
    let prompts = world.json(&["log", "--prompts"]);
    assert_eq!(prompts["prompts"][0]["text"], "please change everything");
    assert_eq!(prompts["prompts"].as_array().unwrap().len(), 1, "{prompts}");
    let summaries: Vec<String> = world
        .operations()
        .iter()
        .map(|it| it["summary"].to_string())
        .collect();
    assert!(
        summaries
            .iter()
            .any(|it| it.contains("run sleep 1; echo late > bg.txt")),
        "{summaries:?}"
    );
    world.backout(&["rollback", "--prompt", "-1"]);
    assert_eq!(world.tree(), before);
    world.backout(&["init", "claude-code", "--remove"]);
    assert_eq!(
        std::fs::read_to_string(&settings).unwrap(),
        "{\"permissions\": {\"deny\": [\"Bash(touch:*)\"]}}\n"
    );
}

#[test]
fn a_hook_that_refuses_or_breaks_down_lets_nothing_be_written() {
    let world = project();
    world.backout(&["init", "claude-code"]);
    world.write("backout.toml", "[protect]\ndeny = [\"secret.txt\"]\n");
    let before = world.tree();
    let turns = json!({"main": [[write("secret.txt", "x")], [bash("echo x > secret.txt")], [{"text": "done"}]]});
    let (said, heard) = run(&world, &turns, &[]);
    assert_eq!(world.tree(), before, "{said}");
    assert!(heard.contains("backout: not allowed"), "{heard}");
    let (said, heard) = run(&world, &turns, &[("BACKOUT_TEST_HOOK", "panic")]);
    assert_eq!(world.tree(), before, "{said}");
    assert!(heard.contains("it broke down at"), "{heard}");
}

#[test]
fn a_project_that_switches_the_seam_off_is_refused_its_shell() {
    let world = project();
    world.backout(&["init", "claude-code"]);
    std::fs::create_dir(world.path(".claude")).unwrap();
    world.write(
        ".claude/settings.json",
        "{\"env\": {\"CLAUDE_CODE_SHELL_PREFIX\": \"\"}}",
    );
    let before = world.tree();
    let turns = json!({"main": [[bash("echo x > unseen.txt")], [{"text": "done"}]]});
    let (said, heard) = run(&world, &turns, &[]);
    assert_eq!(world.tree(), before, "{said}");
    assert!(
        heard.contains("shell commands would run unrecorded"),
        "{heard}"
    );
}

#[test]
fn its_model_writes_and_undoes_by_our_own_tools() {
    let world = project();
    world.backout(&["init", "claude-code", "--mcp"]);
    let tool =
        |name: &str, input: Value| json!({"tool": format!("mcp__backout__{name}"), "input": input});
    let turns = json!({"main": [
        [tool("write", json!({"path": "tool.txt", "content": "by a tool\n"}))],
        [tool("run", json!({"command": "rm edited.txt; echo made > made.txt"}))],
        [tool("undo", json!({}))],
        [{"text": "done"}]]});
    let modules = installed("@anthropic-ai/claude-code");
    let model = Model::start(&world, "anthropic", &turns);
    let program = modules.join("@anthropic-ai/claude-code-linux-x64/claude");
    let url = format!("http://127.0.0.1:{}", model.port);
    let variables = [
        ("ANTHROPIC_BASE_URL", url.as_str()),
        ("ANTHROPIC_API_KEY", "dummy"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
    ];
    let words = [
        program.to_str().unwrap(),
        "-p",
        "please use the tools",
        "--allowedTools",
        "mcp__backout__write",
        "mcp__backout__run",
        "mcp__backout__undo",
        "--output-format",
        "json",
    ];
    let said = text(&agent(&world, &modules, &words, &variables));
    let heard = model.heard();
    // Of an answer in two forms, Claude Code gives its model the structured one.
    for reply in [r#"\"reply\":\"finished\""#, r#"\"reply\":\"undone\""#] {
        assert!(heard.contains(reply), "the model is told: {said}\n{heard}");
    }
    assert_eq!(world.read("tool.txt"), "by a tool\n", "{said}");
    assert_eq!(world.read("edited.txt"), "one\n", "the command was undone");
    assert!(!world.path("made.txt").exists());
    let log = world.json(&["log"]);
    let all = log["operations"].as_array().unwrap();
    let ours = all.iter().filter(|it| it["agent"] == "claude-code");
    assert_eq!(ours.count(), 3, "{log}");
    world.backout(&["init", "claude-code", "--mcp", "--remove"]);
}
