//! Stages of a pipeline: a snapshot at each boundary, and a stage that fails goes back to its own.
//!
//! - A snapshot is the place in the journal and the digest of the project's graph there; what was done in the stage is found from the place.
//! - What becomes of a stage that fails is said by whoever ends it, else by whoever began it, else by `backout.toml`.
//! - A stage that is rolled back takes its changes of the graph along (`graph.rs`), and a broken rule of the graph can make one fail (`broken_rule.rs`).
//! - A rollback is an undo under the guard, with a trigger. Afterwards the stage is looked at a second time: nothing of it may be in
//!   effect any more, and each target must be as it was. What is not so is told.
//! - The rollback and its end are in the journal; nothing is taken out of it.

mod broken_rule;
mod error;
mod graph;
mod view;

use backout_crashpoint::crash_point;
use backout_model::ports::{Durability, Entry, OnConflict};
use backout_model::{
    CheckpointName, Event, Lsn, Note, NoteFilter, OutcomeKind, Source, Target, TargetOutcome,
    Timestamp, Topic, Trigger, TriggerAction, TriggerKind,
};
use backout_storage::Filter;
use serde::{Deserialize, Serialize};

use crate::resume::{MarkRequest, is_nothing};
use crate::{Engine, EngineError, Reply, UndoOptions, UndoReport, UndoWhat};

pub use error::StageError;
pub use view::{GraphLeft, StageStanding, StageView};

/// What to do with stages.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StageCommand {
    /// Say that what follows is one stage.
    Begin {
        /// None that is open has it.
        name: CheckpointName,
        /// What becomes of its work if it fails; none asks `backout.toml`.
        on_failure: Option<TriggerAction>,
    },
    /// Say that it went well, or how it failed.
    End {
        /// It must be open.
        name: CheckpointName,
        /// How it failed; none if it did not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failed: Option<StageEnd>,
    },
    /// List them.
    List,
}

/// How a stage failed, and what becomes of its work.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StageEnd {
    /// What kind of thing made it fail.
    pub trigger: TriggerKind,
    /// Why, in words.
    #[serde(default)]
    pub why: Option<String>,
    /// What becomes of its work; none asks whoever began it, then `backout.toml`.
    #[serde(default)]
    pub action: Option<TriggerAction>,
    /// What to do with targets that somebody else changed since.
    #[serde(default)]
    pub on_conflict: OnConflict,
    /// Whether only the caller's own work may go, for an agent that asks from afar.
    #[serde(default)]
    pub own_only: bool,
    /// Whether what other agents built on it may go with it.
    #[serde(default)]
    pub others: bool,
    /// Only say what would be taken back.
    #[serde(default)]
    pub is_dry_run: bool,
}

impl Engine {
    pub(crate) fn look_after_stages(&self, command: StageCommand) -> Result<Reply, EngineError> {
        match command {
            StageCommand::Begin { name, on_failure } => self.begin_stage(name, on_failure),
            StageCommand::End { name, failed: None } => self.end_stage(&name),
            StageCommand::End {
                name,
                failed: Some(end),
            } => {
                if end.is_dry_run {
                    let view = self.open_stage(&name)?;
                    self.check_open(view.task.as_ref())?;
                    let options = stage_options(&view, &end, self.asker());
                    return self
                        .preview_rollback(&back(&view), &options)
                        .map(Reply::Plan);
                }
                self.fail_stage(&name, &end)
            }
            StageCommand::List => {
                let stages = self.stages()?;
                return Ok(Reply::Stages { stages });
            }
        }
        .map(|view| Reply::Stage(Box::new(view)))
    }

    /// Begins a stage: its snapshot is this place.
    fn begin_stage(
        &self,
        name: CheckpointName,
        on_failure: Option<TriggerAction>,
    ) -> Result<StageView, EngineError> {
        let scope = self.own_scope();
        if scope.is_nobodys() {
            return Err(StageError::Nobodys { name }.into());
        }
        self.check_open(scope.task.as_ref())?;
        let old = self.newest_stage(&name)?;
        if old.is_some_and(|old| old.standing.is_open()) {
            return Err(StageError::Open { name }.into());
        }
        self.recover_the_dead()?;
        let point = self.point(&scope, &MarkRequest::default())?;
        let mut view = StageView {
            stage: name,
            agent: scope.agent,
            task: scope.task,
            standing: StageStanding::Open,
            at: Timestamp(0),
            lsn: Lsn(0),
            position: point.position,
            known: point.known,
            graph: self.graph_digest()?,
            on_failure,
            trigger: None,
            act: None,
            reverted: Vec::new(),
            targets: 0,
            not_as_before: Vec::new(),
            overwritten: Vec::new(),
            is_graph_restored: None,
            graph_before: None,
            graph_left: None,
        };
        crash_point("stage.before");
        self.note_stage(&mut view)?;
        Ok(view)
    }

    /// Ends a stage that went well.
    fn end_stage(&self, name: &CheckpointName) -> Result<StageView, EngineError> {
        let mut view = self.open_stage(name)?;
        self.refuse_inner(&view)?;
        self.recover_the_dead()?;
        view.standing = StageStanding::Done;
        view.graph = self.graph_digest()?;
        self.note_stage(&mut view)?;
        Ok(view)
    }

    /// Takes back what was done in a stage, as its rules say.
    fn fail_stage(&self, name: &CheckpointName, end: &StageEnd) -> Result<StageView, EngineError> {
        self.fail_stage_by(name, end, self.asker())
    }

    /// The same, by the word of somebody or something.
    fn fail_stage_by(
        &self,
        name: &CheckpointName,
        end: &StageEnd,
        source: Source,
    ) -> Result<StageView, EngineError> {
        let mut view = self.open_stage(name)?;
        self.recover_the_dead()?;
        let mut options = stage_options(&view, end, source);
        if end.own_only {
            self.narrow_to_own(&back(&view), &mut options)?;
        }
        view.trigger.clone_from(&options.trigger);
        let action = match end.action.or(view.on_failure) {
            Some(action) => action,
            None => self.action_on(end.trigger, &self.stage_targets(&view)?)?,
        };
        match action {
            TriggerAction::Keep => view.standing = StageStanding::Kept,
            TriggerAction::Ask => view.standing = StageStanding::Waits,
            TriggerAction::Rollback => {
                self.check_open(view.task.as_ref())?;
                let report = match self.undo(&back(&view), &options) {
                    Err(error) if is_nothing(&error) => UndoReport::default(),
                    report => report?,
                };
                crash_point("stage.reverted");
                self.look_at_it_again(&mut view, report)?;
                self.bring_graph_back(&mut view, end.on_conflict)?;
                crash_point("stage.graph-back");
                view.standing = StageStanding::RolledBack;
            }
        }
        for mut inner in self.inner(&view)? {
            inner.standing = view.standing;
            inner.trigger.clone_from(&view.trigger);
            inner.act = view.act;
            self.note_stage(&mut inner)?;
        }
        self.note_stage(&mut view)?;
        Ok(view)
    }

    /// Looks at a stage that was taken back a second time, and notes what is not as it was.
    fn look_at_it_again(
        &self,
        view: &mut StageView,
        report: UndoReport,
    ) -> Result<(), EngineError> {
        view.act = report.act;
        view.overwritten = report.overwritten().cloned().collect();
        for step in report.steps {
            view.reverted.push(step.id);
            view.targets += step.outcomes.len();
            let other = step.outcomes.into_iter().filter(|it| !is_as_before(it));
            view.not_as_before.extend(other);
        }
        match self.preview_undo(&back(view), &UndoOptions::default()) {
            Err(error) if is_nothing(&error) => {}
            rest => {
                for step in rest?.steps {
                    let why = "the stage still has it in effect".to_owned();
                    let targets = step.targets.into_iter();
                    view.not_as_before.extend(targets.map(|it| {
                        TargetOutcome::new(it.target, OutcomeKind::Failed { why: why.clone() })
                    }));
                }
            }
        }
        Ok(())
    }

    fn asker(&self) -> Source {
        match &self.context.agent {
            Some(agent) => Source::Agent {
                agent: agent.clone(),
            },
            None => Source::Person,
        }
    }

    /// Lists what a stage has written, for whoever has rules about it.
    fn stage_targets(&self, view: &StageView) -> Result<Vec<Target>, EngineError> {
        let filter = Filter {
            placed_after: Some(view.position),
            task: view.task.clone(),
            agent: view.agent.clone().filter(|_| view.task.is_none()),
            ..Filter::default()
        };
        let operations = self.store.operations(&filter)?.into_iter();
        let targets = operations.flat_map(|it| it.targets);
        Ok(targets.map(|it| it.target).collect())
    }

    /// Finds a stage of the caller's work that is open.
    fn open_stage(&self, name: &CheckpointName) -> Result<StageView, EngineError> {
        let found = self.newest_stage(name)?;
        match found {
            Some(view) if view.standing.is_open() => Ok(view),
            other => {
                let standing = other.map(|view| view.standing);
                let open = self.stages()?.into_iter();
                let elsewhere = open.filter(|it| it.stage == *name && it.standing.is_open());
                Err(StageError::NotOpen {
                    name: name.clone(),
                    standing,
                    elsewhere: elsewhere.map(|it| it.whose()).next(),
                }
                .into())
            }
        }
    }

    /// Says no while a stage that began in it is open.
    fn refuse_inner(&self, view: &StageView) -> Result<(), EngineError> {
        match self.inner(view)?.into_iter().next() {
            Some(inner) => Err(StageError::Inner {
                name: view.stage.clone(),
                inner: inner.stage,
            }
            .into()),
            None => Ok(()),
        }
    }

    /// Lists the open stages of the same work that began after one.
    fn inner(&self, view: &StageView) -> Result<Vec<StageView>, EngineError> {
        let mut stages = self.stages()?;
        stages.retain(|it| {
            it.standing.is_open()
                && (&it.task, &it.agent) == (&view.task, &view.agent)
                && it.lsn > view.lsn
        });
        Ok(stages)
    }

    fn newest_stage(&self, name: &CheckpointName) -> Result<Option<StageView>, EngineError> {
        let scope = self.own_scope();
        let subject = subject(name, &scope.to_string());
        let filter = NoteFilter {
            limit: Some(1),
            ..NoteFilter::about(Topic::Stage, subject)
        };
        Ok(self.store.notes(&filter)?.into_iter().find_map(view_of))
    }

    /// Lists stages as they stand, the newest first.
    fn stages(&self) -> Result<Vec<StageView>, EngineError> {
        let notes = self.store.notes(&NoteFilter::newest(Topic::Stage))?;
        let mut stages: Vec<StageView> = notes.into_iter().filter_map(view_of).collect();
        stages.sort_by_key(|stage| std::cmp::Reverse(stage.lsn));
        Ok(stages)
    }

    fn note_stage(&self, view: &mut StageView) -> Result<(), EngineError> {
        let scope = crate::resume::Scope {
            task: view.task.clone(),
            agent: view.agent.clone(),
        };
        let body = serde_json::to_value(&*view).map_err(|error| {
            backout_storage::StorageError::inconsistent(format!("the stage {}", view.stage), &error)
        })?;
        let note = Note {
            topic: Topic::Stage,
            subject: subject(&view.stage, &scope.to_string()),
            lsn: Lsn(0),
            at: Timestamp(0),
            agent: scope.agent,
            task: scope.task,
            body,
        };
        let entry = Entry::of(vec![Event::Noted(Box::new(note))]);
        let lsn = self.store.append(&entry, Durability::Power)?;
        crash_point("stage.noted");
        if view.lsn == Lsn(0) {
            view.lsn = lsn;
        }
        view.at = self.now();
        Ok(())
    }
}

fn stage_options(view: &StageView, end: &StageEnd, source: Source) -> UndoOptions {
    let why = match &end.why {
        Some(why) => format!("the stage {} failed: {why}", view.stage),
        None => format!("the stage {} failed", view.stage),
    };
    UndoOptions {
        on_conflict: end.on_conflict,
        others: end.others,
        trigger: Some(Trigger::new(end.trigger, source).because(why)),
        ..UndoOptions::default()
    }
}

fn subject(name: &CheckpointName, whose: &str) -> String {
    format!("{name} of {whose}")
}

fn view_of(note: Note) -> Option<StageView> {
    let view: StageView = serde_json::from_value(note.body).ok()?;
    Some(StageView {
        lsn: if view.lsn == Lsn(0) {
            note.lsn
        } else {
            view.lsn
        },
        at: note.at,
        ..view
    })
}

/// Says what a stage is taken back by.
fn back(view: &StageView) -> UndoWhat {
    UndoWhat::ToPlace {
        lsn: view.position,
        task: view.task.clone(),
        agent: view.agent.clone().filter(|_| view.task.is_none()),
        known: view.known.clone(),
    }
}

/// Tells whether a target is as it was, by digest.
const fn is_as_before(outcome: &TargetOutcome) -> bool {
    matches!(
        outcome.kind,
        OutcomeKind::Restored | OutcomeKind::AlreadyGone | OutcomeKind::Overwritten { .. }
    )
}
