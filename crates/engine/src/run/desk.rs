//! The desk: where other operations tell the watcher of a command what they are about to write.
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

use backout_model::Target;
use rustix::fs::{Mode, OFlags, open};

/// How long the watcher waits for words that were announced.
const WORDS_WAIT: Duration = Duration::from_millis(500);

/// How long an operation waits for the watcher: it may be copying a large file.
const ANSWER_WAIT: Duration = Duration::from_secs(10);

/// How long it waits before it says so.
const PATIENCE: Duration = Duration::from_millis(500);

/// The answer that has the other come again.
const LATER: [u8; 1] = *b"!";

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
        let targets = is_ours.then(|| read_words(&stream)).flatten()?;
        Some(Question { targets, stream })
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

/// Somebody is about to write these, and waits for a word.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) targets: Vec<Target>,
    stream: UnixStream,
}

impl Question {
    /// Lets the other go on.
    pub(super) fn answer(mut self) {
        // Who does not wait any more goes on anyway.
        let _told = self.stream.write_all(b".");
    }

    /// Has the other come again.
    fn put_off(mut self) {
        let _told = self.stream.write_all(&LATER);
    }
}

fn read_words(mut stream: &UnixStream) -> Option<Vec<Target>> {
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
                if question.targets.iter().any(is_meant) {
                    question.put_off();
                } else {
                    question.answer();
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
    let words = serde_json::to_vec(targets)?;
    let length = u32::try_from(words.len()).map_err(io::Error::other)?;
    stream.write_all(&length.to_le_bytes())?;
    stream.write_all(&words)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut answer = [0];
    match stream.read_exact(&mut answer) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            is_slow();
            stream.set_read_timeout(Some(ANSWER_WAIT))?;
            stream.read_exact(&mut answer)?;
        }
        read => read?,
    }
    Ok(if answer == LATER {
        Told::Later
    } else {
        Told::GoOn
    })
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
            let question = loop {
                if let Some(question) = desk.question() {
                    break question;
                }
            };
            assert_eq!(question.targets, std::slice::from_ref(&target));
            question.answer();
            asked.join().unwrap().unwrap();
        });
        drop(desk);
        assert!(tell(&path, &[target], &|| {}).is_err(), "nobody is there");
    }
}
