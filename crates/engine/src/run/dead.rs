//! Commands whose watcher died: what they did is settled by their log, and what is left of them is ended.

use backout_capture::live;
use backout_crashpoint::crash_point;
use backout_files::Reading;
use backout_model::ports::{Durability, Entry};
use backout_model::{CommandEnd, Event, OperationId, Recipe};

use super::{RUN_VARIABLE, STATE_VARIABLE, Unsettled};
use crate::{Engine, EngineError};

/// What is said of a command that ran when the machine went down.
const AFTER_RESTART: &str = "the machine went down while it ran; what it did in the last moments before may be missing here \
     (`--durability power` waits for the disk)";

/// What came out when a command whose watcher died was settled.
#[derive(Debug, Default)]
pub(crate) struct DeadCommand {
    /// What nobody can tell any more of what it did.
    pub(crate) doubts: Vec<String>,
    /// Its processes that were still there and were ended.
    pub(crate) ended: Vec<String>,
}

impl Engine {
    /// Settles a command whose supervisor died, by its log: what it did is recorded, and waits for a decision. Where
    /// something that it kept is out of reach, only `anyway`.
    pub(crate) fn settle_dead_command(
        &self,
        id: OperationId,
        recipe: &Recipe,
        anyway: bool,
    ) -> Result<DeadCommand, EngineError> {
        let unreadable = |error: serde_json::Error| EngineError::Io {
            action: "read the recipe",
            source: error.into(),
        };
        let body: Unsettled = recipe.body.read().map_err(unreadable)?;
        // The state directory may have been moved since.
        let log = [self.store.capture_log(id), body.log];
        let log = log.iter().find(|path| path.exists()).unwrap_or(&log[0]);
        let is_recorded = |part: OperationId| matches!(self.store.operation(part), Ok(Some(_)));
        // Nobody watches what is left of it, and it could go on writing what it has open.
        let orphans = live::end_orphans(live::Mark {
            command: (RUN_VARIABLE, &body.of.unwrap_or(id).to_string()),
            store: (STATE_VARIABLE, self.store.directory()),
        });
        let is_restarted = self
            .store
            .is_from_another_boot(&self.store.first_owner(id)?);
        let reading = Reading {
            may_be_cut: is_restarted,
            anyway,
        };
        let settled = self.commands.settle_log(id, log, &is_recorded, reading)?;
        let completion = settled.completion.clone();
        let end = CommandEnd {
            created: settled.counts.created,
            changed: settled.counts.changed,
            deleted: settled.counts.deleted,
            ..CommandEnd::default()
        };
        let mut doubts = settled.doubts.clone();
        if !orphans.left.is_empty() {
            let left = orphans.left.join(", ");
            doubts.push(format!(
                "its processes could not be ended, and nobody watches them: {left}"
            ));
        }
        let mut notes =
            vec!["its watcher died; what it had done until then is recorded".to_owned()];
        if !orphans.ended.is_empty() {
            notes.push(format!(
                "nobody watched it any more, so this was ended: {}",
                orphans.ended.join(", ")
            ));
        }
        if is_restarted {
            notes.push(AFTER_RESTART.to_owned());
        }
        notes.extend(doubts.iter().map(|doubt| format!("in doubt: {doubt}")));
        let (captured, contents) = self.captured(id, settled, notes, end)?;
        let events = vec![captured, Event::Interrupted { id, completion }];
        self.store
            .append(&Entry { events, contents }, Durability::Power)?;
        crash_point("run.recaptured");
        if doubts.is_empty() {
            self.forget_log(id);
        }
        Ok(DeadCommand {
            doubts,
            ended: orphans.ended,
        })
    }

    /// Says that until now nobody but the command and its watcher can have changed what it changed.
    pub(crate) fn touch_log(&self, id: OperationId) {
        if let Ok(log) = std::fs::File::options()
            .append(true)
            .open(self.store.capture_log(id))
        {
            let _touched = log.set_modified(std::time::SystemTime::now());
        }
    }

    /// Removes the log of a command that is settled.
    pub(crate) fn forget_log(&self, id: OperationId) {
        let _gone = std::fs::remove_file(self.store.capture_log(id));
    }
}
