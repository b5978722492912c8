//! What a command made of texts that were there: kept beside what they were, so that its change can be taken out of them later,
//! although somebody edited them since.
//!
//! Good to have, and no part of the undo: a file that is large, binary or one of very many has only its name kept, and an undo
//! that cannot merge says so.

use backout_model::ports::NewContent;
use backout_model::{Digest, TargetPath};

use super::settle::Settling;
use crate::file::before_image::{INLINE_BYTES_MAX, INLINE_COUNT_USUAL, INLINE_TOTAL_USUAL};
use crate::file::recipe::{Change, Image, Kind};
use crate::file::sys::bytes;

impl Settling<'_> {
    /// Keeps the texts that the changes left, as far as the record stays small.
    pub(super) fn keep_texts(&mut self, changes: &mut [Change]) {
        let (mut count, mut total) = (0, 0);
        for change in changes {
            let Change::Set {
                path,
                before,
                after:
                    Image::File {
                        digest,
                        size,
                        stored,
                        ..
                    },
            } = change
            else {
                continue;
            };
            let is_usual = *size <= INLINE_BYTES_MAX && total + *size <= INLINE_TOTAL_USUAL;
            if *stored || !is_file(before) || !is_usual || count == INLINE_COUNT_USUAL {
                continue;
            }
            if let Some(text) = self.text(path, digest, *size) {
                (*stored, count, total) = (true, count + 1, total + *size);
                self.contents.push(text);
            }
        }
    }

    /// Reads a text, if it is still the one that was seen.
    fn text(&mut self, path: &TargetPath, digest: &Digest, size: u64) -> Option<NewContent> {
        let place = self.place(path).ok().flatten()?;
        let file = place.read().ok()?;
        let text = NewContent::of(bytes::read_seen(&file, size).ok()?);
        let is_it = text.digest == *digest && !text.bytes.contains(&0);
        (is_it && bytes::holes(&file, size).is_empty()).then_some(text)
    }
}

/// Tells whether it is a file of which the bytes are kept.
fn is_file(before: &Image) -> bool {
    match before {
        Image::File { stored, .. } => *stored,
        Image::Kept { node, .. } => *node == Kind::File,
        Image::Absent
        | Image::Symlink { .. }
        | Image::Directory { .. }
        | Image::Special { .. }
        | Image::Linked { .. }
        | Image::Unkept { .. } => false,
    }
}
