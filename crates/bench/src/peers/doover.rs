//! `doover`: hooks around the agent's shell commands; a snapshot of the paths that the command line names.

use std::path::PathBuf;
use std::process::Command;

use super::{Peer, Step, Undone, World, install, undone};
use crate::Failure;
use crate::process::{run, run_with_input};

/// The hooks and the undo of `doover`.
#[derive(Debug, Default)]
pub(super) struct Doover {
    steps: usize,
}

impl Doover {
    fn program() -> PathBuf {
        install::program("doover")
    }

    fn command(world: &World) -> Command {
        let mut command = world.command(Self::program());
        command
            .env("DOOVER_HOME", &world.store)
            .env("DOOVER_MAX_SNAPSHOT_MS", "0");
        command
    }

    fn hook(&self, world: &World, step: &Step, when: &str) -> Result<(), Failure> {
        let event = serde_json::json!({
            "session_id": "race",
            "tool_use_id": format!("step-{}", self.steps),
            "tool_name": "Bash",
            "cwd": world.tree,
            "hook_event_name": if when == "pre" { "PreToolUse" } else { "PostToolUse" },
            "tool_input": {"command": world.agent_words(step).join(" ")},
            "duration_ms": 1,
        });
        run_with_input(
            Self::command(world).args(["hook", when]),
            &event.to_string(),
        )?;
        Ok(())
    }
}

impl Peer for Doover {
    fn name(&self) -> &'static str {
        "doover"
    }

    fn version(&self) -> Result<String, Failure> {
        install::version("doover", "doover ")
    }

    fn how(&self) -> &'static str {
        "`doover hook pre`, the command, `doover hook post`; `doover undo`"
    }

    fn prepare(&mut self, _world: &World) -> Result<(), Failure> {
        Ok(())
    }

    fn step(&mut self, world: &World, step: &Step) -> Result<(), Failure> {
        self.steps += 1;
        self.hook(world, step, "pre")?;
        world.agent(step)?;
        self.hook(world, step, "post")
    }

    fn undo(&mut self, world: &World, _step: &Step) -> Result<Undone, Failure> {
        Ok(undone(&run(Self::command(world).arg("undo"))?))
    }
}
