//! Calls of services: the rule that takes one back, and the gate in front of those that nothing takes back.

use std::path::Path;

use backout_model::Strategy;
use backout_model::compensation::Compensation;
use backout_model::ports::{Gate, Reason, Ruling, StagedChange};

use crate::paths::Paths;
use crate::rules::Mistake;

/// What a proposal bears that waits for its task, or for a person, because nothing takes it back.
const IRREVERSIBLE: &str = backout_model::IRREVERSIBLE;

/// Asks about everything that nothing takes back.
#[derive(Debug)]
pub struct Irreversible;

impl Gate for Irreversible {
    fn look(&self, change: &StagedChange<'_>) -> Ruling {
        if change.decision.strategy != Strategy::Irreversible {
            return Ruling::Allow;
        }
        let reason = Reason::new(IRREVERSIBLE, "nothing takes it back once it is sent");
        let remedy = if change.task.is_some() {
            "commit the task, and it is sent; roll it back, and it is dropped"
        } else {
            "somebody else approves it, or it is part of a task and leaves with the commit"
        };
        Ruling::Ask {
            reasons: vec![reason.mended_by(remedy)],
            waits_ms_max: None,
        }
    }
}

impl Paths {
    /// Finds the rule for a call that is made in a directory: the nearest file first, the user's own last, and in a file the
    /// first that fits. A file with mistakes has no rules, and says so.
    pub fn compensation(
        &self,
        directory: &Path,
        method: &str,
        url: &str,
    ) -> Result<Option<Compensation>, (std::path::PathBuf, Vec<Mistake>)> {
        for file in self.files_for(directory).into_iter().rev() {
            let rules = match self.read_anew(&file) {
                None => continue,
                Some(Ok(rules)) => rules,
                Some(Err(mistakes)) => return Err((file, mistakes)),
            };
            let mut all = rules.compensations.into_iter();
            if let Some(found) = all.find(|rule| rule.pattern.matched(method, url).is_some()) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}
