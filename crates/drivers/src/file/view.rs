//! Where each target of an effect stands now.

use std::collections::{HashMap, HashSet};

use backout_files::said::said_of_strangers;
use backout_model::ports::Examined;
use backout_model::{Effect, Target, TargetPath};

use super::compare::Current;
use super::context::FileContext;
use super::error::FileError;
use super::judge::{State, judge_all};
use super::kept::{can_be_renamed, look_into, why_empty, why_not_renamed};
use super::locks::Locks;
use super::plan::targets_of;
use super::recipe::{Change, FileCompletion, FileRecipe, Image, Kind, Numbers};
use super::reversed::lacks;
use super::sys::Dir;
use super::undo::{doubted, first_of_both, lacking, not_the_first, without_directory};
use super::written::locate;

/// Tells where each target of an effect stands.
pub(crate) fn examine(context: &FileContext, effect: &Effect) -> Result<Vec<Examined>, FileError> {
    let recipe = FileRecipe::decode(&effect.recipe)?;
    let completion = FileCompletion::of(effect)?;
    let mut examined = Vec::new();
    let mut locks = Locks::of(recipe.own_directories());
    let rewritten = recipe.rewritten();
    let states = judge_all(context, &recipe, &completion)?;
    let paths: HashSet<&TargetPath> = recipe.changes.iter().map(Change::path).collect();
    let going = going(&recipe.changes);
    let brought: HashSet<&TargetPath> = recipe.changes.iter().filter_map(brings).collect();
    for (number, (change, state)) in std::iter::zip(&recipe.changes, states).enumerate() {
        let (mut strangers, mut home) = (Vec::new(), None);
        let state = match state {
            State::After => {
                strangers = strangers_in(change, &paths)?;
                let hindered = match locks.why(change) {
                    Some(why) => Some(why),
                    None => said_of_strangers(&strangers)
                        .or(written_since(context, change, &rewritten)?)
                        .or(lacking(&recipe.changes, change)?),
                };
                if hindered.is_none() {
                    home = homeless(change, &brought)?;
                }
                let hindered = hindered.or(home.map(without_directory));
                hindered.map_or(State::After, |why| State::Other { why })
            }
            state @ (State::Before | State::Other { .. }) => state,
        };
        let lost = match state {
            State::Before => None,
            State::After | State::Other { .. } => lost(context, &recipe.changes, change)?,
        };
        let shared = recipe.shared.get(&number);
        let barred = match state {
            State::After => locks.barred(change),
            State::Before | State::Other { .. } => None,
        };
        let has_come = has_come(context, change)?;
        let of = |target: Target| Examined {
            has_come,
            shared: shared.cloned(),
            goes: target.file().is_some_and(|path| going.contains(path)),
            target,
            state: state.clone(),
            change: number,
            lost: lost.clone(),
            strangers: strangers.clone(),
            barred: barred.clone(),
            home: home.and_then(TargetPath::parent),
            is_unseen: false,
        };
        examined.extend(targets_of(change).into_iter().map(of));
    }
    Ok(examined)
}

/// Tells whether what a change brings out of a slot is not there any more.
fn has_come(context: &FileContext, change: &Change) -> Result<bool, FileError> {
    let Change::Set {
        after: Image::Kept { slot, .. },
        ..
    } = change
    else {
        return Ok(false);
    };
    let is_within_reach = context.depots.out_of_reach(slot).is_none();
    Ok(is_within_reach && look_into(context, slot)?.node.is_none())
}

/// Says that what a change replaced was kept as the inode it was, and may not be what it was any more.
fn written_since(
    context: &FileContext,
    change: &Change,
    rewritten: &Numbers,
) -> Result<Option<String>, FileError> {
    let kept = match change {
        Change::Set { before, .. } => before,
        Change::Move { replaced, .. } => replaced,
        Change::Rewrite { .. } | Change::Retouch { .. } => return Ok(None),
    };
    doubted(context, kept, rewritten)
}

/// Says why what a change replaced cannot be brought back, if it is not kept or not kept any more.
fn lost(
    context: &FileContext,
    changes: &[Change],
    change: &Change,
) -> Result<Option<String>, FileError> {
    match change {
        Change::Set { path, before, .. } => lost_image(context, path, before),
        Change::Move { to, replaced, .. } => lost_image(context, to, replaced),
        Change::Rewrite {
            path, ino, before, ..
        } => {
            let lacks = before.lacks(context)?;
            if lacks.is_none() {
                return Ok(None);
            }
            // Where only the metadata changed, the file itself has the bytes.
            let current = Current::at(&locate(changes, path, *ino)?)?;
            match current.place.filter(|_| current.node.is_some()) {
                Some(place) if before.is_in(&place)? => Ok(None),
                Some(_) | None => Ok(lacks),
            }
        }
        Change::Retouch { .. } => Ok(None),
    }
}

fn lost_image(
    context: &FileContext,
    path: &TargetPath,
    image: &Image,
) -> Result<Option<String>, FileError> {
    let is_stored = |digest| match context.contents.has(digest) {
        Ok(true) => lacks(context, path, digest).unwrap_or_else(|error| Some(error.to_string())),
        Ok(false) => Some(format!(
            "its content {} is missing from the store",
            digest.short()
        )),
        Err(error) => Some(error.to_string()),
    };
    Ok(match image {
        Image::Unkept { why, .. } => Some(format!("it was not kept: {why}")),
        Image::File {
            digest,
            stored: true,
            ..
        } => is_stored(digest),
        Image::File { .. } => Some("its bytes were never stored".to_owned()),
        Image::Kept { slot, copy, .. } if look_into(context, slot)?.node.is_none() => match copy {
            Some(copy) => is_stored(copy),
            None => Some(why_empty(context, slot)),
        },
        Image::Kept {
            slot,
            node: Kind::Directory,
            ..
        } if !can_be_renamed(slot, path) => Some(why_not_renamed(path)),
        Image::Linked {
            to,
            identity: Some(known),
            copy,
        } if first_of_both(to, known, copy.as_ref())?.is_none() => match copy {
            Some(copy) => is_stored(&copy.digest),
            None => Some(not_the_first(to)),
        },
        Image::Kept { .. }
        | Image::Absent
        | Image::Symlink { .. }
        | Image::Directory { .. }
        | Image::Special { .. }
        | Image::Linked { .. } => None,
    })
}

/// Tells what stands in a directory that the operation made and that is not its own.
fn strangers_in(change: &Change, own: &HashSet<&TargetPath>) -> Result<Vec<TargetPath>, FileError> {
    let Change::Set {
        path,
        before,
        after: Image::Directory { .. },
    } = change
    else {
        return Ok(Vec::new());
    };
    if matches!(before, Image::Directory { .. }) {
        return Ok(Vec::new());
    }
    let names = Dir::of(path)?.enter()?.names()?.into_iter();
    let names = names.map(|name| path.join(&name));
    Ok(names.filter(|name| !own.contains(name)).collect())
}

/// Names what was not there before: the first that is said of a name tells.
fn going(changes: &[Change]) -> HashSet<&TargetPath> {
    let mut was_there: HashMap<&TargetPath, bool> = HashMap::new();
    for change in changes {
        let said = match change {
            Change::Set { path, before, .. } => vec![(path, !before.is_absent())],
            Change::Move {
                from, to, replaced, ..
            } => vec![(from, true), (to, !replaced.is_absent())],
            Change::Retouch { path, .. } | Change::Rewrite { path, .. } => vec![(path, true)],
        };
        for (path, is_there) in said {
            was_there.entry(path).or_insert(is_there);
        }
    }
    let going = was_there.into_iter().filter(|(_, is_there)| !is_there);
    going.map(|(path, _)| path).collect()
}

/// Gives the name that an undo of a change brings something back to.
fn brings(change: &Change) -> Option<&TargetPath> {
    match change {
        Change::Set { path, .. } => Some(path),
        Change::Move { from, .. } => Some(from),
        Change::Retouch { .. } | Change::Rewrite { .. } => None,
    }
}

/// Gives the name that is to come back, if there is no directory any more that it could come back to.
fn homeless<'c>(
    change: &'c Change,
    brought: &HashSet<&TargetPath>,
) -> Result<Option<&'c TargetPath>, FileError> {
    let (path, comes_back) = match change {
        Change::Set { path, before, .. } => (path, !before.is_absent()),
        Change::Move { from, .. } => (from, true),
        Change::Retouch { .. } | Change::Rewrite { .. } => return Ok(None),
    };
    let is_there = || Ok::<_, FileError>(Current::at(path)?.place.is_some());
    let is_homeless = comes_back && !path.ancestors().any(|above| brought.contains(&above));
    Ok((is_homeless && !is_there()?).then_some(path))
}
