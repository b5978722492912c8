//! Standard input as content: small in memory, large in a nameless file, so that any size streams. Ctrl-C ends the wait for
//! it.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read, Seek as _};
use std::path::{Path, PathBuf};

use backout_drivers::file::Source;
use backout_engine::{EngineError, Report};
use backout_model::ports::Progress as _;
use backout_model::ports::Stopped;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::env_vars;
use crate::ui::Bar;

/// More than this does not stay in memory.
const MEMORY_BYTES_MAX: usize = 8 * 1024 * 1024;

/// How long to wait for input before looking whether somebody wants to stop.
const LOOK_AGAIN: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// Where large temporary files belong: `/tmp` is often memory itself.
const LARGE_TEMPORARY: &str = "/var/tmp";

/// Takes standard input as content; refuses to wait for somebody to type it.
pub(crate) fn content_from_stdin(bar: &Bar, instead: &str) -> Result<Source, Report> {
    let mut stdin = Stdin::open(bar, instead)?;
    spool(&mut stdin, MEMORY_BYTES_MAX, &temporary_directory())
        .map_err(|error| stdin.unread(&error))
}

/// Reads a file whole, or standard input for `-`.
pub(crate) fn read_file_or_stdin(path: &Path, bar: &Bar, instead: &str) -> Result<Vec<u8>, Report> {
    if path != Path::new("-") {
        return read_file(path);
    }
    let mut stdin = Stdin::open(bar, instead)?;
    let mut bytes = Vec::new();
    stdin
        .read_to_end(&mut bytes)
        .map_err(|error| stdin.unread(&error))?;
    Ok(bytes)
}

/// Standard input, until somebody wants it to stop.
struct Stdin<'b> {
    bar: &'b Bar,
}

impl<'b> Stdin<'b> {
    fn open(bar: &'b Bar, instead: &str) -> Result<Self, Report> {
        if io::stdin().is_terminal() {
            return Err(nothing_to_read(instead));
        }
        Ok(Self { bar })
    }

    /// Says why it was not read to its end.
    fn unread(&self, error: &io::Error) -> Report {
        if self.bar.is_stopped() {
            return EngineError::from(Stopped).into();
        }
        unread("standard input", error)
    }
}

impl Read for Stdin<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let stdin = rustix::stdio::stdin();
        // A signal that comes between the look and the wait is seen a moment later.
        while !self.bar.is_stopped() {
            let mut wanted = [PollFd::new(&stdin, PollFlags::IN)];
            match poll(&mut wanted, Some(&LOOK_AGAIN)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(rustix::io::read(stdin, buffer)?),
                Err(errno) => return Err(errno.into()),
            }
        }
        Err(io::Error::other("it was interrupted"))
    }
}

/// Reads a file whole.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>, Report> {
    std::fs::read(path).map_err(|error| unread(&format!("`{}`", path.display()), &error))
}

fn spool(from: &mut dyn Read, bytes_max: usize, directory: &Path) -> io::Result<Source> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX);
    from.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() <= bytes_max {
        return Ok(Source::Bytes(bytes));
    }
    let mut file: File = tempfile::tempfile_in(directory).or_else(|_| tempfile::tempfile())?;
    io::copy(&mut bytes.as_slice(), &mut file)?;
    io::copy(from, &mut file)?;
    file.rewind()?;
    Ok(Source::Opened(file))
}

fn temporary_directory() -> PathBuf {
    std::env::var_os(env_vars::TMPDIR).map_or_else(|| PathBuf::from(LARGE_TEMPORARY), PathBuf::from)
}

fn nothing_to_read(instead: &str) -> Report {
    Report::usage("there is nothing to read")
        .because("standard input is a terminal")
        .next(format!("pipe it in, or {instead}"))
}

fn unread(what: &str, error: &io::Error) -> Report {
    Report::refused(format!("{what} could not be read"))
        .because(error)
        .next("check the name and that you may read it")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spooled(bytes: &[u8], bytes_max: usize) -> (bool, Vec<u8>) {
        let mut from = bytes;
        match spool(&mut from, bytes_max, &std::env::temp_dir()).unwrap() {
            Source::Bytes(kept) => (true, kept),
            Source::Opened(mut file) => {
                let mut kept = Vec::new();
                file.read_to_end(&mut kept).unwrap();
                (false, kept)
            }
            other @ (Source::Path(_) | Source::Stored(_)) => {
                panic!("standard input is neither a path nor stored: {other:?}")
            }
        }
    }

    #[test]
    fn input_stays_in_memory_up_to_the_limit_and_arrives_whole_beyond_it() {
        assert_eq!(spooled(b"", 4), (true, b"".to_vec()));
        assert_eq!(spooled(b"1234", 4), (true, b"1234".to_vec()));
        assert_eq!(spooled(b"12345", 4), (false, b"12345".to_vec()));
        assert_eq!(spooled(&vec![7; 100_000], 4), (false, vec![7; 100_000]));
    }
}
