//! The config driver.

use std::sync::Arc;

use backout_config::{ConfigError, Document, Format, KeyChange, SIZE_MAX};
use backout_model::ports::{
    Applied, ContentsError, Driver, DriverError, Examined, How, LookedAt, OnConflict, Outline,
    Past, Prepared, PreparedUndo, Request, Scope, State, ValueChange,
};
use backout_model::{
    Armed, Digest, DriverName, Effect, JsonText, Key, OperationId, OperationKind, OutcomeKind,
    Recipe, Strategy, Target, TargetOutcome, TargetPath, Traits,
};

use super::current::{Looked, NoText, look};
use super::error::ConfigFault;
use super::recipe::{CONFIG, ConfigRecipe};
use super::request::ConfigRequest;
use super::story::Story;
use super::way::{Fate, WayBack, way_back};
use crate::file::locks::Locks;
use crate::file::recipe::FileRecipe;
use crate::file::repeat::absolute;
use crate::file::resolve::{Last, resolve};
use crate::file::{Expect, FileDriver, FileError, FileRequest, Shown, Source, Staged};

/// Changes keys of config files so that exactly these can be taken back.
#[derive(Debug)]
pub struct ConfigDriver {
    files: Arc<FileDriver>,
}

/// What a recorded change of keys is, read.
struct Known {
    recipe: ConfigRecipe,
    /// The write of the file.
    file: Effect,
    targets: Vec<Target>,
    /// What the keys were and became; the error says why nobody knows any more.
    changes: Result<Vec<KeyChange>, String>,
}

impl ConfigDriver {
    /// Takes the driver that writes the files.
    pub const fn new(files: Arc<FileDriver>) -> Self {
        Self { files }
    }

    fn resolved(&self, request: &ConfigRequest) -> Result<TargetPath, ConfigFault> {
        Ok(resolve(self.files.context(), &request.path, Last::Followed)?.path)
    }

    fn plan(
        &self,
        id: OperationId,
        request: &ConfigRequest,
    ) -> Result<Prepared<Staged>, ConfigFault> {
        let (format, path) = (request.format()?, self.resolved(request)?);
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
    fn rewrite(
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

    fn nothing(&self, id: OperationId) -> Result<Prepared<Staged>, FileError> {
        let nothing = FileRequest::Batch(Vec::new());
        self.files.prepare(id, &nothing, Strategy::Snapshot)
    }

    fn known(&self, effect: &Effect) -> Result<Known, ConfigFault> {
        let recipe = ConfigRecipe::of(effect)?;
        let changes = match self.files.context().contents.read(&recipe.values) {
            Ok(values) => Ok(serde_json::from_slice(&values).map_err(ConfigFault::Unreadable)?),
            Err(error @ (ContentsError::Missing { .. } | ContentsError::Damaged { .. })) => {
                Err(error.to_string())
            }
            Err(error @ (ContentsError::Outside { .. } | ContentsError::Store(_))) => {
                return Err(error.into());
            }
        };
        Ok(Known {
            file: recipe.file(effect.completion.clone()),
            targets: recipe.targets()?,
            recipe,
            changes,
        })
    }

    fn back(
        &self,
        id: OperationId,
        effect: &Effect,
        how: How<'_>,
    ) -> Result<PreparedUndo<Staged>, ConfigFault> {
        let known = self.known(effect)?;
        let is_meant: Vec<bool> = known.targets.iter().map(|it| how.means(it)).collect();
        let file = (&known.recipe.path, known.recipe.format);
        // Also to clear what a dead process left beside the file.
        let whole = self.back_whole(id, &known, how.is_unfinished)?;
        let changes = match &known.changes {
            Ok(changes) => changes,
            Err(why) => {
                let kind = OutcomeKind::Failed { why: why.clone() };
                return self.none(id, file, &known, &is_meant, &kind);
            }
        };
        if let Some(write) = whole.filter(|_| is_meant.iter().all(|it| *it)) {
            let inverse: Vec<KeyChange> = changes.iter().rev().map(KeyChange::inverse).collect();
            let outcomes = known.outcomes(|_| Some(OutcomeKind::Restored));
            let texts = known.recipe.texts.map(|(before, after)| (after, before));
            let prepared = ConfigRecipe::wrap(file, &inverse, texts, write)?;
            return Ok(PreparedUndo { prepared, outcomes });
        }
        let looked = match read(&known)? {
            Ok(looked) => looked,
            Err(why) => {
                return self.none(id, file, &known, &is_meant, &OutcomeKind::Conflict { why });
            }
        };
        let meant = |index: usize| is_meant.get(index) == Some(&true);
        let way = way_back(file.1, &looked.text, changes, meant, how.on_conflict);
        let mut way = way;
        let mut is_as_found = false;
        if let Some(never) = self.as_if_never(&known, &way, how.past, &looked.text)? {
            way.is_now(never.text);
            is_as_found = never.is_as_found;
        }
        let (way, outcomes) = known.decided(way, &looked.text, how);
        let texts = (
            Digest::of(looked.text.as_bytes()),
            Digest::of(way.text.as_bytes()),
        );
        let mut notes = Vec::new();
        let write = if way.changes.is_empty() {
            self.nothing(id)?
        } else {
            notes.extend(known.not_as_before(&way.fates));
            if is_as_found {
                let path = &known.recipe.path;
                notes.push(format!(
                    "`{path}` has the text back that it had first, but not the time"
                ));
            }
            notes.extend(
                looked
                    .looked
                    .not_given_back(&known.recipe.path, &known.file)?,
            );
            self.rewrite(id, file.0, &looked.looked, way.text)?
        };
        let mut prepared = ConfigRecipe::wrap(file, &way.changes, Some(texts), write)?;
        prepared.notes.extend(notes);
        Ok(PreparedUndo { prepared, outcomes })
    }

    /// Prepares the way back of the whole file; none if it is not exactly as it was left.
    fn back_whole(
        &self,
        id: OperationId,
        known: &Known,
        is_unfinished: bool,
    ) -> Result<Option<Prepared<Staged>>, ConfigFault> {
        let how = How {
            is_unfinished,
            ..How::default()
        };
        let back = self.files.prepare_undo(id, &known.file, how)?;
        let is_back = |outcome: &TargetOutcome| outcome.kind == OutcomeKind::Restored;
        let is_whole = !back.outcomes.is_empty() && back.outcomes.iter().all(is_back);
        Ok(is_whole.then_some(back.prepared))
    }

    /// Prepares nothing, and says the same of every key that is meant.
    fn none(
        &self,
        id: OperationId,
        file: (&TargetPath, Format),
        known: &Known,
        is_meant: &[bool],
        kind: &OutcomeKind,
    ) -> Result<PreparedUndo<Staged>, ConfigFault> {
        let said = |index: usize| (is_meant.get(index) == Some(&true)).then(|| kind.clone());
        Ok(PreparedUndo {
            prepared: ConfigRecipe::wrap(file, &[], None, self.nothing(id)?)?,
            outcomes: known.outcomes(said),
        })
    }

    /// Gives the text as it would be if the operation had never been, where nobody else wrote in the file since: what came after it is done
    /// again on what was before it. None if that is not known, or says no more than the way back does.
    fn as_if_never(
        &self,
        known: &Known,
        way: &WayBack,
        past: &[Past],
        now: &str,
    ) -> Result<Option<Never>, ConfigFault> {
        let is_back = |fate: &Fate| matches!(fate, Fate::Back | Fate::Nearly(_));
        if past.is_empty() || !way.fates.iter().all(is_back) {
            return Ok(None);
        }
        let Some(story) = Story::of(&known.recipe.path, past, now)? else {
            return Ok(None);
        };
        let effect = story.first.file(None);
        let mut sides = self.files.sides(&effect)?.into_iter();
        let Some(was) = sides.find_map(|side| side.before) else {
            return Ok(None);
        };
        let Shown::Bytes(bytes) = self.files.read(&was, SIZE_MAX as u64)? else {
            return Ok(None);
        };
        let Some(first) = story.text(bytes) else {
            return Ok(None);
        };
        let mut text = first.clone();
        for effect in story.since {
            let Ok(changes) = self.known(effect)?.changes else {
                return Ok(None);
            };
            for change in &changes {
                match backout_config::apply(known.recipe.format, &text, change) {
                    Ok(backout_config::Applied::Done(done)) => text = done,
                    Ok(backout_config::Applied::Already) => {}
                    Ok(backout_config::Applied::Nearly { .. }) | Err(_) => return Ok(None),
                }
            }
        }
        let is_as_found = text == first;
        Ok(Some(Never { text, is_as_found }))
    }

    fn looked_at(&self, effect: &Effect) -> Result<Vec<Examined>, ConfigFault> {
        let known = self.known(effect)?;
        let now = read(&known)?;
        let write = FileRecipe::decode(&known.file.recipe)?;
        let mut locks = Locks::of(write.own_directories());
        let locked = write.changes.iter().find_map(|change| locks.why(change));
        let barred = write.changes.iter().find_map(|change| locks.barred(change));
        let fates: Vec<Fate> = match (&known.changes, &now) {
            (Ok(changes), Ok(now)) => {
                let text = &now.text;
                way_back(
                    known.recipe.format,
                    text,
                    changes,
                    |_| true,
                    OnConflict::Refuse,
                )
                .fates
            }
            (Err(why), _) | (_, Err(why)) => {
                vec![Fate::Stays(why.clone()); known.targets.len()]
            }
        };
        let each = std::iter::zip(&known.targets, fates).enumerate();
        let each = each.map(|(change, (target, fate))| {
            let state = match (fate, &locked) {
                (Fate::Already | Fate::NotMeant, _) => State::Before,
                (Fate::Back | Fate::Merged | Fate::Nearly(_), None) => State::After,
                (Fate::Back | Fate::Merged | Fate::Nearly(_), Some(why)) => {
                    State::Other { why: why.clone() }
                }
                (Fate::Stays(why) | Fate::Forced(why), _) => State::Other { why },
            };
            let changes = known.changes.as_ref().ok();
            let of_it = changes.and_then(|changes| changes.get(change));
            Examined {
                barred: barred.clone().filter(|_| state == State::After),
                lost: known.changes.as_ref().err().cloned(),
                goes: of_it.is_some_and(|of_it| of_it.before.is_none()),
                ..Examined::new(change, target.clone(), state)
            }
        });
        Ok(each.collect())
    }

    fn told(&self, effect: &Effect) -> Result<Vec<ValueChange>, ConfigFault> {
        let known = self.known(effect)?;
        let changes = known.changes.as_ref().map_err(|why| ConfigFault::Config {
            path: known.recipe.path.to_string(),
            cause: ConfigError::BadValue { what: why.clone() },
        })?;
        let looked = read(&known)?;
        let now = |change: &KeyChange| {
            let text = &looked.as_ref().map_err(String::clone)?.text;
            let document = Document::parse(known.recipe.format, text);
            let document = document.map_err(|error| error.to_string())?;
            match document.get(&change.key) {
                Ok(found) => Ok(found.map(|found| found.raw.to_owned())),
                // What would hold the key is something else now, so the key is not there.
                Err(ConfigError::WrongKind { .. } | ConfigError::NoIndex { .. }) => Ok(None),
                Err(error) => Err(error.to_string()),
            }
        };
        let each = std::iter::zip(&known.targets, changes);
        let each = each.map(|(target, change)| ValueChange {
            key: target.key().clone(),
            before: change.before.as_ref().map(|piece| piece.raw.clone()),
            after: change.after.as_ref().map(|piece| piece.raw.clone()),
            now: now(change),
        });
        Ok(each.collect())
    }
}

/// A file that was read, as text.
struct Text {
    looked: Looked,
    text: String,
}

/// Reads the file of a recipe. The inner error says why its keys cannot be told.
fn read(known: &Known) -> Result<Result<Text, String>, ConfigFault> {
    let looked = match look(&known.recipe.path)? {
        Ok(looked) => looked,
        Err(NoText::NoFile(why)) => return Ok(Err(format!("the file: {why}"))),
        Err(NoText::Config(error)) => return Ok(Err(error.to_string())),
    };
    match Document::from_bytes(known.recipe.format, &looked.bytes) {
        Ok(document) => Ok(Ok(Text {
            text: document.text().to_owned(),
            looked,
        })),
        Err(error) => Ok(Err(format!("the file cannot be read any more: {error}"))),
    }
}

impl Known {
    /// Gives the targets of which something is said.
    fn outcomes(&self, said: impl Fn(usize) -> Option<OutcomeKind>) -> Vec<TargetOutcome> {
        let each = self.targets.iter().enumerate();
        each.filter_map(|(index, target)| Some(TargetOutcome::new(target.clone(), said(index)?)))
            .collect()
    }

    /// Says of the keys that come back what around them may not be as it was.
    fn not_as_before(&self, fates: &[Fate]) -> Vec<String> {
        let each = std::iter::zip(&self.targets, fates);
        let each = each.filter_map(|(target, fate)| match fate {
            Fate::Nearly(why) => Some(format!("`{target}` is back, but {why}")),
            Fate::Back
            | Fate::Merged
            | Fate::Already
            | Fate::Forced(_)
            | Fate::Stays(_)
            | Fate::NotMeant => None,
        });
        each.collect()
    }

    /// Decides whether a way back is taken: not if something stays and all or nothing was asked for.
    fn decided(&self, way: WayBack, text: &str, how: How<'_>) -> (WayBack, Vec<TargetOutcome>) {
        let mut outcomes = self.outcomes(|index| way.fates.get(index).and_then(Fate::outcome));
        if how.goes_on(&mut outcomes) {
            return (way, outcomes);
        }
        let way = WayBack {
            text: text.to_owned(),
            changes: Vec::new(),
            fates: way.fates,
        };
        (way, outcomes)
    }
}

/// A file as it would be if an operation had never been.
struct Never {
    text: String,
    /// Whether it is what the first of our operations found.
    is_as_found: bool,
}

impl Driver for ConfigDriver {
    fn name(&self) -> DriverName {
        CONFIG
    }

    fn scope(&self, request: &dyn Request) -> Result<Scope, DriverError> {
        let request: &ConfigRequest = request.as_a()?;
        request.format()?;
        let path = self.resolved(request)?;
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

    fn values(&self, effect: &Effect) -> Result<Option<Vec<ValueChange>>, DriverError> {
        Ok(Some(self.told(effect)?))
    }
}
