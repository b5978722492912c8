//! A world of its own for each test: a directory to work in, a state directory, a clock and a counter of ids.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use rustix::pty::OpenptFlags;
use rustix::termios::{OptionalActions, Winsize};
use tempfile::TempDir;

/// The moment at which every world begins.
const BEGIN_MS: i64 = 1_800_000_000_000;

/// What stands for the exit code of a process that was ended by a signal.
const SIGNALLED: i32 = 128;

/// A hermetic world.
#[derive(Debug)]
pub(crate) struct World {
    _directory: TempDir,
    root: PathBuf,
}

impl World {
    /// Makes an empty one.
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        for part in ["work", "seed", "home"] {
            fs::create_dir(root.join(part)).unwrap();
        }
        Self {
            _directory: directory,
            root,
        }
    }

    /// Puts a file there, behind Backout's back.
    #[must_use]
    pub(crate) fn file(self, name: &str, text: &str) -> Self {
        self.put(name, text);
        self
    }

    /// Puts a file there, behind Backout's back.
    pub(crate) fn put(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Lets minutes pass since the beginning.
    pub(crate) fn minutes(&self, minutes: i64) -> &Self {
        fs::write(
            self.root.join("seed/now"),
            (BEGIN_MS + minutes * 60_000).to_string(),
        )
        .unwrap();
        self
    }

    /// Says which number the next id has.
    pub(crate) fn next_id_is(&self, number: u64) {
        fs::write(self.root.join("seed/ids"), (number - 1).to_string()).unwrap();
    }

    /// Gives the path of something in the working directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join("work").join(name)
    }

    /// Gives the path of something in the world.
    pub(crate) fn place(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Reads a file of the working directory.
    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Tells whether something is there.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.path(name).symlink_metadata().is_ok()
    }

    /// Runs the command.
    pub(crate) fn cli<const N: usize>(&self, arguments: [&str; N]) -> Ran {
        self.run(self.command(&arguments).stdin(Stdio::null()))
    }

    /// Runs a command of which only the effect matters.
    #[track_caller]
    pub(crate) fn did<const N: usize>(&self, arguments: [&str; N]) {
        let ran = self.cli(arguments);
        assert_eq!(ran.code, 0, "{ran}");
    }

    /// Runs the command with something on its standard input.
    pub(crate) fn piped<const N: usize>(&self, input: &[u8], arguments: [&str; N]) -> Ran {
        let mut command = self.command(&arguments);
        let child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = child.spawn().unwrap();
        // It may refuse before it has read everything.
        let _written = child.stdin.take().unwrap().write_all(input);
        self.ran(&child.wait_with_output().unwrap())
    }

    /// Runs the command with all its streams on a terminal, which shows colours.
    pub(crate) fn terminal<const N: usize>(&self, columns: u16, arguments: [&str; N]) -> Ran {
        self.on_terminal(columns, self.command(&arguments), "")
    }

    /// The same, with a person who has typed something already.
    pub(crate) fn typed<const N: usize>(&self, typed: &str, arguments: [&str; N]) -> Ran {
        self.on_terminal(100, self.command(&arguments), typed)
    }

    /// The same, where the terminal is the person's own, so that a question can be asked whatever the streams are.
    pub(crate) fn asked<const N: usize>(&self, typed: &str, arguments: [&str; N]) -> Ran {
        let words = ["-c", "-w", env!("CARGO_BIN_EXE_backout")];
        let mut command = self.program(Path::new("/usr/bin/setsid"), &words);
        command.args(arguments);
        self.on_terminal(100, command, typed)
    }

    /// The same, with a person who presses Ctrl-C at a question.
    pub(crate) fn interrupted_at<const N: usize>(
        &self,
        question: &str,
        arguments: [&str; N],
    ) -> Ran {
        let words = ["-c", "-w", env!("CARGO_BIN_EXE_backout")];
        let mut command = self.program(Path::new("/usr/bin/setsid"), &words);
        command.args(arguments);
        let (master, mut child) = begun_on_terminal(100, command, "");
        let mut shown = String::new();
        let mut bytes = [0_u8; 4096];
        while !shown.contains(question) {
            let read = rustix::io::read(&master, &mut bytes).unwrap();
            shown += &String::from_utf8_lossy(bytes.get(..read).unwrap());
        }
        rustix::io::write(&master, b"\x03").unwrap();
        shown += &read_terminal(master);
        self.shown(&shown, child.wait().unwrap())
    }

    /// The same, with a progress bar for whatever takes time at all.
    pub(crate) fn impatient_terminal<const N: usize>(
        &self,
        columns: u16,
        arguments: [&str; N],
    ) -> Ran {
        let mut command = self.command(&arguments);
        command.env("BACKOUT_TEST_IMPATIENT", "1");
        self.on_terminal(columns, command, "")
    }

    fn on_terminal(&self, columns: u16, command: Command, typed: &str) -> Ran {
        let (master, mut child) = begun_on_terminal(columns, command, typed);
        let shown = read_terminal(master);
        self.shown(&shown, child.wait().unwrap())
    }

    /// Says what a terminal showed, without the name of the world.
    fn shown(&self, shown: &str, status: ExitStatus) -> Ran {
        Ran {
            code: status.code().unwrap_or(SIGNALLED),
            out: self.normal(&shown.replace("\r\n", "\n")),
            err: String::new(),
        }
    }

    /// Prepares the command, for what the other ways to run it do not do.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.program(Path::new(env!("CARGO_BIN_EXE_backout")), arguments)
    }

    /// Prepares any program in this world.
    pub(crate) fn program(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(self.root.join("work"))
            .env_clear()
            .env("HOME", self.root.join("home"))
            .env("TZ", "UTC")
            .env("BACKOUT_STATE_DIR", self.root.join("state"))
            .env("BACKOUT_TEST_SEED", self.root.join("seed"));
        command
    }

    /// Runs a prepared command.
    pub(crate) fn run(&self, command: &mut Command) -> Ran {
        self.ran(&command.output().unwrap())
    }

    /// Says what a run printed, without the name of the world.
    pub(crate) fn ran(&self, output: &Output) -> Ran {
        Ran {
            code: output.status.code().unwrap_or(SIGNALLED),
            out: self.normal(&String::from_utf8_lossy(&output.stdout)),
            err: self.normal(&String::from_utf8_lossy(&output.stderr)),
        }
    }

    fn normal(&self, text: &str) -> String {
        text.replace(self.root.to_str().unwrap(), "$WORLD")
    }
}

/// Begins a command on a terminal of its own, where somebody has typed something already.
fn begun_on_terminal(columns: u16, mut command: Command, typed: &str) -> (OwnedFd, Child) {
    let master = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    rustix::pty::grantpt(&master).unwrap();
    rustix::pty::unlockpt(&master).unwrap();
    let name = rustix::pty::ptsname(&master, Vec::new()).unwrap();
    let size = Winsize {
        ws_row: 24,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    rustix::termios::tcsetwinsize(&master, size).unwrap();
    command.env("TERM", "xterm");
    if !typed.is_empty() {
        // When it is echoed, and between which lines, would be left to chance.
        let mut mode = rustix::termios::tcgetattr(&master).unwrap();
        mode.local_modes -= rustix::termios::LocalModes::ECHO;
        rustix::termios::tcsetattr(&master, OptionalActions::Now, &mode).unwrap();
        rustix::io::write(&master, typed.as_bytes()).unwrap();
    }
    {
        let slave = || {
            let place = OsStr::new(name.to_str().unwrap());
            let opened = File::options().read(true).write(true).open(place);
            Stdio::from(opened.unwrap())
        };
        command.stdin(slave()).stdout(slave()).stderr(slave());
    }
    // Our side of the terminal goes with the command: reading ends when the child has ended.
    (master, command.spawn().unwrap())
}

fn read_terminal(master: OwnedFd) -> String {
    let mut shown = Vec::new();
    // When the last process has closed its side, reading ends with an error.
    let _ended = File::from(master).read_to_end(&mut shown);
    String::from_utf8(shown).unwrap()
}

/// What a run printed, and how it ended.
#[derive(Debug)]
pub(crate) struct Ran {
    /// The exit code.
    pub(crate) code: i32,
    /// Standard output.
    pub(crate) out: String,
    /// Standard error.
    pub(crate) err: String,
}

impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.out, self.err)?;
        if self.code == 0 {
            Ok(())
        } else {
            write!(f, "[exit code {}]", self.code)
        }
    }
}
