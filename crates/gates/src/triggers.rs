//! `[triggers]` and `[checkpoints]`: what a `backout.toml` says about work that failed or was left, and about agents' states.
//!
//! The files that count for the work are asked, the innermost first.

use std::path::Path;
use std::sync::Arc;

use backout_model::ports::Triggers;
use backout_model::{Target, TriggerAction, TriggerKind};

use crate::paths::Paths;

/// Answers as every `backout.toml` wants it.
#[derive(Debug)]
pub struct Written {
    paths: Arc<Paths>,
}

impl Written {
    /// Takes the gate that reads the rules.
    pub const fn new(paths: Arc<Paths>) -> Self {
        Self { paths }
    }
}

impl Triggers for Written {
    fn action(&self, kind: TriggerKind, targets: &[Target]) -> Option<TriggerAction> {
        let files = targets.iter().filter_map(Target::file);
        let mut said = files.filter_map(|path| {
            let rules = self.paths.rules_for(path.as_path());
            let mut innermost = rules.iter().rev();
            innermost.find_map(|it| it.triggers.get(&kind).copied())
        });
        said.next()
    }

    fn checkpoint_every(&self, directory: &Path) -> Option<u32> {
        let rules = self.paths.rules_for(&directory.join("backout.toml"));
        let mut innermost = rules.iter().rev();
        innermost.find_map(|it| it.checkpoint_every)
    }
}
