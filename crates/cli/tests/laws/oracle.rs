//! What the oracle knows: of every operation and name, what taking it back must bring, and what it must find first.
//!
//! It reads the world for itself. From the journal it takes only which targets are in effect, and holds that against
//! the world: a target that changed sides must have brought exactly what was there before it last changed sides.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use backout_model::{Lsn, Operation, OperationId, Reach, Standing, Target};

use crate::keys::all_keys;
use crate::running::is_near;
use crate::snapshot::{Seen, Tree, differing, put, unlike};

/// One name that an operation changed.
#[derive(Debug, Clone)]
pub(crate) struct Side {
    /// Whether the change is in the world, by the journal.
    is_in: bool,
    /// What comes when it changes sides.
    other: Option<Seen>,
    /// What may come instead: it was found so already.
    instead: Found,
    /// What it left when it last changed sides.
    left: Option<Seen>,
    /// Where it was last brought again, by itself or with the others.
    brought: Option<Lsn>,
    /// Whether somebody else changed it while the command ran.
    pub(crate) is_shared: bool,
    /// Whether nobody can tell any more: it was merged, or recovered in between.
    pub(crate) is_vague: bool,
}

impl Side {
    /// The command's part before it is told by itself: this begins with what somebody else had left.
    pub(crate) fn begin_with(&mut self, theirs: Option<Seen>) {
        self.other = theirs;
        self.is_shared = false;
        self.is_vague = false;
    }

    /// Tells whether only mode or times of a directory changed.
    pub(crate) fn is_dressed_directory(&self) -> bool {
        let is_directory = |seen: &Seen| seen.is_directory;
        self.other.as_ref().is_some_and(is_directory)
            && self.left.as_ref().is_some_and(is_directory)
    }
}

/// What was there already when it changed sides.
#[derive(Debug, Clone)]
enum Found {
    Nothing,
    Already(Option<Seen>),
}

#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) id: OperationId,
    place: Lsn,
    /// Whether something was moved: that goes back as somebody has changed it since.
    has_move: bool,
    pub(crate) names: BTreeMap<String, Side>,
}

/// What an act may do beside what was asked.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct May {
    pub(crate) overwrite: bool,
    pub(crate) merge: bool,
    /// It takes back an act by the name that this gave. Whoever brought a shared name again may take that back so.
    pub(crate) reverse: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Oracle {
    pub(crate) known: Vec<Known>,
    /// Directories that force made again so that something could come back into them.
    homes: BTreeSet<String>,
}

/// Force makes directories again that somebody removed; whoever takes that back takes them away, if they are empty.
fn follow_homes(
    homes: &mut BTreeSet<String>,
    sim: &mut Tree,
    now: &Tree,
    names: &BTreeSet<&String>,
    may: May,
) {
    let above = names.iter().filter_map(|name| name.rsplit_once('/'));
    for home in above.map(|(home, _)| home.to_owned()) {
        let is_empty = !sim.keys().any(|name| name.starts_with(&format!("{home}/")));
        match (sim.get(&home), now.get(&home)) {
            (None, Some(seen)) if seen.is_directory && (may.overwrite || homes.contains(&home)) => {
                put(sim, &home, Some(seen.clone()));
                homes.insert(home);
            }
            (Some(_), None) if is_empty && homes.contains(&home) => put(sim, &home, None),
            _ => {}
        }
    }
}

/// Tells whether something stands under a name now that it did not have before.
fn arrives(it: &Seen, before: &Tree, now: &Tree) -> bool {
    now.iter()
        .any(|(name, seen)| seen == it && before.get(name) != Some(it))
}

/// Finds the name of a target below the root.
pub(crate) fn name_of(root: &Path, target: &Target) -> Option<(String, Reach)> {
    let name = target.file()?.as_path().strip_prefix(root).ok()?;
    let mut names = vec![name.display().to_string()];
    names.extend_from_slice(target.key().parts());
    Some((names.join(":"), target.reach()))
}

/// Gives the target that covers a name, and whether it is in effect.
fn standing(root: &Path, operation: &Operation, name: &str) -> Option<bool> {
    let covering = operation.targets.iter().filter_map(|standing| {
        let (at, reach) = name_of(root, &standing.target)?;
        let rest = name.strip_prefix(&at);
        let is_below = rest.is_some_and(|rest| rest.starts_with('/'));
        let is_part = rest.is_some_and(|rest| rest.starts_with(':'));
        let covers = at == name || is_part || (reach == Reach::Tree && is_below);
        covers.then_some((at.len(), standing.is_in_effect()))
    });
    let (_, is_in) = covering.max_by_key(|(length, _)| *length)?;
    Some(is_in && operation.status.is_in_effect())
}

impl Oracle {
    /// Learns an operation that changed the world from one look to the next. Gives the names that it answers for.
    pub(crate) fn learn(
        &mut self,
        root: &Path,
        operation: &Operation,
        (before, after): (&Tree, &Tree),
        changed: &BTreeSet<String>,
    ) -> BTreeSet<String> {
        let mut names = BTreeMap::new();
        // A file that was written with the same bytes looks the same, and is changed.
        let targets = operation.targets.iter().map(|standing| &standing.target);
        let targets = targets.filter_map(|target| name_of(root, target));
        let targets: Vec<String> = targets.map(|(name, _)| name).collect();
        let keys: Vec<String> = targets.iter().flat_map(|name| all_keys(name)).collect();
        let rewritten = targets
            .into_iter()
            .filter(|name| before.get(name).is_some_and(|seen| !seen.is_directory))
            .filter(|name| before.get(name) == after.get(name));
        for name in changed.iter().cloned().chain(rewritten).chain(keys) {
            let name = &name;
            let Some(is_in) = standing(root, operation, name) else {
                continue;
            };
            let (was, is) = (before.get(name).cloned(), after.get(name).cloned());
            let (other, left) = if is_in { (was, is) } else { (is, was) };
            let side = Side {
                brought: None,
                is_in,
                other,
                instead: Found::Nothing,
                left,
                is_shared: false,
                is_vague: false,
            };
            names.insert(name.clone(), side);
        }
        let answered = names.keys().cloned().collect();
        self.known.push(Known {
            id: operation.id,
            place: operation.place,
            has_move: changed.iter().any(|name| {
                let was = before.get(name).filter(|seen| !seen.is_directory);
                was.is_some() && changed.iter().any(|other| after.get(other) == was)
            }),
            names,
        });
        answered
    }

    /// Learns that an operation also changed names of which nobody knows what they were when it did.
    pub(crate) fn learn_vaguely(
        &mut self,
        root: &Path,
        operation: &Operation,
        names: &BTreeSet<String>,
    ) {
        let Some(known) = self.known.iter_mut().find(|known| known.id == operation.id) else {
            return;
        };
        for name in names {
            if let Some(is_in) = standing(root, operation, name) {
                let side = known.names.entry(name.clone()).or_insert(Side {
                    brought: None,
                    is_in,
                    other: None,
                    instead: Found::Nothing,
                    left: None,
                    is_shared: true,
                    is_vague: true,
                });
                side.is_shared = true;
            }
        }
    }

    pub(crate) fn knows(&self, id: OperationId) -> bool {
        self.known.iter().any(|known| known.id == id)
    }

    pub(crate) fn sides_of(
        &mut self,
        id: OperationId,
    ) -> impl Iterator<Item = (&String, &mut Side)> {
        let known = self.known.iter_mut().filter(move |known| known.id == id);
        known.flat_map(|known| known.names.iter_mut())
    }

    /// Makes everything vague that speaks of a name.
    pub(crate) fn blur(&mut self, name: &str) {
        for known in &mut self.known {
            for (other, side) in &mut known.names {
                side.is_vague |= is_near(other, name);
            }
        }
    }

    pub(crate) fn is_vague(&self, id: OperationId) -> bool {
        let known = self.known.iter().filter(|known| known.id == id);
        known
            .flat_map(|known| known.names.values())
            .any(|side| side.is_vague)
    }

    /// Holds the journal against the world after an act. Gives the names that changed sides, with their operation.
    pub(crate) fn follow(
        &mut self,
        root: &Path,
        operations: &BTreeMap<OperationId, Operation>,
        (before, now): (&Tree, &Tree),
        may: May,
    ) -> Result<Vec<(OperationId, String)>, String> {
        let flips = self.flips(root, operations);
        let mut sim = before.clone();
        let (mut carried, mut vague) = (BTreeSet::new(), BTreeSet::new());
        let mut went = Vec::new();
        for &(index, ref name, is_in) in &flips {
            let known = &mut self.known[index];
            let place = place_of(root, operations, known.id, name);
            let (id, side) = (known.id, known.names.get_mut(name).unwrap());
            let is_as_left = sim.get(name) == side.left.as_ref();
            // What nobody can foresee of one, nobody can of those below it.
            side.is_vague |= vague.contains(name);
            if side.is_vague {
                vague.insert(name.clone());
            }
            let found = sim.get(name).cloned();
            let is_carried =
                known.has_move && found.as_ref().is_some_and(|it| arrives(it, &sim, now));
            let may = May {
                overwrite: may.overwrite || is_carried,
                ..may
            };
            flip(&mut sim, now, (id, name, side), is_in, may)?;
            side.brought = is_in.then_some(place).or(side.brought);
            if known.has_move {
                went.extend(found.into_iter().chain(sim.get(name).cloned()));
            }
            if known.has_move && !is_as_left {
                carried.extend(known.names.keys().cloned());
            }
        }
        for name in carried {
            self.blur(&name);
        }
        // A tree that moved took along what was in it by then.
        for name in differing(&sim, now) {
            let sides = [sim.get(&name), now.get(&name)];
            if sides.iter().flatten().all(|seen| went.contains(seen)) {
                put(&mut sim, &name, now.get(&name).cloned());
            }
        }
        let changed_sides: BTreeSet<&String> = flips.iter().map(|(_, name, _)| name).collect();
        follow_homes(&mut self.homes, &mut sim, now, &changed_sides, may);
        for name in differing(&sim, now) {
            let is_vague = |known: &Known| known.names.get(&name).is_some_and(|side| side.is_vague);
            let may_differ =
                changed_sides.contains(&name) && (may.merge || self.known.iter().any(is_vague));
            if may_differ {
                put(&mut sim, &name, now.get(&name).cloned());
                self.blur(&name);
            }
        }
        if let Some(why) = unlike(&sim, now) {
            let said: Vec<_> = flips
                .iter()
                .map(|(index, name, is_in)| {
                    let word = if *is_in { "again" } else { "back" };
                    format!("{} {name} {word}", self.known[*index].id.short())
                })
                .collect();
            return Err(format!("{why} (by the journal: {})", said.join(", ")));
        }
        let named = flips
            .into_iter()
            .map(|(index, name, _)| (self.known[index].id, name));
        Ok(named.collect())
    }

    /// Lists what changed sides by the journal, in the order in which that happens: first back, newest first, then again.
    fn flips(
        &self,
        root: &Path,
        operations: &BTreeMap<OperationId, Operation>,
    ) -> Vec<(usize, String, bool)> {
        let mut flips = Vec::new();
        for (index, known) in self.known.iter().enumerate() {
            let operation = &operations[&known.id];
            for (name, side) in &known.names {
                let is_in = standing(root, operation, name).unwrap_or(false);
                if is_in != side.is_in {
                    flips.push((index, name.clone(), is_in));
                }
            }
        }
        flips.sort_by_key(|(index, name, is_in)| {
            let known = &self.known[*index];
            // Another part of it may have been brought again since.
            let brought = known.names.get(name).and_then(|side| side.brought);
            match is_in {
                false => (0, u64::MAX - brought.unwrap_or(known.place).0),
                true => (1, place_of(root, operations, known.id, name).0),
            }
        });
        flips
    }
}

/// Gives the place where what an operation did to a name was last done: other parts of it may have been brought again since.
fn place_of(
    root: &Path,
    operations: &BTreeMap<OperationId, Operation>,
    id: OperationId,
    name: &str,
) -> Lsn {
    let is_it = |it: &Standing| name_of(root, &it.target).is_some_and(|(at, _)| at == name);
    let undoes = |it: &Operation| it.undoes.and_then(|undo| operations[&undo].undoes);
    let redos = operations.values().filter(|it| undoes(it) == Some(id));
    let redos = redos.filter(|it| it.in_effect().any(is_it));
    let newest = redos.map(|it| it.place).max();
    newest.unwrap_or(operations[&id].place)
}

/// Changes sides in memory, if what was found allows it.
fn flip(
    sim: &mut Tree,
    now: &Tree,
    (id, name, side): (OperationId, &String, &mut Side),
    is_in: bool,
    may: May,
) -> Result<(), String> {
    let found = sim.get(name).cloned();
    if let (Some(other), Some(left), Some(found)) = (side.other.clone(), side.left.clone(), &found)
        && left.with_mode_of(&other) == other
        && *found != left
    {
        // Only the mode was changed, and whatever else it is by now stays.
        put(sim, name, Some(found.with_mode_of(&other)));
        side.other = Some(other.with_mode_of(found));
        side.left = Some(other);
        side.is_in = is_in;
        return Ok(());
    }
    // A tree goes as a whole, whatever its own mode is by then; it comes back with it.
    let are_trees = matches!((&found, &side.left), (Some(found), Some(left)) if found.is_directory && left.is_directory);
    let is_as_left = found == side.left || are_trees;
    let is_there = found == side.other;
    if !is_as_left && !is_there && !may.overwrite && !may.merge && !side.is_vague {
        return Err(format!(
            "{} replaced `{name}` without a word: it was {found:?}, and had left {:?}",
            id.short(),
            side.left
        ));
    }
    let may_take_shared = may.overwrite || may.merge || may.reverse || is_there;
    if side.is_shared && !side.is_vague && !is_in && !may_take_shared {
        return Err(format!(
            "{} took `{name}` back without a word, which somebody changed while it ran",
            id.short()
        ));
    }
    let mut comes = side.other.clone();
    if let Found::Already(instead) = &side.instead
        && instead.as_ref() == now.get(name)
    {
        comes.clone_from(instead);
    }
    put(sim, name, comes.clone());
    // What was so already is no reason to forget what was before.
    side.other = if is_there {
        side.left.clone()
    } else {
        found.clone()
    };
    side.instead = if is_there {
        Found::Already(found)
    } else {
        Found::Nothing
    };
    side.left = comes;
    side.is_in = is_in;
    Ok(())
}
