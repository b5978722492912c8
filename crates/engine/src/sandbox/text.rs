//! What a model is told after a command in a sandbox: what happened, what was reverted, and where it stands now.

use std::fmt::Write as _;

use super::view::{SandboxRan, SandboxVerdict};
use crate::TrialWhat;

/// How many names are told.
const NAMES_MAX: usize = 20;

/// Says it.
pub(super) fn of(ran: &SandboxRan) -> String {
    let command = &ran.command;
    let mut text = match ran.verdict {
        SandboxVerdict::Succeeded => format!("`{command}` succeeded."),
        SandboxVerdict::Failed => format!("`{command}` failed with exit code {}.", ran.exit_code),
        SandboxVerdict::Killed => {
            format!(
                "`{command}` was ended by signal {}.",
                ran.signal.unwrap_or_default()
            )
        }
        SandboxVerdict::TimedOut | SandboxVerdict::Interrupted => {
            format!("`{command}` was ended: its time was up.")
        }
    };
    let count = ran.changes.len();
    let (checkpoint, directory) = (ran.checkpoint, &ran.directory);
    // Writing to a string cannot fail.
    let _written = match (ran.is_rolled_back, count) {
        (true, 0) => write!(text, " It had changed no file."),
        (true, 1) => write!(text, " The one name that it had changed was reverted:"),
        (true, _) => write!(
            text,
            " All {count} names that it had changed were reverted:"
        ),
        (false, 0) => write!(text, " It changed no file."),
        (false, 1) => write!(text, " It changed one name:"),
        (false, _) => write!(text, " It changed {count} names:"),
    };
    for change in ran.changes.iter().take(NAMES_MAX) {
        let mark = match change.what {
            TrialWhat::Created => '+',
            TrialWhat::Changed | TrialWhat::Metadata => '~',
            TrialWhat::Deleted => '-',
            TrialWhat::Moved => '>',
        };
        let _written = write!(text, "\n  {mark} {}", change.path);
    }
    if count > NAMES_MAX {
        let _written = write!(text, "\n  and {} more", count - NAMES_MAX);
    }
    let is_long = if count > 0 { "\n" } else { " " };
    let _written = if ran.is_rolled_back {
        write!(
            text,
            "{is_long}Files, working directory and variables are as before it, at checkpoint {checkpoint}. Processes that it left were ended. You are in {directory}."
        )
    } else {
        write!(
            text,
            "{is_long}This is checkpoint {checkpoint}. You are in {directory}."
        )
    };
    text
}
