//! Who wrote the names that a way back would change: the journal says so of what is settled, and a look at what is not.
//!
//! - A refused write wrote nothing, and an operation whose result somebody changed since is not who made it what it is. Of
//!   another agent it counts all the same: what it wrote would go.
//! - A command at work is cut first, so that its part in these names is in the journal. Where nothing is to be changed, nobody
//!   is cut; then what no operation wrote may be the work of such a command, and so it is with one whose watcher died.
//! - A call of an agent's own tool that has not ended is looked at: what is not what it was before is its work.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use backout_model::ports::State;
use backout_model::{AgentId, Operation, OperationId, Status, TargetPath, Verb};

use super::{WorkspaceBy, WorkspaceChange};
use crate::{Engine, EngineError};

/// What is known of who wrote which names.
pub(super) struct Writers {
    by_name: BTreeMap<TargetPath, WorkspaceBy>,
    /// Operations that have not ended and may have written any name.
    unsettled: Vec<Operation>,
}

impl Engine {
    /// Finds who wrote what, of all that happened since a checkpoint. With `is_cut` the commands at work have told their part.
    pub(super) fn writers(
        &self,
        since: &[Operation],
        is_cut: bool,
    ) -> Result<Writers, EngineError> {
        let mut writers = Writers {
            by_name: BTreeMap::new(),
            unsettled: Vec::new(),
        };
        for operation in self.store.armed()? {
            if Some(operation.id) == self.context.within {
                continue;
            }
            if let Some(call) = self.armed_call(operation.id)? {
                let looked = self.commands.settle_looked(self.next_id(), &call.found)?;
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
        }
        Ok(writers)
    }

    /// Says who wrote each name. What somebody changed after an operation is not its doing; of another agent that is said.
    pub(super) fn attribute(
        &self,
        writers: &Writers,
        changes: &mut [WorkspaceChange],
    ) -> Result<(), EngineError> {
        for change in &mut *changes {
            change.by = writers.of(&change.path);
        }
        let named: BTreeSet<OperationId> = changes
            .iter()
            .filter_map(|change| Some(change.by.as_ref()?.id))
            .collect();
        let mut unlike = HashSet::new();
        for id in named {
            unlike.extend(self.changed_since(id)?.into_iter().map(|path| (id, path)));
        }
        for change in changes {
            let Some(by) = &mut change.by else {
                continue;
            };
            if unlike.contains(&(by.id, change.path.clone())) {
                by.is_changed_since = true;
                if !self.is_others(by.agent.as_ref()) {
                    change.by = None;
                }
            }
        }
        Ok(())
    }

    /// Lists the names that are not what an operation left.
    fn changed_since(&self, id: OperationId) -> Result<Vec<TargetPath>, EngineError> {
        let Some(operation) = self.store.operation(id)? else {
            return Ok(Vec::new());
        };
        if operation.status == Status::Armed || !operation.retained {
            return Ok(Vec::new());
        }
        let mut changed = Vec::new();
        for holder in operation.holders() {
            let effect = self.store.effect(holder)?;
            let examined = self.driver_of(&effect)?.examine(&effect, false)?;
            let others = examined.into_iter().filter(|it| it.state != State::After);
            changed.extend(others.filter_map(|it| it.target.file().cloned()));
        }
        Ok(changed)
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
    fn add<'p>(&mut self, operation: &Operation, names: impl Iterator<Item = &'p TargetPath>) {
        for path in names {
            self.by_name
                .entry(path.clone())
                .or_insert_with(|| WorkspaceBy {
                    id: operation.id,
                    agent: operation.agent.clone(),
                    is_changed_since: false,
                });
        }
    }

    /// Finds who wrote a name, a directory that it is in, or something in it.
    fn of(&self, path: &TargetPath) -> Option<WorkspaceBy> {
        let own = self.by_name.get(path);
        let above = || {
            let mut above = path.ancestors();
            above.find_map(|above| self.by_name.get(&above))
        };
        let below = || {
            let mut after = self.by_name.range(path.clone()..);
            let found = after.find(|(name, _)| name.is_below(path));
            found.map(|(_, by)| by)
        };
        own.or_else(above).or_else(below).cloned()
    }
}

/// Tells whether an operation wrote its targets, or may have.
fn has_written(operation: &Operation) -> bool {
    operation.status.is_in_effect() && !operation.verb.is_reversal()
}
