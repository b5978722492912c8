//! What is asked of one file without anybody's program: its syntax, secrets in it, its permissions, what it allows.

use std::path::Path;
use std::sync::LazyLock;

use backout_checks::syntax::{self, Format};
use backout_checks::value::Tree;
use backout_checks::{Finding, iam, secrets};
use backout_model::ports::Ruling;

use super::file::Looked;
use super::{reason_of, ruled, texts};
use crate::rules::Rules;
use crate::rules::kinds::{Outcome, Scope};

/// How many findings of one kind are told of one file.
const FOUND_MAX: usize = 10;

/// Tells whether a check is for a file because of one of its formats.
pub(super) fn fits_format(rules: &Rules, file: &Looked<'_>, scope: &Scope) -> bool {
    // The format need not be known if all are meant.
    scope.formats.is_empty()
        || formats_of(rules, file)
            .into_iter()
            .any(|format| scope.fits_format(Some(format.name())))
}

/// Finds the formats of a file's new content, one for each of its names that tells one: as the rules say, else by the name and
/// the beginning. Who reads it by a name takes it for what that says.
pub(super) fn formats_of(rules: &Rules, file: &Looked<'_>) -> Vec<Format> {
    let mut formats: Vec<Format> = Vec::new();
    for path in file.names() {
        let format = format_by(rules, file, path);
        formats.extend(format.filter(|it| !formats.contains(it)));
    }
    formats
}

fn format_by(rules: &Rules, file: &Looked<'_>, path: &Path) -> Option<Format> {
    let by_rule = rules.syntax.iter().flat_map(|syntax| &syntax.formats);
    let mut by_rule = by_rule.filter(|(patterns, _)| patterns.matched(path).is_some());
    if let Some((_, name)) = by_rule.next() {
        return name.parse().ok();
    }
    let head = file.new_bytes()?.unwrap_or_default();
    Format::of(path, head)
}

/// Asks everything that is built in.
pub(super) fn look(rules: &Rules, file: &Looked<'_>) -> Ruling {
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
        for format in formats_of(rules, file) {
            let (outcome, found) = broken(format, file, syntax.on_failure);
            ask("syntax", outcome, found);
        }
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
fn broken(format: Format, file: &Looked<'_>, outcome: Outcome) -> (Outcome, Vec<Finding>) {
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
    let is_read = |format: &Format| {
        matches!(
            format,
            Format::Json | Format::JsonWithComments | Format::Yaml
        )
    };
    let format = formats_of(rules, file).into_iter().find(is_read);
    let format = format.and_then(texts::config_format);
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
    // Most writes leave it as it is; then nobody has to ask for the umask.
    if new == 0 {
        return Vec::new();
    }
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
