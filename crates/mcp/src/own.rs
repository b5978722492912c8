//! What is an agent's own, and what of others' work it may see.

use std::path::Path;

use backout_engine::{Engine, EngineError, OperationRef, Report};
use backout_model::{CheckpointName, Operation, OperationId, TaskId};

use crate::Caller;

/// Finds an operation that the caller may see.
pub(crate) fn seen(engine: &Engine, caller: &Caller, name: &str) -> Result<Operation, Report> {
    let reference: OperationRef = name
        .parse()
        .map_err(|error| told(EngineError::Ref(error)))?;
    let id = engine.store().resolve(&reference);
    let id = id.map_err(|error| told(EngineError::Ref(error)))?;
    let operation = operation(engine, id)?;
    if caller.sees(&operation) {
        return Ok(operation);
    }
    Err(
        Report::refused(format!("operation {} is not yours to see", id.short()))
            .because("somebody else did it, outside of your directories"),
    )
}

/// Finds an operation that is the caller's own.
pub(crate) fn own(engine: &Engine, caller: &Caller, name: &str) -> Result<Operation, Report> {
    let operation = seen(engine, caller, name)?;
    check(caller, &operation)?;
    Ok(operation)
}

/// Makes sure that an operation is the caller's own.
pub(crate) fn check(caller: &Caller, operation: &Operation) -> Result<(), Report> {
    if operation.agent.as_ref() == Some(&caller.agent) {
        return Ok(());
    }
    Err(told(EngineError::NotOwn {
        id: operation.id,
        agent: operation.agent.clone(),
        task: operation.task.clone(),
    }))
}

/// Loads an operation.
pub(crate) fn operation(engine: &Engine, id: OperationId) -> Result<Operation, Report> {
    let found = engine.store().operation(id);
    let found = found.map_err(|error| told(error.into()))?;
    found.ok_or_else(|| Report::refused(format!("there is no operation {}", id.short())))
}

/// Makes sure that a task is the caller's own.
pub(crate) fn task(engine: &Engine, caller: &Caller, name: &str) -> Result<TaskId, Report> {
    let id: TaskId = name
        .parse()
        .map_err(|error| Report::usage(format!("`{name}` is no name of a task: {error}")))?;
    let found = engine.store().task(&id);
    let found = found.map_err(|error| told(error.into()))?;
    match found {
        Some(task) if task.agent.as_ref() == Some(&caller.agent) => Ok(id),
        Some(_) => Err(Report::refused(format!("the task `{name}` is not yours"))
            .because("somebody else began it")
            .next("begin one of your own with the tool `task`")),
        None => Err(Report::refused(format!("there is no task `{name}`"))
            .next("begin one with the tool `task`")),
    }
}

/// Reads the name of a checkpoint.
pub(crate) fn checkpoint_name(name: &str) -> Result<CheckpointName, Report> {
    name.parse()
        .map_err(|error| Report::usage(format!("`{name}` is no name of a checkpoint: {error}")))
}

impl Caller {
    /// Tells whether an operation may be seen: it is the caller's own, or all that it wrote lies in his directories.
    pub(crate) fn sees(&self, operation: &Operation) -> bool {
        let is_inside = |path: &Path| self.roots.iter().any(|root| path.starts_with(root));
        let is_in_files = || {
            let mut targets = operation.targets.iter();
            !operation.targets.is_empty()
                && targets.all(|it| {
                    it.target
                        .file()
                        .is_some_and(|path| is_inside(path.as_path()))
                })
        };
        operation.agent.as_ref() == Some(&self.agent) || is_in_files()
    }
}

/// Says what the engine said.
pub(crate) fn told(error: EngineError) -> Report {
    Report::from(error)
}
