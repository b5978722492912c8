//! A home, a project and an agent that speaks.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

/// What a name is: kind and mode, bytes or where it leads, and when it was changed.
pub(crate) type Tree = BTreeMap<PathBuf, (u32, Vec<u8>, i64)>;

/// A place of its own.
pub(crate) struct World {
    directory: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::of(tempfile::tempdir().unwrap())
    }

    /// One that is not below the directory for temporary files, which some sandboxes take for their own.
    pub(crate) fn elsewhere() -> Self {
        Self::of(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap())
    }

    fn of(directory: tempfile::TempDir) -> Self {
        for name in ["home", "work"] {
            std::fs::create_dir(directory.path().join(name)).unwrap();
        }
        Self { directory }
    }

    pub(crate) fn root(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.root().join("work")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.work().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Our program, with nothing of the environment but a home and a path.
    pub(crate) fn program(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_backout"));
        command
            .env_clear()
            .env("HOME", self.home())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .current_dir(self.work())
            .stdin(Stdio::null());
        command
    }

    /// Runs our program, which must do what it is told.
    pub(crate) fn backout(&self, words: &[&str]) -> String {
        let output = self.program().args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", text(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The same, as JSON.
    pub(crate) fn json(&self, words: &[&str]) -> Value {
        let words = [&["--json"], words].concat();
        serde_json::from_str(&self.backout(&words)).unwrap()
    }

    /// Tells an event to a hook.
    pub(crate) fn hook(&self, agent: &str, event: &Value) -> Output {
        self.hook_with(agent, event.to_string().as_bytes(), &[])
    }

    /// Tells anything to a hook, with variables.
    pub(crate) fn hook_with(&self, agent: &str, said: &[u8], variables: &[(&str, &str)]) -> Output {
        let mut command = self.program();
        command
            .args(["hook", agent])
            .envs(variables.iter().copied());
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        // A hook that refuses early does not listen to the end.
        let _said = child.stdin.take().unwrap().write_all(said);
        child.wait_with_output().unwrap()
    }

    /// An event of Claude Code, with more fields.
    pub(crate) fn event(&self, name: &str, more: &Value) -> Value {
        let mut event = json!({
            "session_id": "s1", "prompt_id": "p1", "cwd": self.work(), "hook_event_name": name,
            "transcript_path": "/nowhere", "permission_mode": "acceptEdits",
        });
        let fields = event.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        event
    }

    /// An event about the tool `Write` and a file.
    pub(crate) fn write_event(&self, name: &str, call: &str, file: &str) -> Value {
        let input = json!({"file_path": self.path(file), "content": "x"});
        self.event(
            name,
            &json!({"tool_name": "Write", "tool_input": input, "tool_use_id": call}),
        )
    }

    /// Tells that a person asked for something.
    pub(crate) fn prompt(&self, own: &str, asked: &str) {
        let event = self.event(
            "UserPromptSubmit",
            &json!({"prompt_id": own, "prompt": asked}),
        );
        passed(&self.hook("claude-code", &event));
    }

    /// Writes a file as the tool of an agent does: told before and after. Gives what the model is told.
    pub(crate) fn tool_writes(&self, own: &str, call: &str, file: &str, content: &str) -> String {
        let with = |name: &str| {
            let mut event = self.write_event(name, call, file);
            event["prompt_id"] = own.into();
            event
        };
        passed(&self.hook("claude-code", &with("PreToolUse")));
        self.write(file, content);
        passed(&self.hook("claude-code", &with("PostToolUse")))
    }

    /// Starts a shell command of the agent that writes a file and then waits for a line in `fifo`.
    pub(crate) fn command_at_work(&self, begun: &str) -> std::process::Child {
        let fifo = Command::new("mkfifo").arg(self.path("fifo")).status();
        assert!(fifo.unwrap().success());
        let line = format!("echo begun > {begun}; read -r line < fifo");
        let mut words = self.program();
        words.args(["--agent", "claude-code", "run", "--session", "s1"]);
        let running = words.args(["--", "/bin/bash", "-c", &line]).spawn();
        while !self.path(begun).exists() {
            std::thread::yield_now();
        }
        running.unwrap()
    }

    /// Lists operations, newest first.
    pub(crate) fn operations(&self) -> Vec<Value> {
        self.json(&["log", "-n", "0"])["operations"]
            .as_array()
            .unwrap()
            .clone()
    }

    /// Looks at all that is below the project.
    pub(crate) fn tree(&self) -> Tree {
        let mut tree = Tree::new();
        gather(&self.work(), &mut tree);
        tree
    }
}

/// Claims that a hook let something pass, and gives what it said to the model.
pub(crate) fn passed(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", text(output));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let said: Value = match output.stdout.as_slice() {
        [] => Value::Null,
        json => serde_json::from_slice(json).unwrap(),
    };
    let told = said["hookSpecificOutput"]["additionalContext"].as_str();
    told.unwrap_or_default().to_owned()
}

/// Claims that a hook refused, in the one form that most agents obey, and gives the line.
pub(crate) fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{}", text(output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    let line = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(line.lines().count(), 1, "{line}");
    line
}

/// All that a process said.
pub(crate) fn text(output: &Output) -> String {
    let [out, errors] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    format!("{}\n{out}\n{errors}", output.status)
}

fn gather(path: &Path, tree: &mut Tree) {
    let meta = path.symlink_metadata().unwrap();
    let bytes = if meta.is_symlink() {
        std::fs::read_link(path)
            .unwrap()
            .into_os_string()
            .into_encoded_bytes()
    } else if meta.is_file() {
        std::fs::read(path).unwrap()
    } else {
        Vec::new()
    };
    tree.insert(
        path.to_path_buf(),
        (
            meta.mode(),
            bytes,
            meta.mtime_nsec() + meta.mtime() * 1_000_000_000,
        ),
    );
    if meta.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            gather(&entry.unwrap().path(), tree);
        }
    }
}
