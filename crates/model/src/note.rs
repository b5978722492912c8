//! A note: a fact of the journal that is no operation's.
//!
//! What a project's graph holds, where a stage began, how far an agent has come, what drifted: each is a note about one subject.
//! The newest note of a subject says how it stands; older ones are its history. What the body means is for whoever wrote it:
//! the journal keeps it as it is, and never loses the newest note of a subject, also when old records are cut.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{AgentId, Lsn, TaskId, Timestamp};

/// What a note is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topic {
    /// A node or the edges of the project's state graph.
    Graph,
    /// A stage of a pipeline.
    Stage,
    /// What an agent must find again to go on.
    State,
    /// A target that is not what the journal says.
    Drift,
}

impl Topic {
    /// All topics.
    pub const ALL: [Self; 4] = [Self::Graph, Self::Stage, Self::State, Self::Drift];

    /// Names the topic as the journal and SQL queries know it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Graph => "graph",
            Self::Stage => "stage",
            Self::State => "state",
            Self::Drift => "drift",
        }
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A fact about one subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// What it is about.
    pub topic: Topic,
    /// Which of them: a name that is unique within the topic.
    pub subject: String,
    /// Its place in the journal. Its record has its own, so an event leaves it out.
    #[serde(default, skip_serializing_if = "is_default")]
    pub lsn: Lsn,
    /// When it was noted; as with the place.
    #[serde(default, skip_serializing_if = "is_default")]
    pub at: Timestamp,
    /// Who said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// The piece of work it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// What is said.
    pub body: serde_json::Value,
}

/// Which notes to list, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoteFilter {
    /// What they are about.
    pub topic: Topic,
    /// Only those about this subject.
    #[serde(default)]
    pub subject: Option<String>,
    /// Only those that are in the journal after this place.
    #[serde(default)]
    pub after: Option<Lsn>,
    /// Only those that are in the journal up to this place: how things stood then.
    #[serde(default)]
    pub up_to: Option<Lsn>,
    /// Only the newest of each subject that fits the rest.
    #[serde(default)]
    pub is_newest: bool,
    /// At most this many.
    #[serde(default)]
    pub limit: Option<usize>,
}

impl NoteFilter {
    /// All notes of a topic.
    pub const fn all(topic: Topic) -> Self {
        Self {
            topic,
            subject: None,
            after: None,
            up_to: None,
            is_newest: false,
            limit: None,
        }
    }

    /// How each subject of a topic stands.
    pub fn newest(topic: Topic) -> Self {
        Self {
            is_newest: true,
            ..Self::all(topic)
        }
    }

    /// The notes about one subject.
    pub fn about(topic: Topic, subject: impl Into<String>) -> Self {
        Self {
            subject: Some(subject.into()),
            ..Self::all(topic)
        }
    }

    /// Tells whether a note at its place fits, whatever is newer and however many are asked for.
    pub fn fits(&self, note: &Note) -> bool {
        note.topic == self.topic
            && self.subject.as_ref().is_none_or(|it| *it == note.subject)
            && self.after.is_none_or(|after| note.lsn > after)
            && self.up_to.is_none_or(|up_to| note.lsn <= up_to)
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_back_as_it_was_written() {
        for topic in Topic::ALL {
            let note = Note {
                topic,
                subject: "step-3".to_owned(),
                lsn: Lsn(0),
                at: Timestamp(0),
                agent: Some("robin".parse().unwrap()),
                task: None,
                body: serde_json::json!({"step": 3}),
            };
            let text = serde_json::to_string(&note).unwrap();
            assert!(text.contains(topic.as_str()), "{text}");
            assert!(!text.contains("lsn"), "{text}");
            assert_eq!(serde_json::from_str::<Note>(&text).unwrap(), note);
        }
    }
}
