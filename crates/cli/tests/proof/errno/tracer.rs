//! Makes the k-th file-system call of a program fail, or write less than it was asked to.
//!
//! The program runs under ptrace. Counting begins when it has been executed, and goes over all its threads, so that
//! every call has a number and nearly the same number comes again in the next run. Nearly: threads take turns as they
//! like. Whoever waits for one certain call counts only calls of its kind.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use nix::sys::ptrace::{self, Options};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::calls::{changes, name_of, writes};

/// What befalls one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It does nothing and fails so.
    Fails(nix::errno::Errno),
    /// It writes half of what it was asked to.
    ShortWrite,
    /// It fails so, and so does every call behind it that counts.
    FailsFromHereOn(nix::errno::Errno),
    /// It fails, and so does every call behind it that changes a disk: the disk died.
    DiskDies,
}

/// A call that met its fault.
#[derive(Debug, Clone)]
pub(crate) struct Hit {
    pub(crate) name: &'static str,
    /// The file that its first argument stands for, if that is an open one.
    pub(crate) file: PathBuf,
}

impl std::fmt::Display for Hit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}", self.name, self.file.display())
    }
}

/// How a run went.
#[derive(Debug)]
pub(crate) struct Ran {
    /// The exit code; none if a signal ended it.
    pub(crate) code: Option<i32>,
    /// How many file-system calls were made of those that count.
    pub(crate) calls: usize,
    /// The call that was hit.
    pub(crate) hit: Option<Hit>,
    pub(crate) said: String,
}

/// A run under the tracer.
struct Tracer {
    main: Pid,
    /// Whether calls of this name are counted.
    counts: fn(&str) -> bool,
    wanted: Option<(usize, Fault)>,
    is_counting: bool,
    calls: usize,
    hit: Option<Hit>,
    /// The threads that are inside a call, each with what is to be done at its end.
    inside: HashMap<Pid, Ending>,
}

/// What is done when a call returns.
#[derive(Debug, Clone, Copy)]
enum Ending {
    Untouched,
    Fails(i32),
    /// The length register as it was.
    Length(u64),
}

/// Runs `command`; number `k` (from 1) of its calls that count meets the fault.
pub(crate) fn run(
    command: &Command,
    counts: fn(&str) -> bool,
    fault: Option<(usize, Fault)>,
) -> Ran {
    let said = tempfile::NamedTempFile::new().unwrap();
    let file = || {
        let opened = std::fs::File::options().append(true).open(said.path());
        Stdio::from(opened.unwrap())
    };
    // The shell waits for a line, so that there is time to attach.
    let mut gate = Command::new("/bin/sh");
    gate.args(["-c", "read line; exec \"$@\"", "sh"])
        .arg(command.get_program())
        .args(command.get_args())
        .current_dir(command.get_current_dir().unwrap())
        .env_clear()
        .envs(command.get_envs().filter_map(|(k, v)| Some((k, v?))))
        .stdin(Stdio::piped())
        .stdout(file())
        .stderr(file());
    #[expect(clippy::zombie_processes, reason = "the tracer waits for it")]
    let mut child = gate.spawn().unwrap();
    let main = Pid::from_raw(i32::try_from(child.id()).unwrap());
    let options = Options::PTRACE_O_TRACESYSGOOD
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_EXITKILL;
    ptrace::seize(main, options).unwrap();
    ptrace::interrupt(main).unwrap();
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    let mut tracer = Tracer {
        main,
        counts,
        wanted: fault,
        is_counting: false,
        calls: 0,
        hit: None,
        inside: HashMap::new(),
    };
    let code = tracer.follow();
    Ran {
        code,
        calls: tracer.calls,
        hit: tracer.hit,
        said: std::fs::read_to_string(said.path()).unwrap(),
    }
}

impl Tracer {
    fn follow(&mut self) -> Option<i32> {
        // Only what this thread started: other tests wait for theirs.
        let flags = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
        loop {
            match waitpid(None, Some(flags)).unwrap() {
                WaitStatus::Exited(pid, code) if pid == self.main => return Some(code),
                WaitStatus::Signaled(pid, ..) if pid == self.main => return None,
                WaitStatus::PtraceSyscall(pid) => {
                    self.at_call(pid);
                    go_on(pid, None);
                }
                WaitStatus::PtraceEvent(pid, _, event) => {
                    if event == nix::libc::PTRACE_EVENT_EXEC {
                        self.is_counting = true;
                        // The next stop is the end of that very call, whatever was missed while attaching.
                        self.inside.insert(pid, Ending::Untouched);
                    }
                    go_on(pid, None);
                }
                WaitStatus::Stopped(pid, signal) => go_on(pid, Some(signal)),
                _ => {}
            }
        }
    }

    fn at_call(&mut self, pid: Pid) {
        if let Some(ending) = self.inside.remove(&pid) {
            end(pid, ending);
        } else {
            let ending = self.begin(pid);
            self.inside.insert(pid, ending);
        }
    }

    fn begin(&mut self, pid: Pid) -> Ending {
        let Ok(mut registers) = ptrace::getregs(pid) else {
            return Ending::Untouched;
        };
        let Some(name) = name_of(registers.orig_rax).filter(|_| self.is_counting) else {
            return Ending::Untouched;
        };
        let is_counted = (self.counts)(name);
        self.calls += usize::from(is_counted);
        let now = self.calls;
        let is_dead = self.hit.is_some() && changes(name) && registers.rdi > 2;
        let wanted = self.wanted.filter(|(number, fault)| {
            let goes_on = matches!(fault, Fault::FailsFromHereOn(_)) && now > *number;
            is_counted && (*number == now || goes_on) || *fault == Fault::DiskDies && is_dead
        });
        let Some((_, fault)) = wanted else {
            return Ending::Untouched;
        };
        let link = format!("/proc/{pid}/fd/{}", registers.rdi);
        let file = std::fs::read_link(link).unwrap_or_default();
        let hit = Hit { name, file };
        match fault {
            Fault::Fails(errno) | Fault::FailsFromHereOn(errno) => {
                self.hit.get_or_insert(hit);
                registers.orig_rax = u64::MAX;
                ptrace::setregs(pid, registers).unwrap();
                Ending::Fails(errno as i32)
            }
            Fault::DiskDies => {
                self.hit.get_or_insert(hit);
                registers.orig_rax = u64::MAX;
                ptrace::setregs(pid, registers).unwrap();
                Ending::Fails(nix::errno::Errno::EIO as i32)
            }
            Fault::ShortWrite if writes(name) && registers.rdx > 1 => {
                self.hit = Some(hit);
                let length = registers.rdx;
                registers.rdx = length / 2;
                ptrace::setregs(pid, registers).unwrap();
                Ending::Length(length)
            }
            Fault::ShortWrite => Ending::Untouched,
        }
    }
}

fn end(pid: Pid, ending: Ending) {
    let Ok(mut registers) = ptrace::getregs(pid) else {
        return;
    };
    match ending {
        Ending::Untouched => return,
        Ending::Fails(errno) => registers.rax = i64::from(-errno).cast_unsigned(),
        Ending::Length(length) => registers.rdx = length,
    }
    ptrace::setregs(pid, registers).unwrap();
}

/// Lets a thread run to its next call; one that died meanwhile tells so by itself.
fn go_on(pid: Pid, signal: Option<nix::sys::signal::Signal>) {
    let _gone = ptrace::syscall(pid, signal);
}
