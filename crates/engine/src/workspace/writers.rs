//! Who wrote the names that a way back would change: the journal says so of what is settled, and a look at what is not.
//!
//! - A refused write wrote nothing, and an operation whose result somebody changed since is not who made it what it is. Of
//!   another agent it counts all the same: what it wrote would go.
//! - A file may have been written by another of its names, and what is in a directory by a name that it had before the directory was
//!   moved.
//! - A command at work is cut first, so that its part in these names is in the journal. Where nothing is to be changed, nobody
//!   is cut; then what no operation wrote may be the work of such a command, and so it is with one whose watcher died.
//! - A call of an agent's own tool that has not ended is looked at: what is not what it was before is its work.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::MetadataExt as _;

use backout_files::Was;
use backout_model::ports::State;
use backout_model::{AgentId, Operation, OperationId, Status, TargetPath, Verb};

use super::{WorkspaceBy, WorkspaceChange};
use crate::undo::after_moves;
use crate::{Engine, EngineError, TrialWhat};

/// What is known of who wrote which names.
#[derive(Default)]
pub(super) struct Writers {
    by_name: BTreeMap<TargetPath, Vec<Writer>>,
    /// What newer operations moved, the newest first.
    moves: Vec<Vec<(TargetPath, TargetPath)>>,
    /// Operations that have not ended and may have written any name.
    unsettled: Vec<Operation>,
    count: usize,
}

/// An operation that wrote a name.
#[derive(Clone)]
struct Writer {
    id: OperationId,
    agent: Option<AgentId>,
    /// The name that it wrote; a directory above may have got another since.
    name: TargetPath,
    /// How many newer ones there are.
    rank: usize,
}

impl Engine {
    /// Finds who wrote what, of all that happened since a checkpoint. With `is_cut` the commands at work have told their part.
    pub(super) fn writers(
        &self,
        since: &[Operation],
        is_cut: bool,
    ) -> Result<Writers, EngineError> {
        let mut writers = Writers::default();
        for operation in self.store.armed()? {
            if Some(operation.id) == self.context.within {
                continue;
            }
            if let Some(call) = self.armed_call(operation.id)? {
                let looked = self.look_at_call(operation.id, operation.lsn, &call)?;
                let changed = looked.targets.iter().filter_map(|target| target.file());
                writers.add(&operation, changed);
            } else if operation.verb == Verb::Run
                && !(is_cut && self.store.is_alive(&operation.owner))
            {
                writers.unsettled.push(operation);
            }
        }
        // The newest comes first, and counts.
        for operation in since.iter().filter(|it| has_written(it)) {
            let standing = operation.in_effect();
            writers.add(operation, standing.filter_map(|it| it.target.file()));
            let moves = self.moves_of(operation);
            writers.moves.extend((!moves.is_empty()).then_some(moves));
        }
        Ok(writers)
    }

    /// Says who wrote each name. What somebody changed after an operation is not its doing; of another agent that is said, and
    /// so it is where all that it wrote is still there.
    pub(super) fn attribute(
        &self,
        writers: &Writers,
        changes: &mut [WorkspaceChange],
    ) -> Result<(), EngineError> {
        let linked = writers.linked(changes);
        let mut unlike: HashMap<OperationId, HashMap<TargetPath, bool>> = HashMap::new();
        for change in changes {
            let mut all = writers.of(change);
            all.extend(linked.get(&change.path).into_iter().flatten().cloned());
            // Whose word is needed is told first, then the newest.
            all.sort_by_key(|it| (!self.is_others(it.agent.as_ref()), it.rank));
            for writer in all {
                let others = match unlike.entry(writer.id) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(new) => new.insert(self.changed_since(writer.id)?),
                };
                let since = others.get(&writer.name);
                let has_its_bytes = since.is_none_or(|has_its_bytes| *has_its_bytes);
                if has_its_bytes || self.is_others(writer.agent.as_ref()) {
                    change.by = Some(WorkspaceBy {
                        id: writer.id,
                        agent: writer.agent,
                        is_changed_since: since.is_some(),
                    });
                    break;
                }
            }
        }
        Ok(())
    }

    /// Lists the names that are not what an operation left, and whether each has the bytes that it left.
    fn changed_since(&self, id: OperationId) -> Result<HashMap<TargetPath, bool>, EngineError> {
        let mut changed = HashMap::new();
        let Some(operation) = self.store.operation(id)? else {
            return Ok(changed);
        };
        if operation.status == Status::Armed || !operation.retained {
            return Ok(changed);
        }
        for holder in operation.holders() {
            let effect = self.store.effect(holder)?;
            let examined = self.driver_of(&effect)?.examine(&effect, false)?;
            let others = examined.into_iter().filter(|it| it.state != State::After);
            let others: Vec<_> = others.collect();
            if others.is_empty() {
                continue;
            }
            let sides = self.sides_of(&effect)?;
            for path in others.iter().filter_map(|it| it.target.file()) {
                let side = sides.iter().find(|side| side.path == *path);
                let left = side.and_then(|side| side.after.as_ref());
                let has_its_bytes = match left {
                    Some(left) => self.has_bytes(path, left)?,
                    None => false,
                };
                changed.insert(path.clone(), has_its_bytes);
            }
        }
        Ok(changed)
    }

    /// Tells whether a name is what it was left as, but for its mode, owner and attributes.
    fn has_bytes(&self, path: &TargetPath, left: &Was) -> Result<bool, EngineError> {
        let Some(now) = self.files.now(path)? else {
            return Ok(false);
        };
        if now.kind != left.kind || now.points_to() != left.points_to() {
            return Ok(false);
        }
        let digest = self.files.digest(left)?;
        Ok(!left.is_file() || digest.is_some() && self.files.digest(&now)? == digest)
    }

    /// Tells whether the work of an agent needs a word before it goes.
    pub(super) fn is_others(&self, agent: Option<&AgentId>) -> bool {
        let me = self.context.agent.as_ref();
        (me.is_some() || self.context.is_inside) && agent != me
    }

    /// Names what has not ended, of other agents, and may have written names that no operation did.
    pub(super) fn may_have_written(
        &self,
        writers: &Writers,
        changes: &[WorkspaceChange],
    ) -> Vec<OperationId> {
        if changes.iter().all(|change| change.by.is_some()) {
            return Vec::new();
        }
        let others = writers.unsettled.iter();
        let others = others.filter(|it| self.is_others(it.agent.as_ref()));
        others.map(|it| it.id).collect()
    }
}

impl Writers {
    /// Adds a writer, older than those that are there, by the names that it wrote and those that these got since.
    fn add<'p>(&mut self, operation: &Operation, names: impl Iterator<Item = &'p TargetPath>) {
        for path in names {
            let writer = Writer {
                id: operation.id,
                agent: operation.agent.clone(),
                name: path.clone(),
                rank: self.count,
            };
            let older_first = self.moves.iter().rev();
            let now = older_first.fold(None, |now: Option<TargetPath>, moves| {
                after_moves(now.as_ref().unwrap_or(path), moves).or(now)
            });
            for name in now.into_iter().chain([path.clone()]) {
                self.by_name.entry(name).or_default().push(writer.clone());
            }
        }
        self.count += 1;
    }

    /// Finds who wrote a name, a directory that it is in, or something in what goes as one; each time the newest.
    fn of(&self, change: &WorkspaceChange) -> Vec<Writer> {
        let path = &change.path;
        let at = |name: &TargetPath| self.by_name.get(name).and_then(|all| all.first()).cloned();
        let mut all: Vec<Writer> = at(path).into_iter().collect();
        all.extend(path.ancestors().find_map(|above| at(&above)));
        if change.what == TrialWhat::Created || all.is_empty() {
            let after = self
                .by_name
                .range(path.clone()..)
                .skip_while(|it| it.0 == path);
            let below = after.take_while(|(name, _)| name.as_bytes().starts_with(path.as_bytes()));
            let below = below.filter(|(name, _)| name.is_below(path));
            all.extend(below.filter_map(|(_, all)| all.first()).cloned());
        }
        all
    }

    /// Finds who wrote files by another of their names.
    fn linked(&self, changes: &[WorkspaceChange]) -> HashMap<TargetPath, Vec<Writer>> {
        let paths = changes.iter().map(|change| &change.path);
        let shared = paths.filter_map(|path| Some((path, number_of(path)?)));
        let shared: Vec<(&TargetPath, (u64, u64))> = shared.collect();
        if shared.is_empty() {
            return HashMap::new();
        }
        let mut names: HashMap<(u64, u64), Vec<Writer>> = HashMap::new();
        for (name, all) in &self.by_name {
            if let Some((number, writer)) = number_of(name).zip(all.first()) {
                names.entry(number).or_default().push(writer.clone());
            }
        }
        let known = shared.into_iter();
        let known = known.filter_map(|(path, number)| Some((path, names.get(&number)?)));
        known
            .map(|(path, all)| (path.clone(), all.clone()))
            .collect()
    }
}

/// Gives the number of a file with several names.
fn number_of(path: &TargetPath) -> Option<(u64, u64)> {
    let found = path.as_path().symlink_metadata().ok()?;
    (found.is_file() && found.nlink() > 1).then(|| (found.dev(), found.ino()))
}

/// Tells whether an operation wrote its targets, or may have.
fn has_written(operation: &Operation) -> bool {
    operation.status.is_in_effect() && !operation.verb.is_reversal()
}
