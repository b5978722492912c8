//! Which undos a redo takes back.

use backout_model::{
    Dependency, DependencyReason, Key, Operation, OperationId, OutcomeKind, PlanError, Status,
    TargetPath, Verb,
};
use backout_storage::Filter;

use super::preview::Planned;
use crate::{Engine, EngineError, RedoWhat, UndoOptions};

impl Engine {
    pub(super) fn plan_redo(
        &self,
        what: &RedoWhat,
        options: &UndoOptions,
    ) -> Result<Planned, EngineError> {
        let (undos, named) = match what {
            RedoWhat::Newest { below } => {
                let undos = self.newest_undo(below.as_ref())?;
                let named = self.name_of_mixed(&undos)?;
                (self.chosen(undos, options)?, named)
            }
            RedoWhat::Operations(references) => {
                let named = self.resolved(references)?;
                let mut undos = Vec::new();
                for id in &named {
                    undos.extend(self.chosen(self.undos_of(*id)?, options)?);
                }
                (undos, named)
            }
        };
        let (history, plan) = self.plan_aim(&self.aim_at(undos, false)?, options)?;
        Ok(Planned {
            history,
            plan,
            named,
            task: None,
        })
    }

    fn undos_of(&self, id: OperationId) -> Result<Vec<OperationId>, EngineError> {
        let operation = self.store.operation(id)?.ok_or(PlanError::Unknown { id })?;
        // An undo that had to bring something again first is a redo in that step.
        let is_undo = operation.verb.is_redoable()
            || operation.verb == Verb::Redo && !operation.is_as_asked();
        if is_undo {
            // What is left of an act goes by the name of its first.
            let act = self.whole_act(id)?;
            if operation.status.is_in_effect() || act != [id] {
                return Ok(act);
            }
        }
        // What was left as it is stays undone by an undo that is itself taken back.
        let mut undos = Vec::new();
        for id in operation.undos() {
            let undo = self.store.operation(id)?;
            let Some(undo) = undo.filter(|it| it.status.is_in_effect()) else {
                continue;
            };
            // What was brought back before is not undone again by who brings it back.
            if is_undo && undo.verb != Verb::Recover {
                return Err(EngineError::TakenBackBefore {
                    id: operation.id,
                    again: None,
                    by: Some(undo.group.unwrap_or(undo.id)),
                });
            }
            undos.push(undo.id);
        }
        if undos.is_empty() && operation.verb == Verb::Run {
            undos = self.undos_within(id)?;
        }
        if undos.is_empty() {
            return Err(self.nothing_to_redo(&operation)?);
        }
        Ok(undos)
    }

    /// Says why something cannot be redone. What an undo took back that was taken back itself may be undone again, by another.
    fn nothing_to_redo(&self, operation: &Operation) -> Result<EngineError, EngineError> {
        let id = operation.id;
        if operation.verb != Verb::Undo || operation.status != Status::Undone {
            return Ok(EngineError::NothingToRedo { id });
        }
        let mut again = None;
        for undo in self.subject_of(operation)?.undos() {
            let undo = self.store.operation(undo)?;
            again = undo.filter(|it| it.status.is_in_effect()).or(again);
        }
        let again = again.map(|undo| undo.id);
        Ok(EngineError::TakenBackBefore {
            id,
            again,
            by: None,
        })
    }

    /// Names an act of which one part was undone and another redone: by their own names they go different ways.
    fn name_of_mixed(&self, members: &[OperationId]) -> Result<Vec<OperationId>, EngineError> {
        for id in members {
            let member = self.store.operation(*id)?;
            if let Some(redo) = member.filter(|it| it.verb == Verb::Redo) {
                return Ok(vec![redo.group.unwrap_or(redo.id)]);
            }
        }
        Ok(Vec::new())
    }

    /// Finds the undos of what lies within a command that has nothing of its own to bring back.
    fn undos_within(&self, command: OperationId) -> Result<Vec<OperationId>, EngineError> {
        let is_within =
            |edge: &Dependency| edge.on == command && edge.reason == DependencyReason::Within;
        let mut undos = Vec::new();
        for part in self.store.connected(&[command])? {
            if part.verb.is_reversal() || !part.depends_on.iter().any(is_within) {
                continue;
            }
            for id in part.undos() {
                let undo = self.store.operation(id)?;
                undos.extend(undo.filter(|it| it.status.is_in_effect()).map(|it| it.id));
            }
        }
        undos.sort_unstable();
        undos.dedup();
        Ok(undos)
    }

    /// Finds the undos of the newest undo command that still hold. One that found everything as before has nothing to bring
    /// back.
    fn newest_undo(&self, below: Option<&TargetPath>) -> Result<Vec<OperationId>, EngineError> {
        let filter = Filter {
            agent: self.context.agent.clone(),
            at: below.cloned().map(Key::from),
            ..Filter::default()
        };
        let is_undo = |op: &Operation| {
            let is_meant =
                op.verb == Verb::Undo && op.is_as_asked() && op.status == Status::Committed;
            Ok(is_meant && self.took_something(op)?)
        };
        match self.newest_seen_from(&filter, is_undo)? {
            Some(newest) => self.members(&newest),
            None => Err(self.no_undo(&filter)?),
        }
    }

    /// Says that there is no undo to take back, and what a recovery or a redo took back: that comes only by name.
    fn no_undo(&self, filter: &Filter) -> Result<EngineError, EngineError> {
        let anybody = Filter {
            agent: None,
            ..filter.clone()
        };
        let took_back = |op: &Operation| match (op.verb, op.undoes) {
            (Verb::Recover, Some(about)) => {
                let about = self.store.operation(about)?;
                Ok(about.is_some_and(|about| !about.verb.is_reversal()))
            }
            _ => Ok(false),
        };
        let recovered = match self.newest(&anybody, took_back)? {
            Some(recovery) => {
                let about = self.subject_of(&recovery)?;
                Some((about.id, about.summary))
            }
            None => None,
        };
        let is_swapped = |op: &Operation| {
            let is_undo = op.verb == Verb::Undo && op.status == Status::Committed;
            Ok(is_undo && !op.is_as_asked() && self.took_something(op)?)
        };
        let swapped = match self.newest(filter, is_swapped)? {
            Some(undo) => {
                let about = self.subject_of(&undo)?;
                Some((about.id, about.summary, undo.group.unwrap_or(undo.id)))
            }
            None => None,
        };
        Ok(EngineError::NoUndo { recovered, swapped })
    }

    /// Tells whether an undo did anything.
    fn took_something(&self, undo: &Operation) -> Result<bool, EngineError> {
        let Some(about) = undo.undoes else {
            return Ok(true);
        };
        let outcomes = self.store.outcomes_of(about, undo.id)?;
        let mut kinds = outcomes.iter().map(|outcome| &outcome.kind);
        let is_taken =
            |kind: &OutcomeKind| kind.is_taken_back() && *kind != OutcomeKind::AlreadyGone;
        Ok(outcomes.is_empty() || kinds.any(is_taken))
    }
}
