//! Making paths what they were before or after an operation, as a write of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;

use backout_files::{Past, Was};
use backout_model::{Key, Operation, OperationId, Target, TargetPath};
use backout_storage::OperationRef;

use crate::lifecycle::with_causes;
use crate::untold::Untold;
use crate::{Engine, EngineError, ErrorCode, Finished, Reply};

impl Engine {
    /// Makes paths, and everything below them that an operation touched, what they were before it; with `is_after`, what it
    /// made of them. What is there now is kept, as with every write.
    pub fn restore(
        &self,
        paths: &[TargetPath],
        from: &OperationRef,
        is_after: bool,
    ) -> Result<Finished, EngineError> {
        let operation = self.told_by(from)?;
        let id = operation.id;
        let past = self.past(&operation, paths, is_after)?;
        let (side, short) = (if is_after { "after" } else { "before" }, id.short());
        let what = match paths {
            [only] => only.to_string(),
            [first, rest @ ..] => format!("{first} and {} more", rest.len()),
            [] => "nothing".to_owned(),
        };
        let is_all_dress = past.names.len() == past.dressed.len();
        let has_undo =
            !is_after && operation.status.is_in_effect() && !operation.verb.is_reversal();
        let summary = if is_all_dress {
            format!(
                "restore the mode, owner and attributes of {what} to what they were {side} {short}"
            )
        } else {
            let were = if paths.len() == 1 {
                "it was"
            } else {
                "they were"
            };
            format!("restore {what} to what {were} {side} {short}")
        };
        let names = past.names;
        let strangers = Strangers::of(&names);
        let written = self.write(&*self.files.restoring(summary, names));
        let undo = |path: &str| {
            let is_moved = past.moved.iter().any(|name| is_in(path, name));
            (has_undo && is_moved).then_some(id)
        };
        let mut finished = written.map_err(|error| unrestored(error, &undo))?;
        let dressed = past.dressed.into_iter().filter(|_| !is_all_dress);
        finished.notes.extend(dressed.map(|path| {
            format!("only mode, owner and attributes of `{path}` were restored: what was in it is not kept")
        }));
        finished.notes.extend(strangers.told());
        Ok(finished)
    }

    /// Makes files, or parts of them and other targets, what they were.
    pub(crate) fn restore_all(
        &self,
        paths: &[TargetPath],
        mut parts: Vec<Key>,
        from: &OperationRef,
        is_after: bool,
    ) -> Result<Reply, EngineError> {
        let finished = if parts.is_empty() {
            self.restore(paths, from, is_after)?
        } else {
            parts.extend(paths.iter().cloned().map(Key::from));
            self.restore_parts(&parts, from, is_after)?
        };
        Ok(Reply::Finished(finished))
    }

    /// Makes keys, rows or other targets, and everything inside of them that an operation touched, what they were before it;
    /// with `is_after`, what it made of them. Its driver says how.
    pub fn restore_parts(
        &self,
        parts: &[Key],
        from: &OperationRef,
        is_after: bool,
    ) -> Result<Finished, EngineError> {
        let operation = self.told_by(from)?;
        let id = operation.id;
        let effect = self.store.effect(id)?;
        let driver = self.driver_of(&effect)?;
        let mut targets = driver.outline(&effect)?.targets;
        for part in parts {
            if !targets.iter().any(|target| is_inside(target, part)) {
                let target = part.clone();
                return Err(EngineError::NotTouched { target, id });
            }
        }
        targets.retain(|target| parts.iter().any(|part| is_inside(target, part)));
        let (side, short) = (if is_after { "after" } else { "before" }, id.short());
        let summary = match parts {
            [only] => format!("restore {only} to what it was {side} {short}"),
            [first, rest @ ..] => {
                let more = rest.len();
                format!("restore {first} and {more} more to what they were {side} {short}")
            }
            [] => "restore nothing".to_owned(),
        };
        let first = parts.first().cloned();
        let unfit = |error: EngineError| no_home(error, first.as_ref(), (id, is_after));
        let request = driver.restoring(&effect, &targets, is_after, summary);
        let request = request.map_err(|error| unfit(error.into()))?;
        let Some(request) = request else {
            let (driver, target) = (driver.name(), parts.first().cloned());
            return Err(EngineError::NoRestore { driver, target, id });
        };
        self.write(&*request).map_err(unfit)
    }

    fn past(
        &self,
        operation: &Operation,
        paths: &[TargetPath],
        is_after: bool,
    ) -> Result<Restored, EngineError> {
        let effect = self.store.effect(operation.id)?;
        let Some(effect) = self.as_files(&effect)? else {
            return Err(Untold::files(operation.id));
        };
        let sides = self.files.sides_with_moved(&effect)?;
        for path in paths {
            if !sides.iter().any(|side| is_at(&side.path, path)) {
                let (target, id) = (path.clone().into(), operation.id);
                return Err(EngineError::NotTouched { target, id });
            }
        }
        let changes = self.files.changes(&effect)?.into_iter();
        let moved = changes.filter_map(|change| Some([change.from?, change.path]));
        let mut restored = Restored {
            moved: moved.flatten().collect(),
            ..Restored::default()
        };
        for side in sides {
            if !paths.iter().any(|path| is_at(&side.path, path)) {
                continue;
            }
            let path = side.path;
            let mut was = if is_after { side.after } else { side.before };
            if let Some(left) = was.as_ref().filter(|was| was.is_file()) {
                let is_here = if left.is_dress() {
                    self.files.is_there(&path, left)?
                } else {
                    self.files.is_at_hand(left)?
                };
                // Another operation may keep what is not where it was left.
                let kept = if is_here {
                    None
                } else {
                    self.kept_elsewhere(operation, &path, left)?
                };
                match kept {
                    Some(kept) => was = Some(left.kept_as(kept)),
                    None if left.is_dress() && !is_here => restored.dressed.push(path.clone()),
                    None => {}
                }
            }
            restored.names.push(Past { path, was });
        }
        Ok(restored)
    }

    /// Tells whether an operation touched a path or something below it, also within a tree that went or came as one.
    pub(crate) fn has_touched(
        &self,
        id: OperationId,
        path: &TargetPath,
    ) -> Result<bool, EngineError> {
        let sides = self.sides_of(&self.store.effect(id)?)?;
        Ok(sides.iter().any(|side| is_at(&side.path, path)))
    }
}

/// What is to become what it was.
#[derive(Default)]
struct Restored {
    names: Vec<Past>,
    /// Those of which only mode, owner and attributes are known.
    dressed: Vec<TargetPath>,
    /// Both names of what the operation moved.
    moved: Vec<TargetPath>,
}

/// The directories that a restore makes what they were, each with the names that were in it.
struct Strangers(BTreeMap<TargetPath, BTreeSet<OsString>>);

impl Strangers {
    fn of(names: &[Past]) -> Self {
        let is_directory = |past: &&Past| past.was.as_ref().is_some_and(Was::is_directory);
        let directories = names.iter().filter(is_directory);
        let mut all: BTreeMap<_, BTreeSet<OsString>> = directories
            .map(|past| (past.path.clone(), BTreeSet::new()))
            .collect();
        for past in names.iter().filter(|past| past.was.is_some()) {
            let home = past.path.parent().and_then(|home| all.get_mut(&home));
            if let (Some(home), Some(name)) = (home, past.path.as_path().file_name()) {
                home.insert(name.to_owned());
            }
        }
        // Of a directory that was only given another mode nobody knows what was in it.
        all.retain(|_, names| !names.is_empty());
        Self(all)
    }

    /// Says what else is in them now. Nobody takes it away: it is somebody's.
    fn told(&self) -> impl Iterator<Item = String> {
        self.0.iter().filter_map(|(directory, names)| {
            let found = std::fs::read_dir(directory.as_path()).ok()?;
            let found = found.flatten().map(|entry| entry.file_name());
            let strange: Vec<OsString> = found.filter(|name| !names.contains(name)).collect();
            let first = strange.first()?.display();
            let more = match strange.len() - 1 {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            Some(format!(
                "`{directory}` also holds what was not there then, and that stays: {first}{more}"
            ))
        })
    }
}

/// Says what brings back what a restore cannot: the undo of the whole operation, where that would.
fn unrestored(error: EngineError, undo: &dyn Fn(&str) -> Option<OperationId>) -> EngineError {
    if let EngineError::Driver(error) = &error
        && let Some((path, why)) = error.fault().lost()
    {
        let (path, why) = (path.to_owned(), why.to_owned());
        let undo = undo(&path);
        return EngineError::Unrestorable { path, why, undo };
    }
    error
}

/// Says of a part that its file has no place for it: it is gone, or is not written as it was. What helps a write that makes the
/// file does not help a restore.
fn no_home(
    error: EngineError,
    part: Option<&Key>,
    (from, is_after): (OperationId, bool),
) -> EngineError {
    let code = if let EngineError::Driver(cause) = &error {
        cause.fault().report().map(|report| report.code)
    } else {
        None
    };
    let file = part.and_then(Key::file);
    match (code, part, file) {
        (Some(ErrorCode::NotFound | ErrorCode::ConfigSyntax), Some(part), Some(_)) => {
            EngineError::NoHome {
                part: Box::new(part.clone()),
                is_gone: code == Some(ErrorCode::NotFound),
                why: with_causes(&error),
                from,
                is_after,
            }
        }
        _ => error,
    }
}

/// Tells whether a target is what is meant, or lies inside of it.
fn is_inside(target: &Target, part: &Key) -> bool {
    target.key() == part || target.key().ancestors().contains(part)
}

fn is_in(path: &str, name: &TargetPath) -> bool {
    Path::new(path).starts_with(name.as_path())
}

fn is_at(name: &TargetPath, path: &TargetPath) -> bool {
    name == path || name.is_below(path)
}
