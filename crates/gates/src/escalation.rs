//! `[ladder]` and `[notify]`: what a `backout.toml` says about undos that fail.
//!
//! - The files that count for the targets of the undo are asked, the innermost first.
//! - A hook gets all that is known as JSON on its standard input, and the main things in `BACKOUT_*` variables.
//! - How a hook ended is only told. Whether anything came back is for the engine to look at.

use std::sync::Arc;

use backout_model::ports::Escalation;
use backout_model::{Failure, OutcomeKind, Rungs, Severity, Target};

use crate::notify;
use crate::paths::Paths;
use crate::program::{Rest, run};
use crate::rules::Rules;
use crate::rules::kinds::{Program, Rungs as Written};

/// Climbs as every `backout.toml` wants it.
#[derive(Debug)]
pub struct Hooks {
    paths: Arc<Paths>,
}

impl Hooks {
    /// Takes the gate that reads the rules.
    pub const fn new(paths: Arc<Paths>) -> Self {
        Self { paths }
    }

    /// Lists the rules that count for some targets, the innermost first.
    fn rules(&self, targets: &mut dyn Iterator<Item = &Target>) -> Vec<Arc<Rules>> {
        let mut found: Vec<Arc<Rules>> = Vec::new();
        for path in targets.filter_map(Target::file) {
            for rules in self.paths.rules_for(path.as_path()).into_iter().rev() {
                if !found.iter().any(|known| known.file == rules.file) {
                    found.push(rules);
                }
            }
        }
        found
    }

    /// Finds what the innermost file says that says it.
    fn written<T>(
        &self,
        severity: Severity,
        targets: &mut dyn Iterator<Item = &Target>,
        what: impl Fn(&Written) -> Option<T>,
    ) -> Option<T> {
        let rules = self.rules(targets);
        let mut rungs = rules
            .iter()
            .filter_map(|it| it.ladder.get(severity.as_str()));
        rungs.find_map(what)
    }

    fn hook(&self, failure: &Failure) -> Option<Program> {
        let mut targets = failure.targets.iter().map(|it| &it.target);
        let severity = failure.trigger.severity;
        self.written(severity, &mut targets, |rungs| rungs.restore.clone())
    }
}

impl Escalation for Hooks {
    fn rungs(&self, severity: Severity, targets: &[Target], usual: Rungs) -> Rungs {
        let targets = || targets.iter();
        let backoff = self.written(severity, &mut targets(), |it| it.backoff);
        let backoff_ms = backoff.map(|it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX));
        let accepts = self.written(severity, &mut targets(), |it| it.accept_partial);
        Rungs {
            retries: self
                .written(severity, &mut targets(), |it| it.retries)
                .unwrap_or(usual.retries),
            backoff_ms: backoff_ms.unwrap_or(usual.backoff_ms),
            backoff_max_ms: backoff_ms.map_or(usual.backoff_max_ms, |first| {
                usual.backoff_max_ms.max(first)
            }),
            fallback: self
                .written(severity, &mut targets(), |it| it.fallback)
                .unwrap_or(usual.fallback),
            // Who names a hook wants it to be called.
            restore: usual.restore
                || self
                    .written(severity, &mut targets(), |it| it.restore.clone())
                    .is_some(),
            accept_partial: accepts.unwrap_or(usual.accept_partial),
            ..usual
        }
    }

    fn restores(&self, failure: &Failure) -> bool {
        self.hook(failure).is_some()
    }

    fn restore(&self, failure: &Failure) -> Result<(), String> {
        let program = self.hook(failure).ok_or("there is no such hook")?;
        let told = run(
            &program,
            &variables(failure),
            &as_json(failure),
            Rest::Stays,
        )
        .told();
        told.map_or(Ok(()), Err)
    }

    fn alerts(&self, failure: &Failure) -> bool {
        let rules = self.rules(&mut failure.targets.iter().map(|it| &it.target));
        rules.iter().any(|rules| rules.notify.is_any())
    }

    fn alert(&self, failure: &Failure) -> Result<(), String> {
        let rules = self.rules(&mut failure.targets.iter().map(|it| &it.target));
        let body = as_json(failure);
        let line = format!("an undo failed: {}", failure.summary);
        let all = rules.iter().filter(|rules| rules.notify.is_any());
        let told: Vec<String> = all
            .flat_map(|rules| notify::tell_one(&rules.notify, &line, &variables(failure), &body))
            .collect();
        if told.is_empty() {
            Ok(())
        } else {
            Err(told.join("; "))
        }
    }
}

fn as_json(failure: &Failure) -> String {
    serde_json::to_string(failure).unwrap_or_default()
}

/// The main things, for hooks that read no JSON.
fn variables(failure: &Failure) -> Vec<(&'static str, String)> {
    let failed = failure.targets.iter().find_map(|it| match &it.kind {
        OutcomeKind::Failed { why } | OutcomeKind::Conflict { why } => {
            Some((it.target.to_string(), why.clone()))
        }
        OutcomeKind::Restored
        | OutcomeKind::Compensated
        | OutcomeKind::Merged
        | OutcomeKind::Overwritten { .. }
        | OutcomeKind::Incomplete { .. }
        | OutcomeKind::Overtaken { .. }
        | OutcomeKind::AlreadyGone
        | OutcomeKind::Left { .. }
        | OutcomeKind::Skipped { .. }
        | OutcomeKind::InDoubt { .. } => None,
    });
    let (target, why) = failed.unwrap_or_default();
    let tried: Vec<&str> = failure.tried.iter().map(|it| it.rung.as_str()).collect();
    vec![
        ("BACKOUT_OPERATION", failure.operation.to_string()),
        ("BACKOUT_SUMMARY", failure.summary.clone()),
        ("BACKOUT_TARGET", target),
        ("BACKOUT_WHY", why),
        ("BACKOUT_STRATEGY", failure.strategy.to_string()),
        ("BACKOUT_TRIGGER", failure.trigger.kind.to_string()),
        ("BACKOUT_SEVERITY", failure.trigger.severity.to_string()),
        ("BACKOUT_TRIED", tried.join(",")),
    ]
}

#[cfg(test)]
#[path = "escalation_tests.rs"]
mod tests;
