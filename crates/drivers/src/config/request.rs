//! What the config driver can be asked.

use std::path::{Path, PathBuf};

use backout_config::{ConfigError, Document, Edited, Format, KeyPath, NewValue, Value};
use backout_model::ports::{DriverError, Request};
use backout_model::{DriverName, JsonText, Verb, any_path};
use serde::{Deserialize, Serialize};

use super::error::ConfigFault;
use super::recipe::CONFIG;
use crate::file::FileError;

/// A change of keys in one file. The file must be there.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ConfigRequest {
    /// The file; a symbolic link at its end is followed.
    #[serde(with = "any_path")]
    pub path: PathBuf,
    /// How it is written; none if its name tells.
    pub format: Option<Format>,
    /// What changes.
    pub edit: ConfigEdit,
}

/// What changes in a config file.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConfigEdit {
    /// A key gets a value. What is missing above it is made.
    Set {
        /// Where it is to stand.
        key: KeyPath,
        /// As somebody wrote it, or with its type.
        value: NewValue,
    },
    /// A key goes.
    Unset {
        /// It need not be there.
        key: KeyPath,
    },
    /// Keys become what they were, whatever they are.
    Restore {
        /// One line for people.
        summary: String,
        /// What each of them was.
        keys: Vec<Was>,
    },
    /// Keys come, change and go as a patch says (RFC 7396): tables are merged, `null` removes.
    Merge {
        /// In JSON, whatever the format of the file is.
        patch: Value,
    },
}

/// What a key was.
#[derive(Clone, Serialize, Deserialize)]
pub struct Was {
    /// Where it stood.
    pub key: KeyPath,
    /// Its value as it stood in the text, and what it means; none if it was not there.
    pub value: Option<(String, Value)>,
}

impl std::fmt::Debug for Was {
    // Values may be secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Was({})", self.key)
    }
}

impl std::fmt::Debug for ConfigEdit {
    // Values may be secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Set { key, .. } => write!(f, "Set({key})"),
            Self::Unset { key } => write!(f, "Unset({key})"),
            Self::Restore { keys, .. } => write!(f, "Restore({} keys)", keys.len()),
            Self::Merge { .. } => f.write_str("Merge"),
        }
    }
}

impl ConfigRequest {
    /// Tells how the file is written.
    pub(super) fn format(&self) -> Result<Format, ConfigFault> {
        let told = || Format::of_file(&self.path.to_string_lossy());
        self.format
            .or_else(told)
            .ok_or_else(|| ConfigFault::NoFormat {
                path: shown(&self.path),
            })
    }

    /// Gives the text with the edit in it, and which keys it changed.
    pub(super) fn edited(&self, format: Format, text: &[u8]) -> Result<Edited, ConfigError> {
        let document = Document::from_bytes(format, text)?;
        match &self.edit {
            ConfigEdit::Set { key, value } => document.set(key, value),
            ConfigEdit::Unset { key } => document.unset(key),
            ConfigEdit::Restore { keys, .. } => restored(&document, keys),
            ConfigEdit::Merge { patch } => document.merge(patch),
        }
    }
}

impl Request for ConfigRequest {
    fn driver(&self) -> DriverName {
        CONFIG
    }

    fn verb(&self) -> Verb {
        match self.edit {
            ConfigEdit::Restore { .. } => Verb::Restore,
            ConfigEdit::Set { .. } | ConfigEdit::Unset { .. } | ConfigEdit::Merge { .. } => {
                Verb::Edit
            }
        }
    }

    fn summary(&self) -> String {
        let path = shown(&self.path);
        match &self.edit {
            ConfigEdit::Set { key, .. } => format!("set {key} in {path}"),
            ConfigEdit::Unset { key } => format!("unset {key} in {path}"),
            ConfigEdit::Restore { summary, .. } => summary.clone(),
            ConfigEdit::Merge { .. } => format!("merge keys into {path}"),
        }
    }

    fn as_text(&self) -> Result<JsonText, DriverError> {
        Ok(JsonText::of(self).map_err(FileError::Request)?)
    }
}

/// Makes keys what they were, one after the other.
fn restored(document: &Document<'_>, keys: &[Was]) -> Result<Edited, ConfigError> {
    let mut all = Edited {
        text: document.text().to_owned(),
        changes: Vec::new(),
    };
    for was in keys {
        let document = Document::parse(document.format(), &all.text)?;
        let edited = match &was.value {
            Some((raw, value)) => document
                .set(&was.key, &NewValue::Raw(raw.clone()))
                // What stood there fits only where it stood; then its meaning counts.
                .or_else(|_| document.set(&was.key, &NewValue::Typed(value.clone()))),
            None if document.get(&was.key)?.is_none() => continue,
            None => document.unset(&was.key),
        }?;
        all.text = edited.text;
        all.changes.extend(edited.changes);
    }
    Ok(all)
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
