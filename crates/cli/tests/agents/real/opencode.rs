//! `OpenCode`, by the plugin that `init` writes.

use serde_json::{Value, json};

use super::model::Model;
use super::{agent, installed, project};
use crate::world::{World, text};

fn run(world: &World, turns: &Value, more: &[(&str, &str)]) -> (String, String) {
    let modules = installed("opencode-ai");
    let model = Model::start(world, "openai", turns);
    let settings = world.home().join(".config/opencode");
    std::fs::create_dir_all(&settings).unwrap();
    let url = format!("http://127.0.0.1:{}/v1", model.port);
    let config = json!({
        "autoupdate": false, "share": "disabled", "model": "fake/fake", "small_model": "fake/fake",
        "permission": {"bash": {"touch *": "deny", "*": "allow"}},
        "provider": {"fake": {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": url, "apiKey": "dummy"},
            "models": {"fake": {"tool_call": true, "limit": {"context": 100_000, "output": 4000}}}}},
    });
    std::fs::write(settings.join("opencode.json"), config.to_string()).unwrap();
    let program = modules.join("opencode-linux-x64/bin/opencode");
    let mut variables = vec![
        ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
        ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
        ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
    ];
    variables.extend(more);
    let words = [program.to_str().unwrap(), "run", "please change everything"];
    let output = agent(world, &modules, &words, &variables);
    (text(&output), model.heard())
}

#[test]
fn all_that_answered_a_prompt_comes_back_bit_for_bit() {
    let world = project();
    world.backout(&["init", "opencode"]);
    let before = world.tree();
    let turns = json!({"main": [
        [{"tool": "write", "input": {"filePath": "${CWD}/new/deep.txt", "content": "new\n"}}],
        [{"tool": "read", "input": {"filePath": "${CWD}/edited.txt"}}],
        [{"tool": "edit", "input": {"filePath": "${CWD}/edited.txt", "oldString": "one", "newString": "two"}}],
        [{"tool": "bash", "input": {"command": "rm removed.txt; rm -r old; mkdir sub; echo hi > sub/b.txt", "description": "x"}}],
        [{"tool": "bash", "input": {"command": "touch forbidden.txt", "description": "x"}}],
        [{"text": "all done"}]]});
    let (said, heard) = run(&world, &turns, &[]);
    assert!(
        world.path("new/deep.txt").exists() && world.path("sub/b.txt").exists(),
        "{said}"
    );
    assert_eq!(world.read("edited.txt"), "two\n", "{said}");
    assert!(!world.path("removed.txt").exists() && !world.path("old").exists());
    assert!(
        !world.path("forbidden.txt").exists(),
        "the user's own rule holds"
    );
    assert!(
        heard.contains("Backout: operation "),
        "the model is told: {heard}"
    );
    assert!(!heard.contains("did not see this command run"), "{heard}");
    let prompts = world.json(&["log", "--prompts"]);
    assert!(
        prompts["prompts"][0]["text"]
            .as_str()
            .unwrap()
            .contains("please change everything"),
        "{prompts}"
    );
    world.backout(&["rollback", "--prompt", "-1"]);
    assert_eq!(world.tree(), before);
    let plugin = world.home().join(".config/opencode/plugins/backout.js");
    assert!(plugin.exists());
    world.backout(&["init", "opencode", "--remove"]);
    assert!(!plugin.exists());
}

#[test]
fn a_hook_that_refuses_breaks_down_or_is_gone_lets_nothing_be_written() {
    let world = project();
    world.backout(&["init", "opencode"]);
    world.write("backout.toml", "[protect]\ndeny = [\"secret.txt\"]\n");
    let before = world.tree();
    let turns = json!({"main": [[{"tool": "write", "input": {"filePath": "${CWD}/secret.txt", "content": "x"}}], [{"text": "done"}]]});
    let (said, heard) = run(&world, &turns, &[]);
    assert_eq!(world.tree(), before, "{said}");
    assert!(heard.contains("backout: not allowed"), "{heard}");
}
