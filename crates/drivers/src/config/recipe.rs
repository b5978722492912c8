//! The persisted undo of a change of keys: the write of the file, and the keys.
//!
//! The values of the keys are not in the body but in the store, as one content: they may be secrets, and a body is in every
//! export of the journal. The keys themselves are in the body, so that the targets are known whatever happens to the values.

use backout_config::{Format, KeyChange, KeyPath};
use backout_model::ports::{NewContent, Prepared};
use backout_model::{
    Completion, Digest, DriverName, Effect, JsonText, Key, Reach, Recipe, Strategy, Target,
    TargetPath,
};
use serde::{Deserialize, Serialize};

use super::error::ConfigFault;
use crate::file::{FileError, Staged};

/// By this name it is registered and stands in recipes.
pub(super) const CONFIG: DriverName = DriverName::literal("config");

/// The newest version of the body that this program writes and reads.
const VERSION: u16 = 1;

/// The body of a config recipe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ConfigRecipe {
    /// The file.
    pub(super) path: TargetPath,
    /// How it is written.
    pub(super) format: Format,
    /// The keys that change, in their order.
    pub(super) keys: Vec<KeyPath>,
    /// A content: what each of them was and becomes, as JSON.
    pub(super) values: Digest,
    /// The whole text before and after, if it was written key by key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) texts: Option<(Digest, Digest)>,
    /// The write of the file, as a recipe of the file driver.
    file: Recipe,
}

impl ConfigRecipe {
    /// Makes the write of a file a change of keys.
    pub(super) fn wrap(
        (path, format): (&TargetPath, Format),
        changes: &[KeyChange],
        texts: Option<(Digest, Digest)>,
        write: Prepared<Staged>,
    ) -> Result<Prepared<Staged>, ConfigFault> {
        let values = serde_json::to_vec(changes).map_err(ConfigFault::Unreadable)?;
        let values = NewContent::of(values);
        let body = Self {
            path: path.clone(),
            format,
            keys: changes.iter().map(|change| change.key.clone()).collect(),
            values: values.digest,
            texts,
            file: write.recipe,
        };
        let mut contents = body.file.contents.clone();
        contents.push(values.digest);
        contents.sort_unstable();
        contents.dedup();
        let mut images = write.contents;
        if images.iter().all(|image| image.digest != values.digest) {
            images.push(values);
        }
        Ok(Prepared {
            targets: body.targets()?,
            recipe: Recipe {
                driver: CONFIG,
                version: VERSION,
                contents,
                slots: body.file.slots.clone(),
                body: JsonText::of(&body).map_err(ConfigFault::Unreadable)?,
            },
            strategy: Strategy::Transaction,
            copied_bytes: write.copied_bytes,
            contents: images,
            staged: write.staged,
            notes: write.notes,
            is_noop: write.is_noop,
        })
    }

    /// Reads a body of any version up to ours.
    pub(super) fn of(effect: &Effect) -> Result<Self, ConfigFault> {
        Self::read(&effect.recipe)
    }

    /// The same, of a recipe that may not have happened yet.
    pub(super) fn read(recipe: &Recipe) -> Result<Self, ConfigFault> {
        let found = recipe.version;
        if found == 0 || found > VERSION {
            let known = VERSION;
            return Err(ConfigFault::Recipe { found, known });
        }
        recipe.body.read().map_err(ConfigFault::Unreadable)
    }

    /// Gives the recipe of the write of the file.
    pub(super) const fn write(&self) -> &Recipe {
        &self.file
    }

    /// Gives the write of the file.
    pub(super) fn file(&self, completion: Option<Completion>) -> Effect {
        Effect {
            recipe: self.file.clone(),
            completion,
        }
    }

    /// Names the keys as targets.
    pub(super) fn targets(&self) -> Result<Vec<Target>, ConfigFault> {
        let targets = self.keys.iter().map(|key| target(&self.path, key));
        targets.collect()
    }
}

/// Says where a key is: in its file, a part for each segment, written as people write it.
pub(super) fn target(path: &TargetPath, key: &KeyPath) -> Result<Target, ConfigFault> {
    let unusable = |_| {
        let path = format!("{path}:{key}");
        ConfigFault::File(FileError::Unusable { path })
    };
    let parts = key.segments().iter();
    let mut parts = parts.map(|segment| KeyPath::new(vec![segment.clone()]).to_string());
    let inside = parts.try_fold(Key::from(path.clone()), |at, part| at.part(&part));
    Ok(Target::new(inside.map_err(unusable)?, Reach::Node))
}
