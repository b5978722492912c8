//! A world of its own for every test: a directory to work in, a state directory beside it, and the real program.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

pub(crate) use backout_testkit::world::{Tree, memory, said};

/// A directory to work in and a state directory.
pub(crate) struct World {
    root: tempfile::TempDir,
    work: PathBuf,
    state: PathBuf,
    /// The ordinary user as whom the program runs.
    user: Option<u32>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::below(&std::env::temp_dir())
    }

    /// A world in memory, if that can be had: for what is done thousands of times, each with its syncs.
    pub(crate) fn in_memory() -> Self {
        Self::below(&memory())
    }

    fn below(place: &Path) -> Self {
        let root = tempfile::tempdir_in(place).unwrap();
        let (work, state) = (root.path().join("work"), root.path().join("state"));
        fs::create_dir(&work).unwrap();
        Self {
            root,
            work,
            state,
            user: None,
        }
    }

    /// A world on a mounted file system, beside others that are there.
    pub(crate) fn on(disk: &crate::disk::Disk) -> Self {
        Self::below(disk.root())
    }

    /// A world whose work happens elsewhere, on a file system of its own.
    pub(crate) fn at(work: &Path, state: Option<&Path>) -> Self {
        let root = tempfile::tempdir().unwrap();
        let state = state.map_or_else(|| root.path().join("state"), Path::to_path_buf);
        Self {
            root,
            work: work.to_path_buf(),
            state,
            user: None,
        }
    }

    /// The same, with the program run by an ordinary user who owns the directory to work in and the one that the state
    /// is in.
    pub(crate) fn of_user(mut self, user: u32) -> Self {
        self.user = Some(user);
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(self.root.path(), open.clone()).unwrap();
        // Where it was built an ordinary user may have no access.
        fs::copy(env!("CARGO_BIN_EXE_backout"), self.scratch("backout")).unwrap();
        fs::set_permissions(self.scratch("backout"), open).unwrap();
        fs::create_dir_all(&self.state).unwrap();
        for path in [self.root.path(), &self.state, &self.work] {
            chown(path, Some(user), Some(user)).unwrap();
        }
        self
    }

    /// A small project with everything that is easy to lose.
    pub(crate) fn with_project(self) -> Self {
        self.file("app.toml", "port = 8080\n");
        self.file("src/main.rs", "fn main() {}\n");
        self.file("src/lib.rs", "pub fn f() {}\n");
        fs::create_dir(self.path("src/empty")).unwrap();
        symlink("main.rs", self.path("src/link")).unwrap();
        symlink("nowhere", self.path("dangling")).unwrap();
        self.file("run.sh", "#!/bin/sh\n");
        fs::set_permissions(self.path("run.sh"), fs::Permissions::from_mode(0o4755)).unwrap();
        self.file("large.bin", &"0123456789abcdef".repeat(8 * 1024));
        self.file("one", "two names\n");
        fs::hard_link(self.path("one"), self.path("other")).unwrap();
        self
    }

    pub(crate) fn file(&self, name: &str, content: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.work.join(name)
    }

    pub(crate) fn state(&self) -> &Path {
        &self.state
    }

    pub(crate) fn scratch(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| format!("<{error}>"))
    }

    pub(crate) fn tree(&self) -> Tree {
        Tree::of(&self.work)
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = match self.user {
            None => Command::new(env!("CARGO_BIN_EXE_backout")),
            Some(user) => {
                let mut command = Command::new("setpriv");
                let (user, group) = (format!("--reuid={user}"), format!("--regid={user}"));
                command.args([&user, &group, "--clear-groups", "--"]);
                command.arg(self.scratch("backout"));
                command
            }
        };
        command
            .args(arguments)
            .current_dir(&self.work)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("BACKOUT_STATE_DIR", &self.state)
            .env("HOME", self.root.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn spawn(&self, arguments: &[&str]) -> Child {
        self.command(arguments).spawn().unwrap()
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Has several processes do the same at once, and gives what each said.
    pub(crate) fn at_once(&self, count: usize, arguments: &[&str]) -> Vec<Output> {
        let children: Vec<Child> = (0..count).map(|_| self.spawn(arguments)).collect();
        let ended = children.into_iter().map(Child::wait_with_output);
        ended.map(Result::unwrap).collect()
    }

    /// Makes one call with a key by six processes at once, and sees that it is one operation.
    pub(crate) fn is_one_operation(&self, call: &[&str]) {
        let call = [&["--json", "--once", "k"], call].concat();
        let mut ids = std::collections::BTreeSet::new();
        for output in self.at_once(6, &call) {
            assert!(output.status.success(), "{}", said(&output));
            let reply: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            ids.insert(reply["id"].to_string());
        }
        assert_eq!(ids.len(), 1, "{ids:?}");
        assert_eq!(self.operations().len(), 1);
        self.check_store();
    }

    /// Runs a command that must succeed, and gives what it said.
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", said(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs a command that must end with `code`, and gives what it complained of.
    pub(crate) fn fails(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{arguments:?}: {}",
            said(&output)
        );
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    pub(crate) fn json(&self, arguments: &[&str]) -> serde_json::Value {
        let mut all = vec!["--json"];
        all.extend(arguments);
        serde_json::from_str(&self.ok(&all)).unwrap()
    }

    /// The operations of the journal, newest first: (verb, status).
    pub(crate) fn operations(&self) -> Vec<(String, String)> {
        let log = self.json(&["log", "-n", "1000"]);
        let word = |op: &serde_json::Value, key: &str| op[key].as_str().unwrap().to_owned();
        let operations = log["operations"].as_array().unwrap();
        operations
            .iter()
            .map(|op| (word(op, "verb"), word(op, "status")))
            .collect()
    }

    /// Everything that must hold of the store after whatever happened.
    pub(crate) fn check_store(&self) {
        self.check().unwrap();
    }

    /// Says what does not hold of the store.
    pub(crate) fn check(&self) -> Result<(), String> {
        let nothing = serde_json::json!([]);
        let verified = self.run(&["verify"]);
        if !verified.status.success() {
            let log = said(&self.run(&["log", "-n", "20"]));
            return Err(format!("the store is not whole: {}{log}", said(&verified)));
        }
        let status = self.json(&["status"]);
        if status["unfinished"] != nothing {
            return Err(format!("unfinished: {}", status["unfinished"]));
        }
        if status["summary"]["leases"] != 0 {
            return Err(format!("{} leases", status["summary"]["leases"]));
        }
        let names = self.tree().names();
        let left: Vec<&String> = names
            .iter()
            .filter(|name| name.contains(".backout-"))
            .collect();
        if left.is_empty() {
            Ok(())
        } else {
            Err(format!("left behind: {left:?}"))
        }
    }
}
