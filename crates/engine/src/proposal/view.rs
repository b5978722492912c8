//! A proposal as somebody sees it who is to decide: what it would change now, and what is in the trees that it takes as one.

use backout_files::{FileChange, Was, with_umask};
use backout_model::ports::Prepared;
use backout_model::{Effect, Proposal, Reach, TargetPath};
use backout_storage::{OperationRef, untold};
use serde::{Deserialize, Serialize};

use crate::causes::with_causes;
use crate::{DiffFile, Engine, EngineError};

/// A proposal, with what it would change now.
#[derive(Debug, Serialize, Deserialize)]
pub struct ProposalView {
    /// As the journal has it.
    #[serde(flatten)]
    pub proposal: Proposal,
    /// Why it cannot be approved any more, if it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale: Option<String>,
    /// What it would change.
    pub files: Vec<DiffFile>,
    /// What went wrong when people were to hear of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untold: Vec<String>,
    /// What is in the trees that would move or go as one, up to a number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inside: Vec<Inside>,
    /// How many more there are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub inside_more: usize,
}

/// A name in a tree that would move or go as one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inside {
    /// The name, as it is now.
    pub path: TargetPath,
    /// In a word: a file, a directory, a link.
    pub kind: String,
    /// How many bytes it has, if it is a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// How many names of what moves or goes as one are told.
const INSIDE_MAX: usize = 1000;

impl Engine {
    /// Shows a proposal and what it would change now. Changes nothing.
    pub(super) fn show_proposal(
        &self,
        reference: &OperationRef,
    ) -> Result<ProposalView, EngineError> {
        let proposal = self.undecided(reference)?;
        let id = self.next_id();
        let request = self.request_of(&proposal)?;
        let driver = self.driver(&proposal.request.driver)?;
        let strategy = proposal.decision.strategy;
        let prepared = with_umask(proposal.request.umask, || {
            driver.prepare(id, &*request, strategy)
        });
        let (files, mut inside, stale) = match prepared {
            Ok(prepared) => {
                let stale = self.check_as_proposed(&proposal, &prepared).err();
                (self.foreseen(&prepared)?, self.inside(&prepared)?, stale)
            }
            Err(error) => (Vec::new(), Vec::new(), Some(error.into())),
        };
        let inside_more = inside.len().saturating_sub(INSIDE_MAX);
        inside.truncate(INSIDE_MAX);
        let mut untold = untold(&self.settings.state_dir)?;
        Ok(ProposalView {
            untold: untold.remove(&proposal.id).unwrap_or_default(),
            proposal,
            stale: stale.map(|error| with_causes(&error)),
            files,
            inside,
            inside_more,
        })
    }

    /// Lists what is in the trees that a change takes as one.
    fn inside(&self, prepared: &Prepared) -> Result<Vec<Inside>, EngineError> {
        let mut inside = Vec::new();
        for target in &prepared.targets {
            let Some(path) = target.file().filter(|_| target.reach() == Reach::Tree) else {
                continue;
            };
            inside.extend(self.files.below(path)?.into_iter().map(|past| Inside {
                kind: past.was.as_ref().map_or("", |was| was.word()).to_owned(),
                size: past.was.as_ref().and_then(Was::size),
                path: past.path,
            }));
        }
        Ok(inside)
    }

    /// Says what a change that is only staged would do to files.
    fn foreseen(&self, prepared: &Prepared) -> Result<Vec<DiffFile>, EngineError> {
        let effect = Effect {
            recipe: prepared.recipe.clone(),
            completion: None,
        };
        let Some(effect) = self.as_files(&effect)? else {
            return Ok(Vec::new());
        };
        let mut changes = self.files.changes(&effect)?;
        // What is there is not kept yet: that comes with arming.
        for change in &mut changes {
            change.before = self
                .files
                .now(change.from.as_ref().unwrap_or(&change.path))?;
        }
        for file in prepared.staged.changed() {
            let mut changes = changes.iter_mut();
            let change = changes.find(|change| change.path == file.path);
            if let (Some(FileChange { after, .. }), Some(new)) = (change, file.new)
                && let Ok(bytes) = new.read()
            {
                *after = after.take().map(|was| was.with_bytes(bytes));
            }
        }
        self.compare(&changes, None, false)
    }
}
