//! Why there is nothing to undo, where somebody expects something: it was done elsewhere, as part of a tree, by another name of
//! the same file, or by a command that has not ended.

use std::os::unix::fs::MetadataExt as _;

use backout_model::{
    Goal, Key, Operation, OperationId, PlanError, Status, Target, TargetPath, Timestamp, Verb,
};
use backout_storage::Filter;

use crate::{Engine, EngineError, NotOver};

/// How many operations are looked at when the other names of a file are looked for.
const OTHER_NAMES_MAX: usize = 1000;

impl Engine {
    /// Finds a command that fits a goal and has not ended: what it changed is not in the journal yet.
    pub(super) fn at_work_on(&self, goal: &Goal) -> Result<Option<Operation>, EngineError> {
        let (since, task, agent) = match goal {
            Goal::Operations { .. } => return Ok(None),
            Goal::Task(task) => (None, Some(task), None),
            Goal::Since {
                lsn, task, agent, ..
            } => (Some(*lsn), task.as_ref(), agent.as_ref()),
        };
        let fits = |op: &Operation| {
            since.is_none_or(|since| op.place > since)
                && (task.is_none() || op.task.as_ref() == task)
                && (agent.is_none() || op.agent.as_ref() == agent)
        };
        Ok(self.commands_at_work()?.into_iter().find(fits))
    }

    /// Lists the commands that have not ended, newest first, but for the one that we are part of.
    fn commands_at_work(&self) -> Result<Vec<Operation>, EngineError> {
        let mut armed = self.store.armed()?;
        armed.retain(|op| op.verb == Verb::Run && Some(op.id) != self.context.within);
        Ok(armed)
    }

    /// Gives the newest of them, and tells whether somebody is still at it.
    fn command_not_over(&self) -> Result<Option<NotOver>, EngineError> {
        let newest = self.commands_at_work()?.into_iter().next();
        Ok(newest.map(|command| NotOver {
            id: command.id,
            is_dead: !self.store.is_alive(&command.owner),
        }))
    }

    /// Says that there is nothing to undo here, and whether there is elsewhere.
    pub(super) fn nothing_below<T>(
        &self,
        below: Option<&TargetPath>,
        filter: &Filter,
    ) -> Result<T, EngineError> {
        let Some(below) = below else {
            return Err(PlanError::Nothing.into());
        };
        let anywhere = Filter {
            at: None,
            ..filter.clone()
        };
        let elsewhere = self.newest(&anywhere, |operation| {
            Ok(!operation.verb.is_reversal() && operation.status != Status::Armed)
        })?;
        Err(EngineError::NothingBelow {
            below: below.clone(),
            elsewhere: elsewhere.map(|operation| (operation.id, operation.summary)),
            at_work: self.command_not_over()?,
        })
    }

    /// Says why there is nothing to undo at a path.
    pub(super) fn nothing_on(
        &self,
        key: &Key,
        since: Option<Timestamp>,
    ) -> Result<EngineError, EngineError> {
        let at_work = self.command_not_over()?;
        let Some(path) = key.file().filter(|_| key.parts().is_empty()) else {
            return Ok(EngineError::NothingOnPath {
                path: Box::new(key.clone()),
                is_unknown: !self.is_recorded(key)?,
                since,
                inside: None,
                other: None,
                old_name: None,
                leads_to: None,
                at_work,
            });
        };
        // It may lie in a tree that went or came as one.
        let mut inside = None;
        for above in path.ancestors() {
            let filter = Filter {
                at: Some(above.clone().into()),
                ..Filter::default()
            };
            let holds = |operation: &Operation| {
                let mut targets = operation.in_effect().map(|standing| &standing.target);
                Ok(!operation.verb.is_reversal()
                    && targets.any(|target| {
                        target.file() == Some(&above)
                            && Target::node(path.clone()).overlap(target).is_some()
                    }))
            };
            let found = self.newest(&filter, holds)?.map(|operation| operation.id);
            // In a directory that was made may lie what others put there.
            if let Some(id) = found
                && self.has_touched(id, path)?
            {
                inside = found;
                break;
            }
        }
        let is_there = path.as_path().symlink_metadata().is_ok();
        let old_name = self.by_old_name(path)?;
        Ok(EngineError::NothingOnPath {
            path: Box::new(key.clone()),
            is_unknown: !is_there
                && inside.is_none()
                && old_name.is_none()
                && !self.is_recorded(key)?,
            since,
            inside,
            other: self.by_another_name(path)?,
            old_name: old_name.map(Box::new),
            leads_to: self.leads_to(path)?.map(Box::new),
            at_work,
        })
    }

    /// Tells whether the journal knows anything at a place or below it.
    fn is_recorded(&self, key: &Key) -> Result<bool, EngineError> {
        let filter = Filter {
            at: Some(key.clone()),
            limit: Some(1),
            ..Filter::default()
        };
        Ok(!self.store.operations(&filter)?.is_empty())
    }

    /// Follows a link to something that was written.
    fn leads_to(&self, path: &TargetPath) -> Result<Option<TargetPath>, EngineError> {
        let Some(to) = real_target(path) else {
            return Ok(None);
        };
        let filter = Filter {
            at: Some(to.clone().into()),
            ..Filter::default()
        };
        let written = self.newest(&filter, |op| Ok(!op.verb.is_reversal()))?;
        Ok(written.map(|_| to))
    }

    /// Finds the newest operation in effect that wrote by a name which leads here now, since a directory on the way became a
    /// link after that.
    fn by_old_name(
        &self,
        path: &TargetPath,
    ) -> Result<Option<(OperationId, TargetPath)>, EngineError> {
        let name = path.as_path().file_name();
        let leads_here = |other: &TargetPath| {
            let above = other.parent().filter(|_| other != path);
            let real = above.and_then(|above| above.as_path().canonicalize().ok());
            let is_here = real.as_deref() == path.as_path().parent();
            is_here && other.as_path().file_name() == name
        };
        for operation in self.recently_in_effect()? {
            let mut names = operation.in_effect().filter_map(|it| it.target.file());
            if let Some(other) = names.find(|other| leads_here(other)) {
                return Ok(Some((operation.id, other.clone())));
            }
        }
        Ok(None)
    }

    /// Lists the newest operations that stand, as many as are looked at for other names.
    fn recently_in_effect(&self) -> Result<Vec<Operation>, EngineError> {
        let filter = Filter {
            limit: Some(OTHER_NAMES_MAX),
            ..Filter::default()
        };
        let mut found = self.store.operations(&filter)?;
        found.retain(|operation| {
            operation.status.is_in_effect()
                && operation.status != Status::Armed
                && !operation.verb.is_reversal()
        });
        Ok(found)
    }

    /// Finds the newest operation in effect that wrote the file at a path by another of its names.
    fn by_another_name(
        &self,
        path: &TargetPath,
    ) -> Result<Option<(OperationId, TargetPath)>, EngineError> {
        let look = |path: &TargetPath| path.as_path().symlink_metadata().ok();
        let Some(found) = look(path) else {
            return Ok(None);
        };
        // What a directory on the way that became a link leads to is not what was written by that name.
        let is_direct = |other: &TargetPath| {
            let above = other.parent().map(|above| above.as_path().to_path_buf());
            above.is_none_or(|above| above.canonicalize().is_ok_and(|real| real == above))
        };
        let is_it = |other: &TargetPath| {
            let it = look(other).filter(|_| other != path && is_direct(other));
            it.is_some_and(|it| (it.dev(), it.ino()) == (found.dev(), found.ino()))
        };
        for operation in self.recently_in_effect()? {
            let mut names = operation.in_effect().filter_map(|it| it.target.file());
            if let Some(other) = names.find(|other| is_it(other)) {
                return Ok(Some((operation.id, other.clone())));
            }
        }
        Ok(None)
    }
}

/// Gives the name at the end of a symbolic link.
pub fn real_target(path: &TargetPath) -> Option<TargetPath> {
    let is_link = |found: std::fs::Metadata| found.is_symlink();
    path.as_path()
        .symlink_metadata()
        .is_ok_and(is_link)
        .then_some(())?;
    TargetPath::new(path.as_path().canonicalize().ok()?).ok()
}
