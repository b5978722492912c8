//! Keeping the stack low: twenty layers of one kind become one, twenty of those again one.
//!
//! So a command never runs above more than some dozens of layers, however many checkpoints there are, and each file is
//! linked anew only once per level. The layers that were merged stay: any checkpoint among them can be gone back to.

use backout_capture::overlay;
use backout_crashpoint::crash_point;
use backout_model::OperationId;

use super::manifest::{Manifest, Merge};
use super::open::Open;
use crate::{Engine, EngineError};

/// How many layers of one level are merged.
const MERGED: usize = 20;

/// How many layers a command may run above if they cannot be merged. The kernel has a limit of 500.
pub(super) const LAYERS_MAX: usize = 400;

impl Engine {
    /// Merges layers below the head if there are too many. What cannot be merged stays as it is.
    pub(super) fn flatten(&self, open: &mut Open) -> Result<(), EngineError> {
        // At each level at most once: what is merged may fill the next level.
        for level in 0..8 {
            let Some(of) = run_of(&open.manifest, level) else {
                continue;
            };
            let into = self.next_id();
            open.manifest.unfinished.push(into);
            self.save(open)?;
            crash_point("sandbox.flattening");
            let layers = of.iter().rev().filter_map(|id| open.manifest.layer(*id));
            let layers: Vec<_> = layers.collect();
            let Some(target) = open.manifest.layer(into) else {
                return Ok(());
            };
            let points = open.manifest.points.len();
            let merged = overlay::merge(open.manifest.means(), &layers, points, &target);
            if merged.is_err() {
                // The half-made layer goes with the next command; the stack is what it was.
                return self.save(open);
            }
            crash_point("sandbox.flattened");
            open.manifest.unfinished.retain(|id| *id != into);
            let level = level + 1;
            open.manifest.merges.push(Merge { of, into, level });
            self.save(open)?;
        }
        Ok(())
    }
}

/// Finds the oldest layers of a level below the head, if there are enough.
fn run_of(manifest: &Manifest, level: u32) -> Option<Vec<OperationId>> {
    let layers = manifest.layers(manifest.head);
    let level_of = |id: &OperationId| {
        let merge = manifest.merges.iter().find(|it| it.into == *id);
        merge.map_or(0, |it| it.level)
    };
    let start = layers.iter().position(|id| level_of(id) == level)?;
    let rest = layers.get(start..)?.iter();
    let run: Vec<OperationId> = rest
        .take_while(|id| level_of(id) == level)
        .copied()
        .collect();
    (run.len() >= MERGED).then(|| run.into_iter().take(MERGED).collect())
}
