//! What changed in files, or would change.

use std::borrow::Cow;
use std::fmt;

use backout_model::{OperationId, TargetPath, Timestamp, wide};
use serde::{Deserialize, Serialize};

/// What an operation changed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Diff {
    /// The operation, or the trial.
    pub id: OperationId,
    /// Name by name.
    pub files: Vec<DiffFile>,
}

/// What an undo would change.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PlanDiff {
    /// What would change back: from what is there now to what would be there.
    pub back: Vec<DiffFile>,
    /// What somebody else changed since: from what the operation left to what is there now.
    pub theirs: Vec<DiffFile>,
}

/// What happened to a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiffChange {
    /// It is new.
    Created,
    /// It is another.
    Changed,
    /// It is gone.
    Removed,
    /// It was called something else.
    Moved,
}

/// What changed at one name.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DiffFile {
    /// The name of the file; none if it is in no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<TargetPath>,
    /// The key in it, if only that is meant; the whole key, if it is in no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Its old name, if it was moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<TargetPath>,
    /// What happened.
    pub change: DiffChange,
    /// None if nothing was there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<DiffSide>,
    /// What it became.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<DiffSide>,
    /// How many lines are new; none if it is no text, or was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<usize>,
    /// How many lines are gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<usize>,
    /// A unified diff of the content; empty if there is none to show.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The values themselves, if it is told in values alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<DiffValue>,
    /// Why there is no text although the content may differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unshown: Option<String>,
}

impl DiffFile {
    /// Says what it is, or was.
    pub fn kind(&self) -> &str {
        let side = self.after.as_ref().or(self.before.as_ref());
        side.map_or("nothing", |side| &side.kind)
    }

    /// Counts the lines that differ.
    pub fn lines(&self) -> usize {
        self.added.unwrap_or_default() + self.removed.unwrap_or_default()
    }
}

/// A value that changed: a row, an entry, a key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffValue {
    /// What it was; none if it was not there.
    pub before: Option<String>,
    /// What it became.
    pub after: Option<String>,
    /// In the world, at this moment.
    pub now: Option<String>,
    /// Why nobody can tell what it is now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
}

impl fmt::Debug for DiffValue {
    // Values may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DiffValue")
    }
}

/// One side of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffSide {
    /// What it is: file, directory, symbolic link, pipe, socket, device.
    pub kind: Cow<'static, str>,
    /// The permission bits, in octal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The user's number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// The group's number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gid: Option<u32>,
    /// How many bytes a file has.
    #[serde(default, skip_serializing_if = "wide::is_none_or_wide")]
    pub size: Option<u64>,
    /// When it was last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<Timestamp>,
    /// Where a symbolic link points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub points_to: Option<String>,
    /// Another name of the same file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_as: Option<TargetPath>,
    /// The names of its extended attributes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<String>,
}
