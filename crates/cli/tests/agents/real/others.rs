//! Qwen Code, Copilot CLI and Cline.

use serde_json::json;

use super::model::Model;
use super::{agent, installed, project};
use crate::world::text;

#[test]
fn all_that_answered_a_prompt_of_qwen_code_comes_back_bit_for_bit() {
    let world = project();
    let modules = installed("@qwen-code/qwen-code");
    std::fs::create_dir(world.home().join(".qwen")).unwrap();
    let settings = world.home().join(".qwen/settings.json");
    let mine = "{\n  \"security\": {\"auth\": {\"selectedType\": \"openai\"}},\n  \"privacy\": {\"usageStatisticsEnabled\": false}\n}\n";
    std::fs::write(&settings, mine).unwrap();
    world.backout(&["init", "qwen"]);
    let before = world.tree();
    let turns = json!({"main": [
        [{"tool": "write_file", "input": {"file_path": "${CWD}/new/deep.txt", "content": "new\n"}}],
        [{"tool": "read_file", "input": {"file_path": "${CWD}/edited.txt"}}],
        [{"tool": "edit", "input": {"file_path": "${CWD}/edited.txt", "old_string": "one", "new_string": "two"}}],
        [{"tool": "run_shell_command", "input": {"command": "rm removed.txt; rm -r old; mkdir sub; echo hi > sub/b.txt", "description": "x", "is_background": false}}],
        [{"text": "all done"}]]});
    let model = Model::start(&world, "openai", &turns);
    let program = modules.join(".bin/qwen");
    let url = format!("http://127.0.0.1:{}/v1", model.port);
    let seam = world
        .home()
        .join(".local/state/backout/agents/qwen/bash-env");
    let seam = seam.to_str().unwrap();
    let variables = [
        ("BASH_ENV", seam),
        ("OPENAI_API_KEY", "dummy"),
        ("OPENAI_BASE_URL", url.as_str()),
        ("OPENAI_MODEL", "fake"),
    ];
    let words = [
        "node",
        program.to_str().unwrap(),
        "-p",
        "please change everything",
        "--approval-mode",
        "yolo",
    ];
    let output = agent(&world, &modules, &words, &variables);
    let (said, heard) = (text(&output), model.heard());
    assert!(
        world.path("new/deep.txt").exists() && world.path("sub/b.txt").exists(),
        "{said}"
    );
    assert_eq!(world.read("edited.txt"), "two\n", "{said}");
    assert!(!heard.contains("did not see this command run"), "{heard}");
    let prompts = world.json(&["log", "--prompts"]);
    assert_eq!(prompts["prompts"].as_array().unwrap().len(), 1, "{prompts}");
    world.backout(&["rollback", "--prompt", "-1"]);
    assert_eq!(world.tree(), before);
    world.backout(&["init", "qwen", "--remove"]);
    // Qwen Code itself has noted the version of the file meanwhile.
    let left = std::fs::read_to_string(&settings).unwrap();
    assert_eq!(left.replace(",\n  \"$version\": 4", ""), mine);
}

#[test]
fn what_the_file_tools_of_copilot_write_comes_back_and_its_shell_is_reported() {
    let world = project();
    let modules = installed("@github/copilot");
    world.backout(&["init", "copilot"]);
    let turns = json!({"main": [
        [{"tool": "create", "input": {"path": "${CWD}/new.txt", "file_text": "new\n"}}],
        [{"tool": "edit", "input": {"path": "${CWD}/edited.txt", "old_str": "one", "new_str": "two"}}],
        [{"tool": "bash", "input": {"command": "echo hi > unseen.txt", "description": "x", "mode": "sync", "initial_wait": 10}}],
        [{"text": "all done"}]]});
    let model = Model::start(&world, "openai", &turns);
    let program = modules.join(".bin/copilot");
    let url = format!("http://127.0.0.1:{}/v1", model.port);
    let variables = [
        ("COPILOT_OFFLINE", "true"),
        ("COPILOT_AUTO_UPDATE", "false"),
        ("COPILOT_MODEL", "fake"),
        ("COPILOT_PROVIDER_API_KEY", "dummy"),
        ("COPILOT_PROVIDER_BASE_URL", url.as_str()),
    ];
    let words = [
        "node",
        program.to_str().unwrap(),
        "-p",
        "please change everything",
        "--allow-all-tools",
    ];
    let said = text(&agent(&world, &modules, &words, &variables));
    assert_eq!(world.read("new.txt"), "new\n", "{said}");
    assert_eq!(world.read("edited.txt"), "two\n", "{said}");
    let prompts = world.json(&["log", "--prompts"]);
    assert_eq!(
        prompts["prompts"][0]["text"], "please change everything",
        "{prompts}"
    );
    world.backout(&["rollback", "--prompt", "-1"]);
    assert_eq!(world.read("edited.txt"), "one\n");
    assert!(!world.path("new.txt").exists());
    assert!(
        world.path("unseen.txt").exists(),
        "its shell is not protected, as the documentation says"
    );
}

#[test]
fn all_that_answered_a_prompt_of_cline_comes_back_bit_for_bit() {
    let world = project();
    let modules = installed("cline");
    world.backout(&["init", "cline"]);
    let before = world.tree();
    let turns = json!({"main": [
        [{"tool": "editor", "input": {"path": "${CWD}/new.txt", "new_text": "new\n"}}],
        [{"tool": "editor", "input": {"path": "${CWD}/edited.txt", "old_text": "one", "new_text": "two"}}],
        [{"tool": "run_commands", "input": {"commands": ["rm removed.txt; echo hi > b.txt"]}}],
        [{"text": "all done"}]]});
    let model = Model::start(&world, "openai", &turns);
    let program = modules.join("@cline/cli-linux-x64/bin/cline");
    let program = program.to_str().unwrap();
    let url = format!("http://127.0.0.1:{}/v1", model.port);
    let seam = world
        .home()
        .join(".local/state/backout/agents/cline/bash-env");
    let variables = [
        ("CLINE_NO_AUTO_UPDATE", "1"),
        ("CLINE_TELEMETRY_DISABLED", "1"),
        ("CI", "1"),
        ("BASH_ENV", seam.to_str().unwrap()),
    ];
    let _hub = Hub(world.home());
    let auth = [
        program,
        "auth",
        "-p",
        "openai-compatible",
        "-k",
        "dummy",
        "-m",
        "fake",
        "-b",
        &url,
    ];
    agent(&world, &modules, &auth, &variables);
    let words = [
        program,
        "-P",
        "openai-compatible",
        "-m",
        "fake",
        "please change everything",
    ];
    let said = text(&agent(&world, &modules, &words, &variables));
    assert_eq!(world.read("edited.txt"), "two\n", "{said}");
    assert!(
        world.path("b.txt").exists() && !world.path("removed.txt").exists(),
        "{said}"
    );
    let summaries: Vec<String> = world
        .operations()
        .iter()
        .map(|it| it["summary"].to_string())
        .collect();
    assert!(
        summaries
            .iter()
            .any(|it| it.contains("run rm removed.txt; echo hi > b.txt")),
        "{summaries:?}"
    );
    world.backout(&["rollback", "--prompt", "-1"]);
    assert_eq!(world.tree(), before);
}

/// Ends what Cline leaves running, which is known by its home directory.
struct Hub(std::path::PathBuf);

impl Drop for Hub {
    fn drop(&mut self) {
        let home = format!("HOME={}", self.0.display());
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            let is_its = environment
                .split(|byte| *byte == 0)
                .any(|it| it == home.as_bytes());
            if let (true, Some(pid)) = (is_its, entry.file_name().to_str()) {
                let _ended = std::process::Command::new("kill")
                    .args(["-9", pid])
                    .status();
            }
        }
    }
}
