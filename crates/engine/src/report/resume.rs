//! Reports of what can be wrong with an agent's state, and with stages. Nothing was changed.

use super::{Call, Report, Typed};
use crate::{ResumeError, StageError};

pub(super) fn resume(error: &ResumeError) -> Report {
    match error {
        ResumeError::TooLarge { bytes, max } => Report::refused("the checkpoint was not taken")
            .because(format!("the state has {bytes} bytes, and at most {max} are kept"))
            .next("write what is large to a file, with `backout write`, and keep its name in the state"),
        ResumeError::Rules(rules) => Report::refused("nobody can tell what the rules want")
            .because(rules.to_string())
            .because("nothing was changed")
            .next(format!("mend `{}`, then ask again", rules.file.display())),
        ResumeError::NoCheckpoint {
            whose,
            task,
            skipped,
        } => {
            let mut report = Report::refused(format!("{whose} has no checkpoint to go on from"));
            for why in skipped {
                report = report.because(why);
            }
            let report = report.next("begin at the first step");
            match task {
                Some(task) => report.next_call(
                    "take back what it has done with {}",
                    [Call::of("rollback").typed(Typed::default().and(&[task.as_str()]))],
                ),
                None => report,
            }
        }
        ResumeError::Alive { pid } => Report::refused("the agent is still at work")
            .because(format!("process {pid} took the checkpoint, and is alive"))
            .next("wait for it, or end that process first")
            .next("if it does not work on this any more, say `--takeover`"),
        ResumeError::Unsettled { whose, id } => Report::refused(format!("{whose} cannot go on yet"))
            .because(format!(
                "nobody can tell what became of operation {}",
                id.short()
            ))
            .next_call("see it with {}", [Call::show(*id)])
            .next_call(
                "decide about it with {}, or with `--rollback`; then ask again",
                [Call::of("recover").typed(Typed::default().and(&["--keep", &id.short()]))],
            ),
    }
}

pub(super) fn stage(error: &StageError) -> Report {
    let list = || Call::of("stage list");
    match error {
        StageError::Nobodys { name } => Report::usage(format!("the stage `{name}` was not begun"))
            .because(
                "nobody said whose work it is, and everybody's would be taken back if it failed",
            )
            .next("say `--task` or `--agent`"),
        StageError::Open { name } => {
            Report::refused(format!("the stage `{name}` has begun already"))
                .next_call("see it with {}", [list()])
        }
        StageError::NotOpen {
            name,
            standing,
            elsewhere,
        } => {
            let report = Report::refused(format!("there is no open stage `{name}`"));
            let report = match standing {
                Some(standing) => report.because(format!("it is {}", standing.as_str())),
                None => report,
            };
            let report = match elsewhere {
                Some(whose) => report.next(format!(
                    "one of that name is open: say whose it is, with `{whose}`"
                )),
                None => report,
            };
            report.next_call("see them with {}", [list()])
        }
        StageError::Inner { name, inner } => {
            Report::refused(format!("the stage `{name}` was not ended"))
                .because(format!("the stage `{inner}` began in it and is still open"))
                .next_call(
                    "end that one first with {}",
                    [Call::of("stage").typed(Typed::default().and(&["end", inner.as_str()]))],
                )
        }
    }
}
