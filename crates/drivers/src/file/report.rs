//! What is told of what can be wrong with files. Nothing was written unless it says otherwise.

use std::io;

use backout_model::TargetPath;
use backout_model::ports::{DriverError, Fault, LeftOver};
use backout_model::report::{Call, ErrorCode, Next, Report};
use rustix::io::Errno;

use super::error::FileError;

/// A write whose undo cannot be kept.
const NO_UNDO: &str = "a write whose undo cannot be kept does not happen";

/// Names the list of what is damaged.
const DAMAGED: &str = "see what else is damaged with {}";

impl Fault for FileError {
    fn is_stop(&self) -> bool {
        Self::is_stop(self)
    }

    fn may_pass(&self) -> bool {
        use io::ErrorKind as Kind;
        let Self::Io { source, .. } = self else {
            return false;
        };
        // A disk or a server that stumbles once may answer the next time. What a failed sync says is another error.
        let stumbled = [Errno::IO, Errno::TIMEDOUT, Errno::STALE].map(Errno::raw_os_error);
        matches!(
            source.kind(),
            Kind::Interrupted | Kind::WouldBlock | Kind::ResourceBusy
        ) || source
            .raw_os_error()
            .is_some_and(|it| stumbled.contains(&it))
    }

    fn is_half_done(&self) -> bool {
        matches!(self, Self::HalfDone { .. })
    }

    fn not_prepared(&self) -> Option<String> {
        let (Self::NotPrepared { path, why, .. } | Self::NoWayToKeep { path, why }) = self else {
            return None;
        };
        Some(format!("`{path}`: {why}"))
    }

    fn out_of_reach(&self) -> Option<&str> {
        let Self::OutOfReach { why, .. } = self else {
            return None;
        };
        Some(why)
    }

    fn lost(&self) -> Option<(&str, &str)> {
        let Self::Lost { path, why } = self else {
            return None;
        };
        Some((path, why))
    }

    fn left_over(&self) -> Option<LeftOver> {
        let Self::HalfDone {
            putting_back,
            cause,
            ..
        } = self
        else {
            return None;
        };
        Some(LeftOver {
            what: putting_back.clone(),
            began_by: report(cause),
        })
    }

    fn report(&self) -> Option<Report> {
        Some(report(self))
    }
}

impl From<FileError> for DriverError {
    fn from(error: FileError) -> Self {
        // The engine knows it by itself.
        if let FileError::BaseChanged(changed) = error {
            changed.into()
        } else {
            Self::new(error)
        }
    }
}

/// Tells an error, with the word that programs know it by.
pub(crate) fn report(error: &FileError) -> Report {
    told(error).code(code(error))
}

fn told(error: &FileError) -> Report {
    if let FileError::BaseChanged(changed) = error
        && let Some(report) = changed.report()
    {
        return report;
    }
    if let FileError::Lost { path, why } = error {
        return Report::refused(error.to_string())
            .because(why)
            .next(match TargetPath::new(path) {
                Ok(path) => Next::wrote_it(&path),
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

/// Of a search that fits nowhere, or in several places.
const EDIT: (&str, &str) = (
    "",
    "give more of the surrounding text, or `--all`, or `--nth N`",
);

/// Of a tree that is to go and has a mount in it.
const CIRCLE: (&str, &str) = (
    "it, or a link that it leads to, never comes to a file; nothing was changed",
    "remove the link, or name the file",
);
const MOUNTED: (&str, &str) = (
    "what is removed is kept, and what is mounted cannot be",
    "unmount it first, or remove what is beside it",
);

/// Why more than the error says, and what to do next.
fn advice(error: &FileError) -> (&'static str, &'static str) {
    match error {
        FileError::Stopped
        | FileError::Lost { .. }
        | FileError::OutOfReach { .. }
        | FileError::BaseChanged(_) => ("", ""),
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
        FileError::Circle { .. } => CIRCLE,
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
        FileError::Edit { .. } => EDIT,
        FileError::Patch(_) => ("", "make the patch anew against the files as they are"),
        FileError::Entangled { .. } => (
            "one operation cannot say both of them at once",
            "do it in two operations",
        ),
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

const fn code(error: &FileError) -> ErrorCode {
    match error {
        FileError::Stopped => ErrorCode::Interrupted,
        FileError::NotFound { .. } => ErrorCode::NotFound,
        FileError::Lost { .. } => ErrorCode::Lost,
        FileError::OutOfReach { .. } => ErrorCode::OutOfReach,
        FileError::IsADirectory { .. } => ErrorCode::IsADirectory,
        FileError::NotADirectory { .. } => ErrorCode::NotADirectory,
        FileError::NotAFile { .. } => ErrorCode::NotAFile,
        FileError::AlreadyExists { .. } => ErrorCode::AlreadyExists,
        FileError::NotEmpty { .. } => ErrorCode::NotEmpty,
        FileError::IntoItself { .. } => ErrorCode::IntoItself,
        FileError::Permission { .. } => ErrorCode::Permission,
        FileError::Locked { .. } => ErrorCode::Locked,
        FileError::ReadOnly { .. } => ErrorCode::ReadOnly,
        FileError::NoSpace { .. } => ErrorCode::NoSpace,
        FileError::NoWayToKeep { .. }
        | FileError::NotPrepared { .. }
        | FileError::HoldsMount { .. } => ErrorCode::CannotBeKept,
        FileError::ThroughSymlink { .. } | FileError::Circle { .. } => ErrorCode::ThroughSymlink,
        FileError::Escapes { .. } => ErrorCode::Escapes,
        FileError::Unusable { .. } => ErrorCode::UnusablePath,
        FileError::Ours { .. } => ErrorCode::OwnState,
        FileError::StandingIn { .. } => ErrorCode::CurrentDirectory,
        FileError::Edit { .. } => ErrorCode::Edit,
        FileError::Patch(_) => ErrorCode::Patch,
        FileError::Entangled { .. } => ErrorCode::Entangled,
        FileError::BaseChanged(_) => ErrorCode::BaseChanged,
        FileError::Changed { .. } => ErrorCode::ChangedMeanwhile,
        FileError::HalfDone { .. } => ErrorCode::HalfDone,
        FileError::Recipe { .. } => ErrorCode::NewerRecipe,
        FileError::Damaged { .. }
        | FileError::Contents(_)
        | FileError::Unreadable(_)
        | FileError::Request(_)
        | FileError::WrongContent { .. } => ErrorCode::Damaged,
        FileError::NotSynced { .. } => ErrorCode::NotSynced,
        FileError::Io { .. } => ErrorCode::Io,
    }
}
