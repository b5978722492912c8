//! What the tables of a `backout.toml` say, read.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use backout_checks::Place;
use backout_checks::condition::Condition;
use backout_checks::values::ValueRule;
use backout_model::Verb;

use crate::http::Url;
use crate::patterns::Patterns;

/// What follows from a finding, from nothing to a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// Nothing.
    Off,
    /// It is told.
    Warn,
    /// Somebody decides.
    Ask,
    /// The write is refused.
    Deny,
}

impl Outcome {
    /// Reads one of the words that the file was checked for.
    pub(crate) fn of(word: &str) -> Self {
        match word {
            "off" | "allow" => Self::Off,
            "warn" => Self::Warn,
            "ask" => Self::Ask,
            _ => Self::Deny,
        }
    }
}

/// Which writes something is for.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    /// Which paths; none for all that the file counts for.
    pub(crate) paths: Option<Patterns>,
    /// Which formats; none for all.
    pub(crate) formats: Vec<String>,
    /// Which operations; none for all.
    pub(crate) operations: Vec<String>,
}

impl Scope {
    /// Tells whether a write of a path by an operation is meant.
    pub(crate) fn fits(&self, path: &Path, verb: Verb) -> bool {
        self.fits_path(path) && self.fits_verb(verb)
    }

    /// Tells whether a path is meant.
    pub(crate) fn fits_path(&self, path: &Path) -> bool {
        let paths = self.paths.as_ref();
        paths.is_none_or(|paths| paths.matched(path).is_some())
    }

    /// Tells whether an operation is meant.
    pub(crate) fn fits_verb(&self, verb: Verb) -> bool {
        let mut names = self.operations.iter();
        self.operations.is_empty() || names.any(|name| name == verb.as_str())
    }

    /// Tells whether a format is meant.
    pub(crate) fn fits_format(&self, format: Option<&str>) -> bool {
        let mut names = self.formats.iter();
        self.formats.is_empty() || names.any(|name| Some(name.as_str()) == format)
    }
}

/// A program with its limits.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    /// The program and its arguments.
    pub(crate) words: Vec<OsString>,
    /// Where it runs.
    pub(crate) directory: PathBuf,
    /// How long it may take.
    pub(crate) time_max: Duration,
    /// How many bytes of its words are kept.
    pub(crate) output_max: usize,
}

impl Program {
    /// Its words, for people.
    pub(crate) fn line(&self) -> String {
        let words: Vec<_> = self.words.iter().map(|it| it.to_string_lossy()).collect();
        words.join(" ")
    }
}

/// A file that a file of rules names. It is read when it is needed, and may come and go until then.
#[derive(Debug)]
pub(crate) struct NamedFile {
    pub(crate) path: PathBuf,
    pub(crate) holds: Held,
    /// Where it is named.
    pub(crate) place: Option<Place>,
}

/// What such a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    /// A JSON Schema.
    Schema,
    /// A key that signs.
    Key,
}

#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) name: String,
    pub(crate) scope: Scope,
    /// A file with a JSON Schema.
    pub(crate) schema: Option<PathBuf>,
    pub(crate) values: Vec<ValueRule>,
    pub(crate) structure: bool,
    pub(crate) command: Option<Program>,
    pub(crate) on_failure: Outcome,
}

#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) name: String,
    pub(crate) test: Test,
    pub(crate) then: Outcome,
    pub(crate) because: Option<String>,
    pub(crate) remedy: Option<String>,
}

/// What a rule asks.
#[derive(Debug)]
pub(crate) enum Test {
    /// A condition in CEL.
    When(Condition),
    /// A policy in Rego, with the file that it is in.
    #[cfg(feature = "rego")]
    Rego(PathBuf, backout_checks::rego::Rego),
}

impl Test {
    /// Says what is asked, for people.
    pub(crate) fn told(&self) -> String {
        match self {
            Self::When(condition) => condition.text().to_owned(),
            #[cfg(feature = "rego")]
            Self::Rego(file, _) => format!("`deny` in {} says so", file.display()),
        }
    }
}

/// How a watch finds out whether all is well.
#[derive(Debug)]
pub(crate) enum Probe {
    /// Reloading without an error is enough.
    Reload,
    /// By the exit code of a program.
    Command(Program),
    /// By the answer to a request.
    Http {
        url: Url,
        status: u16,
        contains: Option<String>,
    },
}

#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) name: String,
    pub(crate) scope: Scope,
    pub(crate) reload: Option<Program>,
    pub(crate) probe: Probe,
    pub(crate) tries: u32,
    pub(crate) pause: Duration,
    /// How long it is looked at after it was well once.
    pub(crate) window: Duration,
    pub(crate) time_max: Duration,
}

#[derive(Debug)]
pub(crate) struct Syntax {
    pub(crate) skip: Patterns,
    /// Formats by pattern, in the order of the file.
    pub(crate) formats: Vec<(Patterns, String)>,
    pub(crate) on_failure: Outcome,
}

#[derive(Debug, Default)]
pub(crate) struct Policy {
    pub(crate) secrets: Option<Outcome>,
    pub(crate) permissions: Option<Outcome>,
    pub(crate) wildcard_iam: Option<Outcome>,
    pub(crate) files_max: Option<u64>,
    pub(crate) bytes_max: Option<u64>,
    pub(crate) removed_percent_max: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct Risk {
    pub(crate) low_bytes_max: u64,
    pub(crate) medium_paths: Patterns,
    pub(crate) high_paths: Patterns,
    pub(crate) high_operations: Vec<String>,
    pub(crate) medium: Outcome,
    pub(crate) high: Outcome,
    /// How long medium risk waits; none for ever.
    pub(crate) medium_waits: Option<Duration>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Notify {
    pub(crate) command: Option<Program>,
    pub(crate) webhook: Option<Url>,
    pub(crate) secret_file: Option<PathBuf>,
    pub(crate) desktop: bool,
    /// How long each of them may take.
    pub(crate) time_max: Duration,
}

impl Notify {
    /// Tells whether anybody is named.
    pub(crate) const fn is_any(&self) -> bool {
        self.command.is_some() || self.webhook.is_some() || self.desktop
    }

    /// Gives one for each way in which people are told.
    pub(crate) fn each(&self) -> Vec<Self> {
        let none = Self {
            command: None,
            webhook: None,
            desktop: false,
            ..self.clone()
        };
        let command = self.command.is_some().then(|| Self {
            command: self.command.clone(),
            ..none.clone()
        });
        let webhook = self.webhook.is_some().then(|| Self {
            webhook: self.webhook.clone(),
            ..none.clone()
        });
        let desktop = self.desktop.then_some(Self {
            desktop: true,
            ..none
        });
        [command, webhook, desktop].into_iter().flatten().collect()
    }
}

/// `[ladder.SEVERITY]`, as it is written; the engine knows what it means.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rungs {
    pub(crate) retries: Option<u32>,
    pub(crate) backoff: Option<Duration>,
    pub(crate) fallback: Option<bool>,
    pub(crate) restore: Option<Program>,
    pub(crate) accept_partial: Option<bool>,
}
