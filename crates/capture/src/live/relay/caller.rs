//! Asking the relay, from inside.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, connect, sendmsg, socket_with,
};

use super::peer::Keeper;
use super::request::{ANSWER_BYTES, Answer};
use super::{RELAY, Refusal, Request, STREAMS};

/// What came of asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outside {
    /// There is no relay here, or it is not ours: the caller does its work itself.
    NoDoor,
    /// It was done, and the program ended with this code.
    Done(i32),
    /// It was refused, and nothing was done.
    Refused(Refusal),
    /// The front ended before it answered: what was asked for may be done, or not.
    Unanswered,
}

/// If this process is watched, has its work done outside.
pub fn ask_outside(words: &[OsString]) -> Outside {
    let Some(socket) = connected() else {
        return Outside::NoDoor;
    };
    let Ok(directory) = std::env::current_dir() else {
        return Outside::Refused(Refusal::Malformed);
    };
    let request = Request {
        directory,
        words: words.to_vec(),
        environment: std::env::vars_os().collect(),
    };
    let mut stream = UnixStream::from(socket);
    // The front may have answered and gone before all was said.
    let _refused = say(&mut stream, &request.encode());
    let mut answer = [0; ANSWER_BYTES];
    let answer = stream.read_exact(&mut answer).map(|()| answer);
    match answer.ok().and_then(Answer::decode) {
        Some(Answer::Ended(code)) => Outside::Done(code),
        // It is not watched from there.
        Some(Answer::Refused(Refusal::Stranger)) => Outside::NoDoor,
        Some(Answer::Refused(why)) => Outside::Refused(why),
        None => Outside::Unanswered,
    }
}

/// Connects to the relay, and makes sure that the front is there before a word is said.
fn connected() -> Option<OwnedFd> {
    let keeper = Keeper::read(&std::env::var_os(RELAY)?)?;
    let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None).ok()?;
    let name = std::os::unix::ffi::OsStrExt::as_bytes(keeper.name.as_os_str());
    connect(&socket, &SocketAddrUnix::new_abstract_name(name).ok()?).ok()?;
    keeper.is_at(&socket).then_some(socket)
}

/// Hands over the streams with the first bytes, then the rest.
fn say(stream: &mut UnixStream, bytes: &[u8]) -> io::Result<()> {
    let (input, output, errors) = (io::stdin(), io::stdout(), io::stderr());
    let streams = [input.as_fd(), output.as_fd(), errors.as_fd()];
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
    let mut control = SendAncillaryBuffer::new(&mut room);
    control.push(SendAncillaryMessage::ScmRights(&streams));
    let part = io::IoSlice::new(bytes);
    let sent = sendmsg(&*stream, &[part], &mut control, SendFlags::NOSIGNAL)?;
    stream.write_all(bytes.get(sent..).unwrap_or_default())
}
