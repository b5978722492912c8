//! Reports of what can be wrong with files. Nothing was written unless it says otherwise.

use backout_drivers::file::FileError;
use backout_model::TargetPath;

use super::{Call, Next, Report, wrote_it};

/// A write whose undo cannot be kept.
const NO_UNDO: &str = "a write whose undo cannot be kept does not happen";

/// Names the list of what is damaged.
const DAMAGED: &str = "see what else is damaged with {}";

/// How many paths of a conflict are named.
const NAMED_MAX: usize = 10;

pub(super) fn report(error: &FileError) -> Report {
    if let FileError::BaseChanged { paths } = error {
        return base_changed(paths);
    }
    if let FileError::Lost { path, why } = error {
        return Report::refused(error.to_string())
            .because(why)
            .next(match TargetPath::new(path) {
                Ok(path) => wrote_it(&path),
                Err(_) => Next::naming("see the operations with {}", [Call::of("log")]),
            });
    }
    if let FileError::OutOfReach { why, .. } = error {
        return Report::refused(error.to_string()).because(why);
    }
    let (why, next) = advice(error);
    let mut report = Report::refused(error.to_string()).because_of_causes(error);
    if !why.is_empty() {
        report = report.because(why);
    }
    match next {
        "" => report,
        DAMAGED => report.next_call(DAMAGED, [Call::of("verify")]),
        next => report.next(next),
    }
}

fn base_changed(paths: &[String]) -> Report {
    let mut report = Report::refused("nothing was applied: what the layer was made over changed");
    for path in paths.iter().take(NAMED_MAX) {
        report = report.because(format!("`{path}` changed since the command began"));
    }
    if let Some(more) = paths.len().checked_sub(NAMED_MAX).filter(|more| *more > 0) {
        report = report.because(format!("and {more} more"));
    }
    report
        .next("apply the rest with `--exclude PATH`, or a part with `--only GLOB`")
        .next("or discard the trial and run the command again")
}

const NOT_FOUND: (&str, &str) = (
    "",
    "check the name; missing directories are made with `--parents`",
);

const REQUEST: (&str, &str) = (
    "what was asked is damaged, or of a newer version of this program",
    "whoever proposed it has to ask again",
);

/// What is said where only one strategy was to be tried.
const ANOTHER_WAY: (&str, &str) = (
    "nothing was changed",
    "leave `--strategy` out: then the other one is tried",
);

/// Of a tree that is to go and has a mount in it.
const MOUNTED: (&str, &str) = (
    "what is removed is kept, and what is mounted cannot be",
    "unmount it first, or remove what is beside it",
);

/// Why more than the error says, and what to do next.
fn advice(error: &FileError) -> (&'static str, &'static str) {
    match error {
        FileError::Stopped | FileError::Lost { .. } | FileError::OutOfReach { .. } => ("", ""),
        FileError::Request(_) => REQUEST,
        FileError::NotFound { .. } => NOT_FOUND,
        FileError::IsADirectory { .. } => {
            ("", "name a file in it, or act on the whole tree with `-r`")
        }
        FileError::NotAFile { .. } => ("", "only regular files have content to write"),
        FileError::AlreadyExists { .. } => {
            ("", "choose another name, or say that it may be replaced")
        }
        FileError::NotEmpty { .. } => ("", "remove it with all that is in it with `rm -r`"),
        FileError::IntoItself { .. } => ("", "choose a place outside of it"),
        FileError::Permission { .. } => {
            ("", "run as a user who may, or change the permissions first")
        }
        FileError::Locked { .. } => (
            "nothing was changed",
            "if it is meant to change, take the flag off first: `chattr -i` or `chattr -a`",
        ),
        FileError::ReadOnly { .. } => ("", "mount the file system writable"),
        FileError::NoSpace { .. } => ("nothing was changed", "make room on that file system"),
        FileError::NoWayToKeep { .. } => (
            NO_UNDO,
            "make room, or put the state directory on that file system with `--state-dir`",
        ),
        FileError::NotPrepared { .. } => ANOTHER_WAY,
        FileError::HoldsMount { .. } => MOUNTED,
        FileError::ThroughSymlink { .. } => (
            "following it could write somewhere else than was looked at",
            "put the directory back, or name the real path",
        ),
        FileError::Escapes { .. } => (
            "a batch and a patch stay in their directory; nothing was changed",
            "run it in a directory that holds everything it writes",
        ),
        FileError::NotADirectory { .. } | FileError::Unusable { .. } => ("", "check the path"),
        FileError::Ours { .. } => (
            "nobody writes there but Backout itself",
            "choose another path",
        ),
        FileError::StandingIn { .. } => (
            "what is removed is kept, and you would stand, and write, in what is kept",
            "leave it first, with `cd`",
        ),
        FileError::Edit { .. } => (
            "",
            "give more of the surrounding text, or `--all`, or `--nth N`",
        ),
        FileError::Patch(_) => ("", "make the patch anew against the files as they are"),
        FileError::Entangled { .. } => (
            "one operation cannot say both of them at once",
            "do it in two operations",
        ),
        FileError::BaseChanged { .. } => ("", "run the command again"),
        FileError::Changed { .. } => ("somebody else writes it", "look at it and try again"),
        FileError::Recipe { .. } => ("", "use the newer program"),
        FileError::Damaged { .. }
        | FileError::Contents(_)
        | FileError::Unreadable(_)
        | FileError::WrongContent { .. } => ("", DAMAGED),
        FileError::NotSynced { .. } => (
            "after a failed sync nobody knows what the disk has",
            "check the disk and its file system, then try again",
        ),
        FileError::HalfDone { .. } | FileError::Io { .. } => {
            ("", "check the file system, then try again")
        }
    }
}
