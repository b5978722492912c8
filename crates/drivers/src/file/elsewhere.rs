//! The same bytes in another place: where what was kept for a way back is gone or damaged, something else may have them.
//!
//! A digest decides. What is found is read again by whoever takes it, so that nothing else than those bytes comes back.

use std::fs::File;
use std::io;

use backout_files::Lacking;
use backout_model::ports::ContentsError;
use backout_model::{Digest, Effect, Slot, TargetPath};

use super::before_image::digest_of;
use super::compare::Current;
use super::driver::FileDriver;
use super::error::FileError;
use super::kept::look_into;
use super::recipe::{Change, FileRecipe, Image, Kind};
use super::reversed::lacks;

impl FileDriver {
    /// Tells what taking an effect back lacks.
    pub(super) fn lacks(&self, effect: &Effect) -> Result<Lacking, FileError> {
        let recipe = FileRecipe::decode(&effect.recipe)?;
        let mut lacking = Lacking::default();
        for change in &recipe.changes {
            match change {
                Change::Set { path, before, .. } => self.needs(path, before, &mut lacking)?,
                Change::Move { to, replaced, .. } => self.needs(to, replaced, &mut lacking)?,
                Change::Rewrite { path, before, .. } => {
                    if before.stored && !self.is_sound(path, &before.digest)? {
                        lacking.digests.push(before.digest);
                    }
                }
                Change::Retouch { .. } => {}
            }
        }
        lacking.digests.sort_unstable();
        lacking.digests.dedup();
        Ok(lacking)
    }

    /// Notes what an image needs and cannot be had.
    fn needs(
        &self,
        path: &TargetPath,
        image: &Image,
        lacking: &mut Lacking,
    ) -> Result<(), FileError> {
        let (digest, slot) = match image {
            Image::File {
                digest,
                stored: true,
                ..
            } => (Some(*digest), None),
            Image::Kept { slot, .. } => (image.digest(), Some(slot)),
            Image::Linked {
                copy: Some(copy), ..
            } => (copy.image().digest(), None),
            Image::File { stored: false, .. } | Image::Unkept { .. } => {
                lacking.unkept = Some(path.clone());
                return Ok(());
            }
            Image::Absent
            | Image::Symlink { .. }
            | Image::Directory { .. }
            | Image::Special { .. }
            | Image::Linked { .. } => return Ok(()),
        };
        if self.is_in(slot)? {
            return Ok(());
        }
        match digest {
            None => lacking.unknown = Some(path.clone()),
            Some(digest) if !self.is_sound(path, &digest)? => lacking.digests.push(digest),
            Some(_) => {}
        }
        Ok(())
    }

    fn is_in(&self, slot: Option<&Slot>) -> Result<bool, FileError> {
        let found = slot.map(|slot| look_into(self.context(), slot));
        Ok(found.transpose()?.is_some_and(|found| found.node.is_some()))
    }

    /// Tells whether a content can be read to its end and is what its name says.
    fn is_sound(&self, path: &TargetPath, digest: &Digest) -> Result<bool, FileError> {
        let contents = &self.context().contents;
        match contents.open(digest) {
            Ok(mut content) => Ok(io::copy(&mut content, &mut io::sink()).is_ok()),
            Err(ContentsError::Outside { .. }) => {
                Ok(lacks(self.context(), path, digest)?.is_none())
            }
            Err(
                ContentsError::Missing { .. }
                | ContentsError::Damaged { .. }
                | ContentsError::Store(_),
            ) => Ok(false),
        }
    }

    /// Opens a file with these bytes that an effect knows of: one that it keeps, or one that it wrote or replaced and that is
    /// as it was then.
    pub(super) fn has_elsewhere(
        &self,
        effect: &Effect,
        digest: &Digest,
    ) -> Result<Option<File>, FileError> {
        let recipe = FileRecipe::decode(&effect.recipe)?;
        for change in &recipe.changes {
            for image in change.images() {
                if image.digest() != Some(*digest) {
                    continue;
                }
                let kept = image.slot().map(|slot| look_into(self.context(), slot));
                for found in kept.into_iter().chain([Current::at(change.path())]) {
                    // What cannot be looked at has nothing for us.
                    if let Ok(Current {
                        place: Some(place),
                        node: Some(node),
                        ..
                    }) = found
                        && node.kind == Kind::File
                        && digest_of(&place).is_ok_and(|(found, _)| found == *digest)
                    {
                        return place.read().map(Some);
                    }
                }
            }
        }
        Ok(None)
    }
}
