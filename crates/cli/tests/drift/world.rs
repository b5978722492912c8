//! A directory, a store, and the program.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// How long to wait for a watch to tell something, on a busy machine too.
const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) struct World {
    _directory: TempDir,
    pub(crate) root: PathBuf,
    pub(crate) state: PathBuf,
}

impl World {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        let (root, state) = (base.join("work"), base.join("state"));
        fs::create_dir(&root).unwrap();
        Self {
            _directory: directory,
            root,
            state,
        }
    }

    /// Keeps the store below the directory that is worked in.
    pub(crate) fn with_store_inside() -> Self {
        let mut world = Self::new();
        world.state = world.root.join(".backout");
        world
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(crate) fn put(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_backout"));
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.root)
            .env("BACKOUT_STATE_DIR", &self.state)
            .current_dir(&self.root)
            .stdin(Stdio::null())
            .args(words);
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// Runs a command that must succeed, and gives what it printed.
    pub(crate) fn does(&self, words: &[&str]) -> String {
        let output = self.run(words);
        let (out, err) = texts(&output);
        assert!(output.status.success(), "{words:?}: {out}{err}");
        out
    }

    /// Runs a command that must be refused, and gives what it said.
    pub(crate) fn refuses(&self, words: &[&str]) -> String {
        let output = self.run(words);
        let (out, err) = texts(&output);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {out}{err}");
        out + &err
    }

    pub(crate) fn json(&self, words: &[&str]) -> Value {
        let output = self.run(&[&["--json"], words].concat());
        let (out, err) = texts(&output);
        serde_json::from_str(&out).unwrap_or_else(|_| panic!("{words:?}: {out}{err}"))
    }

    /// Writes a file through Backout.
    pub(crate) fn write(&self, name: &str, text: &str) {
        self.does(&["write", "--parents", name, "--text", text]);
    }

    /// Looks at everything once, and lists what is open.
    pub(crate) fn sweep(&self) -> Vec<Drifted> {
        drifted(&self.json(&["watch", "--once"]))
    }

    pub(crate) fn open(&self) -> Vec<Drifted> {
        drifted(&self.json(&["drift"]))
    }

    /// Gives how many notes of drift are in the journal.
    pub(crate) fn notes(&self) -> usize {
        let report = self.json(&["drift", "--all"]);
        report["history"].as_array().map_or(0, Vec::len)
    }

    /// Waits until the store has these bytes.
    pub(crate) fn wait_until_stored(&self, texts: &[&str]) {
        let journal = self.state.join("journal.sqlite");
        let database = rusqlite::Connection::open(journal).unwrap();
        let began = std::time::Instant::now();
        let digests = texts
            .iter()
            .map(|text| backout_model::Digest::of(text.as_bytes()));
        let digests: Vec<_> = digests.collect();
        while began.elapsed() < PATIENCE {
            let sql = "SELECT count(*) FROM content WHERE digest = ?1";
            let has = |digest: &backout_model::Digest| {
                let name = digest.as_bytes().as_slice();
                let found = database.query_row(sql, [name], |row| row.get::<_, i64>(0));
                found.unwrap() > 0
            };
            if digests.iter().all(has) {
                return;
            }
            std::thread::yield_now();
        }
        panic!("the bytes were not kept");
    }

    pub(crate) fn newest(&self) -> String {
        let log = self.json(&["log", "-n", "1"]);
        log["operations"][0]["id"].as_str().unwrap().to_owned()
    }

    /// Starts a watch, and waits until it looks.
    pub(crate) fn watch(&self, words: &[&str], env: &[(&str, &str)]) -> Watching {
        let mut command = self.command(&[&["--json", "watch"], words].concat());
        command.envs(env.iter().copied());
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (send, lines) = channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let told = serde_json::from_str(&line).unwrap();
                if send.send(told).is_err() {
                    break;
                }
            }
        });
        let mut watching = Watching {
            child,
            lines,
            sees_processes: false,
        };
        let first = watching.next();
        assert_eq!(first["watch"], "began", "{first}");
        watching.sees_processes = first["processes"] == true;
        watching
    }
}

/// A watch that runs.
pub(crate) struct Watching {
    child: Child,
    lines: Receiver<Value>,
    /// Whether it is told which process changes something.
    pub(crate) sees_processes: bool,
}

impl Watching {
    /// Gives the next line that it tells.
    pub(crate) fn next(&mut self) -> Value {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => line,
            Err(error) => {
                let ended = self.child.try_wait();
                let mut err = String::new();
                if let (Ok(Some(_)), Some(said)) = (&ended, self.child.stderr.as_mut()) {
                    let _read = std::io::Read::read_to_string(said, &mut err);
                }
                panic!("the watch told nothing: {error} {ended:?} {err}")
            }
        }
    }

    /// Gathers what it tells until all of these are drift.
    pub(crate) fn until_all(&mut self, expected: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
        let mut seen = BTreeSet::new();
        while !expected.is_subset(&seen) {
            let line = self.next();
            if line["drift"] == "detected" {
                seen.insert(PathBuf::from(line["target"]["path"].as_str().unwrap()));
            } else if line["drift"] == "resolved" {
                seen.remove(Path::new(line["target"]["path"].as_str().unwrap()));
            }
        }
        seen
    }

    /// Gives what it tells within a moment, if anything.
    pub(crate) fn more(&mut self, moment: Duration) -> Option<Value> {
        self.lines.recv_timeout(moment).ok()
    }

    /// Ends it with a signal, and gives its exit code.
    pub(crate) fn end(mut self, signal: nix::sys::signal::Signal) -> Option<i32> {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        nix::sys::signal::kill(pid, signal).unwrap();
        let status = self.child.wait().unwrap();
        assert!(
            status.signal().is_none() || signal == nix::sys::signal::Signal::SIGKILL,
            "{status:?}"
        );
        status.code()
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _killed = self.child.kill();
        let _status = self.child.wait();
    }
}

/// One open drift.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Drifted {
    pub(crate) subject: String,
    pub(crate) kind: String,
    pub(crate) count: u64,
    pub(crate) choices: Vec<String>,
}

fn drifted(report: &Value) -> Vec<Drifted> {
    assert_eq!(report["reply"], "drift", "{report}");
    assert!(report.get("unanswered").is_none(), "{report}");
    let open = report["open"].as_array().unwrap();
    let one = |it: &Value| Drifted {
        subject: it["subject"].as_str().unwrap().to_owned(),
        kind: it["kind"].as_str().unwrap().to_owned(),
        count: it["count"].as_u64().unwrap_or(1),
        choices: it["choices"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it.as_str().unwrap().to_owned())
            .collect(),
    };
    open.iter().map(one).collect()
}

pub(crate) fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}
