//! Kept inodes that no note tells of: the log lost them, the depot did not.
//!
//! A log is not synced before each call goes on, so a loss of power can take notes whose removals the disk has. The name of a
//! slot says what the inode was called: that, and the inode itself, is all that a note would tell. What cannot be told is
//! a doubt, and the inode stays where it is.

use std::collections::HashSet;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use backout_model::{OperationId, Slot, TargetPath};

use super::log::Note;
use super::tracker::{Known, Tracker};
use crate::file::before_image::meta_of;
use crate::file::context::FileContext;
use crate::file::error::FileError;
use crate::file::recipe::{Image, Kind, Meta};
use crate::file::sys::Dir;

/// The longest name that file systems take.
const NAME_BYTES_MAX: usize = 255;

/// What stands before the path of an inode that lost its name, and before that of a copy.
const MOVED: char = '~';
const COPIED: char = '+';

/// Names a slot: the operation, a number, and the path of what is kept, if there is room for it.
pub(super) fn slot_name(id: OperationId, number: usize, path: &Path) -> String {
    let short = format!("{id}-{number}");
    match escaped(path.as_os_str().as_bytes()) {
        Some(path) if short.len() + 1 + path.len() <= NAME_BYTES_MAX => {
            format!("{short}{MOVED}{path}")
        }
        _ => short,
    }
}

/// Names the slot of a copy: nobody knows whether the disk has all of it.
pub(super) fn as_copy(slot: Slot) -> Slot {
    Slot {
        name: slot
            .name
            .replacen(MOVED, COPIED.encode_utf8(&mut [0; 4]), 1),
        ..slot
    }
}

/// Writes a path as one name.
fn escaped(path: &[u8]) -> Option<String> {
    let is_text = std::str::from_utf8(path).is_ok();
    let mut name = Vec::with_capacity(path.len());
    for byte in path {
        match byte {
            b'/' => name.push(b'\\'),
            b'%' | b'\\' | 0..=0x1f | 0x7f => name.extend(format!("%{byte:02x}").bytes()),
            0x80.. if !is_text => name.extend(format!("%{byte:02x}").bytes()),
            byte => name.push(*byte),
        }
    }
    String::from_utf8(name).ok()
}

/// Reads the path in the name of a slot, and whether the inode had it itself.
fn path_in(name: &str) -> Option<(TargetPath, bool)> {
    let at = name.find([MOVED, COPIED])?;
    let (_, marked) = name.split_at_checked(at)?;
    let is_moved = marked.starts_with(MOVED);
    let mut path = Vec::with_capacity(marked.len());
    let mut bytes = marked.bytes().skip(1);
    while let Some(byte) = bytes.next() {
        path.push(match byte {
            b'\\' => b'/',
            b'%' => {
                let digits = [bytes.next()?, bytes.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    let path = PathBuf::from(std::ffi::OsString::from_vec(path));
    Some((TargetPath::new(path).ok()?, is_moved))
}

/// Gives the slot that a note tells of.
pub(super) fn slot_in(note: &Note) -> Option<&Slot> {
    let (Note::Whole { image, .. } | Note::Shelved { image, .. }) = note else {
        return None;
    };
    image.slot()
}

/// Finds what an operation kept without a note. What its name tells is learnt; the rest is said as doubts. A copy is made
/// before its note: if nothing `is_lost`, what it was to keep was never touched.
pub(super) fn find(
    context: &FileContext,
    id: OperationId,
    (noted, is_lost): (&HashSet<String>, bool),
    tracker: &mut Tracker,
) -> Result<Vec<String>, FileError> {
    let settled = format!("{id}-settled-");
    let mut doubts = Vec::new();
    for slot in context.depots.slots_of(id) {
        if noted.contains(&slot.name) || slot.name.starts_with(&settled) {
            continue;
        }
        let kept = slot.path();
        let found = path_in(&slot.name);
        if !is_lost && !matches!(found, Some((_, true))) {
            continue;
        }
        if let Some((path, true)) = &found
            && let Some(directories) = learn(slot, path, tracker)?
        {
            doubts.push(format!(
                "its log lost the note of `{path}`; it was found as `{kept}` and comes back with an undo"
            ));
            doubts.extend(directories.iter().map(|directory| {
                format!("what rights `{directory}` had is lost; an undo makes it like the directory above")
            }));
            continue;
        }
        let what = found.map_or_else(
            || "something".to_owned(),
            |(path, is_moved)| {
                let what = if is_moved { "what was" } else { "a copy of" };
                format!("{what} `{path}`")
            },
        );
        doubts.push(format!(
            "its log lost a note, and {what} is kept as `{kept}`; copy it from there before the operation expires"
        ));
    }
    Ok(doubts)
}

/// Learns of an inode what its note would have told. Gives the directories that went with it and of which nothing is known;
/// none at all if something else is known of its name.
fn learn(
    slot: Slot,
    path: &TargetPath,
    tracker: &mut Tracker,
) -> Result<Option<Vec<TargetPath>>, FileError> {
    let Some(origin) = tracker.origin(path) else {
        return Ok(None);
    };
    let dressed = match tracker.known.get(&origin) {
        Some(Known::Absent | Known::Whole(_)) => return Ok(None),
        Some(Known::Dressed { meta, .. }) => Some(meta.clone()),
        None => None,
    };
    let place = Dir::of(&slot.path())?;
    let Some(node) = place.node()? else {
        return Ok(None);
    };
    let own = meta_of(&place, &node)?;
    let image = Image::Kept {
        slot,
        node: node.kind,
        identity: node.identity,
        meta: dressed.unwrap_or(own),
        copy: None,
        entries: None,
        digest: None,
    };
    let directories = directories_above(&origin, tracker)?;
    let written = None;
    let mut lost = Vec::new();
    for (path, meta) in directories {
        lost.push(path.clone());
        let image = Image::Directory { meta };
        tracker.apply(
            Note::Whole {
                path,
                image,
                written,
            },
            Vec::new(),
        );
    }
    let path = origin;
    tracker.apply(
        Note::Whole {
            path,
            image,
            written,
        },
        Vec::new(),
    );
    Ok(Some(lost))
}

/// Finds the directories above a name that are gone without a note, each with the rights of the one that is there.
fn directories_above(
    path: &TargetPath,
    tracker: &Tracker,
) -> Result<Vec<(TargetPath, Meta)>, FileError> {
    let mut gone = Vec::new();
    for directory in path.ancestors() {
        if tracker.known.contains_key(&directory) {
            break;
        }
        let Ok(place) = Dir::of(&directory) else {
            gone.push(directory);
            continue;
        };
        match place.node()? {
            Some(node) if node.kind == Kind::Directory => {
                let meta = meta_of(&place, &node)?;
                let like = Meta {
                    times: None,
                    xattrs: Vec::new(),
                    ..meta
                };
                return Ok(gone.into_iter().map(|path| (path, like.clone())).collect());
            }
            Some(_) => break,
            None => gone.push(directory),
        }
    }
    Ok(Vec::new())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn a_slot_tells_the_path_of_what_is_in_it() {
        let id = OperationId::from_bits(7);
        for path in [
            &b"/a/b"[..],
            b"/with space/100% \\ ~+\n",
            "/ü/名".as_bytes(),
            b"/\xff\xfe/x",
        ] {
            let path = Path::new(OsStr::from_bytes(path));
            let name = slot_name(id, 12, path);
            assert!(name.starts_with(&format!("{id}-12~")) && !name.contains('/'));
            let told = TargetPath::new(path).unwrap();
            assert_eq!(path_in(&name), Some((told.clone(), true)), "{name}");
            let depot = TargetPath::new("/depot").unwrap();
            let copy = as_copy(Slot { depot, name });
            assert_eq!(path_in(&copy.name), Some((told, false)));
        }
        let long = PathBuf::from(format!("/{}", "x".repeat(250)));
        assert_eq!(slot_name(id, 1, &long), format!("{id}-1"));
        assert_eq!(path_in(&format!("{id}-1")), None);
    }
}
