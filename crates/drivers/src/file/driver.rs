//! The file driver: the trait, and what previews and benchmarks ask beside it.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use backout_model::ports::{
    Applied, Depots, Driver, How, Prepared, PreparedUndo, ReadContents, WriteContents,
};
use backout_model::{
    Armed, Digest, Effect, Key, OperationId, Slot, Target, TargetPath, Traits, Verb,
};

use super::error::FileError;
use super::execute::run;
use super::judge::{State, judge_all};
use super::past::{self, FileChange, Past, Shown, Was};
use super::plan;
use super::recipe::{Change, FileCompletion, FileRecipe, Image, Kind};
use super::request::FileRequest;
use super::stage::Staged;
use super::tools::{Progress, Tools};
use super::undo::{check_kept, prepare_undo, with_moved};
use super::view::{Examined, examine};
use crate::command::{self, Limits, Reading, Recorder, RecorderError, Settled};

/// A kept inode, and what is wrong with it, if something is.
pub type LookedAt = (Slot, Result<Option<String>, FileError>);

/// Writes files so that every write can be taken back.
#[derive(Debug)]
pub struct FileDriver {
    tools: Tools,
}

impl FileDriver {
    /// Takes the store and the depots.
    pub fn new(
        contents: Arc<dyn ReadContents>,
        stash: Arc<dyn WriteContents>,
        depots: Arc<dyn Depots>,
    ) -> Self {
        Self {
            tools: Tools::new(contents, stash, depots),
        }
    }

    /// Tells somebody how far long work has come.
    #[must_use]
    pub fn with_progress(mut self, progress: Arc<dyn Progress>) -> Self {
        self.tools.progress = progress;
        self
    }

    /// Tells where each target of an effect stands now. Looks only.
    pub fn examine(&self, effect: &Effect) -> Result<Vec<Examined>, FileError> {
        examine(&self.tools, effect)
    }

    /// The same when the work was stopped: what is there then has to be known.
    pub fn examine_stopped(&self, effect: &Effect) -> Result<Vec<Examined>, FileError> {
        self.tools.going_back(|| examine(&self.tools, effect))
    }

    /// Names what an effect wrote.
    pub fn targets_of(&self, effect: &Effect) -> Result<Vec<Target>, FileError> {
        let recipe = FileRecipe::decode(&effect.recipe)?;
        Ok(recipe.changes.iter().flat_map(plan::targets_of).collect())
    }

    /// Gives names with all that an undo of them touches: what was moved goes back by either of its names.
    pub fn with_moved(
        &self,
        effect: &Effect,
        names: &BTreeSet<Key>,
    ) -> Result<BTreeSet<Key>, FileError> {
        let recipe = FileRecipe::decode(&effect.recipe)?;
        let all = with_moved(&recipe.changes, names);
        Ok(all.into_iter().cloned().map(Key::from).collect())
    }

    /// Names the directories that an effect took away with all that was in them, kept as one.
    pub fn gone_trees(&self, effect: &Effect) -> Result<BTreeSet<Key>, FileError> {
        let recipe = FileRecipe::decode(&effect.recipe)?;
        let gone = recipe.changes.iter().filter_map(|change| match change {
            Change::Set {
                path,
                before:
                    Image::Kept {
                        node: Kind::Directory,
                        ..
                    },
                ..
            } => Some(Key::from(path.clone())),
            _ => None,
        });
        Ok(gone.collect())
    }

    /// Names the directories that an effect brought back as one, with all that is in them.
    pub fn come_trees(&self, effect: &Effect) -> Result<BTreeSet<TargetPath>, FileError> {
        let recipe = FileRecipe::decode(&effect.recipe)?;
        let come = recipe.changes.iter().filter_map(|change| match change {
            Change::Set {
                path,
                after:
                    Image::Kept {
                        node: Kind::Directory,
                        ..
                    },
                ..
            } => Some(path.clone()),
            _ => None,
        });
        Ok(come.collect())
    }

    /// Names the directories that an effect moved to where nothing was.
    pub fn brought(&self, effect: &Effect) -> Result<BTreeSet<TargetPath>, FileError> {
        let recipe = FileRecipe::decode(&effect.recipe)?;
        Ok(recipe.brought())
    }

    /// Lists what an effect changed, name by name, trees with all that is in them. Looks only.
    pub fn changes(&self, effect: &Effect) -> Result<Vec<FileChange>, FileError> {
        past::changes_of(effect)
    }

    /// Lists every name that an effect changed, once, with what others saw before and after it. Looks only.
    pub fn sides(&self, effect: &Effect) -> Result<Vec<FileChange>, FileError> {
        past::sides_of(effect)
    }

    /// Describes what a name stands for now; none if it is nothing.
    pub fn now(&self, path: &TargetPath) -> Result<Option<Was>, FileError> {
        past::now(path)
    }

    /// Describes what is in a directory now, with all below.
    pub fn below(&self, path: &TargetPath) -> Result<Vec<Past>, FileError> {
        past::below(path)
    }

    /// Tells whether the bytes that a file had can be had.
    pub fn is_at_hand(&self, was: &Was) -> Result<bool, FileError> {
        Ok(!matches!(
            was.source(&self.tools)?,
            past::Source::Nowhere(_)
        ))
    }

    /// Names the bytes that a file had, if they can be had.
    pub fn digest(&self, was: &Was) -> Result<Option<Digest>, FileError> {
        past::digest(&self.tools, was)
    }

    /// Reads the bytes that a file had, if they are not more than `bytes_max`.
    pub fn read(&self, was: &Was, bytes_max: u64) -> Result<Shown, FileError> {
        past::read(&self.tools, was, bytes_max)
    }

    /// Says of each inode that an effect keeps, for a name that is needed, what is wrong with it, if something is. Looks
    /// only.
    pub fn check_kept(
        &self,
        effect: &Effect,
        is_needed: &dyn Fn(&TargetPath) -> bool,
    ) -> Result<Vec<LookedAt>, FileError> {
        check_kept(&self.tools, effect, is_needed)
    }

    /// Begins to record what a command does to files, in the log at `log`.
    pub fn record(
        &self,
        id: OperationId,
        log: &Path,
        limits: Limits,
    ) -> Result<Recorder, RecorderError> {
        Recorder::new(
            id,
            log,
            (
                Arc::clone(&self.tools.depots),
                Arc::clone(&self.tools.stash),
            ),
            limits,
        )
    }

    /// Keeps everything below some directories before a command. `index` remembers what need not be read again. Gives
    /// how many files were read.
    pub fn scan(
        &self,
        id: OperationId,
        recorder: &mut Recorder,
        roots: &[TargetPath],
        index: &Path,
    ) -> Result<u64, FileError> {
        let scanned = command::scan(&self.tools, id, roots, index)?;
        recorder
            .scanned(scanned.notes)
            .map_err(|source| FileError::Io {
                path: index.display().to_string(),
                action: "write the capture log beside",
                source,
            })?;
        Ok(scanned.read)
    }

    /// Says what a command did that was recorded: the net effect, and how to take it back.
    pub fn settle(&self, id: OperationId, mut recorder: Recorder) -> Result<Settled, FileError> {
        // What is seen is known, also when the log has no room for it.
        let _noted = recorder.look_around();
        command::settle(&self.tools, id, recorder.into_ledger())
    }

    /// Says what a command did, by the log that its dead supervisor left. Parts of it count as told if `is_recorded`. If
    /// the machine went down since, its end `may_be_cut` off. What is kept out of reach is an error, unless it is to be settled
    /// `anyway`.
    pub fn settle_log(
        &self,
        id: OperationId,
        log: &Path,
        is_recorded: &dyn Fn(OperationId) -> bool,
        reading: Reading,
    ) -> Result<Settled, FileError> {
        command::settle_log(&self.tools, id, log, is_recorded, reading)
    }

    /// Says what a running command has done to some names so far, as the operation `id`. With those names it begins anew.
    pub fn settle_part(
        &self,
        id: OperationId,
        recorder: &mut Recorder,
        paths: Vec<TargetPath>,
    ) -> Result<Settled, FileError> {
        let unwritten = |source| FileError::Io {
            path: "the capture log".to_owned(),
            action: "write",
            source,
        };
        let part = recorder.cut(id, paths).map_err(unwritten)?;
        command::settle(&self.tools, id, part)
    }

    /// Tells how many syncs were made, of files, directories and file systems.
    pub fn sync_count(&self) -> u64 {
        self.tools.syncs.count()
    }

    /// Makes the step number `at` of what follows fail (from 0); with `abandons`, as a crash would, with
    /// nothing put back. None for no failure.
    #[cfg(any(test, feature = "testing"))]
    pub fn fail_at_step(&self, at: Option<usize>, abandons: bool) {
        self.tools.fault.set(at, abandons);
    }

    /// Tells how many steps were passed since [`Self::fail_at_step`].
    #[cfg(any(test, feature = "testing"))]
    pub fn steps_passed(&self) -> usize {
        self.tools.fault.passed()
    }
}

impl Driver for FileDriver {
    type Request = FileRequest;
    type Staged = Staged;
    type Error = FileError;

    fn verb(&self, request: &FileRequest) -> Verb {
        request.verb()
    }

    fn summary(&self, request: &FileRequest) -> String {
        request.summary()
    }

    fn targets(&self, request: &FileRequest) -> Result<Vec<Target>, FileError> {
        plan::targets(&self.tools, request)
    }

    fn sources(&self, request: &FileRequest) -> Vec<Target> {
        let sources = request.sources().into_iter();
        sources
            .filter_map(|source| plan::source(&self.tools, source))
            .collect()
    }

    fn traits(&self, request: &FileRequest) -> Traits {
        let paths = request.paths();
        let size = |path: &&std::path::Path| path.metadata().map_or(0, |found| found.len());
        Traits {
            size_bytes: paths.iter().map(size).sum(),
            files: paths.len(),
            ..Traits::of(request.kind())
        }
    }

    fn prepare(
        &self,
        id: OperationId,
        request: &FileRequest,
    ) -> Result<Prepared<Staged>, FileError> {
        plan::plan(&self.tools, id, request)
    }

    fn apply(&self, armed: Armed<Staged>) -> Result<Applied, FileError> {
        let (id, _, staged) = armed.into_parts();
        let happened = run(&self.tools, id, &staged)?;
        Ok(Applied {
            completion: happened.completion.encode()?,
            unlike: happened.unlike,
        })
    }

    fn prepare_undo(
        &self,
        id: OperationId,
        effect: &Effect,
        how: How<'_>,
    ) -> Result<PreparedUndo<Staged>, FileError> {
        prepare_undo(&self.tools, id, effect, how)
    }

    fn is_in_place(&self, effect: &Effect) -> Result<bool, FileError> {
        let recipe = FileRecipe::decode(&effect.recipe)?;
        let completion = FileCompletion::of(effect)?;
        let states = judge_all(&self.tools, &recipe, &completion)?;
        Ok(states.iter().all(|state| *state == State::After))
    }
}
