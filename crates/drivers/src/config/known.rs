//! What is recorded of a change of keys, and how the keys stand now.

use backout_config::{ConfigError, Document, KeyChange};
use backout_model::ports::{ContentsError, Examined, OnConflict, State, ValueChange};
use backout_model::{Effect, Target};

use super::ConfigDriver;
use super::current::{Looked, NoText, look};
use super::error::ConfigFault;
use super::recipe::ConfigRecipe;
use super::request::{ConfigEdit, ConfigRequest, Was};
use super::way::{Fate, way_back};
use crate::file::FileError;
use crate::file::locks::Locks;
use crate::file::recipe::FileRecipe;

/// What a recorded change of keys is, read.
pub(super) struct Known {
    pub(super) recipe: ConfigRecipe,
    /// The write of the file.
    pub(super) file: Effect,
    pub(super) targets: Vec<Target>,
    /// What the keys were and became; the error says why nobody knows any more.
    pub(super) changes: Result<Vec<KeyChange>, String>,
}

impl ConfigDriver {
    /// Reads what is recorded.
    pub(super) fn known(&self, effect: &Effect) -> Result<Known, ConfigFault> {
        let recipe = ConfigRecipe::of(effect)?;
        let changes = match self.files.context().contents.read(&recipe.values) {
            Ok(values) => Ok(serde_json::from_slice(&values).map_err(ConfigFault::Unreadable)?),
            Err(error @ (ContentsError::Missing { .. } | ContentsError::Damaged { .. })) => {
                Err(error.to_string())
            }
            Err(error @ (ContentsError::Outside { .. } | ContentsError::Store(_))) => {
                return Err(error.into());
            }
        };
        Ok(Known {
            file: recipe.file(effect.completion.clone()),
            targets: recipe.targets()?,
            recipe,
            changes,
        })
    }

    /// Tells how each key stands.
    pub(super) fn looked_at(&self, effect: &Effect) -> Result<Vec<Examined>, ConfigFault> {
        let known = self.known(effect)?;
        let now = read(&known)?;
        let write = FileRecipe::decode(&known.file.recipe)?;
        let mut locks = Locks::of(write.own_directories());
        let locked = write.changes.iter().find_map(|change| locks.why(change));
        let barred = write.changes.iter().find_map(|change| locks.barred(change));
        let fates: Vec<Fate> = match (&known.changes, &now) {
            (Ok(changes), Ok(now)) => {
                let text = &now.text;
                way_back(
                    known.recipe.format,
                    text,
                    changes,
                    |_| true,
                    OnConflict::Refuse,
                )
                .fates
            }
            (Err(why), _) | (_, Err(why)) => {
                vec![Fate::Stays(why.clone()); known.targets.len()]
            }
        };
        let each = std::iter::zip(&known.targets, fates).enumerate();
        let each = each.map(|(change, (target, fate))| {
            let state = match (fate, &locked) {
                (Fate::Already | Fate::NotMeant, _) => State::Before,
                (Fate::Back | Fate::Merged | Fate::Nearly(_), None) => State::After,
                (Fate::Back | Fate::Merged | Fate::Nearly(_), Some(why)) => {
                    State::Other { why: why.clone() }
                }
                (Fate::Stays(why) | Fate::Forced(why), _) => State::Other { why },
            };
            let changes = known.changes.as_ref().ok();
            let of_it = changes.and_then(|changes| changes.get(change));
            Examined {
                barred: barred.clone().filter(|_| state == State::After),
                lost: known.changes.as_ref().err().cloned(),
                goes: of_it.is_some_and(|of_it| of_it.before.is_none()),
                ..Examined::new(change, target.clone(), state)
            }
        });
        Ok(each.collect())
    }

    /// Makes the request that makes keys of an effect what they were, or became.
    pub(super) fn restored(
        &self,
        effect: &Effect,
        targets: &[Target],
        is_after: bool,
        summary: String,
    ) -> Result<ConfigRequest, ConfigFault> {
        let known = self.known(effect)?;
        let path = &known.recipe.path;
        let changes = known.changes.map_err(|why| FileError::Lost {
            path: path.to_string(),
            why,
        })?;
        let meant = std::iter::zip(&known.targets, changes);
        let meant = meant.filter(|(target, _)| targets.contains(target));
        let keys = meant.map(|(_, change)| {
            let piece = if is_after {
                change.after
            } else {
                change.before
            };
            Was {
                key: change.key,
                value: piece.map(|piece| (piece.raw, piece.value)),
            }
        });
        let keys = keys.collect();
        Ok(ConfigRequest {
            path: path.as_path().to_owned(),
            format: Some(known.recipe.format),
            edit: ConfigEdit::Restore { summary, keys },
        })
    }

    /// Tells each key with its values: before, after, and now.
    pub(super) fn told(&self, effect: &Effect) -> Result<Vec<ValueChange>, ConfigFault> {
        let known = self.known(effect)?;
        let changes = known.changes.as_ref().map_err(|why| ConfigFault::Config {
            path: known.recipe.path.to_string(),
            cause: ConfigError::BadValue { what: why.clone() },
        })?;
        let looked = read(&known)?;
        let now = |change: &KeyChange| {
            let text = &looked.as_ref().map_err(String::clone)?.text;
            let document = Document::parse(known.recipe.format, text);
            let document = document.map_err(|error| error.to_string())?;
            match document.get(&change.key) {
                Ok(found) => Ok(found.map(|found| found.raw.to_owned())),
                // What would hold the key is something else now, so the key is not there.
                Err(ConfigError::WrongKind { .. } | ConfigError::NoIndex { .. }) => Ok(None),
                Err(error) => Err(error.to_string()),
            }
        };
        let each = std::iter::zip(&known.targets, changes);
        let each = each.map(|(target, change)| ValueChange {
            key: target.key().clone(),
            before: change.before.as_ref().map(|piece| piece.raw.clone()),
            after: change.after.as_ref().map(|piece| piece.raw.clone()),
            now: now(change),
        });
        Ok(each.collect())
    }
}

/// A file that was read, as text.
pub(super) struct Text {
    pub(super) looked: Looked,
    pub(super) text: String,
}

/// Reads the file of a recipe. The inner error says why its keys cannot be told.
pub(super) fn read(known: &Known) -> Result<Result<Text, String>, ConfigFault> {
    let looked = match look(&known.recipe.path)? {
        Ok(looked) => looked,
        Err(NoText::NoFile(why)) => return Ok(Err(format!("the file: {why}"))),
        Err(NoText::Config(error)) => return Ok(Err(error.to_string())),
    };
    match Document::from_bytes(known.recipe.format, &looked.bytes) {
        Ok(document) => Ok(Ok(Text {
            text: document.text().to_owned(),
            looked,
        })),
        Err(error) => Ok(Err(format!("the file cannot be read any more: {error}"))),
    }
}
