//! The oracle: an image in memory of the whole tree, and of what every operation changed in it.
//!
//! - `world` is what is there; `ours` is what would be there if nobody but us had written. Where the two differ,
//!   somebody else's work stands, and no undo may lose it.
//! - An operation is known by what each name was before and after. Taking it back in memory says what an undo must
//!   lead to, bit for bit, as long as nobody else touched the names it is about.
//! - Inodes are known by tokens: an undo that makes a file anew gives it another number, but the names that were one
//!   file before must be one file again.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use backout_model::OperationId;

use crate::foresee::{carry, take};
use crate::names::Name;
use crate::request::Plan;
use crate::seen::{Inode, Rel, Seen, Snapshot, alike};

/// What an operation made of one name.
pub(crate) type Sides = (Option<Seen>, Option<Seen>);

/// An operation as the oracle remembers it.
#[derive(Debug)]
pub(crate) struct Op {
    pub(crate) id: OperationId,
    /// What each changed name was before and after.
    pub(crate) changed: BTreeMap<Rel, Sides>,
    /// What our own work had left under each changed name before.
    ours: BTreeMap<Rel, Option<Seen>>,
    /// Every name it is about, whether changed or only spoken of.
    pub(crate) about: BTreeSet<Rel>,
    /// The names it gave to others.
    pub(crate) moves: Vec<(Rel, Rel)>,
    /// The names that it was asked about.
    named: BTreeSet<Rel>,
    /// Whether it is not a batch.
    pub(crate) is_single: bool,
    pub(crate) is_in_effect: bool,
    /// Whether it was taken with somebody else's work in between: then nobody can tell what a redo brings, only
    /// that nothing is lost.
    pub(crate) is_blurred: bool,
    /// What the world was right after it was last taken back.
    pub(crate) left: Option<Snapshot>,
    /// Which act brought it: its own, or a redo, perhaps with others.
    pub(crate) act: usize,
    /// The act that wrote it.
    born: usize,
    /// The redo that had to take it back.
    gave_way_to: usize,
}

impl Op {
    /// Tells whether it was asked about a name, or one above or below it.
    pub(crate) fn names(&self, name: &Rel) -> bool {
        self.named.iter().any(|named| is_near(named, name))
    }
}

/// Which way an operation is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Back,
    Again,
}

/// The image in memory.
#[derive(Debug, Default)]
pub(crate) struct Oracle {
    pub(crate) world: Snapshot,
    pub(crate) ours: Snapshot,
    pub(crate) ops: Vec<Op>,
    acts: usize,
    tokens: HashMap<Inode, Inode>,
}

impl Oracle {
    pub(crate) fn new(world: Snapshot) -> Self {
        Self {
            ours: world.clone(),
            world,
            ..Self::default()
        }
    }

    /// Remembers an operation that led to what is there now.
    pub(crate) fn learn(&mut self, id: OperationId, plan: &Plan, now: Snapshot) {
        let mut changed = difference(&self.world, &now);
        self.blur_times(&mut changed, &now);
        let ours = changed
            .keys()
            .map(|name| (name.clone(), self.ours.get(name).cloned()))
            .collect();
        let named: BTreeSet<Rel> = plan.names().into_iter().map(Name::bytes).collect();
        let mut about = named.clone();
        let parts = changed.iter().filter(|(_, sides)| !is_only_time(sides));
        about.extend(parts.map(|(name, _)| name.clone()));
        for (name, (_, after)) in &changed {
            put(&mut self.ours, name, after.clone());
        }
        let bytes = |(from, to): (Name, Name)| (from.bytes(), to.bytes());
        self.acts += 1;
        self.ops.push(Op {
            act: self.acts,
            born: self.acts,
            gave_way_to: 0,
            id,
            changed,
            ours,
            about,
            moves: plan.moves().into_iter().map(bytes).collect(),
            named,
            is_single: !matches!(plan, Plan::Batch(_)),
            is_in_effect: true,
            is_blurred: false,
            left: None,
        });
        self.world = now;
    }

    /// A directory whose entries changed twice between two ticks of the clock bears one time for both: nobody can tell
    /// what an undo leaves of it.
    fn blur_times(&self, changed: &mut BTreeMap<Rel, Sides>, now: &Snapshot) {
        let entries = changed.iter().filter(|(_, sides)| !is_only_time(sides));
        let parents: BTreeSet<Rel> = entries.filter_map(|(name, _)| parent(name)).collect();
        for parent in parents {
            let mut sides = (self.world.get(&parent).cloned(), now.get(&parent).cloned());
            if sides.0.is_some() && sides.0 == sides.1 {
                set_time(&mut sides.0, None);
                set_time(&mut sides.1, None);
                changed.insert(parent, sides);
            }
        }
    }

    /// Notes that operations were taken back or brought again, and what is there now.
    pub(crate) fn follow(
        &mut self,
        asked: Way,
        taken: &[(usize, Way)],
        now: Snapshot,
        is_exact: bool,
    ) {
        self.acts += 1;
        for &(index, way) in taken {
            let op = &mut self.ops[index];
            op.is_in_effect = way == Way::Again;
            // What an undo brings again stands where it was written.
            match (asked, way) {
                (Way::Again, Way::Again) => op.act = self.acts,
                (Way::Again, Way::Back) => op.gave_way_to = self.acts,
                (Way::Back, Way::Again) => op.act = op.born,
                (Way::Back, Way::Back) => op.gave_way_to = 0,
            }
            op.is_blurred |= !is_exact;
            let is_carried = carry(&mut self.ours, op, way);
            for (name, (before, after)) in &op.changed {
                let had_others =
                    !alike(before.as_ref(), op.ours.get(name).and_then(Option::as_ref));
                let is_covered = way == Way::Back && had_others;
                if is_carried && op.is_of_move(name, way) && !is_covered {
                    continue;
                }
                let back = match way {
                    Way::Back => op.ours.get(name).cloned().flatten(),
                    Way::Again => after.clone(),
                };
                put(&mut self.ours, name, back);
            }
        }
        self.follow_times(taken, &now);
        self.world = now;
    }

    /// The next redo or undo gives directories the times that this undo or redo found and left.
    fn follow_times(&mut self, taken: &[(usize, Way)], now: &Snapshot) {
        let mut sim = self.world.clone();
        for (place, &(index, way)) in taken.iter().enumerate() {
            let found = sim.clone();
            let is_known =
                take(&mut sim, &self.ops[index], way, &|inode| self.token(inode)).is_ok();
            let is_last = place + 1 == taken.len();
            self.ops[index].left = match (way, is_last) {
                (Way::Again, _) => None,
                (Way::Back, true) => Some(now.clone()),
                (Way::Back, false) => is_known.then(|| sim.clone()),
            };
            let op = &mut self.ops[index];
            for (name, sides) in &mut op.changed {
                if is_only_time(sides) {
                    let left = if is_last {
                        now.get(name)
                    } else {
                        sim.get(name)
                    };
                    let was = time(found.get(name)).filter(|_| is_known);
                    let is = time(left).filter(|_| is_known);
                    let (before, after) = match way {
                        Way::Back => (is, was),
                        Way::Again => (was, is),
                    };
                    set_time(&mut sides.0, before);
                    set_time(&mut sides.1, after);
                } else {
                    follow_side(sides, found.get(name), way);
                }
            }
            let is_known =
                |seen: &Option<Seen>| seen.as_ref().is_none_or(|seen| seen.mtime.is_some());
            op.changed
                .retain(|_, (before, after)| before != after || !is_known(before));
        }
    }

    /// Lists the operations of the newest act that brought something which is in effect. A redo may have had to take
    /// others back for it.
    pub(crate) fn newest(&self) -> Vec<usize> {
        let standing = self.ops.iter().filter(|op| op.is_in_effect);
        let newest = standing.map(|op| op.act).max();
        let all = self.ops.iter().enumerate();
        let is_of_it = |op: &Op| Some(op.act) == newest || Some(op.gave_way_to) == newest;
        all.filter(|(_, op)| is_of_it(op))
            .map(|(index, _)| index)
            .collect()
    }

    /// Lists the names under which somebody else's work stands.
    pub(crate) fn foreign(&self) -> Vec<Rel> {
        let names: BTreeSet<&Rel> = self.world.keys().chain(self.ours.keys()).collect();
        let differs = |name: &&&Rel| match (self.world.get(**name), self.ours.get(**name)) {
            (Some(is), Some(was)) if is.is_directory() => !is.is_like(was),
            (Some(is), Some(was)) => !is.equals(was),
            (None, None) => false,
            (None, Some(_)) | (Some(_), None) => true,
        };
        names
            .iter()
            .filter(differs)
            .map(|name| (*name).clone())
            .collect()
    }

    /// Tells whether somebody else's work stands where an operation was, above or below it, or in one of its inodes.
    pub(crate) fn is_touched(&self, index: usize) -> bool {
        let op = &self.ops[index];
        let inodes = self.inodes(op);
        op.is_blurred
            || self.foreign().iter().any(|name| {
                let inode = self.world.get(name).map(|seen| self.token(seen.inode));
                op.about.iter().any(|about| is_near(about, name))
                    || inode.is_some_and(|inode| inodes.contains(&inode))
            })
    }

    /// Tells whether an operation found somebody else's work under a name that it changed.
    pub(crate) fn covers(&self, index: usize) -> bool {
        let op = &self.ops[index];
        let differs = |(name, (before, _)): (&Rel, &Sides)| {
            let ours = op.ours.get(name).and_then(Option::as_ref);
            !alike(before.as_ref(), ours)
        };
        op.changed.iter().any(differs)
    }

    /// Tells whether another operation that stays has changed an inode of these by another of its names.
    pub(crate) fn is_shared(&self, taken: &[(usize, Way)]) -> bool {
        let ops = || taken.iter().map(|(index, _)| &self.ops[*index]);
        let inodes: BTreeSet<Inode> = ops().flat_map(|op| self.inodes(op)).collect();
        let is_other = |name: &Rel| !ops().any(|op| op.changed.contains_key(name));
        let first = taken.iter().map(|(index, _)| *index).min();
        // Later work that stays may have changed it by the same name and by another.
        let is_later =
            |index: usize| Some(index) > first && !taken.iter().any(|(other, _)| *other == index);
        let mut stays = self
            .ops
            .iter()
            .enumerate()
            .filter(|(_, op)| op.is_in_effect);
        stays.any(|(index, op)| {
            op.changed.iter().any(|(name, (before, after))| {
                let mut sides = [before, after].into_iter().flatten();
                (is_other(name) || is_later(index))
                    && sides.any(|seen| inodes.contains(&self.token(seen.inode)))
            })
        })
    }

    pub(crate) fn has_inode(&self, op: &Op, inode: Inode) -> bool {
        self.inodes(op).contains(&self.token(inode))
    }

    fn inodes(&self, op: &Op) -> BTreeSet<Inode> {
        let sides = op
            .changed
            .values()
            .flat_map(|(before, after)| [before, after]);
        let files = sides.flatten().filter(|seen| !seen.is_directory());
        files.map(|seen| self.token(seen.inode)).collect()
    }

    /// Gives everything that may have been built on an operation, itself included.
    pub(crate) fn closure(&self, roots: &[usize]) -> BTreeSet<usize> {
        let mut found: BTreeSet<usize> = roots.iter().copied().collect();
        let mut queue = roots.to_vec();
        while let Some(index) = queue.pop() {
            for (other, op) in self.ops.iter().enumerate() {
                let meets = || {
                    let about = &self.ops[index].about;
                    about
                        .iter()
                        .any(|one| op.about.iter().any(|other| is_near(one, other)))
                };
                if !found.contains(&other) && op.is_in_effect && meets() {
                    found.insert(other);
                    queue.push(other);
                }
            }
        }
        found
    }

    pub(crate) fn index_of(&self, id: OperationId) -> Option<usize> {
        self.ops.iter().position(|op| op.id == id)
    }

    pub(crate) fn token(&self, inode: Inode) -> Inode {
        let mut at = inode;
        // A chain of files made anew; it ends, because each was made after the one before.
        while let Some(next) = self.tokens.get(&at).filter(|next| **next != at) {
            at = *next;
        }
        at
    }

    /// Compares which names are one file, and says which are not as they should be.
    pub(crate) fn check_links(&mut self, wanted: &Snapshot, now: &Snapshot) -> Result<(), String> {
        let mut real_of: HashMap<Inode, (Inode, Rel)> = HashMap::new();
        let mut token_of: HashMap<Inode, (Inode, Rel)> = HashMap::new();
        for (name, seen) in wanted.iter().filter(|(_, seen)| !seen.is_directory()) {
            let Some(real) = now.get(name).map(|seen| seen.inode) else {
                continue;
            };
            let token = self.token(seen.inode);
            let (other_real, with) = real_of.entry(token).or_insert((real, name.clone())).clone();
            let (other_token, beside) = token_of
                .entry(real)
                .or_insert((token, name.clone()))
                .clone();
            if other_real != real {
                return Err(format!(
                    "{:?} and {:?} were one file",
                    shown(name),
                    shown(&with)
                ));
            }
            if other_token != token {
                return Err(format!(
                    "{:?} and {:?} were two files",
                    shown(name),
                    shown(&beside)
                ));
            }
        }
        for (token, (real, _)) in real_of {
            if token != real {
                self.tokens.insert(token, real);
                self.tokens.remove(&real);
            }
        }
        Ok(())
    }
}

/// Finds what changed between two looks.
pub(crate) fn difference(before: &Snapshot, after: &Snapshot) -> BTreeMap<Rel, Sides> {
    let names: BTreeSet<&Rel> = before.keys().chain(after.keys()).collect();
    let sides = |name: &Rel| (before.get(name).cloned(), after.get(name).cloned());
    let all = names.into_iter().map(|name| (name.clone(), sides(name)));
    all.filter(|(_, (before, after))| before != after).collect()
}

/// Tells whether only the time of a directory changed, because of its entries.
pub(crate) fn is_only_time((before, after): &Sides) -> bool {
    match (before, after) {
        (Some(before), Some(after)) => before.is_directory() && before.is_like(after),
        (None, _) | (_, None) => false,
    }
}

/// Tells whether one name is the other, or is in it.
pub(crate) fn is_near(one: &Rel, other: &Rel) -> bool {
    one == other || is_below(one, other) || is_below(other, one)
}

pub(crate) fn is_below(name: &Rel, above: &Rel) -> bool {
    name.len() > above.len() && name.starts_with(above) && name[above.len()] == b'/'
}

fn parent(name: &Rel) -> Option<Rel> {
    let end = name.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
    (!name.is_empty()).then(|| name[..end].to_vec())
}

pub(crate) fn shown(name: &Rel) -> String {
    let text = String::from_utf8_lossy(name).into_owned();
    if text.len() > 60 {
        format!("{}...", &text[..20])
    } else {
        text
    }
}

pub(crate) fn put(snapshot: &mut Snapshot, name: &Rel, seen: Option<Seen>) {
    match seen {
        Some(seen) => drop(snapshot.insert(name.clone(), seen)),
        None => drop(snapshot.remove(name)),
    }
}

pub(crate) fn time(seen: Option<&Seen>) -> Option<i64> {
    seen.and_then(|seen| seen.mtime)
}

/// What was found is what comes back next time. Where nothing was left to do, nothing comes back.
fn follow_side(sides: &mut Sides, found: Option<&Seen>, way: Way) {
    let (from, to) = match way {
        Way::Back => (&mut sides.1, &sides.0),
        Way::Again => (&mut sides.0, &sides.1),
    };
    let is_done = alike(found, to.as_ref()) && !alike(found, from.as_ref());
    if is_done {
        from.clone_from(to);
    } else if alike(found, from.as_ref()) {
        *from = found.cloned();
    }
}

fn set_time(seen: &mut Option<Seen>, time: Option<i64>) {
    if let Some(seen) = seen {
        seen.mtime = time;
    }
}
