//! What stands between staged and armed: a gate looks at a staged change and allows it, denies it, or asks for a decision.
//!
//! A gate changes nothing. Several gates are one: a single *deny* refuses the write, a single *ask* makes it a proposal.
//! Design: `docs/design/gates.md`.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::ports::Staged;
use crate::{AgentId, Decision, Target, TaskId, Verb};

/// Why a gate does not let a change pass, in a form that a model can act on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// The rule, by the name that its author gave it.
    pub rule: String,
    /// The target that it is about, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// What was found.
    pub found: String,
    /// What would make it pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
    /// Somebody has to decide.
    Ask {
        /// Why.
        reasons: Vec<Reason>,
        /// How long the proposal waits; none for ever.
        waits_ms_max: Option<u64>,
    },
    /// The change must not happen.
    Deny {
        /// Why.
        reasons: Vec<Reason>,
    },
}

impl Ruling {
    /// Puts two rulings together: the stricter one counts, and of two askings the shorter wait.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Allow, ruling) | (ruling, Self::Allow) => ruling,
            (Self::Deny { mut reasons }, Self::Deny { reasons: more }) => {
                reasons.extend(more);
                Self::Deny { reasons }
            }
            (deny @ Self::Deny { .. }, Self::Ask { .. })
            | (Self::Ask { .. }, deny @ Self::Deny { .. }) => deny,
            (
                Self::Ask {
                    mut reasons,
                    waits_ms_max: one,
                },
                Self::Ask {
                    reasons: more,
                    waits_ms_max: other,
                },
            ) => {
                reasons.extend(more);
                let waits_ms_max = match (one, other) {
                    (Some(one), Some(other)) => Some(one.min(other)),
                    (one, other) => one.or(other),
                };
                Self::Ask {
                    reasons,
                    waits_ms_max,
                }
            }
        }
    }
}

/// A staged change, as a gate sees it.
#[derive(Debug)]
pub struct StagedChange<'c> {
    /// What kind of write it is.
    pub verb: Verb,
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(rule: &str) -> Reason {
        Reason {
            rule: rule.to_owned(),
            target: None,
            found: "it is protected".to_owned(),
            remedy: None,
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
        ] {
            assert_eq!(one.clone().and(other.clone()), both);
            assert_eq!(other.and(one), both);
        }
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
    }
}
