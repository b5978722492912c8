//! Directories that somebody removed, made again so that what is forced back has a place; that they go again with it; and
//! what to say where they cannot be.

use std::collections::HashSet;

use backout_model::{Key, TargetPath};

use super::prepare::Undo;
use crate::file::compare::Current;
use crate::file::error::FileError;
use crate::file::execute::{Seen, Step};
use crate::file::recipe::{Change, FileCompletion, FileRecipe, Image};
use crate::file::stage::Material;
use crate::file::sys::{Dir, inherit};

impl Undo<'_> {
    /// Plans the missing directories above a name. Gives false if something else has one of their names.
    pub(super) fn make_home(&mut self, path: &TargetPath) -> Result<bool, FileError> {
        let mut missing = Vec::new();
        let mut near = None;
        for above in path.ancestors() {
            match Dir::open(&above) {
                Ok(dir) => {
                    near = Some(dir);
                    break;
                }
                Err(FileError::NotFound { .. }) => missing.push(above),
                Err(FileError::NotADirectory { .. } | FileError::ThroughSymlink { .. }) => {
                    return Ok(false);
                }
                Err(error) => return Err(error),
            }
        }
        let Some(near) = near else {
            return Ok(false);
        };
        let mut parent = inherit::of_dir(&near)?;
        for path in missing.into_iter().rev() {
            if self.has_directory(&Current::at(&path.join("x".as_ref()))?) {
                continue;
            }
            let meta = inherit::foresee(&parent, None, true);
            parent = meta.clone();
            self.keeper
                .notes
                .push(format!("the directory `{path}` was gone and is made again"));
            let change = Change::Set {
                path,
                before: Image::Absent,
                after: Image::Directory { meta },
            };
            self.steps.push(Step::new(0, change, Material::Image));
        }
        Ok(true)
    }

    /// Plans to take the directories away again that the effect only made for what leaves them now, if nothing else is there.
    pub(super) fn leave_homes(
        &mut self,
        recipe: &FileRecipe,
        completion: &FileCompletion,
        chosen: &HashSet<usize>,
    ) -> Result<(), FileError> {
        let Some(homes) = self.how.homes else {
            return Ok(());
        };
        let leaving = chosen.iter().filter_map(|&at| recipe.changes.get(at));
        let left: HashSet<TargetPath> = leaving
            .flat_map(|change| change.path().ancestors())
            .collect();
        for (at, change) in recipe.changes.iter().enumerate().rev() {
            let Change::Set { path, after, .. } = change else {
                continue;
            };
            let is_home = change.is_new_directory() && homes.contains(&Key::from(path.clone()));
            if !is_home || chosen.contains(&at) || !left.contains(path) {
                continue;
            }
            let current = Current::at(path)?;
            let Some(place) = &current.place else {
                continue;
            };
            let is_as_made = current.differs(after, completion.identity(at))?.is_none();
            if !is_as_made || !self.left(path, place)?.is_empty() {
                continue;
            }
            self.keeper.notes.push(format!(
                "the directory `{path}`, which was made for it, is gone again"
            ));
            let (before, node) = self.keeper.keep(place)?;
            let change = Change::Set {
                path: path.clone(),
                before,
                after: Image::Absent,
            };
            self.steps.push(Step {
                seen: Seen::There(node),
                ..Step::new(0, change, Material::Image)
            });
        }
        Ok(())
    }
}

/// Says that a name cannot come back because its directory is not there, and what has its place.
pub(crate) fn without_directory(path: &TargetPath) -> String {
    let mut above: Vec<_> = path.ancestors().collect();
    while let Some(name) = above.pop() {
        match name.as_path().symlink_metadata() {
            Ok(found) if !found.is_dir() => return not_a_directory(&name, found.is_symlink()),
            Ok(_) => {}
            Err(_) => break,
        }
    }
    let parent = path.parent().unwrap_or_else(|| path.clone());
    format!("its directory `{parent}` is gone")
}

fn not_a_directory(path: &TargetPath, is_link: bool) -> String {
    let now = if is_link {
        "a symbolic link now"
    } else {
        "not a directory any more"
    };
    format!("`{path}` is {now}: move it away, and the directory can be made again")
}
