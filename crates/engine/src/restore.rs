//! Making paths what they were before or after an operation, as a write of its own.

use backout_drivers::file::{FileRequest, Past};
use backout_model::{Operation, OperationId, TargetPath};
use backout_storage::OperationRef;

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
        let names = self.past(&operation, paths, is_after)?;
        let (side, short) = (if is_after { "after" } else { "before" }, id.short());
        let what = match paths {
            [only] => only.to_string(),
            [first, rest @ ..] => format!("{first} and {} more", rest.len()),
            [] => "nothing".to_owned(),
        };
        let summary = format!("restore {what} to what it was {side} {short}");
        self.write(&FileRequest::Restore { summary, names })
    }

    fn past(
        &self,
        operation: &Operation,
        paths: &[TargetPath],
        is_after: bool,
    ) -> Result<Vec<Past>, EngineError> {
        let sides = self.files.sides(&self.store.effect(operation.id)?)?;
        for path in paths {
            if !sides.iter().any(|side| is_at(&side.path, path)) {
                let (path, id) = (path.clone(), operation.id);
                return Err(EngineError::NotTouched { path, id });
            }
        }
        let mut names = Vec::new();
        for side in sides {
            if !paths.iter().any(|path| is_at(&side.path, path)) {
                continue;
            }
            let mut was = if is_after { side.after } else { side.before };
            // A later operation may keep what is not where it was left.
            if let Some(left) = was.as_ref().filter(|was| was.is_file())
                && let Some(digest) = left.digest()
                && !self.files.is_at_hand(left)?
                && let Some(kept) = self.kept_later(operation, &side.path, digest)?
            {
                was = Some(kept);
            }
            names.push(Past {
                path: side.path,
                was,
            });
        }
        Ok(names)
    }

    /// Tells whether an operation touched a path or something below it, also within a tree that went or came as one.
    pub(crate) fn has_touched(
        &self,
        id: OperationId,
        path: &TargetPath,
    ) -> Result<bool, EngineError> {
        let sides = self.files.sides(&self.store.effect(id)?)?;
        Ok(sides.iter().any(|side| is_at(&side.path, path)))
    }
}

fn is_at(name: &TargetPath, path: &TargetPath) -> bool {
    name == path || name.is_below(path)
}
