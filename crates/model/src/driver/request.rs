//! What a driver is asked for, what it stages, and what the engine knows of both before anything is looked at closely.

use std::any::Any;
use std::fmt;

use super::DriverError;
use super::fault::WrongRequest;
use crate::ports::ChangedFile;
use crate::{DriverName, JsonText, OperationKind, Target, TargetPath, Traits, Verb};

/// Something that a driver can be asked to write.
pub trait Request: Any + fmt::Debug + Send + Sync {
    /// Gives the name by which its driver is registered.
    fn driver(&self) -> DriverName;

    /// Tells what kind of write it is.
    fn verb(&self) -> Verb;

    /// Says it in one line for people.
    fn summary(&self) -> String;

    /// Writes it down in the driver's own words, for [`Driver::read_request`](super::Driver::read_request) to read; an error if only this process can
    /// carry it out.
    fn as_text(&self) -> Result<JsonText, DriverError>;
}

impl dyn Request {
    /// Gives the request as the type that it is.
    pub fn as_a<R: Request>(&self) -> Result<&R, DriverError> {
        let it: &dyn Any = self;
        it.downcast_ref().ok_or_else(|| {
            let request = self.summary();
            DriverError::new(WrongRequest { request })
        })
    }
}

/// What a driver keeps between staging and applying. Dropping it leaves no trace.
pub trait Staged: Any + fmt::Debug + Send {
    /// Tells how many bytes the write keeps beside the store's contents, as far as that is known.
    fn kept_bytes(&self) -> u64 {
        0
    }

    /// Lists the names that come to stand for something else, for gates to look at. What moves is not among them, nor what is
    /// in a tree that goes as one.
    fn changed(&self) -> Vec<ChangedFile<'_>> {
        Vec::new()
    }

    /// Lists what will get another name, with all that is in it: the old name and the new.
    fn moved(&self) -> Vec<(TargetPath, TargetPath)> {
        Vec::new()
    }

    /// Lists what will get one more name: a name that it has, and the new one.
    fn linked(&self) -> Vec<(TargetPath, TargetPath)> {
        Vec::new()
    }

    /// Lists the names by which something is written where links led from them to it: the name that was used, and the one
    /// that it means.
    fn through(&self) -> Vec<(TargetPath, TargetPath)> {
        Vec::new()
    }
}

impl dyn Staged {
    /// Shows it as the type that it is; none if it is another.
    pub fn as_a<S: Staged>(&self) -> Option<&S> {
        let it: &dyn Any = self;
        it.downcast_ref()
    }

    /// Takes it as the type that it is.
    pub fn take<S: Staged>(self: Box<Self>) -> Result<S, DriverError> {
        let it: Box<dyn Any> = self;
        it.downcast().map(|it| *it).map_err(|_| {
            let request = "what another driver staged".to_owned();
            DriverError::new(WrongRequest { request })
        })
    }
}

/// What a request is about, before anything is looked at closely.
#[derive(Debug)]
pub struct Scope {
    /// What it will write, so that it can be leased.
    pub targets: Vec<Target>,
    /// What it reads and makes its own, such as the source of a copy.
    pub sources: Vec<Target>,
    /// What the decision matrix wants to know.
    pub traits: Traits,
}

impl Scope {
    /// Describes a write that copies nothing, with nothing special about it.
    pub const fn of(targets: Vec<Target>, kind: OperationKind) -> Self {
        Self {
            targets,
            sources: Vec::new(),
            traits: Traits::of(kind),
        }
    }
}
