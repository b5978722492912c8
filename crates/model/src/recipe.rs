//! The recipe: the persisted, versioned data from which an operation can be undone by any later process.
//!
//! The envelope is the same for every driver, so that the store can tell which contents and kept inodes
//! a recipe needs without understanding it. The body belongs to the driver, which reads every version
//! it ever wrote.

use std::borrow::Cow;
use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

use crate::Digest;
use crate::ports::BadRecipe;

/// Which driver understands a recipe's body, by its name. It may be one that this program does not have.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DriverName(Cow<'static, str>);

impl DriverName {
    /// Files, directories and links of the local machine.
    pub const FILE: Self = Self::literal("file");
    /// A command that is not settled yet: its log tells what it touched.
    pub const COMMAND: Self = Self::literal("command");

    /// Makes a name that is written in the program.
    pub const fn literal(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }

    /// Gives it as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for DriverName {
    fn from(name: String) -> Self {
        Self(Cow::Owned(name))
    }
}

impl fmt::Display for DriverName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A whole inode kept on its own file system: the replaced file, or a removed tree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Slot {
    /// The directory that keeps inodes on that file system.
    pub depot: crate::TargetPath,
    /// The name in it, made of the operation's id and a number.
    pub name: String,
}

impl Slot {
    /// Gives the place of the kept inode.
    pub fn path(&self) -> crate::TargetPath {
        self.depot.join(std::ffi::OsStr::new(&self.name))
    }
}

/// What is wrong with a kept inode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flaw {
    /// It is there, and may not be what was kept, for this reason. With force it is taken as it is now.
    Changed(String),
    /// It cannot be brought back, for this reason.
    Lost(String),
}

/// The persisted undo of one operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipe {
    /// Who understands the body.
    pub driver: DriverName,
    /// The version of the body's format, counted per driver from 1.
    pub version: u16,
    /// The contents the body refers to. They live as long as the recipe does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contents: Vec<Digest>,
    /// The kept inodes the body refers to. They live as long as the recipe does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slots: Vec<Slot>,
    /// What the driver needs to undo.
    pub body: crate::JsonText,
}

impl Recipe {
    /// Makes a recipe that keeps nothing beside its body.
    pub fn of(driver: DriverName, version: u16, body: &impl Serialize) -> Result<Self, BadRecipe> {
        Ok(Self {
            driver,
            version,
            contents: Vec::new(),
            slots: Vec::new(),
            body: crate::JsonText::of(body)?,
        })
    }

    /// Reads the body, if its version is one from 1 to `newest`.
    pub fn read<T: DeserializeOwned>(&self, newest: u16) -> Result<T, BadRecipe> {
        let found = self.version;
        if found == 0 || found > newest {
            let known = newest;
            return Err(BadRecipe::Version { found, known });
        }
        Ok(self.body.read()?)
    }
}

/// What only the effect could tell, recorded after it: inode numbers, ids an API returned.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct Completion(pub serde_json::Value);

impl<'de> Deserialize<'de> for Completion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut value = serde_json::Value::deserialize(deserializer)?;
        crate::wide::narrow(&mut value);
        Ok(Self(value))
    }
}

/// A recipe with its completion, if the effect lived to record one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// The durable recipe.
    pub recipe: Recipe,
    /// What the effect told, if it got that far.
    pub completion: Option<Completion>,
}
