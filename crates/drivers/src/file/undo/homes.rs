//! Directories that somebody removed, made again so that what is forced back has a place; and what to say where they
//! cannot be.

use backout_model::TargetPath;

use super::prepare::Undo;
use crate::file::compare::Current;
use crate::file::error::FileError;
use crate::file::execute::Step;
use crate::file::recipe::{Change, Image};
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
    match path.parent() {
        Some(parent) => format!("its directory `{parent}` is gone"),
        None => "its directory is gone".to_owned(),
    }
}

fn not_a_directory(path: &TargetPath, is_link: bool) -> String {
    let now = if is_link {
        "a symbolic link now"
    } else {
        "not a directory any more"
    };
    format!("`{path}` is {now}: move it away, and the directory can be made again")
}
