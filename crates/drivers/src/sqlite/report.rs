//! What is told of what can be wrong with `SQLite` files. Nothing was changed.

use backout_model::report::{Call, ErrorCode, Report};

use super::error::SqliteFault;
use crate::file::report::report as report_of_file;

/// Tells an error, with the word that programs know it by.
pub(super) fn report(error: &SqliteFault) -> Report {
    told(error).code(code(error))
}

fn told(error: &SqliteFault) -> Report {
    let report = Report::refused(error.to_string());
    match error {
        SqliteFault::Missing { .. } => {
            report.next("check the name; `backout sql --create` makes a new database")
        }
        SqliteFault::NoDatabase { .. } => report.next("check the name of the file"),
        SqliteFault::Damaged { .. } => report.because_of_causes(error).next(
            "look at it with `PRAGMA integrity_check`; restore the file, if Backout wrote it",
        ),
        SqliteFault::Busy { .. } => report
            .because("it was waited for, and is still locked")
            .next("try again when the other program is done"),
        SqliteFault::ReadOnly { .. } => {
            report.next("check who may write the file and its directory")
        }
        SqliteFault::Refused { why, way, .. } => report.because(why).next(way.clone()),
        SqliteFault::TooMuch { .. } => report
            .because("what a row was has to be kept until it is in the store")
            .next("change fewer rows at a time, with a WHERE on the key"),
        SqliteFault::Statement { .. } => {
            report.because("all statements are one transaction, so none of them counts")
        }
        SqliteFault::Changed { .. } => report.next("try again"),
        SqliteFault::NotPrepared { .. } => report.next("leave out `--strategy`"),
        SqliteFault::Sqlite { .. } | SqliteFault::Key(_) => report.because_of_causes(error),
        SqliteFault::Contents(_) => {
            report.next_call("see what else is damaged with {}", [Call::of("verify")])
        }
        SqliteFault::Recipe(_) => report.next("use the newer program"),
        SqliteFault::File(error) => report_of_file(error),
    }
}

/// Gives the word for it.
const fn code(error: &SqliteFault) -> ErrorCode {
    match error {
        SqliteFault::Missing { .. } => ErrorCode::NotFound,
        SqliteFault::Busy { .. } => ErrorCode::Busy,
        SqliteFault::ReadOnly { .. } => ErrorCode::Permission,
        SqliteFault::Refused { .. }
        | SqliteFault::TooMuch { .. }
        | SqliteFault::NotPrepared { .. } => ErrorCode::CannotBeKept,
        SqliteFault::Contents(_) => ErrorCode::Damaged,
        SqliteFault::Recipe(_) => ErrorCode::NewerRecipe,
        SqliteFault::NoDatabase { .. }
        | SqliteFault::Damaged { .. }
        | SqliteFault::Statement { .. }
        | SqliteFault::Changed { .. }
        | SqliteFault::Sqlite { .. }
        | SqliteFault::Key(_)
        | SqliteFault::File(_) => ErrorCode::DriverFailed,
    }
}
