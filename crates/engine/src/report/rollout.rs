//! Reports of rollouts that could not be begun, found or taken up.

use super::{Call, Report};
use crate::RolloutError;
use crate::lifecycle::with_causes;

pub(super) fn report(error: &RolloutError) -> Report {
    let status = || Call::of("rollout status");
    match error {
        RolloutError::NoTarget => Report::usage("no rollout was begun")
            .because("no target was named")
            .next("name the files to write"),
        RolloutError::Twice { target } => Report::usage("no rollout was begun")
            .because(format!("`{target}` is named twice"))
            .next("name each target once"),
        RolloutError::BadCheck { why } => Report::refused("no rollout was begun")
            .because(format!("the check cannot be carried out: {why}"))
            .next("mend `--check` or `--check-http`"),
        RolloutError::Unknown { name: Some(name) } => {
            Report::refused(format!("there is no rollout `{name}`"))
                .next_call("list them with {}", [Call::of("rollout list")])
        }
        RolloutError::Unknown { name: None } => Report::refused("no rollout is open").next_call(
            "list those that have ended with {}",
            [Call::of("rollout list")],
        ),
        RolloutError::Which { tasks } => {
            let names: Vec<String> = tasks.iter().map(|task| format!("`{task}`")).collect();
            Report::refused("it is not clear which rollout is meant")
                .because(format!("it could be {}", names.join(" or ")))
                .next("name one")
        }
        RolloutError::Ended { task } => Report::refused(format!("the rollout `{task}` has ended"))
            .because("there is nothing to go on with")
            .next_call("see how it ended with {}", [status().task(task)])
            .next_call(
                "take back what it wrote with {}",
                [Call::of("rollback").task(task)],
            ),
        RolloutError::Broken { task, cause } => {
            Report::broken(format!("the rollout `{task}` stopped on its way"))
                .because(with_causes(cause))
                .next_call("see what it wrote with {}", [status().task(task)])
                .next_call(
                    "go on with {}, or take all of it back with {}",
                    [
                        Call::of("rollout resume").task(task),
                        Call::of("rollout abort").task(task),
                    ],
                )
        }
        RolloutError::AtWork { task, owner } => {
            Report::refused(format!("nothing was done about the rollout `{task}`"))
                .because(format!("process {} carries it out", owner.pid))
                .next_call("watch it with {}", [status().task(task)])
                .next("to stop it, interrupt that process; it can be gone on with later")
        }
    }
}
