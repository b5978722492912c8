//! Bringing back what is kept on another mount than where it belongs: a rename would fail there, so it is copied.
//!
//! It stays in its slot, which goes with its operation.

use backout_model::TargetPath;

use super::obtain::Obtained;
use crate::file::before_image::{digest_of, link_target};
use crate::file::compare::Current;
use crate::file::error::FileError;
use crate::file::kept::{can_be_renamed, why_not_renamed};
use crate::file::recipe::{Image, Kind};
use crate::file::stage::Material;
use crate::file::sys::bytes;

/// Takes a copy of what is in a slot, where it cannot be renamed. The inner error says why it cannot be had.
pub(super) fn carried(
    path: &TargetPath,
    obtained: Obtained,
) -> Result<Result<Obtained, String>, FileError> {
    let Image::Kept {
        slot, node, meta, ..
    } = &obtained.image
    else {
        return Ok(Ok(obtained));
    };
    if can_be_renamed(slot, path) {
        return Ok(Ok(obtained));
    }
    let found = Current::at(&slot.path())?;
    let (Some(place), Some(now)) = (&found.place, found.node) else {
        return Ok(Ok(obtained));
    };
    let mut meta = meta.clone();
    meta.times = meta.times.or(Some(now.times));
    let (image, material) = match node {
        Kind::Directory => return Ok(Err(why_not_renamed(path))),
        Kind::File => {
            let (digest, size) = digest_of(place)?;
            let image = Image::File {
                digest,
                size,
                stored: false,
                meta,
                without: None,
                holes: bytes::holes(&place.read()?, size),
            };
            (image, Material::CopyOf(slot.path(), now.identity))
        }
        Kind::Symlink => {
            let to = link_target(place)?;
            (Image::Symlink { to, meta }, Material::Image)
        }
        Kind::Fifo | Kind::Socket | Kind::BlockDevice | Kind::CharacterDevice => {
            let (node, device) = (*node, now.device);
            (Image::Special { node, device, meta }, Material::Image)
        }
    };
    Ok(Ok(Obtained {
        image,
        material,
        note: obtained.note,
        is_dressed_anew: obtained.is_dressed_anew,
    }))
}
