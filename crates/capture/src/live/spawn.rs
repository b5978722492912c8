//! Starting a command under the filter.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use backout_crashpoint::crash_point;
use rustix::process::Pid;

use super::filter::{Filter, Wanted};
use super::relay::{ASKED, RELAY};
use super::supervise::Supervisor;
use super::sys::{self, AT_EXEC, First, Launch, NewLine};

/// Where programs are when nobody says.
const USUAL_PLACES: &str = "/bin:/usr/bin";

/// Where no program can be.
const NOWHERE: &str = "/proc/nowhere";

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

/// What the new process finds in its environment.
#[derive(Debug, Clone, Copy)]
pub struct Variables<'v> {
    /// The environment that it starts from; ours if none.
    pub base: Option<&'v [(OsString, OsString)]>,
    /// What is set in it.
    pub set: &'v [(OsString, OsString)],
}

/// Starts a command under the filter. Whether the program could be executed comes as an event.
pub fn spawn(
    words: &[OsString],
    watching: Watching,
    variables: Variables<'_>,
) -> Result<Spawned, SpawnError> {
    let to_c = |word: &OsString| CString::new(word.as_bytes()).map_err(|_| SpawnError::ZeroByte);
    let arguments: Vec<CString> = words.iter().map(to_c).collect::<Result<_, _>>()?;
    let program = arguments.first().ok_or(SpawnError::ZeroByte)?;
    // The system would look where our own variables say.
    let found = variables.base.and_then(|base| found(words.first()?, base));
    let found = found.map(|path| to_c(&path)).transpose()?;
    let program = found.as_ref().unwrap_or(program);
    let environment = environment(variables)?;
    let is_free = is_free();
    let filter = (watching != Watching::Nothing).then(|| {
        Filter::new(Wanted {
            reads: watching == Watching::WritesAndReads,
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
    let talk = NewLine::new()?;
    let pid = sys::launch(&Launch {
        program,
        arguments: &arguments,
        environment: &environment,
        filter: filter.as_ref(),
        line: &talk,
        needs_no_new_privileges: !is_free,
    })?;
    crash_point("run.launched");
    let ours = talk.ours();
    if let Some((lives, _life)) = life {
        let child = Child { pid };
        let supervisor = Supervisor::new(pid, lives, signals, ours.hears);
        return Ok(Spawned { child, supervisor });
    }
    let listener = match ours.listener(pid)? {
        First::Listener(listener) => listener,
        First::Failed { stage, errno } => {
            let error = io::Error::from_raw_os_error(errno);
            return Err(if stage == AT_EXEC {
                SpawnError::Io(error)
            } else {
                let lacks = sys::lacks(stage);
                SpawnError::NoListener(io::Error::other(format!("{lacks}: {error}")))
            });
        }
        First::Sent | First::Offered(_) | First::Silent => {
            let error = io::Error::other("the new process ended before it began");
            return Err(SpawnError::Io(error));
        }
    };
    sys::wake_up_quickly(listener.as_fd());
    Ok(Spawned {
        child: Child { pid },
        supervisor: Supervisor::new(pid, listener, signals, ours.hears),
    })
}

/// Gives the environment of the command: what it starts from, with some variables set. An outer relay is not its own.
fn environment(variables: Variables<'_>) -> Result<Vec<CString>, SpawnError> {
    let set = variables.set;
    let is_ours = |name: &OsStr| name == RELAY || name == ASKED;
    let is_set = |name: &OsStr| is_ours(name) || set.iter().any(|(other, _)| other == name);
    let base = match variables.base {
        Some(base) => base.to_vec(),
        None => std::env::vars_os().collect(),
    };
    let ours = base.into_iter().filter(|(name, _)| !is_set(name));
    let to_c = |(name, value): (OsString, OsString)| {
        let whole = [name.as_bytes(), b"=", value.as_bytes()].concat();
        CString::new(whole).map_err(|_| SpawnError::ZeroByte)
    };
    ours.chain(set.iter().cloned()).map(to_c).collect()
}

/// Tells whether a filter can be had without giving up on new rights: root that has not lost its own.
fn is_free() -> bool {
    use rustix::thread::{CapabilitySet, capabilities};
    let has_it = |set: CapabilitySet| set.contains(CapabilitySet::SYS_ADMIN);
    rustix::process::geteuid().is_root()
        && capabilities(None).is_ok_and(|sets| has_it(sets.effective))
}

/// Finds a program where an environment says that programs are. None if it is named with its place, or is nowhere.
fn found(program: &OsStr, environment: &[(OsString, OsString)]) -> Option<OsString> {
    if program.as_bytes().contains(&b'/') {
        return None;
    }
    let places = environment.iter().find(|(name, _)| name == "PATH");
    let places = places.map_or_else(|| USUAL_PLACES.into(), |(_, value)| value.clone());
    let mut each = std::env::split_paths(&places).map(|place| place.join(program));
    let is_program = |path: &PathBuf| {
        path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
    };
    let found = each.find(is_program);
    let found = found.map(|path| Path::new(".").join(path));
    Some(
        found
            .unwrap_or_else(|| Path::new(NOWHERE).join(program))
            .into(),
    )
}

/// Makes a pipe whose one end everybody holds who is not watched, as long as it lives: the other end tells when all are
/// gone.
fn life() -> io::Result<(OwnedFd, OwnedFd)> {
    let (lives, life) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    rustix::io::fcntl_setfd(&life, rustix::io::FdFlags::empty())?;
    Ok((lives, life))
}
