//! Hearing that somebody asks for the end while a question is open: the signals are kept from this process, which forwards them
//! to a command while that runs.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::front::ENDING;
use super::sys;

/// Becomes readable when a signal asks for the end.
#[derive(Debug)]
pub struct EndWish(OwnedFd);

impl EndWish {
    /// Listens beside whoever else does. Looking takes no signal from anybody.
    pub fn listen() -> io::Result<Self> {
        Ok(Self(sys::signals(&ENDING)?))
    }

    /// Takes what came until now: that was meant for the command.
    pub fn forget(&self) {
        while sys::next_signal(self.0.as_fd()).is_some() {}
    }
}

impl AsFd for EndWish {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
