//! Taking operations back, or bringing them again, in memory: what must be there afterwards.

use crate::oracle::{Op, Oracle, Sides, Way, is_below, is_only_time, put, time};
use crate::seen::{Inode, Rel, Seen, Snapshot, alike};

impl Oracle {
    /// Gives what must be there when these operations are taken, one after the other, or the name of which nobody
    /// can tell.
    pub(crate) fn foresee(&self, taken: &[(usize, Way)]) -> Result<Snapshot, Rel> {
        let mut sim = self.world.clone();
        for &(index, way) in taken {
            take(&mut sim, &self.ops[index], way, &|inode| self.token(inode))?;
        }
        Ok(sim)
    }
}

/// Takes one operation.
pub(crate) fn take(
    sim: &mut Snapshot,
    op: &Op,
    way: Way,
    token: &dyn Fn(Inode) -> Inode,
) -> Result<(), Rel> {
    let is_carried = carry(sim, op, way);
    for (name, sides) in &op.changed {
        if is_carried && op.is_of_move(name, way) {
            continue;
        }
        let (from, to) = sides_of(sides, way);
        let now = sim.get(name);
        if is_only_time(sides) {
            take_time(sim, name, (from, to));
        } else if let (Some(from), Some(to)) = (from, to)
            && is_retouched(from, to)
        {
            let is_it = now.is_some_and(|now| token(now.inode) == token(from.inode));
            if is_it || op.names(name) {
                retouch(sim, name, from, to)?;
            }
        } else if alike(now, from) {
            let was = now.filter(|now| now.is_directory()).map(|now| now.mtime);
            put(sim, name, to.cloned());
            if let (Some(was), Some(now)) = (was, sim.get_mut(name)) {
                // The entries of a directory decide about its time, not its mode or owner.
                if now.is_directory() {
                    now.mtime = time_of_directory(was, time(from), time(to));
                }
            }
        } else if !alike(now, to) {
            return Err(name.clone());
        }
    }
    Ok(())
}

/// Moves what is there now, whatever it is by now: only the name was ours to change. Tells whether it did.
pub(crate) fn carry(sim: &mut Snapshot, op: &Op, way: Way) -> bool {
    let Some((old, new)) = op.renamed(way) else {
        return false;
    };
    if !sim.contains_key(&old) {
        return false;
    }
    let is_part = |name: &&Rel| **name == old || is_below(name, &old);
    let parts: Vec<Rel> = sim.keys().filter(is_part).cloned().collect();
    let taken = parts
        .iter()
        .filter_map(|name| Some((name.clone(), sim.remove(name)?)));
    let taken: Vec<_> = taken.collect();
    for (name, seen) in taken {
        let name = [new.as_slice(), &name[old.len()..]].concat();
        sim.insert(name, seen);
    }
    // What the move had replaced comes back under the new name.
    if let (Way::Back, Some((before, _))) = (way, op.changed.get(&old)) {
        put(sim, &old, before.clone());
    }
    true
}

impl Op {
    /// Gives the old and the new name, if it is nothing but one real move.
    fn renamed(&self, way: Way) -> Option<(Rel, Rel)> {
        let [(from, to)] = self.moves.as_slice() else {
            return None;
        };
        let is_real = self.is_single
            && matches!(self.changed.get(from), Some((Some(_), None)))
            && matches!(self.changed.get(to), Some((_, Some(_))));
        is_real.then(|| match way {
            Way::Back => (to.clone(), from.clone()),
            Way::Again => (from.clone(), to.clone()),
        })
    }

    /// Tells whether a name is one of those that the move carries.
    pub(crate) fn is_of_move(&self, name: &Rel, way: Way) -> bool {
        self.renamed(way).is_some_and(|(old, new)| {
            [&old, &new]
                .into_iter()
                .any(|root| name == root || is_below(name, root))
        })
    }
}

fn sides_of(sides: &Sides, way: Way) -> (Option<&Seen>, Option<&Seen>) {
    match way {
        Way::Back => (sides.1.as_ref(), sides.0.as_ref()),
        Way::Again => (sides.0.as_ref(), sides.1.as_ref()),
    }
}

/// Tells whether only mode, owner or attributes changed, in place.
fn is_retouched(from: &Seen, to: &Seen) -> bool {
    from.inode == to.inode && from.kind == to.kind && from.content == to.content
}

/// Changes the fields that the operation changed, and leaves the others to whoever changed them.
fn retouch(sim: &mut Snapshot, name: &Rel, from: &Seen, to: &Seen) -> Result<(), Rel> {
    let Some(now) = sim.get_mut(name) else {
        return Err(name.clone());
    };
    if now.kind != from.kind {
        return Ok(());
    }
    let mut wanted = now.clone();
    let mut is_there = true;
    if from.mode != to.mode {
        is_there &= now.mode == from.mode || now.mode == to.mode;
        wanted.mode = to.mode;
    }
    if from.owner != to.owner {
        is_there &= now.owner == from.owner || now.owner == to.owner;
        wanted.owner = to.owner;
    }
    if from.xattrs != to.xattrs {
        is_there &= now.xattrs == from.xattrs || now.xattrs == to.xattrs;
        wanted.xattrs.clone_from(&to.xattrs);
    }
    if !is_there && now.inode != from.inode {
        // It was another name of the file, and is another file by now.
        return Ok(());
    }
    if !is_there {
        return Err(name.clone());
    }
    if now.is_directory() {
        wanted.mtime = time_of_directory(now.mtime, from.mtime, to.mtime);
    }
    *now = wanted;
    Ok(())
}

fn take_time(sim: &mut Snapshot, name: &Rel, (from, to): (Option<&Seen>, Option<&Seen>)) {
    if let Some(now) = sim.get_mut(name) {
        let is_known = now.mtime.is_some() && now.mtime == time(from);
        now.mtime = time(to).filter(|_| is_known);
    }
}

fn time_of_directory(was: Option<i64>, from: Option<i64>, to: Option<i64>) -> Option<i64> {
    match (from == to, was.is_some() && was == from) {
        (true, _) => was,
        (false, true) => to,
        (false, false) => None,
    }
}
