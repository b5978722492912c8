//! The rules of one `backout.toml`, read and checked.
//!
//! Everything that is not understood is a mistake with its place, and all mistakes are found in one look. A file with a
//! mistake has no rules: whoever asks it refuses.

mod compensation;
pub(crate) mod kinds;
mod mistake;
mod read;
pub(crate) mod schema;
mod spec;
mod spec_calls;
mod units;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use backout_checks::Place;
use backout_model::compensation::Compensation;
use backout_model::{TriggerAction, TriggerKind};
use toml_edit::Document;

use crate::patterns::{Patterns, Roots};
use kinds::{Check, NamedFile, Notify, Policy, Risk, Rule, Rungs, Syntax, Watch};
pub use mistake::Mistake;
use mistake::Mistakes;

/// How long a proposal waits unless somebody says otherwise.
const EXPIRES: Duration = Duration::from_hours(24);

/// The rules of one file.
#[derive(Debug)]
pub(crate) struct Rules {
    /// The file that they are in.
    pub(crate) file: PathBuf,
    deny: Patterns,
    ask: Patterns,
    /// How long a proposal waits; none for ever.
    pub(crate) expires: Option<Duration>,
    pub(crate) syntax: Option<Syntax>,
    pub(crate) policy: Policy,
    pub(crate) checks: Vec<Check>,
    pub(crate) conditions: Vec<Rule>,
    pub(crate) watches: Vec<Watch>,
    pub(crate) compensations: Vec<Compensation>,
    pub(crate) risk: Option<Risk>,
    pub(crate) notify: Notify,
    /// By the name of the severity.
    pub(crate) ladder: BTreeMap<String, Rungs>,
    /// What triggers do, as far as it says.
    pub(crate) triggers: BTreeMap<TriggerKind, TriggerAction>,
    /// After how many operations another checkpoint is due, if it says so.
    pub(crate) checkpoint_every: Option<u32>,
    /// Schemas and keys that are opened when they are needed.
    pub(crate) names: Vec<NamedFile>,
}

impl Rules {
    /// Reads the rules of a file, or all that is wrong with it.
    pub(crate) fn read(file: &Path, text: &str, roots: &Roots<'_>) -> Result<Self, Vec<Mistake>> {
        let document: Document<String> = text.parse().map_err(|error: toml_edit::TomlError| {
            let place = error.span().map(|span| Place::of(text, span.start));
            let what = error.message().to_owned();
            vec![Mistake { what, place }]
        })?;
        let mut mistakes = Mistakes::new(text);
        if !mistakes.look(document.as_table()) {
            return Err(mistakes.found);
        }
        let rules = read::rules(file, document.as_table(), roots, &mut mistakes);
        if mistakes.found.is_empty() {
            Ok(rules)
        } else {
            // Of one place one mistake is enough.
            mistakes.found.sort_by_key(|mistake| mistake.place);
            mistakes
                .found
                .dedup_by(|one, other| one.place.is_some() && one.place == other.place);
            Err(mistakes.found)
        }
    }

    /// Gives the pattern by which nobody may write a path.
    pub(crate) fn denies(&self, path: &Path) -> Option<&str> {
        self.deny.matched(path)
    }

    /// Gives the pattern by which somebody must approve a write of a path.
    pub(crate) fn asks(&self, path: &Path) -> Option<&str> {
        self.ask.matched(path)
    }

    /// Lists the places at or below which all lies that is protected.
    pub(crate) fn protected_tops(&self) -> Vec<PathBuf> {
        let tops = self.deny.tops().chain(self.ask.tops());
        tops.map(Path::to_owned).collect()
    }

    /// Tells whether something below a path may be protected that the path is not.
    pub(crate) fn protects_below(&self, path: &Path) -> bool {
        self.deny.may_match_below(path) || self.ask.may_match_below(path)
    }

    /// Lists links that are protected by a pattern which does not follow them, each with what it leads to and the pattern.
    pub(crate) fn links_not_followed(&self, names_max: usize) -> Vec<(PathBuf, PathBuf, &str)> {
        let mut found = self.deny.links_behind(names_max);
        found.extend(self.ask.links_behind(names_max));
        found
    }
}

#[cfg(test)]
mod tests;
