//! A look at some targets for somebody who asks how they stand. Nothing is noted.

use std::collections::BTreeSet;

use backout_model::drift::DriftKind;
use backout_model::{Key, OperationId, Target};

use super::sweep::Extent;
use crate::{Engine, EngineError};

/// Of more targets than these everything that was recorded is looked at, in one go.
const ONE_BY_ONE_MAX: usize = 256;

/// What is not as it was recorded last.
#[derive(Debug, Default)]
pub(crate) struct NotAsRecorded {
    /// Each target, and in what it is not so.
    pub(crate) differing: Vec<(Target, DriftKind)>,
    /// What could not be looked at, and why.
    pub(crate) unanswered: Vec<(OperationId, String)>,
}

impl Engine {
    /// Says which of some targets are not as they were recorded last.
    pub(crate) fn not_as_recorded(
        &self,
        keys: &BTreeSet<Key>,
    ) -> Result<NotAsRecorded, EngineError> {
        let below: Vec<Key> = if keys.len() > ONE_BY_ONE_MAX {
            Vec::new()
        } else {
            keys.iter().cloned().collect()
        };
        let extent = Extent {
            below: &below,
            ..Extent::default()
        };
        let swept = self.sweep(&extent, &self.drift_standing()?)?;
        let found = swept.candidates.into_iter().map(|it| it.differing);
        let meant = found.filter(|it| keys.contains(it.target.key()));
        Ok(NotAsRecorded {
            differing: meant.map(|it| (it.target, it.kind)).collect(),
            unanswered: swept.unanswered,
        })
    }
}
