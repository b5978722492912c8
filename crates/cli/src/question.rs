//! Questions to the person at the terminal, whatever our streams are, while a command is watched or was.
//!
//! The signals that ask for the end are kept from a process that watches a command, so whoever asks has to listen for them.

use std::fs::File;
use std::io::{BufRead as _, BufReader, IsTerminal as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};

use backout_capture::live::EndWish;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// What somebody answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Yes,
    /// Also where there is nobody to be asked.
    No,
    /// Somebody asked for the end instead: by Ctrl-C, or by a signal.
    Stopped,
}

/// Asks, and listens for whoever wants the end instead: what can be read from `ends` says so as well.
pub(crate) fn ask(question: &str, ends: &[BorrowedFd<'_>]) -> Answer {
    let opened = File::options().read(true).write(true).open("/dev/tty");
    let Ok(mut terminal) = opened else {
        return Answer::No;
    };
    if !terminal.is_terminal() || write!(terminal, "{question} [y/N] ").is_err() {
        return Answer::No;
    }
    if is_ended(&terminal, ends) {
        let _gone = writeln!(terminal);
        return Answer::Stopped;
    }
    let mut answer = String::new();
    let _read = BufReader::new(terminal).read_line(&mut answer);
    match answer.trim() {
        "y" | "Y" | "yes" => Answer::Yes,
        _ => Answer::No,
    }
}

/// Waits for a line. Tells whether somebody asked for the end before there was one.
fn is_ended(terminal: &File, ends: &[BorrowedFd<'_>]) -> bool {
    let wish = EndWish::listen().ok();
    let wish = wish.as_ref().map(EndWish::as_fd);
    let all = ends.iter().copied().chain(wish);
    let mut fds: Vec<PollFd<'_>> = all
        .map(|end| PollFd::from_borrowed_fd(end, PollFlags::IN))
        .collect();
    fds.push(PollFd::new(terminal, PollFlags::IN));
    loop {
        match poll(&mut fds, None) {
            Err(Errno::INTR) => {}
            // Then the answer is waited for as it comes.
            Err(_) => return false,
            Ok(_) => break,
        }
    }
    fds.pop();
    fds.iter().any(|fd| !fd.revents().is_empty())
}
