//! One notice under way. Who began it looks for a while what comes of it, and goes on without it then.
//!
//! What a program says goes into a file without a name, and what it is told comes from one: so it goes on undisturbed when the
//! process that began it has ended.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command};
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::rules::kinds::Program;

/// How often we look whether a program has ended.
const LOOK: Duration = Duration::from_millis(5);

/// A notice under way.
#[derive(Debug)]
pub(super) enum Notice {
    /// A program that runs.
    Program(Box<Running>),
    /// A webhook, and what went wrong with it.
    Webhook(Receiver<Option<String>>),
    /// One that did not even begin.
    NotBegun(String),
}

/// A program that runs.
#[derive(Debug)]
pub(super) struct Running {
    child: Child,
    program: Program,
    /// What is said before what went wrong.
    prefix: &'static str,
    words: File,
    began: Instant,
}

impl Notice {
    /// Starts a program with something to read.
    pub(super) fn begin(program: Program, prefix: &'static str, input: &str) -> Self {
        let name = name_of(&program);
        match started(&program, input) {
            Ok((child, words)) => Self::Program(Box::new(Running {
                child,
                program,
                prefix,
                words,
                began: Instant::now(),
            })),
            Err(error) => Self::NotBegun(format!("{prefix}`{name}` could not be started: {error}")),
        }
    }

    /// Waits for its end, no longer than until the deadline. Gives what went wrong.
    pub(super) fn told(self, deadline: Instant) -> Option<String> {
        match self {
            Self::NotBegun(said) => Some(said),
            Self::Program(running) => running.told(deadline),
            Self::Webhook(answer) => {
                let left = deadline.saturating_duration_since(Instant::now());
                match answer.recv_timeout(left) {
                    Ok(said) => said.map(|said| format!("the webhook was not told: {said}")),
                    Err(_) => Some("the webhook has not answered yet".to_owned()),
                }
            }
        }
    }
}

/// The name of a program, for people.
fn name_of(program: &Program) -> String {
    let name = program.words.first().cloned().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

impl Running {
    fn told(mut self, deadline: Instant) -> Option<String> {
        let name = name_of(&self.program);
        let prefix = self.prefix;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return None,
                Ok(Some(status)) => {
                    let how = match (status.code(), status.signal()) {
                        (Some(code), _) => format!("ended with {code}"),
                        (None, signal) => {
                            format!("was ended by signal {}", signal.unwrap_or_default())
                        }
                    };
                    return Some(format!("{prefix}`{name}` {how}{}", self.said()));
                }
                Ok(None) => {}
                Err(error) => return Some(format!("{prefix}`{name}`: {error}")),
            }
            if self.began.elapsed() >= self.program.time_max {
                self.end();
                let time = self.program.time_max;
                return Some(format!("{prefix}`{name}` took longer than {time:?}"));
            }
            if Instant::now() >= deadline {
                return Some(format!(
                    "{prefix}`{name}` has not ended yet, and goes on by itself"
                ));
            }
            thread::sleep(LOOK);
        }
    }

    /// Ends it, with all of its group.
    fn end(&mut self) {
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(group) = group {
            let _gone = kill_process_group(group, Signal::KILL);
        }
        let _ended = self.child.wait();
    }

    /// What it said, cut to its limit.
    fn said(&mut self) -> String {
        let mut bytes = Vec::new();
        let limit = u64::try_from(self.program.output_max).unwrap_or(u64::MAX);
        let read = self
            .words
            .rewind()
            .and_then(|()| (&self.words).take(limit).read_to_end(&mut bytes));
        let said = String::from_utf8_lossy(&bytes);
        match (read, said.trim()) {
            (Ok(_), said) if !said.is_empty() => format!(": {said}"),
            _ => String::new(),
        }
    }
}

fn started(program: &Program, input: &str) -> std::io::Result<(Child, File)> {
    let Some((name, arguments)) = program.words.split_first() else {
        return Err(std::io::ErrorKind::NotFound.into());
    };
    let mut from = tempfile::tempfile()?;
    from.write_all(input.as_bytes())?;
    from.rewind()?;
    let words = tempfile::tempfile()?;
    let child = Command::new(name)
        .args(arguments)
        .current_dir(&program.directory)
        .process_group(0)
        .stdin(from)
        .stdout(words.try_clone()?)
        .stderr(words.try_clone()?)
        .spawn()?;
    Ok((child, words))
}
