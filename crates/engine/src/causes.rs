//! An error with all that caused it, in one line.

use backout_model::{OutcomeKind, Target, TargetOutcome};

/// What is said of the targets when a driver could not even look.
pub(crate) fn failed_everywhere(
    targets: &[Target],
    error: &dyn std::error::Error,
) -> Vec<TargetOutcome> {
    let why = with_causes(error);
    let failed = |target: &Target| {
        TargetOutcome::new(target.clone(), OutcomeKind::Failed { why: why.clone() })
    };
    targets.iter().map(failed).collect()
}

/// Says an error with everything that caused it.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.ends_with(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        cause = inner.source();
    }
    text
}
