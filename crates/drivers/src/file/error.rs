//! What can go wrong with files, named after what failed.

use std::io;

use backout_files::BaseChanged;
use backout_model::ports::ContentsError;
use backout_model::text::{EditError, PatchError};
use backout_model::{Digest, Strategy, TargetPath};
use rustix::io::Errno;

/// Says why a file operation did not happen, or how far it got.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Somebody wanted it to stop.
    #[error("it was interrupted")]
    Stopped,
    /// A request could not be written down, or not be read again.
    #[error("a request that was kept cannot be read")]
    Request(#[source] serde_json::Error),
    /// Nothing has that name.
    #[error("`{path}` does not exist")]
    NotFound {
        /// The missing name.
        path: String,
    },
    /// Nobody has what it was.
    #[error("`{path}` cannot be restored")]
    Lost {
        /// The name.
        path: String,
        /// Why not.
        why: String,
    },
    /// Somebody may have what it was, but not here or not now.
    #[error("what `{path}` was is out of reach")]
    OutOfReach {
        /// The name.
        path: String,
        /// Why, and what helps.
        why: String,
    },
    /// A directory stands where something else was wanted.
    #[error("`{path}` is a directory")]
    IsADirectory {
        /// The directory.
        path: String,
    },
    /// Something else stands where a directory was wanted.
    #[error("`{path}` is not a directory")]
    NotADirectory {
        /// What is not a directory.
        path: String,
    },
    /// What is there has no bytes that could be replaced: a device, a pipe, a socket.
    #[error("`{path}` is not a regular file")]
    NotAFile {
        /// What is not a file.
        path: String,
    },
    /// The name is taken.
    #[error("`{path}` already exists")]
    AlreadyExists {
        /// The taken name.
        path: String,
    },
    /// The directory still holds something.
    #[error("the directory `{path}` is not empty")]
    NotEmpty {
        /// The directory.
        path: String,
    },
    /// A directory cannot be moved or copied into itself.
    #[error("`{to}` lies inside `{from}`")]
    IntoItself {
        /// What was to be moved or copied.
        from: String,
        /// Where to.
        to: String,
    },
    /// The system does not let us.
    #[error("not permitted to {action} `{path}`")]
    Permission {
        /// The path, as people are told it.
        path: String,
        /// What was tried.
        action: &'static str,
    },
    /// A flag of the inode, or of its directory, keeps everybody from changing it.
    #[error("`{path}` is {flag}: nobody may change it, not even root")]
    Locked {
        /// What has the flag.
        path: String,
        /// The flag.
        flag: &'static str,
    },
    /// The file system is mounted read-only.
    #[error("`{path}` is on a read-only file system")]
    ReadOnly {
        /// The path, as people are told it.
        path: String,
    },
    /// No room, or the quota is used up.
    #[error("no space left to {while_doing} `{path}`")]
    NoSpace {
        /// The path, as people are told it.
        path: String,
        /// What was tried.
        while_doing: &'static str,
    },
    /// A directory on the way was swapped for a symbolic link.
    #[error("a directory above `{path}` is a symbolic link now")]
    ThroughSymlink {
        /// The path, as people are told it.
        path: String,
    },
    /// A symbolic link leads to itself, or from link to link without an end.
    #[error("the symbolic link `{path}` leads to itself")]
    Circle {
        /// The path, as people are told it.
        path: String,
    },
    /// A path of a batch or a patch leads out of its directory.
    #[error("`{path}` leads out of its directory, to `{to}`")]
    Escapes {
        /// The path.
        path: String,
        /// Where it leads.
        to: String,
    },
    /// The path cannot be a target at all.
    #[error("`{path}` cannot be written to")]
    Unusable {
        /// The path.
        path: String,
    },
    /// Our own state may not be written by any operation.
    #[error("`{path}` belongs to our own state")]
    Ours {
        /// The path.
        path: String,
    },
    /// Whoever asks is in the directory that is to go: its current directory would go on living in a depot.
    #[error("`{path}` is the current directory, or above it")]
    StandingIn {
        /// The path.
        path: String,
    },
    /// Another file system is mounted in a directory that is to go.
    #[error("`{mount}` is mounted in `{path}`")]
    HoldsMount {
        /// The directory.
        path: String,
        /// Where something is mounted.
        mount: String,
    },
    /// The state before cannot be kept, so the write is refused.
    #[error("no way to keep what `{path}` is now: {why}")]
    NoWayToKeep {
        /// The path, as people are told it.
        path: String,
        /// What was tried.
        why: String,
    },
    /// The strategy that was asked for cannot be prepared.
    #[error("what `{path}` is cannot be kept by {strategy}: {why}")]
    NotPrepared {
        /// The path, as people are told it.
        path: String,
        /// What was asked for.
        strategy: Strategy,
        /// Why not.
        why: String,
    },
    /// The target changed between being looked at and being written; it was left alone.
    #[error("`{path}` changed while the operation was being prepared")]
    Changed {
        /// The path, as people are told it.
        path: String,
    },
    /// What a layer was made over is not there any more as it was.
    #[error(transparent)]
    BaseChanged(#[from] BaseChanged),
    /// An entry of a batch builds on another in a way that one step cannot express.
    #[error("`{path}` is touched by an earlier change of the same batch")]
    Entangled {
        /// The path, as people are told it.
        path: String,
    },
    /// What was put back is not what was kept.
    #[error("`{path}` was put back but is not as it was: {why}")]
    Damaged {
        /// The path, as people are told it.
        path: String,
        /// What differs.
        why: String,
    },
    /// A step failed, and so did putting back what was done before it.
    #[error("`{path}` is half done: putting it back failed ({putting_back})")]
    HalfDone {
        /// The path, as people are told it.
        path: String,
        /// Why it could not be put back.
        putting_back: String,
        /// The failure that began it.
        #[source]
        cause: Box<Self>,
    },
    /// The search and replacement do not fit the file.
    #[error("`{path}` cannot be edited")]
    Edit {
        /// The path, as people are told it.
        path: String,
        /// Why not.
        #[source]
        cause: EditError,
    },
    /// The patch cannot be read or does not fit.
    #[error("the patch cannot be applied")]
    Patch(#[source] PatchError),
    /// The content store failed.
    #[error("a kept content cannot be had")]
    Contents(#[source] ContentsError),
    /// The recipe is not one that this program understands.
    #[error("the recipe has version {found}, this program reads up to {known}")]
    Recipe {
        /// The version of the recipe.
        found: u16,
        /// The newest version known here.
        known: u16,
    },
    /// The body of the recipe or of the completion is damaged.
    #[error("the recipe cannot be read")]
    Unreadable(#[source] serde_json::Error),
    /// A content is not what its digest says.
    #[error("the content for `{path}` is not {digest}")]
    WrongContent {
        /// What it was for.
        path: String,
        /// What it should have been.
        digest: Digest,
    },
    /// The disk did not take what it was given. What it has of it is unknown, and asking again would only hide that.
    #[error("could not sync `{path}`")]
    NotSynced {
        /// The path, as people are told it.
        path: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Any other failure of the system.
    #[error("could not {action} `{path}`")]
    Io {
        /// The path, as people are told it.
        path: String,
        /// What was tried.
        action: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl FileError {
    /// Tells whether somebody stopped it.
    pub const fn is_stop(&self) -> bool {
        if let Self::HalfDone { cause, .. } = self {
            cause.is_stop()
        } else {
            matches!(self, Self::Stopped)
        }
    }

    /// Tells whether it says that a path leads to nothing: nothing has the name, or a part of the way is no directory or a link.
    pub(crate) const fn leads_nowhere(&self) -> bool {
        matches!(
            self,
            Self::NotFound { .. } | Self::NotADirectory { .. } | Self::ThroughSymlink { .. }
        )
    }

    /// Speaks of another path instead: `rename` gives it for the one that failed, if it knows it. What was made or named
    /// there is written here.
    #[must_use]
    pub(crate) fn speaking_of(mut self, rename: &dyn Fn(&str) -> Option<String>) -> Self {
        if let Self::Permission { action, .. }
        | Self::Io { action, .. }
        | Self::NoSpace {
            while_doing: action,
            ..
        } = &mut self
            && matches!(*action, "make" | "name" | "link")
        {
            *action = "write";
        }
        let (Self::NotFound { path }
        | Self::IsADirectory { path }
        | Self::NotADirectory { path }
        | Self::NotAFile { path }
        | Self::AlreadyExists { path }
        | Self::NotEmpty { path }
        | Self::Permission { path, .. }
        | Self::ReadOnly { path }
        | Self::NoSpace { path, .. }
        | Self::NoWayToKeep { path, .. }
        | Self::HoldsMount { path, .. }
        | Self::ThroughSymlink { path }
        | Self::Circle { path }
        | Self::Changed { path }
        | Self::WrongContent { path, .. }
        | Self::NotSynced { path, .. }
        | Self::Io { path, .. }) = &mut self
        else {
            return self;
        };
        if let Some(other) = rename(path) {
            *path = other;
        }
        self
    }

    /// Names a failed call after its cause.
    pub(crate) fn of(errno: Errno, path: &TargetPath, action: &'static str) -> Self {
        let path = path.to_string();
        match errno {
            Errno::NOENT => Self::NotFound { path },
            Errno::ACCESS | Errno::PERM => Self::Permission { path, action },
            Errno::ROFS => Self::ReadOnly { path },
            Errno::NOSPC | Errno::DQUOT => Self::NoSpace {
                path,
                while_doing: action,
            },
            Errno::LOOP => Self::ThroughSymlink { path },
            Errno::NOTDIR => Self::NotADirectory { path },
            Errno::ISDIR => Self::IsADirectory { path },
            Errno::EXIST => Self::AlreadyExists { path },
            Errno::NOTEMPTY => Self::NotEmpty { path },
            other => Self::Io {
                path,
                action,
                source: other.into(),
            },
        }
    }

    /// Names a failure of the standard library after its cause.
    pub(crate) fn of_io(error: io::Error, path: &TargetPath, action: &'static str) -> Self {
        match Errno::from_io_error(&error) {
            Some(errno) => Self::of(errno, path, action),
            None => Self::Io {
                path: path.to_string(),
                action,
                source: error,
            },
        }
    }
}

impl From<ContentsError> for FileError {
    fn from(cause: ContentsError) -> Self {
        Self::Contents(cause)
    }
}

/// Adds path and action to a failed call.
pub(crate) trait Naming<T> {
    /// Names the failure.
    fn naming(self, path: &TargetPath, action: &'static str) -> Result<T, FileError>;
}

impl<T> Naming<T> for Result<T, Errno> {
    fn naming(self, path: &TargetPath, action: &'static str) -> Result<T, FileError> {
        self.map_err(|errno| FileError::of(errno, path, action))
    }
}

impl<T> Naming<T> for io::Result<T> {
    fn naming(self, path: &TargetPath, action: &'static str) -> Result<T, FileError> {
        self.map_err(|error| FileError::of_io(error, path, action))
    }
}
