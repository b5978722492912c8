//! What a `backout.toml` says, for people: whether it can be read, and what holds for a path.

use std::path::{Path, PathBuf};

use backout_checks::syntax::Format;
use backout_model::TargetPath;
use serde::Serialize;

use crate::content::schema_at;
use crate::notify::key_in;
use crate::paths::{FILE, Paths};
use crate::rules::kinds::{Held, NamedFile, Outcome, Probe};
use crate::rules::{Mistake, Rules};

/// How many names are looked at for links that a rule does not follow.
const LINKS_NAMES_MAX: usize = 100_000;

/// A first file, to begin with.
pub const STARTER: &str = include_str!("starter.toml");

/// A file of rules, looked through.
#[derive(Debug, Clone, Serialize)]
pub struct CheckedFile {
    /// From the root.
    #[serde(serialize_with = "as_path")]
    pub file: PathBuf,
    /// Whether it is there.
    pub is_there: bool,
    /// What is wrong with it.
    pub mistakes: Vec<Mistake>,
}

/// Something that holds for a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Holds {
    /// The file of rules that says so.
    #[serde(serialize_with = "as_path")]
    pub file: PathBuf,
    /// The rule, by its name there.
    pub rule: String,
    /// In one line for people.
    pub says: String,
}

/// A path, as it is written everywhere: also if it is no UTF-8.
fn as_path<S: serde::Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    let path = TargetPath::new(path).map_err(serde::ser::Error::custom)?;
    path.serialize(serializer)
}

impl Paths {
    /// Lists the files of rules that count in a directory and are there, the user's own first.
    pub fn files_for(&self, directory: &Path) -> Vec<PathBuf> {
        let above = directory.ancestors().map(|at| at.join(FILE));
        let mut files: Vec<PathBuf> = above.chain(self.own_file()).collect();
        files.retain(|file| file.symlink_metadata().is_ok());
        files.reverse();
        files
    }

    /// Looks a file of rules through, and the files that it names.
    pub fn checked(&self, file: &Path) -> CheckedFile {
        self.looked_through(file, |rules| {
            let mut mistakes: Vec<Mistake> = rules.names.iter().filter_map(unusable).collect();
            mistakes.extend(
                rules
                    .links_not_followed(LINKS_NAMES_MAX)
                    .into_iter()
                    .map(behind),
            );
            mistakes
        })
    }

    /// Looks a file of rules through for what keeps it from being understood.
    pub fn understood(&self, file: &Path) -> CheckedFile {
        self.looked_through(file, |_| Vec::new())
    }

    fn looked_through(&self, file: &Path, more: fn(&Rules) -> Vec<Mistake>) -> CheckedFile {
        let read = self.read_anew(file);
        let is_there = read.is_some();
        let mistakes = match read {
            None => Vec::new(),
            Some(Ok(rules)) => {
                let mut mistakes = more(&rules);
                mistakes.extend(self.astray(file));
                mistakes
            }
            Some(Err(mistakes)) => mistakes,
        };
        CheckedFile {
            file: file.to_owned(),
            is_there,
            mistakes,
        }
    }

    /// Lists all that holds for a write of a path.
    pub fn holds(&self, path: &Path) -> Vec<Holds> {
        let all = self.rules_for(path).into_iter();
        all.flat_map(|rules| holding(&rules, path)).collect()
    }
}

/// Says that a link is protected and what it leads to is not.
fn behind((link, end, pattern): (PathBuf, PathBuf, &str)) -> Mistake {
    let (link, end) = (link.display(), end.display());
    let what = format!(
        "`{pattern}` protects the link `{link}`, and not `{end}`, which it leads to: links behind a `**` are not followed; name that as well"
    );
    Mistake { what, place: None }
}

/// Says why a file that rules name cannot be used.
fn unusable(named: &NamedFile) -> Option<Mistake> {
    let what = match named.holds {
        Held::Schema => schema_at(&named.path)
            .err()
            .map(|what| format!("the {what}")),
        Held::Key => key_in(&named.path).err().map(|error| {
            let path = named.path.display();
            format!("the key file `{path}` cannot be used, so nothing is sent: {error}")
        }),
    };
    let place = named.place;
    what.map(|what| Mistake { what, place })
}

/// Collects what one file says.
struct Holding<'r> {
    rules: &'r Rules,
    all: Vec<Holds>,
}

impl Holding<'_> {
    fn add(&mut self, rule: String, says: String) {
        let file = self.rules.file.clone();
        self.all.push(Holds { file, rule, says });
    }
}

fn holding(rules: &Rules, path: &Path) -> Vec<Holds> {
    let mut holding = Holding {
        rules,
        all: Vec::new(),
    };
    by_path(&mut holding, path);
    by_policy(&mut holding);
    by_tables(&mut holding, path);
    holding.all
}

fn by_path(holding: &mut Holding<'_>, path: &Path) {
    let rules = holding.rules;
    if let Some(pattern) = rules.denies(path) {
        let rule = format!("protect.deny `{pattern}`");
        holding.add(rule, "nobody writes it".to_owned());
    }
    if let Some(pattern) = rules.asks(path) {
        let rule = format!("protect.ask `{pattern}`");
        holding.add(rule, "somebody has to approve it".to_owned());
    }
    if let Some(syntax) = &rules.syntax
        && syntax.skip.matched(path).is_none()
    {
        let mut by_rule = syntax.formats.iter();
        let by_rule = by_rule.find(|(patterns, _)| patterns.matched(path).is_some());
        let by_name = Format::of(path, &[]).map(Format::name);
        if let Some(name) = by_rule.map(|(_, name)| name.as_str()).or(by_name) {
            let says = format!("it is parsed as {name}{}", said(syntax.on_failure));
            holding.add("syntax".to_owned(), says);
        }
    }
}

fn by_policy(holding: &mut Holding<'_>) {
    let policy = &holding.rules.policy;
    for (name, outcome, what) in [
        ("secrets", policy.secrets, "it is searched for secrets"),
        ("permissions", policy.permissions, "its mode is looked at"),
        (
            "wildcard-iam",
            policy.wildcard_iam,
            "what it allows is looked at",
        ),
    ] {
        if let Some(outcome) = outcome.filter(|outcome| *outcome != Outcome::Off) {
            holding.add(format!("policy.{name}"), format!("{what}{}", said(outcome)));
        }
    }
    for (name, max, what) in [
        ("files-max", policy.files_max, "files"),
        ("bytes-max", policy.bytes_max, "bytes"),
        (
            "removed-percent-max",
            policy.removed_percent_max,
            "percent of the files removed",
        ),
    ] {
        if let Some(max) = max {
            let says = format!("more than {max} {what} at once have to be approved");
            holding.add(format!("policy.{name}"), says);
        }
    }
}

fn by_tables(holding: &mut Holding<'_>, path: &Path) {
    let rules = holding.rules;
    for check in rules.checks.iter().filter(|it| it.scope.fits_path(path)) {
        let says = format!("it is checked{}", said(check.on_failure));
        holding.add(format!("check `{}`", check.name), says);
    }
    for rule in &rules.conditions {
        let says = format!("if {}, {}", rule.test.told(), then(rule.then));
        holding.add(format!("rule `{}`", rule.name), says);
    }
    for watch in rules.watches.iter().filter(|it| it.scope.fits_path(path)) {
        let how = match &watch.probe {
            Probe::Reload => "its reload has to work".to_owned(),
            Probe::Command(program) => format!("`{}` has to pass", program.line()),
            Probe::Http { url, .. } => {
                format!("http://{}{} has to answer", url.authority, url.path)
            }
        };
        let says = format!("after a write {how}, or it is taken back");
        holding.add(format!("watch `{}`", watch.name), says);
    }
    if let Some(risk) = &rules.risk {
        let is_high = risk.high_paths.matched(path).is_some();
        let is_medium = risk.medium_paths.matched(path).is_some();
        let level = match (is_high, is_medium) {
            (true, _) => "high risk",
            (false, true) => "medium risk",
            (false, false) => "low risk if it is small and alone",
        };
        holding.add("risk".to_owned(), format!("a write of it is of {level}"));
    }
}

const fn then(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Off => "nothing follows",
        Outcome::Warn => "it is told",
        Outcome::Ask => "somebody has to approve it",
        Outcome::Deny => "it is refused",
    }
}

const fn said(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Off => "",
        Outcome::Warn => "; what is found is told",
        Outcome::Ask => "; if something is found, somebody has to approve it",
        Outcome::Deny => "; if something is found, it is refused",
    }
}
