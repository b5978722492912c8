//! Runs other programs and says how long they took, how much memory they used and what they said.

use std::ffi::OsStr;
use std::fs;
use std::io::{Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use wait4::Wait4 as _;

use crate::{Failure, root};

/// What a program did.
#[derive(Debug)]
pub(crate) struct Ran {
    /// From its start to its end.
    pub(crate) time: Duration,
    /// The most memory it had at once.
    pub(crate) peak_bytes: u64,
    /// Whether it ended well.
    pub(crate) is_success: bool,
    /// Its standard output.
    pub(crate) output: String,
    /// Its standard error.
    pub(crate) complaint: String,
}

impl Ran {
    /// The last line that a failed program said.
    pub(crate) fn why(&self) -> String {
        let text = if self.complaint.trim().is_empty() {
            &self.output
        } else {
            &self.complaint
        };
        text.trim().lines().last().unwrap_or_default().to_owned()
    }
}

/// Runs a program to its end. What it says goes to files, so that no full pipe can stop it.
pub(crate) fn run(command: &mut Command) -> Result<Ran, Failure> {
    let (mut output, mut complaint) = (tempfile::tempfile()?, tempfile::tempfile()?);
    command.stdout(output.try_clone()?);
    command.stderr(complaint.try_clone()?);
    let begun = Instant::now();
    let child = command.spawn().map_err(|error| {
        let program = Path::new(command.get_program()).display();
        format!("{program} cannot be started: {error}")
    })?;
    let used = child.wait4()?;
    let time = begun.elapsed();
    Ok(Ran {
        time,
        peak_bytes: used.rusage.maxrss,
        is_success: used.status.success(),
        output: text_of(&mut output)?,
        complaint: text_of(&mut complaint)?,
    })
}

/// Runs a program that is expected to end well.
pub(crate) fn run_well(command: &mut Command) -> Result<Ran, Failure> {
    let ran = run(command)?;
    if ran.is_success {
        return Ok(ran);
    }
    let program = Path::new(command.get_program()).display();
    Err(format!("{program}: {}", ran.why()).into())
}

/// Runs a program that reads `input`, and expects it to end well.
pub(crate) fn run_with_input(command: &mut Command, input: &str) -> Result<Ran, Failure> {
    let mut file = tempfile::tempfile()?;
    std::io::Write::write_all(&mut file, input.as_bytes())?;
    file.rewind()?;
    run_well(command.stdin(Stdio::from(file)))
}

fn text_of(file: &mut fs::File) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Builds the real program and gives its place. The tests take the one that the other tests use: nothing is built twice.
pub(crate) fn backout() -> Result<PathBuf, Failure> {
    let of_tests = target_dir().join("debug").join("backout");
    if cfg!(debug_assertions) && of_tests.is_file() {
        return Ok(fs::canonicalize(of_tests)?);
    }
    let mut build = cargo();
    build.args(["build", "--quiet", "--package", "backout-cli"]);
    let profile = if cfg!(debug_assertions) {
        build.args(["--features", "testing"]);
        "debug"
    } else {
        build.arg("--release");
        "release"
    };
    run_well(&mut build)?;
    Ok(fs::canonicalize(
        target_dir().join(profile).join("backout"),
    )?)
}

/// The cargo that runs us, at the root of the project.
pub(crate) fn cargo() -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root());
    command
}

/// Where cargo puts what it builds.
pub(crate) fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into)
}

/// The program of this name on the search path.
pub(crate) fn on_path(name: impl AsRef<OsStr>) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    places
        .into_iter()
        .map(|place| place.join(name.as_ref()))
        .find(|program| program.is_file())
}
