//! What an agent keeps of itself, where it goes on, and the stages of its work. Only its own.

use backout_engine::{
    CheckpointCommand, Command, Engine, MarkRequest, Reply, Report, ResumeWhat, StageCommand,
    StageEnd,
};
use backout_model::ports::OnConflict;
use backout_model::{StepAt, TargetPath, TriggerKind};
use serde_json::Value;

use super::{Failed, Work, asked, asked_of_the_past, connected};
use crate::Caller;
use crate::arguments::{Checkpoint, Connection, Resume, Stage, StageAct};
use crate::own;
use crate::reach::Last;

pub(super) fn checkpoint(arguments: Checkpoint, caller: &Caller) -> Result<Work, Report> {
    let name = arguments
        .name
        .as_deref()
        .map(own::checkpoint_name)
        .transpose()?;
    let mut roots = Vec::new();
    for given in &arguments.keep {
        let _inside = caller.path(given, Last::Followed)?;
        let directory = caller.directory(Some(given))?;
        let wrong = |error| Report::usage(format!("`{given}` cannot be kept")).because(error);
        roots.push(TargetPath::new(directory).map_err(wrong)?);
    }
    let request = Box::new(MarkRequest {
        step: step_at(arguments.step, arguments.steps)?,
        decisions: arguments.decisions,
        summary: arguments.summary,
        directory: caller.directory(None).ok(),
        environment: arguments.environment,
        if_due: arguments.every.is_some(),
        every: arguments.every,
        ..MarkRequest::default()
    });
    let (state, task) = (arguments.state.unwrap_or(Value::Null), arguments.task);
    Ok(asked(move |engine, caller| {
        let engine = of_task(engine, caller, task)?;
        let command = if roots.is_empty() {
            CheckpointCommand::Mark {
                name,
                state,
                resume: Some(request),
            }
        } else {
            CheckpointCommand::Keep {
                name,
                state,
                roots,
                resume: Some(request),
            }
        };
        Ok(engine.execute(Command::Checkpoint(command))?)
    }))
}

fn step_at(step: Option<u32>, steps: Option<u32>) -> Result<Option<StepAt>, Report> {
    match (step, steps) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(Report::usage("say with `step` how many steps are done")),
        (Some(done), Some(of)) if done > of => Err(Report::usage(format!(
            "step {done} of {of}: no more steps can be done than there are"
        ))),
        (Some(done), of) => Ok(Some(StepAt { done, of })),
    }
}

pub(super) fn resume(arguments: Resume) -> Result<Work, Report> {
    let from = arguments.checkpoint.as_deref();
    let from = from.map(own::checkpoint_name).transpose()?;
    Ok(asked_of_the_past(move |engine, caller| {
        let task = match &arguments.task {
            Some(name) => Some(own::task(engine, caller, name)?),
            None => None,
        };
        Ok(engine.execute(Command::Resume(ResumeWhat {
            task,
            from,
            own_only: true,
            is_dry_run: arguments.preview,
            ..ResumeWhat::default()
        }))?)
    }))
}

pub(super) fn stage(arguments: Stage) -> Result<Work, Report> {
    let name = match (&arguments.act, &arguments.name) {
        (_, Some(name)) => Some(own::checkpoint_name(name)?),
        (StageAct::List, None) => None,
        (StageAct::Begin | StageAct::End, None) => {
            return Err(Report::usage("say which stage, with `name`"));
        }
    };
    let is_back = arguments.failed;
    let ask = move |engine: &Engine, caller: &Caller| {
        let engine = of_task(engine, caller, arguments.task)?;
        let command = match (arguments.act, name) {
            (StageAct::Begin, Some(name)) => StageCommand::Begin {
                name,
                on_failure: None,
            },
            (StageAct::End, Some(name)) => StageCommand::End {
                name,
                failed: arguments.failed.then_some(StageEnd {
                    trigger: TriggerKind::PlanFailure,
                    why: arguments.why,
                    action: None,
                    on_conflict: OnConflict::Refuse,
                    own_only: true,
                    others: false,
                    is_dry_run: false,
                }),
            },
            (StageAct::List | StageAct::Begin | StageAct::End, _) => StageCommand::List,
        };
        match engine.execute(Command::Stage(command))? {
            Reply::Stages { mut stages } => {
                stages.retain(|it| it.agent.as_ref() == Some(&caller.agent));
                Ok(Reply::Stages { stages })
            }
            other => Ok(other),
        }
    };
    Ok(if is_back {
        asked_of_the_past(ask)
    } else {
        asked(ask)
    })
}

/// Gives the engine for a task of the caller's, if one is named.
fn of_task(engine: &Engine, caller: &Caller, task: Option<String>) -> Result<Engine, Failed> {
    let connection = Connection { task, once: None };
    Ok(connected(engine, caller, &connection)?)
}
