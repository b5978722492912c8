//! The config driver.

use std::sync::Arc;

use backout_config::{Document, SIZE_MAX};
use backout_model::ports::{
    Applied, Driver, DriverError, Examined, How, LookedAt, OnConflict, Outline, Prepared,
    PreparedUndo, Request, Scope, ValueChange, Watch,
};
use backout_model::{
    Armed, Digest, DriverName, Effect, JsonText, Key, OperationId, OperationKind, Recipe, Strategy,
    Target, TargetPath, Traits,
};

use super::current::{Looked, NoText, look};
use super::error::ConfigFault;
use super::known::read;
use super::recipe::{CONFIG, ConfigRecipe};
use super::request::ConfigRequest;
use super::way::{Fate, way_back};
use crate::file::recipe::FileRecipe;
use crate::file::repeat::absolute;
use crate::file::resolve::{Last, Resolved, resolve};
use crate::file::{Expect, FileDriver, FileError, FileRequest, Source, Staged};

/// Changes keys of config files so that exactly these can be taken back.
#[derive(Debug)]
pub struct ConfigDriver {
    pub(super) files: Arc<FileDriver>,
}

impl ConfigDriver {
    /// Takes the driver that writes the files.
    pub const fn new(files: Arc<FileDriver>) -> Self {
        Self { files }
    }

    fn resolved(&self, request: &ConfigRequest) -> Result<Resolved, FileError> {
        resolve(self.files.context(), &request.path, Last::Followed)
    }

    fn plan(
        &self,
        id: OperationId,
        request: &ConfigRequest,
    ) -> Result<Prepared<Staged>, ConfigFault> {
        let (format, resolved) = (request.format()?, self.resolved(request)?);
        let through = resolved.through(&request.path);
        let path = resolved.path;
        let wrong = |cause| ConfigFault::Config {
            path: path.to_string(),
            cause,
        };
        let looked = match look(&path)? {
            Ok(looked) => looked,
            Err(NoText::Config(cause)) => return Err(wrong(cause)),
            // The file driver knows what to say of what is no file.
            Err(NoText::NoFile(_)) => {
                let write = self.write(id, &path, Vec::new())?;
                drop(write);
                let path = path.to_string();
                return Err(FileError::Changed { path }.into());
            }
        };
        let edited = request.edited(format, &looked.bytes).map_err(wrong)?;
        let texts = (
            Digest::of(&looked.bytes),
            Digest::of(edited.text.as_bytes()),
        );
        let write = if edited.changes.is_empty() {
            self.nothing(id)?
        } else {
            self.rewrite(id, &path, &looked, edited.text)?
        };
        let mut write = write;
        write.staged.through.extend(through);
        ConfigRecipe::wrap((&path, format), &edited.changes, Some(texts), write)
    }

    /// Plans a file's new bytes. The file must be there.
    fn write(
        &self,
        id: OperationId,
        path: &TargetPath,
        bytes: Vec<u8>,
    ) -> Result<Prepared<Staged>, FileError> {
        let request = FileRequest::Write {
            path: path.as_path().to_owned(),
            source: Source::Bytes(bytes),
            expect: Expect::Existing,
            parents: false,
            mode: None,
        };
        self.files.prepare(id, &request, Strategy::Snapshot)
    }

    /// The same for a new text in place of the one that was read.
    pub(super) fn rewrite(
        &self,
        id: OperationId,
        path: &TargetPath,
        looked: &Looked,
        text: String,
    ) -> Result<Prepared<Staged>, FileError> {
        let write = self.write(id, path, text.into_bytes())?;
        looked.is_what_goes(path, &FileRecipe::decode(&write.recipe)?)?;
        Ok(write)
    }

    /// Writes nothing.
    pub(super) fn nothing(&self, id: OperationId) -> Result<Prepared<Staged>, FileError> {
        let nothing = FileRequest::Batch(Vec::new());
        self.files.prepare(id, &nothing, Strategy::Snapshot)
    }
}

impl Driver for ConfigDriver {
    fn name(&self) -> DriverName {
        CONFIG
    }

    fn watch(&self) -> Option<&Watch> {
        self.files.watch()
    }

    fn scope(&self, request: &dyn Request) -> Result<Scope, DriverError> {
        let request: &ConfigRequest = request.as_a()?;
        request.format()?;
        let path = self.resolved(request)?.path;
        let size = path.as_path().metadata().map_or(0, |found| found.len());
        Ok(Scope {
            // Whoever writes a key writes the file.
            targets: vec![Target::node(path)],
            sources: Vec::new(),
            traits: Traits {
                size_bytes: size.min(SIZE_MAX as u64),
                files: 1,
                ..Traits::of(OperationKind::ConfigChange)
            },
        })
    }

    fn repeatable(
        &self,
        _by: OperationId,
        request: &dyn Request,
    ) -> Result<Box<dyn Request>, DriverError> {
        let request: &ConfigRequest = request.as_a()?;
        let path = absolute(&request.path)?;
        Ok(Box::new(ConfigRequest {
            path,
            ..request.clone()
        }))
    }

    fn asked(&self, request: &dyn Request) -> Result<Digest, DriverError> {
        let request: &ConfigRequest = request.as_a()?;
        let path = absolute(&request.path)?;
        let request = ConfigRequest {
            path,
            ..request.clone()
        };
        Ok(Digest::of(request.as_text()?.as_str().as_bytes()))
    }

    fn read_request(&self, text: &JsonText) -> Result<Box<dyn Request>, DriverError> {
        let request: ConfigRequest = text.read().map_err(FileError::Request)?;
        Ok(Box::new(request))
    }

    fn fingerprint(&self, recipe: &Recipe) -> Result<Digest, DriverError> {
        self.files.fingerprint(ConfigRecipe::read(recipe)?.write())
    }

    fn prepare(
        &self,
        id: OperationId,
        request: &dyn Request,
        strategy: Strategy,
    ) -> Result<Prepared, DriverError> {
        if strategy != Strategy::Transaction {
            let request: &ConfigRequest = request.as_a()?;
            let path = request.path.display().to_string();
            let why = "keys are logged one by one".to_owned();
            return Err(FileError::NotPrepared {
                path,
                strategy,
                why,
            }
            .into());
        }
        Ok(self.plan(id, request.as_a()?)?.boxed())
    }

    fn apply(&self, armed: Armed) -> Result<Applied, DriverError> {
        let (id, _, staged) = armed.into_parts();
        Ok(self.files.carry_out(id, &staged.take()?)?)
    }

    fn prepare_undo(
        &self,
        id: OperationId,
        effect: &Effect,
        how: How<'_>,
    ) -> Result<PreparedUndo, DriverError> {
        Ok(self.back(id, effect, how)?.boxed())
    }

    fn outline(&self, effect: &Effect) -> Result<Outline, DriverError> {
        Ok(Outline::of(ConfigRecipe::of(effect)?.targets()?))
    }

    fn examine(&self, effect: &Effect, _to_the_end: bool) -> Result<Vec<Examined>, DriverError> {
        Ok(self.looked_at(effect)?)
    }

    fn is_in_place(&self, effect: &Effect) -> Result<bool, DriverError> {
        let known = self.known(effect)?;
        let (Ok(changes), Ok(looked)) = (&known.changes, read(&known)?) else {
            return Ok(false);
        };
        let format = known.recipe.format;
        let way = way_back(format, &looked.text, changes, |_| true, OnConflict::Refuse);
        let is_there = |fate: &Fate| matches!(fate, Fate::Back | Fate::Nearly(_));
        Ok(way.fates.iter().all(is_there))
    }

    fn check_kept(
        &self,
        effect: &Effect,
        is_needed: &dyn Fn(&Key) -> bool,
    ) -> Result<Vec<LookedAt>, DriverError> {
        let recipe = ConfigRecipe::of(effect)?;
        let targets = recipe.targets()?;
        let is_any = targets.iter().any(|target| is_needed(target.key()));
        let file = recipe.file(effect.completion.clone());
        Driver::check_kept(&*self.files, &file, &|_| is_any)
    }

    fn as_files(&self, effect: &Effect) -> Result<Option<Effect>, DriverError> {
        let recipe = ConfigRecipe::of(effect)?;
        Ok(Some(recipe.file(effect.completion.clone())))
    }

    fn without(
        &self,
        effect: &Effect,
        how: How<'_>,
        now: &[u8],
    ) -> Result<Option<Vec<u8>>, DriverError> {
        let known = self.known(effect)?;
        let format = known.recipe.format;
        let (Ok(changes), Ok(now)) = (&known.changes, Document::from_bytes(format, now)) else {
            return Ok(None);
        };
        let is_meant = |index| {
            let target = known.targets.get(index);
            target.is_some_and(|target| how.means(target))
        };
        let way = way_back(format, now.text(), changes, is_meant, how.on_conflict);
        let is_stuck = |fate: &Fate| matches!(fate, Fate::Stays(_));
        Ok((!way.fates.iter().any(is_stuck)).then(|| way.text.into_bytes()))
    }

    fn restoring(
        &self,
        effect: &Effect,
        targets: &[Target],
        is_after: bool,
        summary: String,
    ) -> Result<Option<Box<dyn Request>>, DriverError> {
        let request = self.restored(effect, targets, is_after, summary)?;
        Ok(Some(Box::new(request)))
    }

    fn values(&self, effect: &Effect) -> Result<Option<Vec<ValueChange>>, DriverError> {
        Ok(Some(self.told(effect)?))
    }
}
