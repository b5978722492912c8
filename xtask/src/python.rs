//! The Python package in `python/`: its types and its tests, with the program of this build or out of the wheel.
//!
//! Everything is installed into environments of its own below `target/`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::apt;
use crate::run::{Step, root, run_all};

/// The frameworks that the adapters are tried with.
const FRAMEWORKS: [&str; 4] = [
    "langgraph",
    "langchain-core",
    "openai-agents",
    "claude-agent-sdk",
];

/// Checks the types and runs the tests with the program that the tests of the workspace have built. The adapters are left out.
pub(crate) fn test() -> Result<(), String> {
    let environment = Environment::make("python-tests")?;
    environment.install(&["pytest", "mypy"])?;
    let program = root().join("target/debug/backout");
    let mut tests = environment.python();
    tests
        .args(["-m", "pytest", "-q", "--rootdir=python", "python/tests"])
        .args(["--ignore=python/tests/test_adapters.py"])
        .env("PYTHONPATH", root().join("python/src"))
        .env("BACKOUT_PROGRAM", program);
    // The types of the frameworks are not here.
    let mut types = environment.types();
    types.args(["--exclude", "test_adapters"]);
    run_all(vec![
        Step::new("python types", &mut types),
        Step::new("python tests", &mut tests),
    ])
}

/// Builds the wheel, installs it beside the frameworks, and runs all tests with what is in it.
pub(crate) fn wheel() -> Result<(), String> {
    let environment = Environment::make("python-wheel")?;
    environment.install(&["pytest", "mypy", "maturin"])?;
    environment.install(&FRAMEWORKS)?;
    let wheels = root().join("target/wheels");
    let mut build = environment.python();
    build
        .args(["-m", "maturin", "build", "--release", "--manifest-path"])
        .arg(root().join("crates/cli/Cargo.toml"))
        .arg("--out")
        .arg(&wheels)
        .current_dir(root().join("python"));
    let mut install = environment.python();
    install
        .args(["-m", "pip", "install", "-q", "--force-reinstall"])
        .args(["--no-index", "--no-deps", "--find-links"])
        .arg(&wheels)
        .arg("backout");
    let mut tests = environment.python();
    tests
        .args(["-m", "pytest", "-q", "--rootdir=python", "python/tests"])
        .env_remove("BACKOUT_PROGRAM")
        .env_remove("PYTHONPATH");
    let status = build.status().map_err(|error| error.to_string())?;
    if !status.success() {
        return Err(format!("the wheel was not built ({status})"));
    }
    run_all(vec![
        Step::new("wheel", &mut install),
        Step::new("python types", &mut environment.types()),
        Step::new("python tests", &mut tests),
    ])
}

/// An environment with packages of its own.
struct Environment {
    directory: PathBuf,
}

impl Environment {
    fn make(name: &str) -> Result<Self, String> {
        let directory = root().join("target").join(name);
        let environment = Self { directory };
        if environment.program().exists() {
            return Ok(environment);
        }
        // Debian has this apart from the interpreter.
        let has_venv = Command::new("python3")
            .args(["-c", "import ensurepip"])
            .output()
            .is_ok_and(|output| output.status.success());
        if !has_venv {
            apt::install(&["python3-venv"])?;
        }
        let mut make = Command::new("python3");
        make.args(["-m", "venv"]).arg(&environment.directory);
        run_all(vec![Step::new("python environment", &mut make)])?;
        Ok(environment)
    }

    fn program(&self) -> PathBuf {
        self.directory.join("bin/python")
    }

    fn python(&self) -> Command {
        Command::new(self.program())
    }

    fn install(&self, packages: &[&str]) -> Result<(), String> {
        let mut install = self.python();
        install.args(["-m", "pip", "install", "-q"]).args(packages);
        run_all(vec![Step::new("python packages", &mut install)])
    }

    fn types(&self) -> Command {
        let mut types = self.python();
        types
            .args(["-m", "mypy", "--config-file", "python/pyproject.toml"])
            .args(["--cache-dir"])
            .arg(self.directory.join("mypy"))
            .args([Path::new("python/src"), Path::new("python/tests")])
            .env("MYPYPATH", "python/src");
        types
    }
}
