//! What was done last, where nobody names it: below a directory, or outside of the file system.

use std::collections::{BTreeMap, BTreeSet};

use backout_model::{
    DependencyReason, Key, Operation, OperationId, Status, Strategy, Target, TargetPath, Verb,
};
use backout_storage::Filter;

use super::goal::Aim;
use crate::{Engine, EngineError, UndoOptions};

/// What is meant of operations of which not all is.
type Parts = BTreeMap<OperationId, BTreeSet<Key>>;

/// What was done last.
pub(super) enum NewestAct {
    /// All that is in effect of these operations.
    Whole(Vec<OperationId>),
    /// A redo that brought back a part: the names of the operations would mean more.
    Redo {
        act: OperationId,
        all: Vec<OperationId>,
        parts: Parts,
    },
}

/// How many operations are looked at first when the newest is looked for.
const PAGE: usize = 32;

impl Engine {
    /// Finds what was done last by the agent that asks: an operation, or all that one redo brought back.
    pub(super) fn newest_act(&self, below: Option<&TargetPath>) -> Result<NewestAct, EngineError> {
        let filter = Filter {
            agent: self.context.agent.clone(),
            task: self.context.task.clone(),
            at: below.cloned().map(Key::from),
            ..Filter::default()
        };
        let is_act = |operation: &Operation| {
            if operation.verb == Verb::Redo {
                operation.is_as_asked() && operation.status == Status::Committed
            } else {
                !operation.verb.is_redoable() && operation.status != Status::Armed
            }
        };
        let Some(newest) = self.newest_seen_from(&filter, |operation| Ok(is_act(operation)))?
        else {
            return self.nothing_below(below, &filter);
        };
        if !newest.retained {
            let is_kept = |operation: &Operation| Ok(is_act(operation) && operation.retained);
            if let Some(older) = self.newest_seen_from(&filter, is_kept)? {
                return Err(EngineError::NewestExpired {
                    id: newest.id,
                    summary: newest.summary,
                    older: (older.id, older.summary),
                });
            }
        }
        if let Some(why) = self.no_way_back(&newest)? {
            let can_go = |operation: &Operation| {
                let is_kept = is_act(operation) && operation.retained;
                Ok(is_kept && self.no_way_back(operation)?.is_none())
            };
            if let Some(older) = self.newest_seen_from(&filter, can_go)? {
                return Err(EngineError::NewestLost {
                    id: newest.id,
                    why,
                    older: (older.id, older.summary),
                });
            }
        }
        if newest.verb != Verb::Redo {
            return Ok(NewestAct::Whole(vec![newest.id]));
        }
        self.brought_by(&newest)
    }

    /// Says what is there by the act that a redo was part of.
    fn brought_by(&self, newest: &Operation) -> Result<NewestAct, EngineError> {
        // It may have had to take back what was written since.
        let (mut all, mut parts) = (Vec::new(), Parts::new());
        for id in self.members(newest)? {
            let member = self.store.operation(id)?;
            let Some(redo) = member.filter(|it| it.verb == Verb::Redo) else {
                all.push(id);
                continue;
            };
            let brought = redo.in_effect().map(|it| it.target.key().clone());
            if let Some(subject) = self.subject(redo.clone())? {
                parts.entry(subject).or_default().extend(brought);
                all.push(subject);
            }
        }
        all.dedup();
        // What is there by this act alone is meant as a whole.
        let mut whole = Vec::new();
        for (id, part) in &parts {
            let subject = self.store.operation(*id)?;
            let mut in_effect = subject.iter().flat_map(Operation::in_effect);
            if in_effect.all(|it| part.contains(it.target.key())) {
                whole.push(*id);
            }
        }
        parts.retain(|subject, _| !whole.contains(subject));
        if parts.is_empty() {
            return Ok(NewestAct::Whole(all));
        }
        Ok(NewestAct::Redo {
            act: newest.group.unwrap_or(newest.id),
            all,
            parts,
        })
    }

    /// Aims at what was done last.
    pub(super) fn aim_at_newest(
        &self,
        newest: NewestAct,
        options: &UndoOptions,
    ) -> Result<Aim, EngineError> {
        let dependencies = options.with_dependencies;
        match newest {
            NewestAct::Whole(mut newest) => {
                // Where targets are chosen, whoever has them is meant, not the command that it is a part of.
                if let [only] = newest.as_mut_slice()
                    && options.selection.is_everything()
                {
                    *only = self.command_of(*only)?;
                }
                self.aim_at(newest, dependencies)
            }
            NewestAct::Redo { act, all, parts } => Ok(Aim {
                named: vec![act],
                ..self.aim_at_parts(all, parts, dependencies)?
            }),
        }
    }

    /// Aims at operations, and at a part only of some of them.
    fn aim_at_parts(
        &self,
        ids: Vec<OperationId>,
        parts: Parts,
        dependencies: bool,
    ) -> Result<Aim, EngineError> {
        let mut aim = self.aim_at(ids, dependencies)?;
        for id in &aim.roots {
            if let Some(part) = parts.get(id) {
                aim.keys.extend(part.iter().cloned());
            } else {
                let root = self.store.operation(*id)?;
                let all = root.iter().flat_map(Operation::in_effect);
                aim.keys.extend(all.map(|it| it.target.key().clone()));
            }
        }
        aim.parts.extend(parts);
        Ok(aim)
    }

    /// Says why nothing takes an operation back, if what was recorded of it shows that.
    pub(crate) fn no_way_back(&self, operation: &Operation) -> Result<Option<String>, EngineError> {
        let may_be = match operation.decision.strategy {
            Strategy::Compensation | Strategy::Irreversible => operation.undoes.is_none(),
            Strategy::Snapshot | Strategy::Transaction => false,
        };
        if !may_be || !operation.retained || !operation.status.is_in_effect() {
            return Ok(None);
        }
        let effect = self.store.effect(operation.id)?;
        // Of a driver that is not there the plan says so.
        match self.driver_of(&effect) {
            Ok(driver) => Ok(driver.no_way_back(&effect)?),
            Err(_) => Ok(None),
        }
    }

    /// Names the command inside of which an operation was done, if that is over: that is what somebody did last.
    pub(super) fn command_of(&self, id: OperationId) -> Result<OperationId, EngineError> {
        let Some(operation) = self.store.operation(id)? else {
            return Ok(id);
        };
        for edge in &operation.depends_on {
            if edge.reason != DependencyReason::Within {
                continue;
            }
            let command = self.store.operation(edge.on)?;
            let is_over = |it: &Operation| it.status.is_in_effect() && it.status != Status::Armed;
            if command.as_ref().is_some_and(is_over) {
                return self.command_of(edge.on);
            }
        }
        Ok(operation.id)
    }

    /// Finds the newest operation at or below a directory, or outside of the file system: what belongs to no directory is
    /// seen from each.
    pub(super) fn newest_seen_from(
        &self,
        filter: &Filter,
        wanted: impl Fn(&Operation) -> Result<bool, EngineError>,
    ) -> Result<Option<Operation>, EngineError> {
        let here = self.newest(filter, &wanted)?;
        if filter.at.is_none() {
            return Ok(here);
        }
        let newer = Filter {
            at: None,
            after: here.as_ref().map(|here| here.lsn),
            ..filter.clone()
        };
        let is_outside = |target: &Target| target.file().is_none();
        let outside = self.newest_with(&newer, is_outside, &wanted)?;
        Ok(outside.or(here))
    }

    /// Finds the newest operation that `wanted` accepts and that has something in effect.
    pub(super) fn newest(
        &self,
        filter: &Filter,
        wanted: impl Fn(&Operation) -> Result<bool, EngineError>,
    ) -> Result<Option<Operation>, EngineError> {
        let is_here = |target: &Target| {
            let at = filter.at.as_ref();
            at.is_none_or(|at| target.key().is_at_or_below(at))
        };
        self.newest_with(filter, is_here, wanted)
    }

    /// The same, with such a target in effect, looking at a page at a time.
    fn newest_with(
        &self,
        filter: &Filter,
        is_here: impl Fn(&Target) -> bool,
        wanted: impl Fn(&Operation) -> Result<bool, EngineError>,
    ) -> Result<Option<Operation>, EngineError> {
        let mut limit = PAGE;
        loop {
            let page = Filter {
                limit: Some(limit),
                ..filter.clone()
            };
            let operations = self.store.operations(&page)?;
            let is_last = operations.len() < limit;
            for op in operations.into_iter().filter(|op| op.status.is_in_effect()) {
                if op.in_effect().any(|standing| is_here(&standing.target)) && wanted(&op)? {
                    return Ok(Some(op));
                }
            }
            if is_last {
                return Ok(None);
            }
            limit *= 8;
        }
    }
}
