//! Where the world stands with respect to a recipe: before, after, or neither, change by change.

use std::collections::{HashMap, HashSet};

use backout_files::inode::{differs_where_changed, put_back_changed};
use backout_model::TargetPath;
pub(crate) use backout_model::ports::State;

use super::compare::{Current, changed_bytes, differs_in_kind, differs_in_meta};
use super::context::FileContext;
use super::error::FileError;
use super::execute::tidy::is_out_of_slot;
use super::made::Made;
use super::mounted::{missing, why_unseen};
use super::recipe::{Change, FileCompletion, FileRecipe, Identity, Image, Kind, Meta, Numbers};
use super::sys::Node;
use super::written::{Written, locate};

/// Tells where the world stands with respect to every change of a recipe. A target that the effect shares with others
/// is never as the effect alone left it.
pub(crate) fn judge_all(
    context: &FileContext,
    recipe: &FileRecipe,
    completion: &FileCompletion,
) -> Result<Vec<State>, FileError> {
    let mut judgement = Judgement::of(context, recipe, completion);
    let missing = missing(&recipe.mounts);
    let mut states = Vec::with_capacity(recipe.changes.len());
    for (index, change) in recipe.changes.iter().enumerate() {
        context.check_stopped()?;
        if let Some(why) = why_unseen(change, &missing) {
            states.push(State::Other { why });
            continue;
        }
        let state = judgement.judge(index, change)?;
        let is_emptied = judgement.is_emptied(change)?;
        judgement.note(change, &state)?;
        states.push(match (state, change, recipe.shared.get(&index)) {
            (State::After, _, Some(why)) => State::Other { why: why.clone() },
            (State::Before, Change::Set { .. }, _) if is_emptied => State::Other {
                why: "it is gone".to_owned(),
            },
            (state, ..) => state,
        });
    }
    Ok(states)
}

/// What is known of a recipe while its changes are judged one after the other.
struct Judgement<'r> {
    changes: &'r [Change],
    completion: &'r FileCompletion,
    made: Made<'r>,
    rewritten: Numbers,
    /// By their new names, with their places in the recipe.
    moves: HashMap<&'r TargetPath, (usize, &'r Change)>,
    /// Directories that come out of their slots with all that is in them, with their places in the recipe.
    trees: HashMap<&'r TargetPath, (usize, &'r Change)>,
    /// Names that the effect gives to something.
    set: HashSet<&'r TargetPath>,
    /// Names below which nothing of the effect has happened yet.
    not_yet: HashSet<TargetPath>,
    /// Names that a move has left and that the effect, if it was finished, gave to something else.
    vacated: HashSet<&'r TargetPath>,
    is_finished: bool,
}

impl<'r> Judgement<'r> {
    fn of(
        context: &'r FileContext,
        recipe: &'r FileRecipe,
        completion: &'r FileCompletion,
    ) -> Self {
        let changes = &recipe.changes;
        let moves: HashMap<&TargetPath, (usize, &Change)> = changes
            .iter()
            .enumerate()
            .filter(|(_, change)| matches!(change, Change::Move { .. }))
            .map(|(index, change)| (change.path(), (index, change)))
            .collect();
        let trees = changes.iter().enumerate().filter(|(_, change)| {
            matches!(
                change,
                Change::Set {
                    after: Image::Kept {
                        node: Kind::Directory,
                        ..
                    },
                    ..
                }
            )
        });
        let set = changes.iter().filter_map(Change::set_path);
        Self {
            trees: trees
                .map(|(index, change)| (change.path(), (index, change)))
                .collect(),
            changes,
            completion,
            made: Made::since(context, recipe, completion),
            rewritten: recipe.rewritten(),
            set: set.chain(moves.keys().copied()).collect(),
            moves,
            not_yet: HashSet::new(),
            vacated: HashSet::new(),
            is_finished: completion.identities.len() == changes.len(),
        }
    }

    fn judge(&self, index: usize, change: &Change) -> Result<State, FileError> {
        let mut names = std::iter::once(change.path().clone()).chain(change.path().ancestors());
        // Where an old tree, something to be moved, or something in the way of a move still stands (or
        // stands again), nothing is of this effect: what comes later in the recipe did not happen yet.
        let is_later = names.any(|name| self.not_yet.contains(&name));
        let left = self.completion.identity(index);
        match change {
            Change::Set { .. } if is_later => Ok(State::Before),
            Change::Move {
                from,
                node,
                identity,
                ..
            } if is_later && is_there(&Current::at(from)?, *node, identity) => Ok(State::Before),
            Change::Set {
                path,
                after: Image::Absent,
                ..
            } if self.is_moved_onto(index, path)? || self.is_in_tree(index, path)? => {
                Ok(State::After)
            }
            // It may not be where it belongs yet, or not any more.
            Change::Rewrite {
                path,
                ino,
                before,
                after,
            } => {
                let current = Current::at(&locate(self.changes, path, *ino)?)?;
                let state = state(&current, &before.image(), &after.image(), left)?;
                // The same bytes at another time.
                if state == State::After && is_of_before(&current, before, after)? {
                    return Ok(State::Before);
                }
                Ok(state)
            }
            Change::Set { .. } | Change::Move { .. } | Change::Retouch { .. } => {
                let state = judge(change, left, &self.set, (&self.rewritten, &self.made))?;
                match state {
                    State::Other { .. } => Ok(self.as_dressed(change, left)?.unwrap_or(state)),
                    State::Before | State::After => Ok(state),
                }
            }
        }
    }

    /// Tells which side of a change is there, if a name of a kept file only has the mode or owner that the same effect gives
    /// to another of its names, or has not given yet.
    fn as_dressed(
        &self,
        change: &Change,
        left: Option<&Identity>,
    ) -> Result<Option<State>, FileError> {
        let Change::Set {
            path,
            before,
            after,
        } = change
        else {
            return Ok(None);
        };
        let current = Current::at(path)?;
        let Some(node) = current.node.filter(|node| node.is_shared) else {
            return Ok(None);
        };
        for change in self.changes {
            if let Change::Retouch {
                path,
                before: one,
                after: other,
                ..
            } = change
                && let Some(same) = Current::at(path)?.node
                && same.identity.ino == node.identity.ino
            {
                for (was, is) in [(one, other), (other, one)] {
                    let images = (dressed(before, was, is), dressed(after, was, is));
                    match state(&current, &images.0, &images.1, left)? {
                        State::Other { .. } => {}
                        found @ (State::Before | State::After) => return Ok(Some(found)),
                    }
                }
            }
        }
        Ok(None)
    }

    /// Tells whether a name was made free for a move that has happened: of the name, or of a directory above it.
    fn is_moved_onto(&self, index: usize, path: &TargetPath) -> Result<bool, FileError> {
        for name in std::iter::once(path.clone()).chain(path.ancestors()) {
            if let Some((number, change)) = self.moves.get(&name)
                && (name == *path || *number > index)
            {
                return Ok(
                    judge(change, None, &self.set, (&self.rewritten, &self.made))? == State::After,
                );
            }
        }
        Ok(false)
    }

    /// Tells whether a name went before the tree came that it is in now: what has the name came with the tree.
    fn is_in_tree(&self, index: usize, path: &TargetPath) -> Result<bool, FileError> {
        for name in path.ancestors() {
            if let Some((number, change)) = self.trees.get(&name)
                && *number > index
            {
                let left = self.completion.identity(*number);
                return Ok(
                    judge(change, left, &self.set, (&self.rewritten, &self.made))? == State::After,
                );
            }
        }
        Ok(false)
    }

    /// Tells whether somebody removed what the effect put under a name that it had moved something away from. That looks
    /// like before, and is not.
    fn is_emptied(&self, change: &Change) -> Result<bool, FileError> {
        let is_new = matches!(change, Change::Set { before, .. } if before.is_absent());
        let is_candidate = is_new && self.is_finished && self.vacated.contains(change.path());
        Ok(is_candidate && Current::at(change.path())?.node.is_none())
    }

    /// Draws the conclusions for what comes later in the recipe.
    fn note(&mut self, change: &'r Change, state: &State) -> Result<(), FileError> {
        match (state, change) {
            (State::After, Change::Move { from, replaced, .. }) => {
                self.vacated.insert(from);
                // A move that was cut short has what it replaced still under its old name.
                let old = Current::at(from)?;
                if !self.is_finished
                    && !replaced.is_absent()
                    && is_at(&old, replaced, &self.rewritten)?
                    && !is_out_of_slot(self.changes, &old)
                {
                    self.not_yet.insert(from.clone());
                }
            }
            (State::Before, Change::Set { path, before, .. })
                if before.is_directory() || self.moves.contains_key(path) =>
            {
                self.not_yet.insert(path.clone());
            }
            (State::Before, Change::Move { from, .. }) => drop(self.not_yet.insert(from.clone())),
            _ => {}
        }
        Ok(())
    }
}

fn is_there(current: &Current, kind: Kind, identity: &Identity) -> bool {
    current
        .node
        .is_some_and(|node| node.is_kept(kind, identity) || node.looks_like(kind, identity))
}

fn judge(
    change: &Change,
    left: Option<&Identity>,
    set: &HashSet<&TargetPath>,
    (rewritten, made): (&Numbers, &Made<'_>),
) -> Result<State, FileError> {
    match change {
        Change::Set {
            path,
            before,
            after,
        } => {
            let current = Current::at(path)?;
            if let Some(state) = by_number(&current, (before, after), rewritten) {
                return Ok(state);
            }
            let state = state(&current, before, after, left)?;
            Ok(unless_strange(state, &current, (before, after), made))
        }
        Change::Move {
            from,
            to,
            node,
            identity,
            replaced,
            meta,
        } => {
            let is_reused =
                set.contains(from) || from.ancestors().any(|above| set.contains(&above));
            let state = judge_move(
                (from, to),
                (*node, identity),
                replaced,
                (rewritten, made),
                is_reused,
            )?;
            match (state, meta) {
                (State::After, Some(meta)) => judge_meta(to, meta),
                (state, _) => Ok(state),
            }
        }
        Change::Rewrite {
            path,
            before,
            after,
            ..
        } => state(&Current::at(path)?, &before.image(), &after.image(), left),
        Change::Retouch {
            path,
            before,
            after,
            node: kind,
        } => {
            let current = Current::at(path)?;
            let (Some(place), Some(node)) = (&current.place, &current.node) else {
                return Ok(State::Other {
                    why: "it is gone".to_owned(),
                });
            };
            if let Some(why) = kind.and_then(|kind| differs_in_kind(node, kind)) {
                return Ok(State::Other { why });
            }
            let now = &*current.meta_like(place, node, after)?;
            match differs_where_changed(now, after, before) {
                None => Ok(State::After),
                Some(why) => match differs_where_changed(now, before, after) {
                    None => Ok(State::Before),
                    Some(_) => Ok(State::Other { why }),
                },
            }
        }
    }
}

/// Tells whether only the time or the holes of a file changed, and have changed back.
fn is_of_before(current: &Current, before: &Written, after: &Written) -> Result<bool, FileError> {
    let mtime = |written: &Written| written.meta.times.map(|times| times.mtime);
    let is_alike = before.digest == after.digest
        && differs_in_meta(&before.meta, &after.meta, Kind::File).is_none();
    let (Some(place), Some(node)) = (&current.place, current.node) else {
        return Ok(false);
    };
    let now = Some(node.times.mtime);
    if !is_alike || mtime(before) != now {
        return Ok(false);
    }
    Ok(mtime(after) != now || !after.is_in(place)? && before.is_in(place)?)
}

/// Tells which side of a change is there, if one is a kept inode that the same recipe changes in place: that it is the
/// one is all that can be asked of it.
fn by_number(
    current: &Current,
    (before, after): (&Image, &Image),
    rewritten: &Numbers,
) -> Option<State> {
    let number = current.node?.identity.ino;
    let is_it = |image: &Image| {
        matches!(image, Image::Kept { identity, .. }
            if identity.ino == number && rewritten.contains(&number))
    };
    match (is_it(before), is_it(after)) {
        (true, _) => Some(State::Before),
        (_, true) => Some(State::After),
        (false, false) => None,
    }
}

/// Tells whether an image is what is there.
fn is_at(current: &Current, image: &Image, rewritten: &Numbers) -> Result<bool, FileError> {
    let is_it = by_number(current, (image, &Image::Absent), rewritten).is_some();
    Ok(is_it || current.differs(image, None)?.is_none())
}

/// `is_reused` says that the same recipe puts something else under the old name, or where its directory was.
fn judge_move(
    (from, to): (&TargetPath, &TargetPath),
    (kind, identity): (Kind, &Identity),
    replaced: &Image,
    (rewritten, made): (&Numbers, &Made<'_>),
    is_reused: bool,
) -> Result<State, FileError> {
    let (old, new) = (Current::at(from)?, Current::at(to)?);
    // By its number, if either name has it; else by its looks, as something that was made anew by one of ours has.
    let has_number = |current: &Current| {
        current
            .node
            .is_some_and(|node| node.identity.ino == identity.ino)
    };
    let is_rewritten = rewritten.contains(&identity.ino);
    // The number of what is gone is given to something else: alone it tells nothing.
    let has_it = |current: &Current| {
        has_number(current) && (is_rewritten || is_there(current, kind, identity))
    };
    let by_number = has_it(&old) || has_it(&new);
    let is_it = |current: &Current| {
        let is_there = is_rewritten || is_there(current, kind, identity);
        let is_anew = || !by_number && !is_rewritten && made.is_at(current);
        is_there && (has_number(current) || is_anew())
    };
    if is_it(&new) {
        // An exchange that was cut short leaves the replaced file under the old name.
        let is_free = old.node.is_none() || is_reused;
        let is_exchanged = !is_free && !replaced.is_absent() && is_at(&old, replaced, rewritten)?;
        if is_free || is_exchanged {
            return Ok(State::After);
        }
        return Ok(State::Other {
            why: format!("`{from}` exists again"),
        });
    }
    if is_it(&old) && is_at(&new, replaced, rewritten)? {
        return Ok(State::Before);
    }
    let why = match &new.node {
        // The number of what is gone is given to something else.
        Some(node) if node.identity.ino == identity.ino && node.kind == kind => {
            format!(
                "`{to}`: {}",
                changed_bytes(identity.size, node.identity.size)
            )
        }
        other => not_what_was_moved(to, kind, other.as_ref()),
    };
    Ok(State::Other { why })
}

/// Says that what only looks like a kept inode is another one, if none of ours made it.
fn unless_strange(
    found: State,
    current: &Current,
    (before, after): (&Image, &Image),
    made: &Made<'_>,
) -> State {
    let image = match found {
        State::Before => before,
        State::After => after,
        State::Other { .. } => return found,
    };
    // A file whose bytes are known is known by them.
    let (Image::Kept { node, identity, .. }, None, Some(there)) =
        (image, image.digest(), current.node)
    else {
        return found;
    };
    if there.identity.ino == identity.ino || made.is_at(current) {
        return found;
    }
    State::Other {
        why: format!("it is another {} now", node.word()),
    }
}

/// Tells whether something that was moved still has the mode, owner and attributes that it had then.
fn judge_meta(to: &TargetPath, meta: &Meta) -> Result<State, FileError> {
    let current = Current::at(to)?;
    let (Some(place), Some(node)) = (&current.place, &current.node) else {
        return Ok(State::After);
    };
    // By another name it may have got any of them.
    if node.is_shared {
        return Ok(State::After);
    }
    let now = current.meta_like(place, node, meta)?;
    Ok(match differs_in_meta(&now, meta, node.kind) {
        Some(why) => State::Other {
            why: format!("`{to}`: {why}"),
        },
        None => State::After,
    })
}

/// Says that what was moved to a name is not there.
pub(super) fn not_what_was_moved(to: &TargetPath, kind: Kind, found: Option<&Node>) -> String {
    let Some(node) = found else {
        return format!("`{to}` is gone");
    };
    match differs_in_kind(node, kind) {
        Some(why) => format!("`{to}`: {why}"),
        None => format!("`{to}` is now another {}", kind.word()),
    }
}

/// Gives the image of a kept file that a change of its mode or owner was put back of.
fn dressed(image: &Image, before: &Meta, after: &Meta) -> Image {
    let mut image = image.clone();
    if let Image::Kept {
        node: Kind::File,
        meta,
        ..
    } = &mut image
    {
        *meta = put_back_changed(meta, before, after);
    }
    image
}

/// Tells which of two images is there.
fn state(
    current: &Current,
    before: &Image,
    after: &Image,
    left: Option<&Identity>,
) -> Result<State, FileError> {
    // An old tree is known by its number, a new directory only by its looks: ask for the tree first.
    if let (
        Image::Kept {
            node: Kind::Directory,
            identity,
            ..
        },
        Some(node),
    ) = (before, &current.node)
        && node.identity.ino == identity.ino
    {
        return Ok(State::Before);
    }
    // What was kept is not in its slot but here: it may look like what came after it.
    if let (
        Image::Kept {
            node: kind,
            identity,
            ..
        },
        Some(node),
    ) = (before, &current.node)
        && node.is_kept(*kind, identity)
        && current.differs(before, None)?.is_none()
    {
        return Ok(State::Before);
    }
    let Some(why) = current.differs(after, left)? else {
        return Ok(State::After);
    };
    // A tree in which somebody was may look like the directory before it.
    let is_tree = matches!((after, &current.node), (Image::Kept { node: Kind::Directory, identity, .. }, Some(node))
        if node.identity.ino == identity.ino);
    match current.differs(before, None)? {
        None if !is_tree => Ok(State::Before),
        None | Some(_) => Ok(State::Other { why }),
    }
}
