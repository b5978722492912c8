//! The desk: where other operations, and other commands, tell the watcher of a command what they are about to write.
//!
//! It is a socket beside the log. The watcher records what the command has done to those names so far as an operation of
//! its own, before the other writes; so the journal has the order of what really happened.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use backout_files::Claim;
use backout_model::{OperationId, Target};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv, socket_with,
};
use serde::{Deserialize, Serialize};

/// How long the watcher waits for words that were announced.
const WORDS_WAIT: Duration = Duration::from_millis(500);

/// How long an operation waits for the watcher: it may be copying a large file.
pub(super) const ANSWER_WAIT: Duration = Duration::from_secs(10);

/// How long it waits before it says so.
const PATIENCE: Duration = Duration::from_millis(500);

/// The answers: go on; go on, and know that it may be written meanwhile; come again.
const GO_ON: u8 = b'.';
const SHARED: u8 = b'&';
const LATER: u8 = b'!';

/// What the watcher says before it looks at what was asked for, and what somebody says who waits no longer. Each says it first
/// and then looks whether the other has: so at least one of them knows, and nobody writes what is being looked at.
const TAKEN: u8 = b'+';
const WENT_ON: u8 = b'>';

/// How long an operation waits for a watcher that has begun to look.
const TAKEN_WAIT: Duration = Duration::from_mins(1);

/// How often somebody is looked for at a desk of a command that is over.
const CLOSED_STEP: Duration = Duration::from_millis(2);

/// More than any list of targets that is worth a question.
const WORDS_BYTES_MAX: usize = 8 * 1024 * 1024;

/// An open desk. It goes away with the value.
#[derive(Debug)]
pub(super) struct Desk {
    listener: UnixListener,
    path: PathBuf,
}

impl Desk {
    /// Opens a desk.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let (_directory, short) = shortened(path)?;
        let listener = UnixListener::bind(short)?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener,
            path: path.to_path_buf(),
        })
    }

    /// Takes the next question, if there is one: what somebody is about to write.
    pub(super) fn question(&self) -> Option<Question> {
        let (stream, _) = self.listener.accept().ok()?;
        let peer = rustix::net::sockopt::socket_peercred(&stream).ok()?;
        let is_ours = peer.uid == rustix::process::geteuid() || peer.uid.is_root();
        stream.set_nonblocking(false).ok()?;
        stream.set_read_timeout(Some(WORDS_WAIT)).ok()?;
        let words = is_ours.then(|| read_words(&stream)).flatten()?;
        Some(Question { words, stream })
    }
}

impl AsFd for Desk {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        let _gone = std::fs::remove_file(&self.path);
    }
}

/// What is told at a desk.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Words {
    /// What is about to be written.
    pub(super) targets: Vec<Target>,
    /// The command that is about to; none if it is another operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) by: Option<OperationId>,
    /// Files among them that have other names, by device and number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) numbers: Vec<(u64, u64)>,
}

impl Words {
    /// What a command is about to touch.
    pub(super) fn of(by: OperationId, claim: &Claim) -> Self {
        Self {
            targets: claim.targets.clone(),
            by: Some(by),
            numbers: claim.numbers.clone(),
        }
    }

    /// Gives what a command is about to touch; none if another operation writes.
    pub(super) fn claim(&self) -> Option<(OperationId, Claim)> {
        let claim = Claim {
            targets: self.targets.clone(),
            numbers: self.numbers.clone(),
        };
        self.by.map(|by| (by, claim))
    }

    fn framed(&self) -> io::Result<Vec<u8>> {
        let words = serde_json::to_vec(self)?;
        let length = u32::try_from(words.len()).map_err(io::Error::other)?;
        Ok([&length.to_le_bytes()[..], &words].concat())
    }
}

/// What became of who asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asker {
    Waits,
    /// It did not wait any longer, and may have written by now.
    WentOn,
    /// It asks again, or died: it has not written.
    Withdrew,
}

/// Somebody is about to write, and waits for a word.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) words: Words,
    stream: UnixStream,
}

impl Question {
    /// Says that it will be answered now. Tells whether the other waits for that.
    pub(super) fn take(&mut self) -> Asker {
        // Whoever is gone withdrew.
        let _told = self.stream.write_all(&[TAKEN]);
        let mut word = [0];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        match recv(&self.stream, &mut word, flags) {
            Err(Errno::AGAIN) => Asker::Waits,
            Ok((1, _)) if word == [WENT_ON] => Asker::WentOn,
            Ok(_) | Err(_) => Asker::Withdrew,
        }
    }

    /// Lets the other go on. Where processes of this command go on writing what was asked for, it is told so.
    pub(super) fn answer(mut self, is_shared: bool) {
        // Who does not wait any more goes on anyway.
        let _told = self
            .stream
            .write_all(&[if is_shared { SHARED } else { GO_ON }]);
    }

    /// Has the other come again.
    fn put_off(mut self) {
        let _told = self.stream.write_all(&[LATER]);
    }
}

fn read_words(mut stream: &UnixStream) -> Option<Words> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).ok()?;
    let length = usize::try_from(u32::from_le_bytes(length)).ok()?;
    if length > WORDS_BYTES_MAX {
        return None;
    }
    let mut words = vec![0; length];
    stream.read_exact(&mut words).ok()?;
    serde_json::from_slice(&words).ok()
}

/// A desk at which nobody writes what a command wrote, as long as its checks run: who asks has to come again.
#[derive(Debug)]
pub(super) struct Closed {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Closed {
    /// Has a thread answer for a command that is over.
    pub(super) fn over(desk: Desk, written: Vec<Target>) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            while !flag.load(Ordering::Relaxed) {
                let Some(question) = desk.question() else {
                    thread::sleep(CLOSED_STEP);
                    continue;
                };
                let is_meant = |target: &Target| {
                    let mut written = written.iter();
                    written.any(|written| written.overlap(target).is_some())
                };
                if question.words.targets.iter().any(is_meant) {
                    question.put_off();
                } else {
                    question.answer(false);
                }
            }
        });
        let thread = Some(thread);
        Self { is_over, thread }
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It ends by itself; if it panicked, that was said.
            let _ended = thread.join();
        }
    }
}

/// What the watcher of a command says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// It is ready.
    GoOn,
    /// The command is over and its checks run: until then nobody writes what it wrote.
    Later,
}

/// Tells the watcher of a command what is about to be written, and waits until it is ready for that; `is_slow` is called when
/// that takes a while. If nobody is there, or nobody answers, the watcher sees the write as somebody else's.
pub(crate) fn tell(path: &Path, targets: &[Target], is_slow: &dyn Fn()) -> io::Result<Told> {
    let (_directory, short) = shortened(path)?;
    let mut stream = UnixStream::connect(short)?;
    let words = Words {
        targets: targets.to_vec(),
        ..Words::default()
    };
    stream.write_all(&words.framed()?)?;
    let mut asked = Asked::by(stream);
    asked.stream.set_read_timeout(Some(PATIENCE))?;
    let mut heard = asked.heard();
    if heard == Heard::Nothing {
        is_slow();
        asked.stream.set_read_timeout(Some(ANSWER_WAIT))?;
        heard = asked.heard();
    }
    if heard == Heard::Nothing {
        heard = asked.gives_up();
    }
    match heard {
        Heard::Nothing => Err(io::ErrorKind::WouldBlock.into()),
        Heard::GoOn | Heard::Shared => Ok(Told::GoOn),
        Heard::Later => Ok(Told::Later),
        Heard::Gone => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// What a command was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    /// Nothing yet.
    Nothing,
    /// It may go on.
    GoOn,
    /// It may go on; what it asked for is written meanwhile.
    Shared,
    /// It has to come again.
    Later,
    /// Nobody is there any more.
    Gone,
}

/// A question that waits for its answer.
#[derive(Debug)]
pub(super) struct Asked {
    stream: UnixStream,
    /// Whether the watcher has begun to look.
    is_taken: bool,
}

impl Asked {
    /// Asks at a desk, and does not wait: a command answers others meanwhile. None if so many ask there that this one has to
    /// come again.
    pub(super) fn at(path: &Path, words: &Words) -> io::Result<Option<Self>> {
        let (_directory, short) = shortened(path)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        match connect(&socket, &SocketAddrUnix::new(short)?) {
            Ok(()) => {}
            Err(Errno::AGAIN) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        }
        let mut stream = UnixStream::from(socket);
        // A few names: there is room for them.
        stream.write_all(&words.framed()?)?;
        Ok(Some(Self::by(stream)))
    }

    const fn by(stream: UnixStream) -> Self {
        Self {
            stream,
            is_taken: false,
        }
    }

    /// Hears the answer, if there is one.
    pub(super) fn heard(&mut self) -> Heard {
        loop {
            let mut word = [0];
            match self.stream.read(&mut word) {
                Ok(1) if word == [TAKEN] => self.is_taken = true,
                Ok(1) if word == [LATER] => return Heard::Later,
                Ok(1) if word == [SHARED] => return Heard::Shared,
                Ok(1) => return Heard::GoOn,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Heard::Nothing,
                Ok(_) | Err(_) => return Heard::Gone,
            }
        }
    }

    /// Waits no longer, and says so. Where the watcher looks at that very moment, its answer is waited for.
    pub(super) fn gives_up(&mut self) -> Heard {
        // Who is gone has answered, or never will.
        let _told = self.stream.write_all(&[WENT_ON]);
        if self.stream.set_nonblocking(true).is_err() {
            return Heard::Nothing;
        }
        let heard = self.heard();
        let is_open = heard == Heard::Nothing && self.is_taken;
        let is_ready = is_open
            && self.stream.set_nonblocking(false).is_ok()
            && self.stream.set_read_timeout(Some(TAKEN_WAIT)).is_ok();
        if is_ready { self.heard() } else { heard }
    }
}

impl AsFd for Asked {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Gives a path that is short enough for a socket's address, as long as the directory is open.
fn shortened(path: &Path) -> io::Result<(OwnedFd, PathBuf)> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let directory = path.parent().ok_or_else(invalid)?;
    let name = path.file_name().ok_or_else(invalid)?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = open(directory, flags, Mode::empty())?;
    let number = directory.as_raw_fd().to_string();
    let short = Path::new("/proc/self/fd").join(number).join(name);
    Ok((directory, short))
}

#[cfg(test)]
mod tests {
    use backout_model::TargetPath;

    use super::*;

    #[test]
    fn a_question_is_asked_and_answered_however_long_the_path() {
        let world = tempfile::tempdir().unwrap();
        let directory = world.path().join("a".repeat(100)).join("b".repeat(100));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("0123456789abcdef.desk");
        let desk = Desk::open(&path).unwrap();
        assert!(desk.question().is_none());
        let target = Target::tree(TargetPath::new("/x").unwrap());
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| tell(&path, std::slice::from_ref(&target), &|| {}));
            let mut question = loop {
                if let Some(question) = desk.question() {
                    break question;
                }
            };
            assert_eq!(question.words.targets, std::slice::from_ref(&target));
            assert_eq!(question.take(), Asker::Waits);
            question.answer(false);
            asked.join().unwrap().unwrap();
        });
        drop(desk);
        assert!(tell(&path, &[target], &|| {}).is_err(), "nobody is there");
    }

    #[test]
    fn who_gives_up_is_known_to_or_waits_for_the_one_who_looks() {
        let world = tempfile::tempdir().unwrap();
        let path = world.path().join("desk");
        let desk = Desk::open(&path).unwrap();
        let words = Words::default();
        let ask = || Asked::at(&path, &words).unwrap().unwrap();

        let mut asked = ask();
        let mut question = desk.question().unwrap();
        assert_eq!(asked.gives_up(), Heard::Nothing);
        drop(asked);
        assert_eq!(question.take(), Asker::WentOn);

        drop(ask());
        assert_eq!(desk.question().unwrap().take(), Asker::Withdrew);

        let mut asked = ask();
        let mut question = desk.question().unwrap();
        assert_eq!(question.take(), Asker::Waits);
        assert_eq!(asked.heard(), Heard::Nothing);
        let answers = std::thread::spawn(move || question.answer(true));
        assert_eq!(asked.gives_up(), Heard::Shared);
        answers.join().unwrap();
    }
}
