//! Reports of what can be wrong with the directories of a checkpoint. Nothing was changed.

use super::{Call, Report, Typed};
use crate::WorkspaceError;

pub(super) fn report(error: WorkspaceError) -> Report {
    match error {
        WorkspaceError::LetGo { name } => {
            let operations = Typed::default().and(&["--to", name.as_str(), "--operations"]);
            Report::refused(format!(
                "the checkpoint `{name}` keeps no files"
            ))
            .because(
                "it never did, or a collection or somebody let them go, or a later checkpoint took its name over",
            )
            .next_call(
                "take back what Backout recorded since then with {}",
                [Call::of("rollback").typed(operations)],
            )
        }
        WorkspaceError::Others { name, operations } => {
            let all: Vec<String> = operations.iter().map(|id| id.short()).collect();
            let others = Typed::default().and(&["--to", name.as_str(), "--others"]);
            Report::refused("nothing was brought back")
                .because(format!(
                    "other agents wrote there since the checkpoint: {}",
                    all.join(", ")
                ))
                .next_call(
                    "take their work back as well with {}",
                    [Call::of("rollback").typed(others)],
                )
                .next("or leave it out with `--exclude`")
        }
        WorkspaceError::Unreadable { why } => {
            Report::broken("what is known of the files of checkpoints cannot be read").because(why)
        }
        WorkspaceError::Held { name, path } => {
            let all = Typed::default().and(&["--to", name.as_str()]);
            Report::refused("nothing was brought back")
                .because(format!(
                    "`{path}` is a directory now, and holds what you left out"
                ))
                .next("leave that name out as well")
                .next_call(
                    "or bring all of it back with {}",
                    [Call::of("rollback").typed(all)],
                )
        }
        WorkspaceError::Nothing { name } => Report::refused("nothing was brought back").because(
            format!("nothing of what was chosen has changed since the checkpoint `{name}`"),
        ),
    }
}
