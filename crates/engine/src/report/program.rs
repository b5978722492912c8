//! Reports of programs that could not be executed, for real or in a trial. Nothing was changed.

use std::io;

use super::Report;

/// Says which program could not be started, and why.
pub(super) fn not_started(program: &str, source: &io::Error) -> Report {
    let report = Report::refused(format!("`{program}` was not run"));
    if source.kind() == io::ErrorKind::NotFound {
        report
            .because("there is no such program")
            .next("check the name and `PATH`, and the first line if it is a script")
            .next("a shell's own words need a shell: `sh -c '...'`")
    } else if source.kind() == io::ErrorKind::PermissionDenied {
        report
            .because("it is not executable, or not for you")
            .next("check that it is a program, and its permissions")
    } else {
        report.because(source).next("check the command")
    }
}
