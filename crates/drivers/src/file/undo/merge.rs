//! Taking one change out of a text and keeping everybody else's.

use std::io::Read as _;

use backout_files::said::merged;
use backout_model::TargetPath;

use crate::file::compare::Current;
use crate::file::context::FileContext;
use crate::file::error::{FileError, Naming as _};
use crate::file::kept::look_into;
use crate::file::recipe::{Image, Kind};
use crate::file::reversed;

/// The largest text that is merged.
const MERGE_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Merges the undo of a change into what is there now. The inner error says why it cannot be done.
pub(super) fn merge(
    context: &FileContext,
    current: &Current,
    before: &Image,
    after: &Image,
) -> Result<Result<Vec<u8>, String>, FileError> {
    let (Some(place), Some(node)) = (&current.place, &current.node) else {
        return Ok(Err("it is gone".to_owned()));
    };
    if node.kind != Kind::File || node.identity.size > MERGE_BYTES_MAX {
        return Ok(Err(
            "what is there now is not a text that could be merged".to_owned()
        ));
    }
    let (Some(base), Some(theirs)) = (
        text(context, &current.path, after)?,
        text(context, &current.path, before)?,
    ) else {
        return Ok(Err(
            "the texts before and after are not both at hand".to_owned()
        ));
    };
    let mut ours = Vec::new();
    place
        .read()?
        .read_to_end(&mut ours)
        .naming(&current.path, "read")?;
    Ok(merged(&base, &ours, &theirs))
}

fn text(
    context: &FileContext,
    path: &TargetPath,
    image: &Image,
) -> Result<Option<Vec<u8>>, FileError> {
    match image {
        Image::File {
            digest,
            size,
            stored: true,
            ..
        } if *size <= MERGE_BYTES_MAX => match reversed::read(context, path, digest) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(FileError::Lost { .. }) => Ok(None),
            Err(error) => Err(error),
        },
        Image::Kept {
            copy: Some(digest),
            identity,
            ..
        } if identity.size <= MERGE_BYTES_MAX => Ok(Some(context.contents.read(digest)?)),
        Image::Kept {
            slot,
            node: Kind::File,
            identity,
            ..
        } if identity.size <= MERGE_BYTES_MAX => {
            let kept = look_into(context, slot)?;
            let mut bytes = Vec::new();
            match (&kept.place, &kept.node) {
                (Some(place), Some(node)) if node.is_kept(Kind::File, identity) => {
                    place
                        .read()?
                        .read_to_end(&mut bytes)
                        .naming(&slot.path(), "read")?;
                    Ok(Some(bytes))
                }
                (_, _) => Ok(None),
            }
        }
        Image::Absent
        | Image::File { .. }
        | Image::Symlink { .. }
        | Image::Directory { .. }
        | Image::Special { .. }
        | Image::Linked { .. }
        | Image::Kept { .. }
        | Image::Unkept { .. } => Ok(None),
    }
}
