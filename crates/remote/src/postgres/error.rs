//! What a `PostgreSQL` says, as errors of rows.

use crate::rows::RowsError;

impl RowsError {
    /// Says what a server said.
    pub(super) fn of_postgres(error: &postgres::Error) -> Self {
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

impl From<postgres::Error> for RowsError {
    fn from(error: postgres::Error) -> Self {
        Self::of_postgres(&error)
    }
}
