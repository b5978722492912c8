//! What to type next when a write was refused: the engine knows what is wrong, only the command line knows
//! its own options.

use std::path::{Path, PathBuf};

use backout_drivers::file::{Expect, FileError, FileRequest};
use backout_model::text::EditError;

const CHECK: &str = "check the name";
const RECURSIVE: &str = "take it with all that is in it with `--recursive`";
const REPLACE: &str = "replace it with `--replace`; what is there now is kept for the undo";

/// What kind of write was asked for, as far as advice depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// What a batch says, each with its names: it has fields, and no options.
    Batch(Vec<(Vec<PathBuf>, Self)>),
    /// A shape without options.
    Other,
}

impl Asked {
    /// Tells of which kinds the changes of a batch are.
    pub(crate) fn in_batch(requests: &[FileRequest]) -> Self {
        let kind = |request: &FileRequest| {
            let paths = request.paths().into_iter().map(Path::to_path_buf);
            (paths.collect(), Self::of(request))
        };
        Self::Batch(requests.iter().map(kind).collect())
    }

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
            FileRequest::Batch(requests) | FileRequest::Within { requests, .. } => {
                let mut kinds = requests.iter().map(Self::of);
                let first = kinds.next().unwrap_or(Self::Other);
                if kinds.all(|kind| kind == first) {
                    first
                } else {
                    Self::Other
                }
            }
        }
    }

    /// Gives better advice than the engine can, if there is any.
    pub(crate) fn advice(&self, error: &FileError) -> Option<&'static str> {
        match error {
            FileError::NotFound { path }
            | FileError::AlreadyExists { path }
            | FileError::IsADirectory { path }
            | FileError::NotEmpty { path }
                if let Self::Batch(changes) = self =>
            {
                Some(in_batch(changes, Path::new(path), error))
            }
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

    const fn on_missing(&self) -> &'static str {
        match self {
            Self::Write(Expect::Existing) => "leave out `--existing` to make it",
            Self::Write(Expect::Anything | Expect::New) | Self::Mkdir => {
                "check the name, or make missing directories too with `--parents`"
            }
            Self::Remove => "check the name; `--force` does not mind what is not there",
            Self::Content
            | Self::Move
            | Self::Copy
            | Self::Symlink
            | Self::HardLink
            | Self::Attributes
            | Self::Batch(_)
            | Self::Other => CHECK,
        }
    }

    const fn on_taken(&self) -> &'static str {
        match self {
            Self::Write(Expect::New) => "leave out `--create` to replace it",
            Self::Move | Self::Copy | Self::Symlink => REPLACE,
            Self::Mkdir => "`--parents` does not mind a directory that is there",
            Self::Write(_)
            | Self::Content
            | Self::Remove
            | Self::HardLink
            | Self::Attributes
            | Self::Batch(_)
            | Self::Other => "choose another name",
        }
    }

    const fn on_directory(&self) -> &'static str {
        match self {
            Self::Remove | Self::Copy => RECURSIVE,
            Self::Write(_) | Self::Content => "name a file in it",
            Self::Move
            | Self::Mkdir
            | Self::Symlink
            | Self::HardLink
            | Self::Attributes
            | Self::Batch(_)
            | Self::Other => CHECK,
        }
    }
}

/// Gives advice about the change of a batch that a name belongs to, in the words of a batch.
fn in_batch(changes: &[(Vec<PathBuf>, Asked)], path: &Path, error: &FileError) -> &'static str {
    let names = |change: &&(Vec<PathBuf>, Asked)| change.0.iter().any(|name| name == path);
    let lies_below =
        |change: &&(Vec<PathBuf>, Asked)| change.0.iter().any(|name| name.starts_with(path));
    let own = changes.iter().find(names);
    let kind = own.or_else(|| changes.iter().find(lies_below));
    match (error, kind.map(|(_, kind)| kind)) {
        (FileError::NotFound { .. }, Some(Asked::Write(_) | Asked::Mkdir)) => {
            "check the name; `\"parents\": true` makes missing directories too"
        }
        (FileError::AlreadyExists { .. }, Some(Asked::Move | Asked::Copy | Asked::Symlink)) => {
            "choose another name, or replace it with `\"replace\": true`"
        }
        (FileError::AlreadyExists { .. }, _) => "choose another name",
        (
            FileError::IsADirectory { .. } | FileError::NotEmpty { .. },
            Some(Asked::Remove | Asked::Copy),
        ) => "take it with all that is in it with `\"recursive\": true`",
        (_, _) => CHECK,
    }
}
