//! What is not as an effect left it: name by name, whatever an undo would make of that.
//!
//! The guard of an undo asks more (is what it needs kept, may it write there) and less (a new file in a directory is in its way only if the
//! directory goes). Here the question is only whether the world is what was recorded.

use std::collections::{HashMap, HashSet};

use backout_model::drift::DriftKind;
use backout_model::ports::{Aspect, Compare, Differing, Looking};
use backout_model::{Digest, Effect, Key, Target, TargetPath, Timestamp};

use super::effect::left_by;
use super::{Body, FileChange, Was, was_there};
use crate::file::any_bytes::AnyBytes;
use crate::file::compare::{BELIEVED_BYTES_MIN, Current};
use crate::file::context::FileContext;
use crate::file::error::FileError;
use crate::file::recipe::{Change, FileCompletion, FileRecipe, Identity, Image, Kind};
use crate::file::sys::{Node, Place};

/// Of a larger file, size and time tell two findings apart.
const MARKED_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Lists the names that are not as an effect left them.
pub(crate) fn differing(
    context: &FileContext,
    effect: &Effect,
    looking: &Looking<'_>,
) -> Result<Vec<Differing>, FileError> {
    let recipe = FileRecipe::decode(&effect.recipe)?;
    let completion = FileCompletion::of(effect)?;
    let left = left_by(context, &recipe, &completion)?;
    let trees = Trees::of(&recipe, &left);
    let identities = identities(&recipe, &completion);
    let now = |change: &FileChange| (looking.now)(&change.path);
    let names: HashSet<TargetPath> = left.iter().filter_map(now).collect();
    let mut all = Vec::new();
    for change in &left {
        context.check_stopped()?;
        let path = &change.path;
        let Some(at) = now(change) else {
            continue;
        };
        let is_dress = change.after.as_ref().is_some_and(Was::is_dress);
        let aspect = if is_dress {
            Aspect::Looks
        } else {
            Aspect::Whole
        };
        let key = Key::from(at.clone());
        let compare = looking.wanted(&key, aspect);
        // Whoever moved a directory tells its name, and not what belongs in it.
        let is_only_listed = compare == Compare::Nothing && at != *path;
        let is_listed = trees.listed.contains(path);
        // Whoever came with a tree of which nobody has a list is what it is.
        if change.is_as_now || compare == Compare::Nothing && !(is_only_listed && is_listed) {
            continue;
        }
        let current = Current::at(&at)?;
        let mut found = Vec::new();
        if !is_only_listed {
            let believed = identities.get(path).copied();
            let compare = by_number(&current, believed, looking, (aspect, compare));
            if compare != Compare::Nothing {
                let told = compared((change, &at), &current, believed, (looking, compare))?;
                found.extend(told);
            }
        }
        let is_right = found.is_empty();
        if is_right && is_listed {
            strangers(&current, &names, looking, &mut found)?;
        }
        if let Some(image) = trees.unlisted.get(path).filter(|_| is_right)
            && looking.wanted(&key, Aspect::Tree) == Compare::All
            && let Some(why) = current.differs(image, None)?
        {
            let target = Target::tree(at.clone());
            let mark = Digest::of(why.as_bytes());
            let expected = "a directory with all that was in it";
            found.push(told((target, DriftKind::Changed), expected, &why, mark));
        }
        // What others added has no name that the effect tells it by.
        let with_name = |it: Differing| Differing {
            told_as: (at != *path && it.kind != DriftKind::Added).then(|| path.clone()),
            ..it
        };
        all.extend(found.into_iter().map(with_name));
    }
    Ok(all)
}

/// Directories whose entries an effect tells of.
struct Trees<'r> {
    /// All that is in it is told name by name.
    listed: HashSet<TargetPath>,
    /// It came as one, and only a digest tells what was in it.
    unlisted: HashMap<&'r TargetPath, &'r Image>,
}

impl<'r> Trees<'r> {
    fn of(recipe: &'r FileRecipe, left: &[FileChange]) -> Self {
        let (mut listed, mut unlisted) = (HashSet::new(), HashMap::new());
        let mut come: Vec<&TargetPath> = Vec::new();
        for change in &recipe.changes {
            let Change::Set {
                path,
                before,
                after,
            } = change
            else {
                continue;
            };
            if let Image::Kept {
                node: Kind::Directory,
                slot,
                entries,
                ..
            } = after
            {
                if recipe.inside.contains_key(&slot.name) {
                    listed.insert(path.clone());
                    come.push(path);
                } else if entries.is_some() {
                    unlisted.insert(path, after);
                }
            } else if after.is_directory() && !before.is_directory() {
                listed.insert(path.clone());
            }
        }
        let is_come = |path: &TargetPath| come.iter().any(|tree| path.is_below(tree));
        let inside = left.iter().filter(|change| {
            let is_directory = change.after.as_ref().is_some_and(Was::is_directory);
            is_directory && is_come(&change.path)
        });
        listed.extend(inside.map(|change| change.path.clone()));
        Self { listed, unlisted }
    }
}

/// Finds which inode an effect left under each name.
fn identities<'r>(
    recipe: &'r FileRecipe,
    completion: &'r FileCompletion,
) -> HashMap<&'r TargetPath, &'r Identity> {
    let changes = recipe.changes.iter().enumerate();
    let known = changes.filter_map(|(index, change)| {
        let left = completion.identity(index)?;
        Some((change.path(), left))
    });
    known.collect()
}

/// Tells which inode an effect left under a name, if it noted that.
pub(crate) fn left_inode(
    effect: &Effect,
    path: &TargetPath,
) -> Result<Option<Identity>, FileError> {
    let recipe = FileRecipe::decode(&effect.recipe)?;
    let completion = FileCompletion::of(effect)?;
    Ok(identities(&recipe, &completion).get(path).copied().copied())
}

/// Leaves out what a newer effect told of a file by another of its names, if it is still the file that this effect left.
fn by_number(
    current: &Current,
    left: Option<&Identity>,
    looking: &Looking<'_>,
    (aspect, compare): (Aspect, Compare),
) -> Compare {
    let number = |it: &Identity| (it.dev, it.ino);
    let shared = current.node.as_ref().filter(|node| node.is_shared);
    let own = shared.map(|node| number(&node.identity));
    let Some(own) = own.filter(|own| left.map(number) == Some(*own)) else {
        return compare;
    };
    match (compare, (looking.by_number)(own, aspect)) {
        (Compare::Nothing, _) | (_, Compare::Nothing) => Compare::Nothing,
        (Compare::NotLooks, _) | (_, Compare::NotLooks) => Compare::NotLooks,
        (Compare::All, Compare::All) => Compare::All,
    }
}

fn compared(
    (change, path): (&FileChange, &TargetPath),
    current: &Current,
    believed: Option<&Identity>,
    (looking, compare): (&Looking<'_>, Compare),
) -> Result<Option<Differing>, FileError> {
    let (place, node, after) = match (&current.place, &current.node, &change.after) {
        (Some(place), Some(node), Some(after)) => (place, node, after),
        (Some(place), Some(node), None) => {
            let target = Target::tree(path.clone());
            let found = said(place, node)?;
            let told = told(
                (target, DriftKind::Added),
                "nothing",
                &found,
                mark(place, node)?,
            );
            return Ok(Some(with_time(told, node)));
        }
        (_, _, None) => return Ok(None),
        (_, _, Some(after)) => {
            let what = (Target::node(path.clone()), DriftKind::Gone);
            let found = current
                .blocked
                .clone()
                .unwrap_or_else(|| "nothing".to_owned());
            let mark = Digest::of(found.as_bytes());
            return Ok(Some(told(what, &expected(after), &found, mark)));
        }
    };
    let differs = |kind: DriftKind, found: &str| {
        let what = (Target::node(path.clone()), kind);
        let told = told(what, &expected(after), found, mark(place, node)?);
        Ok(Some(with_time(told, node)))
    };
    if node.kind != after.kind {
        return differs(DriftKind::Replaced, &said(place, node)?);
    }
    if is_second_name(after, node)? {
        return Ok(None);
    }
    let is_any = || {
        let key = Key::from(path.clone());
        node.kind == Kind::Directory && looking.wanted(&key, Aspect::Which) == Compare::Nothing
    };
    if !has_its_bytes(after, place, node, believed)? && !is_any() {
        return differs(DriftKind::Changed, &other(after, place, node)?);
    }
    if compare == Compare::NotLooks {
        return Ok(None);
    }
    let now = was_there(place, node)?;
    match change.differs_in_looks(&now) {
        Some(why) => differs(DriftKind::Looks, &why),
        None => Ok(None),
    }
}

/// Tells whether a name still stands for the same file as the name that it is a second one of: what is in that, the first one tells.
fn is_second_name(after: &Was, node: &Node) -> Result<bool, FileError> {
    let Some(first) = &after.shares else {
        return Ok(false);
    };
    let first = Current::at(first)?.node;
    let number = |node: &Node| (node.identity.dev, node.identity.ino);
    Ok(first.is_some_and(|first| number(&first) == number(node)))
}

/// Tells whether what is there has the bytes, the end or the number that the effect left; its kind does.
fn has_its_bytes(
    after: &Was,
    place: &Place,
    node: &Node,
    believed: Option<&Identity>,
) -> Result<bool, FileError> {
    if after.is_dress() {
        return Ok(true);
    }
    match node.kind {
        Kind::Symlink => {
            let now = super::link_target(place)?;
            Ok(after.link.as_ref().is_none_or(|to| *to == now))
        }
        Kind::File => {
            let is_untouched = believed.is_some_and(|left| {
                left.size >= BELIEVED_BYTES_MIN && (left.ino, left.ctime) == numbers(node)
            });
            if is_untouched {
                return Ok(true);
            }
            let is_that_one = || {
                let known = after.identity;
                known.is_none_or(|known| known.ino == node.identity.ino)
            };
            let is_number_only = after.shares.is_some() && after.digest().is_none();
            if !is_number_only && after.size.is_some_and(|size| size != node.identity.size) {
                return Ok(false);
            }
            match (&after.body, after.digest()) {
                (_, Some(digest)) => Ok(super::digest_at(place)? == digest),
                (Body::SameAs(_) | Body::Lost(_), None) => Ok(is_that_one()),
                // Of a second name nothing is known but which file it is one of.
                (_, None) if after.shares.is_some() => Ok(is_that_one()),
                (_, None) => Ok(after
                    .identity
                    .is_none_or(|known| node.looks_like(Kind::File, &known))),
            }
        }
        // What is in a directory is told by its own names; which one it is matters where it was moved or came as one.
        Kind::Directory => Ok(after
            .identity
            .is_none_or(|known| node.is_kept(Kind::Directory, &known))),
        Kind::Fifo | Kind::Socket | Kind::BlockDevice | Kind::CharacterDevice => {
            Ok(after.device == node.device)
        }
    }
}

const fn numbers(node: &Node) -> (u64, i128) {
    (node.identity.ino, node.identity.ctime)
}

/// Lists what stands in a directory that the effect made, and that neither the effect nor anybody else tells of.
fn strangers(
    directory: &Current,
    own: &HashSet<TargetPath>,
    looking: &Looking<'_>,
    all: &mut Vec<Differing>,
) -> Result<(), FileError> {
    let (Some(place), Some(node)) = (&directory.place, &directory.node) else {
        return Ok(());
    };
    if node.kind != Kind::Directory {
        return Ok(());
    }
    let dir = match place.enter() {
        Ok(dir) => dir,
        Err(FileError::Permission { .. }) => return Ok(()),
        Err(error) => return Err(error),
    };
    for name in dir.names()? {
        let path = directory.path.join(&name);
        let key = Key::from(path.clone());
        if own.contains(&path) || looking.wanted(&key, Aspect::Stranger) == Compare::Nothing {
            continue;
        }
        let entry = dir.place(&name);
        if let Some(node) = entry.node()? {
            let what = (Target::tree(path), DriftKind::Added);
            let told = told(what, "nothing", &said(&entry, &node)?, mark(&entry, &node)?);
            all.push(with_time(told, &node));
        }
    }
    Ok(())
}

fn told(
    (target, kind): (Target, DriftKind),
    expected: &str,
    found: &str,
    mark: Digest,
) -> Differing {
    Differing {
        target,
        kind,
        expected: expected.to_owned(),
        found: found.to_owned(),
        mark,
        changed: None,
        told_as: None,
    }
}

fn with_time(told: Differing, node: &Node) -> Differing {
    let millis = i64::try_from(node.identity.ctime / 1_000_000).ok();
    Differing {
        changed: millis.map(Timestamp),
        ..told
    }
}

fn expected(was: &Was) -> String {
    if was.is_dress() {
        return "its mode, owner and attributes".to_owned();
    }
    match (&was.link, was.size()) {
        (Some(to), _) => link(to),
        (None, Some(size)) => format!("a file of {size} bytes"),
        (None, None) => was.kind.noun().to_owned(),
    }
}

/// Says what is there.
fn said(place: &Place, node: &Node) -> Result<String, FileError> {
    Ok(match node.kind {
        Kind::File => format!("a file of {} bytes", node.identity.size),
        Kind::Symlink => link(&super::link_target(place)?),
        Kind::Directory | Kind::Fifo | Kind::Socket | Kind::BlockDevice | Kind::CharacterDevice => {
            node.kind.noun().to_owned()
        }
    })
}

/// Says what is there, where something of the same kind was expected.
fn other(after: &Was, place: &Place, node: &Node) -> Result<String, FileError> {
    let size = node.identity.size;
    if node.kind == Kind::File && after.size() == Some(size) {
        Ok(format!("a file of {size} other bytes"))
    } else if node.kind == Kind::Directory {
        Ok("another directory".to_owned())
    } else {
        said(place, node)
    }
}

fn link(to: &AnyBytes) -> String {
    let to = String::from_utf8_lossy(&to.0);
    format!("a symbolic link to `{to}`")
}

/// Tells what is there from anything else that could be.
fn mark(place: &Place, node: &Node) -> Result<Digest, FileError> {
    let mut text = format!(
        "{} {:o} {} {} {} ",
        node.kind.noun(),
        node.mode,
        node.uid,
        node.gid,
        node.device
    )
    .into_bytes();
    match node.kind {
        Kind::File if node.identity.size <= MARKED_BYTES_MAX => {
            match super::digest_at(place) {
                Ok(digest) => text.extend(digest.as_bytes()),
                // What is closed to us is told apart by its size and time.
                Err(FileError::Permission { .. }) => text.extend(by_time(node).as_bytes()),
                Err(error) => return Err(error),
            }
        }
        Kind::File => text.extend(by_time(node).as_bytes()),
        Kind::Symlink => text.extend(&super::link_target(place)?.0),
        Kind::Directory | Kind::Fifo | Kind::Socket | Kind::BlockDevice | Kind::CharacterDevice => {
        }
    }
    Ok(Digest::of(&text))
}

fn by_time(node: &Node) -> String {
    format!("{} {}", node.identity.size, node.identity.mtime)
}
