//! What puts an agent under protection: keys in its own settings, and files of ours that they lead to.
//!
//! A [`Setup`] is plain data. [`Keys`] edits a text: what is there stays byte for byte, what is ours already is brought up to
//! date, and taking out takes out what is ours and nothing else. An entry is ours if it runs `backout hook AGENT`.

mod claude;
mod codex;
mod edit;
mod gemini;
mod mcp;
mod own;
mod scripts;
mod trust;

use std::path::{Path, PathBuf};

use backout_config::{ConfigError, Format, KeyPath, Value};
use serde_json::json;

use crate::Agent;
pub use edit::Standing;
use edit::gathered;
pub use trust::{Trust, trust};

/// How long an agent waits for a hook, in seconds. Our own deadline is well below.
pub const TIMEOUT_SECONDS: u64 = 60;

/// Where things are.
#[derive(Debug, Clone)]
pub struct Places {
    /// The user's home directory.
    pub home: PathBuf,
    /// The project, if only that is meant.
    pub project: Option<PathBuf>,
    /// The `backout` that the agent is to start.
    pub program: PathBuf,
    /// The directory of our own files for this agent.
    pub own: PathBuf,
    /// The state directory, if it is not the usual one.
    pub state_dir: Option<PathBuf>,
    /// Where the agent keeps its settings, if the environment says so.
    pub config: Option<PathBuf>,
}

/// What protects an agent.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// Keys in settings files.
    pub keys: Vec<Keys>,
    /// Files that are ours alone.
    pub files: Vec<Generated>,
    /// What the user has to know or do.
    pub notes: Vec<String>,
}

/// Keys in one settings file.
#[derive(Debug, Clone)]
pub struct Keys {
    /// It need not be there yet.
    pub file: PathBuf,
    /// How it is written.
    pub format: Format,
    /// The agent whose they are.
    pub agent: Agent,
    /// What is to be there.
    pub wants: Vec<Want>,
}

/// One thing that is to be there.
#[derive(Debug, Clone)]
pub enum Want {
    /// A value of ours. Somebody else's stands in the way.
    Value {
        /// Where it stands in the file.
        key: KeyPath,
        /// What must stand there.
        value: Value,
    },
    /// A value that may be anybody's: it is only set if nobody has.
    Default {
        /// Where it stands in the file.
        key: KeyPath,
        /// What is written if nothing stands there.
        value: Value,
    },
    /// An item of a list, beside others.
    Item {
        /// The list.
        key: KeyPath,
        /// The item.
        value: Value,
    },
}

/// A file of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generated {
    /// The file that holds it.
    pub path: PathBuf,
    /// The whole file.
    pub text: String,
    /// Whether it can be run.
    pub is_executable: bool,
}

/// Says why settings cannot be edited.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The text is not what the agent reads, or the key cannot be set.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Somebody else's value is in the way.
    #[error("`{key}` is set to something else: {found}")]
    Taken {
        /// Where it stands.
        key: KeyPath,
        /// Its value.
        found: String,
    },
}

/// Says what gives an agent our tools, beside its own; none if it is not known how it is told of them.
pub fn tools(agent: Agent, places: &Places) -> Option<Setup> {
    mcp::setup(agent, places)
}

/// Says what protects an agent.
pub fn setup(agent: Agent, places: &Places) -> Setup {
    match agent {
        Agent::ClaudeCode => claude::setup(places),
        Agent::Codex => codex::setup(places),
        Agent::Gemini | Agent::Qwen => gemini::setup(agent, places),
        Agent::OpenCode => own::opencode(places),
        Agent::Copilot => own::copilot(places),
        Agent::Cline => own::cline(places),
        Agent::Cursor => own::cursor(places),
    }
}

impl Places {
    /// Gives the directory in which an agent's settings are: of the project, or of the user.
    fn settings(&self, name: &str) -> PathBuf {
        match (&self.project, &self.config) {
            (Some(project), _) => project.join(name),
            (None, Some(config)) => config.clone(),
            (None, None) => self.home.join(name),
        }
    }

    /// The words after the program's name that make it a hook of an agent.
    fn words(&self, agent: Agent) -> Vec<String> {
        let mut words = Vec::new();
        if let Some(directory) = &self.state_dir {
            words.extend(["--state-dir".to_owned(), text_of(directory)]);
        }
        words.extend(["hook".to_owned(), agent.as_str().to_owned()]);
        words
    }

    /// The same as a line for a shell.
    fn line(&self, agent: Agent) -> String {
        let words = std::iter::once(text_of(&self.program)).chain(self.words(agent));
        let words: Vec<String> = words.map(|word| quoted(&word)).collect();
        words.join(" ")
    }

    fn bash_env(&self) -> PathBuf {
        self.own.join("bash-env")
    }
}

fn text_of(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Says a word so that a shell takes it as one.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "_-./=:@%+,".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

fn value(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(it) => Value::Bool(*it),
        serde_json::Value::Number(it) => Value::Number(it.to_string()),
        serde_json::Value::String(it) => Value::Text(it.clone()),
        serde_json::Value::Array(items) => Value::List(items.iter().map(value).collect()),
        serde_json::Value::Object(members) => {
            let members = members.iter().map(|(name, it)| (name.clone(), value(it)));
            Value::Map(members.collect())
        }
    }
}

fn text(key: &[&str], text: &str) -> Want {
    Want::Value {
        key: KeyPath::of_names(key.iter().copied()),
        value: Value::Text(text.to_owned()),
    }
}

/// An entry of `hooks.EVENT` in the form that most agents share.
fn hook(event: &str, matcher: Option<&str>, handler: &serde_json::Value) -> Want {
    let mut entry = json!({"hooks": [handler]});
    if let (Some(matcher), Some(entry)) = (matcher, entry.as_object_mut()) {
        entry.insert("matcher".to_owned(), matcher.into());
    }
    Want::Item {
        key: KeyPath::of_names(["hooks", event]),
        value: value(&entry),
    }
}

#[cfg(test)]
mod tests;
