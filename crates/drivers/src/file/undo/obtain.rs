//! Finding what an image needs to be made again, before anything is touched.

use backout_model::{Digest, TargetPath};

use super::stamps::{changed_below, said_of_changed};
use crate::file::before_image::{digest_of, meta_of};
use crate::file::compare::{Current, differs_in_meta};
use crate::file::context::FileContext;
use crate::file::error::FileError;
use crate::file::kept::{WRITTEN_SINCE, look_into, why_empty};
use crate::file::listing::{ENTRIES_MAX, listing};
use crate::file::recipe::{Copied, Holes, Identity, Image, Kind, Numbers};
use crate::file::reversed::lacks;
use crate::file::stage::Material;
use crate::file::sys::{Node, Place};

/// An image that can be made, with what it is made from.
pub(super) struct Obtained {
    pub(super) image: Image,
    pub(super) material: Material,
    pub(super) note: Option<String>,
    /// Whether the note is of the mode and owner that other names were given, and of nothing else.
    pub(super) is_dressed_anew: bool,
}

impl Obtained {
    fn plain(image: &Image, material: Material) -> Self {
        Self {
            image: image.clone(),
            material,
            note: None,
            is_dressed_anew: false,
        }
    }

    fn with_note(mut self, said: String) -> Self {
        self.note = Some(said);
        self
    }
}

/// Checks that an image can be made. The inner error says why it cannot. With `anyway`, a kept inode that
/// changed since is taken as it is; one of `rewritten` changes by the same effect, in place.
pub(super) fn obtain(
    context: &FileContext,
    path: &TargetPath,
    image: &Image,
    anyway: bool,
    rewritten: &Numbers,
) -> Result<Result<Obtained, String>, FileError> {
    match image {
        Image::Absent | Image::Symlink { .. } | Image::Directory { .. } | Image::Special { .. } => {
            Ok(Ok(Obtained::plain(image, Material::Image)))
        }
        Image::Linked { to, identity, copy } => {
            let Some(known) = identity else {
                return Ok(Ok(Obtained::plain(image, Material::Image)));
            };
            if let Some(node) = first_of_both(to, known, copy.as_ref())? {
                let image = Image::Linked {
                    to: to.clone(),
                    identity: Some(node.identity),
                    copy: None,
                };
                return Ok(Ok(Obtained::plain(&image, Material::Image)));
            }
            let why = not_the_first(to);
            let Some(copy) = copy else {
                return Ok(Err(why));
            };
            let said = format!("`{path}` comes back as a file of its own: {why}");
            let obtained = obtain(context, path, &copy.image(), anyway, rewritten)?;
            Ok(obtained.map(|obtained| obtained.with_note(said)))
        }
        Image::File { stored: false, .. } => Ok(Err("its bytes were never stored".to_owned())),
        Image::File {
            digest, without, ..
        } => Ok(match context.contents.has(digest) {
            Ok(true) => match lacks(context, path, digest) {
                Ok(None) => Ok(Obtained {
                    note: without
                        .as_ref()
                        .map(|what| format!("`{path}` comes back without its {what}")),
                    ..Obtained::plain(image, Material::Stored)
                }),
                Ok(Some(why)) => Err(why),
                Err(error) => Err(error.to_string()),
            },
            Ok(false) => Err(format!(
                "its content {} is missing from the store",
                digest.short()
            )),
            Err(error) => Err(error.to_string()),
        }),
        Image::Kept { .. } => obtain_kept(context, path, image, anyway, rewritten),
        Image::Unkept { why, .. } => Ok(Err(format!("it was not kept: {why}"))),
    }
}

/// Finds the file that had both names by the first of them. An undo may have made it anew; it looks the same then.
pub(crate) fn first_of_both(
    to: &TargetPath,
    known: &Identity,
    copy: Option<&Copied>,
) -> Result<Option<Node>, FileError> {
    let current = Current::at(to)?;
    let born = current.place.as_ref().and_then(Place::born);
    // The number of a file that is gone is given to another one.
    let is_another = matches!((copy.and_then(|copy| copy.born.as_ref()), &born), (Some(one), Some(other)) if one != other);
    let is_it = |node: &Node| {
        // No directory has two names, whatever it looks like.
        let is_like = || node.kind != Kind::Directory && node.looks_like(node.kind, known);
        (node.identity.ino == known.ino && !is_another) || is_like()
    };
    Ok(current.node.filter(is_it))
}

/// Says that a second name cannot be made.
pub(crate) fn not_the_first(to: &TargetPath) -> String {
    format!("`{to}` is not the file any more that had both names")
}

fn obtain_kept(
    context: &FileContext,
    path: &TargetPath,
    image: &Image,
    anyway: bool,
    rewritten: &Numbers,
) -> Result<Result<Obtained, String>, FileError> {
    let Image::Kept {
        slot,
        node: kind,
        identity,
        meta,
        copy,
        entries,
        digest,
    } = image
    else {
        return Ok(Err("it was not kept".to_owned()));
    };
    let Current { place, node, .. } = look_into(context, slot)?;
    let is_rewritten = rewritten.contains(&identity.ino);
    let mut doubt = None;
    if let (Some(place), Some(node)) = (&place, node) {
        let found = as_it_was_kept(place, &node, image, is_rewritten)?;
        let is_same = matches!(found, Ok(Found::Itself | Found::Copied));
        if found.is_ok() || (anyway && copy.is_none()) {
            let now = meta_of(place, &node)?;
            // By another of its names somebody may have given it another mode or owner, and that stands.
            let is_dressed_anew =
                node.is_shared && !is_rewritten && differs_in_meta(&now, meta, *kind).is_some();
            let is_itself = matches!(found, Ok(Found::Itself));
            let said = said_of(path, &found, is_dressed_anew);
            let listed = listed(place, &node, *entries)?;
            let is_other_tree = entries.is_some() && listed != *entries;
            let image = Image::Kept {
                slot: slot.clone(),
                node: node.kind,
                identity: node.identity,
                meta: if said.is_none() { meta.clone() } else { now },
                copy: *copy,
                entries: listed,
                digest: digest.filter(|_| is_same),
            };
            return Ok(Ok(Obtained {
                image,
                material: Material::Image,
                note: said.or_else(|| is_other_tree.then(|| said_of_tree(path))),
                is_dressed_anew: is_itself && is_dressed_anew,
            }));
        }
        doubt = found.err();
    }
    // Where the inode is gone, its bytes may have come back into the store from somewhere else.
    let is_stored = |it: &Digest| matches!(context.contents.has(it), Ok(true));
    let stored = digest.as_ref().filter(|it| node.is_none() && is_stored(it));
    let Some(digest) = copy.as_ref().or(stored) else {
        return Ok(Err(doubt.unwrap_or_else(|| why_empty(context, slot))));
    };
    let file = Image::File {
        digest: *digest,
        size: identity.size,
        stored: true,
        meta: meta.clone(),
        without: None,
        holes: Holes::new(),
    };
    let is_away = context.depots.out_of_reach(slot).is_some();
    let said = said_of_copy(path, node.is_some(), is_away);
    let obtained = obtain(context, path, &file, anyway, rewritten)?;
    Ok(obtained.map(|obtained| obtained.with_note(said)))
}

/// Says why what is kept for an image is not taken unless that is asked for, if it is not.
pub(crate) fn doubted(
    context: &FileContext,
    image: &Image,
    rewritten: &Numbers,
) -> Result<Option<String>, FileError> {
    let Image::Kept {
        slot,
        identity,
        copy: None,
        ..
    } = image
    else {
        return Ok(None);
    };
    let Current { place, node, .. } = look_into(context, slot)?;
    let (Some(place), Some(node)) = (&place, node) else {
        return Ok(None);
    };
    let is_rewritten = rewritten.contains(&identity.ino);
    Ok(as_it_was_kept(place, &node, image, is_rewritten)?.err())
}

/// What is in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    /// The inode that was put there.
    Itself,
    /// Another one that has all that is known of it: a state directory that is moved to another file system, or comes out
    /// of a backup, is made anew.
    Copied,
    /// A name of a file that is in the world by another one, and was written there.
    Name,
}

/// Tells whether what is in a slot is what was put there. The inner error says why it may not be.
fn as_it_was_kept(
    place: &Place,
    node: &Node,
    image: &Image,
    is_rewritten: bool,
) -> Result<Result<Found, String>, FileError> {
    let Image::Kept {
        slot,
        node: kind,
        identity,
        copy,
        entries,
        digest,
        ..
    } = image
    else {
        return Ok(Err("it was not kept".to_owned()));
    };
    let has_number = node.identity.ino == identity.ino;
    // A copy exists where other names could change the bytes: then stamps are not proof enough.
    let is_same = match copy {
        _ if is_rewritten => has_number,
        Some(digest) if node.kind == Kind::File => digest_of(place)?.0 == *digest,
        Some(_) | None => node.is_kept(*kind, identity),
    };
    let changed = || changed_below(slot.path().as_path(), identity, ENTRIES_MAX);
    if is_same {
        let changed = (*kind == Kind::Directory).then(changed).flatten();
        return Ok(match changed {
            Some(at) => Err(said_of_changed(&at)),
            None => Ok(Found::Itself),
        });
    }
    if copy.is_none() && node.is_kept_name(*kind, identity) {
        return Ok(Ok(Found::Name));
    }
    if has_number || is_rewritten {
        return Ok(Err(WRITTEN_SINCE.to_owned()));
    }
    let looks_so = node.looks_like(*kind, identity);
    let is_copied = looks_so
        && match (kind, digest) {
            // A tree that nobody listed is believed, if nothing in it is newer than itself.
            (Kind::Directory, _) => match entries {
                Some(_) => listing(place)? == *entries,
                None => changed().is_none(),
            },
            (Kind::File, Some(digest)) => digest_of(place)?.0 == *digest,
            (_, _) => true,
        };
    Ok(if is_copied {
        Ok(Found::Copied)
    } else {
        Err("what was kept was copied or moved since, and may have changed on the way".to_owned())
    })
}

/// Lists a kept tree as it is: by other names of its files, or by what an unfinished redo left in it, it may have become
/// another since it was kept.
fn listed(
    place: &Place,
    node: &Node,
    entries: Option<Digest>,
) -> Result<Option<Digest>, FileError> {
    if node.kind == Kind::Directory {
        listing(place)
    } else {
        Ok(entries)
    }
}

/// Says that a file comes back by a copy of its bytes.
fn said_of_copy(path: &TargetPath, is_there: bool, is_away: bool) -> String {
    let why = match (is_there, is_away) {
        (true, _) => "its other names changed since",
        (false, true) => "the inode that was kept is out of reach",
        (false, false) => "the inode that was kept is gone",
    };
    format!("`{path}` comes back as a file of its own: {why}")
}

/// Says how a kept inode is not quite what it was.
fn said_of(
    path: &TargetPath,
    found: &Result<Found, String>,
    is_dressed_anew: bool,
) -> Option<String> {
    match (found, is_dressed_anew) {
        (Err(why), _) => Some(format!("`{path}` comes back as it is now: {why}")),
        (Ok(Found::Copied), _) => Some(format!(
            "`{path}` comes back as a copy: the state directory was copied or moved to another file system"
        )),
        (Ok(Found::Name), _) => Some(format!(
            "`{path}` is another name of a file that was written since, and holds what that holds"
        )),
        (Ok(Found::Itself), true) => Some(format!(
            "`{path}` has the mode and owner that its other names were given since"
        )),
        (Ok(Found::Itself), false) => None,
    }
}

/// Says that a kept tree is not quite what it was.
fn said_of_tree(path: &TargetPath) -> String {
    format!("what is in `{path}` changed after it was kept, and comes back as it is")
}
