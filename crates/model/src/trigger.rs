//! What set a rollback off: which of six kinds, who or what said so, and how grave it is.
//!
//! The kinds and their severities are those of the MPLP chapter on rollback; whoever knows better gives a severity of his own.
//! Severity decides how far an undo that fails climbs: see [`crate::ladder`].

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::AgentId;

/// What kind of thing set a rollback off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TriggerKind {
    /// A step of a plan failed, and there is no way on.
    PlanFailure,
    /// A person looked at the outcome and said no.
    UserRejection,
    /// A rule was broken, or a check of the outcome failed.
    PolicyViolation,
    /// Somebody stopped it while it was under way.
    ManualAbort,
    /// A part of something that is done whole or not at all failed.
    TransactionAbort,
    /// Somebody asked for it.
    UserRequest,
}

impl TriggerKind {
    /// All kinds, in the order of the chapter.
    pub const ALL: [Self; 6] = [
        Self::PlanFailure,
        Self::UserRejection,
        Self::PolicyViolation,
        Self::ManualAbort,
        Self::TransactionAbort,
        Self::UserRequest,
    ];

    /// Names the kind as the journal, JSON and the command line know it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PlanFailure => "plan-failure",
            Self::UserRejection => "user-rejection",
            Self::PolicyViolation => "policy-violation",
            Self::ManualAbort => "manual-abort",
            Self::TransactionAbort => "transaction-abort",
            Self::UserRequest => "user-request",
        }
    }

    /// Says how grave it is unless somebody knows better.
    pub const fn severity(self) -> Severity {
        match self {
            Self::PolicyViolation => Severity::Critical,
            Self::PlanFailure | Self::TransactionAbort => Severity::High,
            Self::UserRejection | Self::ManualAbort | Self::UserRequest => Severity::Medium,
        }
    }
}

impl fmt::Display for TriggerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Says that a word is none of a closed set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{word}` is none of {expected}")]
pub struct UnknownWord {
    /// As it was written.
    pub word: String,
    /// The words that there are.
    pub expected: String,
}

pub(crate) fn found<T: Copy>(
    all: &[T],
    name: fn(T) -> &'static str,
    word: &str,
) -> Result<T, UnknownWord> {
    let found = all.iter().copied().find(|it| name(*it) == word);
    found.ok_or_else(|| {
        let names: Vec<&str> = all.iter().copied().map(name).collect();
        UnknownWord {
            word: word.to_owned(),
            expected: names.join(", "),
        }
    })
}

impl FromStr for TriggerKind {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        found(&Self::ALL, Self::as_str, word)
    }
}

/// How grave a rollback is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// What stays behind disturbs nobody.
    Low,
    /// Somebody wants it gone.
    #[default]
    Medium,
    /// Something is broken until it is gone.
    High,
    /// It must not stay.
    Critical,
}

impl Severity {
    /// All severities, the least first.
    pub const ALL: [Self; 4] = [Self::Low, Self::Medium, Self::High, Self::Critical];

    /// Names the severity as the journal, JSON and the command line know it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Severity {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        found(&Self::ALL, Self::as_str, word)
    }
}

/// Who or what said that something has to go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "source", rename_all = "kebab-case")]
pub enum Source {
    /// A person, or somebody who gave no name.
    Person,
    /// Somebody who gave a name.
    Agent {
        /// Its name.
        agent: AgentId,
    },
    /// A gate, a check or a watch.
    Gate {
        /// The rule, by the name that its author gave it.
        rule: String,
    },
    /// A command that failed or was ended.
    Command,
    /// Backout itself, which puts back what was left or done half-way.
    Recovery,
    /// A program that has Backout built in.
    Program,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Person => f.write_str("a person"),
            Self::Agent { agent } => write!(f, "the agent {agent}"),
            Self::Gate { rule } => write!(f, "the rule {rule}"),
            Self::Command => f.write_str("a command that failed"),
            Self::Recovery => f.write_str("Backout itself"),
            Self::Program => f.write_str("a program"),
        }
    }
}

/// What set a rollback off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trigger {
    /// What kind of thing.
    pub kind: TriggerKind,
    /// Who or what said so.
    #[serde(flatten)]
    pub source: Source,
    /// How grave it is.
    pub severity: Severity,
    /// Why, in words of whoever said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Trigger {
    /// Makes one with the severity of its kind.
    pub const fn new(kind: TriggerKind, source: Source) -> Self {
        Self {
            kind,
            source,
            severity: kind.severity(),
            why: None,
        }
    }

    /// The same, with a reason in words.
    #[must_use]
    pub fn because(self, why: impl Into<String>) -> Self {
        Self {
            why: Some(why.into()),
            ..self
        }
    }

    /// What is not known: an undo that an older program recorded, or whoever asks without a word.
    pub const fn asked_for() -> Self {
        Self::new(TriggerKind::UserRequest, Source::Person)
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            source,
            severity,
            why,
        } = self;
        write!(f, "{kind} by {source}, {severity}")?;
        match why {
            Some(why) => write!(f, ": {why}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn severities_are_those_of_the_table() {
        for (kind, severity) in [
            ("plan-failure", "high"),
            ("user-rejection", "medium"),
            ("policy-violation", "critical"),
            ("manual-abort", "medium"),
            ("transaction-abort", "high"),
            ("user-request", "medium"),
        ] {
            let kind: TriggerKind = kind.parse().unwrap();
            assert_eq!(kind.severity().as_str(), severity, "{kind}");
            assert_eq!(kind.severity(), severity.parse().unwrap());
        }
        assert_eq!(TriggerKind::ALL.len(), 6);
    }

    #[test]
    fn an_unknown_word_is_told_with_those_that_there_are() {
        let error = "boredom".parse::<TriggerKind>().unwrap_err();
        assert!(error.to_string().contains("user-request"), "{error}");
        let error = "grave".parse::<Severity>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "`grave` is none of low, medium, high, critical"
        );
    }

    #[test]
    fn a_trigger_is_read_back_as_it_was_written() {
        let agent = Source::Agent {
            agent: "robin".parse().unwrap(),
        };
        let gate = Source::Gate {
            rule: "no secrets".to_owned(),
        };
        for source in [
            Source::Person,
            agent,
            gate,
            Source::Command,
            Source::Recovery,
            Source::Program,
        ] {
            for kind in TriggerKind::ALL {
                let trigger = Trigger::new(kind, source.clone()).because("it must go");
                let text = serde_json::to_string(&trigger).unwrap();
                assert_eq!(serde_json::from_str::<Trigger>(&text).unwrap(), trigger);
            }
        }
    }

    #[test]
    fn a_trigger_says_all_it_knows() {
        let trigger = Trigger::new(TriggerKind::PlanFailure, Source::Command);
        assert_eq!(
            trigger.clone().because("exit 1").to_string(),
            "plan-failure by a command that failed, high: exit 1"
        );
        assert_eq!(
            trigger.to_string(),
            "plan-failure by a command that failed, high"
        );
    }
}
