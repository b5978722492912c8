//! What must hold after an undo or a redo, whoever wrote in between.

use std::collections::BTreeSet;

use crate::oracle::{Op, Oracle, Way, is_below, is_near, shown};
use crate::seen::{Rel, Seen, Snapshot};
use crate::story::Manner;

/// How sure the oracle could be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checked {
    /// Every bit of the tree was foreseen and is there.
    Exactly,
    /// Somebody else's work is in between: it is all there still, and nothing else changed.
    Kept,
}

/// Compares what is there with what the oracle foresees.
pub(crate) fn judge(
    oracle: &mut Oracle,
    taken: &[(usize, Way)],
    now: &Snapshot,
    manner: Manner,
    has_died: bool,
) -> Result<Checked, String> {
    let is_touched = taken.iter().any(|(index, _)| oracle.is_touched(*index));
    if !is_touched && !oracle.is_shared(taken) {
        match oracle.foresee(taken) {
            Ok(wanted) => {
                return exactly(oracle, &wanted, now, has_died).map(|()| Checked::Exactly);
            }
            // Later work of our own may stay where the undone change merges out of it.
            Err(_) if manner == Manner::Merge => {}
            // Of another name of a changed inode nobody can tell, once later work has replaced it.
            Err(name)
                if !taken
                    .iter()
                    .any(|(index, _)| oracle.ops[*index].names(&name)) => {}
            Err(name) => {
                let name = shown(&name);
                return Err(format!(
                    "later work on {name:?} was not taken back, and what stood on it was"
                ));
            }
        }
    }
    kept(oracle, taken, now, manner)?;
    if let Ok(wanted) = oracle.foresee(taken) {
        // A file may have been made anew all the same.
        let _as_far_as_it_is_known = oracle.check_links(&wanted, now);
    }
    Ok(Checked::Kept)
}

fn exactly(
    oracle: &mut Oracle,
    wanted: &Snapshot,
    now: &Snapshot,
    has_died: bool,
) -> Result<(), String> {
    if let Some(why) = unlike(wanted, now, !has_died) {
        return Err(why);
    }
    oracle.check_links(wanted, now)
}

/// Says how two looks differ, if they do.
pub(crate) fn unlike(
    wanted: &Snapshot,
    now: &Snapshot,
    with_directory_times: bool,
) -> Option<String> {
    let names: BTreeSet<&Rel> = wanted.keys().chain(now.keys()).collect();
    let mut lines = Vec::new();
    for name in names {
        let (was, is) = (wanted.get(name), now.get(name));
        let same = match (was, is) {
            (Some(was), Some(is)) if is.is_directory() && !with_directory_times => was.is_like(is),
            (Some(was), Some(is)) => was.equals(is),
            (None, _) | (_, None) => false,
        };
        if !same {
            lines.push(format!(
                "{:?}\n    must be {was:?}\n    but is  {is:?}",
                shown(name)
            ));
        }
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Checks that everything that others did is still there, and that nothing changed that is not of the operations.
fn kept(
    oracle: &Oracle,
    taken: &[(usize, Way)],
    now: &Snapshot,
    manner: Manner,
) -> Result<(), String> {
    let ops: Vec<(&Op, Way)> = taken
        .iter()
        .map(|(index, way)| (&oracle.ops[*index], *way))
        .collect();
    for name in oracle.foreign() {
        if !is_kept(oracle, &name, &ops, now, manner) {
            return Err(format!(
                "somebody else's change of {:?} was lost:\n    was {:?}\n    is  {:?}",
                shown(&name),
                oracle.world.get(&name),
                now.get(&name)
            ));
        }
    }
    for name in oracle.world.keys().chain(now.keys()) {
        let is_of_ops = ops.iter().any(|(op, _)| {
            op.about.iter().any(|about| is_near(about, name)) || op.changed.contains_key(name)
        });
        let shares = || oracle.is_shared(taken);
        let same = match (oracle.world.get(name), now.get(name)) {
            (Some(was), Some(is)) => was.is_like(is) || shares(),
            (None, None) => true,
            (None, Some(_)) | (Some(_), None) => false,
        };
        let is_alias = || {
            let inode = oracle.world.get(name).map(|seen| seen.inode);
            inode.is_some_and(|inode| ops.iter().any(|(op, _)| oracle.has_inode(op, inode)))
        };
        if !is_of_ops && !same && !is_alias() {
            return Err(format!(
                "{:?} has nothing to do with it and changed",
                shown(name)
            ));
        }
    }
    Ok(())
}

fn is_kept(
    oracle: &Oracle,
    name: &Rel,
    ops: &[(&Op, Way)],
    now: &Snapshot,
    manner: Manner,
) -> bool {
    let theirs = oracle.world.get(name);
    // What they made is just what the operation found or left: then it is nobody's loss.
    let is_a_side = |(op, _): &(&Op, Way)| {
        op.changed.get(name).is_some_and(|(before, after)| {
            same_to_them(theirs, before.as_ref()) || same_to_them(theirs, after.as_ref())
        })
    };
    let mut places = vec![name.clone()];
    for (op, way) in ops {
        for (from, to) in &op.moves {
            let (old, new) = match way {
                Way::Back => (to, from),
                Way::Again => (from, to),
            };
            let moved = places.iter().filter_map(|place| rebased(place, old, new));
            let moved: Vec<Rel> = moved.collect();
            places.extend(moved);
        }
    }
    // The inode itself is still there by another of its names, with all that they wrote.
    let is_elsewhere = || {
        let found = |seen: &Seen| Some(seen.inode) == theirs.map(|theirs| theirs.inode);
        theirs.is_some_and(|theirs| !theirs.is_directory())
            && now
                .values()
                .any(|seen| found(seen) && same_to_them(theirs, Some(seen)))
    };
    let may_merge = manner == Manner::Merge || ops.iter().any(|(op, _)| op.is_blurred);
    // What a move replaces anyway may be gone already.
    let is_replaced = || {
        let to = |(op, _): &(&Op, Way)| op.moves.iter().any(|(_, to)| to == name);
        theirs.is_none() && ops.iter().any(to)
    };
    ops.iter().any(is_a_side)
        || is_replaced()
        || is_elsewhere()
        || places
            .iter()
            .any(|place| same_to_them(theirs, now.get(place)))
        || (may_merge && is_merged(theirs, now.get(name)))
}

/// Kind and content; a mode or an owner may well be what is taken back.
fn same_to_them(theirs: Option<&Seen>, now: Option<&Seen>) -> bool {
    match (theirs, now) {
        (None, None) => true,
        (Some(theirs), Some(now)) => {
            theirs.kind == now.kind && (theirs.is_directory() || theirs.content == now.content)
        }
        (None, Some(_)) | (Some(_), None) => false,
    }
}

/// Tells whether every line that is only theirs is in the merged text.
fn is_merged(theirs: Option<&Seen>, now: Option<&Seen>) -> bool {
    let (Some(theirs), Some(now)) = (theirs, now) else {
        return false;
    };
    let lines = |seen: &Seen| {
        String::from_utf8_lossy(&seen.content)
            .lines()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let now = lines(now);
    lines(theirs)
        .iter()
        .filter(|line| line.starts_with("theirs"))
        .all(|line| now.contains(line))
}

fn rebased(name: &Rel, old: &Rel, new: &Rel) -> Option<Rel> {
    (name == old || is_below(name, old)).then(|| [new.as_slice(), &name[old.len()..]].concat())
}
