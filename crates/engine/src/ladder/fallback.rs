//! The fallback: where what an undo needs is gone from the store or damaged, the same bytes may be somewhere else, such as in a
//! copy of the file, in what another operation keeps, or at another name that a recorded operation wrote.
//!
//! What is found goes into the store again under its digest, which is checked on the way. So the undo is the same as ever.

use backout_files::Lacking;
use backout_model::{Digest, OperationId, UndoStep};
use backout_storage::Filter;

use crate::lifecycle::with_causes;
use crate::{Engine, EngineError};

/// How many operations are asked whether they know of the same bytes, the newest first.
const SEARCHED_MAX: usize = 10_000;

impl Engine {
    /// Brings what a step lacks into the store from elsewhere, and says how many contents that were. The inner error says why
    /// that cannot be.
    pub(super) fn brought_from_elsewhere(
        &self,
        step: &UndoStep,
    ) -> Result<Result<usize, String>, EngineError> {
        let mut lacking = Vec::new();
        let mut recipes = vec![step.with, step.id];
        recipes.dedup();
        for with in recipes {
            let effect = self.store.effect(with)?;
            let files = match self.as_files(&effect) {
                Ok(files) => files,
                Err(error) => return Ok(Err(with_causes(&error))),
            };
            let Some(files) = files else {
                let driver = &effect.recipe.driver;
                return Ok(Err(format!("the driver `{driver}` has no second way back")));
            };
            match self.files.lacking(&files) {
                Ok(Lacking {
                    unknown: Some(path),
                    ..
                }) => {
                    return Ok(Err(format!(
                        "`{path}` was kept as it was and is gone, and nobody knows which bytes it had"
                    )));
                }
                Ok(Lacking {
                    unkept: Some(path), ..
                }) => {
                    return Ok(Err(format!(
                        "what `{path}` was is not kept, and was not from the beginning"
                    )));
                }
                Ok(found) => lacking.extend(found.digests.into_iter().map(|it| (with, it))),
                Err(error) => return Ok(Err(with_causes(&error))),
            }
        }
        if lacking.is_empty() {
            let why = "what is kept for it is whole, and there is nothing else to take it from";
            return Ok(Err(why.to_owned()));
        }
        for (with, digest) in &lacking {
            if let Err(why) = self.bring_from_elsewhere(*with, digest)? {
                return Ok(Err(why));
            }
        }
        Ok(Ok(lacking.len()))
    }

    fn bring_from_elsewhere(
        &self,
        with: OperationId,
        digest: &Digest,
    ) -> Result<Result<(), String>, EngineError> {
        let all = Filter {
            limit: Some(SEARCHED_MAX),
            ..Filter::default()
        };
        for operation in self.store.operations(&all)? {
            // What nobody can read, or is let go, knows nothing.
            let Ok(effect) = self.store.effect(operation.id) else {
                continue;
            };
            let Ok(Some(files)) = self.as_files(&effect) else {
                continue;
            };
            let Ok(Some(mut found)) = self.files.elsewhere(&files, digest) else {
                continue;
            };
            match self.store.stash(with, &mut found) {
                Ok((stored, _)) if stored == *digest => return Ok(Ok(())),
                // Somebody wrote into it just now.
                Ok(_) => {}
                Err(error) => return Ok(Err(with_causes(&error))),
            }
        }
        let digest = digest.short();
        Ok(Err(format!(
            "what it was ({digest}) is gone or damaged in the store, and nothing else has the same bytes"
        )))
    }
}
