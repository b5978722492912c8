//! The gate for what is written: syntax, secrets, permissions, checks of the user's own, the size of a change, its risk.
//!
//! - Every `backout.toml` above a name speaks for itself, and so does the user's own: each can only add.
//! - What cannot be looked at is a finding, never a pass.
//! - Where there is no `backout.toml` nothing is read and nothing is run.

mod builtin;
mod check;
mod file;
mod texts;
mod whole;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use backout_checks::Finding;
use backout_model::ports::{Gate, Reason, Ruling, StagedChange, TextPlace};
use backout_model::{AgentId, Target};

use crate::paths::Paths;
use crate::rules::Rules;
use crate::rules::kinds::Outcome;
use file::Looked;
pub(crate) use texts::schema_at;

/// Lets a change pass if what it writes is as every `backout.toml` wants it.
#[derive(Debug)]
pub struct Content {
    paths: Arc<Paths>,
    /// Where layers for checks may be made.
    layers: PathBuf,
    /// What a check must not see.
    masks: Vec<PathBuf>,
}

impl Content {
    /// Takes the gate that reads the rules, and the state directory, which no check sees.
    pub fn new(paths: Arc<Paths>, state_dir: &Path) -> Self {
        Self {
            paths,
            layers: state_dir.join("checks"),
            masks: vec![state_dir.to_owned()],
        }
    }
}

impl Gate for Content {
    fn look(&self, change: &StagedChange<'_>) -> Ruling {
        let touched = change.targets.iter().filter_map(Target::file);
        let is_free = |path: &Path| self.paths.rules_for(path).is_empty();
        if touched.clone().all(|path| is_free(path.as_path()))
            && change
                .staged
                .moved()
                .iter()
                .all(|(_, to)| is_free(to.as_path()))
        {
            return Ruling::Allow;
        }
        let files = file::looked_at(change);
        let mut books: BTreeMap<PathBuf, Arc<Rules>> = BTreeMap::new();
        let mut ruling = Ruling::Allow;
        for file in &files {
            for rules in self.paths.rules_for(file.path.as_path()) {
                ruling = ruling.and(builtin::look(&rules, file, change.verb));
                books.insert(rules.file.clone(), rules);
            }
        }
        for path in touched {
            for rules in self.paths.rules_for(path.as_path()) {
                books.insert(rules.file.clone(), rules);
            }
        }
        for rules in books.values() {
            ruling = ruling.and(whole::look(rules, change, &files));
            // A program is run for what may pass otherwise.
            if !matches!(ruling, Ruling::Deny { .. }) {
                ruling = ruling.and(self.checks(rules, change, &files));
            }
        }
        ruling
    }

    fn forbids(&self, _agent: Option<&AgentId>, path: &Path, to: Option<&Path>) -> Option<Reason> {
        let mut all: Vec<Arc<Rules>> = Vec::new();
        for name in [Some(path), to].into_iter().flatten() {
            all.extend(self.paths.rules_for(name));
        }
        all.iter().find_map(|rules| whole::forbids(rules, path, to))
    }
}

/// Names a rule as people find it.
fn rule_in(rules: &Rules, name: &str) -> String {
    format!("{name} in {}", rules.file.display())
}

/// Makes a reason of what a check found in a file.
fn reason_of(rules: &Rules, name: &str, file: &Looked<'_>, finding: Finding) -> Reason {
    let found = match &finding.key {
        Some(key) if finding.place.is_none() => {
            format!("`{}`: `{key}` {}", file.path, finding.found)
        }
        _ if finding.place.is_none() => format!("`{}`: {}", file.path, finding.found),
        _ => finding.found,
    };
    let mut reason = Reason::new(rule_in(rules, name), found).about(file.target());
    reason.place = finding.place.map(|place| TextPlace {
        line: place.line,
        column: place.column,
    });
    reason.key = finding.key;
    reason.remedy = finding.remedy;
    reason
}

/// Says what follows from some reasons.
fn ruled(rules: &Rules, outcome: Outcome, reasons: Vec<Reason>) -> Ruling {
    match outcome {
        _ if reasons.is_empty() => Ruling::Allow,
        Outcome::Off => Ruling::Allow,
        Outcome::Warn => Ruling::Warn { reasons },
        Outcome::Ask => Ruling::Ask {
            reasons,
            waits_ms_max: waits_ms(rules.expires),
        },
        Outcome::Deny => Ruling::Deny { reasons },
    }
}

/// How long something waits, in milliseconds; none for ever.
fn waits_ms(wait: Option<std::time::Duration>) -> Option<u64> {
    wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX))
}
