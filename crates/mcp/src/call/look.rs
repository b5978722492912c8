//! Tools that only look.

use backout_engine::{
    Command, DriftCommand, Engine, Filter, OperationRef, Reply, Report, Selection,
};
use backout_model::{Key, Operation, TargetPath};

use super::{Failed, Work, asked_of_the_past};
use crate::arguments::{Differs, Drift, Log, Named};
use crate::reach::Last;
use crate::{Caller, own};

/// How many operations are listed when nobody says, and at most.
const LISTED: usize = 25;
const LISTED_MAX: usize = 500;

/// More targets of one operation are not listed.
const TARGETS_MAX: usize = 50;

/// More bytes of differences are not told: a model reads them.
const DIFF_BYTES_MAX: usize = 256 * 1024;

/// More records of one operation are not told.
const RECORDS_MAX: usize = 50;

pub(super) fn log(arguments: Log, caller: &Caller) -> Result<Work, Report> {
    let limit = arguments.limit.unwrap_or(LISTED).clamp(1, LISTED_MAX);
    let mut places: Vec<Option<Key>> = vec![None];
    if let Some(path) = &arguments.path {
        let path = caller.path(path, Last::Itself)?;
        places = vec![Some(key(&path)?)];
    } else if arguments.everybody {
        let roots = caller.roots.iter().map(|root| key(root).map(Some));
        places = roots.collect::<Result<_, _>>()?;
    }
    let (task, everybody) = (arguments.task, arguments.everybody);
    Ok(asked_of_the_past(move |engine, caller| {
        let task = task.as_deref().map(|name| own::task(engine, caller, name));
        let task = task.transpose()?;
        let mut operations: Vec<Operation> = Vec::new();
        for at in places {
            let filter = Filter {
                agent: (!everybody).then(|| caller.agent.clone()),
                task: task.clone(),
                at,
                limit: Some(limit),
                ..Filter::default()
            };
            if let Reply::Log { operations: found } = engine.execute(Command::Log(filter))? {
                operations.extend(found);
            }
        }
        operations.retain(|operation| caller.sees(operation));
        operations.sort_by_key(|operation| std::cmp::Reverse(operation.lsn));
        operations.dedup_by_key(|operation| operation.id);
        operations.truncate(limit);
        operations.iter_mut().for_each(shorten);
        Ok(Reply::Log { operations })
    }))
}

pub(super) fn drift(arguments: &Drift, caller: &Caller) -> Result<Work, Report> {
    let path = arguments.path.as_deref();
    let path = path.map(|path| caller.path(path, Last::Itself));
    let below: Option<Key> = path.transpose()?.map(|path| key(&path)).transpose()?;
    Ok(asked_of_the_past(move |engine, caller| {
        let command = DriftCommand::Look {
            below: below.into_iter().collect(),
        };
        let reply = engine.execute(Command::Drift(command))?;
        let Reply::Drift(mut report) = reply else {
            return Ok(reply);
        };
        // What others wrote is theirs to know.
        report
            .open
            .retain(|it| it.drift.expected.agent.as_ref() == Some(&caller.agent));
        report.ignored.clear();
        report.unanswered.clear();
        Ok(Reply::Drift(report))
    }))
}

/// Leaves targets out where there are very many, and says so.
fn shorten(operation: &mut Operation) {
    let left = operation.targets.len().saturating_sub(TARGETS_MAX);
    if left > 0 {
        operation.targets.truncate(TARGETS_MAX);
        operation
            .notes
            .push(format!("{left} more targets are not listed here"));
    }
}

fn key(path: &std::path::Path) -> Result<Key, Report> {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let path = TargetPath::new(real);
    path.map(Key::from)
        .map_err(|error| Report::usage("this is no path").because(error))
}

pub(super) fn show(arguments: Named) -> Work {
    asked_of_the_past(move |engine, caller| show_now(engine, caller, &arguments.operation))
}

/// Shows an operation.
pub(crate) fn show_now(engine: &Engine, caller: &Caller, name: &str) -> Result<Reply, Failed> {
    let operation = own::seen(engine, caller, name)?;
    let reference = OperationRef::Prefix(operation.id.to_string());
    let mut reply = engine.execute(Command::Show(reference))?;
    if let Reply::Shown(shown) = &mut reply {
        shorten(&mut shown.operation);
        let is_large = shown.targets.len() > TARGETS_MAX || shown.records.len() > RECORDS_MAX;
        shown.targets.truncate(TARGETS_MAX);
        shown.values.truncate(TARGETS_MAX);
        // The first record names every target.
        if is_large {
            shown.records.clear();
            let note = "its records and most of its targets are not listed here: it is large";
            shown.operation.notes.push(note.to_owned());
        }
    }
    Ok(reply)
}

pub(super) fn diff(arguments: Differs) -> Work {
    asked_of_the_past(move |engine, caller| {
        diff_now(engine, caller, &arguments.operation, &arguments.only)
    })
}

/// Shows what an operation changed.
pub(crate) fn diff_now(
    engine: &Engine,
    caller: &Caller,
    name: &str,
    only: &[String],
) -> Result<Reply, Failed> {
    let operation = own::seen(engine, caller, name)?;
    let mut reply = engine.execute(Command::Diff {
        operation: OperationRef::Prefix(operation.id.to_string()),
        selection: selection(caller, only),
        is_brief: false,
    })?;
    if let Reply::Diff(diff) = &mut reply {
        let mut left = DIFF_BYTES_MAX;
        for file in &mut diff.files {
            if let Some(rest) = left.checked_sub(file.text.len()) {
                left = rest;
            } else {
                file.text.clear();
                file.unshown = Some("the difference is too long for one answer; ask for this name alone with `only`".to_owned());
            }
        }
    }
    Ok(reply)
}

/// Says which names are meant. A pattern that is not absolute starts at the first directory.
pub(super) fn selection(caller: &Caller, only: &[String]) -> Selection {
    let base = caller.roots.first().cloned().unwrap_or_default();
    Selection {
        only: Selection::typed(only, &base),
        exclude: Vec::new(),
    }
}
