//! Tools that take an agent's own work back, or show what that would do.
//!
//! The plan is made first and looked at: every operation in it must be the caller's own. Then exactly these may go
//! (`UndoOptions::only`), so that nothing that comes in between is taken along.

use backout_engine::{
    CheckpointCommand, Command, Engine, OperationRef, PlanView, RedoWhat, Reply, Report,
    UndoOptions, UndoWhat, WorkspaceReturn,
};
use backout_model::{Checkpoint, Key, OperationId, TargetPath, TriggerKind, ports};

use super::look::selection;
use super::{Failed, Work, asked_of_the_past};
use crate::arguments::{OnConflict, Redo, Undo};
use crate::reach::Last;
use crate::{Caller, own};

pub(super) fn undo(arguments: Undo, caller: &Caller, is_preview: bool) -> Result<Work, Report> {
    let given = [
        !arguments.operations.is_empty(),
        arguments.task.is_some(),
        arguments.checkpoint.is_some(),
        !arguments.paths.is_empty(),
    ];
    if given.iter().filter(|is_given| **is_given).count() > 1 {
        return Err(Report::usage(
            "give only one of `operations`, `task`, `checkpoint` and `paths`",
        ));
    }
    let mut paths = Vec::new();
    for path in &arguments.paths {
        let path = caller.path(path, Last::Itself)?;
        let wrong = |error| Report::usage("this is no path").because(error);
        paths.push(Key::from(TargetPath::new(path).map_err(wrong)?));
    }
    let mut options = UndoOptions {
        selection: selection(caller, &arguments.only),
        diff: is_preview,
        ..UndoOptions::default()
    };
    said(arguments.on_conflict, &mut options);
    Ok(asked_of_the_past(move |engine, caller| {
        if let Some(name) = &arguments.checkpoint {
            return to_checkpoint(engine, caller, name, options, is_preview);
        }
        let what = if let Some(name) = &arguments.task {
            UndoWhat::Task(own::task(engine, caller, name)?)
        } else if !paths.is_empty() {
            UndoWhat::Paths { paths, since: None }
        } else if arguments.operations.is_empty() {
            UndoWhat::Newest { below: None }
        } else {
            UndoWhat::Operations(named(engine, caller, &arguments.operations)?)
        };
        if is_preview {
            return preview(engine, caller, what, options);
        }
        carry_out(engine, caller, what, options)
    }))
}

fn said(on_conflict: OnConflict, options: &mut UndoOptions) {
    match on_conflict {
        OnConflict::Refuse => {}
        OnConflict::Merge => options.on_conflict = ports::OnConflict::Merge,
        OnConflict::Partial => options.partial = true,
    }
}

fn named(engine: &Engine, caller: &Caller, names: &[String]) -> Result<Vec<OperationRef>, Report> {
    let found = names.iter().map(|name| own::own(engine, caller, name));
    found
        .map(|it| Ok(OperationRef::Prefix(it?.id.to_string())))
        .collect()
}

fn preview(
    engine: &Engine,
    caller: &Caller,
    what: UndoWhat,
    options: UndoOptions,
) -> Result<Reply, Failed> {
    let reply = engine.execute(Command::Undo {
        what,
        options,
        is_dry_run: true,
    })?;
    if let Reply::Plan(plan) = &reply {
        all_own(engine, caller, plan)?;
    }
    Ok(reply)
}

/// Takes back what is the caller's own, and nothing else.
pub(super) fn carry_out(
    engine: &Engine,
    caller: &Caller,
    what: UndoWhat,
    mut options: UndoOptions,
) -> Result<Reply, Failed> {
    let plan = engine.execute(Command::Undo {
        what: what.clone(),
        options: options.clone(),
        is_dry_run: true,
    })?;
    if let Reply::Plan(plan) = &plan {
        options.only = Some(all_own(engine, caller, plan)?);
    }
    Ok(engine.execute(Command::Undo {
        what,
        options,
        is_dry_run: false,
    })?)
}

/// Makes sure that every operation of a plan is the caller's own, and lists them.
fn all_own(engine: &Engine, caller: &Caller, plan: &PlanView) -> Result<Vec<OperationId>, Report> {
    let mut all = Vec::new();
    let steps = plan.steps.iter().flat_map(|step| [step.id, step.with]);
    for id in steps.chain(plan.named.iter().copied()) {
        let operation = own::operation(engine, id)?;
        own::check(caller, &operation)?;
        all.extend([Some(id), operation.undoes].into_iter().flatten());
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

fn to_checkpoint(
    engine: &Engine,
    caller: &Caller,
    name: &str,
    options: UndoOptions,
    is_preview: bool,
) -> Result<Reply, Failed> {
    let name = own::checkpoint_name(name)?;
    let found = engine.store().checkpoint(&name);
    let found = found.map_err(|error| own::told(error.into()))?;
    let mine = found.filter(|it| it.agent.as_ref() == Some(&caller.agent));
    let Some(checkpoint) = mine else {
        let report = Report::refused(format!("you have no checkpoint `{name}`"));
        return Err(report.next("make one with the tool `checkpoint`").into());
    };
    if is_kept_inside(caller, &checkpoint) {
        let back = WorkspaceReturn {
            name,
            selection: options.selection,
            others: false,
            is_dry_run: is_preview,
        };
        return Ok(engine.execute(Command::Checkpoint(CheckpointCommand::Return(back)))?);
    }
    let what = UndoWhat::ToCheckpoint(name);
    if is_preview {
        return preview(engine, caller, what, options);
    }
    carry_out(engine, caller, what, options)
}

/// Tells whether a checkpoint keeps directories, and all of them are the caller's.
fn is_kept_inside(caller: &Caller, checkpoint: &Checkpoint) -> bool {
    let is_inside = |path: &TargetPath| {
        let mut roots = caller.roots.iter();
        roots.any(|root| path.as_path().starts_with(root))
    };
    let files = checkpoint.files.as_ref();
    files.is_some_and(|files| files.roots.iter().all(|root| is_inside(&root.path)))
}

pub(super) fn redo(arguments: Redo) -> Work {
    asked_of_the_past(move |engine, caller| {
        let what = if arguments.operations.is_empty() {
            RedoWhat::Newest { below: None }
        } else {
            RedoWhat::Operations(named(engine, caller, &arguments.operations)?)
        };
        let mut options = UndoOptions::default();
        said(arguments.on_conflict, &mut options);
        let plan = engine.execute(Command::Redo {
            what: what.clone(),
            options: options.clone(),
            is_dry_run: true,
        })?;
        if let Reply::Plan(plan) = &plan {
            let all = all_own(engine, caller, plan)?;
            not_against_rules(engine, &all)?;
            for step in &plan.steps {
                let undos = own::operation(engine, step.id)?.undos();
                not_against_rules(engine, &undos)?;
            }
            options.only = Some(all);
        }
        Ok(engine.execute(Command::Redo {
            what,
            options,
            is_dry_run: false,
        })?)
    })
}

/// Refuses to bring back what a rule took back: no gate looks at a redo.
fn not_against_rules(engine: &Engine, undos: &[OperationId]) -> Result<(), Report> {
    for id in undos {
        let operation = own::operation(engine, *id)?;
        let trigger = operation.trigger.as_ref().map(|trigger| trigger.kind);
        if trigger == Some(TriggerKind::PolicyViolation) {
            let report = Report::refused(format!("{} was not taken back", id.short()));
            return Err(report
                .because("a rule took that work back, so it is not for you to bring it back")
                .next("ask the person you work for"));
        }
    }
    Ok(())
}
