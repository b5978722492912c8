//! What stands between staged and armed: a gate looks at a staged change and allows it, denies it, or asks for a decision.
//!
//! A gate changes nothing. Several gates are one: a single *deny* refuses the write, a single *ask* makes it a proposal.
//! Design: `docs/design/gates.md`.

use std::fmt;
use std::io::{self, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::ports::Staged;
use crate::{AgentId, Decision, OperationId, Target, TargetPath, TaskId, Verb};

/// Where something is in a text. Lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextPlace {
    /// From 1.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
}

impl fmt::Display for TextPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// Why a gate does not let a change pass, in a form that a model can act on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// The rule, by the name that its author gave it.
    pub rule: String,
    /// The target that it is about, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// Where in the target's new content it is, if it is at one place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<TextPlace>,
    /// The key of the new content that it is about, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// In words for people, and without secrets.
    pub found: String,
    /// What would make it pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Reason {
    /// Says what a rule found, of no target in particular.
    pub fn new(rule: impl Into<String>, found: impl Into<String>) -> Self {
        Self {
            rule: rule.into(),
            target: None,
            place: None,
            key: None,
            found: found.into(),
            remedy: None,
        }
    }

    /// Adds the target that it is about.
    #[must_use]
    pub fn about(mut self, target: Target) -> Self {
        self.target = Some(target);
        self
    }

    /// Adds what would make it pass.
    #[must_use]
    pub fn mended_by(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What has a place is about a text, and has to say which.
        if let (Some(place), Some(target)) = (self.place, &self.target) {
            write!(f, "`{target}`, {place}: ")?;
        }
        write!(f, "{} ({})", self.found, self.rule)
    }
}

/// How many reasons are told one by one.
const TOLD_MAX: usize = 10;

impl Reason {
    /// Tells reasons in words; of many, some and how many more there are.
    pub fn told(reasons: &[Self]) -> Vec<String> {
        let first = reasons.iter().take(TOLD_MAX);
        let mut told: Vec<String> = first.map(ToString::to_string).collect();
        let more = reasons.len().saturating_sub(TOLD_MAX);
        told.extend((more > 0).then(|| format!("and {more} more like these")));
        told
    }
}

/// What a gate says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Ruling {
    /// The change may happen.
    #[default]
    Allow,
    /// The change may happen, and these are told with it.
    Warn {
        /// What is doubtful.
        reasons: Vec<Reason>,
    },
    /// Somebody has to decide.
    Ask {
        /// What each rule found.
        reasons: Vec<Reason>,
        /// How long the proposal waits; none for ever.
        waits_ms_max: Option<u64>,
    },
    /// The change must not happen.
    Deny {
        /// What each rule found.
        reasons: Vec<Reason>,
    },
}

impl Ruling {
    /// Puts two rulings together: the stricter one counts, and of two askings the shorter wait. Who has to decide sees the
    /// warnings as well.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Allow, ruling) | (ruling, Self::Allow) => ruling,
            (Self::Deny { reasons }, Self::Deny { reasons: more }) => Self::Deny {
                reasons: joined(reasons, more),
            },
            (deny @ Self::Deny { .. }, Self::Ask { .. } | Self::Warn { .. })
            | (Self::Ask { .. } | Self::Warn { .. }, deny @ Self::Deny { .. }) => deny,
            (Self::Warn { reasons }, Self::Warn { reasons: more }) => Self::Warn {
                reasons: joined(reasons, more),
            },
            (
                Self::Ask {
                    reasons,
                    waits_ms_max,
                },
                Self::Warn { reasons: more },
            )
            | (
                Self::Warn { reasons: more },
                Self::Ask {
                    reasons,
                    waits_ms_max,
                },
            ) => Self::Ask {
                reasons: joined(reasons, more),
                waits_ms_max,
            },
            (
                Self::Ask {
                    reasons,
                    waits_ms_max: one,
                },
                Self::Ask {
                    reasons: more,
                    waits_ms_max: other,
                },
            ) => Self::Ask {
                reasons: joined(reasons, more),
                waits_ms_max: match (one, other) {
                    (Some(one), Some(other)) => Some(one.min(other)),
                    (one, other) => one.or(other),
                },
            },
        }
    }
}

fn joined(mut reasons: Vec<Reason>, more: Vec<Reason>) -> Vec<Reason> {
    reasons.extend(more);
    reasons
}

/// What a name stands for, before or after a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeFacts {
    /// Whether it is a regular file.
    pub is_file: bool,
    /// Whether it is a directory.
    pub is_directory: bool,
    /// How many bytes it has, as far as that is known.
    pub size: u64,
    /// Its permissions; none if they are not known.
    pub mode: Option<u32>,
}

/// The bytes of a file that is not, or no longer, in its place.
pub trait FileBytes: fmt::Debug {
    /// Opens them from their beginning.
    fn open(&self) -> io::Result<Box<dyn Read + '_>>;
}

impl dyn FileBytes + '_ {
    /// Reads all of them.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open()?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// One name that a change gives something new, or takes away.
#[derive(Debug)]
pub struct ChangedFile<'s> {
    /// The name.
    pub path: TargetPath,
    /// What it stood for; none if nothing.
    pub before: Option<NodeFacts>,
    /// What it comes to stand for; none if nothing.
    pub after: Option<NodeFacts>,
    /// What was in it, if it was a file whose bytes can be had.
    pub old: Option<Box<dyn FileBytes + 's>>,
    /// What comes to be in it, if its content is new.
    pub new: Option<Box<dyn FileBytes + 's>>,
    /// The directory that it leads to, if it comes to be a link to one: all that is in there can be had by its name.
    pub leads_to: Option<TargetPath>,
}

/// A staged change, as a gate sees it.
#[derive(Debug)]
pub struct StagedChange<'c> {
    /// What kind of write it is.
    pub verb: Verb,
    /// Whether it has happened already, as what a command or an agent's own tool wrote.
    pub has_happened: bool,
    /// One line for people.
    pub summary: &'c str,
    /// Who asks for it.
    pub agent: Option<&'c AgentId>,
    /// The task that it belongs to.
    pub task: Option<&'c TaskId>,
    /// What it will write.
    pub targets: &'c [Target],
    /// How it can be undone.
    pub decision: &'c Decision,
    /// The new state, in the driver's own form.
    pub staged: &'c dyn Staged,
}

/// A change that has happened and is not committed.
#[derive(Debug)]
pub struct AppliedChange<'c> {
    /// By which it is taken back if it must not stay.
    pub id: OperationId,
    /// What kind of write it is.
    pub verb: Verb,
    /// One line for people.
    pub summary: &'c str,
    /// Who asked for it.
    pub agent: Option<&'c AgentId>,
    /// The task that it belongs to.
    pub task: Option<&'c TaskId>,
    /// What it wrote.
    pub targets: &'c [Target],
}

/// Something that lets changes pass, or not.
pub trait Gate: fmt::Debug + Send + Sync {
    /// Looks at a staged change. Whatever it cannot tell is no reason to allow.
    fn look(&self, change: &StagedChange<'_>) -> Ruling;

    /// Says why a command that runs may not write a path, if it may not; `to` is where it moves, if it does. A call cannot
    /// wait for a decision, so what somebody would have to approve is forbidden.
    fn forbids(
        &self,
        _agent: Option<&AgentId>,
        _path: &Path,
        _to: Option<&Path>,
    ) -> Option<Reason> {
        None
    }

    /// Says why a command that runs may not write a file, or give it one more name, because of other names that it has. It is
    /// asked only where there are some.
    fn forbids_by_other_names(&self, _path: &Path) -> Option<Reason> {
        None
    }

    /// Tells whether this gate wants to see how a change of these targets turns out. Whatever is watched and does not come to
    /// its commit is taken back, also after a restart of the machine.
    fn watches(&self, _verb: Verb, _targets: &[Target]) -> bool {
        false
    }

    /// Looks at the world after a change that it watches. Whatever it gives back fails the change, which is then taken back.
    /// Who looks for long asks now and then whether somebody wants to stop.
    fn watch(&self, _change: &AppliedChange<'_>, _is_stopped: &dyn Fn() -> bool) -> Vec<Reason> {
        Vec::new()
    }

    /// Is told that a change that it watches was taken back, by whomever: what had reloaded has to reload. Gives what
    /// went wrong with that, in words.
    fn taken_back(&self, _targets: &[Target]) -> Vec<String> {
        Vec::new()
    }

    /// Is told that one piece of work begins that may be long after the one before: what was read then, such as rules, may have
    /// changed since.
    fn begins(&self) {}

    /// Is told that a change waits for a decision. Gives what went wrong when people were to hear of it.
    fn waits(&self, _proposal: &crate::Proposal) -> Vec<String> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(rule: &str) -> Reason {
        Reason::new(rule, "it is protected")
    }

    fn warn(rule: &str) -> Ruling {
        Ruling::Warn {
            reasons: vec![reason(rule)],
        }
    }

    fn deny(rule: &str) -> Ruling {
        Ruling::Deny {
            reasons: vec![reason(rule)],
        }
    }

    fn ask(rule: &str, waits_ms_max: Option<u64>) -> Ruling {
        Ruling::Ask {
            reasons: vec![reason(rule)],
            waits_ms_max,
        }
    }

    #[test]
    fn the_stricter_ruling_counts_whatever_the_order() {
        assert_eq!(Ruling::Allow.and(Ruling::Allow), Ruling::Allow);
        for (one, other, both) in [
            (Ruling::Allow, ask("a", None), ask("a", None)),
            (Ruling::Allow, deny("d"), deny("d")),
            (ask("a", Some(1)), deny("d"), deny("d")),
            (Ruling::Allow, warn("w"), warn("w")),
            (warn("w"), deny("d"), deny("d")),
        ] {
            assert_eq!(one.clone().and(other.clone()), both);
            assert_eq!(other.and(one), both);
        }
    }

    #[test]
    fn who_has_to_decide_sees_the_warnings() {
        let both = Ruling::Ask {
            reasons: vec![reason("a"), reason("w")],
            waits_ms_max: Some(1),
        };
        assert_eq!(ask("a", Some(1)).and(warn("w")), both);
        assert_eq!(warn("w").and(ask("a", Some(1))), both);
    }

    #[test]
    fn all_reasons_of_the_same_ruling_are_told() {
        let Ruling::Deny { reasons } = deny("a").and(deny("b")) else {
            panic!("it must be denied");
        };
        assert_eq!(reasons, [reason("a"), reason("b")]);
    }

    #[test]
    fn of_two_waits_the_shorter_one_counts() {
        for (one, other, both) in [
            (Some(5), Some(3), Some(3)),
            (Some(5), None, Some(5)),
            (None, Some(4), Some(4)),
            (None, None, None),
        ] {
            let Ruling::Ask {
                waits_ms_max,
                reasons,
            } = ask("a", one).and(ask("b", other))
            else {
                panic!("it must be asked");
            };
            assert_eq!(waits_ms_max, both);
            assert_eq!(reasons.len(), 2);
        }
    }

    #[test]
    fn a_reason_says_what_was_found_and_which_rule_found_it() {
        assert_eq!(reason("deny x").to_string(), "it is protected (deny x)");
        let mut reason = Reason::new("syntax", "a comma is missing");
        reason.target = Some(Target::node(TargetPath::new("/p/a.json").unwrap()));
        reason.place = Some(TextPlace { line: 2, column: 7 });
        assert_eq!(
            reason.to_string(),
            "`/p/a.json`, line 2, column 7: a comma is missing (syntax)"
        );
    }
}
