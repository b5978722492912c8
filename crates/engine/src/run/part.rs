//! The part that a running command has in names which another operation is about to write.

use std::path::{Path, PathBuf};

use backout_files::{Part, Recorder, Settled, Share};
use backout_model::ports::{Durability, Entry};
use backout_model::{
    CommandEnd, Decision, Dependency, DependencyReason, Event, Intent, Operation, OperationId,
    Recipe, Status, Strategy, Target, TargetPath, Verb,
};

use super::desk::{self, Told};
use super::watch::{Watch, Writing, WrittenBy, open_files};
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

    /// Records what a running command has done so far to what somebody else writes. Tells whether its processes go on writing
    /// that without a call that would be asked about.
    pub(super) fn record_part(
        &self,
        command: (OperationId, &str),
        recorder: &mut dyn Recorder,
        writing: Writing<'_>,
    ) -> bool {
        let Writing {
            targets,
            numbers,
            by,
        } = writing;
        recorder.spares(targets);
        let named: Vec<Target> = numbers
            .iter()
            .filter_map(|number| recorder.touched_number(*number).map(Target::node))
            .collect();
        let share = if named.is_empty() {
            recorder.share(targets)
        } else {
            Share::Stuck
        };
        if share == Share::Nothing {
            if by == WrittenBy::Anybody {
                tell_kept(command.0, recorder, (targets, false));
            }
            return false;
        }
        let open = open_files();
        let meets = |path: &PathBuf| {
            let mut all = targets.iter().chain(&named);
            let path = TargetPath::new(path).ok().map(Target::node);
            path.is_some_and(|path| all.any(|target| target.overlap(&path).is_some()))
        };
        let is_held = open.iter().any(meets);
        // What another operation replaces is another file; what a process has open is the one that was there.
        let mut open = open;
        open.retain(|path| by != WrittenBy::Operation || !meets(path));
        let is_recorded = match share {
            Share::Part(part) if by != WrittenBy::Command || recorder.has_part_left() => {
                self.try_part(command, recorder, part, &open)
            }
            Share::Part(_) | Share::Stuck | Share::Nothing => false,
        };
        match by {
            WrittenBy::Operation => false,
            WrittenBy::Anybody => {
                tell_kept(command.0, recorder, (targets, is_recorded));
                is_held
            }
            WrittenBy::Command => {
                if is_recorded {
                    recorder.count_part();
                }
                if is_held || !is_recorded {
                    recorder.shares(targets);
                    recorder.shares(&named);
                }
                is_held
            }
        }
    }

    /// Records a part. If that cannot be done it stays part of the command, and the other write is seen as somebody else's.
    fn try_part(
        &self,
        command: (OperationId, &str),
        recorder: &mut dyn Recorder,
        part: Part,
        open: &[PathBuf],
    ) -> bool {
        let id = self.next_id();
        let done = self.try_record_part(id, command, recorder, (part, open));
        if done.is_err() {
            recorder.uncut(id);
        }
        done.is_ok()
    }

    fn try_record_part(
        &self,
        id: OperationId,
        (command, summary): (OperationId, &str),
        recorder: &mut dyn Recorder,
        (part, open): (Part, &[PathBuf]),
    ) -> Result<(), EngineError> {
        let settled = recorder.settle_part(id, part, open)?;
        if settled.is_nothing {
            return Ok(());
        }
        self.append_part(id, command, format!("part of {summary}"), settled)
    }

    /// Records what a command did to databases in rows, each as a part of it. What cannot be told so stays part of the command.
    /// Gives how many databases were.
    pub(super) fn record_rows(
        &self,
        (command, summary): (OperationId, &str),
        recorder: &mut dyn Recorder,
        run: (&Watch, super::Part, &CommandEnd),
    ) -> u64 {
        let mut count = 0;
        for database in recorder.databases() {
            let names = database.files.into_iter();
            let names = names.filter_map(|name| TargetPath::new(name).ok());
            let names: Vec<Target> = names.map(Target::node).collect();
            // What hangs together with other files stays with them.
            let Share::Part(part @ Part::Names(_)) = recorder.share(&names) else {
                continue;
            };
            let id = self.next_id();
            let of = (part, database.main.as_path());
            match self.try_record_rows(id, (command, summary), (recorder, run), of) {
                Ok(true) => count += 1,
                Ok(false) | Err(_) => recorder.uncut(id),
            }
        }
        count
    }

    fn try_record_rows(
        &self,
        id: OperationId,
        (command, summary): (OperationId, &str),
        (recorder, run): (&mut dyn Recorder, (&Watch, super::Part, &CommandEnd)),
        (part, main): (Part, &Path),
    ) -> Result<bool, EngineError> {
        let settled = recorder.settle_part(id, part, &[])?;
        if settled.is_nothing {
            return Ok(false);
        }
        // What the gates have to say of it is said of the command as a whole.
        let gated = self.ask_about(summary, &settled, recorder.through(), run)?;
        if !gated.is_silent() {
            return Ok(false);
        }
        let Some(rows) = self.commands.in_rows(id, main, &settled)? else {
            return Ok(false);
        };
        let name = main.file_name().unwrap_or(main.as_os_str());
        let summary = format!("rows of {}, part of {summary}", name.display());
        self.append_part(id, command, summary, rows)?;
        Ok(true)
    }

    fn append_part(
        &self,
        id: OperationId,
        command: OperationId,
        summary: String,
        settled: Settled,
    ) -> Result<(), EngineError> {
        let mut depends_on = self.store.dependencies(&settled.targets)?;
        depends_on.push(Dependency {
            on: command,
            reason: DependencyReason::Within,
        });
        let intent = Intent {
            targets: settled.targets,
            depends_on,
            ..self.intent_of_a_run(id, summary, settled.recipe)
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
    pub(crate) fn intent_of_a_run(
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
            prompt: context.prompt.clone(),
            recipe,
        }
    }
}

/// Says what became of what somebody else wrote and the command is about to write over.
fn tell_kept(
    command: OperationId,
    recorder: &mut dyn Recorder,
    (targets, is_kept): (&[Target], bool),
) {
    let kept = if is_kept {
        format!(
            "kept: `backout undo {} --partial` brings it back",
            command.short()
        )
    } else {
        "not kept".to_owned()
    };
    for target in targets {
        recorder.noted(&format!(
            "somebody else wrote `{target}` while it ran, and it wrote there again after that; what was there in between is {kept}"
        ));
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
