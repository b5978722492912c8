//! Python environments with packages from the registry, for tests that ask somebody else's program.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Makes an environment with some packages below `home`, unless it is there, and gives the directory of its programs. Tests
/// that want it at once wait for the first.
///
/// # Panics
///
/// If the packages cannot be had.
pub fn python_with(home: &Path, packages: &[&str]) -> PathBuf {
    fs::create_dir_all(home).unwrap();
    let lock = File::create(home.join("lock")).unwrap();
    lock.lock().unwrap();
    let (environment, done) = (home.join("venv"), home.join("done"));
    let programs = environment.join("bin");
    let wanted = packages.join("\n");
    if fs::read_to_string(&done).is_ok_and(|found| found == wanted) {
        return programs;
    }
    let run = |command: &mut Command| {
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{command:?}: {said}");
    };
    run(Command::new("python3")
        .args(["-m", "venv"])
        .arg(&environment));
    let pip = ["-m", "pip", "install", "-q"];
    run(Command::new(programs.join("python"))
        .args(pip)
        .args(packages));
    fs::write(done, wanted).unwrap();
    programs
}
