//! The invariants of the five files, and whoever wants rules in the same words.
//!
//! Severities and the two rules that upstream has only in prose are ours (`severity.rs`, `prose.rs`). Conditions stand in `note`s upstream; they are read, and a
//! note that cannot be read makes its rule fail.

mod path;
mod prose;
mod rule;
mod severity;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use backout_model::Severity;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::data::INVARIANTS;
use crate::yaml::{self, YamlError};
use path::Path;
pub use rule::Rule;
use rule::When;

/// Which file a rule is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuleSet {
    /// Of one agent.
    Sa,
    /// Of several agents.
    Map,
    /// Of events.
    Observability,
    /// Of what tools, files, repositories and CI tell.
    Integration,
    /// Of learning samples.
    Learning,
    /// Somebody's own.
    Own,
}

macro_rules! scopes {
    ($($(#[$doc:meta])* $name:ident $word:literal,)*) => {
        /// What a rule speaks of.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Scope { $($(#[$doc])* $name,)* }

        impl Scope {
            /// Finds a scope by the word that rules use.
            pub fn named(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$name),)* _ => None }
            }

            /// Names the scope as rules do.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }
        }
    };
}

scopes! {
    /// A context.
    Context "context",
    /// A plan.
    Plan "plan",
    /// A confirmation.
    Confirm "confirm",
    /// A trace.
    Trace "trace",
    /// A role.
    Role "role",
    /// A collaboration.
    Collab "collab",
    /// A dialog.
    Dialog "dialog",
    /// An extension.
    Extension "extension",
    /// A network.
    Network "network",
    /// The protocol itself.
    Core "core",
    /// An event of the observability stream.
    Event "event",
    /// What a tool did.
    ToolEvent "tool_event",
    /// What became of a file.
    FileUpdateEvent "file_update_event",
    /// What became of a repository.
    GitEvent "git_event",
    /// What a CI run did.
    CiEvent "ci_event",
    /// What may be learned from.
    LearningSample "learning_sample",
}

/// The objects around the one that is looked at: what `eq(context.context_id)` speaks of.
pub type Surroundings<'v> = BTreeMap<Scope, &'v Value>;

/// A rule that objects of one scope must keep.
#[derive(Debug, Clone, Serialize)]
pub struct Invariant {
    /// Its name, which no other has.
    pub id: String,
    /// Where it is from.
    pub set: RuleSet,
    /// What it speaks of; none if nobody knows that scope, and then it fails.
    pub scope: Option<Scope>,
    /// Where in the object it looks; none for a rule about the whole.
    pub path: Option<String>,
    /// The rule as it was written; empty if there is only prose.
    pub rule: String,
    /// What it is for, in upstream's words.
    pub description: String,
    /// How grave a violation is.
    pub severity: Severity,
    #[serde(skip)]
    way: Path,
    #[serde(skip)]
    meaning: Rule,
    #[serde(skip)]
    when: When,
}

/// A rule that an object does not keep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// The rule.
    pub invariant: String,
    /// Where in the object.
    pub place: String,
    /// What is wrong.
    pub why: String,
    /// How grave it is.
    pub severity: Severity,
}

impl Invariant {
    /// Says how an object breaks the rule; an empty list is a pass.
    pub fn check(&self, object: &Value, around: &Surroundings<'_>) -> Vec<Violation> {
        let violation = |(place, why): (String, String)| Violation {
            invariant: self.id.clone(),
            place,
            why,
            severity: self.severity,
        };
        if self.scope.is_none() {
            let why = "nobody knows the scope of this rule".to_owned();
            return vec![violation((String::new(), why))];
        }
        let told = rule::told(&self.meaning, &self.when, &self.way, object, around);
        told.into_iter().map(violation).collect()
    }
}

/// Gives the rules of the five files, in their order.
pub fn invariants() -> &'static [Invariant] {
    static ALL: LazyLock<Vec<Invariant>> = LazyLock::new(|| {
        let sets = [
            RuleSet::Sa,
            RuleSet::Map,
            RuleSet::Observability,
            RuleSet::Integration,
            RuleSet::Learning,
        ];
        let files = sets.into_iter().zip(INVARIANTS);
        let read = files.flat_map(|(set, (_, text))| {
            read_rules(text, set, None).expect("an embedded file of rules is YAML")
        });
        read.collect()
    });
    &ALL
}

/// Reads rules in upstream's words. Where a file does not say what its rules speak of, `scope` does.
pub fn read_rules(
    text: &str,
    set: RuleSet,
    scope: Option<Scope>,
) -> Result<Vec<Invariant>, YamlError> {
    let read = yaml::read(text)?;
    let list = read.get("invariants").unwrap_or(&read);
    let mut rules: Vec<Written> = Vec::new();
    for rule in list.as_array().into_iter().flatten() {
        rules.push(Written::of(rule));
    }
    // In one file the note of the last rule is not indented far enough, and is a key of the whole file.
    if let (Some(note), Some(last)) = (read.get("note"), rules.last_mut()) {
        last.note = note.as_str().map(str::to_owned).or(last.note.take());
    }
    Ok(rules
        .into_iter()
        .map(|rule| rule.understood(set, scope))
        .collect())
}

/// A rule as it stands in a file.
struct Written {
    id: String,
    scope: Option<String>,
    path: Option<String>,
    rule: Option<String>,
    description: String,
    note: Option<String>,
}

impl Written {
    fn of(rule: &Value) -> Self {
        let text = |key: &str| rule.get(key).and_then(Value::as_str).map(str::to_owned);
        Self {
            id: text("id").unwrap_or_default(),
            scope: text("scope"),
            path: text("path"),
            rule: text("rule"),
            description: text("description").unwrap_or_default(),
            note: text("note"),
        }
    }

    fn understood(self, set: RuleSet, scope: Option<Scope>) -> Invariant {
        let way = Path::read(self.path.as_deref().unwrap_or_default());
        let (meaning, when) = match (&self.rule, prose::of(&self.id)) {
            (None, Some(prose)) => (Rule::Prose(prose), When::default()),
            (None, None) => (
                Rule::unknown("it has no rule that can be carried out"),
                When::default(),
            ),
            (Some(rule), _) => {
                let meaning = Rule::read(rule, self.path.is_some());
                match When::read(self.note.as_deref(), self.path.as_deref()) {
                    Some(when) => (meaning, when),
                    None => (
                        Rule::unknown("its note says when it holds in words that nobody knows"),
                        When::default(),
                    ),
                }
            }
        };
        let (way, meaning) = match way {
            Some(way) => (way, meaning),
            None => (Path::default(), Rule::unknown("its path cannot be read")),
        };
        Invariant {
            severity: severity::of(&self.id),
            scope: match &self.scope {
                Some(word) => Scope::named(word),
                None => scope,
            },
            id: self.id,
            set,
            path: self.path,
            rule: self.rule.unwrap_or_default(),
            description: self.description,
            way,
            meaning,
            when,
        }
    }
}
