//! What each tool takes. The doc comments are what a model reads.

use std::collections::BTreeMap;

use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use serde_json::Value;

/// What every tool that writes takes beside its own.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct Connection {
    /// A task of yours that this belongs to, as the tool `task` named it.
    #[serde(default)]
    pub(crate) task: Option<String>,
    /// A key of your own for this call. The same call with the same key is carried out once, however often you send it.
    #[serde(default)]
    pub(crate) once: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Write {
    /// The file. A relative path starts at your first directory.
    pub(crate) path: String,
    /// The whole new content, or with `append` what is added.
    pub(crate) content: String,
    /// Add to the end instead of replacing the content.
    #[serde(default)]
    pub(crate) append: bool,
    /// Only if there is no such file yet.
    #[serde(default)]
    pub(crate) create: bool,
    #[serde(flatten)]
    pub(crate) connection: Connection,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Edit {
    /// The file; leave it out with `patch`.
    #[serde(default)]
    pub(crate) path: Option<String>,
    /// The text to look for. It must be there exactly once, unless `all` is set.
    #[serde(default)]
    pub(crate) search: Option<String>,
    /// The text that comes instead.
    #[serde(default)]
    pub(crate) replace: Option<String>,
    /// Replace every place found.
    #[serde(default)]
    pub(crate) all: bool,
    /// A unified diff of one or more files, instead of the others. It fits exactly or nothing is changed.
    #[serde(default)]
    pub(crate) patch: Option<String>,
    #[serde(flatten)]
    pub(crate) connection: Connection,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Delete {
    /// What to remove. Several go together or not at all.
    pub(crate) paths: Vec<String>,
    /// Remove directories with all that is in them.
    #[serde(default)]
    pub(crate) recursive: bool,
    #[serde(flatten)]
    pub(crate) connection: Connection,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Move {
    /// The old name.
    pub(crate) from: String,
    /// The new name.
    pub(crate) to: String,
    /// Replace a file that has the new name; it is kept for the undo.
    #[serde(default)]
    pub(crate) replace: bool,
    #[serde(flatten)]
    pub(crate) connection: Connection,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Set {
    /// The file: JSON, YAML, TOML, INI or .env.
    pub(crate) path: String,
    /// The key, like `server.port`, `list[0].name` or `list[+]`.
    pub(crate) key: String,
    /// The new value, as JSON. Leave it out with `unset`.
    #[serde(default)]
    pub(crate) value: Option<Value>,
    /// Take the key away.
    #[serde(default)]
    pub(crate) unset: bool,
    #[serde(flatten)]
    pub(crate) connection: Connection,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Run {
    /// The command, for `sh -c`.
    pub(crate) command: String,
    /// Where it runs; by default your first directory.
    #[serde(default)]
    pub(crate) directory: Option<String>,
    /// End it after so many seconds.
    #[serde(default)]
    pub(crate) timeout_seconds: Option<u32>,
    /// Take back all that it did if it fails.
    #[serde(default)]
    pub(crate) undo_on_failure: bool,
    /// A task of yours that this belongs to.
    #[serde(default)]
    pub(crate) task: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Try {
    /// The command, for `sh -c`.
    pub(crate) command: String,
    /// Where it runs; by default your first directory.
    #[serde(default)]
    pub(crate) directory: Option<String>,
    /// Give it no network.
    #[serde(default)]
    pub(crate) no_network: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct TryEnd {
    /// The trial, as the tool `try` named it.
    pub(crate) trial: String,
    /// Make what it changed real (`apply`), or let it go (`discard`).
    pub(crate) verdict: Verdict,
    /// With `apply`: only what matches one of these patterns, like `src/**`.
    #[serde(default)]
    pub(crate) only: Vec<String>,
    /// A task of yours that this belongs to.
    #[serde(default)]
    pub(crate) task: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    Apply,
    Discard,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Sql {
    /// An SQLite file in your directories, or the name of a database that was enrolled with `backout db enroll`.
    pub(crate) database: String,
    /// The statements. All of them count, or none.
    pub(crate) statements: String,
    /// Make the SQLite file first, if there is none.
    #[serde(default)]
    pub(crate) create: bool,
    #[serde(flatten)]
    pub(crate) connection: Connection,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Http {
    /// GET, HEAD, POST, PUT, PATCH or DELETE.
    pub(crate) method: String,
    /// Where to.
    pub(crate) url: String,
    /// Headers, each like `Accept: text/plain`. Write secrets as `${env:NAME}`.
    #[serde(default)]
    pub(crate) headers: Vec<String>,
    /// What is sent.
    #[serde(default)]
    pub(crate) body: Option<String>,
    /// What is sent is JSON.
    #[serde(default)]
    pub(crate) json: bool,
    /// Nothing takes the call back: it waits until a person approves it, or until its task is committed.
    #[serde(default)]
    pub(crate) irreversible: bool,
    #[serde(flatten)]
    pub(crate) connection: Connection,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Task {
    /// Begin a task, keep its operations, take all of them back, or list your tasks.
    pub(crate) act: TaskAct,
    /// Its name; `begin` takes a new one if there is none.
    #[serde(default)]
    pub(crate) name: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TaskAct {
    Begin,
    Commit,
    Rollback,
    List,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Checkpoint {
    /// Its name; by default a new one.
    #[serde(default)]
    pub(crate) name: Option<String>,
    /// Anything that you want to find again with it.
    #[serde(default)]
    pub(crate) state: Option<Value>,
    /// Keep everything in these directories, whoever writes there.
    #[serde(default)]
    pub(crate) keep: Vec<String>,
    /// How many steps of your plan are done.
    #[serde(default)]
    pub(crate) step: Option<u32>,
    /// How many steps your plan has.
    #[serde(default)]
    pub(crate) steps: Option<u32>,
    /// What you decided on the way, the first first.
    #[serde(default)]
    pub(crate) decisions: Vec<String>,
    /// What you have to know when you go on, in words.
    #[serde(default)]
    pub(crate) summary: Option<String>,
    /// Variables that you have changed; null for one that you took away.
    #[serde(default)]
    pub(crate) environment: BTreeMap<String, Option<String>>,
    /// Only if so many operations were done since the last checkpoint.
    #[serde(default)]
    pub(crate) every: Option<u32>,
    /// The task that it belongs to.
    #[serde(default)]
    pub(crate) task: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Resume {
    /// The task; by default your only open one that has a checkpoint.
    #[serde(default)]
    pub(crate) task: Option<String>,
    /// Go on from this checkpoint; by default from the newest good one.
    #[serde(default)]
    pub(crate) checkpoint: Option<String>,
    /// Only say what would happen.
    #[serde(default)]
    pub(crate) preview: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Stage {
    /// What to do.
    pub(crate) act: StageAct,
    /// Its name.
    #[serde(default)]
    pub(crate) name: Option<String>,
    /// The task that it is part of.
    #[serde(default)]
    pub(crate) task: Option<String>,
    /// When it is ended: whether it failed.
    #[serde(default)]
    pub(crate) failed: bool,
    /// Why it failed, in words.
    #[serde(default)]
    pub(crate) why: Option<String>,
}

/// What to do with a stage.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StageAct {
    Begin,
    End,
    List,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Declare {
    /// One object, or a list of them: all are taken, or none.
    pub(crate) objects: Value,
    /// The version of the object that you saw; 0 if it is new. Leave it out for objects that are not there yet.
    #[serde(default)]
    pub(crate) version: Option<u64>,
    /// A task of yours that this belongs to, as the tool `task` named it.
    #[serde(default)]
    pub(crate) task: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Graph {}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Log {
    /// Only what wrote at or below this path.
    #[serde(default)]
    pub(crate) path: Option<String>,
    /// Only this task.
    #[serde(default)]
    pub(crate) task: Option<String>,
    /// Others' operations in your directories, too.
    #[serde(default)]
    pub(crate) everybody: bool,
    /// At most this many; 25 by default, at most 500.
    #[serde(default)]
    pub(crate) limit: Option<usize>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Named {
    /// The operation: the beginning of its id.
    pub(crate) operation: String,
}

/// What to look at.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct Drift {
    /// Look at everything at or below this path first, and not only at what is known.
    #[serde(default)]
    pub(crate) path: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Differs {
    /// The operation: the beginning of its id.
    pub(crate) operation: String,
    /// Only names that match one of these patterns, like `src/**`.
    #[serde(default)]
    pub(crate) only: Vec<String>,
}

/// What to take back.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct Undo {
    /// Operations of yours, each by the beginning of its id. Without this and the next three: your newest.
    #[serde(default)]
    pub(crate) operations: Vec<String>,
    /// All of a task of yours.
    #[serde(default)]
    pub(crate) task: Option<String>,
    /// All that you did since a checkpoint of yours.
    #[serde(default)]
    pub(crate) checkpoint: Option<String>,
    /// What you last did to these paths.
    #[serde(default)]
    pub(crate) paths: Vec<String>,
    /// Only names that match one of these patterns, like `src/**`.
    #[serde(default)]
    pub(crate) only: Vec<String>,
    /// What to do where somebody changed a target since.
    #[serde(default)]
    pub(crate) on_conflict: OnConflict,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct Redo {
    /// Operations that were undone, or undos, each by the beginning of its id. Without this: your newest undo.
    #[serde(default)]
    pub(crate) operations: Vec<String>,
    /// What to do where somebody changed a target since.
    #[serde(default)]
    pub(crate) on_conflict: OnConflict,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OnConflict {
    /// Change nothing.
    #[default]
    Refuse,
    /// Take out only this change, and keep the others.
    Merge,
    /// Take back what can be, and leave the rest.
    Partial,
}
