//! What lies above an operation and has no edge to it in the journal, and what has one and does not stand in its way.
//!
//! Edges are written when an operation is armed. One that a redo brings back later than something else lies above that, as if
//! it had been written then: whoever takes the lower one back, by force too, has to take it back first, or the journal says of
//! it that it is in effect when it is gone. And who made a directory anew does not stand in the way of what comes back in it:
//! taken back first, it would leave that no place.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use backout_model::{
    Dependency, DependencyReason, Key, Lsn, Operation, OperationId, Standing, Target, Verb,
};
use backout_storage::Filter;

use super::preview::way_of;
use crate::{Engine, EngineError, TakeBack};

/// How many operations in a directory that a command brought are looked at.
const INSIDE_MAX: usize = 1000;

/// Where something was done: its place in the journal, and the act that it was part of.
type Done = (Lsn, Option<OperationId>);

impl Engine {
    /// Gathers what is connected with some operations, by the edges of the journal and by what was brought back since.
    pub(super) fn neighbours(
        &self,
        roots: &[OperationId],
    ) -> Result<BTreeMap<OperationId, Operation>, EngineError> {
        let by_id = |all: Vec<Operation>| all.into_iter().map(|it| (it.id, it));
        let mut found: BTreeMap<_, _> = by_id(self.store.connected(roots)?).collect();
        let mut edges = Vec::new();
        let mut seen: BTreeSet<OperationId> = roots.iter().copied().collect();
        let mut queue = roots.to_vec();
        while let Some(on) = queue.pop() {
            let Some(base) = self.store.operation(on)? else {
                continue;
            };
            let mut above = self.brought_above(&base)?;
            above.extend(self.written_inside(&base)?);
            for (later, reason) in above {
                edges.push((later, Dependency { on, reason }));
                if seen.insert(later) {
                    found.extend(by_id(self.store.connected(&[later])?));
                    queue.push(later);
                }
            }
        }
        for (later, edge) in edges {
            if let Some(later) = found.get_mut(&later) {
                later.depends_on.push(edge);
            }
        }
        self.excuse_makers(roots, &mut found)?;
        Ok(found)
    }

    /// Finds what was brought back over the targets of an operation after they became what they are.
    fn brought_above(
        &self,
        base: &Operation,
    ) -> Result<BTreeSet<(OperationId, DependencyReason)>, EngineError> {
        let mut above = BTreeSet::new();
        if !base.status.is_in_effect() {
            return Ok(above);
        }
        let targets: Vec<Target> = base.in_effect().map(|it| it.target.clone()).collect();
        let subject = self.subject_of(base)?.id;
        let near = self.store.dependencies(&targets)?;
        let near: BTreeSet<OperationId> = near.into_iter().map(|edge| edge.on).collect();
        let is_other = |id: &OperationId| *id != base.id && *id != subject;
        let lower = Lower::of(self, base)?;
        let mut redos = HashMap::new();
        let mut below = None;
        for id in near.into_iter().filter(is_other) {
            let Some(other) = self.store.operation(id)? else {
                continue;
            };
            let is_brought = other.in_effect().any(|it| it.held_by.is_some());
            if other.verb.is_reversal() || !is_brought {
                continue;
            }
            // Where one was built on the other, that tells which lies above. An undo is below all that was brought back since.
            if below.is_none() {
                below = Some(self.bases_of(subject)?);
            }
            let is_base = below.as_ref().is_some_and(|below| below.contains(&id));
            let is_built_upon =
                |subject| Ok::<_, EngineError>(self.bases_of(id)?.contains(subject));
            if is_base || !base.verb.is_reversal() && is_built_upon(&subject)? {
                continue;
            }
            for standing in other.in_effect() {
                let Some(redo) = standing.held_by else {
                    continue;
                };
                let brought = self.done_at(redo, &mut redos)?;
                let lies_above = |target: &&Target| {
                    let (at, act) = lower.done(target);
                    brought.0 > at && (act.is_none() || brought.1 != act)
                };
                for target in lower.near(&standing.target).filter(lies_above) {
                    let reason = DependencyReason::between(&standing.target, target);
                    above.extend(reason.map(|reason| (id, reason)));
                }
            }
        }
        Ok(above)
    }

    /// Finds what others wrote, while a command ran, in a directory that it had brought: by its place in the journal that came
    /// before the command, and nothing was at that name before it.
    fn written_inside(
        &self,
        command: &Operation,
    ) -> Result<BTreeSet<(OperationId, DependencyReason)>, EngineError> {
        let mut inside = BTreeSet::new();
        if command.verb != Verb::Run || !command.status.is_in_effect() || !command.retained {
            return Ok(inside);
        }
        let effect = self.store.effect(command.id)?;
        let brought = self.driver_of(&effect)?.outline(&effect)?.brought;
        let is_standing = |key: &Key| command.in_effect().any(|it| it.target.key() == key);
        for key in brought.into_iter().filter(|key| is_standing(key)) {
            let filter = Filter {
                at: Some(key.clone()),
                before: Some(command.lsn),
                limit: Some(INSIDE_MAX),
                ..Filter::default()
            };
            for other in self.store.operations(&filter)? {
                let is_below = |it: &Standing| key_is_below(it.target.key(), &key);
                let is_it = other.at >= command.at
                    && other.id != command.id
                    && !other.verb.is_reversal()
                    && other.status.is_in_effect()
                    && other.in_effect().any(is_below);
                if is_it {
                    inside.insert((other.id, DependencyReason::InsideDirectory));
                }
            }
        }
        Ok(inside)
    }

    /// Names all that an operation was built on.
    fn bases_of(&self, id: OperationId) -> Result<HashSet<OperationId>, EngineError> {
        let mut found = HashSet::new();
        let mut queue = vec![id];
        while let Some(id) = queue.pop() {
            let operation = self.store.operation(id)?;
            let edges = operation.into_iter().flat_map(|it| it.depends_on);
            let edges = edges.filter(|edge| edge.reason.is_of_targets());
            queue.extend(edges.map(|edge| edge.on).filter(|on| found.insert(*on)));
        }
        Ok(found)
    }

    fn done_at(
        &self,
        id: OperationId,
        known: &mut HashMap<OperationId, Done>,
    ) -> Result<Done, EngineError> {
        if let Some(done) = known.get(&id) {
            return Ok(*done);
        }
        let operation = self.store.operation(id)?;
        let done = operation.map_or((Lsn(0), None), |it| (it.lsn, it.group));
        known.insert(id, done);
        Ok(done)
    }

    /// Takes the edges away that say of an operation that it holds what an undo took, where all that it did is to make the
    /// directory of that anew.
    fn excuse_makers(
        &self,
        roots: &[OperationId],
        found: &mut BTreeMap<OperationId, Operation>,
    ) -> Result<(), EngineError> {
        let is_undo = |it: &&Operation| {
            roots.contains(&it.id) && way_of(it) == TakeBack::Redo && it.status.is_in_effect()
        };
        let mut taken: BTreeMap<OperationId, Vec<Key>> = BTreeMap::new();
        for undo in found.values().filter(is_undo) {
            let keys = undo.in_effect().map(|it| it.target.key().clone());
            taken.insert(undo.id, keys.collect());
        }
        for operation in found.values_mut() {
            let mut excused = BTreeSet::new();
            for edge in &operation.depends_on {
                let is_above = edge.reason == DependencyReason::HoldsTarget;
                if let (true, Some(keys)) = (is_above, taken.get(&edge.on))
                    && self.only_made(operation, keys)?
                {
                    excused.insert(edge.on);
                }
            }
            operation.depends_on.retain(|edge| {
                edge.reason != DependencyReason::HoldsTarget || !excused.contains(&edge.on)
            });
        }
        Ok(())
    }

    /// Tells whether an operation made every directory above some places that it has to do with.
    fn only_made(&self, operation: &Operation, places: &[Key]) -> Result<bool, EngineError> {
        let above: BTreeSet<Key> = places.iter().flat_map(Key::ancestors).collect();
        let is_above = |it: &&Standing| above.contains(it.target.key());
        for standing in operation.in_effect().filter(is_above) {
            let holder = standing.held_by.unwrap_or(operation.id);
            let sides = self.sides_of(&self.store.effect(holder)?)?;
            let path = standing.target.file();
            let side = sides.iter().find(|side| Some(&side.path) == path);
            if side.is_none_or(|side| side.before.is_some()) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn key_is_below(key: &Key, above: &Key) -> bool {
    key != above && key.is_at_or_below(above)
}

/// The targets of an operation, each with when it became what it is.
struct Lower {
    targets: HashMap<Key, (Target, Done)>,
    /// A target below each place that is above one.
    below: HashMap<Key, Key>,
}

impl Lower {
    fn of(engine: &Engine, base: &Operation) -> Result<Self, EngineError> {
        let mut known = HashMap::from([(base.id, (base.lsn, base.group))]);
        let (mut targets, mut below) = (HashMap::new(), HashMap::new());
        for standing in base.in_effect() {
            let holder = standing.held_by.unwrap_or(base.id);
            let done = engine.done_at(holder, &mut known)?;
            let key = standing.target.key();
            for above in key.ancestors() {
                below.entry(above).or_insert_with(|| key.clone());
            }
            targets.insert(key.clone(), (standing.target.clone(), done));
        }
        Ok(Self { targets, below })
    }

    fn done(&self, target: &Target) -> Done {
        let found = self.targets.get(target.key());
        found.map_or((Lsn(0), None), |(_, done)| *done)
    }

    /// Gives those that may touch a target: the same, those above, and one below.
    fn near(&self, target: &Target) -> impl Iterator<Item = &Target> {
        let key = target.key();
        let mut keys = key.ancestors();
        keys.push(key.clone());
        keys.extend(self.below.get(key).cloned());
        let found = keys.into_iter().filter_map(|key| self.targets.get(&key));
        found.map(|(target, _)| target)
    }
}
