//! Clearing away the temporary names that a crash left behind, found by the recipe alone.
//!
//! A kept inode that stands under a temporary name goes back into its slot; everything else under such a
//! name is a copy of something stored, and goes away. In a half-built directory only the names that the
//! recipe lists are removed: what anybody else put there stays.

use backout_model::Slot;

use super::temporary_paths;
use crate::file::error::FileError;
use crate::file::recipe::{Change, FileRecipe, Identity, Image, Kind};
use crate::file::sys::{Dir, Place, names};
use crate::file::tools::Tools;

/// Clears the temporary names of an operation.
pub(crate) fn tidy(tools: &Tools, recipe: &FileRecipe) -> Result<(), FileError> {
    let numbered = recipe.changes.iter().enumerate();
    let stages = temporary_paths(recipe.operation, numbered);
    // Entries of half-built directories come after them in the recipe: backwards, they go first.
    for (change, stage) in std::iter::zip(&recipe.changes, &stages).rev() {
        let Change::Set { before, after, .. } = change else { continue };
        let Some(place) = open(Dir::of(stage))? else { continue };
        let mut old = place.name.clone();
        old.push("-old");
        for place in [place.dir.place(&old), place] {
            clear(&place, [before, after])?;
            tools.reach("file.tidied")?;
        }
    }
    Ok(())
}

fn clear(place: &Place, images: [&Image; 2]) -> Result<(), FileError> {
    let Some(node) = place.node()? else { return Ok(()) };
    for (slot, kind, identity) in images.into_iter().filter_map(kept) {
        if node.is_kept(kind, identity) {
            return match open(Dir::of(&slot.path()))? {
                Some(home) if home.node()?.is_none() => names::rename_to_free(place, &home),
                // Its slot is taken: it is not ours to decide which of the two is right.
                Some(_) | None => Ok(()),
            };
        }
    }
    if node.kind != Kind::Directory {
        return names::unlink(place);
    }
    match names::rmdir(place) {
        Err(FileError::NotEmpty { .. }) => Ok(()),
        other => other,
    }
}

fn kept(image: &Image) -> Option<(&Slot, Kind, &Identity)> {
    match image {
        Image::Kept { slot, node, identity, .. } => Some((slot, *node, identity)),
        Image::Absent
        | Image::File { .. }
        | Image::Symlink { .. }
        | Image::Directory { .. }
        | Image::Special { .. }
        | Image::Linked { .. } => None,
    }
}

/// What is not there needs no clearing.
fn open(found: Result<Place, FileError>) -> Result<Option<Place>, FileError> {
    match found {
        Ok(place) => Ok(Some(place)),
        Err(
            FileError::NotFound { .. }
            | FileError::NotADirectory { .. }
            | FileError::ThroughSymlink { .. },
        ) => Ok(None),
        Err(error) => Err(error),
    }
}
