//! What is kept of a call, so that any later process can answer it. Versioned; old versions are read for ever. Version 2 knows what
//! the call made, and what others made of that.

use std::collections::BTreeMap;

use backout_model::compensation::Compensation;
use backout_model::{Digest, DriverName, OperationId, Target};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The name that its recipes bear.
pub const HTTP: DriverName = DriverName::literal("http");

/// The newest version of a recipe's body.
pub(super) const VERSION: u16 = 2;

/// The body of a recipe.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(super) enum HttpRecipe {
    /// What was sent, and what answers it.
    Call(Box<CallRecipe>),
    /// The call that answers another one.
    Answer(Box<AnswerRecipe>),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct CallRecipe {
    pub(super) id: OperationId,
    pub(super) target: Target,
    pub(super) method: String,
    /// As it was written, with `${env:NAME}`; the headers and the body too.
    pub(super) url: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Option<Digest>,
    /// Whether the body is what a service sent: then nothing in it is a variable.
    #[serde(default)]
    pub(super) is_raw: bool,
    pub(super) timeout_ms: u64,
    /// What takes it back; none if nothing does.
    pub(super) rule: Option<Compensation>,
    /// What the names of the pattern stand for.
    pub(super) holes: BTreeMap<String, String>,
    pub(super) key: Option<SentKey>,
    /// What was there, if that was looked at.
    pub(super) before: Option<Seen>,
    /// Whether the lookup finds something that was there before the call: then it tells nothing of the call.
    #[serde(default)]
    pub(super) is_blind: bool,
    /// What others had made of the thing when a forced undo took it away: it is brought back with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) brings: Option<Kept>,
}

/// What others had made of a thing that an undo took away all the same.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Kept {
    /// The undo.
    pub(super) by: OperationId,
    /// The thing as it was then, in the contents.
    pub(super) body: Digest,
    pub(super) kind: Option<String>,
    /// The fields that were not as the call had left them; empty if the thing is not made of fields.
    pub(super) fields: Vec<String>,
}

/// The key by which a service knows a call again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct SentKey {
    pub(super) header: String,
    pub(super) value: String,
    /// Until when the service remembers it, in milliseconds since 1970.
    pub(super) until_ms: u64,
}

/// What a look found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Seen {
    /// Whether the thing is there.
    pub(super) is_there: bool,
    pub(super) etag: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) body: Option<Digest>,
    /// The digest of what is compared: the body without what the service changes by itself.
    pub(super) compared: Option<Digest>,
    /// The same, field by field, so that it can be said which of them others changed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) fields: BTreeMap<String, Digest>,
}

impl Seen {
    /// Tells whether two looks found the same.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.is_there == other.is_there && self.compared == other.compared
    }

    /// Gives the tag by which the service can be asked to act only while this is so. A weak one never holds.
    pub(super) fn guard(&self) -> Option<(String, String)> {
        let tag = self.etag.as_ref().filter(|tag| !tag.starts_with("W/"))?;
        Some(("If-Match".to_owned(), tag.clone()))
    }

    /// Names the fields that another look found otherwise.
    pub(super) fn unlike(&self, other: &Self) -> Vec<String> {
        let names = self.fields.keys().chain(other.fields.keys());
        let mut names: Vec<String> = names
            .filter(|name| self.fields.get(*name) != other.fields.get(*name))
            .cloned()
            .collect();
        names.sort();
        names.dedup();
        names
    }
}

/// A call that answers another one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct AnswerRecipe {
    /// What it answers.
    pub(super) call: CallRecipe,
    /// What that was answered with; if nobody knows, it has to be found out first.
    pub(super) answered: Option<Answered>,
    /// What others had made of the thing, if it was taken away all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) kept: Option<Kept>,
}

/// What only the effect could tell.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Answered {
    pub(super) status: u16,
    /// The fields of the answer that the way back needs.
    pub(super) facts: Value,
    /// What is there since, if that is looked at.
    #[serde(default)]
    pub(super) after: Option<Seen>,
    /// Whether the look that is to tell that the effect is gone said so right after the call: then it tells nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) gone_at_once: bool,
}

impl Answered {
    /// Says what was found out, without a look at the thing yet.
    pub(super) const fn of(status: u16, facts: Value) -> Self {
        Self {
            status,
            facts,
            after: None,
            gone_at_once: false,
        }
    }

    /// Gives what was made, if it was seen after the call.
    pub(super) fn made(&self) -> Option<&Seen> {
        self.after.as_ref().filter(|seen| seen.is_there)
    }
}
