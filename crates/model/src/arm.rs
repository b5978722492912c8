//! Arming: the one door between "planned" and "may happen".
//!
//! [`arm`] makes the recipe durable and only then hands out an [`Armed`], which is the only thing a driver
//! applies. Hence a crash leaves "not armed" or "armed, perhaps applied", and never a change without an
//! undo. `Armed` has private fields, no `Clone` and no other constructor (see `tests/compile_fail`).

use crate::ports::{Append, Durability, Entry, NewContent, Staged, StorageError};
use crate::{Event, Intent, OperationId, Recipe};

/// An operation whose recipe is durable: the only thing a driver will apply.
#[derive(Debug)]
#[must_use = "apply it or abandon it"]
pub struct Armed<S = Box<dyn Staged>> {
    id: OperationId,
    recipe: Recipe,
    staged: S,
}

impl<S> Armed<S> {
    /// Names the operation.
    pub const fn id(&self) -> OperationId {
        self.id
    }

    /// Shows the durable recipe.
    pub const fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// Takes what was staged. The permission is used up.
    pub fn into_parts(self) -> (OperationId, Recipe, S) {
        (self.id, self.recipe, self.staged)
    }
}

/// Makes the intent and the images it needs durable, in one step, and gives the permission to apply.
pub fn arm<J: Append + ?Sized, S>(
    journal: &J,
    intent: Intent,
    contents: Vec<NewContent>,
    staged: S,
) -> Result<Armed<S>, StorageError> {
    let (id, recipe) = (intent.id, intent.recipe.clone());
    let entry = Entry {
        events: vec![Event::Intent(Box::new(intent))],
        contents,
    };
    journal.append(&entry, Durability::Power)?;
    Ok(Armed { id, recipe, staged })
}
