//! Reports of what can be wrong with sandboxes. Nothing real was changed.

use super::{Call, Next, Report, Typed};
use crate::SandboxError;

fn call(words: &[&str]) -> Call {
    Call::of("sandbox").typed(Typed::default().and(words))
}

pub(super) fn report(error: &SandboxError) -> Report {
    match error {
        SandboxError::Which { name, found } => which(name.as_deref(), found),
        SandboxError::Exists { name } => Report::refused(format!("there is a sandbox `{name}` already"))
            .next("take another name")
            .next_call("let the old one go with {}", [call(&["end", name])]),
        SandboxError::BadName { name } => {
            Report::usage(format!("`{name}` cannot be the name of a sandbox"))
                .because("a name has letters, digits, `.`, `_` and `-`, at most 64, and begins with a letter or a digit")
        }
        SandboxError::Busy { name, command } => {
            let report = Report::refused(format!("the sandbox `{name}` is in use"));
            let report = match command {
                Some(command) => report.because(format!("`{command}` runs in it")),
                None => report,
            };
            report
                .next("wait for it, or end it")
                .next_call("work beside it in a copy: {}", [call(&["fork", name, "NEW"])])
        }
        SandboxError::NoCheckpoint {
            name,
            checkpoint,
            newest,
        } => Report::refused(format!("the sandbox `{name}` has no checkpoint `{checkpoint}`"))
            .because(format!("its checkpoints are numbers from 0 to {newest}"))
            .next_call("see them with {}", [call(&["checkpoints", name])]),
        SandboxError::Lost { name } => {
            Report::refused(format!("the sandbox `{name}` cannot be used any more"))
                .because("the machine was started anew, or it was about to end; its layers are not whole")
                .next_call("let it go with {}", [call(&["end", name])])
        }
        SandboxError::Unreadable { name, why } => {
            Report::refused(format!("the sandbox `{name}` cannot be read")).because(why)
        }
        SandboxError::NotApplied {
            name,
            checkpoints,
            head,
        } => not_applied(name, checkpoints, *head),
        SandboxError::InTheWay { path } => Report::refused("nothing was exported")
            .because(format!("`{path}` is there already, and an export replaces nothing"))
            .next("take another name"),
        SandboxError::Nothing {
            name,
            is_real: true,
        } => Report::refused("there is nothing left to apply")
            .because(format!("all that the sandbox `{name}` changed is real already"))
            .next_call("let it go with {}", [call(&["end", name])]),
        SandboxError::Nothing { name, .. } => Report::refused("nothing was applied")
            .because(format!("the sandbox `{name}` changes nothing of what was chosen")),
    }
}

fn not_applied(name: &str, checkpoints: &[u64], head: u64) -> Report {
    let all: Vec<String> = checkpoints.iter().map(u64::to_string).collect();
    let noun = if all.len() == 1 {
        "checkpoint"
    } else {
        "checkpoints"
    };
    let report = Report::refused(format!("the sandbox `{name}` was not ended")).because(format!(
        "it holds changes that were not applied, and nothing would bring them back: {noun} {}",
        all.join(", ")
    ));
    let report = match all.last() {
        Some(newest) if !checkpoints.contains(&head) => report.next_call(
            "go to the newest of them with {}",
            [call(&["rollback", name, newest])],
        ),
        _ => report.next_call("make them real with {}", [call(&["apply", name])]),
    };
    report.next_call(
        "throw them away with {}",
        [call(&["end", name, "--discard"])],
    )
}

fn which(name: Option<&str>, found: &[String]) -> Report {
    let start = Next::naming("begin one with {}", [call(&["start"])]);
    let all = found.join(", ");
    match (name, found) {
        (None, []) => Report::refused("there is no sandbox").next(start),
        (Some(name), []) => Report::refused(format!("there is no sandbox `{name}`")).next(start),
        (Some(name), _) => Report::refused(format!("there is no sandbox `{name}`"))
            .because(format!("there are {all}")),
        (None, _) => Report::usage("it is not clear which sandbox is meant")
            .because(format!("there are {all}"))
            .next("put its name after the word"),
    }
}
