//! What can go wrong with a database, and what the engine has to know of it.

use backout_model::ports::{DriverError, Fault};

/// Says why something could not be done in a database.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    /// Nobody answers there, or not to us.
    #[error("the database at {url} cannot be reached: {why}")]
    Unreachable {
        /// Where, without a password.
        url: String,
        /// What was said.
        why: String,
    },
    /// The server said no.
    #[error("the server refused it: {why}")]
    Refused {
        /// What it said.
        why: String,
        /// Its five letters for that.
        code: String,
    },
    /// It is not enrolled.
    #[error("the database at {url} is not enrolled: enroll it with `backout db enroll {url}`")]
    NotEnrolled {
        /// Where.
        url: String,
    },
    /// It was made from a database that is enrolled.
    #[error(
        "the database at {url} is a copy of one that is enrolled as {name}: give it a name of its own with `backout db enroll {url}`"
    )]
    Copy {
        /// Where.
        url: String,
        /// The name of what it is a copy of.
        name: String,
    },
    /// Another database is there now.
    #[error("the database at {url} is another one than {name} was: it is {found}")]
    Another {
        /// Where.
        url: String,
        /// The name that was expected.
        name: String,
        /// What was found.
        found: String,
    },
    /// Somebody wrote the same rows since the log was looked at last, and must come first in the journal.
    #[error("other clients write the same rows at this moment; nothing was written")]
    Overtaken,
    /// It cannot be taken back, so it does not happen.
    #[error("{0}")]
    NotUndoable(String),
    /// What it did is not in the log any more, or never was.
    #[error(
        "the log of {name} holds nothing of transaction {xact}: it was pruned, or the database was restored"
    )]
    NoLog {
        /// The database.
        name: String,
        /// The transaction.
        xact: String,
    },
    /// The connection broke at the commit, and nobody can be asked how it ended.
    #[error("the connection broke at the commit, and it is not known whether that happened: {why}")]
    InDoubt {
        /// What was tried.
        why: String,
    },
    /// The certificates cannot be read.
    #[error("no encrypted connection can be made: {0}")]
    Tls(String),
}

impl PostgresError {
    /// Says what a server said.
    pub(super) fn of(error: &postgres::Error) -> Self {
        match error.as_db_error() {
            Some(said) => {
                let more = [said.detail(), said.hint()].into_iter().flatten();
                Self::Refused {
                    why: std::iter::once(said.message())
                        .chain(more)
                        .collect::<Vec<_>>()
                        .join("; "),
                    code: said.code().code().to_owned(),
                }
            }
            None => Self::Refused {
                why: with_cause(error),
                code: String::new(),
            },
        }
    }

    /// Gives the server's five letters.
    pub(super) fn code(&self) -> &str {
        match self {
            Self::Refused { code, .. } => code,
            _ => "",
        }
    }

    /// Tells whether the connection is gone, and not only a statement.
    pub(super) fn is_cut(&self) -> bool {
        // No code: the client itself said it. Class 57P: somebody ended the session, or the server.
        matches!(self, Self::Refused { code, .. } if code.is_empty() || code.starts_with("57P"))
    }
}

/// Says an error with what caused it.
pub(super) fn with_cause(error: &postgres::Error) -> String {
    let cause = std::error::Error::source(error);
    match cause {
        Some(cause) if !error.to_string().contains(&cause.to_string()) => {
            format!("{error}: {cause}")
        }
        _ => error.to_string(),
    }
}

impl From<postgres::Error> for PostgresError {
    fn from(error: postgres::Error) -> Self {
        Self::of(&error)
    }
}

impl Fault for PostgresError {
    fn may_pass(&self) -> bool {
        // A deadlock, two that cannot be put in an order, a lock that somebody holds.
        matches!(self.code(), "40P01" | "40001" | "55P03")
    }

    fn is_half_done(&self) -> bool {
        matches!(self, Self::InDoubt { .. })
    }

    fn out_of_reach(&self) -> Option<&str> {
        match self {
            Self::Unreachable { why, .. } => Some(why),
            _ => None,
        }
    }
}

impl From<PostgresError> for DriverError {
    fn from(error: PostgresError) -> Self {
        Self::new(error)
    }
}
