//! What a message claims, held against the world: all that is there, and what the journal holds for done.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use backout_testkit::world::Tree;
use rustix::mount::{MountFlags, UnmountFlags};
use rustix::process::{Pid, Signal};
use serde_json::Value;

use crate::world::{Ran, World};

/// An ordinary user.
const NOBODY: u32 = 65_534;

impl World {
    /// Runs a command that says that it changed nothing, and holds that against the world.
    #[track_caller]
    pub(crate) fn unmoved<const N: usize>(&self, arguments: [&str; N]) -> Ran {
        self.still(|| self.cli(arguments))
    }

    /// Does something that says that it changed nothing, and holds that against the world.
    #[track_caller]
    pub(crate) fn still(&self, act: impl FnOnce() -> Ran) -> Ran {
        let (tree, done) = (self.tree(), self.in_effect());
        let ran = act();
        assert_eq!(self.tree(), tree, "{ran}");
        assert_eq!(self.in_effect(), done, "{ran}");
        ran
    }

    /// Runs a shell line under `run` that changes nothing, and holds that against the world: all that is new in the journal
    /// is the command, without a target.
    #[track_caller]
    pub(crate) fn idle(&self, line: &str) -> Ran {
        let (tree, done) = (self.tree(), self.in_effect());
        let ran = self.cli(["run", "--", "sh", "-c", line]);
        assert_eq!(self.tree(), tree, "{ran}");
        let now = self.in_effect();
        let (command, others) = now.split_first().unwrap();
        assert!(command.ends_with("\"committed\" []"), "{command}");
        assert_eq!(others, done, "{ran}");
        ran
    }

    /// Looks at everything in the working directory.
    pub(crate) fn tree(&self) -> Tree {
        Tree::of(&self.path(""))
    }

    /// Lists what the journal holds for done or under way, newest first: id, status, and what is left of its targets.
    /// Nothing, if there is no journal; the error, if it cannot be read.
    pub(crate) fn in_effect(&self) -> Vec<String> {
        if !self.place("state/journal.sqlite").exists() {
            return Vec::new();
        }
        let ran = self.cli(["--json", "log", "-n", "1000"]);
        let Ok(log) = serde_json::from_str::<Value>(&ran.out) else {
            return vec![ran.to_string()];
        };
        let word = |value: Option<&Value>| value.map(ToString::to_string).unwrap_or_default();
        let operations = log.get("operations").and_then(Value::as_array);
        let lines = operations.into_iter().flatten().filter_map(|operation| {
            let status = word(operation.get("status"));
            let is_nothing = ["\"aborted\"", "\"refused\""].contains(&status.as_str());
            let targets = word(operation.get("targets"));
            (!is_nothing).then(|| format!("{} {status} {targets}", word(operation.get("id"))))
        });
        lines.collect()
    }

    /// The status of the newest operation in the journal, whatever became of it.
    pub(crate) fn newest_status(&self) -> String {
        self.newest("status")
    }

    /// The name of the newest operation in the journal, as people type it.
    pub(crate) fn newest_id(&self) -> String {
        self.newest("id").chars().take(8).collect()
    }

    fn newest(&self, field: &str) -> String {
        let ran = self.cli(["--json", "log", "-n", "1"]);
        let log: Value = serde_json::from_str(&ran.out).unwrap();
        let value = log.pointer(&format!("/operations/0/{field}")).unwrap();
        value.as_str().unwrap().to_owned()
    }

    /// Lets the command die at a step.
    #[track_caller]
    pub(crate) fn dies<const N: usize>(&self, step: &str, arguments: [&str; N]) {
        let mut command = self.command(&arguments);
        command.env("BACKOUT_CRASH_AT", step).stdin(Stdio::null());
        let ran = self.run(&mut command);
        assert_ne!(ran.code, 0, "it did not come to {step}: {ran}");
    }

    /// Prepares the command for an ordinary user, who may write nothing here but their state; only root can.
    pub(crate) fn as_nobody(&self, arguments: &[&str]) -> Option<Command> {
        if !is_root() {
            return None;
        }
        let program = self.place("backout");
        if !program.exists() {
            // Where it was built an ordinary user may have no access.
            fs::copy(env!("CARGO_BIN_EXE_backout"), &program).unwrap();
        }
        for (place, mode) in [("", 0o755), ("home", 0o777), ("seed", 0o777)] {
            fs::set_permissions(self.place(place), fs::Permissions::from_mode(mode)).unwrap();
        }
        let who = [
            format!("--reuid={NOBODY}"),
            format!("--regid={NOBODY}"),
            "--clear-groups".to_owned(),
        ];
        let mut command = self.program(Path::new("/usr/bin/setpriv"), &[]);
        command.args(who).arg(program).args(arguments);
        command
            .env("BACKOUT_STATE_DIR", self.place("home/state"))
            .stdin(Stdio::null());
        Some(command)
    }
}

/// Tells whether we may mount and act for others.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The size of a pipe, and so of what may be passed before it is full.
const PIPE: usize = 65_536;

/// A command that waits for a word: at a step of its own, or because what it runs reads its standard input.
#[derive(Debug)]
pub(crate) struct Waiting {
    child: Option<Child>,
    /// Where it writes its steps, if it waits at one.
    steps: Option<File>,
}

impl World {
    /// Starts a command whose program says a line and then waits for one.
    pub(crate) fn waiting<const N: usize>(&self, arguments: [&str; N]) -> Waiting {
        let mut command = self.command(&arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut said = [0; 1];
        while said != *b"\n" {
            child
                .stdout
                .as_mut()
                .unwrap()
                .read_exact(&mut said)
                .unwrap();
        }
        Waiting {
            child: Some(child),
            steps: None,
        }
    }

    /// Runs a command that has to work, and lists the steps that it takes.
    #[track_caller]
    pub(crate) fn steps(&self, arguments: &[&str]) -> Vec<String> {
        let log = self.place("log");
        let mut command = self.command(arguments);
        let ran = self.run(command.env("BACKOUT_CRASH_LOG", &log).stdin(Stdio::null()));
        assert_eq!(ran.code, 0, "{ran}");
        let steps = fs::read_to_string(log).unwrap();
        steps.lines().map(str::to_owned).collect()
    }

    /// Starts a command that stops at the step which comes after these.
    pub(crate) fn after_steps(&self, passed: &[&str], arguments: &[&str]) -> Waiting {
        // It writes down each step before it takes it. Once the pipe is full it waits.
        let path = self.place("steps");
        let made = Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        let options = File::options().read(true).write(true).open(&path);
        let mut steps = options.unwrap();
        let room: usize = passed.iter().map(|step| step.len() + 1).sum();
        steps.write_all(&vec![b'\n'; PIPE - room]).unwrap();
        let mut command = self.command(arguments);
        command.env("BACKOUT_CRASH_LOG", &path).stdin(Stdio::null());
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        while rustix::io::ioctl_fionread(&steps).unwrap() < PIPE as u64 {
            std::thread::sleep(Duration::from_millis(1));
        }
        Waiting {
            child: Some(child.unwrap()),
            steps: Some(steps),
        }
    }

    /// Lets it go on, and gives what it says until it ends.
    pub(crate) fn go_on(&self, mut waiting: Waiting) -> Ran {
        let mut child = waiting.child.take().unwrap();
        match &mut waiting.steps {
            // There is room for all the steps that are left.
            Some(steps) => steps.read_exact(&mut vec![0; PIPE - 4096]).unwrap(),
            None => drop(child.stdin.take()),
        }
        self.ran(&child.wait_with_output().unwrap())
    }
}

/// Starts a command in a world that is prepared, which stops before it takes a step for the first time. A twin of the world tells
/// which steps come before.
pub(crate) fn stopped_before(
    step: &str,
    prepared: impl Fn() -> World,
    arguments: &[&str],
) -> (World, Waiting) {
    let twin = prepared();
    let passed = twin.steps(arguments);
    let before: Vec<&str> = passed
        .iter()
        .map(String::as_str)
        .take_while(|passed| *passed != step)
        .collect();
    assert!(before.len() < passed.len(), "it does not come to {step}");
    let world = prepared();
    let waiting = world.after_steps(&before, arguments);
    (world, waiting)
}

impl Waiting {
    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(self.child.as_ref().unwrap());
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // A test that failed leaves nobody waiting.
        if let Some(child) = &mut self.child {
            let _gone = child.kill();
            let _ended = child.wait();
        }
    }
}

/// Shows what was said without the numbers of processes.
pub(crate) fn numberless(ran: &Ran) -> String {
    let said = ran.to_string();
    let mut parts = said.split("process ");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        let number = if rest.len() < part.len() { "PID" } else { "" };
        shown.extend(["process ", number, rest]);
    }
    shown
}

/// A small file system in memory that goes away with the test.
#[derive(Debug)]
pub(crate) struct Disk {
    path: PathBuf,
}

impl Disk {
    /// Mounts one of so many KiB at a directory, which is made; only root can.
    pub(crate) fn at(path: PathBuf, kib: u32) -> Option<Self> {
        if !is_root() {
            return None;
        }
        fs::create_dir_all(&path).unwrap();
        let size = std::ffi::CString::new(format!("size={kib}k,mode=0755")).unwrap();
        rustix::mount::mount(
            "tmpfs",
            &path,
            "tmpfs",
            MountFlags::empty(),
            Some(size.as_c_str()),
        )
        .unwrap();
        Some(Self { path })
    }

    /// Uses up all the space that is left.
    pub(crate) fn fill(&self) {
        let mut file = fs::File::create(self.path.join("filler")).unwrap();
        while file.write_all(&[b'x'; 4096]).is_ok() {}
    }

    /// Gives it another size.
    pub(crate) fn resize(&self, kib: u32) {
        let size = format!("size={kib}k");
        rustix::mount::mount_remount(&self.path, MountFlags::empty(), size.as_str()).unwrap();
    }

    /// Makes it read-only.
    pub(crate) fn lock(&self) {
        rustix::mount::mount_remount(&self.path, MountFlags::RDONLY, "").unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _gone = rustix::mount::unmount(&self.path, UnmountFlags::DETACH);
    }
}
