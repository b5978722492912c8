//! What is asked of one file without anybody's program: its syntax, secrets in it, its permissions, what it allows.

use std::sync::LazyLock;

use backout_checks::syntax::{self, Format};
use backout_checks::value::Tree;
use backout_checks::{Finding, iam, secrets};
use backout_model::Verb;
use backout_model::ports::Ruling;

use super::file::Looked;
use super::{reason_of, ruled, texts};
use crate::rules::Rules;
use crate::rules::kinds::Outcome;

/// How many findings of one kind are told of one file.
const FOUND_MAX: usize = 10;

/// Names the format of a file's new content.
pub(super) fn format_name(rules: &Rules, file: &Looked<'_>) -> Option<&'static str> {
    format_of(rules, file).map(Format::name)
}

/// Finds the format of a file's new content: as the rules say, else by its name and its beginning.
pub(super) fn format_of(rules: &Rules, file: &Looked<'_>) -> Option<Format> {
    let path = file.path.as_path();
    let by_rule = rules.syntax.iter().flat_map(|syntax| &syntax.formats);
    let mut by_rule = by_rule.filter(|(patterns, _)| patterns.matched(path).is_some());
    if let Some((_, name)) = by_rule.next() {
        return name.parse().ok();
    }
    let head = file.new_bytes()?.unwrap_or_default();
    Format::of(path, head)
}

/// Asks everything that is built in.
pub(super) fn look(rules: &Rules, file: &Looked<'_>, _verb: Verb) -> Ruling {
    let mut ruling = Ruling::Allow;
    let mut ask = |name: &str, outcome: Outcome, found: Vec<Finding>| {
        let told = found.into_iter().take(FOUND_MAX);
        let reasons = told.map(|finding| reason_of(rules, name, file, finding));
        let next = ruled(rules, outcome, reasons.collect());
        let before = std::mem::take(&mut ruling);
        ruling = before.and(next);
    };
    if let Some(syntax) = &rules.syntax
        && syntax.on_failure != Outcome::Off
        && syntax.skip.matched(file.path.as_path()).is_none()
    {
        let (outcome, found) = broken(rules, file, syntax.on_failure);
        ask("syntax", outcome, found);
    }
    if let Some(outcome) = rules.policy.secrets.filter(|it| *it != Outcome::Off) {
        ask("policy.secrets", outcome, leaked(file));
    }
    if let Some(outcome) = rules.policy.permissions.filter(|it| *it != Outcome::Off) {
        ask("policy.permissions", outcome, too_open(file));
    }
    if let Some(outcome) = rules.policy.wildcard_iam.filter(|it| *it != Outcome::Off) {
        ask("policy.wildcard-iam", outcome, too_wide(rules, file));
    }
    ruling
}

/// What is wrong with the syntax. A file that was broken before may be written, broken or not: it has to be mended somehow. An
/// empty one is not broken.
fn broken(rules: &Rules, file: &Looked<'_>, outcome: Outcome) -> (Outcome, Vec<Finding>) {
    let Some(format) = format_of(rules, file) else {
        return (outcome, Vec::new());
    };
    let found = match file.new_bytes() {
        None => Vec::new(),
        Some(Ok(bytes)) => syntax::check(format, bytes),
        Some(Err(why)) => vec![Finding::new(format!("it cannot be checked: {why}"))],
    };
    let was_broken = || {
        let old = file.old_bytes();
        old.is_some_and(|bytes| {
            !bytes.trim_ascii().is_empty() && !syntax::check(format, bytes).is_empty()
        })
    };
    if !found.is_empty() && was_broken() {
        let found = found.into_iter().map(|mut finding| {
            finding
                .found
                .push_str("; it was broken before as well, so it is written");
            finding
        });
        return (outcome.min(Outcome::Warn), found.collect());
    }
    (outcome, found)
}

/// Secrets that were not there before.
fn leaked(file: &Looked<'_>) -> Vec<Finding> {
    match file.new_bytes() {
        None => Vec::new(),
        Some(Ok(bytes)) => secrets::new_only(|| file.old_bytes().unwrap_or_default(), bytes),
        Some(Err(why)) => vec![Finding::new(format!(
            "it cannot be searched for secrets: {why}"
        ))],
    }
}

/// Access policies that allow everything.
fn too_wide(rules: &Rules, file: &Looked<'_>) -> Vec<Finding> {
    let format = match format_of(rules, file) {
        Some(format @ (Format::Json | Format::JsonWithComments | Format::Yaml)) => {
            texts::config_format(format)
        }
        _ => None,
    };
    match (format, file.new_bytes()) {
        // What cannot be read is a matter of its syntax.
        (Some(format), Some(Ok(bytes))) if iam::may_be_in(bytes) => {
            Tree::read(format, bytes).map_or_else(|_| Vec::new(), |tree| iam::check(&tree))
        }
        _ => Vec::new(),
    }
}

/// The bits that this process keeps from new files.
static UMASK: LazyLock<u32> = LazyLock::new(|| {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    let umask = line.and_then(|digits| u32::from_str_radix(digits.trim(), 8).ok());
    umask.unwrap_or(0o022)
});

/// Permissions that are new and more than the umask gives, or that lend somebody's rights.
fn too_open(file: &Looked<'_>) -> Vec<Finding> {
    const SETUID: u32 = 0o4000;
    const SETGID: u32 = 0o2000;
    let Some((after, mode)) = file.after.and_then(|facts| Some((facts, facts.mode?))) else {
        return Vec::new();
    };
    if !after.is_file && !after.is_directory {
        return Vec::new();
    }
    let before = file.before.and_then(|facts| facts.mode).unwrap_or(0);
    let new = mode & !before;
    let beyond = new & *UMASK & 0o777;
    let mut found = Vec::new();
    if beyond != 0 {
        let usual = mode & !*UMASK & 0o1777;
        let told = format!(
            "its mode {mode:04o} is more than the umask {:04o} gives",
            *UMASK
        );
        found.push(Finding::new(told).mended_by(format!("give it mode {usual:04o}")));
    }
    if new & SETUID != 0 {
        found.push(Finding::new(format!(
            "its mode {mode:04o} lends the rights of its owner to whoever runs it"
        )));
    }
    // In a directory it only says which group new files get.
    if new & SETGID != 0 && after.is_file {
        found.push(Finding::new(format!(
            "its mode {mode:04o} lends the rights of its group to whoever runs it"
        )));
    }
    found
}
