//! What a trial changed, line by line.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use backout_drivers::file::{FileVersions, Version};

use super::manifest::{TrialChange, TrialWhat};
use crate::history::diff_file;
use crate::{DiffFile, EngineError};

/// The largest content that is shown.
const SHOWN_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Compares each changed file with the real one. Where only more than bytes changed, that is said.
pub(super) fn files(changes: &[&TrialChange]) -> Result<Vec<DiffFile>, EngineError> {
    let mut files = Vec::new();
    for change in changes {
        if let Some(from) = change.from() {
            let text = format!("{from}: moved to {}\n", change.path);
            files.push(DiffFile {
                path: change.path.clone(),
                text,
            });
            continue;
        }
        let after = match change.source() {
            Some(source) => version(source.as_path()),
            None => Ok(Version::Absent),
        };
        let versions = FileVersions {
            path: change.path.clone(),
            before: version(change.path.as_path()).map_err(unread)?,
            after: after.map_err(unread)?,
        };
        let mut file = diff_file(&versions);
        if change.what == TrialWhat::Metadata && file.text.is_empty() {
            file.text = format!("{}: mode, owner or attributes changed\n", change.path);
        }
        files.push(file);
    }
    Ok(files)
}

fn unread(source: io::Error) -> EngineError {
    EngineError::Io {
        action: "read what the command changed",
        source,
    }
}

fn version(path: &Path) -> io::Result<Version> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Version::Absent),
        Err(error) => return Err(error),
    };
    if found.is_dir() {
        return Ok(Version::Described("a directory".to_owned()));
    }
    if found.is_symlink() {
        let to = fs::read_link(path)?;
        return Ok(Version::Described(format!("a link to {}", to.display())));
    }
    if !found.is_file() {
        return Ok(Version::Described(
            "a pipe, a socket or a device".to_owned(),
        ));
    }
    if found.len() > SHOWN_BYTES_MAX {
        let size = found.len();
        return Ok(Version::Described(format!(
            "{size} bytes, too many to show"
        )));
    }
    let mut bytes = Vec::new();
    let limit = SHOWN_BYTES_MAX;
    File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(Version::Bytes(bytes))
}
