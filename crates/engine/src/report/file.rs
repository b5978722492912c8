//! Reports of what can be wrong with files.

use backout_drivers::file::FileError;

use super::Report;

/// A report per error; nothing was written unless it says otherwise.
pub(super) fn report(error: &FileError) -> Report {
    match error {
        FileError::NotFound { .. }
        | FileError::IsADirectory { .. }
        | FileError::NotADirectory { .. }
        | FileError::NotAFile { .. }
        | FileError::AlreadyExists { .. }
        | FileError::NotEmpty { .. }
        | FileError::IntoItself { .. } => names(error),
        FileError::Permission { .. }
        | FileError::ReadOnly { .. }
        | FileError::NoSpace { .. }
        | FileError::NoWayToKeep { .. }
        | FileError::Io { .. } => system(error),
        FileError::ThroughSymlink { .. }
        | FileError::Escapes { .. }
        | FileError::Unusable { .. }
        | FileError::Ours { .. } => paths(error),
        FileError::Edit { .. }
        | FileError::Patch(_)
        | FileError::Mode(_)
        | FileError::Entangled { .. }
        | FileError::Changed { .. } => requests(error),
        FileError::Damaged { .. }
        | FileError::HalfDone { .. }
        | FileError::Contents(_)
        | FileError::Recipe { .. }
        | FileError::Unreadable(_)
        | FileError::WrongContent { .. } => kept(error),
    }
}

fn plain(error: &FileError) -> Report {
    Report::refused(error.to_string()).because_of_causes(error)
}

fn names(error: &FileError) -> Report {
    let report = plain(error);
    match error {
        FileError::NotFound { .. } => {
            report.next("check the name; missing directories are made with `--parents`")
        }
        FileError::IsADirectory { .. } => {
            report.next("name a file in it, or remove it with `rm -r`")
        }
        FileError::NotADirectory { .. } => report.next("check the path"),
        FileError::NotAFile { .. } => report.next("only regular files have content to write"),
        FileError::AlreadyExists { .. } => report.next(
            "leave out `--create` to replace it, or give `--replace` to move, copy or link over it",
        ),
        FileError::NotEmpty { .. } => report.next("remove it with all that is in it with `rm -r`"),
        FileError::IntoItself { .. } => report.next("choose a place outside of it"),
        other => plain(other),
    }
}

fn system(error: &FileError) -> Report {
    let report = plain(error);
    match error {
        FileError::Permission { .. } => {
            report.next("run as a user who may, or change the permissions first")
        }
        FileError::ReadOnly { .. } => report.next("mount the file system writable"),
        FileError::NoSpace { .. } => report
            .because("nothing was changed")
            .next("make room on that file system"),
        FileError::NoWayToKeep { .. } => report
            .because("a write whose undo cannot be kept does not happen")
            .next(
                "make room, or put the state directory on the same file system with `--state-dir`",
            ),
        other => plain(other),
    }
}

fn paths(error: &FileError) -> Report {
    let report = plain(error);
    match error {
        FileError::ThroughSymlink { .. } => report
            .because("following it could write somewhere else than was looked at")
            .next("put the directory back, or name the real path"),
        FileError::Escapes { .. } => report.next("leave out `..`, or give an absolute path"),
        FileError::Ours { .. } => report
            .because("nobody writes there but Backout itself")
            .next("choose another path"),
        other => plain(other),
    }
}

fn requests(error: &FileError) -> Report {
    let report = plain(error);
    match error {
        FileError::Edit { .. } => {
            report.next("give more of the surrounding text, or `--all`, or `--nth N`")
        }
        FileError::Patch(_) => report.next("make the patch anew against the files as they are"),
        FileError::Mode(_) => report.next("give a mode such as 0644 or u+x"),
        FileError::Changed { .. } => report
            .because("somebody else writes it")
            .next("look at it and try again"),
        other => plain(other),
    }
}

fn kept(error: &FileError) -> Report {
    let report = plain(error);
    match error {
        FileError::Recipe { .. } => report.next("use the newer program"),
        FileError::HalfDone { .. } => {
            report.next("see the state of each target with `backout status`")
        }
        FileError::Damaged { .. }
        | FileError::Contents(_)
        | FileError::Unreadable(_)
        | FileError::WrongContent { .. } => {
            report.next("see what else is damaged with `backout verify`")
        }
        other => plain(other),
    }
}
