//! What was done last, where nobody names it: below a directory, or outside of the file system.

use std::collections::BTreeSet;

use backout_model::{
    DependencyReason, Key, Operation, OperationId, Status, Target, TargetPath, Verb,
};
use backout_storage::Filter;

use crate::{Engine, EngineError};

/// How many operations are looked at first when the newest is looked for.
const PAGE: usize = 32;

impl Engine {
    /// Finds what was done last by the agent that asks: an operation, or all that one redo brought back.
    pub(super) fn newest_act(
        &self,
        below: Option<&TargetPath>,
    ) -> Result<Vec<OperationId>, EngineError> {
        let filter = Filter {
            agent: self.context.agent.clone(),
            task: self.context.task.clone(),
            at: below.cloned().map(Key::from),
            ..Filter::default()
        };
        let is_act = |operation: &Operation| match operation.verb {
            Verb::Redo => operation.is_as_asked() && operation.status == Status::Committed,
            Verb::Undo | Verb::Recover => false,
            _ => operation.status != Status::Armed,
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
        if newest.verb != Verb::Redo {
            return Ok(vec![newest.id]);
        }
        // It may have had to take back what was written since.
        let mut all = Vec::new();
        for id in self.members(&newest)? {
            match self.store.operation(id)? {
                Some(member) if member.verb == Verb::Redo => {
                    all.extend(self.brought_whole(&newest, &member)?.or(Some(id)));
                }
                _ => all.push(id),
            }
        }
        Ok(all)
    }

    /// Names what one of the redos of an act brought back, if all of that which is in effect is there by this act.
    fn brought_whole(
        &self,
        act: &Operation,
        redo: &Operation,
    ) -> Result<Option<OperationId>, EngineError> {
        let subject = self.subject_of(redo)?;
        let mut brought = BTreeSet::new();
        for id in self.members(act)? {
            let member = self.store.operation(id)?;
            let Some(member) = member.filter(|it| it.verb == Verb::Redo) else {
                continue;
            };
            if self.subject(member.clone())? == Some(subject.id) {
                brought.extend(member.in_effect().map(|it| it.target.key().clone()));
            }
        }
        let mut in_effect = subject.in_effect();
        let is_whole = in_effect.all(|it| brought.contains(it.target.key()));
        Ok(is_whole.then_some(subject.id))
    }

    /// Names the command that an operation tells a part of: that is what somebody did. A command that runs is not meant, and
    /// what was started inside of one is told by its own process.
    pub(super) fn command_of(&self, id: OperationId) -> Result<OperationId, EngineError> {
        let operation = self.store.operation(id)?.filter(|it| it.verb == Verb::Run);
        let Some(operation) = operation else {
            return Ok(id);
        };
        let owner = self.store.first_owner(operation.id)?;
        for edge in &operation.depends_on {
            if edge.reason != DependencyReason::Within {
                continue;
            }
            let command = self.store.operation(edge.on)?;
            let is_over =
                command.is_some_and(|it| it.status.is_in_effect() && it.status != Status::Armed);
            if is_over && self.store.first_owner(edge.on)? == owner {
                return Ok(edge.on);
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
