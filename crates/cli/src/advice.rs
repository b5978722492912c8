//! What to type next when a write was refused: the engine knows what is wrong, only the command line knows
//! its own options.

use backout_drivers::file::{Expect, FileError, FileRequest};
use backout_model::text::EditError;

const CHECK: &str = "check the name";
const RECURSIVE: &str = "take it with all that is in it with `--recursive`";
const REPLACE: &str = "replace it with `--replace`; what is there now is kept for the undo";

/// What kind of write was asked for, as far as advice depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    Write(Expect),
    Content,
    Remove,
    Move,
    Copy,
    Mkdir,
    Symlink,
    HardLink,
    Attributes,
    /// Several kinds at once: only a batch does that.
    Mixed,
    /// A shape without options.
    Other,
}

impl Asked {
    /// Tells what kind a request is; several of one kind count as that kind.
    pub(crate) fn of(request: &FileRequest) -> Self {
        match request {
            FileRequest::Write { expect, .. } => Self::Write(*expect),
            FileRequest::Append { .. } | FileRequest::Edit { .. } => Self::Content,
            FileRequest::Remove { .. } => Self::Remove,
            FileRequest::Move { .. } => Self::Move,
            FileRequest::Copy { .. } => Self::Copy,
            FileRequest::Mkdir { .. } => Self::Mkdir,
            FileRequest::Symlink { .. } => Self::Symlink,
            FileRequest::HardLink { .. } => Self::HardLink,
            FileRequest::Chmod { .. } | FileRequest::Chown { .. } => Self::Attributes,
            FileRequest::Patch { .. } | FileRequest::Layer { .. } | FileRequest::Restore { .. } => {
                Self::Other
            }
            FileRequest::Batch(requests) => {
                let mut kinds = requests.iter().map(Self::of);
                let first = kinds.next().unwrap_or(Self::Other);
                if kinds.all(|kind| kind == first) {
                    first
                } else {
                    Self::Mixed
                }
            }
        }
    }

    /// Gives better advice than the engine can, if there is any.
    pub(crate) fn advice(self, error: &FileError) -> Option<&'static str> {
        match error {
            FileError::NotFound { .. } => Some(self.on_missing()),
            FileError::AlreadyExists { .. } => Some(self.on_taken()),
            FileError::IsADirectory { .. } | FileError::NotEmpty { .. } => {
                Some(self.on_directory())
            }
            FileError::Edit {
                cause: EditError::NotFound { .. },
                ..
            } => Some("look at the file and give the text exactly as it is there"),
            _ => None,
        }
    }

    const fn on_missing(self) -> &'static str {
        match self {
            Self::Write(Expect::Existing) => "leave out `--existing` to make it",
            Self::Write(Expect::Anything | Expect::New) | Self::Mkdir => {
                "check the name, or make missing directories too with `--parents`"
            }
            Self::Remove => "check the name; `--force` does not mind what is not there",
            Self::Mixed => "check the name; `\"parents\": true` makes missing directories too",
            Self::Content
            | Self::Move
            | Self::Copy
            | Self::Symlink
            | Self::HardLink
            | Self::Attributes
            | Self::Other => CHECK,
        }
    }

    const fn on_taken(self) -> &'static str {
        match self {
            Self::Write(Expect::New) => "leave out `--create` to replace it",
            Self::Move | Self::Copy | Self::Symlink => REPLACE,
            Self::Mkdir => "`--parents` does not mind a directory that is there",
            Self::Mixed => "choose another name, or replace it with `\"replace\": true`",
            Self::Write(_)
            | Self::Content
            | Self::Remove
            | Self::HardLink
            | Self::Attributes
            | Self::Other => "choose another name",
        }
    }

    const fn on_directory(self) -> &'static str {
        match self {
            Self::Remove | Self::Copy => RECURSIVE,
            Self::Mixed => "take it with all that is in it with `\"recursive\": true`",
            Self::Write(_) | Self::Content => "name a file in it",
            Self::Move
            | Self::Mkdir
            | Self::Symlink
            | Self::HardLink
            | Self::Attributes
            | Self::Other => CHECK,
        }
    }
}
