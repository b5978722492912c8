//! Codex, with the trust that `init --trust` writes.

use serde_json::{Value, json};

use super::model::Model;
use super::{agent, installed, project};
use crate::world::{World, text};

fn shell(command: &str) -> Value {
    json!({"tool": "exec_command", "input": {"cmd": command, "workdir": "${CWD}"}})
}

fn patch(lines: &str) -> Value {
    json!({"tool": "apply_patch", "input": format!("*** Begin Patch\n{lines}*** End Patch\n")})
}

/// Runs Codex with a script, and gives what it said and what the model heard.
fn run(world: &World, turns: &Value, more: &[(&str, &str)]) -> (String, String) {
    run_in(world, "danger-full-access", turns, more)
}

fn run_in(world: &World, sandbox: &str, turns: &Value, more: &[(&str, &str)]) -> (String, String) {
    let modules = installed("@openai/codex");
    let model = Model::start(world, "openai", turns);
    let program =
        modules.join("@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex");
    let provider = format!(
        "model_providers.fake={{name=\"fake\",base_url=\"http://127.0.0.1:{}/v1\",wire_api=\"responses\",request_max_retries=0,stream_max_retries=0}}",
        model.port
    );
    let words = [
        program.to_str().unwrap(),
        "exec",
        "--skip-git-repo-check",
        "-s",
        sandbox,
        "-c",
        "model=\"gpt-5.5\"",
        "-c",
        "model_provider=\"fake\"",
        "-c",
        "check_for_update_on_startup=false",
        "-c",
        "analytics.enabled=false",
        "-c",
        &provider,
        "please change everything",
    ];
    let output = agent(world, &modules, &words, more);
    (text(&output), model.heard())
}

#[test]
fn all_that_answered_a_prompt_comes_back_bit_for_bit() {
    let world = project();
    std::fs::create_dir(world.home().join(".codex")).unwrap();
    let config = world.home().join(".codex/config.toml");
    std::fs::write(&config, "# mine\nhide_agent_reasoning = true\n").unwrap();
    let rules = world.home().join(".codex/rules");
    std::fs::create_dir(&rules).unwrap();
    std::fs::write(
        rules.join("mine.rules"),
        "prefix_rule(pattern=[\"touch\"], decision=\"forbidden\")\n",
    )
    .unwrap();
    world.backout(&["init", "codex", "--trust"]);
    let before = world.tree();
    let turns = json!({"main": [
        [patch("*** Add File: new/deep.txt\n+new\n")],
        [patch("*** Update File: edited.txt\n@@\n-one\n+two\n*** Delete File: removed.txt\n")],
        [shell("rm -r old; mkdir sub; echo hi > sub/b.txt")],
        [shell("touch forbidden.txt")],
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
    assert_eq!(prompts["prompts"][0]["text"], "please change everything");
    assert_eq!(prompts["prompts"].as_array().unwrap().len(), 1, "{prompts}");
    world.backout(&["rollback", "--prompt", "-1"]);
    assert_eq!(world.tree(), before);
    world.backout(&["init", "codex", "--remove"]);
    let left = std::fs::read_to_string(&config).unwrap();
    assert!(
        left.starts_with("# mine\nhide_agent_reasoning = true\n"),
        "{left}"
    );
    assert!(!left.contains("backout"), "{left}");
}

#[test]
fn a_hook_that_refuses_or_breaks_down_lets_nothing_be_written() {
    let world = project();
    world.backout(&["init", "codex", "--trust"]);
    world.write("backout.toml", "[protect]\ndeny = [\"secret.txt\"]\n");
    let before = world.tree();
    let turns = json!({"main": [[patch("*** Add File: secret.txt\n+x\n")], [{"text": "done"}]]});
    let (said, heard) = run(&world, &turns, &[]);
    assert_eq!(world.tree(), before, "{said}");
    assert!(heard.contains("backout: not allowed"), "{heard}");
    let (said, _) = run(&world, &turns, &[("BACKOUT_TEST_HOOK", "panic")]);
    assert_eq!(world.tree(), before, "{said}");
}

#[test]
fn inside_of_its_own_sandbox_commands_are_recorded_too() {
    let world = World::elsewhere();
    world.write("removed.txt", "removed\n");
    world.backout(&["init", "codex", "--trust"]);
    let mut before = world.tree();
    let turns = json!({"main": [
        [shell("rm removed.txt; echo hi > b.txt")],
        [patch("*** Add File: a.txt\n+one\n")],
        [{"text": "all done"}]]});
    let (said, heard) = run_in(&world, "workspace-write", &turns, &[]);
    assert!(
        world.path("a.txt").exists() && world.path("b.txt").exists(),
        "{said}"
    );
    assert!(!heard.contains("did not see this command run"), "{heard}");
    world.backout(&["rollback", "--prompt", "-1"]);
    // The sandbox makes names in the directory and takes them away again: its time is not ours alone.
    let mut after = world.tree();
    for tree in [&mut before, &mut after] {
        tree.get_mut(&world.work()).unwrap().2 = 0;
    }
    assert_eq!(after, before);
}
