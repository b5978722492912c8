//! Running other programs and saying what is being done.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

/// One program to run.
pub(crate) struct Step<'c> {
    name: &'static str,
    command: &'c mut Command,
}

impl<'c> Step<'c> {
    pub(crate) const fn new(name: &'static str, command: &'c mut Command) -> Self {
        Self { name, command }
    }
}

/// Runs the steps in order and stops at the first that fails.
pub(crate) fn run_all(steps: Vec<Step<'_>>) -> Result<(), String> {
    for step in steps {
        say(&format!("== {}", step.name));
        let begun = Instant::now();
        let status = step.command.current_dir(root()).status();
        let status = status.map_err(|error| format!("{}: cannot start: {error}", step.name))?;
        if !status.success() {
            return Err(format!("{} failed ({status})", step.name));
        }
        say(&format!(
            "== {} done in {} s",
            step.name,
            begun.elapsed().as_secs()
        ));
    }
    Ok(())
}

/// The cargo that runs us. What it told us of this package does not go on: some build scripts run again when that changes, and
/// with them half of the workspace is compiled anew.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            cargo.env_remove(&name);
        }
    }
    cargo
}

/// The project's root.
pub(crate) fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent()
        .map_or(here.clone(), std::path::Path::to_path_buf)
}

/// Says something to the person at the terminal.
pub(crate) fn say(text: &str) {
    let _written = writeln!(std::io::stderr(), "{text}");
}
