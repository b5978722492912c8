//! `[triggers]` and `[checkpoints]`: what a `backout.toml` says about work that failed or was left, and about agents' states.
//!
//! The files that count for the work are asked, the innermost first.

use std::path::Path;
use std::sync::Arc;

use backout_model::ports::{Triggers, UnreadableRules};
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
    fn action(
        &self,
        kind: TriggerKind,
        targets: &[Target],
    ) -> Result<Option<TriggerAction>, UnreadableRules> {
        let mut said = None;
        for path in targets.iter().filter_map(Target::file) {
            let rules = self.paths.readable_rules_for(path.as_path())?;
            let mut innermost = rules.iter().rev();
            said = said.or_else(|| innermost.find_map(|it| it.triggers.get(&kind).copied()));
        }
        Ok(said)
    }

    fn checkpoint_every(&self, directory: &Path) -> Result<Option<u32>, UnreadableRules> {
        let file = directory.join("backout.toml");
        let rules = self.paths.readable_rules_for(&file)?;
        let mut innermost = rules.iter().rev();
        Ok(innermost.find_map(|it| it.checkpoint_every))
    }
}
