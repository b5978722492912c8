//! What can go wrong with an `SQLite` file.

use std::path::Path;

use backout_changeset::ChangesetError;
use backout_changeset::rusqlite::{self, ErrorCode};
use backout_model::ports::{BadRecipe, ContentsError, DriverError, Fault};
use backout_model::report::Report;
use backout_model::{KeyError, Strategy};

use crate::file::FileError;

/// Says why nothing was changed in a database.
#[derive(Debug, thiserror::Error)]
pub enum SqliteFault {
    /// There is no such file.
    #[error("there is no database at `{path}`")]
    Missing {
        /// The file.
        path: String,
    },
    /// It is no database, or an encrypted one.
    #[error("`{path}` is not an SQLite database, or it is encrypted")]
    NoDatabase {
        /// The file.
        path: String,
    },
    /// SQLite cannot read all of it.
    #[error("the database `{path}` is damaged")]
    Damaged {
        /// The file.
        path: String,
        /// What `SQLite` says.
        #[source]
        cause: rusqlite::Error,
    },
    /// Somebody else has it locked.
    #[error("somebody else has locked the database `{path}`")]
    Busy {
        /// The file.
        path: String,
    },
    /// It may not be written.
    #[error("the database `{path}` cannot be written")]
    ReadOnly {
        /// The file.
        path: String,
    },
    /// The statements reach out of what can be taken back.
    #[error("{what}")]
    Refused {
        /// What was asked for.
        what: String,
        /// Why that cannot be done.
        why: String,
        /// What to do instead.
        way: String,
    },
    /// So much changes that it cannot be kept.
    #[error("the statements change too much at once: more than {limit_mib} MiB of rows")]
    TooMuch {
        /// The limit.
        limit_mib: u64,
    },
    /// A statement failed.
    #[error("a statement failed: {cause}")]
    Statement {
        /// What `SQLite` says.
        cause: rusqlite::Error,
    },
    /// Somebody changed the database between the look and the write.
    #[error("the database `{path}` was changed meanwhile")]
    Changed {
        /// The file.
        path: String,
    },
    /// Rows cannot be taken back by another strategy.
    #[error("rows cannot be taken back by {strategy}")]
    NotPrepared {
        /// The strategy.
        strategy: Strategy,
    },
    /// Something else went wrong.
    #[error("`{path}` could not be used")]
    Sqlite {
        /// The file.
        path: String,
        /// What `SQLite` says.
        #[source]
        cause: ChangesetError,
    },
    /// What the store keeps cannot be had.
    #[error(transparent)]
    Contents(#[from] ContentsError),
    /// The recipe cannot be read.
    #[error(transparent)]
    Recipe(#[from] BadRecipe),
    /// A name cannot be one.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The file could not be found.
    #[error(transparent)]
    File(#[from] FileError),
}

impl SqliteFault {
    /// Says what `SQLite` said about a file.
    pub(super) fn of(path: &Path, cause: impl Into<ChangesetError>) -> Self {
        let (cause, path) = (cause.into(), path.display().to_string());
        match (cause.code(), cause) {
            (Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked), _) => Self::Busy { path },
            (Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied), _) => Self::ReadOnly { path },
            (Some(ErrorCode::NotADatabase), _) => Self::NoDatabase { path },
            (Some(ErrorCode::DatabaseCorrupt), ChangesetError::Sqlite(cause)) => {
                Self::Damaged { path, cause }
            }
            (_, ChangesetError::Stopped) => Self::Changed { path },
            (_, cause) => Self::Sqlite { path, cause },
        }
    }

    pub(super) fn refused(what: impl Into<String>, why: &str, way: impl Into<String>) -> Self {
        Self::Refused {
            what: what.into(),
            why: why.to_owned(),
            way: way.into(),
        }
    }
}

impl Fault for SqliteFault {
    fn is_stop(&self) -> bool {
        matches!(self, Self::File(error) if error.is_stop())
    }

    fn may_pass(&self) -> bool {
        matches!(self, Self::Busy { .. } | Self::Changed { .. })
    }

    fn not_prepared(&self) -> Option<String> {
        matches!(self, Self::NotPrepared { .. }).then(|| self.to_string())
    }

    fn report(&self) -> Option<Report> {
        Some(super::report::report(self))
    }
}

impl From<SqliteFault> for DriverError {
    fn from(error: SqliteFault) -> Self {
        match error {
            SqliteFault::File(error) => error.into(),
            SqliteFault::Recipe(error) => Self::new(error),
            error @ (SqliteFault::Missing { .. }
            | SqliteFault::NoDatabase { .. }
            | SqliteFault::Damaged { .. }
            | SqliteFault::Busy { .. }
            | SqliteFault::ReadOnly { .. }
            | SqliteFault::Refused { .. }
            | SqliteFault::TooMuch { .. }
            | SqliteFault::Statement { .. }
            | SqliteFault::Changed { .. }
            | SqliteFault::NotPrepared { .. }
            | SqliteFault::Sqlite { .. }
            | SqliteFault::Contents(_)
            | SqliteFault::Key(_)) => Self::new(error),
        }
    }
}
