//! Gemini CLI.

use serde_json::{Value, json};

use super::model::Model;
use super::{agent, installed, project};
use crate::world::{World, text};

const MINE: &str = "{\n  \"security\": {\"auth\": {\"selectedType\": \"gemini-api-key\"}},\n  \"privacy\": {\"usageStatisticsEnabled\": false},\n  \"telemetry\": {\"enabled\": false},\n  \"general\": {\"enableAutoUpdate\": false},\n  \"tools\": {\"exclude\": [\"run_shell_command(touch)\"]}\n}\n";

fn run(world: &World, turns: &Value, more: &[(&str, &str)]) -> (String, String) {
    let modules = installed("@google/gemini-cli");
    let model = Model::start(world, "gemini", turns);
    let program = modules.join("@google/gemini-cli/bundle/gemini.js");
    let url = format!("http://127.0.0.1:{}", model.port);
    let mut variables = vec![
        ("GEMINI_API_KEY", "dummy"),
        ("GOOGLE_GEMINI_BASE_URL", url.as_str()),
        ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
    ];
    variables.extend(more);
    let words = [
        "node",
        program.to_str().unwrap(),
        "-p",
        "please change everything",
        "--approval-mode",
        "yolo",
        "-m",
        "gemini-2.5-pro",
    ];
    let output = agent(world, &modules, &words, &variables);
    (text(&output), model.heard())
}

#[test]
fn all_that_answered_a_prompt_comes_back_bit_for_bit() {
    let world = project();
    std::fs::create_dir(world.home().join(".gemini")).unwrap();
    let settings = world.home().join(".gemini/settings.json");
    std::fs::write(&settings, MINE).unwrap();
    world.backout(&["init", "gemini"]);
    let before = world.tree();
    let turns = json!({"main": [
        [{"tool": "write_file", "input": {"file_path": "${CWD}/new/deep.txt", "content": "new\n"}}],
        [{"tool": "replace", "input": {"file_path": "${CWD}/edited.txt", "instruction": "x", "old_string": "one", "new_string": "two"}}],
        [{"tool": "run_shell_command", "input": {"command": "rm removed.txt; rm -r old; mkdir sub; echo hi > sub/b.txt", "description": "x"}}],
        [{"text": "all done"}]]});
    let (said, heard) = run(&world, &turns, &[]);
    assert!(
        world.path("new/deep.txt").exists() && world.path("sub/b.txt").exists(),
        "{said}"
    );
    assert_eq!(world.read("edited.txt"), "two\n", "{said}");
    assert!(!world.path("removed.txt").exists() && !world.path("old").exists());
    assert!(
        heard.contains("Backout: operation "),
        "the model is told: {heard}"
    );
    assert!(!heard.contains("did not see this command run"), "{heard}");
    let prompts = world.json(&["log", "--prompts"]);
    assert_eq!(prompts["prompts"][0]["text"], "please change everything");
    world.backout(&["rollback", "--prompt", "-1"]);
    assert_eq!(world.tree(), before);
    world.backout(&["init", "gemini", "--remove"]);
    assert_eq!(std::fs::read_to_string(&settings).unwrap(), MINE);
}

#[test]
fn a_hook_that_refuses_or_breaks_down_lets_nothing_be_written() {
    let world = project();
    std::fs::create_dir(world.home().join(".gemini")).unwrap();
    std::fs::write(world.home().join(".gemini/settings.json"), MINE).unwrap();
    world.backout(&["init", "gemini"]);
    world.write("backout.toml", "[protect]\ndeny = [\"secret.txt\"]\n");
    let before = world.tree();
    let turns = json!({"main": [[{"tool": "write_file", "input": {"file_path": "${CWD}/secret.txt", "content": "x"}}], [{"text": "done"}]]});
    let (said, heard) = run(&world, &turns, &[]);
    assert_eq!(world.tree(), before, "{said}");
    assert!(heard.contains("backout: not allowed"), "{heard}");
}
