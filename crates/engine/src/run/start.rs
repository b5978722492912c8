//! What is found out before a command starts: its words, its directory, its environment, what it can write already.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use backout_capture::live::{self, RELAY, Watching};
use backout_model::{CaptureMode, CommandStart, Digest, OperationId, TargetPath};

use super::{Capture, RUN_VARIABLE, RunRequest};
use crate::EngineError;

pub(super) fn summary_of(words: &[OsString]) -> String {
    let words: Vec<String> = words
        .iter()
        .map(|word| quoted(&word.to_string_lossy()))
        .collect();
    format!("run {}", words.join(" "))
}

/// Says a word as one would type it.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "_-./=:@%+,~".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Finds the directories that are compared: those that were named, or this one where nothing else is seen.
pub(super) fn roots_of(
    request: &RunRequest,
    mode: CaptureMode,
) -> Result<Vec<TargetPath>, EngineError> {
    let mut roots = request.roots.clone();
    if roots.is_empty() && mode == CaptureMode::Scan {
        roots.push(PathBuf::from("."));
    }
    let find = |root: &PathBuf| {
        let real = std::fs::canonicalize(root)?;
        TargetPath::new(real).map_err(std::io::Error::other)
    };
    let found: Result<Vec<TargetPath>, std::io::Error> = roots.iter().map(find).collect();
    found.map_err(|source| EngineError::Io {
        action: "find a directory to be compared",
        source,
    })
}

pub(super) fn start_of(
    request: &RunRequest,
    mode: CaptureMode,
) -> Result<CommandStart, EngineError> {
    let here = std::env::current_dir().or_else(|error| where_it_was().ok_or(error));
    let here = here.map_err(|source| EngineError::Io {
        action: "find the current directory",
        source,
    })?;
    let directory = TargetPath::new(&here).map_err(|error| EngineError::Io {
        action: "find the current directory",
        source: std::io::Error::other(error),
    })?;
    Ok(CommandStart {
        words: request
            .words
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        directory,
        environment: environment(request.base.clone()),
        mode,
        level: request.level,
        on_failure: request.on_failure,
    })
}

/// Gives the path that the current directory had before it was removed.
fn where_it_was() -> Option<PathBuf> {
    let told = std::fs::read_link("/proc/self/cwd").ok()?;
    let was = told.as_os_str().as_bytes().strip_suffix(b" (deleted)")?;
    Some(PathBuf::from(OsStr::from_bytes(was)))
}

/// Gives a digest of the environment: sorted, so that the same one has the same digest.
fn environment(base: Option<Vec<(OsString, OsString)>>) -> Digest {
    let mut variables = base.unwrap_or_else(|| std::env::vars_os().collect());
    variables.sort();
    let mut bytes = Vec::new();
    for (name, value) in variables {
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(b'=');
        bytes.extend_from_slice(value.as_bytes());
        bytes.push(0);
    }
    Digest::of(&bytes)
}

/// Lists what the command can write by descriptors that it is born with, its own three aside; once for each of them.
pub(super) fn opened() -> Vec<PathBuf> {
    const STANDARD: u32 = 2;
    let mut opened = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten()
    {
        let number = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok());
        let Some(number) = number.filter(|number| *number > STANDARD) else {
            continue;
        };
        let Ok(info) = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}")) else {
            continue;
        };
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
        let is_inherited = flags.is_some_and(|flags| flags & 0o3 != 0 && flags & 0o2_000_000 == 0);
        if let (true, Ok(path)) = (is_inherited, std::fs::read_link(entry.path())) {
            opened.push(path);
        }
    }
    opened
}

/// Gives the variables that tell a command where it is, and tells the front which command it is.
pub(super) fn variables_of(
    request: &RunRequest,
    id: OperationId,
    mode: CaptureMode,
) -> Vec<(OsString, OsString)> {
    let mut variables = request.environment.clone();
    variables.push((RUN_VARIABLE.into(), id.to_string().into()));
    for (name, value) in &request.named {
        let mut value = value.clone();
        value.push(id.to_string());
        variables.push((name.clone(), value));
    }
    let Some(back) = &request.back else {
        return variables;
    };
    // If the front is gone, nobody asks.
    let _gone = back.announce(id.bits());
    // Where nothing is watched nothing is refused, and nobody needs a relay.
    let relay = back.relay().filter(|_| mode == CaptureMode::Live);
    variables.extend(relay.map(|relay| (OsString::from(RELAY), relay.to_owned())));
    variables
}

/// Says what is asked about.
pub(super) const fn watching_of(mode: CaptureMode, has_reads: bool) -> Watching {
    match (mode, has_reads) {
        (CaptureMode::Live, false) => Watching::Writes,
        (CaptureMode::Live, true) => Watching::WritesAndReads,
        _ => Watching::Nothing,
    }
}

/// Decides how a command is watched. Says what is missing for the best way.
pub(super) fn mode_of(capture: Capture) -> (CaptureMode, Option<String>) {
    match capture {
        Capture::Live => (CaptureMode::Live, None),
        Capture::Scan => (CaptureMode::Scan, None),
        Capture::Auto => match live::probe() {
            Ok(()) => (CaptureMode::Live, None),
            Err(error) => {
                let why = format!("it could not be watched, so directories were compared: {error}");
                (CaptureMode::Scan, Some(why))
            }
        },
    }
}
