//! What a call did, told apart from what others did to the same names meanwhile.
//!
//! ```text
//! before ──► another operation writes the name ──► a look
//!            the journal has it: what is as that left it is its work, and not the call's
//! ```
//!
//! - Before an operation writes a name, an open call that has written it already is settled: then what it did is recorded first.
//! - Of what is recorded since, the newest operation on a name counts. What it left and what is there now are the two sides of the
//!   call's own change.
//! - Only names are told apart: a call of which one file was settled early is settled as a whole.

use std::collections::{BTreeMap, BTreeSet};

use backout_files::{FileChange, Left, Past, Settled, Since, Was};
use backout_model::ports::State;
use backout_model::{
    Effect, Event, JsonText, Key, Lsn, Operation, OperationId, PromptId, Reach, Status, Target,
    TargetPath, Verb,
};
use backout_storage::Filter;

use super::{ArmedCall, Caller};
use crate::{Engine, EngineError};

impl Engine {
    /// Says what a call did to the names that it was to write, as far as nobody else did it since a place in the journal.
    pub(crate) fn look_at_call(
        &self,
        id: OperationId,
        begun: Lsn,
        call: &ArmedCall,
    ) -> Result<Settled, EngineError> {
        let found = self.found_by(id, begun, call)?;
        let found = found.as_ref().unwrap_or(&call.found);
        Ok(self.commands.settle_looked(id, found)?)
    }

    /// Brings what was found before a call up to what others recorded since; none if nobody did.
    fn found_by(
        &self,
        id: OperationId,
        begun: Lsn,
        call: &ArmedCall,
    ) -> Result<Option<JsonText>, EngineError> {
        let filter = Filter {
            placed_after: Some(begun),
            ..Filter::default()
        };
        let mut later = self.store.operations(&filter)?;
        later.retain(|it| it.id != id && it.retained && is_recorded(it));
        if later.is_empty() {
            return Ok(None);
        }
        let agent = self.store.operation(id)?.and_then(|it| it.agent);
        let mut names = self.names_of(call)?;
        let mut since: BTreeMap<TargetPath, Since> = BTreeMap::new();
        for operation in &later {
            if !names.iter().any(|name| is_on(operation, name)) {
                continue;
            }
            let Some(files) = self.as_files(&self.store.effect(operation.id)?)? else {
                continue;
            };
            let is_own = operation.agent == agent;
            let sides = self.sides_of(&files)?;
            let is_watched = operation.verb == Verb::Run;
            let mut not_known = Vec::new();
            for name in &names {
                let Some(side) = side_of(&sides, name) else {
                    continue;
                };
                let found = side.is_told.then(|| Past {
                    path: name.clone(),
                    was: side.found.cloned(),
                });
                // A command does not have open calls settled before it writes: what it found must be known.
                if found.is_none() && is_watched {
                    not_known.push(name.clone());
                } else if let Some(newer) = since.get_mut(name) {
                    newer.found = found;
                } else if let Some(left) = self.left_of(&files, name, side.left, is_own)? {
                    let path = name.clone();
                    since.insert(path.clone(), Since { path, found, left });
                } else {
                    not_known.push(name.clone());
                }
            }
            for name in not_known {
                since.remove(&name);
                names.remove(&name);
            }
        }
        if since.is_empty() {
            return Ok(None);
        }
        let since: Vec<Since> = since.into_values().collect();
        Ok(Some(self.commands.found_since(&call.found, &since)?))
    }

    /// Lists the names that were looked at before a call, with directories that it has to make.
    fn names_of(&self, call: &ArmedCall) -> Result<BTreeSet<TargetPath>, EngineError> {
        let told = self.commands.names_looked_at(&call.found)?;
        let missing = told.iter().flat_map(TargetPath::ancestors);
        Ok(missing.chain(told.clone()).collect())
    }

    /// Says what an operation left of a name. Where nobody has that any more, it is not believed of the same agent: two of its
    /// calls on one file at once are taken back together.
    fn left_of(
        &self,
        files: &Effect,
        name: &TargetPath,
        left: Option<&Was>,
        is_own: bool,
    ) -> Result<Option<Left>, EngineError> {
        let now = self.files.now(name)?;
        let is_directory = |was: Option<&Was>| was.is_some_and(Was::is_directory);
        let stands = match left {
            None => now.is_none(),
            Some(_) if is_directory(left) => is_directory(now.as_ref()),
            Some(_) => self.still_stands(files, name)?,
        };
        if stands {
            return Ok(Some(Left::Stands));
        }
        let is_had = match left {
            Some(left) if left.is_file() => self.files.is_at_hand(left)?,
            Some(_) | None => true,
        };
        Ok((is_had || !is_own).then(|| Left::Was(left.cloned().map(Box::new))))
    }

    fn still_stands(&self, files: &Effect, name: &TargetPath) -> Result<bool, EngineError> {
        let examined = self.driver_of(files)?.examine(files, false)?;
        let mut states = examined.iter().filter(|it| it.target.file() == Some(name));
        Ok(states.any(|it| it.state == State::After))
    }

    /// Settles what a caller began on these names and nobody ended: the next call on them shows that it is over.
    pub(super) fn settle_earlier(
        &self,
        caller: &Caller,
        names: &[TargetPath],
    ) -> Result<(), EngineError> {
        for operation in self.store.armed()? {
            let Some(call) = self.open_call(&operation)? else {
                continue;
            };
            if call.caller != *caller || operation.agent != self.context.agent {
                continue;
            }
            let told = self.commands.names_looked_at(&call.found)?;
            if told.iter().any(|name| names.contains(name)) {
                self.end_operation(operation.id)?;
            }
        }
        Ok(())
    }

    /// Settles open calls that have written what is about to be written by somebody else. One that has not written there may still do so.
    pub(crate) fn settle_written(&self, targets: &[Target]) -> Result<(), EngineError> {
        for operation in self.store.armed()? {
            let Some(call) = self.open_call(&operation)? else {
                continue;
            };
            let mut told = self.commands.names_looked_at(&call.found)?.into_iter();
            if !told.any(|name| is_met(targets, &name)) {
                continue;
            }
            match self.look_at_call(operation.id, operation.lsn, &call) {
                Ok(looked) => {
                    let mut wrote = looked.targets.iter().filter_map(Target::file);
                    if wrote.any(|name| is_met(targets, name)) {
                        self.end_operation(operation.id)?;
                    }
                }
                // What cannot be looked at stays as it is: nobody else's write has to wait for that.
                Err(error) if error.is_of_driver() && !error.is_stop() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Gives the names that an operation which has not ended wrote so far, or where it is at work; none if it has ended or did nothing.
    pub(super) fn written_so_far(
        &self,
        operation: &Operation,
    ) -> Result<Option<Vec<Key>>, EngineError> {
        if let Some(call) = self.open_call(operation)? {
            let looked = self.look_at_call(operation.id, operation.lsn, &call)?;
            let keys = looked.targets.iter().map(|it| it.key().clone());
            return Ok(Some(keys.collect()).filter(|keys: &Vec<_>| !keys.is_empty()));
        }
        if operation.status != Status::Armed || operation.verb != Verb::Run {
            return Ok(None);
        }
        let records = self.store.records_of(operation.id)?.into_iter();
        let directories = records.filter_map(|record| {
            if let Event::Intent(intent) = record.event {
                Some(Target::node(intent.command?.directory).key().clone())
            } else {
                None
            }
        });
        Ok(Some(directories.collect()))
    }

    /// Settles the calls of a prompt that have written: that comes before what a command of the same prompt does.
    pub(crate) fn settle_beside(&self, prompt: Option<&PromptId>) -> Result<(), EngineError> {
        if prompt.is_none() {
            return Ok(());
        }
        let mut open = self.store.armed()?;
        open.retain(|operation| operation.prompt.as_ref() == prompt);
        self.settle_those_written(&open)
    }

    /// Settles the calls of some operations that have written.
    pub(crate) fn settle_those_written(&self, operations: &[Operation]) -> Result<(), EngineError> {
        for operation in operations {
            if self.open_call(operation)?.is_some() && self.written_so_far(operation)?.is_some() {
                self.end_operation(operation.id)?;
            }
        }
        Ok(())
    }

    fn open_call(&self, operation: &Operation) -> Result<Option<ArmedCall>, EngineError> {
        if operation.status != Status::Armed || operation.verb == Verb::Run {
            return Ok(None);
        }
        self.armed_call(operation.id)
    }
}

/// Tells whether what an operation did is in the journal.
fn is_recorded(operation: &Operation) -> bool {
    match operation.status {
        Status::Applied
        | Status::Committed
        | Status::Interrupted
        | Status::InDoubt
        | Status::Failed
        | Status::Undone => true,
        Status::Proposed | Status::Refused | Status::Armed | Status::Aborted => false,
    }
}

/// Tells whether an operation wrote a name, a part of it, or what it is in.
fn is_on(operation: &Operation, name: &TargetPath) -> bool {
    let is_it = |target: &Target| {
        let file = target.file();
        file.is_some_and(|file| file == name || name.is_below(file))
    };
    operation.targets.iter().any(|it| is_it(&it.target))
}

/// Both sides of a name.
struct Side<'s> {
    /// Whether it is told what was found there.
    is_told: bool,
    found: Option<&'s Was>,
    left: Option<&'s Was>,
}

/// Gives both sides of a name; none if nothing is told of it. What is in something that went is gone, too.
fn side_of<'s>(sides: &'s [FileChange], name: &TargetPath) -> Option<Side<'s>> {
    let own = sides.iter().find(|side| side.path == *name);
    let moved = || sides.iter().find(|side| side.from.as_ref() == Some(name));
    let is_gone = |side: &&FileChange| side.after.is_none() && name.is_below(&side.path);
    if let Some(own) = own {
        return Some(Side {
            is_told: own.from.is_none(),
            found: own.before.as_ref(),
            left: own.after.as_ref(),
        });
    }
    let side = |is_told, found| Side {
        is_told,
        found,
        left: None,
    };
    if let Some(moved) = moved() {
        return Some(side(true, moved.before.as_ref()));
    }
    sides.iter().find(is_gone).map(|_| side(false, None))
}

fn is_met(targets: &[Target], name: &TargetPath) -> bool {
    targets.iter().any(|target| {
        target.file().is_some_and(|file| {
            file == name || (target.reach() == Reach::Tree && name.is_below(file))
        })
    })
}
