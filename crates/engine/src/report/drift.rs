//! Reports of drift about which nothing was done, or not all.

use backout_model::Key;

use super::{Call, Report, Typed, whole_file};
use crate::{DriftError, EngineError};

pub(super) fn report(error: DriftError) -> Report {
    let list = || Call::of("drift");
    match error {
        DriftError::Unknown { what } => {
            let look = look(&what);
            Report::refused(format!("nothing was done about `{what}`"))
                .because("no open drift has that name")
                .next_call("look at it with {}, and decide then", [look])
        }
        DriftError::Changed { target } => {
            Report::refused(format!("nothing was done about `{target}`"))
                .because("it changed again since that was told")
                .next_call("look at it with {}, and decide again", [list()])
        }
        DriftError::NotYours => Report::refused("nothing was done about the drift")
            .because("an agent may read drift, and a person decides about it")
            .next_call("read it with {}", [list()]),
        DriftError::NoRestore { target, why, .. } => {
            Report::refused(format!("`{target}` was not made what was recorded"))
                .because(why)
                .next_call("accept what is there with {}", [accept(&target)])
        }
        DriftError::NoFile { target, file, by } => {
            let report = Report::refused(format!("`{target}` was not made what was recorded"))
                .because("the file is gone");
            match file {
                Some(file) => report.next_call(
                    "bring the whole file back with {}",
                    [whole_file(&file, by, true)],
                ),
                None => report.next_call("accept what is there with {}", [accept(&target)]),
            }
        }
        DriftError::NoMerge {
            target,
            why,
            can_restore,
        } => no_merge(&target, why, can_restore),
        DriftError::Pattern { pattern, why } => {
            Report::usage(format!("`{pattern}` cannot be ignored"))
                .because(why)
                .next("give a pattern such as `target/**` or `*.log`")
        }
        DriftError::NotIgnored { pattern } => {
            Report::refused(format!("`{pattern}` is not ignored"))
                .because("no such pattern was given")
                .next_call("list the patterns with {}", [list()])
        }
        DriftError::NoTarget => Report::usage("nothing was done about the drift")
            .because("nothing was named")
            .next_call("list what has drifted with {}", [list()]),
        DriftError::Partly { left, .. } => partly(left),
    }
}

fn look(target: &str) -> Call {
    Call::of("drift").typed(Typed::default().and(&[target]))
}

fn accept(target: &Key) -> Call {
    Call::of("drift accept").typed(Typed::default().and(&[&target.to_string()]))
}

fn no_merge(target: &Key, why: String, can_restore: bool) -> Report {
    let report = Report::refused(format!("`{target}` was not merged")).because(why);
    if !can_restore {
        return report.next_call("accept what is there with {}", [accept(target)]);
    }
    let restore = Call::of("drift restore").typed(Typed::default().and(&[&target.to_string()]));
    report.next_call(
        "decide for one side with {} or {}",
        [accept(target), restore],
    )
}

/// Says what was not done; what was is the reply.
fn partly(left: Vec<EngineError>) -> Report {
    let mut told = Report::refused(match left.len() {
        1 => "1 drift was left as it is".to_owned(),
        count => format!("{count} drifts were left as they are"),
    });
    for report in left.into_iter().map(Report::from) {
        let why = report.why.first().map(|why| format!(": {why}"));
        told = told.because(format!("{}{}", report.what, why.unwrap_or_default()));
        for next in report.next {
            if !told.next.contains(&next) {
                told.next.push(next);
            }
        }
    }
    told
}
