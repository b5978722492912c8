//! Making paths what they were before or after an operation, as a write of its own.

use std::path::Path;

use backout_drivers::file::{FileError, FileRequest, Past};
use backout_model::{Operation, OperationId, TargetPath};
use backout_storage::OperationRef;

use crate::untold::Untold;
use crate::{Engine, EngineError, Finished};

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
        let written = self.write(&FileRequest::Restore { summary, names });
        let undo = |path: &str| {
            let is_moved = past.moved.iter().any(|name| is_in(path, name));
            (has_undo && is_moved).then_some(id)
        };
        let mut finished = written.map_err(|error| unrestored(error, &undo))?;
        let dressed = past.dressed.into_iter().filter(|_| !is_all_dress);
        finished.notes.extend(dressed.map(|path| {
            format!("only mode, owner and attributes of `{path}` were restored: what was in it is not kept")
        }));
        Ok(finished)
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
                let (path, id) = (path.clone(), operation.id);
                return Err(EngineError::NotTouched { path, id });
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
                // A later operation may keep what is not where it was left.
                let kept = if is_here {
                    None
                } else {
                    self.kept_later(operation, &path, left)?
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

/// Says what brings back what a restore cannot: the undo of the whole operation, where that would.
fn unrestored(error: EngineError, undo: &dyn Fn(&str) -> Option<OperationId>) -> EngineError {
    if let EngineError::Driver(error) = &error
        && let Some(FileError::Lost { path, why }) = error.as_a()
    {
        let (path, why) = (path.clone(), why.clone());
        let undo = undo(&path);
        return EngineError::Unrestorable { path, why, undo };
    }
    error
}

fn is_in(path: &str, name: &TargetPath) -> bool {
    Path::new(path).starts_with(name.as_path())
}

fn is_at(name: &TargetPath, path: &TargetPath) -> bool {
    name == path || name.is_below(path)
}
