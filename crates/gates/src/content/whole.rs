//! What is asked of a change as a whole: how much it touches, what conditions say of it, how risky it is.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use backout_checks::Finding;
use backout_checks::condition::OperationFacts;
use backout_model::ports::{Reason, Ruling, StagedChange};
use backout_model::{Strategy, Verb};

use super::file::Looked;
use super::{rule_in, ruled, waits_ms};
use crate::patterns::Patterns;
use crate::rules::Rules;
use crate::rules::kinds::{Outcome, Risk, Rule, Test};

/// Removing fewer files is no removal of a tree, however few there are.
const REMOVED_MIN: u64 = 10;

/// More names are not counted.
const COUNTED_MAX: u64 = 200_000;

/// How much a change touches below the directory of a file of rules.
#[derive(Debug, Default, Clone, Copy)]
struct Extent {
    files: u64,
    bytes: u64,
    removed: u64,
    /// How many bytes shorter the files become that stay.
    shrunk: u64,
}

impl Extent {
    /// How many bytes are written or taken away, also by a truncation.
    const fn moved_bytes(self) -> u64 {
        self.bytes.saturating_add(self.shrunk)
    }
}

/// Asks everything that is about a whole change.
pub(super) fn look(rules: &Rules, change: &StagedChange<'_>, files: &[Looked<'_>]) -> Ruling {
    let extent = extent(change, files);
    let ruling = too_much(rules, change, extent).and(by_conditions(rules, change, files, extent));
    match &rules.risk {
        Some(risk) => ruling.and(risky(rules, risk, change, files, extent)),
        None => ruling,
    }
}

/// Counts what a change touches.
fn extent(change: &StagedChange<'_>, files: &[Looked<'_>]) -> Extent {
    let mut extent = Extent::default();
    for file in files {
        let is_removed = file.after.is_none();
        // What moves is not removed, and counts at its new name.
        let is_moved = is_removed
            && change
                .staged
                .moved()
                .iter()
                .any(|(from, _)| *from == file.path);
        if is_moved {
            continue;
        }
        let is_tree = file.before.is_some_and(|facts| facts.is_directory);
        if is_tree && file.is_tree_that_goes() {
            let (count, bytes) = count(file.path.as_path());
            extent.files += count;
            extent.removed += count;
            extent.bytes += bytes;
            continue;
        }
        // A directory is no file, and what is in it is counted by itself.
        if file.after.is_some_and(|facts| facts.is_directory) {
            continue;
        }
        extent.files += 1;
        extent.removed += u64::from(is_removed);
        if let (Some(before), Some(after)) = (file.before, file.after) {
            extent.shrunk += before.size.saturating_sub(after.size);
        }
        extent.bytes += file.weight();
    }
    extent
}

/// Counts the files below a directory, and their bytes.
fn count(directory: &Path) -> (u64, u64) {
    let (mut files, mut bytes) = (0, 0);
    let mut waiting = vec![directory.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            if files >= COUNTED_MAX {
                return (files, bytes);
            }
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => waiting.push(entry.path()),
                _ => {
                    files += 1;
                    bytes += entry.metadata().map_or(0, |found| found.len());
                }
            }
        }
    }
    (files, bytes)
}

/// The blast radius.
fn too_much(rules: &Rules, change: &StagedChange<'_>, extent: Extent) -> Ruling {
    let policy = &rules.policy;
    let mut reasons = Vec::new();
    let mut over = |name: &str, found: String, remedy: &str| {
        reasons.push(Reason::new(rule_in(rules, name), found).mended_by(remedy));
    };
    let Extent { files, removed, .. } = extent;
    let bytes = extent.moved_bytes();
    if let Some(max) = policy.files_max.filter(|max| files > *max) {
        over(
            "policy.files-max",
            format!("it changes {files} files, and more than {max} have to be approved"),
            "do it in smaller steps, or ask a person to approve it",
        );
    }
    if let Some(max) = policy.bytes_max.filter(|max| bytes > *max) {
        over(
            "policy.bytes-max",
            format!("it writes or removes {bytes} bytes, and more than {max} have to be approved"),
            "do it in smaller steps, or ask a person to approve it",
        );
    }
    if let Some(max) = policy
        .removed_percent_max
        .filter(|_| removed >= REMOVED_MIN)
    {
        let directory = rules.file.parent().unwrap_or(Path::new("/"));
        let (there, _) = count(directory);
        // What a command removed is gone already.
        let all = if change.has_happened {
            there + removed
        } else {
            there
        };
        let percent = (removed * 100).checked_div(all).unwrap_or(100).min(100);
        if percent > max {
            let place = directory.display();
            over(
                "policy.removed-percent-max",
                format!(
                    "it removes {percent} % of the files in `{place}`, and more than {max} % has to be approved"
                ),
                "remove less at once, or ask a person to approve it",
            );
        }
    }
    ruled(rules, Outcome::Ask, reasons)
}

/// What the conditions of the user's own say.
fn by_conditions(
    rules: &Rules,
    change: &StagedChange<'_>,
    files: &[Looked<'_>],
    extent: Extent,
) -> Ruling {
    if rules.conditions.is_empty() {
        return Ruling::Allow;
    }
    let facts = facts(change, files, extent).to_json();
    rules.conditions.iter().fold(Ruling::Allow, |ruling, rule| {
        let (outcome, found) = match asked(rule, &facts) {
            Ok(found) => (rule.then, found),
            // What nobody can tell is no pass.
            Err(finding) => {
                let found = format!("it cannot be told whether it holds: {}", finding.found);
                (rule.then.max(Outcome::Ask), vec![found])
            }
        };
        let name = rule_in(rules, &format!("rule `{}`", rule.name));
        let reasons = found.into_iter().map(|found| {
            let mut reason = Reason::new(&name, found);
            reason.remedy.clone_from(&rule.remedy);
            reason
        });
        ruling.and(ruled(rules, outcome, reasons.collect()))
    })
}

/// Asks one rule. Gives what it says against the change; nothing if it does not hold.
fn asked(rule: &Rule, facts: &serde_json::Value) -> Result<Vec<String>, Finding> {
    match &rule.test {
        Test::When(condition) => {
            let usual = || format!("its condition holds: {}", condition.text());
            let found = rule.because.clone().unwrap_or_else(usual);
            Ok(condition
                .holds(facts)?
                .then_some(found)
                .into_iter()
                .collect())
        }
        #[cfg(feature = "rego")]
        Test::Rego(_, policy) => policy.deny(facts),
    }
}

/// What conditions can ask about.
fn facts(change: &StagedChange<'_>, files: &[Looked<'_>], extent: Extent) -> OperationFacts {
    let kind = match change.verb {
        Verb::Run => "run",
        Verb::Move => "move",
        Verb::Chmod | Verb::Chown => "attributes",
        Verb::Write
        | Verb::Edit
        | Verb::Append
        | Verb::Remove
        | Verb::Copy
        | Verb::Mkdir
        | Verb::Link
        | Verb::Restore
        | Verb::Batch
        | Verb::Undo
        | Verb::Redo
        | Verb::Recover => by_effect(files),
    };
    let text = |name: Option<String>| name.unwrap_or_default();
    OperationFacts {
        kind: kind.to_owned(),
        verb: change.verb.to_string(),
        summary: change.summary.to_owned(),
        agent: text(change.agent.map(ToString::to_string)),
        task: text(change.task.map(ToString::to_string)),
        files: extent.files,
        bytes: extent.bytes,
        removed: extent.removed,
        shrunk: extent.shrunk,
        paths: files.iter().map(|file| file.path.to_string()).collect(),
        targets: change.targets.iter().map(ToString::to_string).collect(),
    }
}

/// Names the kind of a change by what becomes of its files.
fn by_effect(files: &[Looked<'_>]) -> &'static str {
    let all = |is: fn(&Looked<'_>) -> bool| !files.is_empty() && files.iter().all(is);
    if all(|file| file.after.is_none()) {
        "remove"
    } else if all(|file| file.before.is_none()) {
        "create"
    } else {
        "write"
    }
}

/// How risky a change is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Low,
    Medium,
    High,
}

/// Lets low risk pass, and what follows from more.
fn risky(
    rules: &Rules,
    risk: &Risk,
    change: &StagedChange<'_>,
    files: &[Looked<'_>],
    extent: Extent,
) -> Ruling {
    let (level, why) = level(risk, change, files, extent);
    let (outcome, waits): (Outcome, Option<Duration>) = match level {
        Level::Low => return Ruling::Allow,
        Level::Medium => (risk.medium, risk.medium_waits),
        // For ever: nobody's silence lets it pass or ends it.
        Level::High => (risk.high, None),
    };
    let word = if level == Level::High {
        "high"
    } else {
        "medium"
    };
    let reason = Reason::new(
        rule_in(rules, "risk"),
        format!("it is of {word} risk: {why}"),
    )
    .mended_by(if change.verb == Verb::Run {
        "run it with `try`: what that did can wait for a person"
    } else {
        "ask a person to approve it"
    });
    match outcome {
        // A command has written already, and most write more than one file: it is told, and stays.
        Outcome::Ask if change.has_happened && level == Level::Medium => Ruling::Warn {
            reasons: vec![reason],
        },
        Outcome::Off => Ruling::Allow,
        Outcome::Ask => Ruling::Ask {
            reasons: vec![reason],
            waits_ms_max: waits_ms(waits),
        },
        Outcome::Warn | Outcome::Deny => Ruling::Deny {
            reasons: vec![reason],
        },
    }
}

/// Tells the risk of a change, with the reason.
fn level(
    risk: &Risk,
    change: &StagedChange<'_>,
    files: &[Looked<'_>],
    extent: Extent,
) -> (Level, String) {
    let verb = change.verb.as_str();
    let written = |patterns: &Patterns| {
        let each = files
            .iter()
            .map(|file| (file.path.as_path(), file.is_tree_that_goes()));
        each.into_iter()
            .find_map(|(path, is_tree)| written_path(patterns, path, path, is_tree))
    };
    if let Some(path) = written(&risk.high_paths) {
        return (
            Level::High,
            format!("`{}` is among the high-paths", path.display()),
        );
    }
    if risk.high_operations.iter().any(|name| name == verb) {
        return (
            Level::High,
            format!("`{verb}` is among the high-operations"),
        );
    }
    match change.decision.strategy {
        Strategy::Snapshot | Strategy::Transaction => {}
        other @ (Strategy::Compensation | Strategy::Irreversible) => {
            return (Level::High, format!("the way back is {other}"));
        }
    }
    if let Some(path) = written(&risk.medium_paths) {
        return (
            Level::Medium,
            format!("`{}` is among the medium-paths", path.display()),
        );
    }
    if extent.files > 1 {
        return (Level::Medium, format!("it changes {} files", extent.files));
    }
    let max = risk.low_bytes_max;
    let bytes = extent.moved_bytes();
    if bytes > max {
        return (
            Level::Medium,
            format!("it is about {bytes} bytes, more than {max}"),
        );
    }
    (Level::Low, String::new())
}

/// Finds what patterns match of a path, and of all below it if that is written as one, as if it were at `place`.
fn written_path(patterns: &Patterns, path: &Path, place: &Path, is_tree: bool) -> Option<PathBuf> {
    if patterns.matched(place).is_some() {
        return Some(place.to_owned());
    }
    let mut waiting = vec![(path.to_owned(), place.to_owned())];
    let mut left = COUNTED_MAX;
    while let Some((directory, place)) = waiting.pop().filter(|_| is_tree && !patterns.is_empty()) {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let place = place.join(entry.file_name());
            left = left.saturating_sub(1);
            // More are not looked through: somebody has to.
            if left == 0 || patterns.matched(&place).is_some() {
                return Some(place);
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                waiting.push((entry.path(), place));
            }
        }
    }
    None
}

/// Says why a command may not write a path, if consent is needed for it: a call cannot wait. What it moves is looked through.
pub(super) fn forbids(rules: &Rules, path: &Path, to: Option<&Path>) -> Option<Reason> {
    let risk = rules.risk.as_ref()?;
    let is_tree = to.is_some();
    let places = [Some(path), to];
    let mut places = places.into_iter().flatten();
    let levels = [
        (&risk.high_paths, risk.high),
        (&risk.medium_paths, risk.medium),
    ];
    let (place, pattern) = places.find_map(|place| {
        let mut levels = levels
            .iter()
            .filter(|(_, outcome)| *outcome != Outcome::Off);
        levels.find_map(|(patterns, _)| {
            let found = written_path(patterns, path, place, is_tree)?;
            let pattern = patterns.matched(&found).unwrap_or_default().to_owned();
            Some((found, pattern))
        })
    })?;
    let name = rule_in(rules, &format!("risk `{pattern}`"));
    Some(Reason::new(
        name,
        format!("a write of `{}` has to be approved", place.display()),
    ))
}
