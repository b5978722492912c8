//! Layers that somebody else made ready, applied as those of a trial are: a sandbox's, merged into one.

use std::path::Path;

use backout_capture::overlay;
use backout_files::Baseline;
use backout_model::{AgentId, OperationId, TargetPath, TaskId};

use super::manifest::{Manifest, TrialEnd, TrialState, VERSION};
use super::{note, select};
use crate::{DiffFile, Engine, EngineError, Finished, GateError, Selection, TrialError};

/// A trial of layers that are there.
#[must_use = "apply it or let it go"]
#[derive(Debug)]
pub(crate) struct LayersOf {
    manifest: Manifest,
}

impl LayersOf {
    /// Begins one: the layers go to `place`. If we die now, the next trial removes it.
    pub(crate) fn begin(
        engine: &Engine,
        id: OperationId,
        words: Vec<String>,
        (directory, place): (&TargetPath, &Path),
    ) -> Result<Self, EngineError> {
        let place = TargetPath::new(place).ok();
        let manifest = Manifest {
            version: VERSION,
            id,
            made: engine.now(),
            owner: engine.store.this_process(),
            agent: None,
            task: None,
            sandbox: words.last().cloned(),
            command: words,
            directory: directory.clone(),
            ended: None,
            places: place.into_iter().collect(),
            changes: Vec::new(),
            homes: Vec::new(),
            is_rest: false,
            proposed: None,
            notes: Vec::new(),
        };
        engine.keep_manifest(&manifest)?;
        Ok(Self { manifest })
    }

    /// Says whose it is, unless whoever applies it says so.
    pub(crate) fn belongs_to(&mut self, agent: Option<AgentId>, task: Option<TaskId>) {
        self.manifest.agent = agent;
        self.manifest.task = task;
    }

    /// Looks at what the layers change, and at what the real files are.
    pub(crate) fn look(
        &mut self,
        engine: &Engine,
        finished: &overlay::Finished,
    ) -> Result<(), EngineError> {
        note::outcome(&mut self.manifest, finished)?;
        // It waits for nobody, unless a gate asks: if we die now it goes.
        self.manifest.ended = None;
        engine.keep_manifest(&self.manifest)
    }

    /// Marks the names that somebody else changed meanwhile.
    pub(crate) fn judge(&mut self, is_conflict: impl Fn(&TargetPath, &Baseline) -> bool) {
        for change in &mut self.manifest.changes {
            let is_from = match &change.becomes {
                TrialState::Moved { from, baseline } => is_conflict(from, baseline),
                TrialState::Nothing | TrialState::Like { .. } | TrialState::Linked { .. } => false,
            };
            change.is_conflict = is_from || is_conflict(&change.path, &change.baseline);
        }
    }

    /// Writes it down, durably.
    pub(crate) fn keep(&self, engine: &Engine) -> Result<(), EngineError> {
        engine.keep_manifest(&self.manifest)
    }

    /// Gives what each name that is chosen was.
    pub(crate) fn baselines(&self, selection: &Selection) -> Vec<(TargetPath, Baseline)> {
        let chosen = select::chosen(selection, &self.manifest.changes).into_iter();
        chosen
            .map(|change| (change.path.clone(), change.baseline.clone()))
            .collect()
    }

    /// Tells whether a name that is chosen is marked, so that nothing can be applied.
    pub(crate) fn has_conflict(&self, selection: &Selection) -> bool {
        let mut chosen = select::chosen(selection, &self.manifest.changes).into_iter();
        chosen.any(|change| change.is_conflict)
    }

    /// Compares what each name is with what it would become.
    pub(crate) fn diff(
        &self,
        engine: &Engine,
        selection: &Selection,
        is_brief: bool,
    ) -> Result<Vec<DiffFile>, EngineError> {
        engine.trial_diff(&select::chosen(selection, &self.manifest.changes), is_brief)
    }

    /// Makes it real as one operation. Tells whether it was all of it. If a gate asks for a decision the layers wait for
    /// that; else they go, whatever comes.
    pub(crate) fn apply(
        mut self,
        engine: &Engine,
        selection: &Selection,
    ) -> Result<(Finished, bool), EngineError> {
        match engine.apply_open(&mut self.manifest, selection) {
            Ok(mut finished) => {
                let is_whole = finished.left.take().is_none();
                if !is_whole {
                    self.let_go(engine)?;
                }
                Ok((finished, is_whole))
            }
            Err(error @ EngineError::Gate(GateError::Waits { .. })) => {
                self.manifest.ended = Some(TrialEnd {
                    code: 0,
                    signal: None,
                });
                engine.keep_manifest(&self.manifest)?;
                Err(error)
            }
            Err(EngineError::Trial(TrialError::NothingChosen { .. })) => {
                let name = self.manifest.sandbox.clone().unwrap_or_default();
                self.let_go(engine)?;
                let is_real = false;
                Err(crate::SandboxError::Nothing { name, is_real }.into())
            }
            Err(error) => {
                self.let_go(engine)?;
                Err(error)
            }
        }
    }

    /// Removes it.
    pub(crate) fn let_go(self, engine: &Engine) -> Result<(), EngineError> {
        engine.remove_trial(self.manifest.id)
    }
}
