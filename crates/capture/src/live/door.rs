//! The door: how a watched process has something done outside of the watch.
//!
//! A watched command may not write our state, so `backout` itself could do nothing inside of it. Instead it asks at the
//! door: it hands over its words, its directory, its environment and its three streams, and the process in front, which
//! nobody watches, runs the same program with them. Only the program itself can be asked for, and only by the same user.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind,
    connect, listen, recvmsg, sendmsg, socket_with,
};

/// The variable that tells where the door is.
pub const DOOR: &str = "BACKOUT_DOOR";

/// How many may wait at the door.
const WAITING_MAX: i32 = 64;

/// More than any words and environment that the kernel lets a process have.
const REQUEST_BYTES_MAX: usize = 8 * 1024 * 1024;

const STREAMS: usize = 3;

/// An open door.
#[derive(Debug)]
pub(super) struct Door {
    socket: OwnedFd,
    name: OsString,
    inside: Vec<(Child, UnixStream)>,
}

impl Door {
    /// Opens one, under a name that nobody guesses.
    pub(super) fn open() -> io::Result<Self> {
        let random = std::fs::read_to_string("/proc/sys/kernel/random/uuid")?;
        let name = OsString::from(format!("backout-{}", random.trim()));
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        bind(&socket, &address(&name)?)?;
        listen(&socket, WAITING_MAX)?;
        Ok(Self {
            socket,
            name,
            inside: Vec::new(),
        })
    }

    pub(super) fn name(&self) -> &OsStr {
        &self.name
    }

    /// Names the processes that do something outside.
    pub(super) fn outside(&self) -> Vec<u32> {
        self.inside.iter().map(|(child, _)| child.id()).collect()
    }

    /// Lets everybody in who waits. What cannot be done is told at the door.
    pub(super) fn answer(&mut self) {
        while let Ok(caller) = accept_with(&self.socket, SocketFlags::CLOEXEC) {
            let caller = UnixStream::from(caller);
            match start(&caller) {
                Ok(child) => self.inside.push((child, caller)),
                Err(_) => tell(&caller, 1),
            }
        }
    }

    /// Tells those whose work is done.
    pub(super) fn see_off(&mut self) {
        self.inside
            .retain_mut(|(child, caller)| match child.try_wait() {
                Ok(None) => true,
                Ok(Some(status)) => {
                    let by_signal = status.signal().map_or(1, |signal| 128 + signal);
                    tell(caller, status.code().unwrap_or(by_signal));
                    false
                }
                Err(_) => false,
            });
    }
}

impl AsFd for Door {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn address(name: &OsStr) -> io::Result<SocketAddrUnix> {
    Ok(SocketAddrUnix::new_abstract_name(name.as_bytes())?)
}

/// The caller may be gone.
fn tell(caller: &UnixStream, code: i32) {
    let _gone = rustix::net::send(caller, &code.to_ne_bytes(), SendFlags::NOSIGNAL);
}

/// Runs our own program as the caller would have.
fn start(caller: &UnixStream) -> io::Result<Child> {
    let who = rustix::net::sockopt::socket_peercred(caller)?;
    if who.uid != rustix::process::geteuid() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
    let mut control = RecvAncillaryBuffer::new(&mut room);
    let mut size = [0_u8; 8];
    let part = io::IoSliceMut::new(&mut size);
    recvmsg(caller, &mut [part], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut streams = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(streams) => Some(streams),
        _ => None,
    });
    let mut streams = streams.next().into_iter().flatten();
    let mut next = || streams.next().ok_or(io::ErrorKind::InvalidData);
    let (input, output, errors) = (next()?, next()?, next()?);
    let size = usize::try_from(u64::from_ne_bytes(size)).unwrap_or(usize::MAX);
    if size > REQUEST_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; size];
    (&*caller).read_exact(&mut bytes)?;
    let request = Request::decode(&bytes).ok_or(io::ErrorKind::InvalidData)?;
    Command::new("/proc/self/exe")
        .arg0("backout")
        .args(request.words)
        .env_clear()
        .envs(request.environment)
        .env_remove(DOOR)
        .current_dir(request.directory)
        .stdin(Stdio::from(input))
        .stdout(Stdio::from(output))
        .stderr(Stdio::from(errors))
        .spawn()
}

/// What is asked at the door.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    words: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    directory: PathBuf,
}

impl Request {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut put = |part: &OsStr| {
            bytes.extend_from_slice(part.as_bytes());
            bytes.push(0);
        };
        put(self.directory.as_os_str());
        put(OsStr::new(&self.words.len().to_string()));
        self.words.iter().for_each(|word| put(word));
        for (name, value) in &self.environment {
            put(name);
            put(value);
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let whole = bytes.strip_suffix(&[0])?;
        let mut parts = whole
            .split(|byte| *byte == 0)
            .map(|part| OsString::from_vec(part.to_vec()));
        let directory = PathBuf::from(parts.next()?);
        let count: usize = parts.next()?.to_str()?.parse().ok()?;
        let words: Vec<OsString> = parts.by_ref().take(count).collect();
        let mut environment = Vec::new();
        while let Some(name) = parts.next() {
            environment.push((name, parts.next()?));
        }
        (words.len() == count).then_some(Self {
            words,
            environment,
            directory,
        })
    }
}

/// If this process is watched, has its work done outside, and gives the exit code. None if it is not, or nobody is at the
/// door any more.
pub fn ask_outside(words: &[OsString]) -> Option<i32> {
    let name = std::env::var_os(DOOR)?;
    let socket = socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )
    .ok()?;
    connect(&socket, &address(&name).ok()?).ok()?;
    let request = Request {
        words: words.to_vec(),
        environment: std::env::vars_os().collect(),
        directory: std::env::current_dir().ok()?,
    };
    let bytes = request.encode();
    let size = u64::try_from(bytes.len()).ok()?.to_ne_bytes();
    let (input, output, errors) = (io::stdin(), io::stdout(), io::stderr());
    let streams = [input.as_fd(), output.as_fd(), errors.as_fd()];
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
    let mut control = SendAncillaryBuffer::new(&mut room);
    control.push(SendAncillaryMessage::ScmRights(&streams));
    sendmsg(
        &socket,
        &[io::IoSlice::new(&size)],
        &mut control,
        SendFlags::NOSIGNAL,
    )
    .ok()?;
    let mut stream = UnixStream::from(socket);
    io::Write::write_all(&mut stream, &bytes).ok()?;
    let mut code = [0; 4];
    stream.read_exact(&mut code).ok()?;
    Some(i32::from_ne_bytes(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_survives_its_way() {
        for words in [vec![], vec!["log"], vec!["write", "", "a b"]] {
            let request = Request {
                words: words.into_iter().map(OsString::from).collect(),
                environment: vec![
                    ("A".into(), String::new().into()),
                    ("B".into(), "x=y".into()),
                ],
                directory: "/some where".into(),
            };
            assert_eq!(Request::decode(&request.encode()), Some(request));
        }
        assert_eq!(Request::decode(b""), None);
        assert_eq!(Request::decode(b"/\x005\x00a\x00"), None);
    }
}
