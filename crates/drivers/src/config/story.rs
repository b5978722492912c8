//! What happened in one file, key by key, without anybody else: from that follows what it would be without one of the operations.

use backout_model::ports::{Past, PastRole};
use backout_model::{Digest, Effect, OperationId, TargetPath};

use super::error::ConfigFault;
use super::recipe::{CONFIG, ConfigRecipe};

/// The operations since the first one that is taken back.
pub(super) struct Story<'p> {
    /// The recipe of the first of them.
    pub(super) first: ConfigRecipe,
    /// The digest of the text before it.
    before: Digest,
    /// Those after it that stay, the oldest first.
    pub(super) since: Vec<&'p Effect>,
}

impl<'p> Story<'p> {
    /// Reads the story back from the text that is there. None if somebody else wrote, or a part of an operation is not told.
    pub(super) fn of(
        path: &TargetPath,
        past: &'p [Past],
        now: &str,
    ) -> Result<Option<Self>, ConfigFault> {
        let mut at = Digest::of(now.as_bytes());
        let mut told: Vec<(&Past, ConfigRecipe)> = Vec::new();
        for it in past.iter().rev() {
            if it.effect.recipe.driver != CONFIG {
                break;
            }
            let recipe = ConfigRecipe::of(&it.effect)?;
            let Some((before, after)) = recipe.texts.filter(|_| recipe.path == *path) else {
                break;
            };
            if after != at {
                break;
            }
            at = before;
            told.push((it, recipe));
        }
        told.reverse();
        let is_told = |id: OperationId| told.iter().any(|(it, _)| it.id == id);
        let is_clear = told.iter().all(|(it, _)| match it.role {
            PastRole::Way(of) => is_told(of),
            PastRole::Partly => false,
            PastRole::Itself | PastRole::Stands | PastRole::Undone => true,
        });
        let is_itself = |(it, _): &(&Past, ConfigRecipe)| it.role == PastRole::Itself;
        let goes = |(it, _): &(&Past, ConfigRecipe)| {
            matches!(it.role, PastRole::Itself | PastRole::Undone)
        };
        let (Some(first), true) = (
            told.iter().position(goes),
            is_clear && told.iter().any(is_itself),
        ) else {
            return Ok(None);
        };
        let mut rest = told.into_iter().skip(first);
        let Some((_, first)) = rest.next() else {
            return Ok(None);
        };
        let Some((before, _)) = first.texts else {
            return Ok(None);
        };
        let stays = |(it, _): &(&Past, ConfigRecipe)| it.role == PastRole::Stands;
        let since = rest.filter(stays).map(|(it, _)| &it.effect).collect();
        Ok(Some(Self {
            first,
            before,
            since,
        }))
    }

    /// Gives the text before the first, if these are its bytes.
    pub(super) fn text(&self, bytes: Vec<u8>) -> Option<String> {
        let is_it = Digest::of(&bytes) == self.before;
        String::from_utf8(bytes).ok().filter(|_| is_it)
    }
}
