//! Reports of drift about which nothing was done.

use super::{Call, Report, Typed};
use crate::DriftError;

pub(super) fn report(error: &DriftError) -> Report {
    let list = || Call::of("drift");
    match error {
        DriftError::Unknown { what } => Report::refused(format!("nothing was done about `{what}`"))
            .because("no open drift has that name")
            .next_call("list what has drifted with {}", [list()]),
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
                .because(why.clone())
                .next_call(
                    "accept what is there with {}",
                    [
                        Call::of("drift accept")
                            .typed(Typed::default().and(&[&target.to_string()])),
                    ],
                )
        }
        DriftError::NoMerge { target, why } => {
            Report::refused(format!("`{target}` was not merged"))
                .because(why.clone())
                .next_call(
                    "decide for one side with {} or {}",
                    [
                        Call::of("drift accept")
                            .typed(Typed::default().and(&[&target.to_string()])),
                        Call::of("drift restore")
                            .typed(Typed::default().and(&[&target.to_string()])),
                    ],
                )
        }
        DriftError::Pattern { pattern, why } => {
            Report::usage(format!("`{pattern}` cannot be ignored"))
                .because(why.clone())
                .next("give a pattern such as `target/**` or `*.log`")
        }
        DriftError::NotIgnored { pattern } => {
            Report::refused(format!("`{pattern}` is not ignored already"))
                .because("no such pattern was given")
                .next_call("list the patterns with {}", [list()])
        }
    }
}
