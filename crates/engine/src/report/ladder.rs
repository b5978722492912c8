//! Reports of undos that failed and were not looked after as asked.

use super::{Call, Report};
use crate::LadderError;

pub(super) fn report(error: &LadderError) -> Report {
    match error {
        LadderError::NotFailed { id } => Report::refused(format!(
            "no undo of operation {} waits for a person",
            id.short()
        ))
        .because("it did not fail, or that was solved or accepted since")
        .next_call("see what does wait with {}", [Call::of("failed")]),
        LadderError::Own { id } => Report::refused(format!(
            "what is left of operation {} was not accepted",
            id.short()
        ))
        .because("whose work it is cannot accept it, nor can a command under `run`")
        .next("ask a person, or another agent, to decide"),
    }
}
