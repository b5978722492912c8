//! The part that a running command has in names which another operation is about to write.

use backout_capture::live::Observer as _;
use backout_drivers::command::{Part, Recorder};
use backout_model::ports::{Durability, Entry};
use backout_model::{
    Decision, Dependency, DependencyReason, Event, Intent, Operation, OperationId, Recipe, Status,
    Strategy, Target, Verb,
};

use super::desk::{self, Told};
use super::watch::WrittenBy;
use crate::lease::whole_files;
use crate::{Engine, EngineError};

impl Engine {
    /// Tells every running command what is about to be written, so that its part in that is recorded first. Gives one whose
    /// checks still run, if it wrote any of that: its verdict comes first.
    pub(crate) fn tell_running(
        &self,
        targets: &[Target],
    ) -> Result<Option<Operation>, EngineError> {
        let targets = &whole_files(targets);
        for operation in self.store.armed()? {
            let is_other = operation.owner.pid != std::process::id();
            if operation.verb == Verb::Run && is_other && self.store.is_alive(&operation.owner) {
                // Nobody there: then its watcher sees the write as somebody else's.
                let desk = self.store.capture_desk(operation.id);
                let told = desk::tell(&desk, targets, &|| self.say_waiting(&operation));
                match told {
                    Ok(Told::Later) => return Ok(Some(operation)),
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                        self.say_unanswered(&operation);
                    }
                    Ok(Told::GoOn) | Err(_) => {}
                }
            }
        }
        Ok(None)
    }

    /// Says that the checks of a command come first.
    pub(crate) fn say_checked(&self, run: &Operation) {
        if let Some(progress) = &self.settings.progress {
            let (short, summary) = (run.id.short(), &run.summary);
            progress.waits(&format!(
                "waiting for the checks of {short} ({summary}), which wrote this"
            ));
        }
    }

    /// Says that a watcher does not answer, and what to do if it was stopped.
    fn say_waiting(&self, run: &Operation) {
        let Some(progress) = &self.settings.progress else {
            return;
        };
        let (pid, short, summary) = (run.owner.pid, run.id.short(), &run.summary);
        let who = format!("waiting for process {pid}, which watches {short} ({summary})");
        progress.waits(&if self.store.is_paused(&run.owner) {
            format!(
                "{who} and was stopped: let it go on with `kill -CONT {pid}`. In ten seconds this goes on without it"
            )
        } else {
            who
        });
    }

    /// Says that nobody waits for a watcher any more, and what that means.
    fn say_unanswered(&self, run: &Operation) {
        if let Some(progress) = &self.settings.progress {
            let (pid, short) = (run.owner.pid, run.id.short());
            progress.waits(&format!(
                "process {pid} did not answer, so this went on without it: {short} takes it for somebody else's write"
            ));
        }
    }

    /// Records what a running command has done so far to what another operation is about to write, or somebody else wrote.
    pub(super) fn record_part(
        &self,
        (command, summary): (OperationId, &str),
        recorder: &mut Recorder,
        (targets, by): (&[Target], WrittenBy),
    ) {
        let is_recorded = recorder.part(targets).is_some_and(|part| {
            let id = self.next_id();
            let done = self.try_record_part(id, (command, summary), recorder, part);
            if done.is_err() {
                // Then it stays part of the command, and the other write is seen as somebody else's.
                recorder.uncut(id);
            }
            done.is_ok()
        });
        if by == WrittenBy::Anybody {
            let kept = if is_recorded {
                format!(
                    "kept: `backout undo {} --partial` brings it back",
                    command.short()
                )
            } else {
                "not kept".to_owned()
            };
            for target in targets {
                recorder.noted(&format!(
                    "somebody else wrote `{target}` while it ran, and it then wrote over that; what they wrote is {kept}"
                ));
            }
        }
    }

    fn try_record_part(
        &self,
        id: OperationId,
        (command, summary): (OperationId, &str),
        recorder: &mut Recorder,
        part: Part,
    ) -> Result<(), EngineError> {
        let settled = self.commands.settle_part(id, recorder, part)?;
        if settled.is_nothing {
            return Ok(());
        }
        let mut depends_on = self.store.dependencies(&settled.targets)?;
        depends_on.push(Dependency {
            on: command,
            reason: DependencyReason::Within,
        });
        let intent = Intent {
            targets: settled.targets,
            depends_on,
            ..self.intent_of_a_run(id, format!("part of {summary}"), settled.recipe)
        };
        let completion = settled.completion;
        let mut events = vec![
            Event::Intent(Box::new(intent)),
            Event::Applied { id, completion },
        ];
        if self.status_when_done() == Status::Committed {
            events.push(Event::Commit { id });
        }
        let contents = settled.contents;
        self.store
            .append(&Entry { events, contents }, Durability::Power)?;
        Ok(())
    }

    /// What every intent of a command has in common.
    pub(super) fn intent_of_a_run(
        &self,
        id: OperationId,
        summary: String,
        recipe: Recipe,
    ) -> Intent {
        let context = &self.context;
        Intent {
            id,
            verb: Verb::Run,
            summary,
            agent: context.agent.clone(),
            task: context.task.clone(),
            owner: self.store.this_process(),
            decision: decision(),
            targets: Vec::new(),
            depends_on: Vec::new(),
            undoes: None,
            with: None,
            group: None,
            asked: None,
            plan: None,
            trigger: None,
            notes: Vec::new(),
            command: None,
            call: None,
            approval: None,
            recipe,
        }
    }
}

/// How what a command does can be undone, and why so.
pub(super) fn decision() -> Decision {
    Decision::new(
        Strategy::Snapshot,
        &[],
        "what a name is, is kept before the command first touches it",
    )
}
