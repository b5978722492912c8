//! Starting a command under the filter.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

use backout_crashpoint::crash_point;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::Pid;

use super::door::DOOR;
use super::filter::{Filter, Wanted};
use super::supervise::Supervisor;
use super::sys::{self, AT_EXEC, First, Launch};

/// Why a command could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The kernel gives no listener: it is too old, or somebody else watches already.
    #[error("the kernel does not let this process watch its children")]
    NoListener(#[source] io::Error),
    /// A word of the command has a zero byte in it.
    #[error("a word of the command has a zero byte in it")]
    ZeroByte,
    /// Something else failed on the way.
    #[error("the command could not be started")]
    Io(#[from] io::Error),
}

/// A command that is being started.
#[derive(Debug)]
pub struct Child {
    /// Its process.
    pub pid: Pid,
}

/// A command with its supervisor.
#[derive(Debug)]
pub struct Spawned {
    /// The command.
    pub child: Child,
    /// Who is asked before it writes.
    pub supervisor: Supervisor,
}

/// What to be asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watching {
    /// Writes.
    Writes,
    /// Writes, and opens for reading.
    WritesAndReads,
    /// Nothing: only the ends of the command and of its processes are seen.
    Nothing,
}

/// Starts a command under the filter. Whether the program could be executed comes as an event.
pub fn spawn(
    words: &[OsString],
    watching: Watching,
    variables: &[(OsString, OsString)],
) -> Result<Spawned, SpawnError> {
    let to_c = |word: &OsString| CString::new(word.as_bytes()).map_err(|_| SpawnError::ZeroByte);
    let arguments: Vec<CString> = words.iter().map(to_c).collect::<Result<_, _>>()?;
    let program = arguments.first().ok_or(SpawnError::ZeroByte)?;
    let environment = environment(variables)?;
    let is_root = rustix::process::geteuid().is_root();
    let filter = (watching != Watching::Nothing).then(|| {
        Filter::new(Wanted {
            reads: watching == Watching::WritesAndReads,
            execs: !is_root,
        })
    });
    let life = if filter.is_none() {
        Some(life()?)
    } else {
        None
    };
    // Whoever outlives its parent stays below us: only there may its memory be read everywhere.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(io::Error::from)?;
    let signals = sys::signals(&super::front::HEARD)?;
    let (ours, theirs) = socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
    .map_err(io::Error::from)?;
    let pid = sys::launch(&Launch {
        program,
        arguments: &arguments,
        environment: &environment,
        filter: filter.as_ref(),
        socket: theirs.as_fd(),
        other_end: ours.as_fd(),
        needs_no_new_privileges: !is_root,
    })?;
    crash_point("run.launched");
    drop(theirs);
    if let Some((lives, _life)) = life {
        let child = Child { pid };
        let supervisor = Supervisor::new(pid, lives, signals, ours);
        return Ok(Spawned { child, supervisor });
    }
    let listener = match sys::first_word(ours.as_fd())? {
        First::Listener(listener) => listener,
        First::Failed { stage, errno } => {
            let error = io::Error::from_raw_os_error(errno);
            return Err(if stage == AT_EXEC {
                SpawnError::Io(error)
            } else {
                SpawnError::NoListener(error)
            });
        }
        First::Silent => {
            let error = io::Error::other("the new process ended before it began");
            return Err(SpawnError::Io(error));
        }
    };
    sys::wake_up_quickly(listener.as_fd());
    Ok(Spawned {
        child: Child { pid },
        supervisor: Supervisor::new(pid, listener, signals, ours),
    })
}

/// Gives the environment of the command: ours, with some variables set. An outer door is not its own.
fn environment(set: &[(OsString, OsString)]) -> Result<Vec<CString>, SpawnError> {
    let is_set = |name: &OsStr| name == DOOR || set.iter().any(|(other, _)| other == name);
    let ours = std::env::vars_os().filter(|(name, _)| !is_set(name));
    let to_c = |(name, value): (OsString, OsString)| {
        let whole = [name.as_bytes(), b"=", value.as_bytes()].concat();
        CString::new(whole).map_err(|_| SpawnError::ZeroByte)
    };
    ours.chain(set.iter().cloned()).map(to_c).collect()
}

/// Makes a pipe whose one end everybody holds who is not watched, as long as it lives: the other end tells when all are
/// gone.
fn life() -> io::Result<(OwnedFd, OwnedFd)> {
    let (lives, life) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    rustix::io::fcntl_setfd(&life, rustix::io::FdFlags::empty())?;
    Ok((lives, life))
}
