//! What the program around a server brings.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use backout_engine::{Engine, Report};
use backout_model::AgentId;
use backout_model::ports::Progress;

/// Who asks, and where it may write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The agent.
    pub agent: AgentId,
    /// The directories, without links; never none.
    pub roots: Vec<PathBuf>,
}

/// What somebody who checked a request let its sender be. A server behind HTTP looks for it among the request's extensions.
#[derive(Debug, Clone)]
pub struct Granted {
    /// The agent.
    pub agent: AgentId,
    /// The directories that it may write in.
    pub roots: Vec<PathBuf>,
}

/// The program that a server is part of.
pub trait Host: fmt::Debug + Send + Sync + 'static {
    /// Opens the engine, with all drivers and gates, for somebody who writes only in his directories. Whom it tells how far it is
    /// may stop it.
    fn engine(&self, caller: &Caller, progress: Arc<dyn Progress>) -> Result<Engine, Report>;

    /// Takes up what others did where nobody tells us, such as in databases.
    fn take_up(&self, _caller: &Caller) {}

    /// Gives this program and its first words, as a process that acts for somebody who writes only in his directories.
    fn program(&self, caller: &Caller) -> Program;
}

/// A program to start.
#[derive(Debug, Clone)]
pub struct Program {
    /// Where it is.
    pub path: PathBuf,
    /// Its first words.
    pub words: Vec<OsString>,
    /// What it gets in its environment beside ours.
    pub variables: Vec<(OsString, OsString)>,
}
