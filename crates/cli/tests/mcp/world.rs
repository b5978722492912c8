//! A home, a directory to work in, and our program.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A place of its own. It is not below the directory for temporary files, where every command may write.
pub(crate) struct World {
    directory: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        for name in ["home", "work", "outside"] {
            std::fs::create_dir(directory.path().join(name)).unwrap();
        }
        Self { directory }
    }

    pub(crate) fn root(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.root().join("work")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.root().join("state")
    }

    /// A program in this world, with little of the environment.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("HOME", self.root().join("home"))
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("OUTSIDE", self.root().join("outside"))
            .current_dir(self.work())
            .stdin(Stdio::null());
        command
    }

    /// Our program, on the state of this world.
    pub(crate) fn program(&self) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_backout"));
        command.arg("--state-dir").arg(self.state());
        command
    }

    /// Runs our program, which must do what it is told.
    pub(crate) fn backout(&self, words: &[&str]) -> String {
        let output = self.program().args(words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{words:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The same, as JSON.
    pub(crate) fn json(&self, words: &[&str]) -> serde_json::Value {
        let words = [&["--json"], words].concat();
        serde_json::from_str(&self.backout(&words)).unwrap()
    }
}
