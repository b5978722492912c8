//! The file driver: the trait, and what previews, differences and benchmarks ask beside it.
//!
//! Other drivers that write files ask for the same things by their own types, so those come first.

use std::collections::BTreeSet;
use std::fs::File;
use std::sync::Arc;

use backout_files::{FileChange, Files, Lacking, LayerEntry, Past, Shown, Was};
use backout_model::ports::{
    self, Applied, Depots, Differing, Driver, DriverError, Durability, Examined, How, LookedAt,
    Looking, Outline, Prepared, PreparedUndo, Progress, ReadContents, Request, Scope, State, Store,
    Watch, WriteContents,
};
use backout_model::{
    Armed, Digest, DriverName, Effect, JsonText, Key, OperationId, RIDING_BYTES_MAX, Recipe,
    Strategy, Target, TargetPath, Traits,
};

use super::before_image::Keeper;
use super::changed::Happened;
use super::compare::Current;
use super::context::FileContext;
use super::error::FileError;
use super::execute::run;
use super::execute::tidy::{is_left, tidy};
use super::judge::judge_all;
use super::past;
use super::plan;
use super::recipe::{Change, FileCompletion, FileRecipe, Identity, is_kept_tree};
use super::repeat;
use super::request::FileRequest;
use super::stage::Staged;
use super::sys::Dir;
use super::undo::{check_kept, prepare_undo, with_moved};
use super::view::examine;

/// Writes files so that every write can be taken back.
#[derive(Debug)]
pub struct FileDriver {
    context: FileContext,
}

impl FileDriver {
    /// Takes the store and the depots.
    pub fn new(
        contents: Arc<dyn ReadContents>,
        stash: Arc<dyn WriteContents>,
        depots: Arc<dyn Depots>,
    ) -> Self {
        Self {
            context: FileContext::new(contents, stash, depots),
        }
    }

    /// Asks a journal what operations left.
    #[must_use]
    pub fn with_journal(mut self, journal: Arc<dyn Store>) -> Self {
        self.context.journal = Some(journal);
        self
    }

    /// Tells somebody how far long work has come.
    #[must_use]
    pub fn with_progress(mut self, progress: Arc<dyn Progress>) -> Self {
        self.context.watch = Watch::of(progress);
        self
    }

    /// Gives what other drivers that write files work with.
    pub(crate) const fn context(&self) -> &FileContext {
        &self.context
    }

    /// Tells where each target of an effect stands now. Looks only.
    pub fn examine(&self, effect: &Effect) -> Result<Vec<Examined>, FileError> {
        examine(&self.context, effect)
    }

    /// Plans a request: looks, stages and captures. Changes nothing that anybody can see.
    pub fn prepare(
        &self,
        id: OperationId,
        request: &FileRequest,
        strategy: Strategy,
    ) -> Result<Prepared<Staged>, FileError> {
        match strategy {
            Strategy::Snapshot | Strategy::Transaction => {
                plan::plan(&self.context, id, request, strategy)
            }
            Strategy::Compensation | Strategy::Irreversible => Err(FileError::NotPrepared {
                path: request.summary(),
                strategy,
                why: "files are kept whole, or by what changes".to_owned(),
            }),
        }
    }

    /// Makes it happen and looks at the result.
    pub fn apply(&self, armed: Armed<Staged>) -> Result<Applied, FileError> {
        let (id, _, staged) = armed.into_parts();
        self.carry_out(id, &staged)
    }

    /// Makes what is staged happen.
    pub(crate) fn carry_out(&self, id: OperationId, staged: &Staged) -> Result<Applied, FileError> {
        let happened = run(&self.context, id, staged)?;
        Ok(Applied {
            completion: happened.completion.encode()?,
            // What was made is on the disk, and can be looked at again.
            durability: Durability::Process,
            unlike: happened.unlike,
            is_idle: false,
        })
    }

    /// Prepares the write that takes an effect back.
    pub fn prepare_undo(
        &self,
        id: OperationId,
        effect: &Effect,
        how: How<'_>,
    ) -> Result<PreparedUndo<Staged>, FileError> {
        prepare_undo(&self.context, id, effect, how)
    }

    /// Tells whether the whole of an effect is in the world now. One that still has something to put away is not.
    pub fn is_in_place(&self, effect: &Effect) -> Result<bool, FileError> {
        let recipe = FileRecipe::decode(&effect.recipe)?;
        let completion = FileCompletion::of(effect)?;
        let states = judge_all(&self.context, &recipe, &completion)?;
        let is_finished = completion.identities.len() == recipe.changes.len();
        let is_there = states.iter().all(|state| *state == State::After);
        Ok(is_there && (is_finished || !is_left(&recipe)?))
    }

    /// Says what the recipe alone tells of its targets.
    pub fn outline(&self, effect: &Effect) -> Result<Outline, FileError> {
        let recipe = FileRecipe::decode(&effect.recipe)?;
        let mut outline = Outline {
            targets: recipe.changes.iter().flat_map(plan::targets_of).collect(),
            brought: recipe.brought().into_iter().map(Key::from).collect(),
            ..Outline::default()
        };
        for change in &recipe.changes {
            match change {
                Change::Set {
                    path,
                    before,
                    after,
                } => {
                    let trees = [(&mut outline.gone, before), (&mut outline.come, after)];
                    for (trees, _) in trees.into_iter().filter(|(_, image)| is_kept_tree(image)) {
                        trees.insert(Key::from(path.clone()));
                    }
                }
                Change::Move { .. } | Change::Retouch { .. } | Change::Rewrite { .. } => {}
            }
        }
        Ok(outline)
    }

    /// Makes the step number `at` of what follows fail (from 0); with `abandons`, as a crash would, with
    /// nothing put back. None for no failure.
    #[cfg(any(test, feature = "testing"))]
    pub fn fail_at_step(&self, at: Option<usize>, abandons: bool) {
        self.context.fault.set(at, abandons);
    }

    /// Tells how many steps were passed since [`Self::fail_at_step`].
    #[cfg(any(test, feature = "testing"))]
    pub fn steps_passed(&self) -> usize {
        self.context.fault.passed()
    }
}

impl FileDriver {
    /// Tells whether there are depots for all that is there of these.
    fn has_depots(&self, targets: &[Target]) -> bool {
        let mut files = targets.iter().filter_map(Target::file);
        files.all(|path| match Dir::of(path) {
            Ok(place) => Keeper::new(&self.context, OperationId::from_bits(0))
                .can_park(&place.dir)
                .unwrap_or(false),
            Err(_) => true,
        })
    }
}

impl Files for FileDriver {
    fn changes(&self, effect: &Effect) -> Result<Vec<FileChange>, DriverError> {
        Ok(past::changes_of(&self.context, effect)?)
    }

    fn sides(&self, effect: &Effect) -> Result<Vec<FileChange>, DriverError> {
        Ok(past::sides_of(&self.context, effect)?)
    }

    fn sides_with_moved(&self, effect: &Effect) -> Result<Vec<FileChange>, DriverError> {
        Ok(past::sides_with_moved(&self.context, effect)?)
    }

    fn moves(&self, effect: &Effect) -> Result<Vec<(TargetPath, TargetPath)>, DriverError> {
        Ok(past::moves_of(effect)?)
    }

    fn left_inode(
        &self,
        effect: &Effect,
        path: &TargetPath,
    ) -> Result<Option<Identity>, DriverError> {
        Ok(past::left_inode(effect, path)?)
    }

    fn happened(
        self: Arc<Self>,
        effect: &Effect,
        through: Vec<(TargetPath, TargetPath)>,
    ) -> Result<Box<dyn ports::Staged>, DriverError> {
        Ok(Box::new(Happened::of(self, effect, through)?))
    }

    fn now(&self, path: &TargetPath) -> Result<Option<Was>, DriverError> {
        Ok(past::now(path)?)
    }

    fn below(&self, path: &TargetPath) -> Result<Vec<Past>, DriverError> {
        Ok(past::below(path)?)
    }

    fn is_there(&self, path: &TargetPath, was: &Was) -> Result<bool, DriverError> {
        let current = Current::at(path)?;
        match (&current.place, &current.node) {
            (Some(place), Some(node)) if was.identity.is_some() => {
                Ok(past::is_at(was, place, node)?)
            }
            _ => Ok(false),
        }
    }

    fn is_at_hand(&self, was: &Was) -> Result<bool, DriverError> {
        let source = past::source(was, &self.context)?;
        Ok(!matches!(source, past::Source::Nowhere(_)))
    }

    fn digest(&self, was: &Was) -> Result<Option<Digest>, DriverError> {
        Ok(past::digest(&self.context, was)?)
    }

    fn read(&self, was: &Was, bytes_max: u64) -> Result<Shown, DriverError> {
        Ok(past::read(&self.context, was, bytes_max)?)
    }

    fn is_same(&self, was: &Was, other: &Was) -> Result<bool, DriverError> {
        Ok(past::is_same(&self.context, was, other)?)
    }

    fn bases(&self, was: &Was) -> Result<Vec<Digest>, DriverError> {
        Ok(past::bases(&self.context, was)?)
    }

    fn has_one_of(&self, bytes: &[Digest], was: &Was) -> Result<Option<Digest>, DriverError> {
        Ok(past::has_one_of(&self.context, bytes, was)?)
    }

    fn lacking(&self, effect: &Effect) -> Result<Lacking, DriverError> {
        Ok(self.lacks(effect)?)
    }

    fn elsewhere(&self, effect: &Effect, digest: &Digest) -> Result<Option<File>, DriverError> {
        Ok(self.has_elsewhere(effect, digest)?)
    }

    fn restoring(&self, summary: String, names: Vec<Past>) -> Box<dyn Request> {
        Box::new(FileRequest::Restore { summary, names })
    }

    fn layering(&self, summary: String, entries: Vec<LayerEntry>) -> Box<dyn Request> {
        Box::new(FileRequest::Layer { summary, entries })
    }

    fn sync_count(&self) -> u64 {
        self.context.syncs.count()
    }
}

impl Driver for FileDriver {
    fn name(&self) -> DriverName {
        DriverName::FILE
    }

    fn watch(&self) -> Option<&Watch> {
        Some(&self.context.watch)
    }

    fn scope(&self, request: &dyn Request) -> Result<Scope, DriverError> {
        let request: &FileRequest = request.as_a()?;
        let paths = request.paths();
        let size = |path: &&std::path::Path| path.metadata().map_or(0, |found| found.len());
        let size_bytes = request.old_paths().iter().map(size).max().unwrap_or(0);
        let sources = request.sources().into_iter();
        let targets = plan::targets(&self.context, request)?;
        Ok(Scope {
            sources: sources
                .filter_map(|source| plan::source(&self.context, source))
                .collect(),
            targets: targets.clone(),
            traits: Traits {
                size_bytes,
                files: paths.len(),
                is_copied: size_bytes > RIDING_BYTES_MAX && !self.has_depots(&targets),
                ..Traits::of(request.kind())
            },
        })
    }

    fn is_lasting(&self, request: &dyn Request) -> Result<bool, DriverError> {
        Ok(repeat::is_lasting(request.as_a()?))
    }

    fn repeatable(
        &self,
        by: OperationId,
        request: &dyn Request,
    ) -> Result<Box<dyn Request>, DriverError> {
        let request = repeat::repeatable(&self.context, by, request.as_a()?)?;
        Ok(Box::new(request))
    }

    fn asked(&self, request: &dyn Request) -> Result<Digest, DriverError> {
        Ok(repeat::asked(request.as_a()?)?)
    }

    fn contents_of(&self, request: &dyn Request) -> Result<Vec<Digest>, DriverError> {
        Ok(repeat::needed(request.as_a()?))
    }

    fn read_request(&self, text: &JsonText) -> Result<Box<dyn Request>, DriverError> {
        let request: FileRequest = text.read().map_err(FileError::Request)?;
        Ok(Box::new(request))
    }

    fn fingerprint(&self, recipe: &Recipe) -> Result<Digest, DriverError> {
        Ok(repeat::fingerprint(&FileRecipe::decode(recipe)?)?)
    }

    fn prepare(
        &self,
        id: OperationId,
        request: &dyn Request,
        strategy: Strategy,
    ) -> Result<Prepared, DriverError> {
        Ok(self.prepare(id, request.as_a()?, strategy)?.boxed())
    }

    fn apply(&self, armed: Armed) -> Result<Applied, DriverError> {
        let (id, _, staged) = armed.into_parts();
        Ok(self.carry_out(id, &staged.take()?)?)
    }

    fn prepare_undo(
        &self,
        id: OperationId,
        effect: &Effect,
        how: How<'_>,
    ) -> Result<PreparedUndo, DriverError> {
        Ok(self.prepare_undo(id, effect, how)?.boxed())
    }

    fn outline(&self, effect: &Effect) -> Result<Outline, DriverError> {
        Ok(self.outline(effect)?)
    }

    fn with_moved(
        &self,
        effect: &Effect,
        names: &BTreeSet<Key>,
    ) -> Result<BTreeSet<Key>, DriverError> {
        let recipe = FileRecipe::decode(&effect.recipe)?;
        let all = with_moved(&recipe.changes, names)?;
        Ok(all.into_iter().cloned().map(Key::from).collect())
    }

    fn examine(&self, effect: &Effect, to_the_end: bool) -> Result<Vec<Examined>, DriverError> {
        Ok(if to_the_end {
            self.context.going_back(|| self.examine(effect))?
        } else {
            self.examine(effect)?
        })
    }

    fn is_in_place(&self, effect: &Effect) -> Result<bool, DriverError> {
        Ok(self.is_in_place(effect)?)
    }

    fn put_away(&self, effect: &Effect) -> Result<(), DriverError> {
        let recipe = FileRecipe::decode(&effect.recipe)?;
        Ok(tidy(&self.context, &recipe)?)
    }

    fn check_kept(
        &self,
        effect: &Effect,
        is_needed: &dyn Fn(&Key) -> bool,
    ) -> Result<Vec<LookedAt>, DriverError> {
        Ok(check_kept(&self.context, effect, is_needed)?)
    }

    fn differing(
        &self,
        effect: &Effect,
        looking: &Looking<'_>,
    ) -> Result<Vec<Differing>, DriverError> {
        Ok(past::differing(&self.context, effect, looking)?)
    }

    fn as_files(&self, effect: &Effect) -> Result<Option<Effect>, DriverError> {
        Ok(Some(effect.clone()))
    }
}
