//! The gate for what is written: syntax, secrets, permissions, checks of the user's own, the size of a change, its risk.
//!
//! - Every `backout.toml` above a name speaks for itself, and so does the user's own: each can only add.
//! - What cannot be looked at is a finding, never a pass.
//! - Where there is no `backout.toml` nothing is read and nothing is run.

mod builtin;
mod check;
mod file;
mod linked;
mod texts;
mod whole;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use backout_checks::Finding;
use backout_model::ports::{Gate, Reason, Ruling, StagedChange, TextPlace};
use backout_model::{AgentId, Target, TargetPath};

use crate::paths::Paths;
use crate::rules::Rules;
use crate::rules::kinds::Outcome;
use file::{Looked, Seen};
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

impl Content {
    /// Lists the rules that count for any of the names of a file, each once.
    fn rules_of(&self, file: &Looked<'_>) -> Vec<Arc<Rules>> {
        let mut all: Vec<Arc<Rules>> = self.paths.rules_for(file.path.as_path());
        for rules in file
            .also
            .iter()
            .flat_map(|it| self.paths.rules_for(it.as_path()))
        {
            if !all.iter().any(|known| known.file == rules.file) {
                all.push(rules);
            }
        }
        all
    }

    /// Tells whether no rules count for anything that a change touches.
    fn is_free(&self, change: &StagedChange<'_>) -> bool {
        let is_free = |path: &TargetPath| self.paths.rules_for(path.as_path()).is_empty();
        let staged = change.staged;
        change.targets.iter().filter_map(Target::file).all(is_free)
            && staged.moved().iter().all(|(_, to)| is_free(to))
            && staged.through().iter().all(|(name, _)| is_free(name))
            && !(change.has_happened && self.paths.has_rules_here())
    }

    /// Looks at all that has to be looked at of a change, with the other names of what a command wrote in place.
    fn seen<'c>(&self, change: &StagedChange<'c>) -> (Seen<'c>, Ruling) {
        let mut seen = file::looked_at(change);
        let mut ruling = Ruling::Allow;
        for file in &seen.files {
            let Some(real) = &file.leads_to else {
                continue;
            };
            let rules = self.paths.rules_for(file.path.as_path());
            if !rules.iter().any(|rules| wants_below(rules, file)) {
                continue;
            }
            match file::below(real.as_path(), file.path.as_path()) {
                Some(led) => seen.led.extend(led),
                None => seen.too_large.push(file.path.clone()),
            }
        }
        if change.has_happened {
            ruling = ruling.and(linked::find_other_names(&self.paths, &mut seen.files));
        }
        (seen, ruling)
    }
}

/// Tells whether rules have something to say of what can be had by the name of a link to a directory: a check names it, or it
/// stands where something was.
fn wants_below(rules: &Rules, link: &Looked<'_>) -> bool {
    let path = link.path.as_path();
    let is_named = rules.checks.iter().any(|check| {
        let paths = check.scope.paths.as_ref();
        paths.is_some_and(|paths| paths.matched(path).is_some() || paths.may_match_below(path))
    });
    is_named || (link.before.is_some() && (rules.syntax.is_some() || !rules.checks.is_empty()))
}

/// Has somebody decide about what is too large to be looked through.
fn too_large(rules: &Rules, place: &TargetPath) -> Ruling {
    let found = format!("`{place}` holds more names than can be looked at one by one");
    let reason = Reason::new(rule_in(rules, "checks"), found)
        .about(Target::tree(place.clone()))
        .mended_by("do it in smaller steps, or ask a person to approve it");
    ruled(rules, Outcome::Ask, vec![reason])
}

impl Gate for Content {
    fn look(&self, change: &StagedChange<'_>) -> Ruling {
        if self.is_free(change) {
            return Ruling::Allow;
        }
        let (seen, mut ruling) = self.seen(change);
        let mut books: BTreeMap<PathBuf, Arc<Rules>> = BTreeMap::new();
        for file in seen.files.iter().chain(&seen.led) {
            for rules in self.rules_of(file) {
                ruling = ruling.and(builtin::look(&rules, file));
                books.insert(rules.file.clone(), rules);
            }
        }
        for place in &seen.too_large {
            for rules in self.paths.rules_for(place.as_path()) {
                ruling = ruling.and(too_large(&rules, place));
            }
        }
        for path in change.targets.iter().filter_map(Target::file) {
            for rules in self.paths.rules_for(path.as_path()) {
                books.insert(rules.file.clone(), rules);
            }
        }
        for rules in books.values() {
            ruling = ruling.and(whole::look(rules, change, &seen.files));
            // A program is run for what may pass otherwise.
            if !matches!(ruling, Ruling::Deny { .. }) {
                ruling = ruling.and(self.checks(rules, change, &seen));
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
