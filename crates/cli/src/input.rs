//! Standard input as content: small in memory, large in a nameless file, so that any size streams.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read, Seek as _};
use std::path::{Path, PathBuf};

use backout_drivers::file::Source;
use backout_engine::Report;

use crate::env_vars;

/// More than this does not stay in memory.
const MEMORY_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Where large temporary files belong: `/tmp` is often memory itself.
const LARGE_TEMPORARY: &str = "/var/tmp";

/// Takes standard input as content; refuses to wait for somebody to type it.
pub(crate) fn content_from_stdin(instead: &str) -> Result<Source, Report> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        return Err(nothing_to_read(instead));
    }
    spool(&mut stdin.lock(), MEMORY_BYTES_MAX, &temporary_directory())
        .map_err(|error| unread("standard input", &error))
}

/// Reads a file whole, or standard input for `-`.
pub(crate) fn read_file_or_stdin(path: &Path, instead: &str) -> Result<Vec<u8>, Report> {
    if path != Path::new("-") {
        return read_file(path);
    }
    let stdin = io::stdin();
    if stdin.is_terminal() {
        return Err(nothing_to_read(instead));
    }
    let mut bytes = Vec::new();
    stdin
        .lock()
        .read_to_end(&mut bytes)
        .map_err(|error| unread("standard input", &error))?;
    Ok(bytes)
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
            Source::Path(path) => panic!("standard input is no path: {path:?}"),
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
