//! What can go wrong with a database, and what the engine has to know of it.

use backout_model::ports::{DriverError, Fault};

/// Says why something could not be done in a database.
#[derive(Debug, thiserror::Error)]
pub enum RowsError {
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
    /// Somebody has to enroll it first.
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
    /// Somebody wanted it to stop, and the server did.
    #[error("it was interrupted, and nothing of it happened")]
    Stopped,
    /// The certificates cannot be read.
    #[error("no encrypted connection can be made: {0}")]
    Tls(String),
}

impl RowsError {
    /// Gives the server's letters or number for what it said.
    pub(crate) fn code(&self) -> &str {
        match self {
            Self::Refused { code, .. } => code,
            Self::Unreachable { .. }
            | Self::NotEnrolled { .. }
            | Self::Copy { .. }
            | Self::Another { .. }
            | Self::Overtaken
            | Self::NotUndoable(_)
            | Self::NoLog { .. }
            | Self::InDoubt { .. }
            | Self::Stopped
            | Self::Tls(_) => "",
        }
    }

    /// Tells whether the connection is gone, and not only a statement.
    pub(crate) fn is_cut(&self) -> bool {
        // No code: the client itself said it. Class 57P, 1053, 1927: somebody ended the session, or the server.
        let ends = |code: &str| code.starts_with("57P") || matches!(code, "1053" | "1927");
        matches!(self, Self::Refused { code, .. } if code.is_empty() || ends(code))
    }

    /// Tells whether the server stopped because it was told to, or cannot go on because of that.
    pub(crate) fn is_interrupted(&self) -> bool {
        matches!(self.code(), "57014" | "25P02" | "1317")
    }

    /// Tells whether something that must be unique would not be.
    pub(crate) fn is_twice(&self) -> bool {
        matches!(self.code(), "23505" | "1062")
    }
}

impl Fault for RowsError {
    fn may_pass(&self) -> bool {
        // A deadlock, two that cannot be put in an order, a lock that somebody holds; the numbers are those of MySQL.
        matches!(
            self.code(),
            "40P01" | "40001" | "55P03" | "1213" | "1205" | "1020"
        )
    }

    fn is_half_done(&self) -> bool {
        matches!(self, Self::InDoubt { .. })
    }

    fn is_stop(&self) -> bool {
        matches!(self, Self::Stopped)
    }

    fn out_of_reach(&self) -> Option<&str> {
        match self {
            Self::Unreachable { why, .. } => Some(why),
            Self::Refused { .. }
            | Self::NotEnrolled { .. }
            | Self::Copy { .. }
            | Self::Another { .. }
            | Self::Overtaken
            | Self::NotUndoable(_)
            | Self::NoLog { .. }
            | Self::InDoubt { .. }
            | Self::Stopped
            | Self::Tls(_) => None,
        }
    }
}

impl From<RowsError> for DriverError {
    fn from(error: RowsError) -> Self {
        Self::new(error)
    }
}
