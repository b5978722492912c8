//! One write: staged, validated, applied, and the error that carries the undo.

use std::borrow::Cow;

use backout_engine::{EngineError, Report, StagedOperation, UndoReport};
use backout_model::{OperationId, TargetPath};

use crate::{Backout, Failure, said};

/// A write that is staged: its target is untouched and leased.
#[derive(Debug)]
#[must_use = "apply it or drop it"]
pub struct StagedWrite<'b> {
    backout: &'b Backout,
    staged: StagedOperation<'b>,
}

/// What a validator looks at: the new content of one file.
#[derive(Debug)]
pub struct StagedContent {
    path: TargetPath,
    bytes: Vec<u8>,
}

impl StagedContent {
    /// The file that will have this content.
    pub const fn path(&self) -> &TargetPath {
        &self.path
    }

    /// The new content.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The new content as text, with replacement characters where it is none.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }
}

impl<'b> StagedWrite<'b> {
    pub(crate) const fn new(backout: &'b Backout, staged: StagedOperation<'b>) -> Self {
        Self { backout, staged }
    }

    /// Names the operation.
    pub const fn id(&self) -> OperationId {
        self.staged.id()
    }

    /// Asks a validator about every staged file. If it says no, nothing was touched.
    pub fn validate(self, accepts: impl Fn(&StagedContent) -> bool) -> Result<Self, WriteError> {
        self.validate_with(|file| {
            let path = file.path();
            if accepts(file) {
                Ok(())
            } else {
                Err(format!("the validator rejected `{path}`"))
            }
        })
    }

    /// Asks a validator that says why not.
    pub fn validate_with(
        self,
        check: impl Fn(&StagedContent) -> Result<(), String>,
    ) -> Result<Self, WriteError> {
        match self.first_objection(&check) {
            None => Ok(self),
            Some(why) => {
                let (backout, id) = (self.backout, self.id());
                Err(WriteError::of(backout, Some(id), self.staged.refuse(&why)))
            }
        }
    }

    fn first_objection(
        &self,
        check: &impl Fn(&StagedContent) -> Result<(), String>,
    ) -> Option<String> {
        let changed = self.staged.staged().changed();
        changed.into_iter().find_map(|file| {
            let (path, new) = (file.path, file.new?);
            match new.read() {
                Ok(bytes) => check(&StagedContent { path, bytes }).err(),
                Err(error) => Some(format!("`{path}` could not be read back: {error}")),
            }
        })
    }

    /// Arms, applies and commits.
    pub fn apply(self) -> Result<Written, WriteError> {
        self.apply_and_verify(|| Ok(()))
    }

    /// Arms, applies, and asks a functional check before it commits; if it says no, the write is taken back.
    pub fn apply_and_verify(
        self,
        check: impl FnOnce() -> Result<(), String>,
    ) -> Result<Written, WriteError> {
        let (backout, id) = (self.backout, self.id());
        match self.staged.apply_and_verify(check) {
            Ok(finished) => Ok(Written::new(backout, finished.id)),
            Err(error) => Err(WriteError::of(backout, Some(id), error)),
        }
    }
}

/// A write that happened and is kept.
#[derive(Debug)]
pub struct Written {
    backout: Backout,
    id: Option<OperationId>,
}

impl Written {
    pub(crate) fn new(backout: &Backout, id: Option<OperationId>) -> Self {
        let backout = backout.clone();
        Self { backout, id }
    }

    /// Names the operation; none if the target already was as asked.
    pub const fn id(&self) -> Option<OperationId> {
        self.id
    }

    /// Takes the write back. Gives nothing if there was nothing to take back.
    pub fn undo(&self) -> Result<Option<UndoReport>, Failure> {
        self.id.map(|id| self.backout.undo(id)).transpose()
    }
}

/// A write that did not happen, with the undo for the case that it half did.
#[derive(Debug, thiserror::Error)]
#[error("{}", said(.report))]
pub struct WriteError {
    backout: Backout,
    id: Option<OperationId>,
    is_half_done: bool,
    /// What happened, why, what to do next.
    pub report: Box<Report>,
}

impl WriteError {
    pub(crate) fn new(backout: &Backout, error: EngineError) -> Self {
        Self::of(backout, None, error)
    }

    fn of(backout: &Backout, id: Option<OperationId>, error: EngineError) -> Self {
        let is_half_done = matches!(
            error,
            EngineError::HalfDone { .. } | EngineError::Stays { .. }
        );
        Self {
            backout: backout.clone(),
            id,
            is_half_done,
            report: Box::new(Report::from(error)),
        }
    }

    /// Names the operation, if it got as far as having one.
    pub const fn id(&self) -> Option<OperationId> {
        self.id
    }

    /// Tells whether something of the write is still there, so that [`WriteError::undo`] has work to do.
    pub const fn is_half_done(&self) -> bool {
        self.is_half_done
    }

    /// Takes back what is left of the write. Succeeds at once if nothing is.
    pub fn undo(&self) -> Result<(), Failure> {
        match self.id {
            Some(id) if self.is_half_done => self.backout.undo(id).map(|_report| ()),
            _ => Ok(()),
        }
    }
}
