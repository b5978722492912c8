//! What the server keeps beside the journal: `serve/` in the state directory, with a lock, a socket and the tokens.
//!
//! - The lock is held as long as a server lives; so a socket that is there without one is stale.
//! - Everything is private: the directory 0700, each file 0600.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use backout_engine::{ErrorCode, Report};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

/// How long the name of a socket may be; longer ones go by the number of an open directory.
const SOCKET_NAME_MAX: usize = 100;

/// How often the lock is tried, and how long it takes in between.
const LOOKS: u32 = 20;
const LOOK_TIME: Duration = Duration::from_millis(10);

/// Where the server of a store keeps its own.
#[derive(Debug, Clone)]
pub struct Place {
    directory: PathBuf,
}

/// Where a server can be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Serving {
    /// Its process.
    pub pid: u32,
    /// Its unix socket.
    pub socket: PathBuf,
    /// Its address for browsers and programs, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// The right to serve a store. It ends with the process.
#[derive(Debug)]
pub(crate) struct Held {
    lock: File,
}

impl Held {
    /// Says where the server can be asked.
    pub(crate) fn tell(&mut self, serving: &Serving) -> io::Result<()> {
        self.lock.set_len(0)?;
        let text = serde_json::to_vec(serving)?;
        io::Seek::rewind(&mut self.lock)?;
        self.lock.write_all(&text)
    }
}

impl Place {
    /// Names the place that belongs to a state directory.
    pub fn of(state_dir: &Path) -> Self {
        let directory = state_dir.join("serve");
        Self { directory }
    }

    /// Gives the file with the tokens.
    pub(crate) fn tokens(&self) -> PathBuf {
        self.directory.join("tokens.json")
    }

    /// Gives the file that a server started in the background writes to.
    pub fn log(&self) -> PathBuf {
        self.directory.join("log")
    }

    /// Gives the socket.
    pub fn socket(&self) -> PathBuf {
        self.directory.join("socket")
    }

    /// Makes the directory, if it is not there.
    pub fn prepare(&self) -> io::Result<()> {
        let made = DirBuilder::new().mode(0o700).create(&self.directory);
        match made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                std::fs::set_permissions(&self.directory, Permissions::from_mode(0o700))
            }
            other => other,
        }
    }

    /// Opens a private file, making it if it is not there.
    pub(crate) fn open(&self, name: &str) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        options.mode(0o600).open(self.directory.join(name))
    }

    /// Takes the right to serve the store.
    pub(crate) fn hold(&self) -> Result<Held, Report> {
        let failed = |error: io::Error| cannot(&self.directory, &error);
        self.prepare().map_err(failed)?;
        let lock = self.open("lock").map_err(failed)?;
        // Whoever looks whether somebody serves has the lock for a moment.
        for _ in 0..LOOKS {
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Held { lock }),
                Err(rustix::io::Errno::WOULDBLOCK) => std::thread::sleep(LOOK_TIME),
                Err(error) => return Err(failed(error.into())),
            }
        }
        Err(self.served())
    }

    /// Finds the server of this store, if one lives.
    pub fn serving(&self) -> Option<Serving> {
        let mut lock = File::open(self.directory.join("lock")).ok()?;
        // Who gets the lock knows that nobody serves; it goes again when the file is closed.
        if flock(&lock, FlockOperation::NonBlockingLockShared).is_ok() {
            return None;
        }
        let mut text = String::new();
        lock.read_to_string(&mut text).ok()?;
        serde_json::from_str(&text).ok()
    }

    fn served(&self) -> Report {
        let report = Report::refused("this store is served already").code(ErrorCode::Served);
        let report = match self.serving() {
            Some(Serving { pid, url, socket }) => {
                let at = url.unwrap_or_else(|| socket.display().to_string());
                report.because(format!("process {pid} serves it at {at}"))
            }
            None => report.because("another process holds its lock"),
        };
        report
            .next("use that one: `backout ui` opens its page")
            .next("end it first, or serve another store with `--state-dir DIR`")
    }

    /// Listens on the socket. Only who holds the lock may: what is there is stale.
    pub(crate) fn listen(&self) -> Result<UnixListener, Report> {
        let path = self.socket();
        if let Ok(found) = path.symlink_metadata() {
            if !found.file_type().is_socket() {
                return Err(Report::refused("the server cannot listen")
                    .code(ErrorCode::NotListening)
                    .because(format!(
                        "`{}` is no socket, and is left alone",
                        path.display()
                    ))
                    .next("see what it is, and take it away"));
            }
            std::fs::remove_file(&path).map_err(|error| cannot(&path, &error))?;
        }
        let listener = self.short(|path| UnixListener::bind(path));
        let listener = listener.map_err(|error| cannot(&path, &error))?;
        std::fs::set_permissions(&path, Permissions::from_mode(0o600))
            .map_err(|error| cannot(&path, &error))?;
        Ok(listener)
    }

    /// Takes the socket away, when the server ends.
    pub(crate) fn stop_listening(&self) {
        let _gone = std::fs::remove_file(self.socket());
    }

    /// Connects to the server.
    pub(crate) fn connect(&self) -> io::Result<UnixStream> {
        self.short(|path| UnixStream::connect(path))
    }

    /// Uses the socket by a name that is short enough for the system.
    fn short<T>(&self, with: impl Fn(&Path) -> io::Result<T>) -> io::Result<T> {
        let path = self.socket();
        if path.as_os_str().len() <= SOCKET_NAME_MAX {
            return with(&path);
        }
        let directory = File::open(&self.directory)?;
        with(Path::new(&format!(
            "/proc/self/fd/{}/socket",
            directory.as_raw_fd()
        )))
    }
}

/// Says that something of the server's own cannot be used.
pub(crate) fn cannot(path: &Path, error: &io::Error) -> Report {
    Report::refused(format!("`{}` cannot be used", path.display()))
        .code(ErrorCode::NotListening)
        .because(error)
        .next("see whose it is, and whether the disk is full")
}
