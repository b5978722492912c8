//! The shape of a batch. The help of `backout batch` shows it; a field that is not here is refused.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Batch {
    pub(super) changes: Vec<Change>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Change {
    Write(Write),
    Append(Append),
    Edit(Edit),
    Patch(Patch),
    Remove(Remove),
    Move(Move),
    Copy(Copy),
    Mkdir(Mkdir),
    Symlink(Symlink),
    Link(Link),
    Chmod(Chmod),
    Chown(Chown),
    Set(Set),
    Unset(Unset),
    Merge(Merge),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Write {
    pub(super) path: PathBuf,
    pub(super) text: Option<String>,
    pub(super) base64: Option<String>,
    pub(super) from: Option<PathBuf>,
    #[serde(default)]
    pub(super) create: bool,
    #[serde(default)]
    pub(super) existing: bool,
    #[serde(default)]
    pub(super) parents: bool,
    pub(super) mode: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Append {
    pub(super) path: PathBuf,
    pub(super) text: Option<String>,
    pub(super) base64: Option<String>,
    pub(super) from: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Edit {
    pub(super) path: PathBuf,
    pub(super) search: String,
    pub(super) replace: String,
    #[serde(default)]
    pub(super) all: bool,
    pub(super) nth: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Patch {
    pub(super) patch: String,
    pub(super) base: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Remove {
    pub(super) path: PathBuf,
    #[serde(default)]
    pub(super) recursive: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Move {
    pub(super) from: PathBuf,
    pub(super) to: PathBuf,
    #[serde(default)]
    pub(super) replace: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Copy {
    pub(super) from: PathBuf,
    pub(super) to: PathBuf,
    #[serde(default)]
    pub(super) recursive: bool,
    #[serde(default)]
    pub(super) replace: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mkdir {
    pub(super) path: PathBuf,
    #[serde(default)]
    pub(super) parents: bool,
    pub(super) mode: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Symlink {
    pub(super) path: PathBuf,
    pub(super) to: String,
    #[serde(default)]
    pub(super) replace: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Link {
    pub(super) path: PathBuf,
    pub(super) to: PathBuf,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Chmod {
    pub(super) path: PathBuf,
    pub(super) mode: String,
    #[serde(default)]
    pub(super) recursive: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Chown {
    pub(super) path: PathBuf,
    pub(super) owner: String,
    #[serde(default)]
    pub(super) recursive: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Set {
    pub(super) path: PathBuf,
    pub(super) key: String,
    pub(super) value: Box<RawValue>,
    pub(super) format: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Unset {
    pub(super) path: PathBuf,
    pub(super) key: String,
    pub(super) format: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Merge {
    pub(super) path: PathBuf,
    pub(super) patch: Box<RawValue>,
    pub(super) format: Option<String>,
}
