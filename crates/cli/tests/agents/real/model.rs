//! A server that plays the turns of a script on loopback, and what was asked of it.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::world::World;

/// A model that does as it is told.
pub(crate) struct Model {
    server: Child,
    log: PathBuf,
    /// The port that it listens on.
    pub(crate) port: u16,
}

impl Model {
    /// Starts one that speaks as `api` does: `anthropic`, `openai` or `gemini`.
    pub(crate) fn start(world: &World, api: &str, script: &Value) -> Self {
        let file = world.root().join("script.json");
        std::fs::write(&file, script.to_string()).unwrap();
        let log = world.root().join("requests.jsonl");
        let server = format!(
            "{}/tests/agents/models/{api}.py",
            env!("CARGO_MANIFEST_DIR")
        );
        let mut command = Command::new("python3");
        command.arg(server).arg(file).arg("--cwd").arg(world.work());
        command.arg("--log").arg(&log).stdin(Stdio::null());
        let mut server = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(server.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        Self {
            server,
            log,
            port: line.trim().parse().unwrap(),
        }
    }

    /// All that the model was sent.
    pub(crate) fn heard(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        let _killed = self.server.kill();
        let _gone = self.server.wait();
    }
}
