//! Every write of an agent reversible, from Rust.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let world = tempfile::tempdir()?;
//! # let (state_dir, file) = (world.path().join("state"), world.path().join("nginx.conf"));
//! # std::fs::write(&file, "server { listen 80; }\n")?;
//! let backout = backout::Backout::open(&state_dir)?;
//! let staged = backout.stage(&file, "server { listen 443 ssl; }\n")?;
//! let written = staged.validate(|file| file.text().contains("listen"))?.apply()?;
//! # assert!(std::fs::read_to_string(&file)?.contains("443"));
//!
//! // Later, by this process or any other:
//! written.undo()?;
//! # assert!(std::fs::read_to_string(&file)?.contains("listen 80"));
//! # Ok(())
//! # }
//! ```
//!
//! - Staging changes nothing. A validator that says no leaves the target untouched and the refusal in the journal.
//! - Whatever fails afterwards is taken back before the error is returned. A [`WriteError`] carries the undo, for the
//!   case that taking back failed as well and is to be tried again.
//! - A [`Task`] is committed or, when it is dropped or its process dies, rolled back as a whole.
//! - A [`Resumable`] task stays open instead: the next start goes on at the step where the last one was.

mod resumable;
mod task;
mod write;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use backout_drivers::file::FileRequest;
use backout_drivers::handler::HandlerDriver;
use backout_drivers::local;
use backout_engine::{
    Context, Engine, EngineError, Finished, Report, Settings, UndoOptions, UndoReport, UndoWhat,
};
use backout_model::{OperationId, Source, Trigger, TriggerKind};

pub use backout_drivers::file as files;
pub use backout_drivers::handler::{CompensationHandler, Found, Handled, HandlerError};
pub use backout_engine as engine;
pub use backout_model as model;
pub use resumable::{Resumable, StepError};
pub use task::Task;
pub use write::{StagedContent, StagedWrite, WriteError, Written};

/// An error of anything but a write: what happened, why, what to do next.
#[derive(Debug, thiserror::Error)]
#[error("{}", said(.0))]
pub struct Failure(pub Report);

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        Self(Report::from(error))
    }
}

/// An open state directory.
#[derive(Debug, Clone)]
pub struct Backout {
    engine: Arc<Engine>,
}

impl Backout {
    /// Opens a state directory, making it if it is not there.
    pub fn open(state_dir: impl AsRef<Path>) -> Result<Self, Failure> {
        Self::with(Settings::new(state_dir.as_ref()))
    }

    /// Opens a state directory with settings of your own: retention, waiting times, gates.
    pub fn with(settings: Settings) -> Result<Self, Failure> {
        Ok(Self {
            engine: Arc::new(Engine::open(settings, local)?),
        })
    }

    /// Opens a state directory with effects of your own, each with what answers it.
    pub fn with_handlers(
        settings: Settings,
        handlers: Vec<Arc<dyn CompensationHandler>>,
    ) -> Result<Self, Failure> {
        let mut engine = Engine::open(settings, local)?;
        for handler in handlers {
            engine.register(Arc::new(HandlerDriver(handler)))?;
        }
        Ok(Self {
            engine: Arc::new(engine),
        })
    }

    /// Has a handler act, and gives the operation.
    pub fn act(&self, request: &Handled) -> Result<Finished, Failure> {
        Ok(self.engine.write(request)?)
    }

    /// Gives a handle on the same store for another agent, task or connection. It costs next to nothing.
    #[must_use]
    pub fn for_caller(&self, context: Context) -> Self {
        Self {
            engine: Arc::new(self.engine.for_caller(context)),
        }
    }

    /// Stages the whole content of a file. The target is untouched until [`StagedWrite::apply`].
    pub fn stage(
        &self,
        path: impl AsRef<Path>,
        content: impl AsRef<[u8]>,
    ) -> Result<StagedWrite<'_>, WriteError> {
        self.stage_request(&FileRequest::write(path.as_ref(), content.as_ref()))
    }

    /// Stages any change of files.
    pub fn stage_request(&self, request: &FileRequest) -> Result<StagedWrite<'_>, WriteError> {
        let staged = self
            .engine
            .stage(request)
            .map_err(|error| WriteError::new(self, error))?;
        Ok(StagedWrite::new(self, staged))
    }

    /// Writes a file with nothing but the engine's own checks.
    pub fn write(
        &self,
        path: impl AsRef<Path>,
        content: impl AsRef<[u8]>,
    ) -> Result<Written, WriteError> {
        let request = FileRequest::write(path.as_ref(), content.as_ref());
        let written = self.engine.write(&request);
        written
            .map(|finished| Written::new(self, finished.id))
            .map_err(|error| WriteError::new(self, error))
    }

    /// Takes an operation back, with what was built on it.
    pub fn undo(&self, id: OperationId) -> Result<UndoReport, Failure> {
        self.undo_with(
            id,
            &UndoOptions {
                committed: true,
                trigger: Some(Trigger::new(TriggerKind::UserRequest, Source::Program)),
                ..UndoOptions::default()
            },
        )
    }

    /// Takes an operation back in a way of your own.
    pub fn undo_with(&self, id: OperationId, options: &UndoOptions) -> Result<UndoReport, Failure> {
        let what = UndoWhat::Operations(vec![reference(id)]);
        Ok(self.engine.undo(&what, options)?)
    }

    /// Begins a task: its writes are kept by [`Task::commit`] and rolled back otherwise.
    pub fn task(&self, name: &str) -> Result<Task, Failure> {
        Task::begin(self, name)
    }

    /// Begins a task that outlives its process, or goes on where an earlier start of it was.
    ///
    /// What the earlier start had in flight is taken back first; [`Resumable::resumed`] tells what.
    pub fn resumable(&self, name: &str) -> Result<Resumable, Failure> {
        Resumable::begin(self, name)
    }

    /// Gives the engine, for everything else.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }
}

/// Says that something was asked wrongly.
fn usage(why: &dyn fmt::Display) -> Failure {
    Failure(Report::usage(why.to_string()))
}

fn reference(id: OperationId) -> backout_engine::OperationRef {
    backout_engine::OperationRef::Prefix(id.to_string())
}

/// Says a report in one paragraph.
fn said(report: &Report) -> String {
    let mut text = report.what.clone();
    for why in &report.why {
        text.push_str(": ");
        text.push_str(why);
    }
    for next in &report.next {
        text.push_str("; ");
        text.push_str(&next.text);
    }
    text
}
