//! A directory with a state directory beside it, and an engine.

use std::fs;
use std::path::PathBuf;

use backout_drivers::file::FileRequest;
use backout_engine::{
    Context, Engine, EngineError, Finished, RedoWhat, Settings, UndoOptions, UndoReport, UndoWhat,
};
use backout_model::ports::OnConflict;
use backout_model::{Intent, OperationId, Status};
use backout_storage::this_process;

use crate::shelf::Shelf;

pub(crate) struct World {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) engine: Engine,
    pub(crate) shelf: Shelf,
}

impl World {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let state = directory.path().join("state");
        let shelf = Shelf::new(&state);
        let engine = shelf.engine(Settings::new(state));
        Self {
            directory,
            engine,
            shelf,
        }
    }

    /// The same store for another agent, task or connection.
    pub(crate) fn with(&self, change: impl FnOnce(&mut Settings)) -> Engine {
        let mut settings = self.engine.settings().clone();
        change(&mut settings);
        self.shelf.engine(settings)
    }

    /// Gives a handle on the same store for somebody else.
    pub(crate) fn asking(&self, change: impl FnOnce(&mut Context)) -> Engine {
        let mut context = Context::default();
        change(&mut context);
        self.engine.for_caller(context)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn file(self, name: &str, content: &str) -> Self {
        fs::write(self.path(name), content).unwrap();
        self
    }

    pub(crate) fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.path(name)).ok()
    }

    pub(crate) fn write(&self, name: &str, content: &str) -> OperationId {
        written(
            &self
                .engine
                .write(&FileRequest::write(self.path(name), content))
                .unwrap(),
        )
    }

    pub(crate) fn mkdir(&self, name: &str) -> OperationId {
        let request = FileRequest::Mkdir {
            path: self.path(name),
            parents: false,
            mode: None,
        };
        written(&self.engine.write(&request).unwrap())
    }

    pub(crate) fn remove(&self, name: &str) -> OperationId {
        let request = FileRequest::Remove {
            path: self.path(name),
            recursive: true,
        };
        written(&self.engine.write(&request).unwrap())
    }

    pub(crate) fn undo(
        &self,
        id: OperationId,
        options: &UndoOptions,
    ) -> Result<UndoReport, EngineError> {
        self.engine.undo(&named(id), options)
    }

    pub(crate) fn undone(&self, id: OperationId) -> UndoReport {
        self.undo(id, &committed()).unwrap()
    }

    pub(crate) fn redo(&self) -> UndoReport {
        self.engine
            .redo(&NEWEST_UNDO, &UndoOptions::default())
            .unwrap()
    }

    /// The intent of an operation that does again what another did.
    pub(crate) fn intent(&self, id: OperationId, again: OperationId) -> Intent {
        let store = self.engine.store();
        let first = store.operation(again).unwrap().unwrap();
        let targets = first.targets.into_iter().map(|it| it.target);
        Intent {
            id,
            verb: first.verb,
            summary: first.summary,
            agent: None,
            task: None,
            owner: this_process(),
            decision: first.decision,
            targets: targets.collect(),
            depends_on: Vec::new(),
            undoes: None,
            with: None,
            group: None,
            asked: None,
            plan: None,
            trigger: None,
            notes: Vec::new(),
            command: None,
            call: None,
            approval: None,
            prompt: None,
            recipe: store.effect(again).unwrap().recipe,
        }
    }

    pub(crate) fn status(&self, id: OperationId) -> Status {
        self.engine.store().operation(id).unwrap().unwrap().status
    }
}

/// The newest undo, wherever it was.
pub(crate) const NEWEST_UNDO: RedoWhat = RedoWhat::Newest { below: None };

/// The newest operation, wherever it was.
pub(crate) const NEWEST: UndoWhat = UndoWhat::Newest { below: None };

pub(crate) fn written(finished: &Finished) -> OperationId {
    finished.id.expect("something was written")
}

pub(crate) fn named(id: OperationId) -> UndoWhat {
    UndoWhat::Operations(vec![id.to_string().parse().unwrap()])
}

pub(crate) fn committed() -> UndoOptions {
    UndoOptions {
        committed: true,
        ..UndoOptions::default()
    }
}

pub(crate) fn on(on_conflict: OnConflict) -> UndoOptions {
    UndoOptions {
        on_conflict,
        ..UndoOptions::default()
    }
}
